// VisitReader: the way of a visit from its request to what rules and script have read from the answer.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "argiope/async/threads.hpp"
#include "project/fetch/internal/page_fetcher.hpp"
#include "project/process/internal/rule_reader.hpp"
#include "project/run/host_table.hpp"
#include "project/run/page_visit.hpp"

namespace argiope {

class VisitReader final : public PageEnginePart {
 public:
  VisitReader(PageEngineCore& core, HostTable& hosts);

  void open_threads();
  void close_threads();
  // Of the renderer, where there is one.
  Coro<void> close();

  // The visit's host has been entered.
  Coro<FetchedAnswer> fetch(PageVisit& visit);
  // The reading of the answer by rules and script.
  struct ReadPage {
    VisitAnswer answer;
    std::optional<RuleReading> reading;  // nullopt: no rule of the file has read it
  };
  Coro<ReadPage> read_page(PageVisit& visit, FetchedAnswer& fetched);

 private:
  // One thread each: what it reads with is one at a time.
  struct ReadingThread {
    std::unique_ptr<ThreadPoolExecutor> executor;
    std::size_t pages = 0;  // that wait for what it reads
  };

  Coro<RuleReading> read_by_rule(PageVisit& visit, std::size_t place, FetchedAnswer& fetched);
  Coro<VisitAnswer> call_script(PageVisit& visit, FetchedAnswer& fetched, const RuleReading* reading);

  HostTable& hosts_;
  PageRendering rendering_;
  std::vector<ReadingThread> readers_;
};

// Why a page whose fetch was no success could not be read.
Error error_of(const FetchedAnswer& fetched);
// A server that says so is well, and says the same next time.
constexpr bool is_not_there(int status) noexcept { return status == 404 || status == 410; }

}  // namespace argiope
