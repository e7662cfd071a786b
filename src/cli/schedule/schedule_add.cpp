// `argiope schedule add`: one schedule from options, or one a line from a file or a pipe.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/stream.hpp"
#include "argiope/calls/calls.hpp"
#include "argiope/time/time_zone.hpp"
#include "base/internal/fingerprint.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/text_lines.hpp"
#include "cli/cron_arguments.hpp"
#include "cli/line_input.hpp"
#include "cli/number_option.hpp"
#include "cli/schedule/schedule_command.hpp"
#include "cli/schedule/schedule_print.hpp"
#include "cli/standard_output.hpp"
#include "cli/table.hpp"
#include "time/internal/trigger_json.hpp"

namespace argiope {
namespace {

constexpr std::size_t kBytesAtOnce = 256 * 1024;
constexpr std::size_t kMostLineBytes = 4 * 1024 * 1024;

struct AddArguments {
  JobStoreArguments store;
  std::string name;
  std::string file;
  // When.
  std::string cron, every, at, trigger;
  std::string anchor, start, end, jitter;
  CronArguments how;
  // Policies.
  std::string misfire_grace;
  std::string coalesce = "latest";
  std::string overlap = "skip";
  std::uint64_t most_catch_up = 100;
  std::uint64_t max_instances = 1;
  std::uint64_t max_runs = 0;
  bool paused = false;
  bool replace = false;
  bool keep = false;
  // The action.
  std::vector<std::string> command;
  std::vector<std::string> http;  // method and URL
  std::vector<std::string> headers, expect;
  std::optional<std::string> body, payload;
  std::string directory;
  std::string timeout;
  std::vector<int> ok_status;
  std::string queue, function, key;
  std::int64_t priority = 0;
  std::uint64_t max_attempts = 0;
  bool fill_in = false;

