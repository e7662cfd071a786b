// What PageEngine offers, by its parts.
#include <algorithm>
#include <cmath>

#include "project/run/page_engine_impl.hpp"

namespace argiope {
namespace {

constexpr std::uint32_t kMostBurst = 1'000'000;

}  // namespace

PageEngine::PageEngine(PageEngineOptions options, PageStore& store)
    : impl_(std::make_unique<Impl>(std::move(options), store)) {}
PageEngine::~PageEngine() = default;

Result<void> PageEngine::open(WallTime now) { return impl_->open(now); }
Coro<Result<void>> PageEngine::run(HttpTransport& transport, Resolver* resolver) {
  return impl_->run(transport, resolver);
}
void PageEngine::stop(bool at_once) { impl_->core.stop(at_once); }
Result<ProjectId> PageEngine::put_project(Draft draft) { return impl_->projects.put(std::move(draft)); }
Result<void> PageEngine::remove(std::string_view name) { return impl_->projects.remove(name); }
Result<void> PageEngine::restore(std::string_view name) { return impl_->projects.restore(name); }
std::uint64_t PageEngine::visits() const noexcept { return impl_->settler.visits(); }
std::uint64_t PageEngine::visits_failed() const noexcept { return impl_->settler.visits_failed(); }
std::uint64_t PageEngine::given_up() const noexcept { return impl_->settler.given_up(); }
std::size_t PageEngine::under_way() const noexcept { return impl_->places.under_way(); }
Coro<Result<TriedPage>> PageEngine::try_page(PageTryOrder order) { return impl_->tries.try_page(std::move(order)); }
std::optional<PageId> PageEngine::page_id(std::string_view project, std::string_view page) const {
  return impl_->reports.page_id(project, page);
}
Result<PageExplanation> PageEngine::explain(std::string_view project, std::string_view page) {
  return impl_->reports.explain(project, page);
}

// --- projects

Result<void> PageEngine::set_status(std::string_view name, ProjectStatus status) {
  return impl_->projects.change(name, [&](LiveProject& its) {
    its.record.status = std::string(to_string(status));
    its.definition.status = status;
  });
}

Result<void> PageEngine::set_rate(std::string_view name, std::optional<double> rate,
                                  std::optional<std::uint32_t> burst) {
  if (rate && !(*rate >= 0 && std::isfinite(*rate))) return fail(Errc::invalid_input, "rate: a number from 0 on");
  if (burst && (*burst == 0 || *burst > kMostBurst))
    return fail(Errc::invalid_input, "burst: a whole number from 1 on");
  return impl_->projects.change(name, [&](LiveProject& its) {
    its.record.rate = rate;
    its.record.burst = burst;
  });
}

Result<void> PageEngine::set_group(std::string_view name, std::string group) {
  return impl_->projects.change(name, [&](LiveProject& its) { its.record.group = std::move(group); });
}

Result<void> PageEngine::resume(std::string_view name) {
  return impl_->projects.change(name, [](LiveProject& its) { its.pause.resume(); });
}

Result<void> PageEngine::start(std::string_view name, std::string cause) {
  auto project = impl_->core.need(name);
  if (!project) return std::unexpected(std::move(project.error()));
  return impl_->starts.start(**project, std::move(cause));
}

Result<AskDecision> PageEngine::ask(std::string_view name, AskedPage page) {
  auto found = impl_->core.need(name);
  if (!found) return std::unexpected(std::move(found.error()));
  LiveProject& project = **found;
  PageBatch batch;
  batch.at = impl_->core.wall();
  const bool begins = !project.round;
  RoundCounts counts_before = begins ? project.counts : RoundCounts{};
  const std::int64_t round = impl_->rounds.begin(project, "ask", batch, batch.at);
  auto taken = impl_->asks.take_page(project, page, round, 0, batch, batch.at);
  if (begins && project.outstanding == 0) {  // it has led to nothing
    project.round.reset();
    project.counts = std::move(counts_before);
    std::erase_if(batch.rounds, [&](const RoundRecord& one) { return one.number == project.last_round; });
    --project.last_round;
  }
  if (batch.size() > 0) impl_->core.submit(std::move(batch));
  return taken;
}

Result<void> PageEngine::send_message(std::string_view from, PageMessage message) {
  PageBatch batch;
  batch.at = impl_->core.wall();
  auto sent = impl_->asks.take_message(from, message, batch, batch.at);
  if (sent) impl_->core.submit(std::move(batch));
  return sent;
}

std::vector<ProjectStatusNow> PageEngine::projects() const {
  std::vector<ProjectStatusNow> told;
  for (const auto& [name, project] : impl_->core.projects) told.push_back(impl_->reports.status_of(*project));
  return told;
}

std::optional<ProjectStatusNow> PageEngine::project(std::string_view name) const {
  const auto project = impl_->core.find(name);
  return project ? std::optional(impl_->reports.status_of(*project)) : std::nullopt;
}

std::shared_ptr<const ProjectDefinition> PageEngine::definition(std::string_view name) const {
  const auto project = impl_->core.find(name);
  return project && project->map ? std::shared_ptr<const ProjectDefinition>(project, &project->definition) : nullptr;
}

const ProjectCounters* PageEngine::counters(std::string_view name) const {
  const auto project = impl_->core.find(name);
  return project ? &project->counters : nullptr;
}

std::vector<VisitNote> PageEngine::recent(std::string_view name) const {
  const auto project = impl_->core.find(name);
  return project ? std::vector<VisitNote>(project->recent.begin(), project->recent.end()) : std::vector<VisitNote>{};
}

std::vector<FieldCount> PageEngine::coverage(std::string_view name) const {
  const auto project = impl_->core.find(name);
  return project ? project->counts.fields : std::vector<FieldCount>{};
}

std::vector<std::string> PageEngine::alarms(std::string_view name) const {
  const auto project = impl_->core.find(name);
  return project ? project->alarms : std::vector<std::string>{};
}

std::vector<SinkRow> PageEngine::sinks(std::string_view name) const {
  const auto project = impl_->core.find(name);
  return project && project->sinks ? project->sinks->rows() : std::vector<SinkRow>{};
}

bool PageEngine::sinks_have_all(std::string_view name) const {
  const auto project = impl_->core.find(name);
  return !project || !project->sinks || project->sinks->has_all();
}

std::optional<WallTime> PageEngine::round_due(std::string_view name) const {
  const auto project = impl_->core.find(name);
  if (!project || !project->round) return std::nullopt;
  const WallTime now = impl_->core.wall();
  std::optional<WallTime> first;
  for (PageIndex::Number page = 0; page < project->in_round.size(); ++page) {
    if (!project->in_round[page] || project->index.state(page) != PageState::waiting) continue;
    const WallTime due = project->index.known(page).due;
    if (!first || due < *first) first = due;
    if (*first <= now) break;
  }
  return first;
}

std::size_t PageEngine::due_pages(std::string_view name, WallTime by, std::size_t most) const {
  const auto project = impl_->core.find(name);
  std::size_t found = 0;
  for (PageIndex::Number page = 1; project && page <= project->index.size() && found < most; ++page) {
    if (project->index.state(page) != PageState::waiting) continue;
    const KnownPage known = project->index.known(page);
    if (known.wait != PageWait::recrawl && known.due <= by) ++found;
  }
  return found;
}

Coro<void> PageEngine::round_over(std::string_view name) {
  const auto project = impl_->core.find(name);
  if (!project || impl_->core.ended.is_set() ||
      (!project->round && !project->record.start_wanted && impl_->rounds.is_told(*project)))
    co_return;
  project->round_is_over.clear();
  co_await project->round_is_over.wait();
}

// --- hosts

HostsFound PageEngine::hosts(const HostQuery& query) const { return impl_->host_reports.hosts(query); }

HostExplanation PageEngine::explain_host(std::string_view site,
                                         const std::function<bool(std::string_view project)>& may_see) const {
  return impl_->host_reports.explain_host(site, may_see);
}

}  // namespace argiope
