// What a project would make of a page.
#include "project/run/internal/page_trial.hpp"

#include <gmock/gmock.h>

#include "project/rules/internal/ask_words.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using Place = ProjectMap::Place;

constexpr WallTime kTrialTime = std::chrono::sys_days{std::chrono::year{2026} / 11 / 23};

ProjectDefinition shop_project() {
  ProjectDefinition shop{.name = "shop", .start = {*Url::parse("http://shop.test/")}};
  ProjectRule item, rest;
  item.extraction = {.name = "item",
                     .match = {"/item/*"},
                     .fields = {{.name = "title", .sources = {"css:h1"}},
                                {.name = "price", .sources = {"css:.p"}, .type = FieldType::number}}};
  item.terms.age = 24h;
  item.follow_only = {"/list/*"};
  rest.extraction = {.name = "list", .match = {"/list/*"}};
  shop.rules = {item, rest};
  return shop;
}

std::optional<KnownPage> nothing_known(std::string_view) { return std::nullopt; }

TEST(PageTrialTest, SaysRuleFieldsAndWhatBecomesOfEachLink) {
  const ProjectDefinition shop = shop_project();
  const auto map = ProjectMap::make(shop);
  const FetchedPage page{.url = *Url::parse("http://shop.test/moved"),
                         .status = 200,
                         .content_type = "text/html",
                         .body = "<h1>Lamp</h1><p class=p>free</p>",
                         .links = {{.url = "http://shop.test/list/1"},
                                   {.url = "http://shop.test/item/2"},
                                   {.url = "http://shop.test/list/1"},
                                   {.url = "http://other.test/"},
                                   {.url = "http://shop.test/about"},
                                   {.url = "http://shop.test/list/3", .nofollow = true}}};
  const auto find = [&](std::string_view url) -> std::optional<KnownPage> {
    if (url != "http://shop.test/item/2") return std::nullopt;
    return KnownPage{.state = PageState::done, .succeeded_at = kTrialTime - 1h};
  };
  const auto trial = try_page(shop, *map, *Url::parse("http://shop.test/item/1"), &page, find, kTrialTime);
  ASSERT_TRUE(trial) << trial.error().message;
  EXPECT_EQ(trial->ask.answer.rule, 0u);
  EXPECT_EQ(trial->ask.decision->verdict, AskVerdict::add);
  ASSERT_EQ(trial->extracted.records.size(), 1u);  // by the rule of the URL asked, although it has led elsewhere
  EXPECT_EQ(trial->extracted.records[0].values[0].text, "Lamp");
  ASSERT_EQ(trial->extracted.troubles.size(), 1u);
  ASSERT_EQ(trial->links.size(), 5u);
  EXPECT_EQ(trial->links[0].times, 2u);
  EXPECT_TRUE(trial->links[0].is_followed);
  EXPECT_EQ(trial->links[0].ask.decision->verdict, AskVerdict::add);
  EXPECT_FALSE(trial->links[1].is_followed);
  EXPECT_EQ(in_words(*trial->links[1].ask.decision), "fresh until 2026-11-23T23:00:00Z");
  EXPECT_EQ(trial->links[2].ask.answer.place, Place::off_scope);
  EXPECT_EQ(trial->links[3].ask.answer.place, Place::no_rule);
  EXPECT_FALSE(trial->links[3].ask.decision);
  EXPECT_FALSE(trial->links[4].is_followed);
}

TEST(PageTrialTest, TakesNothingFromErrorsAndFollowsNothingWithoutARule) {
  const ProjectDefinition shop = shop_project();
  const auto map = ProjectMap::make(shop);
  FetchedPage page{.url = *Url::parse("http://shop.test/item/1"),
                   .status = 404,
                   .content_type = "text/html",
                   .body = "<h1>Gone</h1>"};
  auto trial = try_page(shop, *map, page.url, &page, nothing_known, kTrialTime);
  EXPECT_TRUE(trial->columns.empty());
  page.links = {{.url = "http://shop.test/list/1"}};
  trial = try_page(shop, *map, *Url::parse("http://shop.test/about"), &page, nothing_known, kTrialTime);
  EXPECT_EQ(trial->ask.answer.place, Place::no_rule);
  EXPECT_FALSE(trial->links[0].is_followed);
  trial = try_page(shop, *map, page.url, nullptr, nothing_known, kTrialTime);
  EXPECT_EQ(trial->ask.decision->verdict, AskVerdict::add);
  EXPECT_TRUE(trial->links.empty());
}

TEST(PageTrialTest, TakesWhatACrawlKnowsForKnown) {
  UrlRecord record{.mtime = kTrialTime - 1h, .state = UrlState::done, .due = kTrialTime, .priority = 3};
  EXPECT_EQ(
      known_page_of(record),
      (KnownPage{
          .state = PageState::done, .priority = 3, .succeeded_at = kTrialTime - 1h, .ended_at = kTrialTime - 1h}));
  record.state = UrlState::failed;
  EXPECT_EQ(known_page_of(record)->succeeded_at, WallTime{});
  EXPECT_EQ(known_page_of(record)->state, PageState::failed);
  record = {.due = kTrialTime + 1h};
  EXPECT_EQ(known_page_of(record), (KnownPage{.due = kTrialTime + 1h}));
  record.mtime = kTrialTime;
  record.attempts = 2;
  EXPECT_EQ(known_page_of(record)->wait, PageWait::retry);
  record.state = UrlState::excluded;
  EXPECT_EQ(known_page_of(record), std::nullopt);
}

TEST(AskWordsTest, SayWhatBecomesOfAnAsk) {
  EXPECT_EQ(in_words(AskDecision{.verdict = AskVerdict::add, .reason = AskReason::is_new}), "new");
  EXPECT_EQ(in_words(AskDecision{.verdict = AskVerdict::again, .reason = AskReason::too_old}),
            "visited again: older than its age");
  EXPECT_EQ(in_words(AskDecision{.verdict = AskVerdict::after, .reason = AskReason::forced}),
            "visited once more: forced");
  EXPECT_EQ(in_words(AskDecision{.verdict = AskVerdict::change, .reason = AskReason::raised}),
            "waits already; its priority is raised");
  EXPECT_EQ(in_words(AskDecision{.reason = AskReason::is_fresh, .until = WallTime::max()}), "fresh for ever");
  EXPECT_EQ(in_words(AskDecision{.reason = AskReason::waits}), "waits already");
  for (int reason = 0; reason <= static_cast<int>(AskReason::was_cancelled); ++reason) {
    EXPECT_FALSE(in_words(AskDecision{.reason = static_cast<AskReason>(reason)}).empty());
    EXPECT_FALSE(to_string(static_cast<AskReason>(reason)).empty());
  }
}

}  // namespace
}  // namespace argiope
