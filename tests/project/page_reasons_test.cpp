#include "project/rules/internal/page_reasons.hpp"

#include <gtest/gtest.h>

namespace argiope {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kAskedNow{24h};

TEST(PageReasons, OfPagesThatDoNotWait) {
  struct Row {
    PageState state;
    Duration age;
    const char* reason;
    const char* words;
    std::optional<WallTime> until;
  };
  const Row kRows[] = {
      {PageState::visiting, -1s, "visiting", "it is being visited", std::nullopt},
      {PageState::done, 2h, "fresh",
       "it is done, and waits to be asked for; asked for now it would be: fresh until 1970-01-02T01:00:00Z",
       kAskedNow + 1h},
      {PageState::done, 1min, "fresh",
       "it is done, and waits to be asked for; asked for now it would be: visited again: older than its age",
       std::nullopt},
      {PageState::done, -1s, "fresh",
       "it is done, and waits to be asked for; asked for now it would be: fresh for ever", std::nullopt},
      {PageState::failed, 2h, "given_up",
       "its last visits failed; asked for now it would be: has failed, and rests until 1970-01-02T01:00:00Z",
       kAskedNow + 1h},
      {PageState::cancelled, 2h, "cancelled",
       "it was cancelled; asked for now it would be: fresh until 1970-01-02T01:00:00Z", kAskedNow + 1h},
  };
  for (const Row& row : kRows) {
    const KnownPage page{.state = row.state, .succeeded_at = kAskedNow - 1h, .ended_at = kAskedNow - 1h};
    PageTerms terms;
    terms.age = row.age;
    const PageReason why = why_at_rest(page, terms, kAskedNow);
    EXPECT_EQ(why.reason, row.reason) << row.words;
    EXPECT_EQ(why.words, row.words);
    EXPECT_EQ(why.until, row.until) << row.words;
  }
}

TEST(PageReasons, OfPagesThatWait) {
  KnownPage page{.state = PageState::waiting};
  EXPECT_FALSE(why_not_due(page, kAskedNow));
  page.due = kAskedNow;
  EXPECT_FALSE(why_not_due(page, kAskedNow));
  page.due = kAskedNow + 1ms;
  const std::pair<PageWait, const char*> kRows[] = {{PageWait::visit, "it was asked for then"},
                                                    {PageWait::retry, "it has failed, and is tried again then"},
                                                    {PageWait::recrawl, "it is visited again when it is old enough"}};
  for (const auto& [wait, words] : kRows) {
    page.wait = wait;
    const auto why = why_not_due(page, kAskedNow);
    ASSERT_TRUE(why) << words;
    EXPECT_EQ(why->reason, "not_due");
    EXPECT_EQ(why->words, words);
    EXPECT_EQ(why->until, page.due);
  }
}

TEST(PageReasons, OfProjects) {
  EXPECT_EQ(why_stopped(ProjectStatus::stop).words, "its project is STOP");
  EXPECT_EQ(why_standing("no script").words, "its project stands still: no script");
  EXPECT_EQ(why_standing("").words, "its project's processor has not said yet what it is");
  EXPECT_EQ(why_paused(kAskedNow).until, kAskedNow);
  EXPECT_EQ(why_probing(std::nullopt).reason, "probing");
}

}  // namespace
}  // namespace argiope
