#include "cli/crawl/crawl_looks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "argiope/base/clock.hpp"
#include "argiope/store/detail/url_store.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/printable.hpp"
#include "cli/command_files.hpp"
#include "cli/commands.hpp"
#include "cli/crawl/crawl_queries.hpp"
#include "cli/crawl/report_arguments.hpp"
#include "cli/crawl/sitemap_words.hpp"
#include "cli/file_kind.hpp"
#include "cli/version.hpp"
#include "crawl/check/internal/check_output.hpp"
#include "crawl/check/internal/link_check.hpp"
#include "crawl/report/internal/crawl_diff.hpp"
#include "crawl/report/internal/graph_export.hpp"
#include "crawl/report/internal/site_report.hpp"

namespace argiope {
namespace {

constexpr const char* kLooks[] = {"check", "report", "export", "status", "urls", "requeue", "explain", "diff"};

int complain_about(std::string_view message, int status = kExitNothing) {
  fmt::print(stderr, "argiope: {}\n", printable_lines(message));
  return status;
}
int complain_about(const Error& error) {
  return complain_about(error.message, error.code == Errc::invalid_input ? kExitUsage : kExitNothing);
}

struct CrawlLookArguments {
  std::string database = "argiope.db";
  std::string output;
  JudgeArguments judge;

  void add_database(CLI::App& command) {
    command.add_option("DB", database, "Database of a crawl")->type_name("")->capture_default_str();
  }
  // Before anything is opened.
  CommandFiles files(bool has_parts) const {
    CommandFiles files;
    files.reads_database("DB", database);
    if (has_parts) {
      files.writes_parts("--output", output,
                         [file = output](const std::string& name) { return is_sitemap_part(file, name); });
    } else {
      files.writes("--output", output);
    }
    return files;
  }
};

// A sitemap may have parts beside its file.
Result<std::unique_ptr<UrlStore>> open_to_write_of(const CrawlLookArguments& arguments, bool has_parts = false) {
  if (auto good = arguments.files(has_parts).check(); !good) return std::unexpected(std::move(good.error()));
  return or_other_kind(open_crawl_to_look(arguments.database), arguments.database, FileKind::database);
}

// --- check

struct CrawlCheckArguments : CrawlLookArguments {
  std::string format;
  bool strict = false;
};

int run_check(const CrawlCheckArguments& arguments) {
  const auto rules = arguments.judge.rules();
  if (!rules) return complain_about(rules.error().message, kExitUsage);
  auto format = arguments.format.empty() ? check_format_of(arguments.output) : parse_check_format(arguments.format);
  if (!format && arguments.output != "-") {
    return complain_about(
        fmt::format("--output {}: the name must end with .sarif, .xml, .json, .csv or .txt; or give --format",
                    in_quotes(arguments.output)),
        kExitUsage);
  }
  auto store = open_to_write_of(arguments);
  if (!store) return complain_about(store.error());
  const auto result = check_links(**store, *rules);
  if (!result) return complain_about(result.error().message);
  const auto written = write_check(**store, *result, format.value_or(CheckFormat::text), arguments.output, kVersion);
  if (!written) return complain_about(written.error().message);
  const bool is_good = result->is_good() && !(arguments.strict && result->warnings() > 0);
  // The text for people ends with it. Readers of exit status and standard error alone, such as jobs, hear of it, too.
  const bool is_told = arguments.output == "-" && format.value_or(CheckFormat::text) == CheckFormat::text;
  if (!is_good && !is_told) fmt::print(stderr, "argiope: {}\n", words_on_check(*result));
  return is_good ? kExitFinished : kExitBroken;
}

std::function<int()> add_check(CLI::App& crawl) {
  auto arguments = std::make_shared<CrawlCheckArguments>();
  arguments->output = "-";
  CLI::App* command =
      crawl.add_subcommand("check", "Say what is wrong with the links that a crawl knows, without asking anybody.");
  arguments->add_database(*command);
  command->add_option("-o,--output", arguments->output, "Where to write it; \"-\": standard output")
      ->type_name("FILE")
      ->capture_default_str();
  command
      ->add_option("--format", arguments->format,
                   "text, json, csv, junit or sarif (default: by the file's name, else text)")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kCheckFormats), std::end(kCheckFormats))))
      ->type_name("FORMAT");
  arguments->judge.add_to(*command, "Options");
  command->add_flag("--strict", arguments->strict, "Exit with 1 for warnings, too: mixed content, links to update");
  command->footer(
      "It judges what crawls with --check-links have found out; of pages that only others have fetched nothing is "
      "known.\n"
      "Exit status: 0 nothing is wrong, 1 something is or pages are not judged, 2 bad usage, 3 the database cannot be "
      "read.\n"
      "Example: argiope crawl check site.db -o links.sarif");
  return [arguments] { return run_check(*arguments); };
}

