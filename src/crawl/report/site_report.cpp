#include "crawl/report/internal/site_report.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "argiope/web/http_client.hpp"
#include "argiope/web/url.hpp"
#include "base/internal/fingerprint.hpp"
#include "base/internal/output_file.hpp"
#include "crawl/duplicates/internal/duplicate_pages.hpp"
#include "crawl/page/seen_answers.hpp"
#include "crawl/report/internal/link_graph.hpp"
#include "crawl/report/url_names.hpp"
#include "crawl/scope/internal/accepted_status.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {
namespace {

constexpr std::size_t kPlacesListed = 10;
constexpr std::size_t kUrlsOfGroup = 10;
constexpr std::size_t kTopListed = 50;
constexpr std::size_t kHostsListed = 100;
constexpr int kMostChain = 20;

// The largest of many, without keeping the others.
template <class Value, class Less>
class Largest {
 public:
  Largest(std::size_t most, Less less) : most_(most), less_(less) {}
  void add(const Value& value) {
    if (values_.size() == most_ && !less_(values_.front(), value)) return;
    values_.push_back(value);
    std::ranges::push_heap(values_, more());
    if (values_.size() <= most_) return;
    std::ranges::pop_heap(values_, more());
    values_.pop_back();
  }
  std::vector<Value> take() {
    std::ranges::sort(values_, more());
    return std::move(values_);
  }

 private:
  auto more() const {
    return [this](const Value& a, const Value& b) { return less_(b, a); };
  }
  const std::size_t most_;
  const Less less_;
  std::vector<Value> values_;
};

Duration middle_of(std::vector<Duration>& spans, double share = 0.5) {
  if (spans.empty()) return {};
  const auto at = std::min(spans.size() - 1, static_cast<std::size_t>(share * static_cast<double>(spans.size())));
  std::ranges::nth_element(spans, spans.begin() + static_cast<std::ptrdiff_t>(at));
  return spans[at];
}

// Ids of pages by the fingerprint of what they have in common.
class GroupNumbers {
 public:
  void add(std::uint64_t key, std::int64_t url_id) { members_.emplace_back(key, url_id); }

  // `name(url_id)` is what a group has in common, by one of its pages.
  template <class Name>
  PageGroups take(UrlNames& names, Name&& name) {
    std::ranges::sort(members_);
    std::vector<std::pair<std::size_t, std::size_t>> found;  // size, where it begins
    for (std::size_t i = 0, next = 0; i < members_.size(); i = next) {
      for (next = i + 1; next < members_.size() && members_[next].first == members_[i].first;) ++next;
      if (next - i > 1) found.emplace_back(next - i, i);
    }
    PageGroups groups;
    groups.count = found.size();
    for (const auto& [size, begin] : found) groups.pages += size;
    std::ranges::sort(found, [](const auto& a, const auto& b) {
      return std::pair(b.first, a.second) < std::pair(a.first, b.second);
    });
    found.resize(std::min(found.size(), kMostListed));
    for (const auto& [size, begin] : found) {
      PageGroup& group = groups.groups.emplace_back();
      group.count = size;
      group.what = name(members_[begin].second);
      for (std::size_t i = 0; i < std::min(size, kUrlsOfGroup); ++i)
        group.pages.push_back(names.of(members_[begin + i].second));
    }
    return groups;
  }

 private:
  std::vector<std::pair<std::uint64_t, std::int64_t>> members_;
};

class ReportGatherer {
 public:
  ReportGatherer(UrlStore& store, const CheckRules& rules) : store_(store), rules_(rules), names_(store) {}

  Result<SiteReport> gather() {
    using Step = Result<void> (ReportGatherer::*)();
    for (const Step step : {&ReportGatherer::read_facts, &ReportGatherer::read_sitemaps, &ReportGatherer::read_urls,
                            &ReportGatherer::read_links, &ReportGatherer::read_findings, &ReportGatherer::read_graph,
                            &ReportGatherer::read_copies}) {
      if (auto done = (this->*step)(); !done) return std::unexpected(std::move(done.error()));
    }
    finish();
    if (!names_.failure()) return std::unexpected(names_.failure().error());
    return std::move(report_);
  }

