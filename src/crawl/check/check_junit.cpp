// JUnit's XML as Jenkins, GitLab and others read it: a suite, a case for each URL, a failure in those that are broken.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "argiope/web/url.hpp"
#include "base/internal/xml.hpp"
#include "crawl/check/check_output.hpp"

namespace argiope {
namespace {

// The host, without what readers take for the end of a package: they group cases by it.
std::string class_of(std::string_view url) {
  const auto parsed = Url::parse(url);
  return parsed ? std::string(parsed->host_and_port()) : std::string("links");
}

void open_case(OutputFile& file, std::string_view url, std::string_view ending) {
  file.write(
      fmt::format("<testcase classname=\"{}\" name=\"{}\"{}", xml_escaped(class_of(url)), xml_escaped(url), ending));
}

// The fault, and where it is, in lines.
Result<std::string> finding_in_words(UrlStore& store, const LinkFinding& finding) {
  std::string text = finding.message + '\n';
  if (!finding.advice.empty()) text += "link to " + finding.advice + '\n';
  auto visited = for_each_place(store, finding, [&](const std::string& page, const KeptLink& link) {
    text += page.empty() ? std::string("given on the command line\n")
                         : fmt::format("in {}:{} {} {}\n", page, link.line, link.kind, link.text);
  });
  if (!visited) return std::unexpected(std::move(visited.error()));
  return text;
}

// One failure, which is all that a case may have, and the warnings in its output.
Result<void> write_findings(UrlStore& store, const std::vector<const LinkFinding*>& findings, OutputFile& file) {
  std::string warnings;
  bool has_failed = false;
  for (const LinkFinding* finding : findings) {
    const auto text = finding_in_words(store, *finding);
    if (!text) return std::unexpected(text.error());
    if (is_warning(finding->kind)) {
      warnings += *text;
    } else if (!std::exchange(has_failed, true)) {
      file.write(fmt::format("<failure type=\"{}\" message=\"{}\">{}</failure>", to_string(finding->kind),
                             xml_escaped(finding->message), xml_escaped(*text)));
    }
  }
  if (!warnings.empty()) file.write(fmt::format("<system-out>{}</system-out>", xml_escaped(warnings)));
  return {};
}

// Several findings of one URL are one case. In the order of the first of each.
class JUnitCases {
 public:
  using Findings = std::vector<const LinkFinding*>;

  explicit JUnitCases(const std::vector<LinkFinding>& findings) {
    for (const LinkFinding& finding : findings) {
      const auto [at, is_new] = places_.try_emplace(finding.url, cases_.size());
      if (is_new) cases_.emplace_back();
      cases_[at->second].push_back(&finding);
    }
  }
  const std::vector<Findings>& all() const noexcept { return cases_; }
  bool has(std::string_view url) const { return places_.contains(url); }
  std::uint64_t failures() const {
    const auto has_failed = [](const Findings& one) {
      return !std::ranges::all_of(one, is_warning, &LinkFinding::kind);
    };
    return static_cast<std::uint64_t>(std::ranges::count_if(cases_, has_failed));
  }

 private:
  std::vector<Findings> cases_;
  std::unordered_map<std::string_view, std::size_t> places_;  // in cases_
};

}  // namespace

Result<void> write_check_junit(UrlStore& store, const CheckResult& result, OutputFile& file) {
  const JUnitCases found(result.findings);
  // A URL that was asked and has no finding is a case that has passed. Broken URLs to which nothing leads any more have
  // none, and are no cases. Counted first, because the numbers stand in front.
  const auto for_each_good = [&](auto visit) {
    return store.scan(1, [&](const UrlRecord& record) {
      const bool asked =
          record.state == UrlState::done || (record.state == UrlState::failed && record.reason != UrlReason::host_down);
      if (asked && !found.has(record.url) && !result.untold.contains(record.url_id)) visit(record);
      return true;
    });
  };
  std::uint64_t good = 0;
  if (auto counted_all = for_each_good([&](const UrlRecord&) { ++good; }); !counted_all) return counted_all;
  const std::size_t unread = result.unread > 0 ? 1 : 0;
  const std::string counts = fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"0\"",
                                         good + found.all().size() + unread, found.failures(), unread);
  file.write(
      fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"argiope\" {0}>\n"
                  "<testsuite name=\"links\" {0}>\n",
                  counts));
  for (const JUnitCases::Findings& findings : found.all()) {
    open_case(file, findings.front()->url, ">");
    if (auto written = write_findings(store, findings, file); !written) return written;
    file.write("</testcase>\n");
  }
  if (unread > 0) {
    open_case(file, "pages whose links are not known", ">");
    file.write(fmt::format("<error message=\"{}\"/></testcase>\n", xml_escaped(words_on_unread(result))));
  }
  if (auto written = for_each_good([&](const UrlRecord& record) { open_case(file, record.url, "/>\n"); }); !written)
    return written;
  file.write("</testsuite>\n</testsuites>\n");
  return {};
}

}  // namespace argiope
