#include "crawl/run/shared.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "argiope/web/http_client.hpp"
#include "base/internal/printable.hpp"
#include "crawl/duplicates/internal/duplicate_pages.hpp"
#include "crawl/run/shard.hpp"
#include "crawl/scope/failure_rest.hpp"
#include "crawl/scope/internal/accepted_status.hpp"
#include "crawl/scope/internal/own_hosts.hpp"
#include "crawl/scope/internal/unlinked_urls.hpp"
#include "crawl/scope/linking_page.hpp"
#include "crawl/scope/redirect_loops.hpp"
#include "crawl/scope/url_change.hpp"
#include "crawl/urls/internal/requeue.hpp"
#include "web/html/internal/page_words.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMovesAtOnce = 50'000;
constexpr std::size_t kTakenUpAtOnce = 50'000;
constexpr Duration kLongestWait =
    std::chrono::hours{48};                               // of what is tried again: no Retry-After is longer than a day
constexpr Duration kLookPause = std::chrono::minutes{1};  // between two looks for more in a crawl that goes on
// Left out because of where the URL stands: not any more, once a seed redirects to it, or to its host or folder.
constexpr UrlReason kReasonsOfPlace[] = {UrlReason::off_scope, UrlReason::depth,   UrlReason::url_length,
                                         UrlReason::exclude,   UrlReason::include, UrlReason::repeated_segment,
                                         UrlReason::extension, UrlReason::parent,  UrlReason::path_prefix,
                                         UrlReason::logout};

// Pages are read for their links, whatever else is.
CrawlOptions with_pages_accepted(CrawlOptions options) {
  if (options.accept_types.empty()) return options;
  options.accept_types.insert(options.accept_types.end(), {"text/html", "application/xhtml+xml"});
  return options;
}

// Whether it may stay on its shelf: what was fetched is not on that of what is delayed, but where it is to be fetched
// again and again.
bool waits_for_its_turn(const UrlRecord& record, const CrawlOptions& options) noexcept {
  return record.shelf != Shelf::delayed || record.state == UrlState::queued || options.forever;
}

Purpose purpose_of(const UrlRecord& record, UrlWork work) noexcept {
  if (record.reason == UrlReason::sitemap) return Purpose::sitemap;
  const bool is_requisite = record.reason == UrlReason::requisite;
  if (work != UrlWork::check) return is_requisite ? Purpose::requisite : Purpose::page;
  return is_requisite ? Purpose::part : record.reason == UrlReason::asset ? Purpose::asset : Purpose::link;
}

// The record that the store has once the URL is queued anew.
UrlRecord as_queued(UrlRecord record, const UrlOutcome& outcome) {
  record.state = UrlState::queued;
  record.reason = outcome.reason;
  record.shelf.reset();
  record.attempts = 0;
  record.due = WallTime{};
  record.limit = outcome.limit;
  return record;
}

}  // namespace

Crawler::Shared::Shared(CrawlOptions crawl_options, UrlStore& url_store, std::uint64_t random_seed,
                        std::size_t shard_count)
    : options(with_pages_accepted(std::move(crawl_options))),
      demands(options),
      duplicates(options.duplicates.is_used() ? std::make_unique<DuplicateBook>(options, random_seed) : nullptr),
      store(url_store),
      seed(random_seed),
      seen(random_seed, keeps_ids),
      scope(options),
      addresses(options.per_address),
      session(options, random_seed) {
  if (options.seeds.empty()) throw std::invalid_argument("a crawl needs a seed");
  if (shard_count == 0) throw std::invalid_argument("a crawl needs a shard");
  if (options.forever && !options.age && !options.adaptive) {
    throw std::invalid_argument("a crawl that goes on needs an age, or intervals");
  }
  if (options.login && !options.cookies) throw std::invalid_argument("a login needs cookies");
  if (options.renderer && shard_count > 1) throw std::invalid_argument("a crawl that renders pages has one shard");
  if (auto only = UrlPatterns::compile(options.render_only); !only) throw std::invalid_argument(only.error().message);
  shards.reserve(shard_count);
  for (std::size_t i = 0; i < shard_count; ++i) shards.push_back(std::make_unique<Shard>(*this, i, shard_count));
}

Crawler::Shared::~Shared() = default;

// --- opening ---------------------------------------------------------------------------------------------------

Result<void> Crawler::Shared::open(WallTime now) {
  // As the store keeps times: what is fetched within this millisecond is not from before.
  opened_at_ = std::chrono::floor<std::chrono::milliseconds>(now);
  if (options.check_age) recheck_before_ = now - *options.check_age;
  seen.begin_at(store.next_id());
  if (auto begun = begin_run(opened_at_); !begun) return begun;
  if (options.age) refetch_before_ = now - *options.age;
  if (limits_depth && seen.first_new_id() > 1) {
    if (auto shortened = shorten_depths(); !shortened) return shortened;
  }
  if (auto loaded = session.load(store, now); !loaded) return loaded;
  if (options.heed_crawl_delay) {
    if (auto loaded = host_rests.load(store, now); !loaded) return loaded;
  }
  if (session.has_login()) scope.guard_login(options.include);
  if (duplicates) {
    if (auto loaded = load_duplicates(); !loaded) return loaded;
  }
  if (auto loaded = load(); !loaded) return loaded;
  simhashes_.clear();
  add_seeds(now);
  return {};
}