 private:
  // The facts that the store has of an answer, in a few bytes.
  struct Seen {
    Duration took{};
    std::uint64_t title = 0, description = 0;  // 0: none
    std::uint8_t titles = 0, descriptions = 0, headings = 0;
  };
  // An answer on the time line.
  struct Answer {
    WallTime at;
    Duration took;
    bool is_error;
  };
  struct Sized {
    std::int64_t id = 0;
    std::int64_t amount = 0;  // bytes, or nanoseconds
  };
  static constexpr auto kLess = [](const Sized& a, const Sized& b) {
    return std::pair(a.amount, b.id) < std::pair(b.amount, a.id);
  };
  using LargestUrls = Largest<Sized, decltype(kLess)>;

  Result<void> read_facts() {
    return store_.scan_facts([&](const PageFacts& facts) {
      const auto few = [](std::uint32_t count) { return static_cast<std::uint8_t>(std::min(count, 2u)); };
      const auto key = [](const std::string& text) { return text.empty() ? 0 : fingerprint(text); };
      seen_[facts.url_id] = {facts.took,        key(facts.title),        key(facts.description),
                             few(facts.titles), few(facts.descriptions), few(facts.headings)};
      if (facts.noindex) noindex_.insert(facts.url_id);
      return true;
    });
  }

  // Which URLs are in one. Without any there is nothing to be told of.
  Result<void> read_sitemaps() {
    std::unordered_set<std::int64_t> files;
    auto scanned = store_.scan(
        1,
        [&](const UrlRecord& record) {
          if (record.reason == UrlReason::sitemap && record.redirect_to.empty()) files.insert(record.url_id);
          return true;
        },
        UrlStore::Fields::to_go_on);
    if (!scanned || files.empty()) return scanned;
    return store_.scan_links([&](const UrlLinks& links) {
      if (!files.contains(links.url_id) || links.targets.empty()) return true;
      ++report_.sitemaps;
      listed_.insert(links.targets.begin(), links.targets.end());
      return true;
    });
  }

  // Of what was asked.
  void compare_with_sitemaps(const UrlRecord& record, bool is_error, bool is_page) {
    const bool is_seen = !unseen_.contains(record.url_id);
    const bool noindex = is_seen && noindex_.contains(record.url_id);
    if (!listed_.contains(record.url_id)) {
      if (is_page && is_seen && !noindex) report_.not_listed.add(record.url);
      return;
    }
    ++report_.listed;
    if (is_error) {
      report_.listed_broken.add(record.url);
    } else if (!record.redirect_to.empty()) {
      report_.listed_redirects.add(record.url);
    } else if (noindex) {
      report_.listed_noindex.add(record.url);
    }
  }

  Result<void> read_urls() {
    const auto unseen = UnseenPages::read(store_, kFactsDemand);
    if (!unseen) return std::unexpected(unseen.error());
    return store_.scan(1, [&](const UrlRecord& record) {
      if (unseen->has(record)) {
        unseen_.insert(record.url_id);
        seen_.erase(record.url_id);
      }
      read_url(record);
      return true;
    });
  }

  void read_url(const UrlRecord& record) {
    ++report_.urls;
    note_site(record);
    if (record.state == UrlState::queued) ++report_.queued;
    if (record.state == UrlState::excluded || record.reason == UrlReason::host_down)
      ++report_.left_out[std::string(to_string(record.reason))];
    if (record.state != UrlState::done && !(record.state == UrlState::failed && record.reason != UrlReason::host_down))
      return;
    read_answer(record);
  }

  // Which sites the crawl is of: the first, by which it is called, and how many others were given.
  void note_site(const UrlRecord& record) {
    const bool is_given =
        record.referrer == 0 && record.reason != UrlReason::sitemap && record.state != UrlState::excluded;
    if (!report_.title.empty() && !is_given) return;
    const auto url = Url::parse(record.url);
    std::string site = url ? url->site_key() : record.url;
    sites_.insert(fingerprint(site));
    if (report_.title.empty()) report_.title = std::move(site);
    report_.other_sites = sites_.size() - 1;
  }

