#include "cli/crawl/report_arguments.hpp"

#include <fmt/format.h>

#include "base/internal/printable.hpp"
#include "cli/list_option.hpp"
#include "cli/span_option.hpp"
#include "crawl/report/internal/graph_export.hpp"
#include "crawl/scope/internal/accepted_status.hpp"

namespace argiope {
namespace {

CLI::IsMember one_of_formats() {
  return CLI::IsMember(std::vector<std::string>(std::begin(kCheckFormats), std::end(kCheckFormats)));
}

Error of_option(std::string_view option, const Error& error) {
  return {error.code, fmt::format("{}: {}", option, error.message)};
}

}  // namespace

// One option, two lines: no formatter sees that.
// clang-format off
void JudgeArguments::add_to(CLI::App& command, const char* group) {
  command.add_option("--accept-status", accept_status, "Statuses that are no broken links, as in 200..299,403; a redirect is judged by where it leads (default: below 400)")
      ->group(group)->type_name("LIST");
  command.add_option("--check-only", only, "Look for these alone: broken, fragment, invalid, mail, mixed-content, redirect (default: all)")
      ->group(group)->type_name("KIND,…");
}

void ReportArguments::add_to(CLI::App& command, const char* group) {
  command.add_flag("--check-links", check_links, "Also ask (HEAD) whether links to other hosts work, and pictures, scripts and styles anywhere; look at #fragments, mail addresses, mixed content and redirects")
      ->group(group);
  judge.add_to(command, group);
  command.add_flag("--check-foreign-fragments", foreign_fragments, "With --check-links, fetch pages of other hosts to whose #fragments links lead")->group(group);
  add_span(command, "--check-age", check_age, "With --check-links, ask again what was asked longer ago than this, and what was broken (default: as --age says)")
      ->group(group);
  command.add_option("--check-output", check_outputs, "Check links, and write what is wrong to FILE.sarif, .xml (JUnit), .json, .csv or .txt (repeatable)")
      ->group(group)->type_name("FILE")->allow_extra_args(false);
  command.add_option("--check-format", check_format, "The format of --check-output, whatever the file's name")
      ->check(one_of_formats())->needs("--check-output")->group(group)->type_name("FORMAT");
  command.add_flag("--links", links, "Keep each link and asset with its text, rel and line in the table page_links")->group(group);
  command.add_option("--html", html, "At the end, write a report as one HTML file: broken links, redirects, titles, speed, hosts …")
      ->group(group)->type_name("FILE");
  command.add_option("--sitemap-out", sitemap, "At the end, write a sitemap of the site's pages to FILE.xml or, compressed, FILE.xml.gz")
      ->group(group)->type_name("FILE");
}
// clang-format on

Result<CheckRules> JudgeArguments::rules() const {
  CheckRules rules;
  for (const auto& [option, text] : {std::pair{"--accept-status", &accept_status}, {"--check-only", &only}}) {
    if (text->empty()) continue;
    if (const auto parts = parts_of_list(*text); !parts) return std::unexpected(of_option(option, parts.error()));
  }
  if (!accept_status.empty()) {
    auto ranges = parse_status_ranges(accept_status);
    if (!ranges) return std::unexpected(of_option("--accept-status", ranges.error()));
    rules.accept_status = std::move(*ranges);
  }
  if (!only.empty()) {
    const auto kinds = parse_finding_kinds(only);
    if (!kinds) return std::unexpected(of_option("--check-only", kinds.error()));
    rules.kinds = *kinds;
  }
  return rules;
}

Result<std::vector<std::pair<std::string, CheckFormat>>> ReportArguments::outputs() const {
  std::vector<std::pair<std::string, CheckFormat>> outputs;
  for (const std::string& file : check_outputs) {
    const auto format = check_format.empty() ? check_format_of(file) : parse_check_format(check_format);
    if (!format) {
      return fail(
          Errc::invalid_input,
          fmt::format(
              "--check-output {}: the name must end with .sarif, .xml, .json, .csv or .txt; or give --check-format",
              in_quotes(file)));
    }
    outputs.emplace_back(file, *format);
  }
  return outputs;
}

void ReportArguments::name_files(CommandFiles& files) const {
  for (const std::string& file : check_outputs) files.writes("--check-output", file);
  files.writes("--html", html);
  files.writes_parts("--sitemap-out", sitemap,
                     [file = sitemap](const std::string& name) { return is_sitemap_part(file, name); });
}

Result<void> ReportArguments::apply(CrawlOptions& options) const {
  auto rules = judge.rules();
  if (!rules) return std::unexpected(std::move(rules.error()));
  if (const auto files = outputs(); !files) return std::unexpected(files.error());
  if (!sitemap.empty() && sitemap != "-" && !sitemap.ends_with(".xml") && !sitemap.ends_with(".xml.gz")) {
    return fail(Errc::invalid_input,
                fmt::format("--sitemap-out {}: the name must end with .xml or .xml.gz", in_quotes(sitemap)));
  }
  const bool looks_for_broken = rules->wants(FindingKind::broken) || rules->wants(FindingKind::redirect);
  options.check_links = options.check_assets = checks() && looks_for_broken;
  options.check_fragments = checks() && rules->wants(FindingKind::fragment);
  options.check_foreign_fragments = options.check_fragments && foreign_fragments;
  if (options.check_foreign_fragments) options.check_links = true;
  options.check_age = check_age;
  options.ask_again = checks();
  options.accept_status = std::move(rules->accept_status);
  options.keep_links = links || checks() || !html.empty();
  options.keep_facts = !html.empty() || !sitemap.empty();
  return {};
}

}  // namespace argiope
