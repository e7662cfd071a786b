#include "crawl/duplicates/internal/duplicate_pages.hpp"

#include <fmt/format.h>

#include <boost/unordered/unordered_flat_map.hpp>
#include <charconv>

#include "argiope/crawl/crawl_options.hpp"
#include "argiope/web/http_client.hpp"
#include "base/internal/fingerprint.hpp"
#include "crawl/duplicates/simhash_index.hpp"
#include "crawl/options/internal/host_rules.hpp"
#include "crawl/page/find_note.hpp"
#include "web/html/internal/page_words.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {
namespace {

constexpr std::string_view kNearDistanceNote = "near_distance";

class CopyFinder {
 public:
  CopyFinder(UrlStore& store, unsigned distance) : store_(store), index_(distance) {}

  Result<DuplicatePages> find() {
    auto read = store_.scan_facts([this](const PageFacts& facts) {
      note_facts(facts);
      return true;
    });
    if (!read) return std::unexpected(std::move(read.error()));
    read = store_.scan(1, [this](const UrlRecord& record) {
      note_record(record);
      return true;
    });
    if (!read) return std::unexpected(std::move(read.error()));
    if (auto judged = judge_canonicals(); !judged) return std::unexpected(std::move(judged.error()));
    return std::move(found_);
  }

 private:
  struct Page {
    std::uint64_t simhash = 0;
    std::uint64_t canonical = 0;  // fingerprint; 0: none
    std::uint32_t words = 0;
    bool noindex = false;
  };
  // A URL that some page names as canonical, as far as it is known.
  struct Named {
    std::int64_t id = 0;
    UrlState state = UrlState::queued;
    UrlReason reason = UrlReason::none;
    int status = 0;
  };

  void note_facts(const PageFacts& facts) {
    const std::uint64_t canonical = facts.canonical.empty() ? 0 : fingerprint(facts.canonical);
    if (facts.words < kFewWords && canonical == 0 && !facts.noindex) return;
    pages_[facts.url_id] = {facts.simhash, canonical, facts.words, facts.noindex};
    if (canonical != 0) named_.try_emplace(canonical);
  }

  void note_record(const UrlRecord& record) {
    const std::uint64_t url = fingerprint(record.url);
    if (const auto named = named_.find(url); named != named_.end()) {
      named->second = {record.url_id, record.state, record.reason, record.status_code};
    }
    const auto page = pages_.find(record.url_id);
    if (page != pages_.end() && page->second.canonical == url) page->second.canonical = 0;  // itself
    const bool is_page = record.state == UrlState::done && record.status_code == 200 && !record.digest.empty() &&
                         (record.content_type.empty() || is_html(record.content_type)) &&
                         record.reason != UrlReason::checked && record.reason != UrlReason::asset;
    if (!is_page) return;
    if (page != pages_.end() && page->second.canonical != 0) naming_.push_back(record.url_id);
    const auto [first, is_new] = contents_.try_emplace(fingerprint(record.digest), record.url_id);
    if (!is_new) {
      found_.exact.push_back({record.url_id, first->second, 0});
    } else if (page != pages_.end() && page->second.words >= kFewWords) {
      note_words(record, page->second.simhash);
    }
  }

  void note_words(const UrlRecord& record, std::uint64_t simhash) {
    const auto site = static_cast<std::uint32_t>(fingerprint(site_in(record.url)));
    if (const auto match = index_.find(simhash, site)) {
      found_.near.push_back({record.url_id, static_cast<std::int64_t>(match->value), match->distance});
    } else {
      index_.add(simhash, site, static_cast<std::uint64_t>(record.url_id));
    }
  }

  Result<void> judge_canonicals() {
    for (const std::int64_t id : naming_) {
      const auto facts = store_.facts(id);
      if (!facts) return std::unexpected(facts.error());
      const auto record = store_.get(id);
      if (!record) return std::unexpected(record.error());
      if (!*facts || !*record) continue;
      std::string what = trouble_with((*facts)->canonical, (*record)->url);
      if (!what.empty()) found_.conflicts.push_back({id, (*facts)->canonical, std::move(what)});
    }
    return {};
  }

  std::string trouble_with(const std::string& canonical, const std::string& page) const {
    if (site_in(canonical) != site_in(page)) return "is on another host";
    const Named& named = named_.at(fingerprint(canonical));
    if (named.id == 0) return "was not found by the crawl";
    switch (named.state) {
      case UrlState::queued: return "was not asked yet";
      case UrlState::failed: return "does not answer";
      case UrlState::excluded: return fmt::format("is excluded: {}", to_string(named.reason));
      case UrlState::done: break;
    }
    if (is_redirect(named.status)) return "is a redirect";
    if (named.status != 200) return fmt::format("answers with {}", named.status);
    const auto head = pages_.find(named.id);
    if (head == pages_.end()) return {};
    if (head->second.noindex) return "asks not to be indexed";
    return head->second.canonical != 0 ? "names another as canonical" : "";
  }

  UrlStore& store_;
  SimhashIndex index_;
  DuplicatePages found_;
  boost::unordered_flat_map<std::int64_t, Page> pages_;
  boost::unordered_flat_map<std::uint64_t, Named> named_;
  boost::unordered_flat_map<std::uint64_t, std::int64_t> contents_;
  std::vector<std::int64_t> naming_;  // pages with another canonical URL
};

}  // namespace

Result<DuplicatePages> find_duplicate_pages(UrlStore& store) {
  unsigned distance = DuplicateOptions{}.near_distance;  // of crawls of earlier versions
  const auto text = find_note(store, kNearDistanceNote);
  if (!text) return std::unexpected(text.error());
  if (*text) {
    unsigned noted = 0;
    const auto [end, error] = std::from_chars((*text)->data(), (*text)->data() + (*text)->size(), noted);
    if (error == std::errc{} && noted <= SimhashIndex::kMostDistance) distance = noted;
  }
  return CopyFinder(store, distance).find();
}

UrlNote near_distance_note(unsigned distance) { return {std::string(kNearDistanceNote), std::to_string(distance)}; }

}  // namespace argiope
