// The inside of PageEngine: its run, and the choice of what is visited. All else is done by its parts, each of which
// has a header of its own:
//
//   HostTable     hosts by number, and their desk        VisitStarter   a visit, from a page's row to its end
//   ProjectTurns  which project visits next              VisitReader    its request, and who reads the answer
//   RowDesk       rows of pages about to be visited      VisitSettler   what becomes of it in the store
//   AskDesk       what asks for pages come to            VisitPlaces    how many are under way
//   RoundDesk     rounds and their ends                  TryDesk        visits of which nothing is stored
//   StartDesk     starts and ticks                       ProjectDesk    projects come, change and go
//   ProcessorDesk what reads the pages of a project      PageReports    what is told of projects and pages
//   SinkDesk      what takes their results               HostReports    what is told of hosts
#pragma once

#include <cstdint>

#include "project/run/host_reports.hpp"
#include "project/run/project_desk.hpp"
#include "project/run/try_desk.hpp"
#include "project/run/visit_starter.hpp"

namespace argiope {

class PageEngine::Impl {
 public:
  Impl(PageEngineOptions options, PageStore& store);
  ~Impl();

  Result<void> open(WallTime now);
  Coro<Result<void>> run(HttpTransport& transport, Resolver* resolver);

  PageEngineCore core;
  HostTable hosts;
  ProjectTurns turns;
  RowDesk rows;
  AskDesk asks;
  RoundDesk rounds;
  StartDesk starts;
  ProcessorDesk processors;
  SinkDesk sinks;
  VisitReader reader;
  VisitPlaces places;
  VisitSettler settler;
  VisitStarter starter;
  ProjectDesk projects;
  TryDesk tries;
  PageReports reports;
  HostReports host_reports;

 private:
  void pump();
  enum class Taken : std::uint8_t {
    one,
    nothing,  // until time passes, or something is asked for
    blocked,  // until a visit ends
  };
  Taken take_one(const SharedProject& project, TimePoint now);
  void read_rows(TimePoint now);
  void take_row(RowDesk::Row row, TimePoint now);
  void checkpoint(TimePoint now);
  void prune(PageBatch& batch) const;
  Coro<void> drain();

  bool drains_ = false;
  TimePoint next_checkpoint_ = TimePoint::min();
  TimePoint next_prune_ = TimePoint::min();
};

}  // namespace argiope
