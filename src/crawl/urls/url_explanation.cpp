#include "crawl/urls/internal/url_explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "argiope/web/http_client.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/rfc3339.hpp"
#include "crawl/hosts/host_rests.hpp"
#include "crawl/options/internal/host_rules.hpp"
#include "crawl/scope/failure_rest.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostSteps = 50;
constexpr std::size_t kMostLinking = 10;
constexpr std::size_t kMostHopsShown = 20;
constexpr std::string_view kNotAsked = "not asked: ";

std::string reason_sentence(const UrlRecord& url) {
  std::string words(words_of(url.reason).what);
  if (words.empty()) words = url.error.empty() ? std::string(to_string(url.reason)) : url.error;
  if (url.reason == UrlReason::depth) words += fmt::format(": it is {} away", counted(url.depth, "link"));
  const bool names_page =
      url.reason == UrlReason::duplicate || url.reason == UrlReason::near_duplicate || url.reason == UrlReason::alias;
  if (url.reason == UrlReason::url_length) words += fmt::format(": it has {} bytes", url.url.size());
  if (url.reason == UrlReason::content_type && !url.content_type.empty()) words += ": " + url.content_type;
  if (url.limit > 0) words += fmt::format(" ({} {})", names_page ? "url_id" : "the limit was", url.limit);
  return words;
}

std::string sentence_on(const UrlRecord& url, WallTime now) {
  const std::string attempts = counted(url.attempts, "attempt");
  const std::string why = url.error.empty() ? std::string() : ": " + url.error;
  switch (url.state) {
    case UrlState::queued:
      if (url.due > now) return fmt::format("is not due until {}, after {}{}", to_rfc3339(url.due), attempts, why);
      if (url.error.starts_with(kNotAsked)) return fmt::format("was {}; it waits for the next run", url.error);
      if (url.attempts > 0) return fmt::format("waits to be tried again, after {}{}", attempts, why);
      return url.reason == UrlReason::checked || url.reason == UrlReason::asset ? "waits to be checked"
                                                                                : "waits to be fetched";
    case UrlState::done: {
      std::string text =
          fmt::format("was {} {}, with status {}", url.reason == UrlReason::checked ? "checked" : "fetched",
                      to_rfc3339(url.mtime), url.status_code);
      if (!url.redirect_to.empty()) text += ", and leads to " + url.redirect_to;
      if (url.reason != UrlReason::none && url.reason != UrlReason::checked) text += "; " + reason_sentence(url);
      return text + why;
    }
    case UrlState::failed:
      if (url.reason == UrlReason::host_down) return "was not asked, because its host did not answer";
      return fmt::format("was given up {} after {}{}", to_rfc3339(url.mtime), attempts, why);
    case UrlState::excluded: return "is excluded: " + reason_sentence(url);
  }
  return {};
}

std::string advice_on(const UrlRecord& url) {
  if (url.state == UrlState::failed) {
    const WallTime rests = rests_until(url);
    if (rests == WallTime{}) return "the next run tries again";
    return fmt::format("the next run tries again; one with a limit (--max-pages, --quota, --max-time) not before {}",
                       to_rfc3339(rests));
  }
  if (url.state == UrlState::queued) return "argiope crawl goes on with it, if it is in the run's scope";
  if (url.state == UrlState::done && url.reason == UrlReason::none) {
    return is_broken(url) ? "--requeue broken, or argiope crawl requeue, asks again" : "";
  }
  return std::string(words_of(url.reason).advice);
}

Result<std::int64_t> find_in(UrlStore& store, std::string_view href) {
  std::int64_t found = 0;
  auto scanned = store.scan(
      1,
      [&](const UrlRecord& record) {
        if (record.url == href) found = record.url_id;
        return found == 0;
      },
      UrlStore::Fields::to_go_on);
  if (!scanned) return std::unexpected(std::move(scanned.error()));
  return found;
}

