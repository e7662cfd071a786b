// `argiope job output`: what a job's command has printed, at once or when the job has ended.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "argiope/async/or_return.hpp"
#include "argiope/async/sleep.hpp"
#include "cli/job/job_command.hpp"
#include "jobs/internal/job_json.hpp"

namespace argiope {
namespace {

constexpr Duration kLookAgain = std::chrono::milliseconds{250};

struct OutputArguments {
  JobStoreArguments store;
  std::string job;
  bool follow = false;
};

bool has_ended(JobState state) {
  return state == JobState::done || state == JobState::cancelled || state == JobState::buried;
}

Coro<Result<JobRecord>> wait_for_end(Book& book, JobId id) {
  for (;;) {
    auto record = co_await or_return(book.get(id));
    if (has_ended(record.state)) co_return record;
    co_await sleep(kLookAgain);
  }
}

Result<void> print_result(const JobRecord& record) {
  const std::string& bytes = record.result;
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() && std::fflush(stdout) == 0) return {};
  return fail(Errc::io, fmt::format("standard output: {}", std::strerror(errno)));
}

// A job that has failed says why, and its status is that of a failure.
int status_of(const JobRecord& record) {
  if (record.state == JobState::done) return kExitFinished;
  return complain(
      fmt::format("job {}: {}{}{}", record.id, to_string(record.state), record.error.empty() ? "" : ": ", record.error),
      kExitBroken);
}

Coro<Result<int>> output_of(const OutputArguments& arguments, Book& book) {
  const JobId id = co_await or_return(book.find(arguments.job));
  const JobRecord record =
      arguments.follow ? co_await or_return(wait_for_end(book, id)) : co_await or_return(book.get(id));
  if (!arguments.follow && record.result.empty()) {
    co_return fail(Errc::not_found, fmt::format("job {}: no run of it has left a result", id));
  }
  if (arguments.store.json) {
    fmt::print("{}\n", to_json(record));
  } else {
    co_await or_return(print_result(record));
  }
  co_return arguments.follow ? status_of(record) : kExitFinished;
}

}  // namespace

// clang-format off
std::function<int()> add_job_output(CLI::App& job) {
  auto output = std::make_shared<OutputArguments>();
  CLI::App* command = job.add_subcommand("output", "Print what a job has left, byte by byte");
  output->store.add_to(*command);
  command->add_option("JOB", output->job, "Its id or name")->required()->type_name("");
  command->add_flag("-f,--follow", output->follow, "Wait until the job has ended; exit with 1 when it was buried or cancelled");
  command->footer("Example: argiope job output --follow $(argiope job put thumbs picture.png) > picture.thumb.png");
  return [output] {
    return run_on_book(output->store, StoreAccess::read, IfMissing::complain, [&](Book& book) { return output_of(*output, book); });
  };
}
// clang-format on

}  // namespace argiope
