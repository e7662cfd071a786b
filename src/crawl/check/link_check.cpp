#include "crawl/check/internal/link_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "argiope/web/link_scanner.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/fingerprint.hpp"
#include "base/internal/printable.hpp"
#include "crawl/options/internal/host_rules.hpp"
#include "crawl/page/page_notes.hpp"
#include "crawl/page/seen_answers.hpp"
#include "crawl/scope/internal/accepted_status.hpp"
#include "crawl/scope/internal/own_hosts.hpp"
#include "crawl/scope/internal/unlinked_urls.hpp"
#include "crawl/scope/linking_page.hpp"
#include "web/html/internal/link_kind_names.hpp"
#include "web/http/internal/reason_phrase.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::string_view kFindingNames[kFindingKinds] = {"broken", "fragment",      "invalid",
                                                           "mail",   "mixed-content", "redirect"};
constexpr int kMostHops = 20;

bool is_asset_or_frame(std::string_view name) {
  const auto kind = link_kind_named(name);
  return kind && (is_asset(*kind) || *kind == LinkKind::frame);
}

std::string broken_message(const UrlRecord& record) {
  if (record.status_code == 0) return record.error.empty() ? "no answer" : record.error;
  const std::string status = fmt::format("{} {}", record.status_code, reason_phrase(record.status_code));
  const bool adds = !record.error.empty() && record.error != fmt::format("HTTP {}", record.status_code);
  return adds ? fmt::format("{}: {}", status, record.error) : status;
}

// The fault in such a case lies in the URL, and not in the way in which the link to it is written.
constexpr bool is_of_target(FindingKind kind) noexcept {
  return kind == FindingKind::broken || kind == FindingKind::fragment || kind == FindingKind::redirect;
}

// Of such answers: many hosts give them to programs alone.
constexpr bool may_be_for_programs(int status) noexcept {
  return status == 401 || status == 403 || status == 429 || status == 999;
}

// "DNS" of "dns: no such host".
std::string trouble_in(std::string_view message) {
  const std::string_view name = message.substr(0, message.find(':'));
  if (name == "dns") return "DNS";
  return name == "tls" ? "TLS" : std::string(name);
}

// The facts that are known of each URL, by id, in a few bits.
struct UrlFlags {
  enum Flag : std::uint8_t { kHttps = 1, kPermanent = 2, kBroken = 4, kRedirects = 8, kLost = 16, kNamesPart = 32 };
  std::vector<std::uint8_t> flags;

  bool has(std::int64_t id, Flag flag) const noexcept {
    return id > 0 && id < std::ssize(flags) && (flags[static_cast<std::size_t>(id)] & flag) != 0;
  }
  void set(std::int64_t id, Flag flag) { flags.at(static_cast<std::size_t>(id)) |= flag; }
};

class LinkChecker {
 public:
  LinkChecker(UrlStore& store, const CheckRules& rules) : store_(store), rules_(rules) {}

  Result<CheckResult> run() {
    using Step = Result<void> (LinkChecker::*)();
    for (const Step step : {&LinkChecker::read_urls, &LinkChecker::read_redirects, &LinkChecker::read_links,
                            &LinkChecker::judge_fragments, &LinkChecker::name_urls, &LinkChecker::name_pages}) {
      if (auto done = (this->*step)(); !done) return std::unexpected(std::move(done.error()));
    }
    finish();
    return std::move(result_);
  }

 private:
  // A finding whose URL is that of `target`, which is looked up in the end.
  struct Pending {
    LinkFinding finding;
    std::int64_t target = 0;
  };

  Result<void> read_urls() {
    flags_.flags.resize(static_cast<std::size_t>(store_.next_id()));
    const auto unread = UnseenPages::read(store_, kLinksDemand);
    if (!unread) return std::unexpected(unread.error());
    auto unlinked = find_unlinked(store_, rules_.accept_status);
    if (!unlinked) return std::unexpected(std::move(unlinked.error()));
    result_.untold = std::move(*unlinked);
    return store_.scan(1, [&](const UrlRecord& record) {
      if (record.url_id >= std::ssize(flags_.flags)) return false;  // it came meanwhile
      result_.unread += unread->has(record);
      read_url(record);
      return true;
    });
  }

