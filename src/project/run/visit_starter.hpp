// VisitStarter: begins the visit of a page whose host, project and rule let it, and runs it.
#pragma once

#include <cstddef>

#include "project/run/visit_settler.hpp"

namespace argiope {

class VisitStarter final : public PageEnginePart {
 public:
  VisitStarter(PageEngineCore& core, HostTable& hosts, ProjectTurns& turns, RowDesk& rows, VisitReader& reader,
               VisitPlaces& places, VisitSettler& settler)
      : PageEnginePart(core),
        hosts_(hosts),
        turns_(turns),
        rows_(rows),
        reader_(reader),
        places_(places),
        settler_(settler) {}

  // False: it has not begun; then it waits, or has ended.
  bool try_start(const SharedProject& project, PageFrontier::Ticket ticket, PageRecord record, TimePoint now);

 private:
  void take_over(LiveProject& project, PageIndex::Number page, PageRecord& record, std::size_t place);
  Coro<void> visit(PageVisit& visit);
  Coro<void> visit_now(PageVisit& visit);

  HostTable& hosts_;
  ProjectTurns& turns_;
  RowDesk& rows_;
  VisitReader& reader_;
  VisitPlaces& places_;
  VisitSettler& settler_;
};

}  // namespace argiope
