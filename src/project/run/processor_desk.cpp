#include "project/run/processor_desk.hpp"

#include <utility>

#include "argiope/async/event_loop.hpp"

namespace argiope {
namespace {

constexpr std::string_view kNoteOfScript = "the script has changed";
constexpr Duration kIdleLookPause = std::chrono::milliseconds{50};
constexpr Duration kFirstDescriptionPause = std::chrono::seconds{10};
constexpr Duration kSoonToDo = std::chrono::seconds{3};
constexpr Duration kLongestDescriptionPause = std::chrono::minutes{5};

}  // namespace

void ProcessorDesk::begin(LiveProject& project) {
  if (project.definition.processor.empty() || project.processor || core_.loop == nullptr) return;
  if (!options_.make_processor) {
    project.record.trouble = "nobody here can run its processor";
    return;
  }
  // Calls that come after the project is gone, or has another processor, are for nobody.
  const std::weak_ptr<LiveProject> weak = core_.by_id.at(project.record.id);
  const auto live = [weak, number = ++project.processor_number]() -> SharedProject {
    SharedProject its = weak.lock();
    return its && !its->is_gone && its->processor_number == number ? its : nullptr;
  };
  project.is_told_debug = project.definition.status == ProjectStatus::debug;
  ProcessorWatch watch;
  watch.log = [this, weak](PageLog line) {
    if (const auto its = weak.lock()) log(*its, line.level, std::move(line.text));
  };
  watch.described = [this, live](const ProcessorDescription& description) {
    if (const SharedProject its = live()) take_description(*its, description);
  };
  watch.trouble = [this, live](const std::string& trouble) {
    const SharedProject its = live();
    if (!its || its->record.trouble == trouble) return;
    its->record.trouble = trouble;
    its->is_changed = true;
    turns_.activate(*its);
  };
  watch.changed = [this, live] {
    if (const SharedProject its = live()) take_script(*its);
  };
  auto made = options_.make_processor(project.definition, std::move(watch));
  if (!made) {
    project.record.trouble = made.error().message;
    log(project, "error", project.record.trouble);
    return;
  }
  project.processor = std::move(*made);
  project.describing = core_.loop->create_task(describe(core_.by_id.at(project.record.id)), "describe");
}

void ProcessorDesk::tell_debug(LiveProject& project) {
  const bool is_debug = project.definition.status == ProjectStatus::debug;
  if (!project.processor || !project.is_running() || is_debug == project.is_told_debug) return;
  let_go(project);
  begin(project);
}

void ProcessorDesk::take_script(LiveProject& project) {
  if (!options_.script_of || project.text.empty()) return;
  std::string script = options_.script_of(project.definition);
  if (script.empty() || script == project.script) return;
  project.script = std::move(script);
  const WallTime now = wall();
  PageBatch batch;
  batch.at = now;
  batch.versions.push_back({.project = project.record.id,
                            .number = ++project.record.version,
                            .made_at = now,
                            .text = project.text,
                            .source = project.source,
                            .script = project.script,
                            .note = std::string(kNoteOfScript)});
  project.record.changed_at = now;
  project.write_to(batch);
  submit(std::move(batch));
}

void ProcessorDesk::take_description(LiveProject& project, ProcessorDescription description) {
  project.is_changed = true;
  project.record.trouble.clear();
  project.description = std::move(description);
  project.make_rules();
  project.frontier->terms_changed(core_.loop->time());
  starts_.plan(project);
  starts_.begin_wanted(project);
  PageBatch batch;
  batch.at = wall();
  rounds_.end_if_over(project, batch, batch.at);
  rounds_.tell_script(project, batch, batch.at);
  if (batch.size() > 0) submit(std::move(batch));
  turns_.activate(project);
}

// As often as its script changes. Each that is asked has a process: so few have a place for that at a time, and leave
// it when their processes have something to do or have ended. Those that hang wait for each other, once that is known
// of them.
Coro<void> ProcessorDesk::describe(SharedProject project) {
  const std::shared_ptr<Processor> processor = project->processor;
  const std::shared_ptr<DescribingPlaces> places = describing_;
  const auto is_over = [&] { return project->is_gone || project->processor != processor; };
  for (Duration pause{}; !is_over();) {
    if (pause > Duration{}) co_await sleep(pause);
    bool is_described = false;
    {
      const Semaphore::Permit place = co_await (pause > Duration{} ? places->again : places->first).scoped();
      auto said = co_await processor->describe();
      if (is_over()) co_return;
      is_described = said.has_value();
      if (said) {
        take_description(*project, std::move(*said));
        if (!has_something_to_do(*project)) co_await processor->rest();
      } else {
        project->is_changed = true;
        project->record.trouble = said.error().message;
        log(*project, "error", project->record.trouble);
      }
    }
    if (is_described) co_await processor->when_changed();
    pause = is_described ? Duration{} : std::clamp(pause * 2, kFirstDescriptionPause, kLongestDescriptionPause);
  }
}

bool ProcessorDesk::has_something_to_do(LiveProject& project) const {
  if (!project.visits.empty() || project.taken > 0) return true;
  if (!project.may_visit()) return false;
  const TimePoint now = core_.loop->time();
  project.frontier->set_clock(now, wall());
  project.frontier->sweep(now);
  const TimePoint next = project.frontier->next_wakeup(now);
  return next != kNever && next <= now + kSoonToDo;
}

void ProcessorDesk::let_go(LiveProject& project) {
  ++project.processor_number;
  if (project.describing && !project.describing.done()) project.describing.cancel();
  if (project.processor) core_.background->run(nullptr, close_when_idle(std::exchange(project.processor, nullptr)));
}

// Calls of it hold it, too.
Coro<void> ProcessorDesk::close_when_idle(std::shared_ptr<Processor> old) {
  while (old.use_count() > 1 && !core_.ended.is_set()) co_await sleep(kIdleLookPause);
  co_await old->close();
}

}  // namespace argiope