  ConflictPolicy conflict() const {
    return replace ? ConflictPolicy::replace : keep ? ConflictPolicy::keep : ConflictPolicy::fail;
  }
};

// clang-format off
void add_options(CLI::App& command, AddArguments& add) {
  add.store.add_to(command);
  command.add_option("NAME", add.name, "Its name; unique in its store")->type_name("");
  command.add_option("--file", add.file, "Read schedules from FILE (- is standard input) instead, one JSON object a line")->type_name("FILE");
  command.add_flag("--replace", add.replace, "If there is one of that name: replace it, and keep its history");
  command.add_flag("--keep", add.keep, "If there is one of that name: leave it as it is")->excludes("--replace");

  const char* const when = "When (one of --cron, --every, --at, --trigger)";
  command.add_option("--cron", add.cron, "\"30 3 * * *\", \"@daily\", or another dialect's expression")->type_name("EXPR")->group(when);
  command.add_option("--every", add.every, "Every 90s, 1h30m, 2w of elapsed time")->type_name("SPAN")->group(when);
  command.add_option("--anchor", add.anchor, "The time that --every counts from (default: now)")->type_name("TIME")->needs("--every")->group(when);
  command.add_option("--at", add.at, "Once, at this time")->type_name("TIME")->group(when);
  command.add_option("--trigger", add.trigger, "Any trigger, as JSON (docs/cron.md)")->type_name("JSON")->group(when);
  add.how.add_to(command, when);
  command.add_option("--start", add.start, "Nothing before this time")->type_name("TIME")->group(when);
  command.add_option("--end", add.end, "Nothing after this time")->type_name("TIME")->group(when);
  command.add_option("--jitter", add.jitter, "Delay each run by up to this, always the same for the same planned time")->type_name("SPAN")->group(when);

  const char* const policies = "When a run comes late, or the one before has not ended";
  command.add_option("--misfire-grace", add.misfire_grace, "A run that cannot begin within this time is missed (default: none is)")->type_name("SPAN")->group(policies);
  command.add_option("--coalesce", add.coalesce, "Of several times that have come due together run: latest, earliest or all")
      ->check(CLI::IsMember({"latest", "earliest", "all"}))->capture_default_str()->type_name("WHICH")->group(policies);
  command.add_option("--most-catch-up", add.most_catch_up, "With --coalesce all: the latest N of them")->check(whole_number(0))->type_name("N")->capture_default_str()->group(policies);
  command.add_option("--max-instances", add.max_instances, "Runs that have not ended, at most")->check(whole_number(0))->type_name("N")->capture_default_str()->group(policies);
  command.add_option("--overlap", add.overlap, "For a time that comes while N runs have not ended: skip, queue-one, queue-all, cancel-running")
      ->check(CLI::IsMember({"skip", "queue-one", "queue-all", "cancel-running"}))->capture_default_str()->type_name("POLICY")->group(policies);
  command.add_option("--max-runs", add.max_runs, "End the schedule after N runs (default: never)")->check(whole_number(0))->type_name("N")->group(policies);
  command.add_flag("--paused", add.paused, "Add it paused, until argiope schedule resume")->group(policies);

  const char* const what = "What (-- COMMAND, --http, or --queue)";
  command.add_option("--http", add.http, "Send a request")->expected(2)->type_name("METHOD URL")->group(what);
  command.add_option("--header", add.headers, "\"Name: value\" (repeatable)")->type_name("TEXT")->allow_extra_args(false)->needs("--http")->group(what);
  command.add_option("--body", add.body, "The body that is sent")->type_name("TEXT")->needs("--http")->group(what);
  command.add_option("--expect", add.expect, "A status that is success: 204, 3xx (repeatable; default: 2xx)")->type_name("STATUS")->allow_extra_args(false)->needs("--http")->group(what);
  command.add_option("--directory", add.directory, "The directory in which the command runs (default: here)")->type_name("DIR")->group(what);
  add_ok_status(command, add.ok_status)->group(what);
  command.add_option("--timeout", add.timeout, "A command or request that takes longer has failed")->type_name("SPAN")->group(what);
  command.add_option("--queue", add.queue, "Put a job into this queue; with a command or request: the executor that runs it (default: default)")->type_name("NAME")->group(what);
  command.add_option("--function", add.function, "The function that the worker of that queue calls")->type_name("NAME")->needs("--queue")->group(what);
  command.add_option("--payload", add.payload, "The payload that it gets; of a command: its standard input")->type_name("TEXT")->group(what);
  command.add_flag("--fill-in", add.fill_in, "Replace {name}, {planned_at}, {fired_at} and {run} in the payload by those of the run")->group(what);
  command.add_option("--key", add.key, "The target of the job: limits of a queue can hold for each key")->type_name("TEXT")->group(what);
  command.add_option("--priority", add.priority, "Higher runs first (default: 0)")
      ->check(whole_number(std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()))->type_name("N")->group(what);
  command.add_option("--max-attempts", add.max_attempts, "Runs of the job before it is given up (default: the queue's, 3)")
      ->check(whole_number(1, std::numeric_limits<std::uint32_t>::max()))->type_name("N")->group(what);
  command.footer(
      "TIME is RFC 3339, or without an offset a time in --zone. SPAN is as 90s, 1h30m, 250ms, 2w; a bare number is seconds.\n"
      "Everything after -- is the command and its arguments; no shell reads it. It has ARGIOPE_SCHEDULE_NAME,\n"
      "_PLANNED_AT and _RUN and ARGIOPE_JOB_… in its environment; exit status 0 is success, 65 no second try.\n"
      "argiope crawl may end with 1 for what it has found: a success, with its findings in the history.\n"
      "argiope schedule run runs commands and requests; jobs of other queues wait for a worker of those.\n"
      "Examples:\n"
      "  argiope schedule add backup --cron '30 3 * * *' --zone Europe/Berlin --misfire-grace 6h -- ./backup --all\n"
      "  argiope schedule add links --cron '0 4 * * *' -- argiope crawl https://example.org/ --check-links --fail-on-broken\n"
      "  argiope schedule add ping --every 90s --jitter 10s --http GET https://example.org/ping --expect 204\n"
      "  argiope schedule add report --at 2026-12-24T06:00 --zone Asia/Tokyo --queue reports --payload '{\"year\":2026}'\n"
      "  argiope schedule add --file schedules.jsonl --replace");
}
// clang-format on

std::unexpected<Error> bad_option(std::string_view option, const Error& error) {
  return fail(error.code == Errc::not_found ? Errc::invalid_input : error.code,
              fmt::format("{}: {}", option, error.message));
}

// The value of `text` as `parse` reads it; an error names the option.
template <class Parse>
auto read(std::string_view option, const std::string& text, Parse parse) -> decltype(parse(text)) {
  auto value = parse(text);
  if (!value) return bad_option(option, value.error());
  return value;
}

Result<Trigger> plain_trigger(const AddArguments& add, const TimeZone& zone, WallTime now) {
  const auto time = [&](const std::string& text) { return parse_timestamp(text, zone); };
  if (!add.cron.empty()) {
    const auto options = add.how.options();
    if (!options) return std::unexpected(options.error());
    auto expression = CronExpression::parse(add.cron, *options);
    if (!expression && add.cron.starts_with("@every")) return fail(Errc::invalid_input, "--cron: use --every for that");
    if (!expression) return bad_option("--cron", expression.error());
    return Trigger::cron(std::move(*expression), zone);
  }
  if (!add.every.empty()) {
    const auto interval = read("--every", add.every, parse_duration);
    if (!interval) return std::unexpected(interval.error());
    Result<WallTime> anchor = std::chrono::floor<std::chrono::milliseconds>(now);
    if (!add.anchor.empty()) anchor = read("--anchor", add.anchor, time);
    if (!anchor) return std::unexpected(anchor.error());
    auto trigger = Trigger::every(*interval, *anchor);
    if (!trigger) return bad_option("--every", trigger.error());
    return trigger;
  }
  if (!add.at.empty()) {
    const auto when = read("--at", add.at, time);
    if (!when) return std::unexpected(when.error());
    return Trigger::at(*when);
  }
  const auto form = JsonText::parse(add.trigger);
  JsonErrors errors;
  if (!form || !form->root(errors).is_object()) {
    return fail(Errc::invalid_input, fmt::format("--trigger {}: no JSON object", one_line(add.trigger, kMostOfName)));
  }
  return read("--trigger", add.trigger, [&](const std::string&) { return detail::read_trigger(form->root(errors)); });
}

Result<Trigger> trigger_of(const AddArguments& add, WallTime now) {
  const std::string* const ways[] = {&add.cron, &add.every, &add.at, &add.trigger};
  if (std::ranges::count_if(ways, [](const std::string* way) { return !way->empty(); }) != 1) {
    return fail(Errc::invalid_input, "when? Give one of --cron, --every, --at and --trigger");
  }
  const auto zone = add.how.zone();
  if (!zone) return bad_option("--zone", zone.error());
  auto trigger = plain_trigger(add, *zone, now);
  if (!trigger) return trigger;
  const auto time = [&](const std::string& text) { return parse_timestamp(text, *zone); };
  if (!add.start.empty()) {
    const auto start = read("--start", add.start, time);
    if (!start) return std::unexpected(start.error());
    trigger = trigger->starting(*start);
  }
  if (!add.end.empty()) {
    const auto end = read("--end", add.end, time);
    if (!end) return std::unexpected(end.error());
    trigger = trigger->ending(*end);
  }
  if (!add.jitter.empty()) {
    const auto jitter = read("--jitter", add.jitter, parse_duration);
    if (!jitter) return std::unexpected(jitter.error());
    // Those that are planned for the same time are to part.
    trigger = trigger->with_jitter(*jitter, fingerprint(add.name));
  }
  return trigger;
}

// An absolute path; empty where this process has no directory any more.
std::string directory_of(const AddArguments& add) {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (error && add.directory.empty()) return {};
  return add.directory.empty() ? here.string() : (here / add.directory).lexically_normal().string();
}

// JSON of a value that holds no object, with its braces spelled so that nothing is filled in between them.
std::string without_braces(std::string_view json) {
  std::string out;
  for (const char c : json) c == '{' ? out += "\\u007b" : out += c;
  return out;
}

// A form whose environment says which run it is, by what is filled in for each; the user's own words are hidden from
// that, unless --fill-in asks for it.
std::string command_payload(const AddArguments& add) {
  return json_object(
      [&](JsonWriter& out) {
        const auto words = [&](std::string_view name, auto write) {
          std::string value;
          JsonWriter json(value, JsonEscapes::letters);
          write(json);
          out.key(name);
          out.raw(add.fill_in ? value : without_braces(value));
        };
        words("args", [&](JsonWriter& json) {
          json.array([&] {
            for (const std::string& arg : add.command) json.value(arg);
          });
        });
        const std::string directory = directory_of(add);
        if (!directory.empty()) words("directory", [&](JsonWriter& json) { json.value(directory); });
        if (!add.ok_status.empty()) out.list("ok_status", add.ok_status);
        if (!add.timeout.empty()) words("timeout", [&](JsonWriter& json) { json.value(add.timeout); });
        words("input", [&](JsonWriter& json) { json.value(add.payload.value_or("")); });
        out.object("environment", [&] {
          out.member("ARGIOPE_SCHEDULE_NAME", "{name}");
          out.member("ARGIOPE_SCHEDULE_PLANNED_AT", "{planned_at}");
          out.member("ARGIOPE_SCHEDULE_RUN", "{run}");
        });
      },
      JsonEscapes::letters);
}

using Headers = std::vector<std::pair<std::string, std::string>>;

// A name that is given twice has its last value.
Result<Headers> headers_of(const AddArguments& add) {
  Headers headers;
  for (const std::string& header : add.headers) {
    const std::size_t colon = header.find(':');
    if (colon == std::string::npos || colon == 0) {
      return fail(Errc::invalid_input, fmt::format("--header {}: as \"Name: value\"", one_line(header, kMostOfName)));
    }
    const std::string name = header.substr(0, colon);
    const std::string value = header.substr(std::min(header.find_first_not_of(' ', colon + 1), header.size()));
    const auto known = std::ranges::find(headers, name, &Headers::value_type::first);
    known == headers.end() ? void(headers.emplace_back(name, value)) : void(known->second = value);
  }
  return headers;
}

Result<std::string> http_payload(const AddArguments& add) {
  const auto headers = headers_of(add);
  if (!headers) return std::unexpected(headers.error());
  return json_object(
      [&](JsonWriter& out) {
        out.member("method", add.http[0]);
        out.member("url", add.http[1]);
        if (!headers->empty()) {
          out.object("headers", [&] {
            for (const auto& [name, value] : *headers) out.member(name, value);
          });
        }
        if (add.body) out.member("body", *add.body);
        if (!add.expect.empty()) out.list("expect", add.expect);
        if (!add.timeout.empty()) out.member("timeout", add.timeout);
      },
      JsonEscapes::letters);
}

Result<JobTemplate> job_of(const AddArguments& add) {
  const bool is_command = !add.command.empty();
  const bool is_http = !add.http.empty();
  if (is_command && is_http) return fail(Errc::invalid_input, "what? Either --http or a command after --, not both");
  if (!is_command && !is_http && add.queue.empty()) {
    return fail(Errc::invalid_input, "what? Give a command after --, or --http METHOD URL, or --queue NAME");
  }
  if (!add.function.empty() && (is_command || is_http)) {
    return fail(Errc::invalid_input, "--function: a command or request is what is called");
  }
  if (is_http && add.payload) return fail(Errc::invalid_input, "--payload: what a request sends is its --body");
  if (!add.directory.empty() && !is_command) return fail(Errc::invalid_input, "--directory: is for commands");
  if (!add.ok_status.empty() && !is_command)
    return fail(Errc::invalid_input, "--ok-status: is for commands; a request has --expect");
  if (!add.timeout.empty() && !is_command && !is_http) {
    return fail(Errc::invalid_input, "--timeout: is for commands and requests");
  }
  if (!add.timeout.empty()) {
    if (const auto timeout = read("--timeout", add.timeout, parse_duration); !timeout) {
      return std::unexpected(timeout.error());
    }
  }
  JobTemplate job;
  job.queue = add.queue.empty() ? std::string(kScheduleExecutor) : add.queue;
  job.key = add.key;
  job.priority = static_cast<std::int32_t>(add.priority);
  job.max_attempts = static_cast<std::uint32_t>(add.max_attempts);
  job.fill_in = add.fill_in;
  if (!is_command && !is_http) {
    job.function = add.function;
    job.payload = add.payload.value_or("");
    return job;
  }
  job.function = is_command ? kCommandFunction : kHttpFunction;
  if (is_command) {
    job.payload = command_payload(add);
    job.fill_in = true;
    if (auto call = parse_command_call(job.payload); !call) return std::unexpected(std::move(call.error()));
  } else {
    auto payload = http_payload(add);
    if (!payload) return std::unexpected(std::move(payload.error()));
    job.payload = std::move(*payload);
    if (auto call = parse_http_call(job.payload); !call) return std::unexpected(std::move(call.error()));
  }
  return job;
}

Result<std::uint32_t> whole(std::string_view option, std::uint64_t value, std::uint32_t most) {
  if (value >= 1 && value <= most) return static_cast<std::uint32_t>(value);
  return fail(Errc::invalid_input, fmt::format("{} {}: a whole number, 1 to {}", option, value, most));
}

Result<Schedule> schedule_of(const AddArguments& add, WallTime now) {
  auto trigger = trigger_of(add, now);
  if (!trigger) return std::unexpected(std::move(trigger.error()));
  auto job = job_of(add);
  if (!job) return std::unexpected(std::move(job.error()));
  Schedule schedule{.name = add.name, .trigger = std::move(*trigger), .job = std::move(*job)};
  if (!add.misfire_grace.empty()) {
    const auto grace = read("--misfire-grace", add.misfire_grace, parse_duration);
    if (!grace) return std::unexpected(grace.error());
    schedule.misfire_grace = *grace;
  }
  schedule.coalesce = add.coalesce == "all"        ? Coalesce::all
                      : add.coalesce == "earliest" ? Coalesce::earliest
                                                   : Coalesce::latest;
  schedule.overlap = add.overlap == "queue-one"        ? Overlap::queue_one
                     : add.overlap == "queue-all"      ? Overlap::queue_all
                     : add.overlap == "cancel-running" ? Overlap::cancel_running
                                                       : Overlap::skip;
  const auto catch_up = whole("--most-catch-up", add.most_catch_up, Schedule::kMostCatchUp);
  if (!catch_up) return std::unexpected(catch_up.error());
  schedule.most_catch_up = *catch_up;
  const auto instances = whole("--max-instances", add.max_instances, Schedule::kMostInstances);
  if (!instances) return std::unexpected(instances.error());
  schedule.max_instances = *instances;
  schedule.max_runs = add.max_runs;
  schedule.paused = add.paused;
  if (auto good = check(schedule); !good) return std::unexpected(std::move(good.error()));
  return schedule;
}

// A program that is not there now may be there when it is due: no error.
void warn_of_command(const AddArguments& add) {
  if (add.command.empty() || add.command.front().contains('{')) return;
  const auto program = find_program(add.command.front(), directory_of(add));
  if (!program) fmt::print(stderr, "argiope: warning: {}\n", printable(program.error().message));
}

Coro<Result<int>> add_one(const AddArguments& add, ScheduleBook& book) {
  const WallTime now = EventLoop::current().clock().wall_now();
  auto schedule = schedule_of(add, now);
  if (!schedule) co_return std::unexpected(std::move(schedule.error()));
  auto reply = co_await book.add(std::move(*schedule), add.conflict());
  if (!reply) {
    if (reply.error().code == Errc::refused && co_await book.get(add.name))
      reply.error().message += "; --replace or --keep says what to do then";
    co_return std::unexpected(std::move(reply.error()));
  }
  warn_of_command(add);
  if (add.store.json) {
    fmt::print("{}", reply_json(add.name, *reply));
    co_return kExitFinished;
  }
  auto status = co_await book.get(add.name);
  if (!status) co_return std::unexpected(std::move(status.error()));
  const WallTime next = status->place.next;
  std::string when = "never runs: no times are left from now on";
  if (next != WallTime::max()) {
    const TimeZone zone = status->schedule ? status->schedule->trigger.zone() : TimeZone{};
    when = fmt::format("next {}, {}", format_timestamp(next, zone), distance(next - now));
  }
  fmt::print("{} {}: {}{}\n", to_string(reply->outcome), one_line(add.name, kMostOfName),
             status->place.paused ? "paused; " : "", when);
  co_return kExitFinished;
}

// Adds what each line of a descriptor says; those that have been read together share a commit.
class LineAdder {
 public:
  LineAdder(const AddArguments& add, ScheduleBook& book, InputFile file)
      : add_(add), book_(book), file_(std::move(file)), source_(add.file == "-" ? "standard input" : add.file) {}

