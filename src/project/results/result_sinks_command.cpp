// Sinks that give their batches to a command of its own each time.
#include <fmt/format.h>

#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/stream.hpp"
#include "argiope/base/clock.hpp"
#include "async/internal/child_process.hpp"
#include "base/internal/printable.hpp"
#include "project/results/result_sink.hpp"

namespace argiope {
namespace {

constexpr Duration kUsualCommandTime = std::chrono::minutes{10};
constexpr Duration kCommandGrace = std::chrono::seconds{5};
constexpr std::size_t kMostErrorOutput = 1024 * 1024;
constexpr std::size_t kMostErrorTold = 400;

// The end of what it has said, which mostly says why.
std::string end_of_errors(std::string_view errors) {
  while (errors.ends_with('\n') || errors.ends_with('\r')) errors.remove_suffix(1);
  if (errors.size() > kMostErrorTold) {
    errors.remove_prefix(errors.size() - kMostErrorTold);
    errors.remove_prefix(std::min(errors.find('\n') + 1, errors.size()));
  }
  return std::string(errors);
}

class CommandSink final : public ResultSink {
 public:
  explicit CommandSink(std::shared_ptr<SinkContext> context) : context_(std::move(context)) {}

  Coro<SinkResult<std::string>> deliver(const SinkBatch& batch) override {
    SubprocessOptions how{.in = Stdio::pipe, .out = Stdio::devnull, .err = Stdio::pipe};
    how.working_directory = context_->means.folder;
    how.supervised = true;
    how.environment = environment_with({"ARGIOPE_PROJECT=" + context_->project, "ARGIOPE_SINK=" + context_->sink.name,
                                        fmt::format("ARGIOPE_FIRST_NUMBER={}", batch.first()),
                                        fmt::format("ARGIOPE_LAST_NUMBER={}", batch.last())});
    const Duration limit = context_->sink.time_limit.value_or(kUsualCommandTime);
    Process process = create_subprocess_exec(context_->sink.command, how);
    ProcessOutput output;
    std::string trouble;
    bool is_cancelled = false;
    try {
      co_await Timeout(saturating_add(EventLoop::current().time(), limit))
          .run(process.communicate(events_as_lines(context_->project, batch), output, kMostErrorOutput));
    } catch (const TimeoutError&) {
      trouble = fmt::format("out of time after {}", format_duration(limit));
    } catch (const LimitOverrunError&) {
      trouble = fmt::format("it writes more than {} bytes to standard error", kMostErrorOutput);
    } catch (const CancelledError&) {
      is_cancelled = true;
    }
    if (is_cancelled || !trouble.empty()) {
      co_await end_process(process, kCommandGrace);
    } else if (const int status = process.returncode().value_or(-1); status < 0) {
      trouble = fmt::format("ended by signal {}", -status);
    } else if (status > 0) {
      trouble = fmt::format("exit status {}", status);
    }
    if (is_cancelled) throw CancelledError();
    if (trouble.empty()) co_return SinkResult<std::string>{""};
    trouble = fmt::format("{}: {}", context_->sink.command.front(), trouble);
    if (const std::string said = end_of_errors(output.err); !said.empty()) trouble += ": " + said;
    co_return sink_trouble(std::move(trouble));
  }

 private:
  const std::shared_ptr<SinkContext> context_;
};

}  // namespace

std::shared_ptr<ResultSink> make_command_sink(std::shared_ptr<SinkContext> context) {
  return std::make_shared<CommandSink>(std::move(context));
}

}  // namespace argiope
