// Pages and links that lead to what the crawl has in another place. Nothing here runs in a crawl that was asked for none of it.
#include <algorithm>
#include <utility>

#include "crawl/duplicates/duplicate_book.hpp"
#include "crawl/page/canonical_field.hpp"
#include "crawl/run/shard.hpp"

namespace argiope {
// Whether another page is read in place of the one that the harvester has scanned: its links are not followed then. What it
// teaches of its parameters, and of the shape of its URL, is noted.
bool Crawler::Shard::is_copy(Visit& visit, UrlBatch& batch) {
  if (batch.outcomes.front().reason != UrlReason::none || visit.response.truncated) return false;
  const DuplicateOptions& wanted = options_.duplicates;
  if (wanted.canonical && is_alias(visit, batch)) return true;
  if (wanted.compares_words() || wanted.learn_parameters) said_ = words_.read(harvester_.html());
  if (wanted.learn_parameters && said_->count >= kFewWords) learn_parameters(visit, batch);
  const auto [reason, other] = find_copy(visit, batch);
  // A copy that is fetched again makes no row of copies.
  const bool counts = other == 0 || !task_of(visit).settled;
  if (auto trap = counts ? shared_.duplicates->watch(task_of(visit).url, other != 0) : std::nullopt) batch.notes.push_back(std::move(*trap));
  if (reason == UrlReason::duplicate && wanted.skip_exact) return note_copy(batch, Exclusion::duplicate, other), true;
  if (reason == UrlReason::near_duplicate && wanted.skip_near) return note_copy(batch, Exclusion::near_duplicate, other), true;
  return false;
}

void Crawler::Shard::note_copy(UrlBatch& batch, Exclusion why, std::int64_t other) {
  UrlOutcome& outcome = batch.outcomes.front();
  outcome.reason = reason_of(why);
  outcome.limit = other;
  count(why);
  shared_.count_left_out(outcome.reason);
}

bool Crawler::Shard::is_alias(Visit& visit, UrlBatch& batch) {
  const UrlTask& task = task_of(visit);
  if (!harvester_.find_canonical(visit.request.url, canonical_field(visit.request.url, visit.response), other_url_)) return false;
  if (other_url_.href() == task.url || (other_url_.scheme() != "http" && other_url_.scheme() != "https")) return false;
  if (shared_.place_of(other_url_.href(), task.depth + 1) != Exclusion::none || is_in_trap(other_url_.href())) return false;
  const Host& host = *visit.ticket.host;
  const bool is_forbidden = host.robots && other_url_.site_key() == host.site && !host.robots->allowed(other_url_.path_and_query());
  if (is_forbidden) return false;
  discover(task, other_url_, task.depth + 1, false, batch);
  const std::int64_t canonical = shared_.seen.id_of(shared_.fingerprint_of(other_url_.href()));
  if (canonical == 0 || !shared_.duplicates->add_alias(task.id, canonical)) return false;
  note_copy(batch, Exclusion::alias, canonical);
  return true;
}

DuplicateBook::Copy Crawler::Shard::find_copy(const Visit& visit, const UrlBatch& batch) {
  const DuplicateOptions& wanted = options_.duplicates;
  const std::string& digest = batch.outcomes.front().digest;
  if (digest.empty() || !(wanted.skip_exact || wanted.compares_words())) return {};
  const std::string& site = visit.ticket.host->site;
  DuplicateBook::Content content{.page = {task_of(visit).id, task_of(visit).depth}, .bytes = content_key(digest, site)};
  if (said_ && said_->count >= kFewWords) content.simhash = said_->simhash;
  if (visit.before && !visit.before->digest.empty()) content.bytes_before = content_key(visit.before->digest, site);
  return shared_.duplicates->find_copy(content, site);
}

void Crawler::Shard::learn_parameters(const Visit& visit, UrlBatch& batch) {
  auto notes = shared_.duplicates->learn(task_of(visit).url, visit.ticket.host->site, said_->digest);
  std::ranges::move(notes, std::back_inserter(batch.notes));
}

// A URL given is followed whatever it is like.
bool Crawler::Shard::is_in_trap(std::string_view href) const {
  return shared_.duplicates->is_trap(href) && !shared_.scope.is_seed(href) && shared_.duplicates->leave_out(href);
}

// Follows the link without parameters that say nothing of its page. The first such link to a URL is stored, for runs that follow
// it as it is. False: it has none, or is to be followed as it is.
bool Crawler::Shard::discover_stripped(const UrlTask& from, const Url& url, UrlBatch& batch) {
  if (!shared_.duplicates->strip(url, other_url_) || shared_.place_of(url.href(), 0) == Exclusion::off_scope ||
      shared_.scope.is_seed(url.href())) {
    return false;
  }
  count(Exclusion::parameter);
  if (shared_.duplicates->is_first_variant(shared_.fingerprint_of(other_url_.href()))) {
    const auto [is_new, id] = shared_.seen.claim(shared_.fingerprint_of(url.href()));
    if (is_new) {
      const std::uint32_t depth = from.depth + 1;
      batch.discovered.push_back({id, std::string(url.href()), depth, crawl_priority(options_, depth, url.href()),
                                  from.id, wall(), UrlReason::parameter});
      shared_.count_left_out(UrlReason::parameter);
    }
  }
  discover(from, other_url_, from.depth + 1, false, batch);
  return true;
}

}  // namespace argiope
