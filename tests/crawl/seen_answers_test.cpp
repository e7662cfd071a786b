// What is remembered of the runs that have made a demand.
#include "crawl/page/seen_answers.hpp"

#include <gtest/gtest.h>

namespace argiope {
namespace {

using namespace std::chrono_literals;

TEST(SeenTimes, HoldWhatRunsWithTheDemandHaveAskedAndNothingElse) {
  SeenTimes seen;
  EXPECT_FALSE(seen.contains(WallTime{1s}));
  EXPECT_FALSE(seen.is_open());
  seen.begin(WallTime{10s});
  seen.begin(WallTime{11s});
  EXPECT_TRUE(seen.is_open_since(WallTime{10s}));
  EXPECT_FALSE(seen.is_open_since(WallTime{9s}));
  seen.end(WallTime{20s});
  seen.end(WallTime{25s});
  seen.begin(WallTime{30s});
  for (const auto time : {10s, 19s, 30s, 5000s}) EXPECT_TRUE(seen.contains(WallTime{time})) << time.count();
  for (const auto time : {0s, 9s, 20s, 29s}) EXPECT_FALSE(seen.contains(WallTime{time})) << time.count();
  EXPECT_EQ(seen.text(), "10000-20000,30000-");
  EXPECT_EQ(SeenTimes(seen.text()).text(), seen.text());
}

TEST(SeenTimes, ReadWhatTheyCanOfAnyText) {
  EXPECT_EQ(SeenTimes("").text(), "");
  EXPECT_EQ(SeenTimes("x,5-6,-,7,8-y,9-").text(), "5-6,9-");
  EXPECT_EQ(SeenTimes("99999999999999999999-,1-99999999999999999999").text(), "");
}

TEST(SeenTimes, ForgetTheOldestOfMany) {
  SeenTimes seen;
  for (int i = 0; i < 1000; ++i) {
    seen.begin(WallTime{10s * i});
    seen.end(WallTime{10s * i + 5s});
  }
  EXPECT_LT(seen.text().size(), 2000u);
  EXPECT_FALSE(seen.contains(WallTime{1s}));
  EXPECT_TRUE(seen.contains(WallTime{9991s}));
}

TEST(SeenAnswers, ArePagesOfTheCrawlThatWereThere) {
  UrlRecord record;
  record.status_code = 200;
  record.content_type = "text/html; charset=utf-8";
  EXPECT_TRUE(is_page_answer(record));
  for (const UrlReason reason : {UrlReason::cut_off, UrlReason::duplicate, UrlReason::links_per_page}) {
    record.reason = reason;
    EXPECT_TRUE(is_page_answer(record)) << to_string(reason);
  }
  for (const UrlReason reason : {UrlReason::checked, UrlReason::asset, UrlReason::requisite, UrlReason::sitemap}) {
    record.reason = reason;
    EXPECT_FALSE(is_page_answer(record)) << to_string(reason);
  }
  record.reason = UrlReason::none;
  record.content_type = "image/png";
  EXPECT_FALSE(is_page_answer(record));
  record.content_type.clear();
  EXPECT_TRUE(is_page_answer(record));
  record.status_code = 404;
  EXPECT_FALSE(is_page_answer(record));
}

TEST(SeenAnswers, OfASinkGoByItsPlaceAndByWhatItTakes) {
  EXPECT_EQ(demand_of_sink("archive", "/a/../b/site"), demand_of_sink("archive", "/b/site"));
  EXPECT_NE(demand_of_sink("archive", "/b/site"), demand_of_sink("archive", "/b/other"));
  EXPECT_NE(demand_of_sink("records", "/b/site", "h1"), demand_of_sink("records", "/b/site", "h2"));
  EXPECT_TRUE(demand_of_sink("records", "-").starts_with("records/"));
}

}  // namespace
}  // namespace argiope