  void read_answer(const UrlRecord& record) {
    const auto seen = seen_.find(record.url_id);
    const bool is_error = is_broken(record, rules_.accept_status);
    ++report_.asked;
    ++report_.statuses[record.status_code];
    if (record.status_code == 0) ++report_.failures[record.error.substr(0, record.error.find(':'))];
    report_.bytes += record.size;
    answers_.push_back({record.mtime, seen == seen_.end() ? Duration{} : seen->second.took, is_error});
    if (!record.redirect_to.empty()) {
      ++report_.redirects;
      redirects_.emplace_back(fingerprint(record.url), record.url_id, fingerprint(record.redirect_to));
    }
    note_host(record, is_error);
    if (seen != seen_.end() && seen->second.took > Duration{}) {
      times_.push_back(seen->second.took);
      slow_.add({record.url_id, seen->second.took.count()});
    }
    const bool is_page = record.status_code == 200 && is_html(record.content_type) &&
                         record.reason != UrlReason::checked && record.reason != UrlReason::asset &&
                         record.reason != UrlReason::sitemap;
    if (report_.sitemaps > 0) compare_with_sitemaps(record, is_error, is_page);
    if (record.status_code < 200 || record.status_code >= 300) return;
    const std::string_view type = parse_content_type(record.content_type).type;
    ++report_.content_types[type.empty() ? "(none)" : std::string(type)];
    if (record.size > 0) large_.add({record.url_id, record.size});
    if (is_page) read_page(record, seen == seen_.end() ? nullptr : &seen->second);
  }

  void read_page(const UrlRecord& record, const Seen* seen) {
    ++report_.pages;
    ++report_.depths[record.depth];
    if (!record.digest.empty()) duplicates_.add(fingerprint(record.digest), record.url_id);
    if (seen == nullptr) return;
    report_.has_facts = true;
    note_text(report_.titles, titles_, seen->title, seen->titles, record);
    note_text(report_.descriptions, descriptions_, seen->description, seen->descriptions, record);
    if (seen->headings == 0) report_.headings.missing.add(record.url);
    if (seen->headings > 1) report_.headings.several.add(record.url);
  }

  static void note_text(TextFindings& findings, GroupNumbers& groups, std::uint64_t key, std::uint8_t count,
                        const UrlRecord& record) {
    if (key == 0) findings.missing.add(record.url);
    if (key != 0) groups.add(key, record.url_id);
    if (count > 1) findings.several.add(record.url);
  }

  void note_host(const UrlRecord& record, bool is_error) {
    const std::size_t authority = record.url.find("://") + 3;
    auto& [findings, times] = hosts_[record.url.substr(0, record.url.find('/', authority))];
    ++findings.urls;
    findings.errors += is_error;
    findings.bytes += record.size;
    findings.pages += record.status_code == 200 && is_html(record.content_type);
    if (const auto seen = seen_.find(record.url_id); seen != seen_.end()) times.push_back(seen->second.took);
  }

  // Redirects to redirects. A chain begins with one to which none leads; circles are broken links, and named there.
  Result<void> read_links() {
    std::ranges::sort(redirects_);
    const auto find = [&](std::uint64_t url) {
      const auto at = std::ranges::lower_bound(redirects_, url, {}, [](const auto& r) { return std::get<0>(r); });
      return at != redirects_.end() && std::get<0>(*at) == url ? &*at : nullptr;
    };
    std::vector<std::uint64_t> led_to;
    for (const auto& redirect : redirects_) led_to.push_back(std::get<2>(redirect));
    std::ranges::sort(led_to);
    for (const auto& redirect : redirects_) {
      if (std::ranges::binary_search(led_to, std::get<0>(redirect)) || find(std::get<2>(redirect)) == nullptr) continue;
      if (++report_.chain_count > kMostListed) continue;
      std::vector<std::string>& chain = report_.chains.emplace_back();
      const auto* at = &redirect;
      for (int hops = 0; at != nullptr && hops < kMostChain; ++hops) {
        auto record = store_.get(std::get<1>(*at));
        if (!record) return std::unexpected(std::move(record.error()));
        if (!*record) break;
        if (chain.empty()) chain.push_back((*record)->url);
        chain.push_back((*record)->redirect_to);
        at = find(std::get<2>(*at));
      }
    }
    return {};
  }