  Coro<Result<int>> run() {
    std::string buffer(kBytesAtOnce, '\0');
    const auto take_each = [this](const TextLine& line) {
      take(line);
      return true;
    };
    for (std::size_t count = 1; count > 0;) {
      const auto read = file_.read(buffer);
      if (!read) co_return fail(read.error().code, fmt::format("{}: {}", printable(source_), read.error().message));
      count = *read;
      (void)(count > 0 ? splitter_.take(std::string_view(buffer).substr(0, count), take_each)
                       : splitter_.end(take_each));
      if (auto done = co_await flush(); !done) co_return std::unexpected(std::move(done.error()));
    }
    co_return status_;
  }

 private:
  void take(const TextLine& line) {
    if (line.is_too_long) return refuse(line.number, fmt::format("longer than {} bytes", kMostLineBytes));
    if (line.text.find_first_not_of(" \t\r") == std::string_view::npos) return;
    auto schedule = parse_schedule(line.text);
    if (!schedule) return refuse(line.number, schedule.error().message);
    if (auto good = check_call(schedule->job); !good) return refuse(line.number, good.error().message);
    schedules_.push_back(std::move(*schedule));
    lines_.push_back(line.number);
  }

  Coro<Result<void>> flush() {
    if (schedules_.empty()) co_return Result<void>{};
    const std::vector<std::uint64_t> lines = std::exchange(lines_, {});
    std::vector<std::string> names;
    for (const Schedule& schedule : schedules_) names.push_back(schedule.name);
    auto replies = co_await book_.add_all(std::exchange(schedules_, {}), add_.conflict());
    if (!replies) co_return std::unexpected(std::move(replies.error()));
    std::string out;
    for (std::size_t i = 0; i < replies->size(); ++i) {
      const AddReply& reply = (*replies)[i];
      if (reply.outcome == AddOutcome::exists) {
        refuse(lines[i], fmt::format("schedule {}: there is one of that name", in_quotes(names[i])));
      } else if (add_.store.json) {
        out += reply_json(names[i], reply);
      } else {
        out += reply_line(names[i], reply);
      }
    }
    co_return print_now(out);
  }