  void read_url(const UrlRecord& record) {
    const bool asked =
        record.state == UrlState::done || (record.state == UrlState::failed && record.reason != UrlReason::host_down);
    result_.urls += asked;
    own_.add(record);
    if (asked && record.status_code != 0) note_answer(record);
    if (record.url.starts_with("https:")) flags_.set(record.url_id, UrlFlags::kHttps);
    if (!record.redirect_to.empty()) flags_.set(record.url_id, UrlFlags::kRedirects);
    if (has_lost_links(record)) flags_.set(record.url_id, UrlFlags::kLost);
    const bool moved = record.status_code == 301 || record.status_code == 308;
    if (moved && !record.redirect_to.empty()) flags_.set(record.url_id, UrlFlags::kPermanent);
    if (!asked || !is_broken(record, rules_.accept_status)) return;
    const bool is_unlinked = result_.untold.contains(record.url_id);
    if (!is_unlinked) flags_.set(record.url_id, UrlFlags::kBroken);
    if (!rules_.wants(FindingKind::broken)) result_.untold.insert(record.url_id);
    if (is_unlinked || !rules_.wants(FindingKind::broken)) return;
    broken_[record.url_id] = pending_.size();
    pending_.push_back({{.kind = FindingKind::broken,
                         .url = record.url,
                         .status = record.status_code,
                         .message = broken_message(record)},
                        record.url_id});
    referrers_[record.url_id] = record.referrer;
  }

  void note_answer(const UrlRecord& record) {
    const std::string_view site = site_in(record.url);
    if (site == last_answering_) return;
    answering_.insert(fingerprint(site));
    last_answering_ = site;
  }

  // A sitemap is stored as if it redirected to what it lists, at the same depth.
  Result<void> read_redirects() {
    auto scanned = store_.scan_links([&](const UrlLinks& links) {
      const bool redirects = links.redirect && flags_.has(links.url_id, UrlFlags::kRedirects);
      if (redirects && !links.targets.empty()) redirects_[links.url_id] = links.targets.front();
      return true;
    });
    if (!scanned || !rules_.wants(FindingKind::fragment)) return scanned;
    for (const auto& [id, target] : redirects_) {
      const auto facts = store_.facts(id);
      if (!facts) return std::unexpected(facts.error());
      if (*facts && (*facts)->anchors && !(*facts)->anchors->empty()) flags_.set(id, UrlFlags::kNamesPart);
    }
    return {};
  }

  // Where a redirect leads in the end; or the first on the way that is broken itself, as one into a circle is.
  std::int64_t end_of(std::int64_t id) const {
    for (int hops = 0; hops < kMostHops && !flags_.has(id, UrlFlags::kBroken); ++hops) {
      const auto next = redirects_.find(id);
      if (next == redirects_.end()) break;
      id = next->second;
    }
    return id;
  }

  // Whether a redirect on the way says itself to which part of the page it leads. Then no link is at fault for that.
  bool is_led_to_part(std::int64_t id) const {
    for (int hops = 0; hops < kMostHops; ++hops) {
      const auto next = redirects_.find(id);
      if (next == redirects_.end()) return false;
      if (flags_.has(id, UrlFlags::kNamesPart)) return true;
      id = next->second;
    }
    return false;
  }

  Result<void> read_links() {
    std::int64_t last_page = 0;
    return store_.scan_kept_links([&](std::int64_t page, std::uint32_t place, const KeptLink& link) {
      if (flags_.has(page, UrlFlags::kLost)) return true;
      ++result_.links;
      if (std::exchange(last_page, page) != page) seen_here_.clear();
      judge({page, place}, link);
      return true;
    });
  }

