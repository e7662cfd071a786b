// One visit: whether its host may be asked, the request, and what the answer, or none, says is to be done next
// (next_step).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "crawl/run/shard.hpp"

namespace argiope {

class Crawler::Shard::Visitor : private Part {
 public:
  Visitor(Core& core, HostDesk& desk, HostQuestions& questions, RenderDesk& render, Discovery& discovery,
          SitemapDesk& sitemaps, PageReader& reader, AnswerNotes& notes, Settler& settler);

  // Suspends: for as long as the visit takes. Cancel: the URL stays queued in the store; see note_asked().
  Coro<void> visit_now(Visit& visit);
  // The visit has ended without an answer.
  void on_error(Visit& visit, const Error& error, TimePoint now);
  // A run with a limit has asked it, and has no whole answer: the next one asks first what none has asked. Nothing if
  // no request was sent.
  void note_asked(const Visit& visit);

 private:
  void put_back(Visit& visit, TimePoint now);
  void pass_over(Visit& visit, TimePoint now);
  void wait_with_host(Visit& visit, TimePoint now);
  Coro<void> fetch(Visit& visit);

  // --- the request
  bool looks_unwanted(const UrlTask& task) const;
  UrlAsk ask_of(const UrlTask& task) const;
  void build_request(Visit& visit);
  bool has_last_answer(const UrlRecord& record) const;
  // A visit that is begun with HEAD can be ended with GET within the budget. False: there is no room.
  bool take_page(Visit& visit);
  // Its URL is asked again, or was not asked. Requests count among the pages that max_pages lets in; sitemaps, and
  // answers that wanted to know who asks, do not.
  void put_page_off(Visit& visit);

  // --- the answer
  // False: the crawl ends, because a sink cannot take it.
  bool show(ExchangeKind kind, Visit& visit, bool is_unrendered);
  // Awaits the page handler. Returns in words why it has thrown; empty: it has not.
  Coro<std::string> hand_over(Visit& visit);
  // An answer also tells that its host is alive, and brings cookies and bytes.
  void learn_from(Visit& visit);
  void count_answer(const Visit& visit);
  // For next_step(): what was asked, and what has come of it.
  VisitRequest asked_of(const Visit& visit) const;
  VisitAnswer answer_of(const Visit& visit, const std::optional<Error>& unrendered);
  static bool is_last_attempt(const UrlTask& task) noexcept;
  // Does the next step, but for settle and fail: those are the settler's.
  VisitStep take_answer(Visit& visit, const std::optional<Error>& unrendered, TimePoint now);
  VisitStep take_step(Visit& visit, const NextStep& next, const Error& why, Duration at_least, TimePoint now);
  // The same is asked once more, at once; something else is.
  void ask_again(Visit& visit, TimePoint now);
  void ask_instead(Visit& visit, TimePoint now);
  void retry(Visit& visit, const Error& error, Duration at_least, TimePoint now);
  void cut_by_quota(Visit& visit, TimePoint now);
  UrlOutcome waiting_outcome(const Visit& visit) const;

  HostDesk& desk_;
  HostQuestions& questions_;
  RenderDesk& render_;
  Discovery& discovery_;
  SitemapDesk& sitemaps_;
  PageReader& reader_;
  AnswerNotes& notes_;
  Settler& settler_;
};

}  // namespace argiope
