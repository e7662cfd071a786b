// `argiope schedule export` and `import`: all schedules of a store as JSON lines, and back, into this store or another.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <set>

#include "argiope/async/coro.hpp"
#include "base/internal/file_reading.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/output_file.hpp"
#include "base/internal/printable.hpp"
#include "cli/command_files.hpp"
#include "cli/file_kind.hpp"
#include "cli/schedule/schedule_command.hpp"
#include "cli/schedule/schedule_print.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostImportBytes = std::size_t{1} << 30;

struct TransferArguments {
  JobStoreArguments store;
  std::string file = "-";
  bool replace = false;
  bool keep = false;
};

Coro<Result<std::vector<ScheduleStatus>>> all_schedules(ScheduleBook& book) {
  std::vector<ScheduleStatus> all;
  for (ScheduleId after = 0;;) {
    auto page = co_await or_return(book.list(after, kListPage));
    if (page.empty()) co_return all;
    after = page.back().id;
    std::ranges::move(page, std::back_inserter(all));
  }
}

// --- export ----------------------------------------------------------------------------------------------------------

Coro<Result<int>> export_schedules(const TransferArguments& arguments, ScheduleBook& book) {
  std::string text;
  int status = kExitFinished;
  for (ScheduleStatus& found : co_await or_return(all_schedules(book))) {
    if (!found.schedule) {
      status = complain(fmt::format("schedule {} is left out: {}", in_quotes(found.name), found.trouble), kExitUsage);
      continue;
    }
    found.schedule->paused = found.place.paused;
    text += to_json(*found.schedule) + '\n';
  }
  OutputFile file("schedules to", arguments.file);
  file.write(text);
  co_await or_return(file.finish());
  co_return status;
}

// --- import ----------------------------------------------------------------------------------------------------------

// A schedule of the file, and where it is there, for people.
struct Entry {
  std::string where;
  Schedule schedule;
};

// The schedules of the file. Mistakes are said at once, each by its place; nothing is stored then.
class Reader {
 public:
  Reader(const std::string& file, WallTime now) : now_(now), file_(file == "-" ? "standard input" : printable(file)) {}

  // One document, or one object a line.
  void read(const std::string& text) {
    const auto document = JsonText::parse(text);
    JsonErrors errors;
    if (!document) return read_lines(text);
    const JsonValue root = document->root(errors);
    if (root.is_list()) return read_list(root);
    bool is_list = false;
    if (root.is_object()) {
      root.for_each_member([&](std::string_view name, const JsonValue& value) {
        if (name == "schedules" && value.is_list()) is_list = true, read_list(value);
      });
    }
    if (!is_list) take(fmt::format("{}:1", file_), text);
  }
  bool is_good() const noexcept { return is_good_; }
  std::vector<Entry>& entries() noexcept { return entries_; }

  void refuse(const std::string& where, std::string_view why) {
    is_good_ = false;
    fmt::print(stderr, "argiope: {}: {}\n", where, printable(why));
  }

 private:
  void read_list(const JsonValue& list) {
    std::size_t place = 0;
    list.for_each([&](const JsonValue& value) { take(fmt::format("{}, entry {}", file_, ++place), value.json()); });
  }
  void read_lines(std::string_view text) {
    for (std::size_t line = 1; !text.empty(); ++line) {
      const std::string_view one = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(one.size() + 1, text.size()));
      if (one.find_first_not_of(" \t\r") != std::string_view::npos) take(fmt::format("{}:{}", file_, line), one);
    }
  }
  void take(std::string where, std::string_view json) {
    auto schedule = parse_schedule(json);
    if (!schedule) return refuse(where, schedule.error().message);
    if (auto good = check(*schedule, now_); !good) {
      return refuse(where, good.error().message);
    }
    if (auto good = check_call(schedule->job); !good) return refuse(where, good.error().message);
    const auto [known, is_new] = places_.emplace(schedule->name, where);
    if (!is_new)
      return refuse(where, fmt::format("schedule {} is there already: {}", in_quotes(schedule->name), known->second));
    entries_.push_back({std::move(where), std::move(*schedule)});
  }

  const WallTime now_;
  const std::string file_;
  std::map<std::string, std::string> places_;  // of names
  std::vector<Entry> entries_;
  bool is_good_ = true;
};

Result<std::string> read_import(const std::string& file) {
  auto text =
      file == "-" ? read_standard_input(kMostImportBytes) : read_file_text(file, kMostImportBytes, FileReading::first);
  if (!text) return fail(text.error().code, fmt::format("{}: {}", printable(file), text.error().message));
  return text;
}