Result<void> Crawler::Shared::begin_run(WallTime now) {
  std::optional<WallTime> first, unfinished;
  auto scanned = store.scan_runs([&](const UrlRun& run) {
    if (!first) first = run.began;
    if (run.finished || !unfinished) unfinished = run.finished ? std::nullopt : std::optional(run.began);
    run_.run_id = run.run_id;
    return true;
  });
  if (!scanned) return scanned;
  if (options.ask_again && !options.adaptive) refetch_before_ = unfinished.value_or(now);
  ++run_.run_id;
  run_.began = now;
  UrlBatch batch;
  if (auto opened = demands.open(store, first, now, batch); !opened) return opened;
  batch.runs.push_back(run_);
  if (options.duplicates.keep_simhashes) batch.notes.push_back(near_distance_note(options.duplicates.near_distance));
  store.submit(std::move(batch));
  return {};
}

Result<void> Crawler::Shared::load() {
  if (seen.first_new_id() == 1) return {};
  UrlStore::KnownQuestion question{.seed = seed};
  // `broken` needs the status, and so do verdicts.
  // So does what is written again: to say when it is due, or what the next answer is compared with.
  const bool by_status = options.requeue == Requeue::broken || options.check_age || options.forever;
  question.fields = by_status || options.requeue != Requeue::none ? UrlStore::Fields::all : fields_to_decide();
  question.settled = by_status || duplicates || sinks.can_lack() || demands.may_miss() || refetch_before_ ||
                     options.requeue == Requeue::all || reads_sitemaps || plans_visits;
  UrlBatch batch;
  std::size_t moves = 0;
  // Writes down URLs that have to go to a shelf, or to another place on it. They may be all there are, when the
  // database is of the first version or the order is not that of the last run.
  const auto write_down = [&]() -> Result<void> {
    for (auto& shard : shards) std::ranges::move(shard->take_moves(), std::back_inserter(batch.moves));
    moves = 0;
    if (batch.size() == 0) return {};
    store.submit(std::exchange(batch, {}));
    return store.flush();
  };
  Result<void> written;
  auto scanned = store.scan_known(question, [&](const UrlStore::KnownUrls& known) {
    seen.know(known);
    for (const UrlRecord& record : known.records) {
      follow_stored_seed(record);
      moves += load(record, batch);
      if (moves + batch.size() >= kMovesAtOnce) written = write_down();
      if (!written) return false;
    }
    return true;
  });
  if (!scanned) return scanned;
  if (written) written = wait_no_more(batch);
  return written ? write_down() : written;
}

// Fields for decide(): whether a type is accepted only where some are not; and contents where they are compared.
UrlStore::Fields Crawler::Shared::fields_to_decide() const noexcept {
  const bool to_go_on = options.accept_types.empty() && !duplicates && !sinks.can_lack() && !demands.may_miss();
  return to_go_on ? UrlStore::Fields::to_go_on : UrlStore::Fields::all;
}

