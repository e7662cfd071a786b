#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <system_error>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/stream.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/calls/calls.hpp"
#include "async/internal/child_process.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/wording.hpp"

namespace argiope {
namespace {

constexpr int kBadData = 65;  // EX_DATAERR
// While it runs its output is told anew, whole, at most so often, and at most so many bytes a second.
constexpr Duration kTellInterval = std::chrono::seconds{1};
constexpr std::size_t kToldPerSecond = 256 * 1024;
constexpr std::size_t kMostErrorBytes = 2000;
constexpr std::size_t kMostErrorsKept = 16 * 1024;
// Between two tries to start what cannot be started.
constexpr Duration kFirstWait = std::chrono::milliseconds{50};
constexpr Duration kLongestWait = std::chrono::seconds{2};

std::vector<std::string> environment_of(const JobContext& context, const std::vector<std::string>& besides) {
  const JobRecord& job = context.job();
  std::vector<std::string> of_job;
  of_job.push_back(fmt::format("ARGIOPE_JOB_ID={}", job.id));
  of_job.push_back("ARGIOPE_JOB_NAME=" + job.name);
  of_job.push_back("ARGIOPE_JOB_QUEUE=" + job.queue);
  of_job.push_back("ARGIOPE_JOB_KEY=" + job.key);
  of_job.push_back(fmt::format("ARGIOPE_JOB_ATTEMPT={}", context.attempt()));
  of_job.push_back(fmt::format("ARGIOPE_JOB_TOKEN={}", context.token()));
  of_job.insert(of_job.end(), besides.begin(), besides.end());
  return environment_with(of_job);
}

std::string_view whole_last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  return text.substr(text.rfind('\n') + 1);  // of the whole text where there is none
}

std::string last_line(std::string_view text) { return std::string(whole_last_line(text).substr(0, kMostErrorBytes)); }

// Whether it is this process or machine that can start nothing at the moment, whatever it is.
bool can_start_nothing(const std::error_code& error) {
  constexpr int kOurs[] = {EMFILE, ENFILE, ENOMEM, EAGAIN, ENOSPC, ENOBUFS, EPIPE, EIO};
  return error.category() == std::generic_category() && std::ranges::find(kOurs, error.value()) != std::end(kOurs);
}

Coro<Process> start(const std::vector<std::string>& args, const SubprocessOptions& how, const CommandOptions& options) {
  const TimePoint limit = saturating_add(EventLoop::current().time(), options.patience);
  for (Duration wait = kFirstWait;; wait = std::min(2 * wait, kLongestWait)) {
    std::string why;
    try {
      co_return create_subprocess_exec(args, how);
    } catch (const std::system_error& error) {
      if (options.is_from_job && !can_start_nothing(error.code())) throw;
      why = error.what();
    }
    if (EventLoop::current().time() >= limit) {
      throw WorkerUnfit(
          fmt::format("{}, for {} now; no job has lost an attempt by it", why, format_duration(options.patience)));
    }
    if (wait == kFirstWait) spdlog::warn("{}; tried again", why);
    co_await sleep(std::min(wait, limit - EventLoop::current().time()));
  }
}

// The text kept of a command that has failed: its output, and the end of its errors.
std::string output_of_failure(const ProcessOutput& output) {
  std::string kept = output.out;
  std::string_view errors = output.err;
  if (errors.size() > kMostErrorsKept) {
    errors.remove_prefix(errors.size() - kMostErrorsKept);
    errors.remove_prefix(std::min(errors.find('\n') + 1, errors.size()));
  }
  if (!kept.empty() && !kept.ends_with('\n') && !errors.empty()) kept += '\n';
  return kept.append(errors);
}

// Tells the output so far, while it runs; the output of the run before is gone with the first byte, or at once.
Coro<void> tell_output(JobContext& context, const std::string& printed) {
  if (!context.job().result.empty()) context.output({});
  for (std::size_t told = 0;;) {
    co_await sleep(kTellInterval * (1 + static_cast<Duration::rep>(told / kToldPerSecond)));
    if (printed.size() > told) context.output(printed.substr(0, told = printed.size()));
  }
}

// Reads all that it prints into `output`, and waits for it.
Coro<void> attend(JobContext& context, Process& process, const CommandOptions& options, ProcessOutput& output) {
  Task<void> telling =
      EventLoop::current().create_task(tell_output(context, output.out), "tells a command's output", Start::eagerly);
  struct End {
    Task<void>& task;
    ~End() { task.cancel(); }
  } const end{telling};
  co_await process.communicate(options.input.value_or(context.payload()), output, options.most_output);
}

// Whether it is `argiope crawl`, whose exit status 1 tells of what it has found.
bool is_our_crawl(const std::vector<std::string>& args) {
  return args.size() > 1 && args[1] == "crawl" && std::string_view(args[0]).substr(args[0].rfind('/') + 1) == "argiope";
}

// The line of its report that says how it ended and how much that was; empty with --quiet.
std::string summary_of_crawl(std::string_view report) {
  for (const std::string_view beginning : {"Finished after ", "Stopped"}) {
    std::size_t at = report.starts_with(beginning) ? 0 : report.find(fmt::format("\n{}", beginning));
    if (at == std::string_view::npos) continue;
    at = report.find_first_not_of('\n', at);
    return std::string(report.substr(at, std::min(report.find('\n', at) - at, kMostErrorBytes)));
  }
  return {};
}

// The object that --summary json has printed, in words: "612 URLs asked, 4,311 links, nothing new"; empty: it is none.
std::string summary_in_words(std::string_view object) {
  const auto parsed = JsonText::parse(object);
  if (!parsed) return {};
  JsonErrors errors;
  std::map<std::string_view, std::optional<std::uint64_t>> numbers;
  std::string_view stopped_by;
  parsed->root(errors).for_each_member([&](std::string_view name, const JsonValue& value) {
    numbers[name] = value.if_natural();
    if (name == "stopped_by") stopped_by = value.if_text().value_or("");
  });
  const auto asked = numbers["fetched"];
  if (!asked) return {};
  std::string words = count_of(*asked, "URL") + " asked";
  if (const auto links = numbers["links"]) words += ", " + count_of(*links, "link");
  const auto found = numbers["findings_errors"];
  if (found ? *found > 0 : numbers["broken"].value_or(0) > 0) {
    words += ", " + (found ? count_of(*found, "error") : count_of(*numbers["broken"], "broken link"));
  }
  if (const auto fresh = numbers["findings_new"]) {
    words += *fresh == 0 ? ", nothing new" : fmt::format(", {} new", grouped(*fresh));
  }
  return stopped_by.empty() ? words : fmt::format("{}, stopped by {}", words, stopped_by);
}

// A crawl that has asked nothing says so, for that is no good news.
std::string remark_of_crawl(const ProcessOutput& output) {
  std::string said = last_line(output.err);
  if (said.starts_with("argiope: nothing was due")) return said;
  std::string summary = summary_of_crawl(output.out);
  return summary.empty() ? summary_in_words(whole_last_line(output.out)) : summary;
}

bool is_ok(const CommandOptions& options, int status) {
  if (options.ok_status.empty()) return status == 0 || (status == 1 && is_our_crawl(options.args));
  return std::ranges::find(options.ok_status, status) != options.ok_status.end();
}

// An exit status that is not 0, in the command's own last line where it has one: of its errors, and of what our crawl
// finds the last line of its report, which sums up.
std::string words_on(int status, const CommandOptions& options, const ProcessOutput& output) {
  if (std::string said = last_line(output.err); !said.empty()) return said;
  if (std::string summary = status == 1 && is_our_crawl(options.args) ? last_line(output.out) : ""; !summary.empty())
    return summary;
  return status < 0 ? fmt::format("ended by signal {}", -status) : fmt::format("exit status {}", status);
}

Coro<void> run_command(JobContext& context, const CommandOptions& options) {
  SubprocessOptions how{.in = Stdio::pipe, .out = Stdio::pipe, .err = Stdio::pipe};
  how.environment = environment_of(context, options.environment);
  how.working_directory = options.directory;
  how.supervised = true;
  Process process = co_await start(options.args, how, options);
  ProcessOutput output;
  std::string trouble;
  bool cancelled = false;
  try {
    const TimePoint limit = saturating_add(EventLoop::current().time(), options.timeout);
    co_await Timeout(limit).run(attend(context, process, options, output));
  } catch (const TimeoutError&) {
    trouble = fmt::format("out of time after {}", format_duration(options.timeout));
  } catch (const LimitOverrunError&) {
    trouble = fmt::format("its output is longer than {} bytes", options.most_output);
  } catch (const CancelledError&) {
    cancelled = true;
  }
  if (cancelled || !trouble.empty()) {
    co_await end_process(process, options.grace);
    const std::string left = output_of_failure(output);
    if (cancelled && !left.empty()) context.output(left);
    if (cancelled) throw CancelledError();
    context.set_result(left);
    throw std::runtime_error(trouble);
  }
  const int status = process.returncode().value_or(-1);
  if (is_ok(options, status)) {
    if (status != 0) context.finding(words_on(status, options, output));
    if (status == 0 && is_our_crawl(options.args)) context.remark(remark_of_crawl(output));
    context.set_result(std::move(output.out));
    co_return;
  }
  context.set_result(output_of_failure(output));
  const std::string error = words_on(status, options, output);
  if (status == kBadData) throw BuryJob(error);
  throw std::runtime_error(error);
}

}  // namespace

JobFunction as_command(CommandOptions options) {
  if (options.args.empty()) throw std::invalid_argument("as_command: no program");
  if (!options.is_from_job) {
    const auto program = find_program(options.args.front(), options.directory);
    if (!program) throw std::system_error(ENOENT, std::generic_category(), program.error().message);
  }
  // Each run is a coroutine that reads the options: it owns a share of them, for the function may be destroyed before.
  const auto shared = std::make_shared<const CommandOptions>(std::move(options));
  return [shared](JobContext& context) -> Coro<void> {
    return [](std::shared_ptr<const CommandOptions> held, JobContext& of) -> Coro<void> {
      co_await run_command(of, *held);
    }(shared, context);
  };
}

}  // namespace argiope