// Where redirects lead, hop by hop: the last one named may be unknown yet.
class RedirectWay {
 public:
  RedirectWay(std::string_view from, std::vector<std::string>& hops) : from_(from), hops_(hops) {}

  // The URL, or the last hop, whose id is given, redirects there; or does not.
  void take(std::int64_t id, const std::string& target) {
    last_id_ = id;
    const bool is_new = !target.empty() && target != from_ && std::ranges::find(hops_, target) == hops_.end();
    is_open_ = is_new && hops_.size() < kMostHopsShown;
    if (!is_open_) return;
    hops_.push_back(target);
    last_id_ = 0;
  }
  bool leads_to(std::string_view url) const { return is_open_ && hops_.back() == url; }
  bool is_open() const noexcept { return is_open_; }
  const std::string& last() const { return hops_.back(); }
  // 0: the store does not know it.
  std::int64_t last_id() const noexcept { return hops_.empty() ? 0 : last_id_; }

 private:
  const std::string from_;
  std::vector<std::string>& hops_;
  std::int64_t last_id_ = 0;
  bool is_open_ = false;
};

// One look at the table: the URL, how its host does, and where its redirects lead.
class TableLook {
 public:
  TableLook(std::string_view href, UrlExplanation& out) : href_(href), out_(out), way_(href, out.leads_to) {}

  Result<void> read(UrlStore& store) {
    auto scanned = store.scan(
        1,
        [&](const UrlRecord& record) {
          see(record);
          return true;
        },
        UrlStore::Fields::to_go_on);
    if (!scanned || !url_) return scanned;
    if (url_->state == UrlState::queued) scanned = count_older(store);
    if (scanned) scanned = follow_back(store);
    return scanned ? note_host_error(store) : scanned;
  }

  std::int64_t url_id() const noexcept { return url_ ? url_->url_id : 0; }
  // Of the last URL that its redirects lead to; 0: there is none, or it is not known.
  std::int64_t end_id() const noexcept { return way_.last_id(); }

 private:
  bool is_of_site(const UrlRecord& record) const {
    return record.url.starts_with(out_.site) && site_in(record.url) == out_.site;
  }

  void see(const UrlRecord& record) {
    if (!url_ && record.url == href_) {
      url_ = record;
      way_.take(record.url_id, record.redirect_to);
    } else if (way_.leads_to(record.url)) {
      way_.take(record.url_id, record.redirect_to);
    }
    if (!is_of_site(record)) return;
    switch (record.state) {
      case UrlState::queued: ++out_.queued; break;
      case UrlState::done: ++out_.done; break;
      case UrlState::failed: ++out_.failed; break;
      case UrlState::excluded: ++out_.excluded; break;
    }
    out_.host_last_fetched = std::max(out_.host_last_fetched, record.mtime);
    if (record.state != UrlState::queued) return;
    not_asked_ = record.url_id;  // perhaps; what it says is read below
    if (url_) count_if_before(record);
  }

  void count_if_before(const UrlRecord& record) {
    if (url_->state != UrlState::queued || record.url_id == url_->url_id) return;
    const bool before =
        record.priority != url_->priority ? record.priority > url_->priority : record.url_id < url_->url_id;
    if (before && record.due <= url_->due) ++out_.ahead;
  }

  // Those that were met before the URL had been.
  Result<void> count_older(UrlStore& store) {
    return store.scan(
        1,
        [&](const UrlRecord& record) {
          if (record.url_id >= url_->url_id) return false;
          if (record.state == UrlState::queued && is_of_site(record)) count_if_before(record);
          return true;
        },
        UrlStore::Fields::to_go_on);
  }

  // Targets that were known before what redirects there have to be looked for.
  Result<void> follow_back(UrlStore& store) {
    while (way_.is_open()) {
      const auto id = find_in(store, way_.last());
      if (!id) return std::unexpected(id.error());
      if (*id == 0) return {};
      auto record = store.get(*id);
      if (!record) return std::unexpected(std::move(record.error()));
      way_.take(*id, *record ? (*record)->redirect_to : std::string{});
    }
    return {};
  }

