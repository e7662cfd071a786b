#include "project/run/internal/page_engine.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>

#include "argiope/async/event_loop.hpp"
#include "project/run/page_engine_impl.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostPageBacklog = 50'000;  // records the store may lag behind before visits pause
constexpr Duration kReadPollPause = std::chrono::milliseconds{2};
constexpr Duration kPageBacklogPause = std::chrono::milliseconds{20};
constexpr Duration kCheckpointPause = std::chrono::seconds{5};
constexpr Duration kPrunePause = std::chrono::minutes{10};
constexpr Duration kFeedKept = std::chrono::hours{24 * 7};  // what became of results, for who has no sink
constexpr Duration kSinksGrace = std::chrono::seconds{10};
constexpr Duration kLongestSleep = std::chrono::seconds{1};
constexpr std::size_t kMostReading = 4;  // fetched pages that wait for a processor, beside those it reads

}  // namespace

// --- life ----------------------------------------------------------------------------------------------------------

PageEngine::Impl::Impl(PageEngineOptions options, PageStore& store)
    : core(std::move(options), store),
      hosts(core),
      turns(core),
      rows(core),
      asks(core, hosts, turns, rows, rounds),
      rounds(core, asks),
      starts(core, turns, asks, rounds),
      processors(core, turns, rounds, starts),
      sinks(core),
      reader(core, hosts),
      places(core, turns, rows),
      settler(core, asks, rounds, places),
      starter(core, hosts, turns, rows, reader, places, settler),
      projects(core, turns, rows, rounds, starts, processors, sinks),
      tries(core, hosts, reader),
      reports(core, hosts),
      host_reports(core, hosts, reports) {}

PageEngine::Impl::~Impl() = default;

Result<void> PageEngine::Impl::open(WallTime now) {
  core.opened_at = now;
  auto met = core.store.hosts();
  if (!met) return std::unexpected(std::move(met.error()));
  hosts.take_up(std::move(*met));
  auto records = core.store.projects();
  if (!records) return std::unexpected(std::move(records.error()));
  return projects.take_up(std::move(*records), now);
}

Coro<Result<void>> PageEngine::Impl::run(HttpTransport& transport, Resolver* resolver) {
  core.loop = &EventLoop::current();
  core.transport = &transport;
  hosts.open_desk(resolver);
  hosts.desk().on_free([this](std::uint32_t host) { turns.wake_for_host(host); });
  core.ticker.emplace(*core.loop, [this] { pump(); });
  core.background.emplace(*core.loop, "beside");
  reader.open_threads();
  sinks.begin_feed();
  for (const auto& [name, project] : core.projects) projects.begin(*project);
  bool cancelled = false;
  try {
    pump();
    co_await core.ended.wait();
  } catch (const CancelledError&) {
    cancelled = true;
  }
  if (cancelled) {
    core.stop(true);
    if (!std::exchange(drains_, true)) {
      co_await drain();
    } else {
      co_await core.ended.wait();
    }
  }
  core.ticker->stop();
  tries.end_tries();
  co_await tries.ended();
  const PageEngineOptions& options = core.options;
  if (!cancelled && options.sink_means && options.sinks_at_end) co_await sinks.finish();
  for (const auto& [name, project] : core.projects) {
    if (project->describing && !project->describing.done()) project->describing.cancel();
    if (project->processor) co_await project->processor->close();
    if (project->sinks)
      co_await project->sinks->stop(options.sinks_at_end ? std::min(options.sinks_at_end(), kSinksGrace) : kSinksGrace);
    project->round_is_over.set();
  }
  co_await core.background->quiet();
  sinks.end_feed();
  co_await reader.close();
  co_await hosts.desk().close();
  reader.close_threads();
  PageBatch batch;
  for (const auto& [name, project] : core.projects) project->write_to(batch);
  if (batch.size() > 0) core.submit(std::move(batch));
  rounds.begin_flush();
  auto flushed = core.store.flush();
  rounds.tell_ends();
  if (cancelled) throw CancelledError();
  if (core.failure) co_return std::unexpected(*core.failure);
  co_return flushed;
}

Coro<void> PageEngine::Impl::drain() {
  for (const TimePoint limit = saturating_add(core.loop->time(), core.options.drain_limit); places.under_way() > 0;) {
    if (core.at_once || core.loop->time() >= limit) places.cancel_all();
    co_await sleep(std::chrono::milliseconds{10});
  }
  core.ended.set();
}

// --- what is visited next -------------------------------------------------------------------------------------------

