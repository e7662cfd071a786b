// When pages are due again, and what counts as a change.
#include "crawl/scope/revisit_plan.hpp"

#include <gtest/gtest.h>

#include "crawl/scope/url_change.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

CrawlOptions plan_options(std::optional<Duration> age, std::optional<RevisitBounds> bounds) {
  CrawlOptions options;
  options.age = age;
  options.adaptive = bounds;
  return options;
}

UrlRecord page_at(WallTime mtime, Duration interval) {
  UrlRecord record;
  record.mtime = mtime;
  record.due = mtime + interval;
  return record;
}

constexpr WallTime kMonday{std::chrono::seconds{1'000'000}};

TEST(RevisitPlan, IsTheAgeWhereNothingAdapts) {
  const RevisitPlan plan(plan_options(1h, std::nullopt));
  const UrlRecord page = page_at(kMonday, 5h);
  EXPECT_EQ(plan.first(), 1h);
  EXPECT_EQ(plan.next(&page, RevisitPlan::Visit::changed), 1h);
  EXPECT_EQ(plan.due_of(page, kMonday), kMonday + 1h) << "another age than that of the last run counts at once";
}

TEST(RevisitPlan, AdaptsWithinItsBounds) {
  const RevisitPlan plan(plan_options(std::nullopt, RevisitBounds{10min, 16h}));
  EXPECT_EQ(std::chrono::round<std::chrono::seconds>(plan.first()), 5879s) << "the geometric middle";
  const UrlRecord page = page_at(kMonday, 4h);
  EXPECT_EQ(plan.next(&page, RevisitPlan::Visit::changed), 2h);
  EXPECT_EQ(plan.next(&page, RevisitPlan::Visit::same), 6h);
  EXPECT_EQ(plan.next(&page, RevisitPlan::Visit::failed), 4h);
  const UrlRecord fast = page_at(kMonday, 12min), slow = page_at(kMonday, 15h), wild = page_at(kMonday, 900h);
  EXPECT_EQ(plan.next(&fast, RevisitPlan::Visit::changed), 10min);
  EXPECT_EQ(plan.next(&slow, RevisitPlan::Visit::same), 16h);
  EXPECT_EQ(plan.due_of(wild, kMonday), kMonday + 16h) << "other bounds than those of the last run count at once";
  EXPECT_EQ(plan.interval_of(UrlRecord{}), plan.first());
}

TEST(RevisitPlan, BeginsWithTheAgeWhereThereIsOne) {
  EXPECT_EQ(RevisitPlan(plan_options(2h, RevisitBounds{1h, 8h})).first(), 2h);
  EXPECT_EQ(RevisitPlan(plan_options(1min, RevisitBounds{1h, 8h})).first(), 1h);
}

// A record and an outcome, each by its status ("200a": with content a; "301>x": to x; "dns": no answer).
UrlRecord stored_as(std::string_view what) {
  UrlRecord record;
  record.url_id = 7;
  record.state = what == "dns" ? UrlState::failed : what == "queued" ? UrlState::queued : UrlState::done;
  if (what != "dns" && what != "queued") record.status_code = std::stoi(std::string(what.substr(0, 3)));
  if (what.size() > 3 && what[3] == '>') record.redirect_to = what.substr(4);
  if (record.status_code == 200) record.digest = what.substr(3);
  return record;
}
UrlOutcome fetched_as(std::string_view what) {
  const UrlRecord record = stored_as(what == "304" ? "200" : what);
  UrlOutcome outcome;
  outcome.url_id = 7;
  outcome.state = record.state;
  outcome.status_code = record.status_code;
  outcome.redirect_to = record.redirect_to;
  outcome.digest = record.digest;
  outcome.not_modified = what == "304";
  if (what == "dns") outcome.error = "dns: no such host";
  return outcome;
}

TEST(UrlChange, IsOfTheseKinds) {
  struct Case {
    std::string_view before, after, kind;
  };
  for (const Case& c : {Case{"200a", "200a", ""},    {"200a", "200b", "changed"},  {"200a", "304", ""},
                        {"200a", "200", ""},         {"200a", "301>x", "moved"},   {"200a", "404", "gone"},
                        {"200a", "410", "gone"},     {"200a", "403", "broken"},    {"200a", "dns", "broken"},
                        {"200a", "503", "broken"},   {"301>x", "301>x", ""},       {"301>x", "302>x", ""},
                        {"301>x", "301>y", "moved"}, {"301>x", "200a", "changed"}, {"301>x", "404", "gone"},
                        {"404", "404", ""},          {"404", "410", ""},           {"404", "500", ""},
                        {"404", "200a", "mended"},   {"404", "301>x", "mended"},   {"dns", "200a", "mended"},
                        {"dns", "dns", ""},          {"503", "200a", "mended"},    {"503", "404", ""},
                        {"queued", "200a", ""},      {"queued", "404", ""}}) {
    const auto change = change_between(stored_as(c.before), fetched_as(c.after));
    EXPECT_EQ(change ? to_string(change->kind) : "", c.kind) << c.before << " to " << c.after;
  }
}

TEST(UrlChange, SaysWhereToAndWhy) {
  EXPECT_EQ(change_between(stored_as("200a"), fetched_as("301>x"))->detail, "x");
  EXPECT_EQ(change_between(stored_as("200a"), fetched_as("dns"))->detail, "dns: no such host");
  const auto change = change_between(stored_as("200a"), fetched_as("404"));
  EXPECT_EQ(change->status_before, 200);
  EXPECT_EQ(change->status_after, 404);
  EXPECT_EQ(change->url_id, 7);
}

TEST(RevisitPlan, KeepsTheIntervalOfWhatWaits) {
  const RevisitPlan plan(plan_options(2h, RevisitBounds{1h, 8h}));
  const UrlRecord page = page_at(kMonday, 5h);
  UrlRecord waiting;
  waiting.due = kMonday + 5h + 1s;
  waiting.mtime = plan.visit_before(waiting.due, &page);
  EXPECT_EQ(plan.interval_of(waiting), 5h);
  waiting.mtime = plan.visit_before(waiting.due, nullptr);
  EXPECT_EQ(plan.interval_of(waiting), 2h);
}

TEST(RevisitPlan, AsksAtOnceWhatIsSaidToBeOfTheFuture) {
  const RevisitPlan plan(plan_options(2h, std::nullopt));
  EXPECT_EQ(plan.due_of(page_at(kMonday, {}), kMonday - 1h), kMonday - 1h);
}

}  // namespace
}  // namespace argiope
