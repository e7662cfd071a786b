// SARIF 2.1.0 (OASIS, section numbers below): a rule for each kind of finding, a result for each place that has one.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/internal/fingerprint.hpp"
#include "base/internal/json_writer.hpp"
#include "crawl/check/check_output.hpp"
#include "web/text/internal/uri_text.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostResults = 25'000;  // of a run: what GitHub takes

struct SarifRule {
  FindingKind kind;
  std::string_view id, name, text, help;
};
constexpr SarifRule kSarifRules[kFindingKinds] = {
    {FindingKind::broken, "argiope/broken-link", "BrokenLink", "A link or asset leads to an error, or to no answer.",
     "Correct the link, or bring back what it leads to."},
    {FindingKind::fragment, "argiope/missing-fragment", "MissingFragment",
     "A link names a part of a page that the page does not have.",
     "Correct what stands behind the #, or give the part that id."},
    {FindingKind::invalid, "argiope/invalid-url", "InvalidUrl", "The text of a link is no URL.", "Correct the URL."},
    {FindingKind::mail, "argiope/mail-address", "MailAddress", "A mailto: link has an address that can be none.",
     "Correct the address."},
    {FindingKind::mixed_content, "argiope/mixed-content", "MixedContent", "A page by https needs something by http.",
     "Name it by https: browsers block it, or warn."},
    {FindingKind::redirect, "argiope/permanent-redirect", "PermanentRedirect",
     "A link leads to a URL that has moved for good.", "Link to where it leads."},
};

void write_driver(JsonWriter& json, std::string_view version) {
  json.object("tool", [&] {
    json.object("driver", [&] {
      json.member("name", "argiope");
      json.member("version", version);
      json.array("rules", [&] {
        for (const SarifRule& rule : kSarifRules) {
          json.object([&] {
            json.member("id", rule.id);
            json.member("name", rule.name);
            for (const char* description : {"shortDescription", "fullDescription"}) {
              json.object(description, [&] { json.member("text", rule.text); });
            }
            json.object("help", [&] { json.member("text", rule.help); });
            json.object("defaultConfiguration",
                        [&] { json.member("level", is_warning(rule.kind) ? "warning" : "error"); });
          });
        }
      });
    });
  });
}

// 3.27. GitHub takes a place of a result only as a path in a repository, and refuses a whole file for one URL with a
// scheme (3.4.4 allows both): the scheme is left out of the place, and the page's whole URL is in the message. The same
// finding in two runs has the same fingerprint, whatever its line.
std::string sarif_result(const LinkFinding& finding, const std::string& page, const KeptLink& link) {
  const SarifRule& rule = kSarifRules[static_cast<std::size_t>(finding.kind)];
  const std::string& where = page.empty() ? finding.url : page;
  std::string message = fmt::format("{}: {}", finding.url, finding.message);
  if (!link.text.empty()) message += fmt::format(" (\"{}\")", link.text);
  if (!page.empty()) message += fmt::format(", on {}", page);
  return json_object([&](JsonWriter& json) {
    json.member("ruleId", rule.id);
    json.member("ruleIndex", static_cast<std::int64_t>(&rule - kSarifRules));
    json.member("level", is_warning(finding.kind) ? "warning" : "error");
    json.object("message", [&] { json.member("text", message); });
    json.array("locations", [&] {
      json.object([&] {
        json.object("physicalLocation", [&] {
          json.object("artifactLocation", [&] { json.member("uri", without_scheme(where)); });
          if (link.line > 0) json.object("region", [&] { json.member("startLine", std::int64_t{link.line}); });
        });
      });
    });
    // GitHub reads the latter alone.
    const std::string digest = content_digest(fmt::format("{}\n{}\n{}", rule.id, where, finding.url));
    json.object("partialFingerprints", [&] {
      json.member("argiopeLink/v1", digest);
      json.member("primaryLocationLineHash", digest + ":1");
    });
  });
}

}  // namespace

Result<void> write_check_sarif(UrlStore& store, const CheckResult& result, std::string_view version, OutputFile& file) {
  std::string head = "{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\",\"version\":\"2.1.0\",\"runs\":[{";
  std::string driver;
  JsonWriter json(driver);
  json.object([&] { write_driver(json, version); });
  file.write(head + driver.substr(1, driver.size() - 2) + ",\"results\":[");
  std::size_t count = 0;
  for (const LinkFinding& finding : result.findings) {
    auto visited = for_each_place(store, finding, [&](const std::string& page, const KeptLink& link) {
      if (count++ >= kMostResults) return;
      file.write(count == 1 ? "\n" : ",\n");
      file.write(sarif_result(finding, page, link));
    });
    if (!visited) return visited;
  }
  file.write("\n],\"invocations\":[");
  file.write(json_object([&](JsonWriter& invocation) {
    invocation.member("executionSuccessful", true);
    std::vector<std::string> notes;
    if (count > kMostResults) {
      notes.push_back(
          fmt::format("{} more results are left out; the JSON output has all of them", count - kMostResults));
    }
    if (result.unread > 0) notes.push_back(words_on_unread(result));
    if (notes.empty()) return;
    invocation.array("toolExecutionNotifications", [&] {
      for (const std::string& note : notes) {
        invocation.object([&] {
          invocation.member("level", "warning");
          invocation.object("message", [&] { invocation.member("text", note); });
        });
      }
    });
  }));
  file.write("]}]}\n");
  return {};
}

}  // namespace argiope
