// What a run does about a URL that the store knows, as a table: stored state, place, options, work.
#include "crawl/scope/url_decision.hpp"

#include <gtest/gtest.h>

#include <string>

#include "crawl/scope/failure_rest.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using enum UrlWork;
using S = UrlState;
using R = UrlReason;
using X = Exclusion;

constexpr WallTime kFetched{1000s};

// What a row of the table changes about the default options, in words.
RunView view_of(std::string_view words, CrawlOptions& options, Stage stage) {
  RunView run{options, std::nullopt, stage};
  const auto has = [&](std::string_view word) { return words.find(word) != std::string_view::npos; };
  options.check_links = has("check");
  options.check_assets = has("assets");
  if (has("stale")) run.recheck_before = kFetched + 1s;
  if (has("fresh")) run.recheck_before = kFetched;
  if (has("old")) run.refetch_before = kFetched + 1s;
  if (has("young")) run.refetch_before = kFetched;
  if (has("size 100")) options.size_limit = 100;
  if (has("size 101")) options.size_limit = 101;
  if (has("host 100")) options.max_pages_per_host = 100;
  if (has("host 101")) options.max_pages_per_host = 101;
  if (has("links 101")) options.max_links_per_page = 101;
  if (has("redirects 101")) options.max_redirects = 101;
  options.duplicates.skip_exact = has("skip exact");
  options.duplicates.skip_near = has("skip near");
  options.duplicates.canonical = has("canonical");
  if (has("accept html")) options.accept_types = {"text/html"};
  if (has("accept pdf")) options.accept_types = {"text/html", "application/pdf"};
  if (has("requeue failed")) options.requeue = Requeue::failed;
  if (has("requeue excluded")) options.requeue = Requeue::excluded;
  if (has("requeue broken")) options.requeue = Requeue::broken;
  if (has("requeue all")) options.requeue = Requeue::all;
  return run;
}

struct Row {
  S state;
  R reason;
  X place;
  std::string_view options;
  UrlWork opening;
  UrlWork going_on;
  int status = 200;
};

