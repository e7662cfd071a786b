#include "project/run/internal/page_engine.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <ranges>
#include <thread>

#include "argiope/async/sleep.hpp"
#include "base/internal/printable.hpp"
#include "project/rules/internal/data_scheme.hpp"
#include "project/run/page_engine_impl.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostReadingThreads = 8;
constexpr std::size_t kMostPageBacklog = 50'000;  // records the store may lag behind before visits pause
constexpr std::size_t kRowsReadAtOnce = 500;
constexpr std::int64_t kFewPages = 16'384;
constexpr std::int64_t kRoomAhead = 64;
constexpr std::size_t kMostRemembered = 20'000;
constexpr std::size_t kLargestRemembered = 4'000;
constexpr Duration kRememberedAhead = std::chrono::minutes{1};
constexpr Duration kReadPollPause = std::chrono::milliseconds{2};
constexpr Duration kPageBacklogPause = std::chrono::milliseconds{20};
constexpr Duration kCheckpointPause = std::chrono::seconds{5};
constexpr Duration kPrunePause = std::chrono::minutes{10};
constexpr Duration kFeedKept = std::chrono::hours{24 * 7};  // what became of results, for who has no sink
constexpr Duration kSinksGrace = std::chrono::seconds{10};
constexpr Duration kSinksPoll = std::chrono::milliseconds{10};
constexpr Duration kLongestSleep = std::chrono::seconds{1};
constexpr Duration kClockSet = std::chrono::milliseconds{500};  // what clocks drift apart by in a second is far less
constexpr std::size_t kRoundsReadAtFirst = 2;
constexpr std::size_t kShareOfFree = 3;  // places of a project of weight 1, for each that is free
constexpr std::size_t kKeptPlaces = 16;  // of so many places one is kept from each project
constexpr std::size_t kMostReading = 4;  // fetched pages that wait for a processor, beside those it reads

}  // namespace

// --- life ----------------------------------------------------------------------------------------------------------

PageEngine::Impl::Impl(PageEngineOptions options, PageStore& store)
    : options_(std::move(options)),
      store_(store),
      rendering_{.renderer = options_.hosts.renderer,
                 .why_not = options_.why_not_rendered,
                 .limits = options_.hosts.render_limits,
                 .part_timeout = options_.hosts.timeout,
                 .book = {}},
      random_(mix64(options_.seed)),
      reading_{.agent = options_.hosts.product_token, .here = RuleReader::links(options_.hosts.product_token), .there = {}},
      describing_(std::make_shared<DescribingPlaces>(std::max<std::size_t>(options_.describing, 1))) {
  if (!options_.reads_on_threads) return;
  readers_.resize(std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMostReadingThreads));
  for (std::size_t i = 0; i < readers_.size(); ++i) reading_.there.push_back(RuleReader::links(reading_.agent));
}

PageEngine::Impl::~Impl() = default;

Result<void> PageEngine::Impl::open(WallTime now) {
  opened_at_ = now;
  auto hosts = store_.hosts();
  if (!hosts) return std::unexpected(std::move(hosts.error()));
  for (HostRow& row : *hosts) {
    if (row.id >= sites_.size()) {
      sites_.resize(row.id + 1);
      at_desk_.resize(row.id + 1);
    }
    host_ids_.emplace(row.site, row.id);
    sites_[row.id] = std::move(row.site);
  }
  auto records = store_.projects();
  if (!records) return std::unexpected(std::move(records.error()));
  for (ProjectRecord& record : *records) {
    if (!record.deleted_at && options_.is_wanted && !options_.is_wanted(record.name)) {
      resting_.insert(std::move(record.name));
      continue;
    }
    if (record.deleted_at) {
      deleted_.emplace(record.name, std::move(record));
    } else if (auto opened = open_project(std::move(record), now); !opened) {
      return opened;
    }
  }
  return {};
}

Result<void> PageEngine::Impl::open_project(ProjectRecord record, WallTime now) {
  auto version = store_.version(record.id, record.version);
  if (!version) return std::unexpected(std::move(version.error()));
  auto project = std::make_shared<LiveProject>(options_, std::move(record));
  const ProjectRecord& stored = project->record;
  project->read_times(stored.ticks);
  if (auto pause = FailurePause::read(stored.pause, options_.pause); pause && !stored.pause.empty()) project->pause = std::move(*pause);
  if (auto counters = ProjectCounters::read(stored.counters); counters && !stored.counters.empty()) project->counters = std::move(*counters);
  if (*version) {
    if (auto taken = take_version(*project, **version); !taken) project->record.trouble = taken.error().message;
  } else {
    project->record.trouble = "its file is not in the database";
  }
  if (auto loaded = load_pages(*project, now); !loaded) return loaded;
  by_id_.emplace(stored.id, project);
  projects_.emplace(stored.name, std::move(project));
  return {};
}

