// The end of a visit: the outcome that is stored, what follows from it, and when the URL is visited next.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "crawl/run/shard.hpp"

namespace argiope {

class Crawler::Shard::Settler : private Part {
 public:
  Settler(Core& core, Discovery& discovery, SitemapDesk& sitemaps, PageReader& reader, AnswerNotes& notes);

  // The URL is answered, or has failed; `step` says which. `handler_error`: of the page handler, in words.
  void on_response(Visit& visit, VisitStep step, std::string handler_error, TimePoint now);
  // It is not answered, and nothing more is asked in this run.
  void give_up(Visit& visit, const Error& error, TimePoint now);
  void exclude(Visit& visit, Exclusion why, std::string detail, TimePoint now);
  void settle(Visit& visit, UrlBatch batch, TimePoint now);

  // As the outcome of its visit begins.
  UrlOutcome outcome_of(const Visit& visit) const;
  // Its place in the budget of pages is used, or was given back.
  void end_page(Visit& visit);

 private:
  void count_oddities(const HttpResponse& response);
  static std::string note_on(const HttpResponse& response);
  void note_unwanted(const HttpResponse& response, UrlOutcome& outcome);
  bool keep_last_answer(const Visit& visit, UrlOutcome& outcome);
  void on_redirect(Visit& visit, UrlBatch& batch);
  bool goes_back(const Visit& visit, const Url& target, UrlBatch& batch);
  void recall_way(UrlTask& task);
  bool is_page_after_all(Visit& visit, UrlBatch& batch, TimePoint now);

  bool has_other_part(Visit& visit, UrlBatch& batch);
  bool settle_check(Visit& visit, UrlBatch& batch);
  bool settle_requisite(Visit& visit, UrlBatch& batch);
  static void note_change(const Visit& visit, UrlBatch& batch);
  void recount(const Visit& visit, const UrlBatch& batch);
  // When it is to be fetched again in this run; nullopt: not.
  std::optional<TimePoint> plan_next_visit(Visit& visit, UrlBatch& batch, TimePoint now);

  Discovery& discovery_;
  SitemapDesk& sitemaps_;
  PageReader& reader_;
  AnswerNotes& notes_;
};

}  // namespace argiope