// Queues what the store has recorded, or leaves it; how many records the shards are to move because of it.
std::size_t Crawler::Shared::load(const UrlRecord& record, UrlBatch& batch) {
  const UrlWork work = work_on(record, Stage::opening);
  note_checked(record, work);
  if (options.requisites != Requisites::none) note_requisite(record, work);
  if (work == UrlWork::sitemap) sitemaps.take(fingerprint_of(record.url));
  if (work == UrlWork::leave) {
    count_left(record, 1);
    if (demands.may_miss() && place_of(record.url, record.depth) == Exclusion::none) demands.note_left(record);
    if (rests(record, view(Stage::opening)) && place_of(record.url, record.depth) == Exclusion::none) ++resting_;
    if (duplicates) note_content(record);
    const auto inside = [&](Stage stage) { return decide(record, Exclusion::none, view(stage)); };
    if (inside(Stage::opening) != UrlWork::leave && inside(Stage::going_on) == UrlWork::leave) {
      passed_over_.insert(record.url_id);
    }
    // Whatever has left it out before, it is its depth now.
    if (record.state == UrlState::excluded && limits_depth && scope.is_too_deep(record.url, record.depth)) {
      some_too_deep_ = true;
    }
    if (record.shelf) {
      batch.moves.push_back({record.url_id, std::nullopt, 0, record.priority, depth_of(record)});
    }
    return 0;
  }
  if (!is_requeued(record, options.requeue)) {
    if (work == UrlWork::fetch && demands.asks(record)) ++asked_for_outputs_;
    // A due marks a URL that such a run has left to rest, but for one that was to be tried again soon.
    const bool has_rested = record.state != UrlState::queued && record.due != WallTime{};
    const bool rests = options.forever && work != UrlWork::check && (work == UrlWork::ask_if_changed || has_rested);
    if (rests) return let_rest(record, batch);
    const bool waits_too_long = record.state == UrlState::queued && record.due > opened_at_ + kLongestWait;
    if (waits_too_long) {
      put_off_.push_back(record.url_id);
      return 0;
    }
    return waits_for_its_turn(record, options) ? resume(record) : resume_now(record, batch);
  }
  // URLs that wait already, and those that the options have kept out so far, are fetched anew as well.
  UrlOutcome outcome = queued_anew(record);
  if (record.reason == UrlReason::requisite) {
    outcome.reason = UrlReason::requisite;
  } else if (work == UrlWork::sitemap) {
    outcome.reason = UrlReason::sitemap;
  } else if (work != UrlWork::check) {
    outcome.reason = UrlReason::none;
  } else if (record.reason != UrlReason::asset) {
    outcome.reason = UrlReason::checked;
  }
  const UrlRecord queued = as_queued(record, outcome);
  batch.outcomes.push_back(std::move(outcome));
  return resume(queued);
}

// A URL that a crawl that goes on has left to wait is asked for now, by a crawl that does not.
std::size_t Crawler::Shared::resume_now(const UrlRecord& record, UrlBatch& batch) {
  UrlRecord taken = record;
  taken.shelf.reset();
  batch.moves.push_back({record.url_id, std::nullopt, 0, record.priority, depth_of(record)});
  return resume(taken);
}

// A fetched URL waits until it is due, in a crawl that goes on. The store must know when, as it may lie on a shelf.
std::size_t Crawler::Shared::let_rest(const UrlRecord& record, UrlBatch& batch) {
  UrlRecord resting = record;
  // A URL that has failed keeps the time that it was given, if it is not that of a clock that was wrong.
  if (record.state == UrlState::done || record.mtime > opened_at_) {
    resting.due = std::chrono::floor<std::chrono::milliseconds>(
        std::max(plan.due_of(record, opened_at_), WallTime{std::chrono::milliseconds{1}}));
  }
  if (resting.due != record.due) {
    UrlOutcome outcome = as_it_was(record);
    outcome.due = resting.due;
    batch.outcomes.push_back(std::move(outcome));
    resting.shelf.reset();
  }
  rotating.fetch_add(1, std::memory_order_relaxed);
  return resume(resting);
}

// URLs that were to be tried again in years, by a clock that was wrong, are tried now.
Result<void> Crawler::Shared::wait_no_more(UrlBatch& batch) {
  for (const std::int64_t id : std::exchange(put_off_, {})) {
    auto record = store.get(id);
    if (!record) return std::unexpected(std::move(record.error()));
    if (!*record) continue;
    UrlOutcome outcome = (*record)->status_code != 0 ? as_it_was(**record) : queued_anew(**record);
    outcome.attempts = (*record)->attempts;
    outcome.due = (*record)->due = WallTime{};
    batch.outcomes.push_back(std::move(outcome));
    (*record)->shelf.reset();
    resume(**record);
  }
  return {};
}

// URLs that were only checked are known again to those who may ask more of them.
void Crawler::Shared::note_checked(const UrlRecord& record, UrlWork work) {
  const bool is_unsaved = record.reason == UrlReason::requisite && options.check_assets && work != UrlWork::fetch &&
                          (work == UrlWork::check || options.requisites == Requisites::none);
  const bool is_asset = record.reason == UrlReason::asset || is_unsaved;
  if (!is_asset && !options.check_foreign_fragments) return;
  if (!is_asset && record.reason != UrlReason::checked && record.reason != UrlReason::off_scope) return;
  checks.add(fingerprint_of(record.url),
             {.id = record.url_id, .is_asset = is_asset, .settled = work == UrlWork::leave});
}

// Loads what earlier runs have learned, unless this one asks anew for what it has left out.
Result<void> Crawler::Shared::load_duplicates() {
  UrlBatch forgotten;
  const bool forgets = options.requeue == Requeue::excluded || options.requeue == Requeue::all;
  for (const std::string_view prefix : DuplicateBook::kNotePrefixes) {
    auto scanned = store.scan_notes(prefix, [&](const UrlNote& note) {
      forgets ? forgotten.notes.push_back({note.name, {}}) : duplicates->restore(note);
      return true;
    });
    if (!scanned) return scanned;
  }
  if (forgotten.size() > 0) store.submit(std::move(forgotten));
  if (!options.duplicates.compares_words()) return {};
  return store.scan_facts([this](const PageFacts& facts) {
    if (facts.words >= kFewWords) simhashes_.emplace(facts.url_id, facts.simhash);
    return true;
  });
}