  Result<void> read_findings() {
    auto check = check_links(store_, rules_);
    if (!check) return std::unexpected(std::move(check.error()));
    std::array<std::array<std::size_t, kFindingKinds>, 2> listed{};  // of the site, and elsewhere
    const auto add_one = [&](const LinkFinding& finding) -> Result<void> {
      if (listed[finding.is_elsewhere][static_cast<std::size_t>(finding.kind)]++ >= kMostListed) return {};
      return add_finding(finding, report_.findings);
    };
    const auto add_host = [&](const SilentHost& host) -> Result<void> {
      if (report_.silent_hosts.size() >= kMostListed) return {};
      ReportedHost& reported = report_.silent_hosts.emplace_back(host);
      for (std::size_t i = 0; i < std::min(host.count, kUrlsOfGroup); ++i) {
        if (auto added = add_finding(check->findings[host.first + i], reported.findings); !added) return added;
      }
      return {};
    };
    if (auto added = for_each_finding(*check, add_host, add_one); !added) return added;
    check->findings.clear();
    report_.check = std::move(*check);
    return {};
  }

  Result<void> add_finding(const LinkFinding& finding, std::vector<ReportedFinding>& into) {
    ReportedFinding& reported = into.emplace_back(finding);
    reported.place_count = std::max<std::size_t>(finding.places.size(), 1);
    LinkFinding& kept = reported.finding;
    kept.places.resize(std::min(kept.places.size(), kPlacesListed));
    auto visited = for_each_place(store_, kept, [&](const std::string& page, const KeptLink& link) {
      reported.places.push_back({page, link.line, link.text});
    });
    kept.places.clear();
    return visited;
  }

  Result<void> read_graph() {
    auto graph = LinkGraph::read(store_);
    if (!graph) return std::unexpected(std::move(graph.error()));
    if (graph->links() == 0) return {};  // nothing is known of links, or there are none
    std::vector<const GraphPage*> pages;
    for (const GraphPage& page : graph->pages()) {
      pages.push_back(&page);
      if (page.is_orphan) report_.orphans.add(names_.of(page.url_id));
      if (page.is_orphan && page.is_listed) report_.listed_orphans.add(names_.of(page.url_id));
    }
    const auto shown = std::min(pages.size(), kTopListed);
    std::ranges::partial_sort(
        pages, pages.begin() + static_cast<std::ptrdiff_t>(shown),
        [](const auto* a, const auto* b) { return std::pair(b->rank, a->url_id) < std::pair(a->rank, b->url_id); });
    for (std::size_t i = 0; i < shown; ++i) {
      auto told = told_of(pages[i]->url_id);
      if (!told) return std::unexpected(std::move(told.error()));
      told->depth = pages[i]->depth;
      told->inbound = pages[i]->inbound;
      told->rank = pages[i]->rank;
      report_.top.push_back(std::move(*told));
    }
    return {};
  }

  Result<void> read_copies() {
    auto found = find_duplicate_pages(store_);
    if (!found) return std::unexpected(std::move(found.error()));
    std::int64_t last = 0;
    std::ranges::sort(found->near, {}, [](const PageCopy& copy) { return std::pair(copy.of, copy.url_id); });
    for (const PageCopy& copy : found->near) {
      if (std::exchange(last, copy.of) != copy.of) near_.add(static_cast<std::uint64_t>(copy.of), copy.of);
      near_.add(static_cast<std::uint64_t>(copy.of), copy.url_id);
    }
    report_.canonical_count = found->conflicts.size();
    found->conflicts.resize(std::min(found->conflicts.size(), kMostListed));
    for (CanonicalConflict& conflict : found->conflicts) {
      report_.canonicals.push_back(
          {names_.of(conflict.url_id), std::move(conflict.canonical), std::move(conflict.what)});
    }
    return {};
  }

  Result<ReportedUrl> told_of(std::int64_t url_id) {
    ReportedUrl told;
    const auto record = store_.get(url_id);
    if (!record) return std::unexpected(record.error());
    const auto facts = store_.facts(url_id);
    if (!facts) return std::unexpected(facts.error());
    if (*record) {
      told.url = (*record)->url;
      told.size = (*record)->size;
      told.depth = (*record)->depth;
    }
    if (*facts) {
      told.title = (*facts)->title;
      told.took = (*facts)->took;
    }
    return told;
  }

