// TryDesk: pages that are tried: visits of which nothing is stored.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "project/run/ask_desk.hpp"
#include "project/run/visit_reader.hpp"

namespace argiope {

class TryDesk final : public PageEnginePart {
 public:
  TryDesk(PageEngineCore& core, HostTable& hosts, VisitReader& reader)
      : PageEnginePart(core), hosts_(hosts), reader_(reader) {}

  Coro<Result<TriedPage>> try_page(PageTryOrder order);
  // Those under way are ended.
  void end_tries();
  // Until none is under way.
  Coro<void> ended();

 private:
  using AskMeant = AskDesk::AskMeant;
  struct TryUnderWay;
  class TryPlace;
  Coro<void> try_now(TryUnderWay& under_way);
  Coro<std::optional<FetchedAnswer>> fetch_tried(TryUnderWay& under_way, PageVisit& visit);
  void tell_leads(TryUnderWay& under_way, const PageVisit& visit, const FetchedAnswer& fetched,
                  const VisitReader::ReadPage& read) const;
  void add_lead(TryUnderWay& under_way, const AskedPage& page, bool is_followed = true) const;
  std::string becomes(const TryUnderWay& under_way, const AskMeant& meant) const;

  HostTable& hosts_;
  VisitReader& reader_;
  std::shared_ptr<std::size_t> tries_ =
      std::make_shared<std::size_t>(0);  // with those whose processors are still to end
  std::vector<Timeout*> try_limits_;     // of those under way
  Event tries_are_over_{true};
};

}  // namespace argiope