  void judge(LinkPlace place, const KeptLink& link) {
    if (!link.error.empty()) return add_written(place, link);
    if (link.target == 0) return judge_unknown(place, link);
    const bool is_mixed = flags_.has(place.page, UrlFlags::kHttps) && !flags_.has(link.target, UrlFlags::kHttps) &&
                          is_asset_or_frame(link.kind);
    if (is_mixed) add_at(FindingKind::mixed_content, mixed_, place, link);
    const std::int64_t end = end_of(link.target);
    if (flags_.has(end, UrlFlags::kBroken)) {
      const auto found = broken_.find(end);
      if (found != broken_.end()) add_place(pending_[found->second].finding.places, FindingKind::broken, place, link);
      return;
    }
    if (flags_.has(link.target, UrlFlags::kPermanent)) add_at(FindingKind::redirect, moved_, place, link);
    const bool names_part =
        !link.fragment.empty() && rules_.wants(FindingKind::fragment) && !is_led_to_part(link.target);
    if (names_part) add_place(fragments_[end][link.fragment], FindingKind::fragment, place, link);
  }

  // A link to a URL that the store does not know.
  void judge_unknown(LinkPlace place, const KeptLink& link) {
    const bool is_mixed = starts_with_lower(link.href, "http:") && flags_.has(place.page, UrlFlags::kHttps) &&
                          is_asset_or_frame(link.kind);
    if (is_mixed) add_as(FindingKind::mixed_content, place, link);
  }

  void add_written(LinkPlace place, const KeptLink& link) {
    const bool is_mail = starts_with_lower(link.href, "mailto:");
    add_as(is_mail ? FindingKind::mail : FindingKind::invalid, place, link);
  }

  void add_as(FindingKind kind, LinkPlace place, const KeptLink& link) {
    if (!rules_.wants(kind)) return;
    const auto [at, is_new] = written_.try_emplace({kind, link.href}, pending_.size());
    if (is_new) pending_.push_back({{.kind = kind, .url = link.href, .message = link.error}});
    add_place(pending_[at->second].finding.places, kind, place, link);
  }

  void add_at(FindingKind kind, std::unordered_map<std::int64_t, std::size_t>& known, LinkPlace place,
              const KeptLink& link) {
    if (!rules_.wants(kind)) return;
    const auto [at, is_new] = known.try_emplace(link.target, pending_.size());
    if (is_new) pending_.push_back({{.kind = kind}, link.target});
    add_place(pending_[at->second].finding.places, kind, place, link);
  }

  // Once, where a line has the same link with the same words several times: a minified style sheet is one line.
  void add_place(std::vector<LinkPlace>& places, FindingKind kind, LinkPlace place, const KeptLink& link) {
    const std::uint64_t same =
        fingerprint(fmt::format("{} {} {} {}\n{}\n{}\n{}\n{}", to_string(kind), link.line, link.target, link.kind,
                                link.href, link.fragment, link.text, link.rel));
    if (seen_here_.insert(same).second) places.push_back(place);
  }

  // A page whose ids are not known in full is not accused.
  Result<void> judge_fragments() {
    for (auto& [page, names] : fragments_) {
      const auto facts = store_.facts(page);
      if (!facts) return std::unexpected(facts.error());
      if (!*facts || !(*facts)->anchors) continue;
      for (auto& [fragment, places] : names) {
        if (names_anchor(fragment, *(*facts)->anchors)) continue;
        pending_.push_back({{.kind = FindingKind::fragment, .url = "#" + fragment, .places = std::move(places)}, page});
      }
    }
    fragments_.clear();
    return {};
  }

  Result<void> name_urls() {
    for (Pending& pending : pending_) {
      LinkFinding& finding = pending.finding;
      if (finding.kind == FindingKind::broken || pending.target == 0) continue;
      const auto record = store_.get(pending.target);
      if (!record) return std::unexpected(record.error());
      if (!*record) continue;
      finding.status = (*record)->status_code;
      finding.url = (*record)->url + finding.url;
      if (finding.kind == FindingKind::redirect) {
        if (auto named = name_redirect(finding, pending.target); !named) return named;
      }
    }
    return {};
  }

  // The link should name what the redirects lead to, as far as they are permanent.
  Result<void> name_redirect(LinkFinding& finding, std::int64_t id) {
    for (int hops = 0; hops < kMostHops && flags_.has(id, UrlFlags::kPermanent); ++hops) {
      const auto record = store_.get(id);
      if (!record) return std::unexpected(record.error());
      if (!*record) break;
      finding.advice = (*record)->redirect_to;
      const auto next = redirects_.find(id);
      if (next == redirects_.end()) break;
      id = next->second;
    }
    finding.message = fmt::format("{} {}, to {}", finding.status, reason_phrase(finding.status), finding.advice);
    return {};
  }

