// What a crawl knows, asked for: filters, orders, counts, requeues and explanations.
#include "crawl/urls/internal/url_query.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crawl/report/internal/crawl_overview.hpp"
#include "crawl/urls/internal/requeue.hpp"
#include "crawl/urls/internal/url_explanation.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr WallTime kQueryDay{std::chrono::hours{24 * 20'000}};

// A store with a seed (1), what it links to, and what came of that.
class UrlQueryTest : public testing::Test {
 protected:
  UrlQueryTest() {
    add("http://a.test/", 0, 0);
    add("http://a.test/one", 1, 1);
    add("http://a.test/two.pdf", 1, 1);
    add("http://b.test:8080/", 1, 1);
    add("http://a.test/deep/three", 2, 2);
    add("http://other.example/", 1, 1, UrlReason::off_scope);
    settle(1, UrlState::done, 200, kQueryDay, "text/html", 1000);
    settle(2, UrlState::done, 301, kQueryDay + 1h, "text/html", 10);
    settle(3, UrlState::done, 404, kQueryDay + 2h, "application/pdf", 5000);
    UrlOutcome waits{
        .url_id = 4, .state = UrlState::queued, .mtime = kQueryDay + 3h, .due = kQueryDay + 30h, .attempts = 1};
    waits.error = "timeout: no answer";
    UrlBatch batch;
    batch.outcomes.push_back(waits);
    batch.links.push_back({1, false, {2, 3, 4, 6}});
    batch.links.push_back({2, true, {5}});
    batch.kept_links.push_back({1, {{.target = 3, .kind = "anchor", .text = "the paper", .line = 7}}});
    store_->submit(std::move(batch));
    EXPECT_TRUE(store_->flush());
  }

  void add(std::string url, std::uint32_t depth, std::int64_t referrer, UrlReason reason = UrlReason::none) {
    UrlBatch batch;
    batch.discovered.push_back(
        {store_->next_id(), std::move(url), depth, -static_cast<std::int32_t>(depth), referrer, kQueryDay, reason});
    store_->submit(std::move(batch));
  }
  void settle(std::int64_t id, UrlState state, int status, WallTime at, std::string type, std::int64_t size) {
    UrlOutcome outcome{.url_id = id, .state = state, .mtime = at, .status_code = status, .attempts = 1};
    outcome.content_type = std::move(type);
    outcome.size = size;
    if (status == 301) outcome.redirect_to = "http://a.test/deep/three";
    UrlBatch batch;
    batch.outcomes.push_back(std::move(outcome));
    store_->submit(std::move(batch));
  }

  std::vector<std::int64_t> ids(UrlQuery query, std::int64_t after = 0) {
    std::vector<std::int64_t> found;
    const auto matches = UrlMatcher::compile(std::move(query));
    EXPECT_TRUE(matches);
    EXPECT_TRUE(visit_matching(*store_, *matches, after, [&](std::span<const UrlRecord> records) -> Result<bool> {
      for (const UrlRecord& record : records) found.push_back(record.url_id);
      return true;
    }));
    return found;
  }
  UrlExplanation why(std::string_view url) {
    auto found = explain_url(*store_, *Url::parse(url), kQueryDay + 4h);
    EXPECT_TRUE(found && *found) << url;
    return found && *found ? std::move(**found) : UrlExplanation{};
  }

  std::unique_ptr<UrlStore> store_ = *open_url_store(":memory:");
};

