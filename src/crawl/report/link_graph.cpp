#include "crawl/report/internal/link_graph.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <unordered_map>
#include <utility>

#include "argiope/web/http_client.hpp"

namespace argiope {
namespace {

constexpr double kDamping = 0.85;
constexpr double kStillMoving = 1e-9;
constexpr int kMostRounds = 200;
constexpr int kMostRedirects = 20;
constexpr std::uint32_t kNoPage = 0xffff'ffff;

bool is_graph_page(const UrlRecord& record) {
  return record.state == UrlState::done && record.status_code >= 200 && record.status_code < 300 &&
         record.reason != UrlReason::asset && record.reason != UrlReason::requisite &&
         record.reason != UrlReason::checked && record.reason != UrlReason::sitemap;
}

}  // namespace

class GraphReader {
 public:
  GraphReader(UrlStore& store, LinkGraph& graph) : store_(store), graph_(graph) {}

  Result<void> read() {
    if (auto urls = read_urls(); !urls) return urls;
    if (auto redirects = read_redirects(); !redirects) return redirects;
    auto counted = for_each_page_links([&](std::uint32_t from, const std::vector<std::uint32_t>& targets) {
      graph_.pages_[from].outbound = static_cast<std::uint32_t>(targets.size());
      graph_.links_ += targets.size();
      for (const std::uint32_t to : targets) ++graph_.pages_[to].inbound;
    });
    if (!counted) return counted;
    find_orphans();
    return rank();
  }

 private:
  Result<void> read_urls() {
    places_.assign(static_cast<std::size_t>(store_.next_id()), kNoPage);
    flags_.assign(places_.size(), 0);
    return store_.scan(1, [&](const UrlRecord& record) {
      const auto id = static_cast<std::size_t>(record.url_id);
      if (id >= places_.size()) return false;  // it came meanwhile
      if (is_redirect(record.status_code)) flags_[id] |= kRedirects;
      if (record.referrer != 0) flags_[id] |= kWasLinked;
      if (!is_graph_page(record)) return true;
      places_[id] = static_cast<std::uint32_t>(graph_.pages_.size());
      graph_.pages_.push_back({.url_id = record.url_id, .depth = record.depth});
      return true;
    });
  }

  // A record of links at the same depth is that of a redirect, or what a sitemap lists.
  Result<void> read_redirects() {
    return store_.scan_links([&](const UrlLinks& links) {
      if (!links.redirect || !is_known(links.url_id)) return true;
      const bool redirects = (flags_[static_cast<std::size_t>(links.url_id)] & kRedirects) != 0;
      for (const std::int64_t target : links.targets) {
        if (!is_known(target)) continue;
        if (redirects) redirects_[links.url_id] = target;
        flags_[static_cast<std::size_t>(target)] |= redirects ? kRedirectedTo : kListed;
      }
      return true;
    });
  }

  bool is_known(std::int64_t id) const noexcept { return id > 0 && id < std::ssize(places_); }

  // The page to which a link leads in the end, or kNoPage.
  std::uint32_t page_at(std::int64_t id) const {
    for (int hops = 0; hops < kMostRedirects; ++hops) {
      const auto next = redirects_.find(id);
      if (next == redirects_.end()) break;
      id = next->second;
    }
    return is_known(id) ? places_[static_cast<std::size_t>(id)] : kNoPage;
  }

  // Calls `visit(from, targets)` with places of pages, each target once, none the page itself; in the order of ids.
  Result<void> for_each_page_links(const std::function<void(std::uint32_t, const std::vector<std::uint32_t>&)>& visit) {
    std::vector<std::uint32_t> targets;
    return store_.scan_links([&](const UrlLinks& links) {
      if (links.redirect || !is_known(links.url_id)) return true;
      const std::uint32_t from = places_[static_cast<std::size_t>(links.url_id)];
      if (from == kNoPage) return true;
      targets.clear();
      for (const std::int64_t target : links.targets) {
        const std::uint32_t to = page_at(target);
        if (to != kNoPage && to != from) targets.push_back(to);
      }
      std::ranges::sort(targets);
      const auto repeated = std::ranges::unique(targets);
      targets.erase(repeated.begin(), repeated.end());
      visit(from, targets);
      return true;
    });
  }

  void find_orphans() {
    for (GraphPage& page : graph_.pages_) {
      const std::uint8_t flags = flags_[static_cast<std::size_t>(page.url_id)];
      page.is_listed = (flags & kListed) != 0;
      page.is_orphan = page.inbound == 0 && (flags & kRedirectedTo) == 0 && (flags & (kListed | kWasLinked)) != 0;
    }
  }

  Result<void> rank() {
    std::vector<GraphPage>& pages = graph_.pages_;
    if (pages.empty()) return {};
    const double count = static_cast<double>(pages.size());
    for (GraphPage& page : pages) page.rank = 1 / count;
    std::vector<double> next(pages.size());
    for (graph_.converged_ = false; !graph_.converged_ && graph_.rounds_ < kMostRounds; ++graph_.rounds_) {
      double unlinked = 0;  // the rank of pages that link to nobody
      for (const GraphPage& page : pages) unlinked += page.outbound == 0 ? page.rank : 0;
      std::ranges::fill(next, (1 - kDamping + kDamping * unlinked) / count);
      auto passed_on = for_each_page_links([&](std::uint32_t from, const std::vector<std::uint32_t>& targets) {
        // Changes in the store since the first pass do not make rank out of nothing.
        const double share = kDamping * pages[from].rank / std::max<double>(pages[from].outbound, 1);
        for (const std::uint32_t to : targets) next[to] += share;
      });
      if (!passed_on) return passed_on;
      double moved = 0;
      for (std::size_t i = 0; i < pages.size(); ++i) moved += std::abs(next[i] - std::exchange(pages[i].rank, next[i]));
      graph_.converged_ = moved <= kStillMoving;
    }
    return {};
  }

  enum Flag : std::uint8_t { kRedirects = 1, kWasLinked = 2, kRedirectedTo = 4, kListed = 8 };

  UrlStore& store_;
  LinkGraph& graph_;
  std::vector<std::uint32_t> places_;  // in pages_, by url_id
  std::vector<std::uint8_t> flags_;    // by url_id
  std::unordered_map<std::int64_t, std::int64_t> redirects_;
};

Result<LinkGraph> LinkGraph::read(UrlStore& store) {
  LinkGraph graph;
  if (auto done = GraphReader(store, graph).read(); !done) return std::unexpected(std::move(done.error()));
  return graph;
}

const GraphPage* LinkGraph::find(std::int64_t url_id) const noexcept {
  const auto found = std::ranges::lower_bound(pages_, url_id, {}, &GraphPage::url_id);
  return found != pages_.end() && found->url_id == url_id ? &*found : nullptr;
}

}  // namespace argiope
