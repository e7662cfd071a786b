// JUnit's XML as Jenkins, GitLab and others read it: a suite, a case for each URL, a failure in those that are broken.
#include <fmt/format.h>

#include <map>
#include <string>
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
  file.write(fmt::format("<testcase classname=\"{}\" name=\"{}\"{}", xml_escaped(class_of(url)), xml_escaped(url), ending));
}

// What is wrong, and where, in lines.
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

}  // namespace

Result<void> write_check_junit(UrlStore& store, const CheckResult& result, OutputFile& file) {
  // Several findings of one URL are one case, and a case has one failure: errors come first.
  std::map<std::string_view, std::vector<const LinkFinding*>> by_url;
  std::uint64_t failures = 0;
  for (const LinkFinding& finding : result.findings) by_url[finding.url].push_back(&finding);
  for (const auto& [url, findings] : by_url) failures += !is_warning(findings.front()->kind);
  // What was asked and has no finding is a case that has passed. Counted first, because the numbers stand in front.
  const auto for_each_good = [&](auto visit) {
    return store.scan(1, [&](const UrlRecord& record) {
      const bool asked = record.state == UrlState::done || (record.state == UrlState::failed && record.reason != UrlReason::host_down);
      if (asked && !by_url.contains(record.url)) visit(record);
      return true;
    });
  };
  std::uint64_t good = 0;
  if (auto counted_all = for_each_good([&](const UrlRecord&) { ++good; }); !counted_all) return counted_all;
  const std::size_t unread = result.unread > 0 ? 1 : 0;
  const std::string counts = fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"0\"", good + by_url.size() + unread,
                                         failures, unread);
  file.write(fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"argiope\" {0}>\n"
                         "<testsuite name=\"links\" {0}>\n", counts));
  for (const auto& [url, findings] : by_url) {
    open_case(file, url, ">");
    if (auto written = write_findings(store, findings, file); !written) return written;
    file.write("</testcase>\n");
  }
  if (unread > 0) {
    open_case(file, "pages whose links are not known", ">");
    file.write(fmt::format("<error message=\"{}\"/></testcase>\n", xml_escaped(words_on_unread(result))));
  }
  if (auto written = for_each_good([&](const UrlRecord& record) { open_case(file, record.url, "/>\n"); }); !written) return written;
  file.write("</testsuite>\n</testsuites>\n");
  return {};
}

}  // namespace argiope
