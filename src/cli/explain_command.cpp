// `argiope explain`: why is this job, schedule or URL not running now, and when will it?
#include <fmt/format.h>

#include <memory>

#include "argiope/async/coro.hpp"
#include "base/internal/printable.hpp"
#include "cli/crawl/crawl_queries.hpp"
#include "cli/job/job_command.hpp"
#include "cli/schedule/schedule_command.hpp"

namespace argiope {
namespace {

struct ExplainArguments {
  JobStoreArguments store;
  std::string what;
  std::string database;
};

enum class Known : std::uint8_t { job, schedule, neither };

Coro<Result<Known>> look_for(const std::string& name, Book& book) {
  if (co_await book.find(name)) co_return Known::job;
  const auto schedule = co_await book.schedules().get(name);
  if (schedule) co_return Known::schedule;
  if (schedule.error().code == Errc::not_found) co_return Known::neither;
  co_return std::unexpected(schedule.error());
}

int explain_named(const ExplainArguments& arguments) {
  Known known = Known::neither;
  const auto look = [&](Book& book) -> Coro<Result<int>> {
    known = co_await or_return(look_for(arguments.what, book));
    co_return kExitFinished;
  };
  const int status = look_at_book(arguments.store, look);
  if (status != kExitFinished) return status;
  if (known == Known::schedule) return explain_schedules(arguments.store, {arguments.what});
  if (known == Known::job) return explain_job(arguments.store, {arguments.what});
  return complain(fmt::format("{}: there is no such job, and no such schedule", in_quotes(arguments.what)), kExitUsage);
}

}  // namespace

std::function<int()> add_explain_command(CLI::App& app) {
  auto arguments = std::make_shared<ExplainArguments>();
  CLI::App* command =
      app.add_subcommand("explain", "Why does a job, a schedule or a URL not run now, and when will it?");
  arguments->store.add_to(*command);
  command->add_option("WHAT", arguments->what, "The id or name of a job, the name of a schedule, or a URL")
      ->required()
      ->type_name("");
  command->add_option("-d,--db", arguments->database, "The database of the crawl (default for URLs: argiope.db)")
      ->type_name("FILE");
  command->footer(
      "If a job and a schedule have the same name, it explains the job; argiope schedule explain NAME explains the "
      "other.\n"
      "Examples: argiope explain 17 --store sqlite:jobs.db\n"
      "          argiope explain backup --store sqlite:jobs.db\n"
      "          argiope explain https://example.org/page -d argiope.db");
  return [arguments] {
    const bool is_url = !arguments->database.empty() || arguments->what.find("://") != std::string::npos;
    if (!is_url) return explain_named(*arguments);
    const std::string database = arguments->database.empty() ? "argiope.db" : arguments->database;
    return print_url_explanation(arguments->what, database, arguments->store.json);
  };
}

}  // namespace argiope
