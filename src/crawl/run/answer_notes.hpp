// Notes on answers, for link checks and reports, and the assets that are found meanwhile. Nothing here runs in a crawl
// that was asked for neither.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "crawl/page/internal/link_resolver.hpp"
#include "crawl/run/shard.hpp"
#include "web/html/internal/page_survey.hpp"

namespace argiope {

class Crawler::Shard::AnswerNotes : private Part {
 public:
  AnswerNotes(Core& core, Discovery& discovery);

  // Where anything is kept of answers.
  void take(Visit& visit, VisitOutcome& outcome);
  // Of what is only checked: whether the run wants to know what is in its body.
  bool is_worth_reading(const Visit& visit);

 private:
  bool note_page(Visit& visit, PageFacts& facts, UrlBatch& batch);
  bool note_sheet(Visit& visit, UrlBatch& batch);
  bool note_refresh(const Visit& visit, UrlBatch& batch);
  bool notes_anchors(const UrlTask& task) const;
  static std::vector<std::uint64_t> own_fragment(const Visit& visit);
  bool is_sheet_to_read(const UrlTask& task, const HttpResponse& response) const;
  void note_links(const UrlTask& from, const std::vector<SurveyedLink>& links, std::string_view html,
                  const LinkResolver& resolver, UrlBatch& batch);
  KeptLink note_link(const UrlTask& from, const SurveyedLink& link, std::string_view html, const LinkResolver& resolver,
                     UrlBatch& batch);

  Discovery& discovery_;
  Url noted_;     // the link being noted
  Url stripped_;  // that, without parameters
};

}  // namespace argiope