// --- report

int run_report(const CrawlLookArguments& arguments) {
  const auto rules = arguments.judge.rules();
  if (!rules) return complain_about(rules.error().message, kExitUsage);
  auto store = open_to_write_of(arguments);
  if (!store) return complain_about(store.error());
  if (auto written = write_site_report(**store, *rules, arguments.output); !written)
    return complain_about(written.error().message);
  return kExitFinished;
}

std::function<int()> add_report(CLI::App& crawl) {
  auto arguments = std::make_shared<CrawlLookArguments>();
  arguments->output = "report.html";
  CLI::App* command = crawl.add_subcommand(
      "report", "Write what a crawl knows as one HTML file: broken links, redirects, titles, speed, hosts …");
  arguments->add_database(*command);
  command->add_option("-o,--output", arguments->output, "Where to write it; \"-\": standard output")
      ->type_name("FILE")
      ->capture_default_str();
  arguments->judge.add_to(*command, "Options");
  command->footer(
      "Titles, descriptions and times are known of crawls with --html, texts and lines of links with --links, --html "
      "or\n"
      "--check-links.\n"
      "Example: argiope crawl report site.db -o site.html");
  return [arguments] { return run_report(*arguments); };
}

// --- diff

struct CrawlDiffArguments : CrawlLookArguments {
  std::string since;
  bool json = false;
  bool csv = false;
};

int run_diff(const CrawlDiffArguments& arguments) {
  auto store = open_to_write_of(arguments);
  if (!store) return complain_about(store.error());
  const auto since = parse_since(**store, arguments.since, SystemClock().wall_now());
  if (!since)
    return complain_about(since.error().message, since.error().code == Errc::invalid_input ? kExitUsage : kExitNothing);
  const DiffFormat format = arguments.json ? DiffFormat::json : arguments.csv ? DiffFormat::csv : DiffFormat::text;
  if (auto written = write_diff(**store, *since, format, arguments.output); !written)
    return complain_about(written.error().message);
  return kExitFinished;
}

std::function<int()> add_diff(CLI::App& crawl) {
  auto arguments = std::make_shared<CrawlDiffArguments>();
  arguments->output = "-";
  CLI::App* command = crawl.add_subcommand(
      "diff", "Say what has changed since the last run, or since a time: new, gone, changed, moved, broken, mended.");
  arguments->add_database(*command);
  command->add_option("-d,--database", arguments->database, "The same")->type_name("FILE");
  command
      ->add_option(
          "--since", arguments->since,
          "The number of a run, a time (2026-11-23T08:00:00Z), or a span before now (1d); default: the last run")
      ->type_name("TIME|RUN");
  command->add_option("-o,--output", arguments->output, "Where to write it; \"-\": standard output")
      ->type_name("FILE")
      ->capture_default_str();
  auto* const json = command->add_flag("--json", arguments->json, "One JSON object");
  command->add_flag("--csv", arguments->csv, "Lines of CSV with a header line")->excludes(json);
  command->footer(
      "Pages are asked again by runs with --age, --adaptive, --sitemaps or --requeue; what of them is not asked has "
      "not changed.\n"
      "Gone is what answers 404 or 410 now. A page that nothing links to any more, and that is still there, is not "
      "gone.\n"
      "Example: argiope crawl https://example.org/ -d site.db --age 1d && argiope crawl diff site.db");
  return [arguments] { return run_diff(*arguments); };
}

// --- export

struct CrawlExportArguments : CrawlLookArguments {
  std::string format = "csv";
  std::string what = "links";
  std::string base;
};

