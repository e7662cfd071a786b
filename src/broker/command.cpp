// Jobs as command lines.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "argiope/async/sleep.hpp"
#include "argiope/async/subprocess.hpp"
#include "argiope/async/timeout.hpp"
#include "argiope/broker/worker.hpp"

extern char** environ;

namespace argiope {
namespace {

constexpr int kBadData = 65;  // EX_DATAERR
constexpr std::size_t kMostErrorBytes = 2000;

std::vector<std::string> environment_of(const JobContext& context, const std::vector<std::string>& besides) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view inherited(*entry);
    const std::string_view name = inherited.substr(0, inherited.find('='));
    const bool is_replaced =
        std::ranges::any_of(besides, [&](std::string_view own) { return own.substr(0, own.find('=')) == name; });
    if (!is_replaced && !inherited.starts_with("ARGIOPE_JOB_")) environment.emplace_back(inherited);
  }
  const JobRecord& job = context.job();
  environment.push_back(fmt::format("ARGIOPE_JOB_ID={}", job.id));
  environment.push_back("ARGIOPE_JOB_NAME=" + job.name);
  environment.push_back("ARGIOPE_JOB_QUEUE=" + job.queue);
  environment.push_back("ARGIOPE_JOB_KEY=" + job.key);
  environment.push_back(fmt::format("ARGIOPE_JOB_ATTEMPT={}", context.attempt()));
  environment.insert(environment.end(), besides.begin(), besides.end());
  // No environment can hold a null byte.
  for (std::string& entry : environment) std::erase(entry, '\0');
  return environment;
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (const auto newline = text.rfind('\n'); newline != std::string::npos) text.erase(0, newline + 1);
  if (text.size() > kMostErrorBytes) text.resize(kMostErrorBytes);
  return text;
}

// The child leads its own session and process group, and takes it along.
void signal_group(const Process& process, int signal_number) {
  if (!process.returncode()) ::kill(-process.pid(), signal_number);
}

Coro<void> end(Process& process, Duration grace) {
  if (process.returncode()) co_return;
  signal_group(process, SIGTERM);
  const pid_t group = process.pid();
  try {
    co_await Timeout(saturating_add(EventLoop::current().time(), grace)).run([](Process& child) -> Coro<void> {
      co_await child.wait();
    }(process));
  } catch (const TimeoutError&) {
  }
  ::kill(-group, SIGKILL);  // whoever of the group has not listened
  co_await process.wait();
}

Coro<void> run_command(JobContext& context, CommandOptions options) {
  // setpriv has the kernel kill the command when this process ends, however it does.
  std::vector<std::string> args{"setpriv", "--pdeathsig", "KILL", "--"};
  std::ranges::copy(options.args, std::back_inserter(args));
  SubprocessOptions how{.in = Stdio::pipe, .out = Stdio::pipe, .err = Stdio::pipe};
  how.environment = environment_of(context, options.environment);
  how.new_session = true;
  Process process = create_subprocess_exec(args, how);
  ProcessOutput output;
  std::string trouble;
  bool cancelled = false;
  try {
    const TimePoint limit = saturating_add(EventLoop::current().time(), options.timeout);
    output = co_await Timeout(limit).run(
        process.communicate(options.input.value_or(context.payload()), options.most_output));
  } catch (const TimeoutError&) {
    trouble = fmt::format("out of time after {} s", to_seconds(options.timeout));
  } catch (const LimitOverrunError&) {
    trouble = fmt::format("its output is longer than {} bytes", options.most_output);
  } catch (const CancelledError&) {
    cancelled = true;
  }
  if (cancelled || !trouble.empty()) {
    co_await end(process, options.grace);
    if (cancelled) throw CancelledError();
    throw std::runtime_error(trouble);
  }
  const int status = process.returncode().value_or(-1);
  if (status == 0) {
    context.set_result(std::move(output.out));
    co_return;
  }
  std::string error = last_line(std::move(output.err));
  if (error.empty()) {
    error = status < 0 ? fmt::format("ended by signal {}", -status) : fmt::format("exit status {}", status);
  }
  if (status == kBadData) throw BuryJob(error);
  throw std::runtime_error(error);
}

}  // namespace

JobFunction as_command(CommandOptions options) {
  if (options.args.empty()) throw std::invalid_argument("as_command: no program");
  return [options = std::move(options)](JobContext& context) { return run_command(context, options); };
}

}  // namespace argiope