  void finish() {
    report_.unseen = unseen_.size();
    report_.timed = times_.size();
    report_.p50 = middle_of(times_, 0.5);
    report_.p90 = middle_of(times_, 0.9);
    report_.p99 = middle_of(times_, 0.99);
    if (!times_.empty()) report_.slowest = std::ranges::max(times_);
    for (const Duration took : times_) {
      const auto bound = std::ranges::upper_bound(SiteReport::kTimeBounds, took);
      ++report_.times[static_cast<std::size_t>(bound - SiteReport::kTimeBounds.begin())];
    }
    const auto list = [&](LargestUrls& from, std::vector<ReportedUrl>& into) {
      for (const Sized& one : from.take()) {
        if (auto told = told_of(one.id)) into.push_back(std::move(*told));
      }
    };
    list(slow_, report_.slow);
    list(large_, report_.large);
    const auto text_of = [&](std::int64_t id, std::string PageFacts::*member) {
      const auto facts = store_.facts(id);
      return facts && *facts ? (**facts).*member : std::string{};
    };
    report_.titles.repeated = titles_.take(names_, [&](std::int64_t id) { return text_of(id, &PageFacts::title); });
    report_.descriptions.repeated =
        descriptions_.take(names_, [&](std::int64_t id) { return text_of(id, &PageFacts::description); });
    report_.duplicates = duplicates_.take(names_, [](std::int64_t) { return std::string{}; });
    report_.near_duplicates = near_.take(names_, [](std::int64_t) { return std::string{}; });
    finish_hosts();
    draw_time_line();
  }

  void finish_hosts() {
    report_.host_count = hosts_.size();
    for (auto& [site, host] : hosts_) {
      host.first.median = middle_of(host.second);
      report_.hosts.emplace_back(site, host.first);
    }
    std::ranges::sort(report_.hosts, [](const auto& a, const auto& b) {
      return std::pair(b.second.urls, std::string_view{a.first}) < std::pair(a.second.urls, std::string_view{b.first});
    });
    if (report_.hosts.size() > kHostsListed) report_.hosts.resize(kHostsListed);
  }

  void draw_time_line() {
    std::erase_if(answers_, [](const Answer& answer) { return answer.at == WallTime{}; });
    if (answers_.empty()) return;
    const auto [first, last] = std::ranges::minmax(answers_, {}, &Answer::at);
    report_.from = first.at;
    report_.until = last.at;
    const double span = std::max(to_seconds(last.at - first.at), 1e-3);
    std::array<std::vector<Duration>, SiteReport::kSteps> times;
    for (const Answer& answer : answers_) {
      const double share = to_seconds(answer.at - first.at) / span;
      const auto step = std::min(SiteReport::kSteps - 1, static_cast<std::size_t>(share * SiteReport::kSteps));
      ++report_.answers[step];
      report_.errors[step] += answer.is_error;
      if (answer.took > Duration{}) times[step].push_back(answer.took);
    }
    for (std::size_t i = 0; i < SiteReport::kSteps; ++i) report_.medians[i] = middle_of(times[i]);
  }

  UrlStore& store_;
  const CheckRules& rules_;
  UrlNames names_;
  SiteReport report_;
  std::unordered_map<std::int64_t, Seen> seen_;
  std::unordered_set<std::int64_t> noindex_;
  std::unordered_set<std::int64_t> unseen_;  // what was seen of them may be so no longer
  std::unordered_set<std::int64_t> listed_;  // by a sitemap or feed
  std::unordered_set<std::uint64_t> sites_;  // of the first URL and those that were given
  std::vector<Answer> answers_;
  std::vector<Duration> times_;
  std::vector<std::tuple<std::uint64_t, std::int64_t, std::uint64_t>> redirects_;  // URL, id, target
  std::map<std::string, std::pair<HostFindings, std::vector<Duration>>> hosts_;
  LargestUrls slow_{kTopListed, kLess}, large_{kTopListed, kLess};
  GroupNumbers titles_, descriptions_, duplicates_, near_;
};

}  // namespace

Result<SiteReport> gather_site_report(UrlStore& store, const CheckRules& rules) {
  return ReportGatherer(store, rules).gather();
}

Result<void> write_site_report(UrlStore& store, const CheckRules& rules, const std::string& path) {
  const auto report = gather_site_report(store, rules);
  if (!report) return std::unexpected(report.error());
  OutputFile file("report to", path);
  file.write(html_site_report(*report));
  return file.finish();
}

}  // namespace argiope