int export_sitemap(UrlStore& store, const CrawlExportArguments& arguments) {
  if (arguments.output == "-")
    return complain_about("--format sitemap: give a file with -o; there may be several", kExitUsage);
  const auto count = write_sitemap(store, arguments.output, arguments.base);
  if (!count)
    return complain_about(count.error().message, count.error().code == Errc::invalid_input ? kExitUsage : kExitNothing);
  fmt::print(stderr, "{} in {}\n", counted(count->urls, "URL"),
             count->files == 0 ? "one file" : counted(count->files, "file"));
  print_left_out_of_sitemap(*count);
  if (count->other_sites > 0) {
    fmt::print(stderr, "{} of other sites left out: a sitemap is of one; --base names another\n",
               counted(count->other_sites, "page"));
  }
  return kExitFinished;
}

int run_export(const CrawlExportArguments& arguments) {
  auto store = open_to_write_of(arguments, arguments.format == "sitemap");
  if (!store) return complain_about(store.error());
  if (arguments.format == "sitemap") return export_sitemap(**store, arguments);
  const GraphFormat format = arguments.format == "graphml"    ? GraphFormat::graphml
                             : arguments.format == "dot"      ? GraphFormat::dot
                             : arguments.what == "pages"      ? GraphFormat::pages_csv
                             : arguments.what == "duplicates" ? GraphFormat::duplicates_csv
                                                              : GraphFormat::links_csv;
  if (auto written = export_graph(**store, format, arguments.output); !written)
    return complain_about(written.error().message);
  const auto missing = words_on_missing(**store, format);
  if (!missing) return complain_about(missing.error().message);
  return missing->empty() ? kExitFinished : complain_about(*missing, kExitFinished);
}

std::function<int()> add_export(CLI::App& crawl) {
  auto arguments = std::make_shared<CrawlExportArguments>();
  arguments->output = "-";
  CLI::App* command = crawl.add_subcommand(
      "export", "Write the links and pages of a crawl for other programs: CSV, GraphML, DOT, or a sitemap.");
  arguments->add_database(*command);
  command->add_option("-o,--output", arguments->output, "Where to write it; \"-\": standard output")
      ->type_name("FILE")
      ->capture_default_str();
  command->add_option("--format", arguments->format, "csv, graphml, dot or sitemap")
      ->check(CLI::IsMember({"csv", "graphml", "dot", "sitemap"}))
      ->type_name("FORMAT")
      ->capture_default_str();
  command
      ->add_option("--what", arguments->what,
                   "Lines of CSV: links; pages with depth, inbound links, PageRank, title …; or duplicates, exact, "
                   "near and by canonical URLs")
      ->check(CLI::IsMember({"links", "pages", "duplicates"}))
      ->type_name("WHAT")
      ->capture_default_str();
  command
      ->add_option("--base", arguments->base, "Of a sitemap in several files: the folder in which they will be found")
      ->type_name("URL");
  command->footer(
      "Links have their texts, rel and lines where the crawl kept them (--links).\n"
      "Examples:\n"
      "  argiope crawl export site.db --format graphml -o site.graphml\n"
      "  argiope crawl export site.db --what pages -o pages.csv\n"
      "  argiope crawl export site.db --format sitemap -o sitemap.xml.gz");
  return [arguments] { return run_export(*arguments); };
}

}  // namespace

Result<std::unique_ptr<UrlStore>> open_crawl_to_look(const std::string& path) {
  auto store = open_url_store_to_look(path);
  if (store || store.error().code != Errc::older_version) return store;
  auto writer = open_url_store(path);
  if (!writer) return std::unexpected(std::move(writer.error()));
  if (auto closed = (*writer)->close(); !closed) return std::unexpected(std::move(closed.error()));
  return open_url_store_to_look(path);
}

std::function<int()> add_crawl_looks(CLI::App& crawl) {
  std::vector<std::function<int()>> looks = {add_check(crawl),         add_report(crawl), add_export(crawl),
                                             add_status(crawl),        add_urls(crawl),   add_requeue(crawl),
                                             add_crawl_explain(crawl), add_diff(crawl)};
  return [&crawl, looks = std::move(looks)] {
    for (std::size_t i = 0; i < looks.size(); ++i) {
      if (crawl.got_subcommand(kLooks[i])) return looks[i]();
    }
    return static_cast<int>(kExitUsage);
  };
}

bool is_crawl_look(const CLI::App& crawl) {
  return std::ranges::any_of(kLooks, [&](const char* name) { return crawl.got_subcommand(name); });
}

}  // namespace argiope