Result<void> PageEngine::Impl::load_pages(LiveProject& project, WallTime now) {
  if (auto loaded = load_rounds(project); !loaded) return loaded;
  const std::int64_t round = project.round ? project.round->number : 0;
  // The last counts may be older than the pages that were stored last.
  using enum ProjectCounters::Count;
  std::int64_t expected = 0;
  for (const auto count : {pending, success, failed}) {
    expected += std::clamp<std::int64_t>(project.counters.all(count), 0, std::numeric_limits<std::uint32_t>::max());
    project.counters.add_page(count, -project.counters.all(count));
  }
  std::int64_t seen = 0, room_at = kFewPages;
  auto scanned = store_.scan_known(project.record.id, [&](const PageStore::KnownRow& row) {
    // A table that grows with its pages takes as long as reading them. Other programs may have counted anything, so no more room is made than for
    // so many times what is there.
    if (++seen == room_at) {
      room_at *= kRoomAhead;
      project.index.reserve(static_cast<std::size_t>(std::min(expected, room_at)));
    }
    project.index.skip_to(number_of(row.id));
    const RuleNumber rule = project.rule_number(row.rule);
    const KnownPage& known = row.known;  // its script may not have said its terms yet
    const PageIndex::Number page = project.index.add(row.fingerprint, row.host_id, rule, known);
    recount(project, std::nullopt, known);
    const bool waits = known.state == PageState::waiting && known.wait != PageWait::recrawl;
    if (round != 0 && row.round == round && waits) enter_round(project, page, round);
    return true;
  });
  if (!scanned) return scanned;
  PageBatch batch;
  batch.at = now;
  end_round_if_over(project, batch, now);
  if (batch.size() > 0) submit(std::move(batch));
  return {};
}

// The one under way, those of which its script is still to be told, and what is shown of the last one. Of what is read of the rest, as
// little as that takes.
Result<void> PageEngine::Impl::load_rounds(LiveProject& project) {
  std::vector<RoundRecord> rounds;
  for (std::size_t most = kRoundsReadAtFirst;; most *= 2) {
    auto read = store_.rounds(project.record.id, most);
    if (!read) return std::unexpected(std::move(read.error()));
    rounds = std::move(*read);
    if (rounds.size() < most || rounds.back().finished_told) break;
  }
  if (rounds.empty()) return {};
  project.last_round = rounds.front().number;
  project.counts.fields = rounds.front().fields;
  const auto last_ended = std::ranges::find_if(rounds, [](const RoundRecord& round) { return round.ended.has_value(); });
  if (last_ended != rounds.end()) project.alarms = last_ended->alarms;
  for (const RoundRecord& round : std::ranges::subrange(last_ended, rounds.end())) {
    if (round.finished_told) break;
    project.untold.push_front(round);
  }
  if (!rounds.front().ended) project.round = std::move(rounds.front());
  return {};
}