TEST(UrlDecision, FollowsFromWhatIsStoredAndWhatIsAsked) {
  const Row table[] = {
      // What waits is fetched in scope, and left alone out of it.
      {S::queued, R::none, X::none, "", fetch, leave},
      {S::queued, R::none, X::off_scope, "", leave, leave},
      {S::queued, R::none, X::off_scope, "check", leave, leave},
      {S::queued, R::none, X::depth, "", leave, leave},
      {S::queued, R::none, X::url_length, "requeue all", leave, leave},
      {S::queued, R::checked, X::off_scope, "check", check, leave},
      {S::queued, R::checked, X::off_scope, "", leave, leave},
      {S::queued, R::checked, X::none, "", fetch, leave},
      // What has failed is due once a run.
      {S::failed, R::none, X::none, "", fetch, leave},
      {S::failed, R::none, X::off_scope, "check", leave, leave},
      {S::failed, R::host_down, X::none, "", fetch, leave},
      {S::failed, R::checked, X::off_scope, "check", check, leave},
      {S::failed, R::checked, X::off_scope, "", leave, leave},
      {S::failed, R::checked, X::none, "", fetch, fetch},
      // What was excluded is taken up when nothing excludes it any more.
      {S::excluded, R::off_scope, X::off_scope, "", leave, leave},
      {S::excluded, R::off_scope, X::off_scope, "check", check, check},
      {S::excluded, R::off_scope, X::none, "", fetch, fetch},
      {S::excluded, R::off_scope, X::depth, "check", leave, leave},
      {S::excluded, R::depth, X::none, "", fetch, fetch},
      {S::excluded, R::depth, X::depth, "requeue excluded", leave, leave},
      {S::excluded, R::depth, X::off_scope, "check", leave, leave},
      {S::excluded, R::url_length, X::none, "", fetch, fetch},
      {S::excluded, R::repeated_segment, X::repeated_segment, "", leave, leave},
      {S::excluded, R::robots, X::none, "", fetch, leave},
      {S::excluded, R::robots, X::off_scope, "", leave, leave},
      {S::excluded, R::pages_per_host, X::none, "host 100", leave, leave},
      {S::excluded, R::pages_per_host, X::none, "host 101", fetch, leave},
      {S::excluded, R::pages_per_host, X::none, "host 100, requeue excluded", fetch, leave},
      {S::excluded, R::exclude, X::none, "", fetch, fetch},
      {S::excluded, R::exclude, X::exclude, "requeue excluded", leave, leave},
      {S::excluded, R::include, X::include, "", leave, leave},
      {S::excluded, R::path_prefix, X::none, "", fetch, fetch},
      {S::excluded, R::parent, X::parent, "", leave, leave},
      {S::excluded, R::extension, X::none, "", fetch, fetch},
      {S::excluded, R::exclude, X::off_scope, "check", leave, leave},
      // The answer had the type that this row's record has: application/pdf.
      {S::excluded, R::content_type, X::none, "", fetch, leave},
      {S::excluded, R::content_type, X::none, "accept pdf", fetch, leave},
      {S::excluded, R::content_type, X::none, "accept html", leave, leave},
      {S::excluded, R::content_type, X::none, "accept html, requeue excluded", fetch, leave},
      {S::excluded, R::content_type, X::exclude, "", leave, leave},
      {S::excluded, R::none, X::none, "", fetch, fetch},
      // What is done is done, unless it is old, or was done in part by another limit.
      {S::done, R::none, X::none, "", leave, leave},
      {S::done, R::none, X::none, "young", leave, leave},
      {S::done, R::none, X::none, "old", ask_if_changed, leave},
      {S::done, R::none, X::off_scope, "old, check", leave, leave},
      {S::done, R::none, X::depth, "old", leave, leave},
      {S::done, R::checked, X::none, "", fetch, fetch},
      {S::done, R::checked, X::off_scope, "", leave, leave},
      {S::done, R::checked, X::off_scope, "check", leave, leave},
      {S::done, R::checked, X::off_scope, "check, old", check, leave},
      {S::done, R::checked, X::off_scope, "check, requeue broken", check, leave, 404},
      {S::done, R::cut_off, X::none, "size 100", leave, leave},
      {S::done, R::cut_off, X::none, "size 100, old", ask_if_changed, leave},
      {S::done, R::cut_off, X::none, "size 101, old", fetch, leave},
      {S::done, R::links_per_page, X::none, "links 101", fetch, leave},
      {S::done, R::redirects, X::none, "redirects 101", fetch, leave},
      {S::done, R::redirects, X::none, "", leave, leave},
      // What has the content of another, or names one, is fetched whole by a run that follows its links.
      {S::done, R::duplicate, X::none, "", fetch, leave},
      {S::done, R::duplicate, X::none, "skip exact", leave, leave},
      {S::done, R::duplicate, X::none, "skip exact, old", ask_if_changed, leave},
      {S::done, R::duplicate, X::off_scope, "", leave, leave},
      {S::done, R::near_duplicate, X::none, "skip exact", fetch, leave},
      {S::done, R::near_duplicate, X::none, "skip near", leave, leave},
      {S::done, R::alias, X::none, "skip exact", fetch, leave},
      {S::done, R::alias, X::none, "canonical", leave, leave},
      {S::excluded, R::parameter, X::none, "", fetch, fetch},
      {S::excluded, R::parameter, X::depth, "", leave, leave},
      {S::excluded, R::trap, X::none, "", fetch, fetch},
      // Verdicts have an age of their own where it is given, and broken links are asked in every run then.
      {S::done, R::checked, X::off_scope, "check, stale", check, leave},
      {S::done, R::checked, X::off_scope, "check, fresh", leave, leave},
      {S::done, R::checked, X::off_scope, "check, fresh, old", leave, leave},
      {S::done, R::checked, X::off_scope, "check, fresh", check, leave, 404},
      {S::done, R::none, X::none, "stale", leave, leave, 404},
      // Assets are checked wherever they are, and only when they are asked for.
      {S::excluded, R::asset, X::none, "", leave, leave},
      {S::excluded, R::asset, X::none, "check", leave, leave},
      {S::excluded, R::asset, X::none, "assets", check, leave},
      {S::excluded, R::asset, X::off_scope, "assets", check, leave},
      {S::excluded, R::asset, X::url_length, "assets, requeue all", leave, leave},
      {S::queued, R::asset, X::none, "assets", check, leave},
      {S::queued, R::asset, X::none, "old", leave, leave},
      {S::failed, R::asset, X::none, "assets", check, leave},
      {S::done, R::asset, X::none, "assets", leave, leave},
      {S::done, R::asset, X::none, "assets, old", check, leave},
      {S::done, R::asset, X::none, "assets, fresh", check, leave, 404},
      {S::done, R::asset, X::none, "assets, requeue all", check, leave},
      {S::done, R::asset, X::none, "requeue all", leave, leave},
      // By hand.
      {S::done, R::none, X::none, "requeue all", fetch, leave},
      {S::done, R::none, X::off_scope, "requeue all", leave, leave},
      {S::done, R::none, X::none, "requeue broken", fetch, leave, 404},
      {S::done, R::none, X::none, "requeue broken", leave, leave, 200},
      {S::done, R::none, X::none, "requeue failed", leave, leave, 404},
      {S::failed, R::none, X::none, "requeue failed", fetch, leave},
  };
  for (const Row& row : table) {
    UrlRecord record;
    record.state = row.state;
    record.reason = row.reason;
    record.limit = 100;
    record.mtime = kFetched;
    record.status_code = row.status;
    if (row.reason == R::content_type) record.content_type = "application/pdf";
    for (const Stage stage : {Stage::opening, Stage::going_on}) {
      CrawlOptions options;
      const RunView run = view_of(row.options, options, stage);
      const UrlWork work = decide(record, row.place, run);
      EXPECT_EQ(work, stage == Stage::opening ? row.opening : row.going_on)
          << to_string(row.state) << ' ' << to_string(row.reason) << ' ' << to_string(row.place) << ' ' << row.options;
      if (work != leave) {
        EXPECT_TRUE(may_be_taken_up(record, run));
      }
    }
  }
}