// Contents that earlier runs have met go on to count.
void Crawler::Shared::note_content(const UrlRecord& record) {
  Url stripped;
  const auto url = Url::parse(record.url);
  if (!url) return;
  if (record.reason == UrlReason::parameter && duplicates->strip(*url, stripped)) {
    duplicates->is_first_variant(fingerprint_of(stripped.href()));
  }
  if (record.reason == UrlReason::alias) duplicates->add_alias(record.url_id, record.limit);
  const bool is_page = record.state == UrlState::done && record.status_code == 200 &&
                       record.reason == UrlReason::none &&
                       (record.content_type.empty() || is_html(record.content_type));
  if (is_page && !record.digest.empty()) {
    DuplicateBook::Content content{.page = {record.url_id, record.depth},
                                   .bytes = content_key(record.digest, url->site_key())};
    if (const auto found = simhashes_.find(record.url_id); found != simhashes_.end()) content.simhash = found->second;
    duplicates->find_copy(content, url->site_key());
  }
}

// The same for those who find what pages are shown with.
void Crawler::Shared::note_requisite(const UrlRecord& record, UrlWork work) {
  using Part = RequisiteBook::Part;
  const bool is_requisite = record.reason == UrlReason::requisite && work != UrlWork::check;
  const bool is_only_checked = record.reason == UrlReason::checked || record.reason == UrlReason::asset;
  const bool is_left_out = record.state == UrlState::excluded && work == UrlWork::leave;
  const bool may_be_unwanted = work == UrlWork::fetch && !options.accept_types.empty();
  if (!is_requisite && !is_left_out && !may_be_unwanted && (!is_only_checked || work == UrlWork::fetch)) return;
  requisites.add(fingerprint_of(record.url), record.url_id,
                 is_requisite      ? Part::requisite
                 : may_be_unwanted ? Part::page
                                   : Part::link,
                 work == UrlWork::leave);
}

std::size_t Crawler::Shared::owner_of(const UrlRecord& record) const {
  if (shards.size() == 1) return 0;
  std::uint64_t site = record.site;
  if (!record.shelf) {
    const auto url = Url::parse(record.url);
    if (url) site = fingerprint(url->site_key());
  }
  return part_of_site(site, static_cast<std::uint32_t>(shards.size()));
}

// Queues what the store has recorded; how many records are to be moved because of it.
std::size_t Crawler::Shared::resume(const UrlRecord& record) {
  Shard& shard = *shards[owner_of(record)];
  const std::size_t before = shard.moves_waiting();
  ending.begin(1);
  if (record.reason == UrlReason::requisite && work_on(record, Stage::opening) != UrlWork::check) ending.begin_part();
  // A URL that robots.txt forbids is only asked about.
  if (record.reason != UrlReason::robots) taken_up_.fetch_add(1, std::memory_order_relaxed);
  if (auto resumed = shard.resume(record); !resumed) {
    ending.end(1);
    spdlog::warn("url_id {}: {} is not a URL; left alone", record.url_id, in_quotes(record.url));
  }
  return shard.moves_waiting() - before;
}

UrlWork Crawler::Shared::work_on(const UrlRecord& record, Stage stage) const {
  const RunView run = view(stage);
  const bool is_of_pages = record.reason == UrlReason::asset || record.reason == UrlReason::requisite;
  if (record.reason == UrlReason::parameter && duplicates && duplicates->strips(record.url)) return UrlWork::leave;
  if (record.reason == UrlReason::trap && duplicates && duplicates->is_trap(record.url)) return UrlWork::leave;
  // An asset is as deep as its page, and stored as if a link led there.
  const std::uint32_t depth = record.depth - (is_of_pages && record.depth > 0 ? 1 : 0);
  UrlWork work = UrlWork::leave;
  if (may_be_taken_up(record, run)) {
    work = decide(record, place_of(record.url, depth), run);
  } else if (options.sitemaps && stage == Stage::opening && record.state == UrlState::done &&
             record.reason == UrlReason::none && scope.is_seed(record.url)) {
    work = UrlWork::ask_if_changed;  // their hosts are asked for sitemaps by the way
  }
  // A trap is one on any host, and what is excluded is excluded there, too.
  const bool is_anywhere = work == UrlWork::check || record.reason == UrlReason::requisite;
  if (work != UrlWork::leave && is_anywhere && scope.bars_check(record.url, depth) != Exclusion::none)
    return UrlWork::leave;
  return sinks.can_lack() || demands.may_miss() ? work_for_outputs(record, work, stage) : work;
}

