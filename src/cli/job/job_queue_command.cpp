// `argiope job queue`: the policy of a queue.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/clock.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "cli/job/job_command.hpp"
#include "jobs/internal/queue_config_json.hpp"

namespace argiope {
namespace {

// An option that sets one member of a queue's configuration.
enum class Kind : std::uint8_t { number, span, word };
struct Setting {
  const char* option;
  const char* member;
  Kind kind;
  const char* description;
};
constexpr Setting kSettings[] = {
    {"--rate", "rate", Kind::number, "Starts a second, or unlimited"},
    {"--burst", "burst", Kind::number, "Starts at once after a rest"},
    {"--concurrency", "concurrency", Kind::number, "Jobs that run at once, or unlimited"},
    {"--key-rate", "key_rate", Kind::number, "The same for each key: starts a second"},
    {"--key-burst", "key_burst", Kind::number, "starts at once"},
    {"--key-concurrency", "key_concurrency", Kind::number, "jobs that run at once"},
    {"--key-delay", "key_delay", Kind::span, "From the end of a key's job to the start of its next"},
    {"--max-attempts", "max_attempts", Kind::number, "Runs of a job before it is buried"},
    {"--retry-first", "retry_first", Kind::span,
     "Wait before the second attempt; each wait is --retry-factor times longer"},
    {"--retry-factor", "retry_factor", Kind::number, "How much longer"},
    {"--retry-longest", "retry_longest", Kind::span, "The longest wait"},
    {"--lease", "lease_time", Kind::span, "How long a worker may be silent before its job goes to another"},
    {"--max-expiries", "max_lease_expiries", Kind::number, "Leases of one job that may run out before it is buried"},
    {"--capacity", "capacity", Kind::number, "Jobs that have not ended, at most, or unlimited"},
    {"--at-capacity", "at_capacity", Kind::word, "A put then does this: wait, or refuse"},
    {"--max-payload", "max_payload_bytes", Kind::number, "Bytes of a payload"},
    {"--keep-done", "keep_done", Kind::span, "How long done jobs are kept, or unlimited"},
    {"--keep-cancelled", "keep_cancelled", Kind::span, "... cancelled ones"},
    {"--keep-buried", "keep_buried", Kind::span, "... buried ones"},
    {"--ageing", "ageing", Kind::span, "A waiting job's priority rises by one each SPAN; 0: never"},
    {"--weight", "weight", Kind::number, "Its share among the queues of one worker"},
};

struct QueueArguments {
  JobStoreArguments store;
  std::string name;
  std::string config;
  bool pause = false;
  bool resume = false;
  std::string values[std::size(kSettings)];
};

// As a member's value: a number as it is, or a JSON string, which the configuration's own parser may refuse.
std::string spelled(const std::string& text, Kind kind) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const bool is_number = kind == Kind::number && !text.empty() && *end == '\0' && std::isfinite(number);
  if (is_number) return text.find_first_not_of("0123456789") == std::string::npos ? text : fmt::format("{}", number);
  std::string out;
  append_json_string(out, text);
  return out;
}

Result<QueueConfig> changed(const QueueArguments& arguments, QueueConfig config) {
  if (!arguments.config.empty()) {
    auto parsed = parse_queue_config(arguments.config, config);
    if (!parsed) return fail(Errc::invalid_input, "--config: " + parsed.error().message);
    config = std::move(*parsed);
  }
  for (std::size_t i = 0; i < std::size(kSettings); ++i) {
    if (arguments.values[i].empty()) continue;
    const Setting& setting = kSettings[i];
    const std::string member = json_object([&](JsonWriter& out) {
      out.key(setting.member);
      out.raw(spelled(arguments.values[i], setting.kind));
    });
    JsonErrors errors;
    auto parsed = detail::read_queue_config(member, config, errors);
    if (!parsed) {
      return fail(Errc::invalid_input, fmt::format("{} {}: {}", setting.option, arguments.values[i], errors.why()));
    }
    config = std::move(*parsed);
  }
  if (arguments.pause) config.limits.paused = true;
  if (arguments.resume) config.limits.paused = false;
  return config;
}

// A member of a policy as people write it: its option's name, 5 instead of 5.0, 1d instead of 86400000.
struct Line {
  std::string name;
  std::string value;
};

std::string plain(std::string_view name, const JsonValue& value) {
  if (name.ends_with("_ms")) {
    if (const auto span = value.if_whole()) return format_duration(std::chrono::milliseconds{*span});
  }
  if (value.is_list()) {
    std::string all;
    value.for_each([&](const JsonValue& entry) { all += (all.empty() ? "" : " ") + plain(name, entry); });
    return all.empty() ? "none" : all;
  }
  return value.is_fraction() ? fmt::format("{}", *value.if_number()) : value.shown();
}

std::vector<Line> lines_of(const QueueConfig& config) {
  std::vector<Line> lines;
  JsonErrors errors;
  const auto all = JsonText::parse(to_json(config));
  all->root(errors).for_each_member([&](std::string_view member, const JsonValue& value) {
    std::string name(member);
    const std::string text = printable(plain(name, value));
    if (name.ends_with("_ms")) name.resize(name.size() - 3);
    lines.push_back({std::move(name), text});
  });
  return lines;
}

void print(const StoredQueue& queue, bool json) {
  if (json) {
    fmt::print("{}\n", json_object([&](JsonWriter& out) {
                 out.member("queue", queue.name);
                 out.key("config");
                 out.raw(to_json(queue.config));
               }));
    return;
  }
  fmt::print("queue {}\n", in_quotes(queue.name));
  for (const Line& line : lines_of(queue.config)) fmt::print("  {:<20} {}\n", line.name, line.value);
}

// The differences from before, a member a line.
void print_changes(const StoredQueue& queue, const QueueConfig& before, bool is_new) {
  fmt::print("queue {}{}\n", in_quotes(queue.name), is_new ? ", made now" : "");
  const std::vector<Line> old = lines_of(before);
  const std::vector<Line> now = lines_of(queue.config);
  bool changed = false;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (old[i].value == now[i].value) continue;
    fmt::print("  {:<20} {} (was {})\n", now[i].name, now[i].value, old[i].value);
    changed = true;
  }
  if (!changed)
    fmt::print("  {} as before; argiope job queue {} shows all of it\n", is_new ? "policy" : "all is",
               printable(queue.name));
}