  Result<void> name_pages() {
    for (Pending& pending : pending_) {
      if (pending.finding.kind != FindingKind::broken || !pending.finding.places.empty()) continue;
      auto page = page_with_link(store_, pending.finding.url, referrers_[pending.target], kMostHops);
      if (!page) return std::unexpected(std::move(page.error()));
      pending.finding.page = std::move(*page);
    }
    return {};
  }

  // A finding, and where it stands among the others: of a silent host by what is said of that, those with most links
  // first.
  struct Ranked {
    std::string host, trouble;  // empty: it stands by itself
    std::int64_t links = 0;     // to all of the host
    LinkFinding finding;

    auto rank() const {
      return std::tuple(finding.is_elsewhere, finding.kind, !host.empty(), -links, std::string_view{host},
                        std::string_view{trouble}, std::string_view{finding.url});
    }
    bool is_with(const Ranked& other) const { return !host.empty() && host == other.host && trouble == other.trouble; }
  };

  Ranked ranked(LinkFinding&& finding) const {
    if (finding.kind == FindingKind::fragment) finding.message = "the page has nothing of that name";
    if (finding.kind == FindingKind::mixed_content) finding.message = "fetched by http for a page by https";
    finding.is_elsewhere = is_of_target(finding.kind) && !own_.has(finding.url);
    const bool is_refused =
        finding.is_elsewhere && finding.kind == FindingKind::broken && may_be_for_programs(finding.status);
    if (is_refused) finding.message += "; perhaps to programs alone";
    Ranked one;
    const bool is_silent = finding.is_elsewhere && finding.kind == FindingKind::broken && finding.status == 0 &&
                           !answering_.contains(fingerprint(site_in(finding.url)));
    if (is_silent) {
      one.host = host_in(finding.url);
      one.trouble = trouble_in(finding.message);
    }
    one.finding = std::move(finding);
    return one;
  }

  void finish() {
    std::vector<Ranked> all;
    for (Pending& pending : pending_) {
      const LinkFinding& finding = all.emplace_back(ranked(std::move(pending.finding))).finding;
      ++result_.counts[static_cast<std::size_t>(finding.kind)];
      result_.elsewhere[static_cast<std::size_t>(finding.kind)] += finding.is_elsewhere;
    }
    std::map<std::pair<std::string_view, std::string_view>, std::int64_t> links;
    for (const Ranked& one : all) {
      const std::int64_t places = std::max<std::int64_t>(std::ssize(one.finding.places), 1);
      if (!one.host.empty()) links[{one.host, one.trouble}] += places;
    }
    for (Ranked& one : all) one.links = one.host.empty() ? 0 : links.at({one.host, one.trouble});
    links.clear();  // its names are in `all`, which is sorted now
    std::ranges::sort(all, {}, &Ranked::rank);
    for (auto one = all.begin(); one != all.end();) {
      const auto end = std::find_if(one + 1, all.end(), [&](const Ranked& other) { return !other.is_with(*one); });
      if (!one->host.empty()) add_silent_host({one, end});
      for (; one != end; ++one) result_.findings.push_back(std::move(one->finding));
    }
  }

  void add_silent_host(std::span<const Ranked> of_host) {
    SilentHost& host = result_.silent_hosts.emplace_back();
    host.host = of_host.front().host;
    host.trouble = of_host.front().trouble;
    host.first = result_.findings.size();
    host.count = of_host.size();
    std::unordered_set<std::uint64_t> pages;
    for (const Ranked& one : of_host) {
      const LinkFinding& finding = one.finding;
      host.links += std::max<std::size_t>(finding.places.size(), 1);
      for (const LinkPlace& place : finding.places) pages.insert(static_cast<std::uint64_t>(place.page));
      if (finding.places.empty()) pages.insert(fingerprint(finding.page));
    }
    host.pages = pages.size();
  }

