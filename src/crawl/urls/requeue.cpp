#include "crawl/urls/internal/requeue.hpp"

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "store/urls/internal/url_inbox.hpp"

namespace argiope {
namespace {

// Excluded by what its server said, or for want of room: another look may end otherwise. All else follows from the URL
// and the options, and a run whose options let it in takes it up by itself.
bool is_worth_another_look(UrlReason reason) noexcept {
  return reason == UrlReason::robots || reason == UrlReason::pages_per_host || reason == UrlReason::content_type;
}

}  // namespace

UrlOutcome queued_anew(const UrlRecord& record) {
  UrlOutcome outcome;
  outcome.url_id = record.url_id;
  outcome.state = UrlState::queued;
  outcome.mtime = record.mtime;
  // Facts to compare the next answer with; without etag and last_modified nobody asks whether they still hold.
  if (!is_redirect_to_nowhere(record)) {
    outcome.status_code = record.status_code;
    outcome.content_type = record.content_type;
    outcome.size = record.size;
    outcome.redirect_to = record.redirect_to;
    outcome.digest = record.digest;
  }
  const bool only_checked = record.reason == UrlReason::checked || record.reason == UrlReason::asset ||
                            record.reason == UrlReason::requisite || record.reason == UrlReason::sitemap;
  if (only_checked) outcome.reason = record.reason;
  return outcome;
}

std::optional<UrlOutcome> requeued(const UrlRecord& record) {
  if (record.state == UrlState::excluded && !is_worth_another_look(record.reason)) return std::nullopt;
  if (record.state == UrlState::queued && record.attempts == 0 && record.due == WallTime{}) return std::nullopt;
  return queued_anew(record);
}

namespace {

using RequeueVisitor = std::function<Result<void>(std::span<const UrlRecord>)>;

// Those that match and may be fetched again, at most `most`; the others are counted.
Result<RequeueCounts> visit_requeued(UrlStore& store, const UrlMatcher& matches, std::uint64_t most,
                                     const RequeueVisitor& visit) {
  RequeueCounts counts;
  std::vector<UrlRecord> taken;
  auto visited = visit_matching(store, matches, 0, [&](std::span<const UrlRecord> found) -> Result<bool> {
    taken.clear();
    for (const UrlRecord& record : found) {
      if (!requeued(record)) {
        ++(record.state == UrlState::queued ? counts.waiting : counts.left);
        continue;
      }
      if (counts.queued == most) break;
      ++counts.queued;
      taken.push_back(record);
    }
    if (!taken.empty()) {
      if (auto done = visit(taken); !done) return std::unexpected(std::move(done.error()));
    }
    return counts.queued < most;
  });
  if (!visited) return std::unexpected(std::move(visited.error()));
  return counts;
}

}  // namespace

Result<RequeueCounts> requeue_matching(UrlStore& store, const UrlMatcher& matches, std::uint64_t most, bool dry_run) {
  return visit_requeued(store, matches, most, [&](std::span<const UrlRecord> found) -> Result<void> {
    if (dry_run) return {};
    UrlBatch batch;
    for (const UrlRecord& record : found) batch.outcomes.push_back(*requeued(record));
    store.submit(std::move(batch));
    return store.flush();
  });
}

Result<RequeueCounts> requeue_by_inbox(UrlStore& store, const std::string& path, const UrlMatcher& matches,
                                       std::uint64_t most) {
  std::uint64_t tried = 0;
  auto counts = visit_requeued(store, matches, most, [&](std::span<const UrlRecord> found) -> Result<void> {
    std::vector<GivenUrl> given;
    for (const UrlRecord& record : found) {
      // The crawl has it, and knows when to try again.
      if (record.state == UrlState::queued) {
        ++tried;
        continue;
      }
      given.push_back({.url = record.url, .depth = record.depth, .again = record.url_id});
    }
    return given.empty() ? Result<void>{} : put_into_inbox(path, given);
  });
  if (!counts) return counts;
  counts->queued -= tried;
  counts->waiting += tried;
  return counts;
}

}  // namespace argiope
