// VisitSettler: what becomes of a visit in the store, in the index and in its round.
#pragma once

#include <cstddef>
#include <cstdint>

#include "project/run/ask_desk.hpp"
#include "project/run/round_desk.hpp"
#include "project/run/visit_places.hpp"
#include "project/run/visit_reader.hpp"

namespace argiope {

class VisitSettler final : public PageEnginePart {
 public:
  VisitSettler(PageEngineCore& core, AskDesk& asks, RoundDesk& rounds, VisitPlaces& places)
      : PageEnginePart(core), asks_(asks), rounds_(rounds), places_(places) {}

  void settle(PageVisit& visit, const FetchedAnswer& fetched, VisitAnswer answer, const RuleReading* reading,
              VisitEnd end);
  // Without a request: what can never be fetched, what robots.txt forbids, or a host that cannot be reached.
  void end_unfetched(const SharedProject& project, const PageFrontier::Ticket& ticket, PageRecord record, Error why,
                     TimePoint until, bool is_final);
  // Taken back by an ask, or ended with the engine: then its row says that it waits, as before.
  void end_cancelled(PageVisit& visit);

  std::uint64_t visits() const noexcept { return visits_; }
  std::uint64_t visits_failed() const noexcept { return visits_failed_; }
  std::uint64_t given_up() const noexcept { return given_up_; }

 private:
  void finish(PageVisit& visit, const VisitDecision& decision, PageChange change, VisitEnd end, std::size_t results,
              PageBatch& batch, TimePoint now, WallTime wall_now);
  void put_off(PageVisit& visit, const ProcessorFailure& failure, TimePoint now, WallTime wall_now);

  AskDesk& asks_;
  RoundDesk& rounds_;
  VisitPlaces& places_;
  std::uint64_t visits_ = 0, visits_failed_ = 0, given_up_ = 0;
};

}  // namespace argiope