  UrlStore& store_;
  const CheckRules& rules_;
  CheckResult result_;
  UrlFlags flags_;
  OwnHosts own_;
  std::unordered_set<std::uint64_t> answering_;               // fingerprints of sites
  std::string last_answering_;                                // the site of the record before, mostly that of this one
  std::unordered_map<std::int64_t, std::int64_t> redirects_;  // from whom to whom
  std::unordered_map<std::int64_t, std::int64_t> referrers_;  // of the broken
  std::vector<Pending> pending_;
  std::unordered_set<std::uint64_t> seen_here_;  // of the page whose links are read
  // Places in pending_, by the URL's id or what is written.
  std::unordered_map<std::int64_t, std::size_t> broken_, mixed_, moved_;
  std::map<std::pair<FindingKind, std::string>, std::size_t> written_;
  std::map<std::int64_t, std::map<std::string, std::vector<LinkPlace>>> fragments_;  // by page, then by name
};

std::uint64_t count_findings(const std::array<std::uint64_t, kFindingKinds>& counts, bool warnings) noexcept {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < kFindingKinds; ++i) {
    if (is_warning(static_cast<FindingKind>(i)) == warnings) count += counts[i];
  }
  return count;
}

}  // namespace

std::string_view to_string(FindingKind kind) noexcept { return kFindingNames[static_cast<std::size_t>(kind)]; }

Result<std::uint32_t> parse_finding_kinds(std::string_view words) {
  std::uint32_t kinds = 0;
  std::optional<Error> wrong;
  for_each_token(
      words, [](char c) { return c == ',' || is_space(c); },
      [&](std::string_view word) {
        const auto found = std::ranges::find(kFindingNames, word);
        if (found != std::end(kFindingNames)) {
          kinds |= 1u << (found - std::begin(kFindingNames));
        } else {
          wrong = Error{Errc::invalid_input,
                        fmt::format("{}: not one of {}", in_quotes(word), fmt::join(kFindingNames, ", "))};
        }
      });
  if (wrong) return std::unexpected(std::move(*wrong));
  if (kinds == 0) return fail(Errc::invalid_input, fmt::format("give some of {}", fmt::join(kFindingNames, ", ")));
  return kinds;
}

std::uint64_t CheckResult::errors() const noexcept { return count_findings(counts, false); }
std::uint64_t CheckResult::warnings() const noexcept { return count_findings(counts, true); }
std::uint64_t CheckResult::errors_elsewhere() const noexcept { return count_findings(elsewhere, false); }

std::string words_on(const SilentHost& host) {
  return fmt::format("{} cannot be reached ({})", host.host, host.trouble);
}

std::string words_on_unread(const CheckResult& result) {
  return fmt::format(
      "Not judged: the links of {}, which no run with --check-links has read as {} now. Such a run asks {} again",
      counted(result.unread, "page"), result.unread == 1 ? "it is" : "they are", result.unread == 1 ? "it" : "them");
}

Result<CheckResult> check_links(UrlStore& store, const CheckRules& rules) { return LinkChecker(store, rules).run(); }

Result<void> for_each_place(UrlStore& store, const LinkFinding& finding,
                            const std::function<void(const std::string& page, const KeptLink& link)>& visit) {
  if (finding.places.empty()) {
    KeptLink link;
    link.kind = finding.page.empty() ? "given" : "anchor";
    visit(finding.page, link);
    return {};
  }
  for (auto place = finding.places.begin(); place != finding.places.end();) {
    const std::int64_t page = place->page;
    const auto record = store.get(page);
    if (!record) return std::unexpected(record.error());
    // All of one page in one go.
    std::vector<KeptLink> links;
    auto scanned = store.scan_kept_links(page, [&](std::int64_t, std::uint32_t at, const KeptLink& link) {
      if (place != finding.places.end() && place->page == page && place->place == at) {
        links.push_back(link);
        ++place;
      }
      return place != finding.places.end() && place->page == page;
    });
    if (!scanned) return scanned;
    for (const KeptLink& link : links) visit(*record ? (*record)->url : std::string{}, link);
    // Places that have gone meanwhile are passed over.
    while (place != finding.places.end() && place->page == page) ++place;
  }
  return {};
}

}  // namespace argiope