  void refuse(std::uint64_t line, std::string_view why) {
    status_ = kExitUsage;
    say(fmt::format("argiope: {}: {}\n", place_of_line(source_, line), printable(why)));
  }

  const AddArguments& add_;
  ScheduleBook& book_;
  const InputFile file_;
  const std::string source_;
  LineSplitter splitter_{kMostLineBytes};
  std::vector<Schedule> schedules_;
  std::vector<std::uint64_t> lines_;
  int status_ = kExitFinished;
};

int run_add(const AddArguments& add) {
  if (add.file.empty()) {
    if (add.name.empty()) return complain("add what? Give a NAME, or --file FILE with a schedule a line", kExitUsage);
    // Said also before a daemon is asked.
    if (auto good = schedule_of(add, SystemClock().wall_now()); !good) return complain(good.error());
  } else {
    if (!add.name.empty()) {
      return complain(
          fmt::format("--file {}: its lines name their schedules; {} is one too many", add.file, in_quotes(add.name)),
          kExitUsage);
    }
  }
  auto file = open_lines("--file", add.file);
  if (!file) return complain(file.error().message, kExitUsage);
  if (add.file.empty()) {
    const auto good = rehearse(add.store, [&](Book& book) -> Coro<Result<int>> {
      co_await or_return(book.schedules().add(
          co_await or_return(schedule_of(add, EventLoop::current().clock().wall_now())), add.conflict()));
      co_return kExitFinished;
    });
    if (!good) return complain(good.error());
  }
  return run_on_book(add.store, StoreAccess::share, IfMissing::make, [&](Book& book) -> Coro<Result<int>> {
    if (add.file.empty()) co_return co_await add_one(add, book.schedules());
    LineAdder adder(add, book.schedules(), std::move(*file));
    co_return co_await adder.run();
  });
}

}  // namespace

std::function<int()> add_schedule_add(CLI::App& schedule, const std::vector<std::string>& command) {
  auto add = std::make_shared<AddArguments>();
  CLI::App* subcommand = schedule.add_subcommand("add", "Add a schedule, or many from a stream of JSON lines");
  add_options(*subcommand, *add);
  return [add, &command] {
    add->command = command;
    return run_add(*add);
  };
}

}  // namespace argiope