Coro<Result<void>> PageEngine::Impl::run(HttpTransport& transport, Resolver* resolver) {
  loop_ = &EventLoop::current();
  transport_ = &transport;
  desk_ = std::make_unique<HostDesk>(options_.hosts, *loop_, transport, resolver, random_.next());
  desk_->number_by([this](const Url& url) { return host_of(url); });
  desk_->on_free([this](std::uint32_t host) {
    const auto found = waiting_for_.find(host);
    if (found == waiting_for_.end()) return;
    const auto waiting = std::exchange(found->second, {});
    waiting_for_.erase(found);
    for (const ProjectId id : waiting) {
      const auto project = by_id_.find(id);
      if (project == by_id_.end()) continue;
      project->second->frontier->wake(host, loop_->time());
      activate(*project->second);
    }
  });
  ticker_.emplace(*loop_, [this] { pump(); });
  background_.emplace(*loop_, "beside");
  for (ReadingThread& reader : readers_) reader.executor = std::make_unique<ThreadPoolExecutor>(1);
  if (options_.sink_means) {
    store_.on_feed([this, alive = std::weak_ptr(alive_), &loop = *loop_] {
      loop.call_soon_threadsafe([this, alive] {
        if (alive.expired()) return;
        for (const auto& [name, project] : projects_) {
          if (project->sinks) project->sinks->wake();
        }
      });
    });
  }
  for (const auto& [name, project] : projects_) {
    make_frontier(*project);
    begin_processor(*project);
    begin_sinks(*project);
    plan(*project);
    activate(*project);
  }
  bool cancelled = false;
  try {
    pump();
    co_await ended_.wait();
  } catch (const CancelledError&) {
    cancelled = true;
  }
  if (cancelled) {
    stop(true);
    if (!std::exchange(drains_, true)) {
      co_await drain();
    } else {
      co_await ended_.wait();
    }
  }
  ticker_->stop();
  end_tries();
  while (!tries_are_over_.is_set()) co_await tries_are_over_.wait();
  if (!cancelled && options_.sink_means && options_.sinks_at_end) co_await let_sinks_finish();
  for (const auto& [name, project] : projects_) {
    if (project->describing && !project->describing.done()) project->describing.cancel();
    if (project->processor) co_await project->processor->close();
    if (project->sinks) co_await project->sinks->stop(options_.sinks_at_end ? std::min(options_.sinks_at_end(), kSinksGrace) : kSinksGrace);
    project->round_is_over.set();
  }
  co_await background_->quiet();
  if (options_.sink_means) store_.on_feed(nullptr);
  if (rendering_.renderer != nullptr) co_await rendering_.renderer->close();
  co_await desk_->close();
  for (ReadingThread& reader : readers_) reader.executor.reset();
  PageBatch batch;
  for (const auto& [name, project] : projects_) write_down(*project, batch);
  if (batch.size() > 0) submit(std::move(batch));
  for (EndedRound& ended : ended_rounds_) {
    if (ended.flush == 0) ended.flush = store_.begin_flush();
  }
  auto flushed = store_.flush();
  tell_round_ends();
  if (cancelled) throw CancelledError();
  if (failure_) co_return std::unexpected(*failure_);
  co_return flushed;
}

// Sinks in trouble are not waited for.
Coro<void> PageEngine::Impl::let_sinks_finish() {
  if (!store_.flush()) co_return;
  const auto is_in_trouble = [](const SinkRow& row) { return !row.trouble.empty(); };
  for (const auto& [name, project] : projects_) {
    if (project->sinks) project->sinks->wake();
  }
  co_await yield_now();
  const TimePoint began = loop_->time();
  for (const auto& [name, project] : projects_) {
    // Projects are put no more: this one stays, and so do its sinks.
    while (project->sinks && !project->sinks->has_all() && std::ranges::none_of(project->sinks->rows(), is_in_trouble) &&
           loop_->time() < saturating_add(began, options_.sinks_at_end())) {
      co_await sleep(kSinksPoll);
    }
  }
}

void PageEngine::Impl::stop(bool at_once) {
  stopping_ = true;
  at_once_ = at_once_ || at_once;
  if (ticker_) ticker_->soon();
}

Coro<void> PageEngine::Impl::drain() {
  for (const TimePoint limit = saturating_add(loop_->time(), options_.drain_limit); under_way_ > 0;) {
    if (at_once_ || loop_->time() >= limit) {
      for (const auto& one : visit_room_) {
        cancel(*one);
      }
    }
    co_await sleep(std::chrono::milliseconds{10});
  }
  ended_.set();
}

WallTime PageEngine::Impl::wall() const {
  return std::chrono::floor<std::chrono::milliseconds>(loop_ != nullptr ? loop_->clock().wall_now() : opened_at_);
}

std::optional<WallTime> PageEngine::Impl::wall_at(TimePoint at) const {
  constexpr Duration kAsGoodAsNever = std::chrono::hours{24} * 36'525;
  if (loop_ == nullptr) return std::nullopt;
  const TimePoint now = loop_->time();
  if (at > saturating_add(now, kAsGoodAsNever)) return std::nullopt;
  return wall() + std::max(at - now, Duration{});
}

void PageEngine::Impl::submit(PageBatch batch) {
  if (!new_hosts_.empty()) {
    batch.hosts.insert(batch.hosts.begin(), new_hosts_.begin(), new_hosts_.end());
    new_hosts_.clear();
  }
  store_.submit(std::move(batch));
}

// --- hosts and rows --------------------------------------------------------------------------------------------------

std::uint32_t PageEngine::Impl::host_of(const Url& url) {
  return host_of_site(url.site_key());
}

std::uint32_t PageEngine::Impl::host_of(std::string_view url) {
  if (is_data_url(url)) return host_of_site(std::string(kDataSite));
  const auto parsed = url_to_visit(url);
  return host_of_site(parsed ? parsed->site_key() : std::string(kDataSite));
}