// Runs that may end before they come to everything would never get on otherwise.
TEST(UrlDecision, WhatSeveralRunsHaveGivenUpRestsLongerAndLongerFromRunsWithALimit) {
  const auto given_up = [](std::int64_t times, S state = S::failed, R reason = R::none) {
    UrlRecord record;
    record.state = state;
    record.reason = reason;
    record.mtime = kFetched;
    record.limit = times;
    return record;
  };
  EXPECT_EQ(rests_until(given_up(0)), WallTime{}) << "of a database that has not counted";
  EXPECT_EQ(rests_until(given_up(1)), WallTime{}) << "the next run asks it";
  EXPECT_EQ(rests_until(given_up(2)), kFetched + 10min);
  EXPECT_EQ(rests_until(given_up(3)), kFetched + 20min);
  EXPECT_EQ(rests_until(given_up(9)), kFetched + 1280min);
  for (const std::int64_t many : {12, 100, 100'000}) EXPECT_EQ(rests_until(given_up(many)), kFetched + 168h);
  EXPECT_EQ(times_given_up(given_up(2'000, S::failed, R::cut_off)), 0u) << "that is another limit";
  EXPECT_EQ(times_given_up(given_up(2'000, S::done)), 0u);

  CrawlOptions options;
  RunView run{options, std::nullopt, Stage::opening};
  run.now = kFetched + 9min;
  EXPECT_EQ(decide(given_up(2), X::none, run), fetch) << "a run without a limit asks everything";
  const auto set_limit = [&](int which) {
    options.max_pages = which == 0 ? 10 : 0;
    options.quota = which == 1 ? 1000 : 0;
    options.max_time = which == 2 ? std::optional<Duration>(1min) : std::nullopt;
  };
  for (const int which : {0, 1, 2}) {
    set_limit(which);
    run.now = kFetched + 9min;
    EXPECT_EQ(decide(given_up(1), X::none, run), fetch);
    EXPECT_EQ(decide(given_up(2), X::none, run), leave);
    EXPECT_FALSE(may_be_taken_up(given_up(2), run));
    EXPECT_EQ(decide(given_up(5, S::queued), X::none, run), fetch) << "it was being asked";
    run.now = kFetched + 10min;
    EXPECT_EQ(decide(given_up(2), X::none, run), fetch);
    EXPECT_EQ(decide(given_up(3), X::none, run), leave);
    run.now = kFetched - 1min;
    EXPECT_EQ(decide(given_up(3), X::none, run), fetch) << "by a clock that was wrong";
  }
  run.now = kFetched + 9min;
  options.requeue = Requeue::failed;
  EXPECT_EQ(decide(given_up(2), X::none, run), fetch);
}

// Otherwise a crawl that goes on while there is something to take up would not end.
TEST(UrlDecision, GoingOnTakesUpNothingThatTheRunHasSettled) {
  CrawlOptions options;
  options.check_links = options.check_assets = true;
  options.requeue = Requeue::all;
  const RunView run{options, WallTime{5000s}, Stage::going_on};
  for (const auto& [state, reason] : {std::pair{S::done, R::none},
                                      {S::queued, R::none},
                                      {S::failed, R::none},
                                      {S::excluded, R::robots},
                                      {S::excluded, R::pages_per_host},
                                      {S::excluded, R::content_type},
                                      {S::done, R::cut_off},
                                      {S::excluded, R::asset},
                                      {S::done, R::asset}}) {
    UrlRecord record;
    record.state = state;
    record.reason = reason;
    record.status_code = 500;
    EXPECT_FALSE(may_be_taken_up(record, run)) << to_string(state) << ' ' << to_string(reason);
  }
}

TEST(UrlDecision, EveryExclusionThatIsStoredHasAReason) {
  for (std::size_t i = 0; i < kExclusions; ++i) {
    const auto exclusion = static_cast<Exclusion>(i);
    const bool stored =
        exclusion != X::none && exclusion != X::scheme && exclusion != X::nofollow && exclusion != X::nesting;
    EXPECT_EQ(reason_of(exclusion) != R::none, stored);
    if (stored) {
      EXPECT_EQ(to_string(reason_of(exclusion)), to_string(exclusion));
    }
  }
}

}  // namespace
}  // namespace argiope
