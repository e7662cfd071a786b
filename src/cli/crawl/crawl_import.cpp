#include "cli/crawl/crawl_import.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <memory>

#include "argiope/base/clock.hpp"
#include "argiope/store/detail/url_store.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/printable.hpp"
#include "cli/commands.hpp"
#include "cli/error_advice.hpp"
#include "cli/file_kind.hpp"
#include "cli/random_number.hpp"
#include "crawl/urls/internal/url_import.hpp"
#include "store/urls/internal/asyncio_crawler.hpp"

namespace argiope {
namespace {

struct CrawlImportArguments {
  std::string file;
  std::string database = "argiope.db";
};

int complain_of_import(std::string_view message) {
  fmt::print(stderr, "argiope: {}\n", printable_lines(message));
  return kExitNothing;
}

int run_import(const CrawlImportArguments& arguments) {
  if (arguments.database == ":memory:") return complain_of_import("--db :memory: keeps nothing; name a file");
  // Before a database is made for it.
  if (auto there = read_asyncio_crawler(arguments.file, [](const AsyncioCrawlerUrl&) { return false; }); !there) {
    return complain_of_import(with_file_kind(std::move(there.error()), arguments.file, FileKind::database).message);
  }
  auto store = open_url_store(arguments.database);
  if (!store) return complain_of_import(with_database_option(std::move(store.error()), arguments.database).message);
  auto taken = import_asyncio_crawler(arguments.file, **store, random_number(), SystemClock{}.wall_now());
  if (!taken) return complain_of_import(taken.error().message);
  if (auto closed = (*store)->close(); !closed) return complain_of_import(closed.error().message);
  for (const std::string& remark : taken->remarks)
    fmt::print(stderr, "argiope: {}: {}\n", printable(arguments.file), remark);
  if (taken->skipped > taken->remarks.size()) {
    fmt::print(stderr, "argiope: {} more skipped\n", taken->skipped - taken->remarks.size());
  }
  fmt::print("{} of {} into {}: {} done, {} failed, {} queued; {} known already, {} skipped\n",
             counted(taken->rows, "row"), printable(arguments.file), printable(arguments.database), taken->done,
             taken->failed, taken->queued, taken->known, taken->skipped);
  return kExitFinished;
}

}  // namespace

std::function<int()> add_crawl_import(CLI::App& crawl) {
  auto arguments = std::make_shared<CrawlImportArguments>();
  CLI::App* command = crawl.add_subcommand(
      "import", "Take over the database of asyncio-crawler: its URLs with their states, times and statuses.");
  command->add_option("FILE", arguments->file, "Its database; it is only read")->required()->type_name("");
  command->add_option("-d,--db", arguments->database, "SQLite database of the crawl, made if there is none")
      ->capture_default_str();
  command->footer(
      "URLs that the crawl knows already stay as they are, so an import that was interrupted is simply run again.\n"
      "Exit status: 0 taken over, 2 bad usage, 3 a database cannot be read or written.\n"
      "Example: argiope crawl import crawler.db -d site.db; argiope crawl -d site.db https://example.org/");
  return [arguments] { return run_import(*arguments); };
}

Error with_import_advice(Error error, const std::string& database) {
  if (error.code != Errc::wrong_format || !is_asyncio_crawler_database(database)) return error;
  error.message =
      fmt::format("database {0}: made by asyncio-crawler; argiope crawl import {0} -d NEW.db takes it over", database);
  return error;
}

}  // namespace argiope