int refused() { return complain("nothing was imported", kExitUsage); }

Coro<Result<void>> refuse_known(Reader& reader, ScheduleBook& book) {
  std::set<std::string> names;
  for (const ScheduleStatus& there : co_await or_return(all_schedules(book))) names.insert(there.name);
  for (const Entry& entry : reader.entries()) {
    if (!names.contains(entry.schedule.name)) continue;
    reader.refuse(entry.where,
                  fmt::format("schedule {}: there is one of that name; --replace or --keep says what to do then",
                              in_quotes(entry.schedule.name)));
  }
  co_return Result<void>{};
}

Coro<Result<int>> import_schedules(const TransferArguments& arguments, Reader& reader, ScheduleBook& book) {
  if (!arguments.replace && !arguments.keep) co_await or_return(refuse_known(reader, book));
  if (!reader.is_good()) co_return refused();
  std::vector<std::string> names;
  std::vector<Schedule> schedules;
  for (Entry& entry : reader.entries()) {
    names.push_back(entry.schedule.name);
    schedules.push_back(std::move(entry.schedule));
  }
  const ConflictPolicy conflict = arguments.replace ? ConflictPolicy::replace
                                  : arguments.keep  ? ConflictPolicy::keep
                                                    : ConflictPolicy::fail;
  const auto replies = co_await or_return(book.add_all(std::move(schedules), conflict));
  int status = kExitFinished;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    // Another has added it in the meantime.
    if (replies[i].outcome == AddOutcome::exists) {
      status = complain(fmt::format("schedule {}: there is one of that name", in_quotes(names[i])), kExitUsage);
    } else {
      fmt::print("{}", arguments.store.json ? reply_json(names[i], replies[i]) : reply_line(names[i], replies[i]));
    }
  }
  co_return status;
}

}  // namespace

// clang-format off
std::function<int()> add_schedule_export(CLI::App& schedule) {
  auto arguments = std::make_shared<TransferArguments>();
  CLI::App* command = schedule.add_subcommand("export", "Write all schedules as JSON lines, as import and add --file read them");
  arguments->store.add_to(*command);
  command->add_option("FILE", arguments->file, "Where to (default: standard output)")->type_name("FILE");
  command->footer(
      "One that is paused is exported paused. Histories and what is due stay behind.\n"
      "Example: argiope schedule export --store http://old:7733 | argiope schedule import --store sqlite:new.db -");
  return [arguments] {
    CommandFiles files;
    files.reads_database("--store", arguments->store.file());
    files.writes("FILE", arguments->file);
    if (const auto good = files.check(); !good) return complain(good.error());
    return look_at_book(arguments->store, [&](Book& book) { return export_schedules(*arguments, book.schedules()); });
  };
}

std::function<int()> add_schedule_import(CLI::App& schedule) {
  auto arguments = std::make_shared<TransferArguments>();
  CLI::App* command = schedule.add_subcommand("import", "Add all schedules of a file, or none if one of them is wrong");
  arguments->store.add_to(*command);
  command->add_option("FILE", arguments->file, "JSON lines, a list of schedules, or {\"schedules\":[…]}; - is standard input")
      ->required()->type_name("FILE");
  command->add_flag("--replace", arguments->replace, "Those of the same names: replace them, and keep their histories");
  command->add_flag("--keep", arguments->keep, "Those of the same names: leave them as they are")->excludes("--replace");
  command->footer(
      "A mistake is named by FILE:line, or by its place in the list, before anything is changed.\n"
      "Example: argiope schedule import schedules.jsonl --replace");
  return [arguments] {
    // Mistakes are said before there is a store.
    if (const auto other = other_kind(arguments->file, FileKind::json)) return complain(*other);
    const auto text = read_import(arguments->file);
    if (!text) return complain(text.error().message, kExitUsage);
    Reader reader(arguments->file, SystemClock().wall_now());
    reader.read(*text);
    if (!reader.is_good()) return refused();
    const auto good = rehearse(arguments->store, [&](Book& book) -> Coro<Result<int>> {
      std::vector<Schedule> schedules;
      for (const Entry& entry : reader.entries()) schedules.push_back(entry.schedule);
      co_await or_return(book.schedules().add_all(std::move(schedules), ConflictPolicy::fail));
      co_return kExitFinished;
    });
    if (!good) return complain(good.error());
    return run_on_book(arguments->store, StoreAccess::share, IfMissing::make,
                       [&](Book& book) { return import_schedules(*arguments, reader, book.schedules()); });
  };
}
// clang-format on

}  // namespace argiope