std::uint32_t PageEngine::Impl::host_of_site(std::string site) {
  const auto [found, is_new] = host_ids_.try_emplace(std::move(site), static_cast<std::uint32_t>(sites_.size()));
  if (is_new) {
    sites_.push_back(found->first);
    at_desk_.push_back(false);
    new_hosts_.push_back({found->second, found->first});
  }
  if (desk_ && !at_desk_[found->second] && found->first != kDataSite) {
    desk_->add(found->second, found->first);
    at_desk_[found->second] = true;
  }
  return found->second;
}

void PageEngine::Impl::remember(PageRecord record) {
  // Pages that are visited soon, and take little room.
  if (remembered_.size() >= kMostRemembered || record.settings.size() + record.context.size() + record.save.size() > kLargestRemembered ||
      record.known.due > wall() + kRememberedAhead) {
    remembered_.erase(record.id);
    return;
  }
  record.track = {};
  const PageId id = record.id;
  remembered_.insert_or_assign(id, std::move(record));
}

std::optional<PageRecord> PageEngine::Impl::take_remembered(PageId id) {
  const auto found = remembered_.find(id);
  if (found == remembered_.end()) return std::nullopt;
  PageRecord record = std::move(found->second);
  remembered_.erase(found);
  return record;
}

// --- what is visited next ----------------------------------------------------------------------------------------------

void PageEngine::Impl::activate(LiveProject& project) {
  if (project.is_active || project.is_gone) return;
  if (project.wakes_at != kNever) {
    waking_.erase({project.wakes_at, project.record.id});
    project.wakes_at = kNever;
  }
  const auto found = by_id_.find(project.record.id);
  if (found == by_id_.end()) return;
  project.is_active = true;
  if (project.turns == 0) {
    project.turn = ++last_turn_;
    project.turns = project.definition.weight;
  }
  active_.emplace(project.turn, found->second);
  if (ticker_) ticker_->soon();
}

void PageEngine::Impl::wake_later(LiveProject& project, TimePoint at) {
  if (at == kNever || project.is_active || at >= project.wakes_at) return;
  if (project.wakes_at != kNever) waking_.erase({project.wakes_at, project.record.id});
  project.wakes_at = at;
  waking_.emplace(at, project.record.id);
}

// However many visits hang, some places are left for projects that have fewer: each takes at most three times its weight of what is free,
// and none the last ones. So among projects that have enough to do, places are as their weights.
std::size_t PageEngine::Impl::most_of(const LiveProject& project) const {
  const std::size_t all = options_.concurrency;
  if (projects_.size() <= 1) return all;
  const std::size_t free = all - std::min(places_taken(), all);
  const std::size_t kept = all > 1 ? std::max<std::size_t>(all / kKeptPlaces, 1) : 0;
  return std::clamp<std::size_t>(kShareOfFree * project.definition.weight * free, 1, all - kept);
}

// Projects take turns: as many visits as their weight in a row. A project that has nothing to visit meanwhile, or whose
// host has to wait, keeps its place, so that it goes before the others then.
void PageEngine::Impl::take_turn(LiveProject& project) {
  if (project.turns > 1) {
    --project.turns;
    return;
  }
  project.turn = ++last_turn_;
  project.turns = project.definition.weight;
}

// A page that was read could not begin yet: it will take another turn for that.
void PageEngine::Impl::give_back_turn(LiveProject& project) { project.turns = std::min(project.turns + 1, 2 * project.definition.weight); }

// A visit has its place until what came of it is in the store: so no more than these are repeated when the process dies. Commits wait for
// more while enough places are left for what ends during one.
bool PageEngine::Impl::has_place() {
  note_commits();
  const std::size_t taken = places_taken();
  const bool has_one = taken < options_.concurrency;
  if (visit_flush_ || uncommitted_ == 0 || (has_one && taken + uncommitted_ < options_.concurrency)) return has_one;
  visit_flush_ = store_.begin_flush();
  flushing_ = uncommitted_;
  note_commits();
  return places_taken() < options_.concurrency;
}

void PageEngine::Impl::note_commits() {
  if (!visit_flush_ || !store_.flushed(*visit_flush_)) return;
  uncommitted_ -= flushing_;
  visit_flush_.reset();
  wake_blocked();
}

void PageEngine::Impl::wake_blocked() {
  for (const Live& blocked : std::exchange(blocked_, {})) {
    if (!blocked->is_gone) activate(*blocked);
  }
}