TEST_F(UrlQueryTest, EachFilterPicksWhatItSays) {
  EXPECT_THAT(ids({}), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(ids({}, 4), ElementsAre(5, 6));
  EXPECT_THAT(ids({.states = {UrlState::queued, UrlState::excluded}}), ElementsAre(4, 5, 6));
  EXPECT_THAT(ids({.reasons = {UrlReason::off_scope}}), ElementsAre(6));
  EXPECT_THAT(ids({.reasons = {UrlReason::none}}), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(ids({.statuses = {{300, 399}, {404, 404}}}), ElementsAre(2, 3));
  EXPECT_THAT(ids({.hosts = {"a.test"}}), ElementsAre(1, 2, 3, 5));
  EXPECT_THAT(ids({.hosts = {"b.test:8080", "*.example"}}), ElementsAre(4, 6));
  EXPECT_THAT(ids({.patterns = {"*.pdf", "/deep/**"}}), ElementsAre(3, 5));
  EXPECT_THAT(ids({.types = {"application/*"}}), ElementsAre(3));
  EXPECT_THAT(ids({.broken = true}), ElementsAre(3));
  EXPECT_THAT(ids({.min_size = 1000}), ElementsAre(1, 3));
  EXPECT_THAT(ids({.max_size = 1000}), ElementsAre(1, 2));
  EXPECT_THAT(ids({.fetched_since = kQueryDay + 2h}), ElementsAre(3, 4));
  EXPECT_THAT(ids({.fetched_before = kQueryDay + 1h}), ElementsAre(1));
  EXPECT_THAT(ids({.min_depth = 1, .max_depth = 1}), ElementsAre(2, 3, 4, 6));
  EXPECT_THAT(ids({.states = {UrlState::done}, .hosts = {"a.test"}, .broken = true}), ElementsAre(3));
  EXPECT_FALSE(UrlMatcher::compile({.patterns = {"re:("}}));
}

TEST_F(UrlQueryTest, OtherOrdersKeepTheFirstFew) {
  const auto matches = UrlMatcher::compile({});
  const auto first = [&](UrlSort sort, std::size_t most) {
    std::vector<std::int64_t> found;
    for (const UrlRecord& record : *first_matching(*store_, *matches, 0, sort, most)) found.push_back(record.url_id);
    return found;
  };
  EXPECT_THAT(first(UrlSort::size, 3), ElementsAre(3, 1, 2));
  EXPECT_THAT(first(UrlSort::fetched, 2), ElementsAre(4, 3));
  EXPECT_THAT(first(UrlSort::url, 2), ElementsAre(1, 5));
  EXPECT_THAT(first(UrlSort::depth, 10), ElementsAre(1, 2, 3, 4, 6, 5));
  EXPECT_THAT(first(UrlSort::status, 1), ElementsAre(3));
  EXPECT_THAT(first(UrlSort::status, 0), ElementsAre());
}

TEST_F(UrlQueryTest, ManyRecordsAreVisitedInStretchesInWhichOneMayReadAndStop) {
  UrlBatch batch;
  for (std::int64_t id = 7; id < 3000; ++id)
    batch.discovered.push_back({id, "http://c.test/" + std::to_string(id), 1, 0, 1, kQueryDay});
  store_->submit(std::move(batch));
  const auto matches = UrlMatcher::compile({.hosts = {"c.test"}});
  std::size_t seen = 0, calls = 0;
  ASSERT_TRUE(visit_matching(*store_, *matches, 0, [&](std::span<const UrlRecord> records) -> Result<bool> {
    seen += records.size();
    EXPECT_TRUE(store_->get(records.back().url_id));
    return ++calls < 2;
  }));
  EXPECT_EQ(calls, 2u);
  EXPECT_EQ(seen, 2000u);
}

TEST_F(UrlQueryTest, AnOverviewCounts) {
  const auto overview = overview_of(*store_, kQueryDay + 3h + 30s, 1);
  ASSERT_TRUE(overview);
  EXPECT_EQ(overview->urls, 6u);
  EXPECT_EQ(overview->of(UrlState::done), 3u);
  EXPECT_EQ(overview->of(UrlState::queued), 2u);
  EXPECT_EQ(overview->tried, 1u);
  EXPECT_EQ(overview->not_due, 1u);
  EXPECT_EQ(overview->broken, 1u);
  EXPECT_EQ(overview->bytes, 6010u);
  EXPECT_EQ(overview->statuses, (std::map<int, std::uint64_t>{{200, 1}, {301, 1}, {404, 1}}));
  EXPECT_EQ(overview->last_fetched_url, "http://b.test:8080/");
  EXPECT_EQ(overview->last_minute, 1u);
  EXPECT_EQ(overview->last_hour, 1u);
  EXPECT_EQ(overview->oldest_waiting_url, "http://b.test:8080/");
  EXPECT_EQ(overview->host_count, 2u);  // what is only linked to is none
  ASSERT_EQ(overview->hosts.size(), 1u);
  EXPECT_EQ(overview->hosts[0].site, "http://a.test");
  EXPECT_EQ(overview->hosts[0].done, 3u);
}

TEST_F(UrlQueryTest, RequeuedUrlsAreAsIfNeverFetchedAndWhatOptionsKeepOutStaysOut) {
  const auto matches = UrlMatcher::compile({});
  const auto dry = requeue_matching(*store_, *matches, 100, true);
  ASSERT_TRUE(dry);
  EXPECT_EQ(dry->queued, 4u);  // the three that are done, and what waits for its next attempt
  EXPECT_EQ(dry->waiting, 1u);
  EXPECT_EQ(dry->left, 1u);
  EXPECT_THAT(ids({.states = {UrlState::queued}}), ElementsAre(4, 5));
  EXPECT_EQ(requeue_matching(*store_, *matches, 2, false)->queued, 2u);
  EXPECT_THAT(ids({.states = {UrlState::queued}}), ElementsAre(1, 2, 4, 5));
  EXPECT_EQ(requeue_matching(*store_, *matches, 100, false)->queued, 2u);
  EXPECT_THAT(ids({.states = {UrlState::queued}}), ElementsAre(1, 2, 3, 4, 5));
  const auto record = **store_->get(4);
  EXPECT_EQ(record.attempts, 0u);
  EXPECT_EQ(record.due, WallTime{});
  EXPECT_EQ(record.mtime, kQueryDay + 3h);
  EXPECT_EQ((**store_->get(3)).status_code, 404) << "what the next answer is compared with";
  EXPECT_EQ((**store_->get(2)).redirect_to, "http://a.test/deep/three");
}

TEST(Requeued, NobodyAsksWhetherItIsAsItWasAndYetAChangeIsFound) {
  UrlRecord record;
  record.state = UrlState::done;
  record.status_code = 200;
  record.digest = "of the last body";
  record.etag = "v1";
  record.last_modified = "Mon, 23 Nov 2026 12:00:00 GMT";
  const UrlOutcome outcome = *requeued(record);
  EXPECT_EQ(outcome.status_code, 200);
  EXPECT_EQ(outcome.digest, "of the last body");
  EXPECT_EQ(outcome.etag, "");
  EXPECT_EQ(outcome.last_modified, "");
  // One to nowhere is as good as none, and its error is gone.
  record.status_code = 302;
  record.error = "more than 10 redirects";
  EXPECT_EQ(requeued(record)->status_code, 0);
}

TEST(Requeued, WhatIsOnlyCheckedStaysThatAndWhatAServerDecidedIsAskedAgain) {
  UrlRecord record;
  record.url_id = 3;
  record.state = UrlState::done;
  for (const UrlReason kept : {UrlReason::checked, UrlReason::asset}) {
    record.reason = kept;
    EXPECT_EQ(requeued(record)->reason, kept);
  }
  record.reason = UrlReason::cut_off;
  EXPECT_EQ(requeued(record)->reason, UrlReason::none);
  record.state = UrlState::excluded;
  for (const UrlReason asked : {UrlReason::robots, UrlReason::pages_per_host, UrlReason::content_type}) {
    record.reason = asked;
    EXPECT_TRUE(requeued(record)) << to_string(asked);
  }
  for (const UrlReason decided : {UrlReason::off_scope, UrlReason::depth, UrlReason::exclude, UrlReason::asset}) {
    record.reason = decided;
    EXPECT_FALSE(requeued(record)) << to_string(decided);
  }
}

TEST_F(UrlQueryTest, AnExplanationSaysWhatCameOfItAndHowItWasFound) {
  const UrlExplanation paper = why("http://a.test/two.pdf");
  EXPECT_EQ(paper.what, "was fetched 2024-10-04T02:00:00Z, with status 404");
  EXPECT_THAT(paper.advice, testing::HasSubstr("--requeue broken"));
  ASSERT_EQ(paper.way.size(), 2u);
  EXPECT_EQ(paper.way[0].url, "http://a.test/");
  ASSERT_EQ(paper.linked_from.size(), 1u);
  EXPECT_EQ(paper.linked_from[0].text, "the paper");
  EXPECT_EQ(paper.linked_from[0].line, 7u);

  const UrlExplanation deep = why("http://a.test/deep/three");
  EXPECT_EQ(deep.what, "waits to be fetched");
  ASSERT_EQ(deep.way.size(), 3u);
  EXPECT_TRUE(deep.way[2].redirected);
  EXPECT_EQ(deep.site, "http://a.test");
  EXPECT_EQ(deep.done, 3u);
  EXPECT_EQ(deep.queued, 1u);
  EXPECT_EQ(deep.ahead, 0u);
  EXPECT_THAT(why("http://a.test/one").leads_to, ElementsAre("http://a.test/deep/three"));
  EXPECT_EQ(why("http://a.test/one").end, "waits to be fetched");
  EXPECT_EQ(paper.end, "");

  EXPECT_THAT(why("http://b.test:8080/").what, testing::StartsWith("is not due until "));
  EXPECT_EQ(why("http://other.example/").what, "is excluded: it is out of the crawl's scope");
  EXPECT_THAT(why("http://other.example/").advice, testing::HasSubstr("--whitelist"));
  EXPECT_EQ(why("http://a.test/").way.size(), 1u);
  EXPECT_FALSE(explain_url(*store_, *Url::parse("http://nowhere.test/"), kQueryDay)->has_value());
}

TEST_F(UrlQueryTest, RedirectsAreFollowedForwardsBackwardsAndRoundInACircle) {
  const auto redirect = [&](std::int64_t id, const std::string& target) {
    UrlOutcome outcome{.url_id = id, .state = UrlState::done, .mtime = kQueryDay, .status_code = 302, .attempts = 1};
    outcome.redirect_to = target;
    UrlBatch batch;
    batch.outcomes.push_back(std::move(outcome));
    store_->submit(std::move(batch));
  };
  for (const char* url : {"http://a.test/7", "http://a.test/8", "http://b.test/9"}) add(url, 1, 1);
  redirect(7, "http://b.test/9");
  redirect(8, "http://nowhere.test/");
  redirect(9, "http://a.test/8");
  EXPECT_THAT(why("http://a.test/7").leads_to,
              ElementsAre("http://b.test/9", "http://a.test/8", "http://nowhere.test/"));
  redirect(8, "http://a.test/7");
  EXPECT_THAT(why("http://a.test/7").leads_to, ElementsAre("http://b.test/9", "http://a.test/8"));
  redirect(8, "http://a.test/8");
  EXPECT_THAT(why("http://a.test/8").leads_to, IsEmpty());
}

TEST_F(UrlQueryTest, OfAUrlThatWaitsThoseAreCountedThatGoBeforeWhereverTheyAre) {
  for (int id = 7; id <= 9; ++id) {
    UrlBatch batch;
    batch.discovered.push_back({id, "http://a.test/" + std::to_string(id), 2, id == 9 ? 5 : -2, 1, kQueryDay});
    store_->submit(std::move(batch));
  }
  EXPECT_EQ(why("http://a.test/deep/three").ahead, 1u) << "the important one, found later";
  EXPECT_EQ(why("http://a.test/8").ahead, 3u) << "and two that were found before";
  EXPECT_EQ(why("http://a.test/9").ahead, 0u);
}

TEST_F(UrlQueryTest, AWayThatLeadsRoundInACircleEnds) {
  UrlBatch batch;
  batch.discovered.push_back({7, "http://a.test/x", 3, 0, 8, kQueryDay});
  batch.discovered.push_back({8, "http://a.test/y", 3, 0, 7, kQueryDay});
  store_->submit(std::move(batch));
  const UrlExplanation round = why("http://a.test/x");
  EXPECT_FALSE(round.whole_way);
  EXPECT_EQ(round.way.size(), 2u);
}

TEST(ReasonWordsTest, EachReasonHasWords) {
  for (std::size_t i = 1; i < kUrlReasons; ++i) {
    const auto reason = static_cast<UrlReason>(i);
    EXPECT_FALSE(words_of(reason).what.empty()) << to_string(reason);
  }
}

}  // namespace
}  // namespace argiope