// Whether sinks should have of earlier runs, or the store should keep, what they have not: answers, and redirects.
bool Crawler::Shared::is_lacking(const UrlRecord& record, UrlWork work) const {
  if (work == UrlWork::leave && demands.asks(record)) return true;
  if (!sinks.can_lack() || (record.status_code != 200 && !is_redirect(record.status_code))) return false;
  if (record.reason == UrlReason::checked || record.reason == UrlReason::asset || record.reason == UrlReason::sitemap)
    return false;
  return sinks.lacks(record.url);
}

// A URL that is lacking is fetched whole.
UrlWork Crawler::Shared::work_for_outputs(const UrlRecord& record, UrlWork work, Stage stage) const {
  const bool is_open = work == UrlWork::leave || work == UrlWork::ask_if_changed;
  if (!is_open || stage != Stage::opening || record.state != UrlState::done) return work;
  if (!is_lacking(record, work)) return work;
  UrlRecord unknown = record;
  unknown.state = UrlState::queued;
  const bool is_of_pages = record.reason == UrlReason::asset || record.reason == UrlReason::requisite;
  const std::uint32_t depth = record.depth - (is_of_pages && record.depth > 0 ? 1 : 0);
  const UrlWork anew = decide(unknown, place_of(record.url, depth), view(stage));
  if (is_of_pages && scope.bars_check(record.url, depth) != Exclusion::none) return work;
  return anew == UrlWork::fetch || (is_of_pages && anew == UrlWork::check) ? anew : work;
}

// Counts a URL that is left where it is, and would be told of.
void Crawler::Shared::count_left(const UrlRecord& record, std::int64_t by) {
  if (record.state == UrlState::queued) {
    waiting_.fetch_add(by, std::memory_order_relaxed);
  } else if (record.reason != UrlReason::none && record.state != UrlState::failed) {
    count_left_out(record.reason, by);
  }
}

// The target of a seed's redirect belongs to the crawl as the seed does, and so on along the chain. A target with a
// smaller id has been looked at already; it is taken up in the end.
void Crawler::Shared::follow_stored_seed(const UrlRecord& record) {
  if (record.redirect_to.empty() || !scope.is_seed(record.url)) return;
  if (auto target = Url::parse(record.redirect_to)) follow_seed(record.url, *target);
}

UrlTask Crawler::Shared::task_of(const UrlRecord& record, Url url) const {
  const UrlWork work = work_on(record, Stage::opening);
  UrlTask task;
  task.fingerprint = fingerprint_of(record.url);
  task.id = record.url_id;
  task.url = std::move(url);
  task.depth = depth_of(record);
  task.purpose = purpose_of(record, work);
  // Also a URL that waits and was fetched before. One that is to be fetched whole has no validators to ask with.
  const bool was_fetched = record.state == UrlState::queued && record.mtime != WallTime{};
  task.known = record.state == UrlState::done;
  task.revisit = work == UrlWork::ask_if_changed || was_fetched || (task.purpose == Purpose::sitemap && task.known);
  task.counted = task.purpose == Purpose::requisite || task.known || record.state == UrlState::failed;
  task.rotates = options.forever && task.counted && record.due != WallTime{} && !is_only_checked(task.purpose);
  task.settled = task.rotates && record.state == UrlState::done && record.mtime >= opened_at_;
  if (record.priority < kLeastPriority) task.late = record.priority;
  task.given_up = static_cast<std::uint8_t>(std::min(times_given_up(record), 255u));
  // Of what an earlier run has given up, the attempts begin anew.
  if (record.state == UrlState::queued) {
    task.attempts = static_cast<std::uint8_t>(std::min(record.attempts, 255u));
    task.redirects = static_cast<std::uint8_t>(-std::clamp<std::int64_t>(record.limit, -255, 0));
  }
  task.is_stored = true;
  return task;
}

void Crawler::Shared::add_seeds(WallTime now) {
  UrlBatch batch;
  for (const Url& url : options.seeds) {
    const std::uint64_t seed_fingerprint = fingerprint_of(url.href());
    const SeenUrls::Claim claimed = seen.claim(seed_fingerprint);
    const std::int32_t priority = crawl_priority(options, 0, url.href());
    if (!claimed.is_new) {
      batch.depths.push_back({claimed.id, 0, priority, true});  // earlier runs may have found it far away
      continue;
    }
    UrlTask task;
    task.fingerprint = seed_fingerprint;
    task.id = claimed.id;
    task.url = url;
    batch.discovered.push_back({task.id, url.href(), 0, priority, 0, now});
    depth_book.found({{{task.fingerprint, task.id, 0}}});
    ending.begin(1);
    taken_up_.fetch_add(1, std::memory_order_relaxed);
    shards[shard_of(url)]->prepare_task(std::move(task));
  }
  if (batch.size() > 0) store.submit(std::move(batch));
}

// --- what shards ask -------------------------------------------------------------------------------------------