void PageEngine::Impl::pump() {
  const TimePoint now = core.loop->time();
  if (auto failed = core.store.failure(); failed && !core.failure) core.fail(std::move(*failed));
  if (core.stopping) {
    tries.end_tries();
    if (!std::exchange(drains_, true)) core.loop->create_task(drain(), "drain");
    return;
  }
  starts.look_at_calendar(now);
  starts.do_due(core.wall());
  checkpoint(now);
  rounds.tell_ends();
  places.note_commits();
  if (core.store.backlog() > kMostPageBacklog) return core.ticker->at(now + kPageBacklogPause);
  turns.wake_due(now);
  read_rows(now);
  while (!turns.empty() && places.has_one()) {
    const SharedProject project = turns.take_first();
    const Taken taken = project->is_gone ? Taken::nothing : take_one(project, now);
    if (taken == Taken::one) {
      turns.put_back(project);
      continue;
    }
    project->is_active = false;
    if (taken == Taken::blocked) {
      turns.block(project);
    } else if (!project->is_gone && project->may_visit() && project->frontier) {
      const auto change = project->pause.next_change();
      TimePoint next = project->frontier->next_wakeup(now);
      if (change && !project->pause.may_begin(core.wall()))
        next = saturating_add(now, std::max(*change - core.wall(), Duration{std::chrono::milliseconds{1}}));
      turns.wake_later(*project, std::max(next, now + std::chrono::microseconds{1}));
    }
  }
  read_rows(now);
  TimePoint next = saturating_add(now, kLongestSleep);
  if (const auto wake = turns.next_wake()) next = std::min(next, *wake);
  if (rows.wanted() > 0 || places.waits_for_commit()) next = std::min(next, now + kReadPollPause);
  if (starts.next_time() != WallTime::max())
    next = std::min(next, saturating_add(now, std::max(starts.next_time() - core.wall(), Duration{})));
  core.ticker->at(next);
}

// Begins a visit of the project, or reads what it needs for one.
PageEngine::Impl::Taken PageEngine::Impl::take_one(const SharedProject& project, TimePoint now) {
  if (!project->may_visit() || !project->frontier) return Taken::nothing;
  // Until a visit ends, its own or another's.
  if (project->visits.size() + project->taken >= places.most_of(*project)) return Taken::blocked;
  if (project->processor && project->reading >= project->processor->capacity() + kMostReading) return Taken::blocked;
  // While it is running, until it is known how those end that are under way.
  if (!project->pause.may_begin(core.wall())) return project->pause.next_change() ? Taken::nothing : Taken::blocked;
  project->frontier->set_clock(now, core.wall());
  project->frontier->sweep(now);
  const auto ticket = project->frontier->next(now);
  if (!ticket) return Taken::nothing;
  if (auto record = rows.take_remembered(project->id_of(ticket->page))) {
    if (starter.try_start(project, *ticket, std::move(*record), now)) turns.take_turn(*project);
    return Taken::one;
  }
  turns.take_turn(*project);
  ++project->taken;
  rows.want(project, *ticket);
  return Taken::one;
}

void PageEngine::Impl::read_rows(TimePoint now) {
  auto read = rows.read();
  if (!read) return core.fail(std::move(read.error()));
  if (!*read) return;
  for (RowDesk::Row& row : **read) take_row(std::move(row), now);
  if (rows.wanted() > 0) core.soon();
}

void PageEngine::Impl::take_row(RowDesk::Row row, TimePoint now) {
  const auto& [project, ticket] = row.wanted;
  --project->taken;
  if (project->is_gone) return;
  if (row.record) {
    if (!starter.try_start(project, ticket, std::move(*row.record), now)) ProjectTurns::give_back_turn(*project);
    return turns.activate(*project);
  }
  // Of a batch that was never written: it is known no more.
  spdlog::error("project {}: page {} is not in the database", project->record.name, ticket.page);
  const KnownPage known = project->index.known(ticket.page);
  KnownPage none = known;
  none.state = PageState::cancelled;
  project->index.set(ticket.page, none);
  project->recount(known, none);
  project->frontier->done(ticket, now);
  PageBatch ended;
  ended.at = core.wall();
  rounds.leave(*project, ticket.page, ended, ended.at);
  if (ended.size() > 0) core.submit(std::move(ended));
  turns.activate(*project);
}

// --- what is done beside visits --------------------------------------------------------------------------------------

void PageEngine::Impl::checkpoint(TimePoint now) {
  if (now < next_checkpoint_) return;
  next_checkpoint_ = now + kCheckpointPause;
  PageBatch batch;
  for (const auto& [name, project] : core.projects) {
    if (project->is_changed) project->write_to(batch);
  }
  if (now >= next_prune_) {
    next_prune_ = now + kPrunePause;
    prune(batch);
  }
  projects.forget_deleted(batch);
  if (batch.size() > 0) core.submit(std::move(batch));
}

void PageEngine::Impl::prune(PageBatch& batch) const {
  for (const auto& [name, project] : core.projects) {
    // Where sinks are another's care, they may want all of it.
    std::int64_t up_to = std::numeric_limits<std::int64_t>::max();
    if (project->sinks) {
      for (const SinkRow& row : project->sinks->rows()) up_to = std::min(up_to, row.cursor);
    } else if (!project->definition.sinks.empty()) {
      up_to = 0;
    }
    if (up_to > 0)
      batch.pruned.push_back({.project = project->record.id, .up_to = up_to, .before = core.wall() - kFeedKept});
  }
}

}  // namespace argiope