struct QueueChange {
  StoredQueue queue;
  QueueConfig before;
  bool is_new = false;
};
Coro<Result<QueueChange>> change_queue(const QueueArguments& arguments, Book& book) {
  // Looked at before it is made, so that a mistake makes none.
  auto known = co_await book.queue(arguments.name);
  if (!known && known.error().code != Errc::not_found) co_return std::unexpected(std::move(known.error()));
  QueueChange change{.queue = {}, .before = known ? known->config : default_queue_policy(), .is_new = !known};
  change.queue.name = arguments.name;
  change.queue.config = co_await or_return(changed(arguments, change.before));
  co_await or_return(book.configure(change.queue.name, change.queue.config));
  co_return change;
}

Coro<Result<int>> look_or_change(const QueueArguments& arguments, bool changes, Book& book) {
  if (arguments.name.empty()) {
    const auto all = co_await or_return(book.queues());
    for (const StoredQueue& queue : all) print(queue, arguments.store.json);
    if (all.empty() && !arguments.store.json) fmt::print("No queues yet.\n");
    co_return kExitFinished;
  }
  if (!changes) {
    print(co_await or_return(book.queue(arguments.name)), arguments.store.json);
    co_return kExitFinished;
  }
  const QueueChange change = co_await or_return(change_queue(arguments, book));
  if (arguments.store.json) {
    print(change.queue, true);
  } else {
    print_changes(change.queue, change.before, change.is_new);
  }
  co_return kExitFinished;
}

}  // namespace

std::function<int()> add_job_queue(CLI::App& job) {
  auto arguments = std::make_shared<QueueArguments>();
  CLI::App* command = job.add_subcommand("queue", "Show or change the policy of a queue");
  arguments->store.add_to(*command);
  command->add_option("NAME", arguments->name, "The queue; a change makes it if there is none")->type_name("");
  command->add_option("--config", arguments->config, "Set what this JSON object names")->type_name("JSON");
  command->add_flag("--pause", arguments->pause, "Start no jobs of it");
  command->add_flag("--resume", arguments->resume, "Start them again")->excludes("--pause");
  for (std::size_t i = 0; i < std::size(kSettings); ++i) {
    command->add_option(kSettings[i].option, arguments->values[i], kSettings[i].description)
        ->type_name(kSettings[i].kind == Kind::span     ? "SPAN"
                    : kSettings[i].kind == Kind::number ? "N"
                                                        : "WHAT")
        ->group("Policy");
  }
  command->footer(
      "Without options it shows the queue, without NAME all queues; with options it changes the policy and shows what "
      "has\n"
      "changed. A running worker follows within a second. SPAN is as 90s, 1h30m or 100ms; a bare number is seconds.\n"
      "Examples: argiope job queue mail --rate 5 --retry-first 100ms\n"
      "          argiope job queue mail --pause");
  return [arguments] {
    bool changes = !arguments->config.empty() || arguments->pause || arguments->resume;
    for (const std::string& value : arguments->values) changes = changes || !value.empty();
    if (changes && arguments->name.empty()) return complain("which queue? Give its NAME", kExitUsage);
    if (changes) {
      const auto good = rehearse(arguments->store, [&](Book& book) -> Coro<Result<int>> {
        co_await or_return(change_queue(*arguments, book));
        co_return kExitFinished;
      });
      if (!good) return complain(good.error());
    }
    return run_on_book(arguments->store, changes ? StoreAccess::share : StoreAccess::read,
                       changes ? IfMissing::make : IfMissing::complain,
                       [&](Book& book) { return look_or_change(*arguments, changes, book); });
  };
}

}  // namespace argiope