std::size_t Crawler::Shared::shard_of(const Url& url) const noexcept {
  if (shards.size() == 1) return 0;
  return part_of_site(fingerprint(url.site_key()), static_cast<std::uint32_t>(shards.size()));
}

Exclusion Crawler::Shared::place_of(std::string_view href, std::uint32_t depth) const {
  std::shared_lock lock(scope_mutex_);
  return scope.place_of(href, depth);
}

bool Crawler::Shared::is_in_scope(const Url& url) const {
  std::shared_lock lock(scope_mutex_);
  return scope.contains(url);
}

bool Crawler::Shared::is_under_way(const UrlRecord& record) const {
  if (record.state == UrlState::queued) return true;
  return record.mtime < opened_at_ && work_on(record, Stage::opening) != UrlWork::leave;
}

std::optional<Crawler::Shared::Anew> Crawler::Shared::begin_anew(const UrlRecord& record) {
  if (options.forever || is_under_way(record)) return std::nullopt;
  auto outcome = requeued(record);
  if (!outcome) return std::nullopt;
  const UrlRecord queued = as_queued(record, *outcome);
  Anew anew{.outcome = std::move(*outcome), .task = std::nullopt};
  count_left(record, -1);
  // Whatever is no page is known to other books than this, which have done with it.
  const bool is_page = queued.reason == UrlReason::none;
  auto url = Url::parse(record.url);
  if (!is_page || !url || work_on(queued, Stage::opening) != UrlWork::fetch) {
    count_left(queued, 1);
    return anew;
  }
  ending.begin(1);
  anew.task = task_of(queued, std::move(*url));
  anew.task->counted = record.state == UrlState::done || record.state == UrlState::failed;
  return anew;
}

void Crawler::Shared::follow_seed(std::string_view from, const Url& target) {
  std::lock_guard lock(scope_mutex_);
  if (!scope.is_seed(from) || !scope.follow_seed(from, target)) return;
  scope_grew_.store(true);
  if (!scope.contains(*Url::parse("/", &target))) {
    spdlog::info("{} leads to another site, {}: only that page is fetched there; give it as a URL to crawl it", from,
                 target.href());
  }
}

bool Crawler::Shared::show(const Exchange& exchange) {
  auto taken = sinks.take(exchange);
  if (!taken) fail(std::move(taken.error()));
  return taken.has_value();
}

void Crawler::Shared::fail(Error why) {
  failures.note_fatal(std::move(why));
  ending.stop("sink", true);
}

// --- what may be fetched after all -------------------------------------------------------------------------------

bool Crawler::Shared::may_take_up_more() const noexcept {
  const auto left = [this](UrlReason reason) { return left_out_[static_cast<std::size_t>(reason)].load(); };
  const std::int64_t waiting = waiting_.load() + static_cast<std::int64_t>(passed_over_.size());
  if (scope_grew_.load()) {
    if (waiting > 0 || options.check_links) return true;
    if (std::ranges::any_of(kReasonsOfPlace, [&](UrlReason reason) { return left(reason) > 0; })) return true;
  }
  return limits_depth && settled_.load() && (some_too_deep_ || left(UrlReason::depth) + waiting > 0);
}

bool Crawler::Shared::is_complete(std::size_t shard, bool may_end) {
  if (ending.outstanding() > 0) return false;
  if (ending.is_complete()) return true;
  if (shard != 0) return false;  // woken when shard 0 knows
  if (may_take_up_more()) {
    const auto taken = take_up_more();
    if (!taken) {
      spdlog::error("{}", taken.error().message);
      ending.stop("store", true);
      return false;
    }
    if (*taken > 0) return false;
  }
  if (!may_end) return false;
  ending.complete();
  return true;
}

void Crawler::Shared::look_for_more(std::size_t shard, TimePoint now) {
  if (shard != 0 || now < next_look_ || ending.outstanding() != rotating.load()) return;
  next_look_ = now + kLookPause;
  if (!may_take_up_more()) return;
  if (const auto taken = take_up_more(); !taken) {
    spdlog::error("{}", taken.error().message);
    ending.stop("store", true);
  }
}

Result<std::size_t> Crawler::Shared::take_up_more() {
  scope_grew_.store(false);
  settled_.store(false);
  if (auto flushed = store.flush(); !flushed) return std::unexpected(std::move(flushed.error()));
  if (limits_depth) {
    if (auto shortened = shorten_depths(); !shortened) return std::unexpected(std::move(shortened.error()));
  }
  std::vector<std::vector<UrlTask>> tasks(shards.size());
  std::size_t taken = 0;
  auto scanned = store.scan(
      1,
      [&](const UrlRecord& record) {
        follow_stored_seed(record);
        const bool passed_over = passed_over_.contains(record.url_id);
        const UrlWork work = work_on(record, passed_over ? Stage::opening : Stage::going_on);
        if (work == UrlWork::leave) return true;
        auto url = Url::parse(record.url);
        if (!url) return true;
        passed_over_.erase(record.url_id);
        UrlTask task = task_of(record, std::move(*url));
        task.purpose = purpose_of(record, work);
        if (task.rotates) rotating.fetch_add(1, std::memory_order_relaxed);
        if (task.purpose == Purpose::requisite) ending.begin_part();
        tasks[owner_of(record)].push_back(std::move(task));
        count_left(record, -1);
        return ++taken < kTakenUpAtOnce;
      },
      fields_to_decide());
  if (!scanned) return std::unexpected(std::move(scanned.error()));
  if (taken >= kTakenUpAtOnce) scope_grew_.store(true);  // there may be more
  ending.begin(taken);
  taken_up_.fetch_add(taken, std::memory_order_relaxed);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (!tasks[i].empty()) shards[i]->post(std::move(tasks[i]));
  }
  return taken;
}