  Result<void> note_host_error(UrlStore& store) {
    if (not_asked_ == 0) return {};
    const auto one = store.get(not_asked_);
    if (!one) return std::unexpected(one.error());
    if (*one && (*one)->error.starts_with(kNotAsked)) out_.host_error = (*one)->error.substr(kNotAsked.size());
    return {};
  }

  const std::string href_;
  UrlExplanation& out_;
  RedirectWay way_;
  std::optional<UrlRecord> url_;  // as scan() gives it
  std::int64_t not_asked_ = 0;
};

// A redirect comes to what its last target comes to.
Result<void> note_end(UrlStore& store, std::int64_t last, WallTime now, UrlExplanation& out) {
  if (last == 0) return {};
  auto record = store.get(last);
  if (!record) return std::unexpected(std::move(record.error()));
  if (!*record) return {};
  out.end = sentence_on(**record, now);
  if (out.advice.empty()) out.advice = advice_on(**record);
  return {};
}

Result<void> trace_way(UrlStore& store, UrlExplanation& out) {
  std::vector<UrlExplanation::Step> back{{out.record.url, false}};
  std::vector<std::int64_t> seen{out.record.url_id};
  std::int64_t from = out.record.referrer;
  while (from != 0) {
    // Records of several runs may lead round in a circle.
    if (back.size() >= kMostSteps || std::ranges::find(seen, from) != seen.end()) {
      out.whole_way = false;
      break;
    }
    seen.push_back(from);
    auto page = store.get(from);
    if (!page) return std::unexpected(std::move(page.error()));
    if (!*page) break;
    back.back().redirected = (*page)->redirect_to == back.back().url;
    back.push_back({(*page)->url, false});
    from = (*page)->referrer;
  }
  std::ranges::reverse(back);
  out.way = std::move(back);
  return {};
}

// No URL of a host that rests is asked.
Result<void> note_rest(UrlStore& store, WallTime now, UrlExplanation& out) {
  auto rest = HostRests::find(store, out.site);
  if (!rest) return std::unexpected(std::move(rest.error()));
  if (!*rest || (*rest)->until <= now) return {};
  out.host_rests_until = (*rest)->until;
  out.host_rests_for = to_string((*rest)->why);
  if (out.record.state == UrlState::done || out.record.state == UrlState::excluded) return {};
  out.what += fmt::format("; its host rests until {}: {}", to_rfc3339((*rest)->until), words_of((*rest)->why));
  return {};
}

Result<void> find_links(UrlStore& store, UrlExplanation& out) {
  std::vector<std::int64_t> pages;
  auto scanned = store.scan_links([&](const UrlLinks& links) {
    out.knows_links = true;
    if (!std::ranges::binary_search(links.targets, out.record.url_id)) return true;
    if (pages.size() == kMostLinking) out.more_links = true;
    if (!out.more_links) pages.push_back(links.url_id);
    return !out.more_links;
  });
  if (!scanned) return scanned;
  if (pages.empty() && out.record.referrer != 0) pages.push_back(out.record.referrer);
  for (const std::int64_t id : pages) {
    auto page = store.get(id);
    if (!page) return std::unexpected(std::move(page.error()));
    if (!*page) continue;
    UrlExplanation::LinkingPage& one = out.linked_from.emplace_back();
    one.url = (*page)->url;
    one.redirects = (*page)->redirect_to == out.record.url;
    auto kept = store.scan_kept_links(id, [&](std::int64_t, std::uint32_t, const KeptLink& link) {
      if (link.target != out.record.url_id) return true;
      one.text = link.text;
      one.line = link.line;
      return false;
    });
    if (!kept) return kept;
  }
  return {};
}

}  // namespace

