// SinkDesk: the sinks of projects, which begin and end with the versions that name them.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>

#include "project/run/page_engine_core.hpp"

namespace argiope {

class SinkDesk final : public PageEnginePart {
 public:
  explicit SinkDesk(PageEngineCore& core) : PageEnginePart(core) {}

  // They hear of results as these come into the store.
  void begin_feed();
  void end_feed();

  void begin(LiveProject& project);
  // Those that the project has by then begin when the old ones have ended: never are two at one file.
  void end(LiveProject& project);
  static void keep_named(const LiveProject& project, PageBatch& batch);
  // At the end of a run they take what there is.
  Coro<void> finish();

 private:
  Coro<void> end_now(ProjectId project, std::unique_ptr<ResultSinks> sinks);
  void wake_all() const;

  std::unordered_map<ProjectId, std::size_t> ending_sinks_;
  // Gone with the engine: what the store's thread has asked the loop for looks at it first.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace argiope
