// What all parts of a page engine have in common: its means, its projects, and whether it ends.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/base/random.hpp"
#include "async/internal/background.hpp"
#include "async/internal/ticker.hpp"
#include "project/run/internal/page_engine.hpp"
#include "project/run/live_project.hpp"

namespace argiope {

// Lifetime: of its engine; its parts go before it.
// Threads:  the loop's own.
struct PageEngineCore {
  PageEngineCore(PageEngineOptions its_options, PageStore& its_store);
  PageEngineCore(const PageEngineCore&) = delete;

  // --- time
  WallTime wall() const;
  // When a wait of the loop's ends; null: in more than a hundred years.
  std::optional<WallTime> wall_at(TimePoint at) const;

  // --- projects
  SharedProject find(std::string_view name) const;
  // Errors: not_found.
  Result<SharedProject> need(std::string_view name) const;
  // The error of a project that is not there, or is not to be seen.
  static std::unexpected<Error> no_project(std::string_view name);
  void log(const LiveProject& project, std::string_view level, std::string text) const;
  // With the rows of hosts that were met since the last one.
  void submit(PageBatch batch);

  // --- its end
  void stop(bool now);
  // The store has failed: nothing is visited any more.
  void fail(Error error);
  // The engine looks again for pages to visit.
  void soon() {
    if (ticker) ticker->soon();
  }

  const PageEngineOptions options;
  PageStore& store;
  std::map<std::string, SharedProject, std::less<>> projects;
  std::unordered_map<ProjectId, SharedProject> by_id;
  Random random;
  RuleReaders::Shared reading;
  std::vector<HostRow> new_hosts;  // not submitted yet

  // While it runs.
  EventLoop* loop = nullptr;
  HttpTransport* transport = nullptr;
  std::optional<Ticker> ticker;
  std::optional<Background> background;

  WallTime opened_at{};
  Event ended;
  bool stopping = false;
  bool at_once = false;
  std::optional<Error> failure;
};

// One of the parts of a page engine, with one concern each.
class PageEnginePart {
 public:
  PageEnginePart(const PageEnginePart&) = delete;
  PageEnginePart& operator=(const PageEnginePart&) = delete;

 protected:
  explicit PageEnginePart(PageEngineCore& core) noexcept : core_(core), options_(core.options), store_(core.store) {}
  ~PageEnginePart() = default;

  WallTime wall() const { return core_.wall(); }
  void log(const LiveProject& project, std::string_view level, std::string text) const {
    core_.log(project, level, std::move(text));
  }
  void submit(PageBatch batch) const { core_.submit(std::move(batch)); }

  PageEngineCore& core_;
  const PageEngineOptions& options_;
  PageStore& store_;
};

}  // namespace argiope