// --- ending ----------------------------------------------------------------------------------------------------

void Crawler::Shared::wake_shards() {
  for (auto& shard : shards) shard->wake();
}

CrawlStats Crawler::Shared::stats() const {
  CrawlStats stats;
  for (const auto& shard : shards) {
    const ShardCounters& counters = shard->counters();
    stats.pages += counters.pages.load(std::memory_order_relaxed);
    stats.fetched += counters.fetched.load(std::memory_order_relaxed);
    stats.requisites += counters.requisites.load(std::memory_order_relaxed);
    stats.bytes += counters.bytes.load(std::memory_order_relaxed);
    stats.errors += counters.errors.load(std::memory_order_relaxed);
    stats.handler_errors += counters.handler_errors.load(std::memory_order_relaxed);
    stats.not_asked += counters.not_asked.load(std::memory_order_relaxed);
    stats.rendered += counters.rendered.load(std::memory_order_relaxed);
    stats.render_errors += counters.render_errors.load(std::memory_order_relaxed);
    stats.parts += counters.parts.load(std::memory_order_relaxed);
    stats.retries += counters.retries.load(std::memory_order_relaxed);
    stats.in_flight += counters.in_flight.load(std::memory_order_relaxed);
    stats.in_memory += counters.in_memory.load(std::memory_order_relaxed);
    stats.hosts += counters.hosts.load(std::memory_order_relaxed);
    stats.hosts_waiting += counters.hosts_waiting.load(std::memory_order_relaxed);
    if (const Shard::Resting rest = shard->longest_rest(); !rest.site.empty() && rest.until > stats.resting_until) {
      stats.resting_site = rest.site;
      stats.resting_until = rest.until;
    }
    const TimePoint due{Duration{counters.next_due.load(std::memory_order_relaxed)}};
    stats.next_due = std::min(stats.next_due, due);
    for (std::size_t i = 0; i < kExclusions; ++i) {
      stats.excluded[i] += counters.excluded[i].load(std::memory_order_relaxed);
    }
    for (std::size_t i = 0; i < kHttpOddities; ++i) stats.odd[i] += counters.odd[i].load(std::memory_order_relaxed);
  }
  const std::uint64_t unfinished = ending.outstanding();
  stats.kept_fresh = rotating.load(std::memory_order_relaxed);
  stats.queued = unfinished - std::min(unfinished, std::max(stats.in_flight, stats.kept_fresh));
  stats.inbox = {given.taken.load(), given.known.load(), given.left_out.load(), given.skipped.load()};
  stats.urls = seen.size();
  return stats;
}

// All of them, whatever becomes of one: the first error counts.
Result<void> Crawler::Shared::finish_sinks() const {
  auto finished = sinks.finish();
  if (auto fatal = failures.fatal()) return std::unexpected(std::move(*fatal));
  return finished;
}