// A clock that was set moves all that is due by the calendar.
void PageEngine::Impl::look_at_calendar(TimePoint now) {
  const Duration calendar = wall().time_since_epoch() - now.time_since_epoch();
  const Duration moved = calendar > calendar_ ? calendar - calendar_ : calendar_ - calendar;
  if (moved < kClockSet) return;
  calendar_ = calendar;
  next_times_ = WallTime::min();
  for (const auto& [name, project] : projects_) {
    project->plan_times(wall());
    if (project->frontier) project->frontier->set_clock(now, wall());
    activate(*project);
  }
}

void PageEngine::Impl::pump() {
  const TimePoint now = loop_->time();
  if (auto failed = store_.failure(); failed && !failure_) {
    spdlog::error("{}", failed->message);
    failure_ = std::move(failed);
    stop(true);
  }
  if (stopping_) {
    end_tries();
    if (!std::exchange(drains_, true)) loop_->create_task(drain(), "drain");
    return;
  }
  look_at_calendar(now);
  do_times(wall());
  checkpoint(now);
  tell_round_ends();
  note_commits();
  if (store_.backlog() > kMostPageBacklog) return ticker_->at(now + kPageBacklogPause);
  while (!waking_.empty() && waking_.begin()->first <= now) {
    const auto found = by_id_.find(waking_.begin()->second);
    waking_.erase(waking_.begin());
    if (found == by_id_.end()) continue;
    found->second->wakes_at = kNever;
    activate(*found->second);
  }
  read_records(now);
  while (!active_.empty() && has_place()) {
    const Live project = std::move(active_.extract(active_.begin()).mapped());
    const Taken taken = project->is_gone ? Taken::nothing : take_one(project, now);
    if (taken == Taken::one) {
      active_.emplace(project->turn, project);
      continue;
    }
    project->is_active = false;
    if (taken == Taken::blocked) {
      blocked_.push_back(project);
    } else if (!project->is_gone && project->may_visit() && project->frontier) {
      const auto change = project->pause.next_change();
      TimePoint next = project->frontier->next_wakeup(now);
      if (change && !project->pause.may_begin(wall())) next = saturating_add(now, std::max(*change - wall(), Duration{std::chrono::milliseconds{1}}));
      wake_later(*project, std::max(next, now + std::chrono::microseconds{1}));
    }
  }
  read_records(now);
  TimePoint next = saturating_add(now, kLongestSleep);
  if (!waking_.empty()) next = std::min(next, waking_.begin()->first);
  if (!to_read_.empty() || visit_flush_) next = std::min(next, now + kReadPollPause);
  if (next_times_ != WallTime::max()) next = std::min(next, saturating_add(now, std::max(next_times_ - wall(), Duration{})));
  ticker_->at(next);
}

// Begins a visit of the project, or reads what it needs for one.
PageEngine::Impl::Taken PageEngine::Impl::take_one(const Live& project, TimePoint now) {
  if (!project->may_visit() || !project->frontier) return Taken::nothing;
  // Until a visit ends, its own or another's.
  if (project->visits.size() + project->taken >= most_of(*project)) return Taken::blocked;
  if (project->processor && project->reading >= project->processor->capacity() + kMostReading) return Taken::blocked;
  // While it is running, until it is known how those end that are under way.
  if (!project->pause.may_begin(wall())) return project->pause.next_change() ? Taken::nothing : Taken::blocked;
  project->frontier->set_clock(now, wall());
  project->frontier->sweep(now);
  const auto ticket = project->frontier->next(now);
  if (!ticket) return Taken::nothing;
  if (auto record = take_remembered(project->id_of(ticket->page))) {
    if (try_start(project, *ticket, std::move(*record), now)) take_turn(*project);
    return Taken::one;
  }
  take_turn(*project);
  ++project->taken;
  to_read_.push_back({project, *ticket});
  return Taken::one;
}

