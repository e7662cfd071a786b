// What follows from an answer, as a table: what was asked, what has come, what is done.
#include "crawl/run/visit_step.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace argiope {
namespace {

using P = Purpose;

// What a row says of an answer, in words.
VisitAnswer answer_in(int status, std::string_view words) {
  VisitAnswer answer{.status = status};
  const auto has = [&](std::string_view word) { return words.find(word) != std::string_view::npos; };
  if (has("timeout")) answer.failure = Errc::timeout;
  if (has("too large")) answer.failure = Errc::too_large;
  if (has("internal")) answer.failure = Errc::internal;
  if (has("no url")) answer.failure = Errc::invalid_input;
  answer.is_challenge = has("challenge");
  answer.is_unwanted = has("unwanted");
  answer.is_worth_reading = has("worth");
  answer.is_truncated = has("truncated");
  answer.is_damaged = has("damaged");
  answer.is_unchanged = has("unchanged");
  return answer;
}

struct StepCase {
  Purpose purpose;
  UrlAsk ask;
  int status;  // 0: no answer
  std::string_view words;
  NextStep next;          // while attempts are left
  VisitStep at_the_last;  // attempt
};

TEST(VisitStep, FollowsFromWhatWasAskedAndWhatHasCome) {
  const StepCase table[] = {
      // A page.
      {P::page, UrlAsk::page, 200, "", {VisitStep::settle, UrlAsk::page}, VisitStep::settle},
      {P::page, UrlAsk::page, 404, "", {VisitStep::settle, UrlAsk::page}, VisitStep::settle},
      {P::page, UrlAsk::page, 301, "", {VisitStep::settle, UrlAsk::page}, VisitStep::settle},
      {P::page, UrlAsk::page, 200, "unwanted", {VisitStep::settle, UrlAsk::page}, VisitStep::settle},
      {P::page, UrlAsk::page, 200, "truncated", {VisitStep::settle, UrlAsk::page}, VisitStep::settle},
      {P::page, UrlAsk::page, 200, "damaged", {VisitStep::retry, UrlAsk::page}, VisitStep::settle},
      {P::page, UrlAsk::page, 503, "", {VisitStep::retry, UrlAsk::page}, VisitStep::fail},
      {P::page, UrlAsk::page, 429, "", {VisitStep::retry, UrlAsk::page}, VisitStep::fail},
      {P::page, UrlAsk::page, 503, "damaged", {VisitStep::retry, UrlAsk::page}, VisitStep::fail},
      {P::page, UrlAsk::page, 401, "challenge", {VisitStep::again, UrlAsk::page}, VisitStep::again},
      {P::page, UrlAsk::page, 200, "challenge", {VisitStep::again, UrlAsk::page}, VisitStep::again},
      // That could not be rendered.
      {P::page, UrlAsk::page, 200, "timeout", {VisitStep::retry, UrlAsk::page}, VisitStep::give_up},
      {P::page, UrlAsk::page, 200, "too large", {VisitStep::give_up, UrlAsk::page}, VisitStep::give_up},
      // Whether it has changed.
      {P::page, UrlAsk::page, 304, "unchanged", {VisitStep::settle, UrlAsk::page}, VisitStep::settle},
      {P::page, UrlAsk::page, 304, "", {VisitStep::fail, UrlAsk::page}, VisitStep::fail},
      {P::page, UrlAsk::page, 304, "damaged", {VisitStep::retry, UrlAsk::page}, VisitStep::fail},
      {P::link, UrlAsk::head, 304, "unchanged", {VisitStep::settle, UrlAsk::head}, VisitStep::settle},
      {P::link, UrlAsk::head, 304, "", {VisitStep::fail, UrlAsk::head}, VisitStep::fail},
      // A page whose name says that its type is not accepted.
      {P::page, UrlAsk::head, 200, "unwanted", {VisitStep::settle, UrlAsk::head}, VisitStep::settle},
      {P::page, UrlAsk::head, 200, "", {VisitStep::instead, UrlAsk::page}, VisitStep::instead},
      {P::page, UrlAsk::head, 301, "", {VisitStep::settle, UrlAsk::head}, VisitStep::settle},
      {P::page, UrlAsk::head, 404, "", {VisitStep::instead, UrlAsk::page}, VisitStep::instead},
      {P::page, UrlAsk::head, 405, "unwanted", {VisitStep::instead, UrlAsk::page}, VisitStep::instead},
      {P::page, UrlAsk::head, 503, "", {VisitStep::instead, UrlAsk::page}, VisitStep::instead},
      {P::page, UrlAsk::head, 429, "", {VisitStep::retry, UrlAsk::head}, VisitStep::fail},
      {P::page, UrlAsk::head, 401, "challenge", {VisitStep::again, UrlAsk::head}, VisitStep::again},
      // What a page is shown with, and a sitemap.
      {P::requisite, UrlAsk::page, 200, "", {VisitStep::settle, UrlAsk::page}, VisitStep::settle},
      {P::requisite, UrlAsk::page, 500, "", {VisitStep::retry, UrlAsk::page}, VisitStep::fail},
      {P::sitemap, UrlAsk::page, 200, "", {VisitStep::settle, UrlAsk::page}, VisitStep::settle},
      {P::sitemap, UrlAsk::page, 304, "unchanged", {VisitStep::settle, UrlAsk::page}, VisitStep::settle},
      // A link that is only checked, first by HEAD.
      {P::link, UrlAsk::head, 200, "", {VisitStep::settle, UrlAsk::head}, VisitStep::settle},
      {P::link, UrlAsk::head, 200, "unwanted", {VisitStep::settle, UrlAsk::head}, VisitStep::settle},
      {P::link, UrlAsk::head, 301, "", {VisitStep::settle, UrlAsk::head}, VisitStep::settle},
      {P::link, UrlAsk::head, 403, "", {VisitStep::instead, UrlAsk::get}, VisitStep::instead},
      {P::link, UrlAsk::head, 501, "", {VisitStep::instead, UrlAsk::get}, VisitStep::instead},
      {P::link, UrlAsk::head, 408, "", {VisitStep::retry, UrlAsk::head}, VisitStep::fail},
      {P::link, UrlAsk::head, 425, "", {VisitStep::retry, UrlAsk::head}, VisitStep::fail},
      {P::link, UrlAsk::head, 401, "challenge", {VisitStep::again, UrlAsk::head}, VisitStep::again},
      {P::link, UrlAsk::head, 200, "worth", {VisitStep::instead, UrlAsk::body}, VisitStep::instead},
      {P::asset, UrlAsk::head, 404, "", {VisitStep::instead, UrlAsk::get}, VisitStep::instead},
      {P::asset, UrlAsk::head, 200, "worth", {VisitStep::instead, UrlAsk::body}, VisitStep::instead},
      {P::part, UrlAsk::head, 404, "", {VisitStep::instead, UrlAsk::get}, VisitStep::instead},
      // The same by GET, of which the first bytes are read.
      {P::link, UrlAsk::get, 200, "truncated", {VisitStep::settle, UrlAsk::get}, VisitStep::settle},
      {P::link, UrlAsk::get, 403, "", {VisitStep::settle, UrlAsk::get}, VisitStep::settle},
      {P::link, UrlAsk::get, 503, "", {VisitStep::retry, UrlAsk::get}, VisitStep::fail},
      {P::link, UrlAsk::get, 200, "worth, challenge", {VisitStep::again, UrlAsk::get}, VisitStep::again},
      {P::link, UrlAsk::get, 200, "worth, truncated", {VisitStep::instead, UrlAsk::body}, VisitStep::instead},
      {P::link, UrlAsk::get, 200, "worth", {VisitStep::settle, UrlAsk::body}, VisitStep::settle},
      {P::link, UrlAsk::get, 200, "worth, damaged", {VisitStep::retry, UrlAsk::body}, VisitStep::settle},
      // Whole.
      {P::link, UrlAsk::body, 200, "worth", {VisitStep::settle, UrlAsk::body}, VisitStep::settle},
      {P::link, UrlAsk::body, 200, "worth, truncated", {VisitStep::settle, UrlAsk::body}, VisitStep::settle},
      {P::link, UrlAsk::body, 500, "", {VisitStep::retry, UrlAsk::body}, VisitStep::fail},
      // No answer.
      {P::page, UrlAsk::page, 0, "timeout", {VisitStep::retry, UrlAsk::page}, VisitStep::give_up},
      {P::page, UrlAsk::page, 0, "too large", {VisitStep::give_up, UrlAsk::page}, VisitStep::give_up},
      {P::page, UrlAsk::page, 0, "no url", {VisitStep::give_up, UrlAsk::page}, VisitStep::give_up},
      {P::page, UrlAsk::page, 0, "internal", {VisitStep::retry, UrlAsk::page}, VisitStep::give_up},
      {P::page, UrlAsk::head, 0, "timeout", {VisitStep::retry, UrlAsk::page}, VisitStep::instead},
      {P::link, UrlAsk::head, 0, "timeout", {VisitStep::retry, UrlAsk::get}, VisitStep::instead},
      {P::link, UrlAsk::head, 0, "too large", {VisitStep::give_up, UrlAsk::head}, VisitStep::instead},
      {P::link, UrlAsk::head, 0, "internal", {VisitStep::retry, UrlAsk::head}, VisitStep::give_up},
      {P::link, UrlAsk::get, 0, "timeout", {VisitStep::retry, UrlAsk::get}, VisitStep::give_up},
      {P::link, UrlAsk::body, 0, "timeout", {VisitStep::retry, UrlAsk::body}, VisitStep::give_up},
  };
  for (const StepCase& row : table) {
    SCOPED_TRACE("purpose " + std::to_string(static_cast<int>(row.purpose)) + ", ask " +
                 std::to_string(static_cast<int>(row.ask)) + ", status " + std::to_string(row.status) + ", " +
                 std::string(row.words));
    const VisitAnswer answer = answer_in(row.status, row.words);
    VisitRequest asked{.purpose = row.purpose, .ask = row.ask};
    EXPECT_TRUE(next_step(asked, answer) == row.next);
    asked.is_last_attempt = true;
    EXPECT_EQ(next_step(asked, answer).step, row.at_the_last);
  }
}

TEST(VisitStep, AnswersAChallengeFiveTimes) {
  const VisitAnswer answer = answer_in(401, "challenge");
  EXPECT_EQ(next_step({.ask = UrlAsk::page, .challenges = 4}, answer).step, VisitStep::again);
  EXPECT_EQ(next_step({.ask = UrlAsk::page, .challenges = 5}, answer).step, VisitStep::settle);
  const VisitRequest link{.purpose = P::link, .ask = UrlAsk::head, .challenges = 5};
  EXPECT_TRUE(next_step(link, answer) == (NextStep{VisitStep::instead, UrlAsk::get}));
}

TEST(VisitStep, BeginsWithHeadWhereNoBodyIsWanted) {
  for (const Purpose purpose : {P::link, P::asset, P::part}) EXPECT_EQ(first_ask(purpose, false), UrlAsk::head);
  for (const Purpose purpose : {P::page, P::requisite, P::sitemap}) EXPECT_EQ(first_ask(purpose, false), UrlAsk::page);
  EXPECT_EQ(first_ask(P::page, true), UrlAsk::head) << "by its name";
  for (const Purpose purpose : {P::requisite, P::sitemap}) EXPECT_EQ(first_ask(purpose, true), UrlAsk::page);
}

TEST(VisitStep, WhatIsDealtWithIsVisitedOnceMoreAsWhatPagesHaveMadeOfIt) {
  using Part = RequisiteBook::Part;
  EXPECT_EQ(purpose_among_requisites(P::requisite, Part::page), P::page) << "a link leads there";
  EXPECT_EQ(purpose_among_requisites(P::requisite, Part::requisite), P::requisite);
  EXPECT_EQ(purpose_among_requisites(P::page, Part::requisite), P::requisite) << "its type is not accepted";
  for (const Purpose purpose : {P::link, P::asset, P::part}) {
    EXPECT_EQ(purpose_among_requisites(purpose, Part::requisite), P::requisite);
    EXPECT_EQ(purpose_among_requisites(purpose, Part::page), purpose) << "the book of checks knows it";
    EXPECT_EQ(purpose_among_requisites(purpose, Part::link), purpose);
  }
  for (const Purpose purpose : {P::asset, P::part}) {
    EXPECT_EQ(purpose_among_checks(purpose, true, true), P::page);
    EXPECT_EQ(purpose_among_checks(purpose, true, false), P::link);
    EXPECT_EQ(purpose_among_checks(purpose, false, true), purpose);
  }
  EXPECT_EQ(purpose_among_checks(P::link, true, true), P::link);
}

TEST(VisitStep, KnowsTheReasonUnderWhichAPurposeIsStored) {
  EXPECT_EQ(reason_of(P::page), UrlReason::none);
  EXPECT_EQ(reason_of(P::requisite), UrlReason::requisite);
  EXPECT_EQ(reason_of(P::part), UrlReason::requisite);
  EXPECT_EQ(reason_of(P::sitemap), UrlReason::sitemap);
  EXPECT_EQ(reason_of(P::link), UrlReason::checked);
  EXPECT_EQ(reason_of(P::asset), UrlReason::asset);
}

}  // namespace
}  // namespace argiope
