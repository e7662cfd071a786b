#include "crawl/run/given_desk.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/internal/printable.hpp"
#include "crawl/run/discovery.hpp"

namespace argiope {
namespace {

constexpr std::size_t kGivenAtOnce = 2'000;  // some milliseconds of the loop
constexpr std::uint64_t kMostRemarks = 10;

std::uint32_t depth_of(const GivenUrl& given) noexcept {
  constexpr std::int64_t kMost = 1'000'000'000;  // links from there are deeper still
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(given.depth, 0, kMost));
}

}  // namespace

Crawler::Shard::GivenDesk::GivenDesk(Core& core, Discovery& discovery) : Part(core), discovery_(discovery) {}

bool Crawler::Shard::GivenDesk::awaits_given(TimePoint now) {
  if (core_.index != 0) return false;
  if (shared_.ending.outstanding() > 0) {
    idle_since_.reset();
    return false;
  }
  if (!idle_since_) idle_since_ = now;
  return !looked_in_vain_ || (options_.linger && now - *idle_since_ < *options_.linger);
}

void Crawler::Shard::GivenDesk::take_given(TimePoint now) {
  if (core_.index != 0) return;
  looked_in_vain_ = false;
  // Before the end they are looked for once more.
  const bool idle = shared_.ending.outstanding() == 0;
  if ((!idle && now < next_given_) || shared_.ending.stopping()) return;
  if (!shared_.store.flushed(given_flush_)) return;  // those that were taken may still be there
  next_given_ = saturating_add(now, options_.schedule_interval);
  auto given = shared_.store.read_given(kGivenAtOnce);
  if (!given) {
    spdlog::error("{}", given.error().message);
    return shared_.ending.stop("store", true);
  }
  if (given->empty()) {
    looked_in_vain_ = idle;
    return;
  }
  if (given->size() == kGivenAtOnce) next_given_ = now;  // there may be more
  if (std::ranges::any_of(*given, [](const GivenUrl& url) { return url.again != 0; }) && !has_seen_all()) {
    next_given_ = now;
    return;
  }
  UrlBatch batch;
  for (const GivenUrl& url : *given) {
    batch.taken.push_back(url.number);
    url.again != 0 ? take_one_again(url, batch) : take_one_given(url, batch);
  }
  shared_.store.submit(std::move(batch));
  given_flush_ = shared_.store.begin_flush();
  discovery_.hand_out(now);
}

// URLs that are asked for again are judged by what is stored of them.
bool Crawler::Shard::GivenDesk::has_seen_all() {
  if (!again_flush_) again_flush_ = shared_.store.begin_flush();
  if (!shared_.store.flushed(*again_flush_)) return false;
  again_flush_.reset();
  return true;
}

void Crawler::Shard::GivenDesk::take_one_again(const GivenUrl& given, UrlBatch& batch) {
  const auto record = shared_.store.get(given.again);
  if (!record || !*record || (*record)->url != given.url) {
    if (shared_.given.skipped.fetch_add(1) < kMostRemarks) {
      spdlog::warn("inbox: {}: not the URL with url_id {}; skipped", in_quotes(without_credentials(given.url)),
                   given.again);
    }
    return;
  }
  const auto is_it = [&](const UrlOutcome& outcome) { return outcome.url_id == given.again; };
  auto anew = std::ranges::any_of(batch.outcomes, is_it) ? std::nullopt : shared_.begin_anew(**record);
  if (!anew) {
    shared_.given.known.fetch_add(1);
    return;
  }
  batch.outcomes.push_back(std::move(anew->outcome));
  if (!anew->task) {
    shared_.given.left_out.fetch_add(1);
    return;
  }
  shared_.given.taken.fetch_add(1);
  discovery_.queue(std::move(*anew->task));
}

// As discover() does with a link, but that no page has it.
void Crawler::Shard::GivenDesk::take_one_given(const GivenUrl& given, UrlBatch& batch) {
  auto url = Url::parse(given.url);
  if (!url || (url->scheme() != "http" && url->scheme() != "https")) {
    if (shared_.given.skipped.fetch_add(1) < kMostRemarks) {
      spdlog::warn("inbox: {}: {}; skipped", in_quotes(without_credentials(given.url)),
                   url ? "only http and https can be crawled" : url.error().message);
    }
    return;
  }
  url->strip_fragment();
  url->strip_credentials();
  const std::uint32_t depth = depth_of(given);
  const Exclusion place = shared_.place_of(url->href(), depth);
  UrlTask task;
  task.fingerprint = shared_.fingerprint_of(url->href());
  const auto claimed = shared_.seen.claim(task.fingerprint);
  const std::int32_t priority = crawl_priority(options_, depth, url->href());
  if (!claimed.is_new) {
    discovery_.come_nearer(claimed.id, *url, depth, batch);
    shared_.note_settled();  // what it leads to may be near enough now, though nothing else is fetched
    shared_.given.known.fetch_add(1);
    return;
  }
  const UrlReason reason = reason_of(place);
  batch.discovered.push_back({claimed.id, url->href(), depth, priority, 0, wall(), reason});
  if (place != Exclusion::none) {
    count(place);
    shared_.count_left_out(reason);
    if (shared_.given.left_out.fetch_add(1) < kMostRemarks) {
      spdlog::warn("inbox: {}: left out ({})", in_quotes(url->href()), to_string(place));
    }
    return;
  }
  shared_.given.taken.fetch_add(1);
  task.id = claimed.id;
  task.url = std::move(*url);
  task.depth = depth;
  shared_.ending.begin(1);
  discovery_.queue(std::move(task));
}

}  // namespace argiope