// Rows are read together, once all that was submitted before is there.
void PageEngine::Impl::read_records(TimePoint now) {
  if (to_read_.empty()) return;
  if (!read_flush_) {
    changed_since_.clear();
    read_count_ = std::min(to_read_.size(), kRowsReadAtOnce);
    read_flush_ = store_.begin_flush();
  }
  if (!store_.flushed(*read_flush_)) return;
  read_flush_.reset();
  const std::size_t count = std::min(to_read_.size(), read_count_);
  std::vector<ToRead> batch(std::make_move_iterator(to_read_.begin()), std::make_move_iterator(to_read_.begin() + static_cast<std::ptrdiff_t>(count)));
  to_read_.erase(to_read_.begin(), to_read_.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<PageId> ids;
  ids.reserve(batch.size());
  for (const ToRead& one : batch) ids.push_back(one.project->id_of(one.ticket.page));
  auto rows = store_.pages(ids);
  if (!rows) {
    failure_ = std::move(rows.error());
    spdlog::error("{}", failure_->message);
    stop(true);
    return;
  }
  std::unordered_map<PageId, PageRecord*> by_id;
  for (PageRecord& row : *rows) by_id.emplace(row.id, &row);
  for (ToRead& one : batch) {
    if (!one.project->is_gone && changed_since_.contains(one.project->id_of(one.ticket.page))) {
      to_read_.push_back(std::move(one));
      continue;
    }
    --one.project->taken;
    if (one.project->is_gone) continue;
    const auto found = by_id.find(one.project->id_of(one.ticket.page));
    if (found == by_id.end()) {
      // Of a batch that was never written: it is known no more.
      spdlog::error("project {}: page {} is not in the database", one.project->record.name, one.ticket.page);
      const KnownPage known = one.project->index.known(one.ticket.page);
      KnownPage none = known;
      none.state = PageState::cancelled;
      one.project->index.set(one.ticket.page, none);
      recount(*one.project, known, none);
      one.project->frontier->done(one.ticket, now);
      PageBatch ended;
      ended.at = wall();
      leave_round(*one.project, one.ticket.page, ended, ended.at);
      if (ended.size() > 0) submit(std::move(ended));
      activate(*one.project);
      continue;
    }
    if (!try_start(one.project, one.ticket, std::move(*found->second), now)) give_back_turn(*one.project);
    activate(*one.project);
  }
  if (!to_read_.empty()) ticker_->soon();
}

bool PageEngine::Impl::try_start(const Live& project, PageFrontier::Ticket ticket, PageRecord record, TimePoint now) {
  const KnownPage known = project->index.known(ticket.page);
  if (known.state != PageState::waiting || !project->may_visit()) {  // cancelled, or stopped, since it was taken
    project->frontier->done(ticket, now);
    return false;
  }
  const std::string& address = record.url.empty() ? record.name : record.url;
  const bool is_asked = !is_data_url(address);
  const auto url = is_asked ? url_to_visit(address) : Result<Url>();
  if (!url) {
    end_unfetched(project, ticket, std::move(record), url.error(), now, true);
    return false;
  }
  // An ask may have given a page of this name another URL.
  if (const std::uint32_t its_host = is_asked ? host_of(*url) : host_of(address); its_host != ticket.host) {
    project->index.set_host(ticket.page, its_host);
    project->frontier->put_back(ticket, now);
    remember(std::move(record));
    return false;
  }
  if (has_lost_its_rule(*project, ticket.page)) {
    const ProjectMap::Answer place = url ? project->map->find(url->href()) : ProjectMap::Answer{ProjectMap::Place::no_rule, {}};
    if (!is_asked || !place.rule) {
      end_unfetched(project, ticket, std::move(record),
                    {Errc::not_found, fmt::format("no rule of the project takes this page: it was asked for by a rule {}", in_quotes(record.rule))}, now, true);
      return false;
    }
    take_over(*project, ticket.page, record, *place.rule);
  }
  const RuleNumber rule = project->index.rule(ticket.page);
  PageSettings settings = project->rules[rule].settled;
  if (!record.settings.empty()) {
    if (const auto own = read_settings(record.settings)) settings = settled(merged(*own, project->rules[rule].settings, {}));
  }
  std::uint32_t host = 0;
  std::optional<VisitPass> pass;
  if (is_asked) {
    host = host_of(*url);
    const bool heeds = settings.request.robots.value.value_or(true);
    const HostDesk::Answer answer = desk_->begin(host, *url, heeds, settings.request.verify_certificate.value.value_or(true));
      switch (answer.leave) {
      case HostDesk::Leave::go: break;
      case HostDesk::Leave::wait: {
        project->frontier->put_back(ticket, now);
        project->frontier->rest(ticket.host, std::max(answer.until, now + std::chrono::milliseconds{1}), now);
        std::vector<ProjectId>& waiting = waiting_for_[host];
        if (std::ranges::find(waiting, project->record.id) == waiting.end()) waiting.push_back(project->record.id);
        remember(std::move(record));
        return false;
      }
      case HostDesk::Leave::forbidden:
        end_unfetched(project, ticket, std::move(record), {Errc::refused, std::string(kForbiddenByRobots)}, now, true);
        return false;
      case HostDesk::Leave::lost: end_unfetched(project, ticket, std::move(record), answer.why, answer.until, answer.is_refused); return false;
    }
    pass = project->pause.begin(wall());
    if (!pass) {
      desk_->give_back(host);
      project->frontier->put_back(ticket, now);
      remember(std::move(record));
      return false;
    }
  }
  if (idle_visits_.empty()) {
    visit_room_.push_back(std::make_unique<PageVisit>());
    idle_visits_.push_back(visit_room_.back().get());
  }
  PageVisit& visit = *idle_visits_.back();
  idle_visits_.pop_back();
  visit = PageVisit{.project = project, .ticket = ticket, .record = std::move(record), .before = known, .rule = rule, .host = host, .pass = pass,
                    .settings = std::move(settings), .began = now};
  if (project->round && project->is_in_round(ticket.page)) visit.round = project->round->number;
  KnownPage visiting = known;
  visiting.state = PageState::visiting;
  visiting.again = false;
  project->index.set(ticket.page, visiting);
  project->visits.emplace(ticket.page, &visit);
  ++under_way_;
  visit.task = loop_->create_task(this->visit(visit), "page");
  return true;
}

// A page's rule says what a project without a script does with it.
bool PageEngine::Impl::has_lost_its_rule(const LiveProject& project, PageIndex::Number page) {
  return project.definition.processor.empty() && !project.definition.rules.empty() && !project.rules[project.index.rule(page)].place;
}

// The page was asked for under a rule that a new version of the project has not: it goes on under one that it has.
void PageEngine::Impl::take_over(LiveProject& project, PageIndex::Number page, PageRecord& record, std::size_t place) {
  record.rule = project.definition.rules[place].name();
  project.index.set_rule(page, project.rule_number(record.rule));
  PageBatch batch;
  batch.at = wall();
  PageChange change{.id = record.id, .known = project.index.known(page), .round = project.round && project.is_in_round(page) ? project.round->number : 0};
  change.rule = record.rule;
  batch.changes.push_back(std::move(change));
  submit(std::move(batch));
}

// --- what is done beside visits --------------------------------------------------------------------------------------

// Its next start or tick, and by that when the engine looks for them next.
void PageEngine::Impl::plan(LiveProject& project) {
  project.plan_times(wall());
  if (project.next_time) next_times_ = std::min(next_times_, *project.next_time);
}

void PageEngine::Impl::do_times(WallTime now) {
  if (now < next_times_) return;
  next_times_ = WallTime::max();
  for (const auto& [name, project] : projects_) {
    if (project->next_time && *project->next_time <= now) do_times_of(*project, now);
    if (project->next_time) next_times_ = std::min(next_times_, *project->next_time);
  }
}

// However many times have passed, each start and each tick comes once.
void PageEngine::Impl::do_times_of(LiveProject& project, WallTime now) {
  if (!project.may_visit()) {
    // It is looked at again when it may.
    project.next_time.reset();
    return;
  }
  const auto started = project.last_times.find("start");
  if (started == project.last_times.end()) {
    if (project.definition.every) (void)start(project, "every");
  } else {
    const bool by_span = project.definition.every && started->second + *project.definition.every <= now;
    bool by_schedule = false;
    if (project.definition.schedule) {
      const auto next = project.definition.schedule->next(started->second);
      by_schedule = next && *next <= now;
    }
    if (by_span || by_schedule) (void)start(project, by_schedule ? "schedule" : "every");
  }
  if (project.description) {
    PageBatch batch;
    batch.at = now;
    for (const ProcessorDescription::Tick& tick : project.description->ticks) {
      const std::string name = std::string(kTickPage) + tick.rule;
      const auto last = project.last_times.find(name);
      if (last == project.last_times.end()) continue;
      const WallTime planned{now.time_since_epoch() / tick.every * tick.every};  // the latest that has passed
      if (planned <= last->second) continue;
      last->second = planned;
      project.is_changed = true;
      const auto seconds = std::chrono::floor<std::chrono::seconds>(planned.time_since_epoch()).count();
      take_event(project, name, tick.rule, "{\"tick\":" + std::to_string(seconds) + "}",
                 begin_round(project, "tick", batch, now), batch, now);
    }
    if (batch.size() > 0) {
      write_down(project, batch);  // with them, so that a tick comes neither twice nor never
      submit(std::move(batch));
    }
  }
  project.plan_times(now);
}

void PageEngine::Impl::write_down(LiveProject& project, PageBatch& batch) {
  project.is_changed = false;
  project.record.pause = project.pause.stored();
  project.record.counters = project.counters.stored();
  project.record.ticks = project.stored_times();
  batch.projects.push_back(project.record);
}

void PageEngine::Impl::checkpoint(TimePoint now) {
  if (now < next_checkpoint_) return;
  next_checkpoint_ = now + kCheckpointPause;
  PageBatch batch;
  for (const auto& [name, project] : projects_) {
    if (project->is_changed) write_down(*project, batch);
  }
  if (now >= next_prune_) {
    next_prune_ = now + kPrunePause;
    for (const auto& [name, project] : projects_) {
      // Where sinks are another's care, they may want all of it.
      std::int64_t up_to = std::numeric_limits<std::int64_t>::max();
      if (project->sinks) {
        for (const SinkRow& row : project->sinks->rows()) up_to = std::min(up_to, row.cursor);
      } else if (!project->definition.sinks.empty()) {
        up_to = 0;
      }
      if (up_to > 0) batch.pruned.push_back({.project = project->record.id, .up_to = up_to, .before = wall() - kFeedKept});
    }
  }
  const WallTime limit = wall() - std::chrono::hours{24};
  for (auto entry = deleted_.begin(); entry != deleted_.end();) {
    // A clock that was set back leaves times in the future.
    entry->second.deleted_at = std::min(*entry->second.deleted_at, wall());
    if (*entry->second.deleted_at > limit) {
      ++entry;
      continue;
    }
    batch.forgotten.push_back(entry->second.id);
    entry = deleted_.erase(entry);
  }
  if (batch.size() > 0) submit(std::move(batch));
}

void PageEngine::Impl::tell_round_ends() {
  for (EndedRound& ended : ended_rounds_) {
    if (ended.flush == 0) ended.flush = store_.begin_flush();
  }
  while (!ended_rounds_.empty() && store_.flushed(ended_rounds_.front().flush)) {
    const EndedRound ended = std::move(ended_rounds_.front());
    ended_rounds_.erase(ended_rounds_.begin());
    if (const Live project = find(ended.project); project && !project->round) project->round_is_over.set();
    if (!options_.on_round_end) continue;
    try {
      options_.on_round_end(ended.project, ended.round, ended.alarms);
    } catch (const std::exception& error) {
      spdlog::error("project {}: the end of its round could not be told: {}", ended.project, error.what());
    }
  }
  if (!ended_rounds_.empty() && ticker_) ticker_->at(loop_->time() + kReadPollPause);
}

bool PageEngine::Impl::is_told(const LiveProject& project) const {
  return std::ranges::none_of(ended_rounds_, [&](const EndedRound& ended) { return ended.project == project.record.name; });
}

void PageEngine::Impl::mark_changed(LiveProject& project) { project.is_changed = true; }

void PageEngine::Impl::log(const LiveProject& project, std::string_view level, std::string text) {
  if (project.log) return project.log({std::string(level), std::move(text)});
  if (!options_.on_log) return;
  try {
    options_.on_log(project.record.name, {std::string(level), std::move(text)});
  } catch (const std::exception& error) {
    spdlog::error("project {}: its log could not be told: {}", project.record.name, error.what());
  }
}

// --- the public face ---------------------------------------------------------------------------------------------------

PageEngine::PageEngine(PageEngineOptions options, PageStore& store) : impl_(std::make_unique<Impl>(std::move(options), store)) {}
PageEngine::~PageEngine() = default;

Result<void> PageEngine::open(WallTime now) { return impl_->open(now); }
Coro<Result<void>> PageEngine::run(HttpTransport& transport, Resolver* resolver) { return impl_->run(transport, resolver); }
void PageEngine::stop(bool at_once) { impl_->stop(at_once); }
Result<ProjectId> PageEngine::put_project(Draft draft) { return impl_->put_project(std::move(draft)); }
Result<void> PageEngine::remove(std::string_view name) { return impl_->remove(name); }
Result<void> PageEngine::restore(std::string_view name) { return impl_->restore(name); }
std::uint64_t PageEngine::visits() const noexcept { return impl_->visits_; }
std::uint64_t PageEngine::visits_failed() const noexcept { return impl_->visits_failed_; }
std::uint64_t PageEngine::given_up() const noexcept { return impl_->given_up_; }
std::size_t PageEngine::under_way() const noexcept { return impl_->under_way_; }
Coro<Result<TriedPage>> PageEngine::try_page(PageTryOrder order) { return impl_->try_page(std::move(order)); }
std::optional<PageId> PageEngine::page_id(std::string_view project, std::string_view page) const { return impl_->page_id(project, page); }
Result<PageExplanation> PageEngine::explain(std::string_view project, std::string_view page) { return impl_->explain(project, page); }

}  // namespace argiope
