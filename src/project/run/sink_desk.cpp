#include "project/run/sink_desk.hpp"

#include <algorithm>
#include <utility>

#include "argiope/async/event_loop.hpp"

namespace argiope {
namespace {

constexpr Duration kSinksPoll = std::chrono::milliseconds{10};

}  // namespace

void SinkDesk::begin_feed() {
  if (!options_.sink_means) return;
  store_.on_feed([this, alive = std::weak_ptr(alive_), &loop = *core_.loop] {
    loop.call_soon_threadsafe([this, alive] {
      if (!alive.expired()) wake_all();
    });
  });
}

void SinkDesk::end_feed() {
  if (options_.sink_means) store_.on_feed(nullptr);
}

void SinkDesk::wake_all() const {
  for (const auto& [name, project] : core_.projects) {
    if (project->sinks) project->sinks->wake();
  }
}

// Sinks in trouble are not waited for.
Coro<void> SinkDesk::finish() {
  if (!store_.flush()) co_return;
  const auto is_in_trouble = [](const SinkRow& row) { return !row.trouble.empty(); };
  wake_all();
  co_await yield_now();
  const TimePoint began = core_.loop->time();
  for (const auto& [name, project] : core_.projects) {
    // Projects are put no more: this one stays, and so do its sinks.
    while (project->sinks && !project->sinks->has_all() &&
           std::ranges::none_of(project->sinks->rows(), is_in_trouble) &&
           core_.loop->time() < saturating_add(began, options_.sinks_at_end())) {
      co_await sleep(kSinksPoll);
    }
  }
}

void SinkDesk::begin(LiveProject& project) {
  if (project.definition.sinks.empty() || project.sinks || core_.loop == nullptr || !options_.sink_means ||
      ending_sinks_.contains(project.record.id))
    return;
  SinkMeans means = options_.sink_means(project.definition);
  if (means.transport == nullptr) means.transport = core_.transport;
  const auto submit_row = [this](SinkRow row) {
    PageBatch batch;
    batch.at = wall();
    batch.sinks.push_back(std::move(row));
    submit(std::move(batch));
  };
  project.sinks = std::make_unique<ResultSinks>(*core_.loop, store_, submit_row, project.record.id, project.definition,
                                                std::move(means));
  if (auto started = project.sinks->start(); !started) {
    log(project, "error", started.error().message);
    project.sinks.reset();
  }
}

// How far a sink had come that the file does not name any more is forgotten: one of that name is another.
void SinkDesk::keep_named(const LiveProject& project, PageBatch& batch) {
  SinksKept kept{.project = project.record.id, .names = {}};
  for (const ProjectSink& sink : project.definition.sinks) kept.names.push_back(sink.name);
  batch.kept_sinks.push_back(std::move(kept));
}

void SinkDesk::end(LiveProject& project) {
  if (!project.sinks) return;
  ++ending_sinks_[project.record.id];
  core_.background->run(nullptr, end_now(project.record.id, std::move(project.sinks)));
}

// Those of the new version go on where those of the one before have come to.
Coro<void> SinkDesk::end_now(ProjectId project, std::unique_ptr<ResultSinks> sinks) {
  co_await sinks->stop();
  sinks.reset();
  if (--ending_sinks_[project] > 0) co_return;
  ending_sinks_.erase(project);
  const auto found = core_.by_id.find(project);
  if (found == core_.by_id.end()) co_return;
  PageBatch batch;
  batch.at = wall();
  keep_named(*found->second, batch);
  submit(std::move(batch));
  if (!core_.stopping) begin(*found->second);
}

}  // namespace argiope