ReasonWords words_of(UrlReason reason) noexcept {
  switch (reason) {
    case UrlReason::off_scope: return {"it is out of the crawl's scope", "--whitelist or --domain takes its host in"};
    case UrlReason::robots:
      return {"robots.txt forbids it", "the next run reads robots.txt again; --no-robots does without"};
    case UrlReason::depth: return {"it is farther from a seed than --max-depth", "a larger --max-depth takes it up"};
    case UrlReason::url_length: return {"it is longer than --max-url-length", "a larger --max-url-length takes it up"};
    case UrlReason::repeated_segment:
      return {"its path repeats itself, as that of an endless site", "a larger --max-segment-repeats takes it up"};
    case UrlReason::pages_per_host:
      return {"its host had as many URLs as one may have", "a larger --max-pages-per-host takes it up"};
    case UrlReason::exclude: return {"it fits an --exclude", "a run without that pattern takes it up"};
    case UrlReason::include: return {"it fits no --include", "a run with a wider --include takes it up"};
    case UrlReason::path_prefix:
      return {"its path begins otherwise than --path-prefix", "a run without it takes it up"};
    case UrlReason::parent: return {"it is outside of the seeds' folders", "a run without --no-parent takes it up"};
    case UrlReason::extension: return {"its name ends as it must not", "--accept-ext and --reject-ext decide that"};
    case UrlReason::content_type: return {"its answer is of a type that is not accepted", "--accept-type decides that"};
    case UrlReason::checked:
      return {"it is out of scope, and was only checked", "--whitelist or --domain takes its host in"};
    case UrlReason::cut_off: return {"its body was cut off", "a larger --size-limit-kb fetches it whole"};
    case UrlReason::links_per_page:
      return {"only the first of its links were followed", "a larger --max-links-per-page follows more"};
    case UrlReason::redirects: return {"it is one redirect too many", ""};
    case UrlReason::host_down: return {"its host did not answer", "the next run tries again"};
    case UrlReason::asset: return {"only pages' pictures, styles and the like lead there", "--check-links asks it"};
    case UrlReason::requisite: return {"pages are shown with it, and no link makes it one", "--save fetches it"};
    case UrlReason::sitemap:
      return {"it is a sitemap or feed, and no page", "--sitemaps, --feeds and --sitemap read it"};
    case UrlReason::parameter:
      return {"it is followed without some of its parameters",
              "a run without --strip-parameters or --learn-parameters takes it up"};
    case UrlReason::duplicate:
      return {"another page has the same content", "a run without --skip-duplicates follows its links"};
    case UrlReason::near_duplicate:
      return {"another page has nearly the same words", "a run without --skip-duplicates near follows its links"};
    case UrlReason::alias:
      return {"it names another page as its canonical one", "a run without --canonical follows its links"};
    case UrlReason::trap: return {"the pages of URLs like it were all copies", "a run without --traps takes it up"};
    case UrlReason::logout: return {"it reads as if it logged out", "an --include that names it takes it up"};
    default: return {};
  }
}

Result<std::optional<UrlExplanation>> explain_url(UrlStore& store, const Url& url, WallTime now) {
  UrlExplanation out;
  out.site = site_in(url.href());
  TableLook look(url.href(), out);
  Result<void> looked = look.read(store);
  if (!looked) return std::unexpected(std::move(looked.error()));
  if (look.url_id() == 0) return std::nullopt;
  auto record = store.get(look.url_id());
  if (!record) return std::unexpected(std::move(record.error()));
  if (!*record) return std::nullopt;
  out.record = std::move(**record);
  out.what = sentence_on(out.record, now);
  out.advice = advice_on(out.record);
  looked = note_end(store, look.end_id(), now, out);
  if (looked) looked = trace_way(store, out);
  if (looked) looked = note_rest(store, now, out);
  if (looked) looked = find_links(store, out);
  if (!looked) return std::unexpected(std::move(looked.error()));
  return std::optional(std::move(out));
}

}  // namespace argiope