Result<CrawlReport> Crawler::Shared::report() {
  if (auto flushed = store.flush(); !flushed) return std::unexpected(std::move(flushed.error()));
  if (auto finished = finish_sinks(); !finished) return std::unexpected(std::move(finished.error()));
  if (settled_.load()) {
    if (auto shortened = shorten_depths(); !shortened) return std::unexpected(std::move(shortened.error()));
  }
  CrawlReport report;
  report.stats = stats();
  report.stopped_by = ending.stop_reason();
  const bool has_failed = report.stopped_by == "store" || report.stopped_by == "sink";
  report.finished = !has_failed && ending.outstanding() == 0 && (ending.is_complete() || !may_take_up_more());
  if (report.finished) report.stopped_by.clear();
  for (const auto& shard : shards) {
    for (std::size_t status = 0; status < shard->counters().statuses.size(); ++status) {
      if (const std::uint64_t count = shard->counters().statuses[status].load()) {
        report.statuses[static_cast<int>(status)] += count;
      }
    }
  }
  failures.tell(report);
  const bool redirected =
      std::ranges::any_of(report.statuses, [](const auto& entry) { return is_redirect(entry.first); });
  if (redirected) {
    if (auto marked = mark_redirect_loops(); !marked) return std::unexpected(std::move(marked.error()));
  }
  if (duplicates) duplicates->tell(report);
  report.taken_up = taken_up_.load() + given.taken.load();
  report.sitemaps = sitemaps.totals();
  report.resting = resting_;
  report.asked_for_outputs = asked_for_outputs_;
  report.unseen = demands.left();
  report.waiting = static_cast<std::uint64_t>(std::max<std::int64_t>(waiting_.load(), 0));
  for (std::size_t i = 1; i < kUrlReasons; ++i) {
    const std::int64_t count = left_out_[i].load();
    const auto reason = static_cast<UrlReason>(i);
    const bool is_told = reason != UrlReason::checked && reason != UrlReason::asset && reason != UrlReason::sitemap &&
                         reason != UrlReason::requisite;
    if (count > 0 && is_told) {
      report.left_out[std::string(to_string(reason))] = static_cast<std::uint64_t>(count);
    }
  }
  if (auto listed = list_broken(report); !listed) return std::unexpected(std::move(listed.error()));
  run_.ended = ending.last_end();
  run_.finished = report.finished;
  run_.stopped_by = report.stopped_by;
  run_.fetched = report.stats.fetched;
  UrlBatch batch;
  batch.runs.push_back(run_);
  store.submit(std::move(batch));
  if (auto flushed = store.flush(); !flushed) return std::unexpected(std::move(flushed.error()));
  return report;
}

// That redirects lead round in a circle shows only when all of them are known.
Result<void> Crawler::Shared::mark_redirect_loops() {
  RedirectLoops loops;
  auto scanned = store.scan_redirects([&](const UrlRecord& record) {
    if (record.state == UrlState::done) loops.add(record.url_id, record.url, record.redirect_to);
    return true;
  });
  if (!scanned) return scanned;
  UrlBatch batch;
  for (const std::int64_t url_id : loops.find()) {
    const auto record = store.get(url_id);
    if (!record) return std::unexpected(record.error());
    if (!*record || is_redirect_to_nowhere(**record)) continue;
    UrlOutcome outcome;
    outcome.url_id = url_id;
    outcome.mtime = (*record)->mtime;
    outcome.due = (*record)->due;
    outcome.status_code = (*record)->status_code;
    outcome.attempts = (*record)->attempts;
    outcome.not_modified = true;
    outcome.redirect_to = (*record)->redirect_to;
    outcome.error = "redirects in a circle";
    batch.outcomes.push_back(std::move(outcome));
  }
  if (batch.outcomes.empty()) return {};
  store.submit(std::move(batch));
  return store.flush();
}

Result<void> Crawler::Shared::list_broken(CrawlReport& report) {
  const bool makes_checks = options.check_links || options.check_assets;
  OwnHosts own;
  const auto unlinked = find_unlinked(store, options.accept_status, makes_checks ? &own : nullptr);
  if (!unlinked) return std::unexpected(unlinked.error());
  // Those of other sites come last, as in a link check.
  struct Listed {
    BrokenLink link;
    std::int64_t referrer = 0;
  };
  std::vector<Listed> ours, others;
  // Without checks only what an earlier run has checked may be of other sites, and most crawls have none of it.
  bool knows_hosts = makes_checks, wants_hosts = false;
  const auto list = [&](const UrlRecord& record) {
    if (unlinked->contains(record.url_id)) return true;
    wants_hosts = !knows_hosts && (record.reason == UrlReason::checked || record.reason == UrlReason::asset);
    if (wants_hosts) return false;
    ++report.broken_count;
    if (record.mtime < opened_at_) ++report.broken_before;
    std::vector<Listed>& links = !knows_hosts || own.has(record.url) ? ours : others;
    if (links.size() < CrawlReport::kMostBroken)
      links.push_back({{record.url, record.status_code, record.error, {}}, record.referrer});
    return true;
  };
  auto scanned = scan_unaccepted(store, options.accept_status, list);
  if (scanned && wants_hosts) {
    const auto add = [&](const UrlRecord& record) { return own.add(record), true; };
    scanned = store.scan(1, add, UrlStore::Fields::to_go_on);
    knows_hosts = true;
    report.broken_count = report.broken_before = 0;
    ours.clear();
    if (scanned) scanned = scan_unaccepted(store, options.accept_status, list);
  }
  if (!scanned) return scanned;
  std::ranges::move(others, std::back_inserter(ours));
  ours.resize(std::min(ours.size(), CrawlReport::kMostBroken));
  for (Listed& one : ours) {
    auto page = page_with_link(store, one.link.url, one.referrer, options.max_redirects + 1);
    if (!page) return std::unexpected(std::move(page.error()));
    one.link.referrer = std::move(*page);
    report.broken.push_back(std::move(one.link));
  }
  return {};
}

}  // namespace argiope
