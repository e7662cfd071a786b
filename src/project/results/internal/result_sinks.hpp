// ResultSinks: gives what becomes of a project's results to those that its file names under [[sink]]
// (docs/projects.md): files, webhooks, commands, queues of jobs and tables of PostgreSQL.
//
//   PageStore's feed ── read behind a cursor, in batches ──► deliver ──► cursor and place are stored
//                                  ▲                            │ trouble: 1 s, 2 s … 5 min
//                                  └────────────────────────────┘
//
// Each sink gets everything at least once and in order, and goes on where it was after any end of the process. A file
// and a table have each event exactly once. No sink waits for another.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/web/http.hpp"
#include "project/rules/internal/project_definition.hpp"
#include "project/store/internal/page_store.hpp"

namespace argiope {

class Book;

struct SinkJob {
  std::string queue;
  std::string name;     // the same for the same event, whenever it comes, and for no other
  std::string payload;  // JSON, as of all sinks
};

// Puts jobs for sinks with `queue`: into whatever store of jobs its owner has.
class JobPutter {
 public:
  virtual ~JobPutter() = default;
  // In their order, all or none. A job whose name is known already in its queue is there, and nothing is put. One whose
  // name a job of another queue has is put under a name that cannot be guessed, once more each time it comes: nobody
  // makes a sink lose an event or wait by taking a name first.
  virtual Coro<Result<void>> put(std::vector<SinkJob> jobs) = 0;
};

// The same into the store of a book, which outlives it. `chance` gives a number that cannot be guessed with each call.
class BookJobPutter final : public JobPutter {
 public:
  BookJobPutter(Book& book, std::function<std::uint64_t()> chance) : book_(book), chance_(std::move(chance)) {}
  Coro<Result<void>> put(std::vector<SinkJob> jobs) override;

 private:
  // Gives another name to those whose names jobs of other queues have. Whether there were any.
  Coro<Result<bool>> rename_those_of_others(std::vector<SinkJob>& jobs);

  Book& book_;
  const std::function<std::uint64_t()> chance_;
};

// The means of sinks. All of it outlives them.
struct SinkMeans {
  HttpTransport* transport = nullptr;  // for webhooks; without one they are in trouble, and say so
  JobPutter* jobs = nullptr;           // for queues; the same
  std::string folder;  // of the project's file: relative paths count from it, and commands run in it; empty: ours
  // A variable of the environment; empty: this process's own.
  std::function<std::optional<std::string>(const std::string& name)> variable;
  // Gets what the owner should know and no trouble is: that a file was replaced by another. Empty: nobody does.
  std::function<void(const std::string& sink, const std::string& text)> log;
};

// Memory:   a batch of each sink that delivers: 1,000 events and 4 MiB of their values, or one event that is larger.
// Errors:   of a sink are its SinkRow::trouble, stored while they last. When the store fails nothing more is delivered.
// Lifetime: call stop() before the store goes. Destroying it without cancels what is under way.
// Threads:  the loop's own. Files and servers of PostgreSQL are written to on others.
class ResultSinks {
 public:
  // `submit` has the row submitted to `store` before it returns. The sinks are those of `definition`.
  ResultSinks(EventLoop& loop, PageStore& store, std::function<void(SinkRow)> submit, ProjectId project,
              const ProjectDefinition& definition, SinkMeans means);
  ~ResultSinks();
  ResultSinks(const ResultSinks&) = delete;
  ResultSinks& operator=(const ResultSinks&) = delete;

  // Reads how far each has come, and begins. To be called once.
  // Errors: of the store, and then none has begun.
  Result<void> start();
  // There is something new in the feed: what PageStore::on_feed() has to bring to the loop. Cheap; may be called before
  // start() and after stop().
  void wake();
  // Ends deliveries that are under way, in `grace` by themselves and then by cancelling them; what was not taken by
  // then is delivered again after the next start. May be called twice, and before start().
  Coro<void> stop(Duration grace = std::chrono::seconds{10});

  // As they are now, by their order in the definition.
  std::vector<SinkRow> rows() const;
  // Whether all have what the feed had when it was last read, and none is in trouble.
  bool has_all() const;

  static constexpr std::size_t kMostRows = 1'000;
  static constexpr std::size_t kMostBytes = 4 * 1024 * 1024;
  static constexpr Duration kFirstWait = std::chrono::seconds{1};
  static constexpr Duration kLongestWait = std::chrono::minutes{5};

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace argiope
