// `argiope explain`: why is this job, schedule or URL not running now, and when will it?
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "argiope/async/or_return.hpp"
#include "argiope/store/url_store.hpp"
#include "argiope/web/url.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "cli/error_advice.hpp"
#include "cli/job/job_command.hpp"
#include "cli/schedule/schedule_command.hpp"

namespace argiope {
namespace {

struct ExplainArguments {
  JobStoreArguments store;
  std::string what;
  std::string database;
};

std::string sentence(const FoundUrl& found, WallTime now) {
  const UrlRecord& url = found.record;
  const std::string attempts = counted(url.attempts, "attempt");
  const std::string why = url.error.empty() ? std::string() : ": " + url.error;
  if (url.reason == UrlReason::off_scope)
    return "is linked from the crawl but out of its scope; --whitelist takes it in";
  if (url.reason == UrlReason::depth)
    return fmt::format("is {} from a seed, farther than --max-depth", counted(url.depth, "link"));
  if (url.reason == UrlReason::host_down)
    return "was not asked, because its host did not answer; the next run tries again";
  switch (url.state) {
    case UrlState::queued:
      if (url.due > now) return fmt::format("is not due until {}, after {}{}", to_rfc3339(url.due), attempts, why);
      if (url.attempts > 0) return fmt::format("waits to be tried again, after {}{}", attempts, why);
      return "waits to be fetched; argiope crawl goes on with it";
    case UrlState::done:
      return fmt::format("was fetched {}, with status {}{}", to_rfc3339(url.mtime), url.status_code,
                         url.redirect_to.empty() ? "" : ", and leads to " + url.redirect_to);
    case UrlState::failed:
      return fmt::format("was given up {} after {}{}; the next run tries again", to_rfc3339(url.mtime), attempts, why);
    case UrlState::excluded:
      return fmt::format("is excluded: {}", url.reason == UrlReason::none ? url.error : to_string(url.reason));
  }
  return {};
}

std::string url_json(const FoundUrl& found) {
  const UrlRecord& url = found.record;
  return json_object([&](JsonWriter& json) {
    json.member("url_id", url.url_id);
    json.member("url", url.url);
    json.member("state", to_string(url.state));
    json.key("status");
    url.status_code == 0 ? json.null() : json.value(url.status_code);
    json.member("attempts", url.attempts);
    json.member("depth", url.depth);
    json.member("found", url.ctime);
    json.member("fetched", url.mtime);
    json.member("due", url.due);
    json.member("error", url.error);
    json.member("redirect_to", url.redirect_to);
    json.key("referrer");
    found.referrer.empty() ? json.null() : json.value(found.referrer);
  });
}

int explain_url(const ExplainArguments& arguments) {
  auto url = Url::parse(arguments.what);
  if (!url) return complain(fmt::format("URL {}: {}", in_quotes(arguments.what), url.error().message), kExitUsage);
  url->strip_fragment();
  const std::string database = arguments.database.empty() ? "argiope.db" : arguments.database;
  auto found = find_url(database, url->href());
  if (!found && found.error().code == Errc::older_version) {
    if (auto opened = open_url_store(database); opened && (*opened)->close()) found = find_url(database, url->href());
  }
  if (!found) return complain(with_database_option(found.error()));
  if (!*found) {
    return complain(fmt::format("{}: not in database {}: no page that was fetched links to it, or it is outside "
                                "of what was crawled",
                                url->href(), database),
                    kExitUsage);
  }
  if (arguments.store.json) {
    fmt::print("{}\n", url_json(**found));
  } else {
    fmt::print("{} {}\n", (*found)->record.url, sentence(**found, SystemClock().wall_now()));
    fmt::print("  found {}{}\n", to_rfc3339((*found)->record.ctime),
               (*found)->referrer.empty() ? ", as a seed" : " on " + (*found)->referrer);
  }
  return kExitFinished;
}

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
    return is_url ? explain_url(*arguments) : explain_named(*arguments);
  };
}

}  // namespace argiope
