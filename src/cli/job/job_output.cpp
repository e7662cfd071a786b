// `argiope job output`: what a job's command has printed: now, while it runs, or when the job has ended.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include "argiope/async/coro.hpp"
#include "cli/job/job_command.hpp"
#include "cli/standard_output.hpp"
#include "jobs/internal/job_json.hpp"

namespace argiope {
namespace {

// Of one look; a daemon answers within it, also where nothing comes.
constexpr Duration kPatience = std::chrono::seconds{30};

struct OutputArguments {
  JobStoreArguments store;
  std::string job;
  bool follow = false;
  bool wait = false;
};

// Prints what comes while the job runs, unless it is to be printed when the job has ended.
Coro<Result<JobOutput>> follow_to_end(Book& book, JobId id, bool prints) {
  OutputLook look{.wait = kPatience};
  for (;;) {
    JobOutput output = co_await or_return(book.output(id, look));
    if (prints && output.run != look.run && look.after > 0) fmt::print(stderr, "job {}: run {}\n", id, output.run);
    if (prints) co_await or_return(print_now(output.bytes));
    if (!output.may_grow()) co_return output;
    look.run = output.run;
    look.after = output.after + output.bytes.size();
  }
}

// A job that has failed says why, and its status is that of a failure.
int status_of(JobId id, const JobOutput& output) {
  if (output.state == JobState::done) return kExitFinished;
  return complain(
      fmt::format("job {}: {}{}{}", id, to_string(output.state), output.error.empty() ? "" : ": ", output.error),
      kExitBroken);
}

Coro<Result<int>> output_of(const OutputArguments& arguments, Book& book) {
  const JobId id = co_await or_return(book.find(arguments.job));
  const bool prints_as_it_comes = arguments.follow && !arguments.store.json;
  std::optional<JobOutput> end;
  if (arguments.follow || arguments.wait) end = co_await or_return(follow_to_end(book, id, prints_as_it_comes));
  if (!prints_as_it_comes) {
    const JobRecord record = co_await or_return(book.get(id));
    if (!end && record.result.empty()) {
      co_return fail(Errc::not_found, fmt::format("job {}: no run of it has left a result", id));
    }
    if (arguments.store.json) {
      fmt::print("{}\n", to_json(record));
    } else {
      co_await or_return(print_now(record.result));
    }
  }
  co_return end ? status_of(id, *end) : kExitFinished;
}

}  // namespace

// clang-format off
std::function<int()> add_job_output(CLI::App& job) {
  auto output = std::make_shared<OutputArguments>();
  CLI::App* command = job.add_subcommand("output", "Print what a job has left, or its command has printed so far, byte by byte");
  output->store.add_to(*command);
  command->add_option("JOB", output->job, "Its id or name")->required()->type_name("");
  auto* follow = command->add_flag("-f,--follow", output->follow,
                                   "Print what comes until the job has ended; exit with 1 when it was buried or cancelled");
  command->add_flag("--wait", output->wait, "Wait until the job has ended and print what its last run has left; exit as --follow")
      ->excludes(follow);
  command->footer(
      "A run that fails and is tried again is followed by the next one, which standard error tells; --wait prints one run's only.\n"
      "The output of a command is stored each second.\n"
      "Example: argiope job output --wait $(argiope job put thumbs picture.png) > picture.thumb.png");
  return [output] {
    return look_at_book(output->store, [&](Book& book) { return output_of(*output, book); });
  };
}
// clang-format on

}  // namespace argiope
