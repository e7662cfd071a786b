// The faults that a look at the links of a crawl finds: broken ones, fragments that name nothing, addresses that can be
// none, mixed content, and redirects whose links should be updated; each with every place that has it. By what the
// store knows: nobody is asked anything here.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/store/detail/url_store.hpp"

namespace argiope {

// In the order of reports.
enum class FindingKind : std::uint8_t {
  broken,         // it leads to an error, or to no answer
  fragment,       // the page has nothing of that name
  invalid,        // what is written there is no URL
  mail,           // nor a mail address
  mixed_content,  // an asset by http on a page by https
  redirect,       // 301 or 308 to another URL, which the link should name
};
inline constexpr std::size_t kFindingKinds = 6;
// As in outputs and options: "mixed-content".
std::string_view to_string(FindingKind kind) noexcept;
// Whether links work without it being mended: a warning, else an error.
constexpr bool is_warning(FindingKind kind) noexcept { return kind >= FindingKind::mixed_content; }

struct CheckRules {
  std::vector<StatusRange> accept_status;  // as CrawlOptions has them
  // Bit `i` is FindingKind(i).
  std::uint32_t kinds = (1u << kFindingKinds) - 1;
  bool wants(FindingKind kind) const noexcept { return (kinds >> static_cast<unsigned>(kind) & 1) != 0; }
};
// "broken,mail". Errors: invalid_input naming the word that is none.
Result<std::uint32_t> parse_finding_kinds(std::string_view words);

// A link as a page has it: the row of the page's kept links.
struct LinkPlace {
  std::int64_t page = 0;
  std::uint32_t place = 0;
};

struct LinkFinding {
  FindingKind kind{};
  std::string url;      // where the link leads, or what is written there
  int status = 0;       // of the answer; 0: none
  std::string message;  // what is wrong
  std::string advice;   // redirect: the URL to link to
  // In the order of pages. None where no links are kept, or none leads there: then `page` has the link that was first
  // found.
  std::vector<LinkPlace> places;
  std::string page;  // empty: the URL was given
  // The fault is at another site, to which a link leads: the URL's host is none of those that are crawled. A fault in
  // how a link is written never is.
  bool is_elsewhere = false;
};

// A host elsewhere that has answered to none of its URLs: what leads there is broken for one reason.
struct SilentHost {
  std::string host;     // "example.org:8080"
  std::string trouble;  // "DNS", "timeout", "network" …
  // Its findings: CheckResult::findings from `first` on, `count` of them.
  std::size_t first = 0, count = 0;
  std::uint64_t links = 0, pages = 0;  // that lead there
};
// "example.org cannot be reached (DNS)".
std::string words_on(const SilentHost& host);

struct CheckResult {
  // In the order in which all outputs tell them: those of the site first, then those elsewhere; of both by kind, so
  // that errors come before warnings; then by URL. Broken URLs of silent hosts stand behind the other broken ones, by
  // host, those with most links first.
  std::vector<LinkFinding> findings;
  std::vector<SilentHost> silent_hosts;  // in the order of findings
  std::array<std::uint64_t, kFindingKinds> counts{};
  std::array<std::uint64_t, kFindingKinds> elsewhere{};  // those of them that are elsewhere
  // Broken, and no findings: nothing leads there any more, or broken links are not looked for. By url_id.
  std::unordered_set<std::int64_t> untold;
  std::uint64_t urls = 0;   // that were asked
  std::uint64_t links = 0;  // that are kept, assets included
  // Pages whose links, as they are now, nobody has kept: what is wrong with those is not known.
  std::uint64_t unread = 0;
  std::uint64_t errors() const noexcept;
  std::uint64_t warnings() const noexcept;
  std::uint64_t errors_elsewhere() const noexcept;
  // All that could be wrong is known, and nothing is but for warnings.
  bool is_good() const noexcept { return errors() == 0 && unread == 0; }
};

// Of a result with unread pages: how many, and what would read them.
std::string words_on_unread(const CheckResult& result);

// Memory: 12 bytes a URL of the store, 100 a host, 16 a link with a fragment or a fault. Errors: the store's.
Result<CheckResult> check_links(UrlStore& store, const CheckRules& rules);

// The findings that a reader tells together: `of_host(host)` for each silent host, with all of its, and
// `of_one(finding)` for each other one; in their order. Both return Result<void>; the first failure ends it.
template <class OfHost, class OfOne>
Result<void> for_each_finding(const CheckResult& result, OfHost&& of_host, OfOne&& of_one) {
  auto host = result.silent_hosts.begin();
  for (std::size_t i = 0; i < result.findings.size();) {
    const bool is_silent = host != result.silent_hosts.end() && host->first == i;
    i += is_silent ? host->count : 1;
    Result<void> told = is_silent ? of_host(*host++) : of_one(result.findings[i - 1]);
    if (!told) return told;
  }
  return {};
}

// Calls `visit(page, link)` for each place of a finding: the URL of the page and its kept link; with a link that has
// nothing but a kind where only the page is known.
// Errors: the store's.
Result<void> for_each_place(UrlStore& store, const LinkFinding& finding,
                            const std::function<void(const std::string& page, const KeptLink& link)>& visit);

}  // namespace argiope
