#include "crawl/scope/internal/unlinked_urls.hpp"

#include <unordered_map>
#include <utility>
#include <vector>

#include "crawl/page/seen_answers.hpp"
#include "crawl/scope/internal/accepted_status.hpp"
#include "crawl/scope/linking_page.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {
namespace {

constexpr int kMostLeaps = 20;  // redirects in a row

// Whether what is stored of where it leads holds, of what is no redirect.
bool still_leads(const UrlRecord& record) {
  if (record.state != UrlState::done) return true;
  const std::string& type = record.content_type;
  const bool has_links = record.reason == UrlReason::sitemap || type.empty() || is_html(type) || is_xml(type);
  return has_links && !has_lost_links(record);
}

class UnlinkedSearch {
 public:
  UnlinkedSearch(UrlStore& store, std::span<const StatusRange> accepted, OwnHosts* hosts)
      : store_(store), accepted_(accepted), hosts_(hosts) {}

  Result<std::unordered_set<std::int64_t>> run() {
    using Step = Result<void> (UnlinkedSearch::*)();
    for (const Step step : {&UnlinkedSearch::read_demands, &UnlinkedSearch::read_urls, &UnlinkedSearch::read_redirects,
                            &UnlinkedSearch::follow_links, &UnlinkedSearch::judge}) {
      if (auto done = (this->*step)(); !done) return std::unexpected(std::move(done.error()));
      if (is_unknown_) break;
    }
    if (auto done = read_hosts(); !done) return std::unexpected(std::move(done.error()));
    return std::move(unlinked_);
  }

 private:
  enum Flag : std::uint8_t { kLeads = 1, kRedirects = 2, kBroken = 4, kLost = 8 };
  struct Broken {
    std::string url;
    std::int64_t referrer = 0;
    UrlReason reason{};
  };

  bool has(std::int64_t id, std::uint8_t flags) const noexcept {
    return id > 0 && id < std::ssize(flags_) && (flags_[static_cast<std::size_t>(id)] & flags) != 0;
  }

  Result<void> read_demands() {
    auto links = UnseenPages::read(store_, kLinksDemand);
    if (!links) return std::unexpected(std::move(links.error()));
    links_ = std::move(*links);
    is_unknown_ = !links_.is_made();
    auto assets = UnseenPages::read(store_, kAssetsDemand);
    if (!assets) return std::unexpected(std::move(assets.error()));
    assets_ = std::move(*assets);
    return {};
  }

  Result<void> read_urls() {
    flags_.resize(static_cast<std::size_t>(store_.next_id()));
    auto scanned = store_.scan(1, [&](const UrlRecord& record) {
      if (record.url_id >= std::ssize(flags_)) return false;  // it came meanwhile
      is_unknown_ = links_.has(record);
      read_url(record);
      if (hosts_ != nullptr) hosts_->add(record);
      unread_from_ = record.url_id + 1;
      return !is_unknown_;
    });
    is_unknown_ = is_unknown_ || broken_.empty();
    return scanned;
  }

  // Those of the URLs that were not looked at, because nothing can be said of links.
  Result<void> read_hosts() {
    if (hosts_ == nullptr) return {};
    return store_.scan(
        unread_from_,
        [&](const UrlRecord& record) {
          hosts_->add(record);
          return true;
        },
        UrlStore::Fields::to_go_on);
  }

  void read_url(const UrlRecord& record) {
    std::uint8_t& flags = flags_[static_cast<std::size_t>(record.url_id)];
    if (still_leads(record)) flags |= kLeads;
    if (has_lost_links(record)) flags |= kLost;
    if (!record.redirect_to.empty()) flags |= kRedirects;
    if (record.referrer == 0) {
      if (!record.redirect_to.empty()) given_.push_back(record.url_id);
    } else if (is_broken(record, accepted_)) {
      flags |= kBroken;
      broken_.emplace(record.url_id, Broken{record.url, record.referrer, record.reason});
    }
  }

  Result<void> read_redirects() {
    return store_.scan_links([&](const UrlLinks& links) {
      const bool redirects = links.redirect && has(links.url_id, kRedirects);
      if (redirects && !links.targets.empty()) redirects_[links.url_id] = links.targets.front();
      return true;
    });
  }

  // Crosses off what is led to. Both count: followed is more than markup has, kept is more than is followed.
  Result<void> follow_links() {
    for (const std::int64_t id : given_) cross_off(id);
    auto followed = store_.scan_links([&](const UrlLinks& links) {
      if (has(links.url_id, kRedirects) || !has(links.url_id, kLeads)) return true;
      for (const std::int64_t target : links.targets) cross_off(target);
      return true;
    });
    if (!followed) return followed;
    return store_.scan_kept_links([&](std::int64_t page, std::uint32_t, const KeptLink& link) {
      if (!has(page, kLost)) cross_off(link.target);
      return true;
    });
  }

  // It, and what it redirects to.
  void cross_off(std::int64_t id) {
    for (int steps = 0; steps <= kMostLeaps && has(id, kBroken | kRedirects); ++steps) {
      broken_.erase(id);
      const auto next = redirects_.find(id);
      if (next == redirects_.end()) break;
      id = next->second;
    }
  }

  Result<void> judge() {
    for (const auto& [id, broken] : broken_) {
      const auto page = record_with_link(store_, broken.url, broken.referrer, kMostLeaps);
      if (!page) return std::unexpected(page.error());
      if (*page && is_read(**page, broken)) unlinked_.insert(id);
    }
    return {};
  }

  // Whether all links of what once had one to `broken` are known as they are now.
  bool is_read(const UrlRecord& record, const Broken& broken) const {
    if (has_lost_links(record)) return true;
    if (record.state != UrlState::done || record.reason == UrlReason::checked) return false;
    // Of the sitemaps and pictures that it lists nothing is stored.
    if (record.reason == UrlReason::sitemap) {
      return record.error.empty() && broken.reason != UrlReason::sitemap && broken.reason != UrlReason::asset;
    }
    const bool is_in_part = record.reason == UrlReason::cut_off || record.reason == UrlReason::links_per_page;
    return !is_in_part && links_.saw(record) && (is_page_answer(record) || assets_.saw(record));
  }

  UrlStore& store_;
  std::span<const StatusRange> accepted_;
  OwnHosts* const hosts_;
  std::int64_t unread_from_ = 1;  // the first URL that read_urls() has not come to
  UnseenPages links_, assets_;
  bool is_unknown_ = false;  // nothing can be said, or there is nothing to say
  std::vector<std::uint8_t> flags_;
  std::vector<std::int64_t> given_;  // those that redirect
  std::unordered_map<std::int64_t, std::int64_t> redirects_;
  std::unordered_map<std::int64_t, Broken> broken_;
  std::unordered_set<std::int64_t> unlinked_;
};

}  // namespace

Result<std::unordered_set<std::int64_t>> find_unlinked(UrlStore& store, std::span<const StatusRange> accepted,
                                                       OwnHosts* hosts) {
  return UnlinkedSearch(store, accepted, hosts).run();
}

}  // namespace argiope
