// What was counted over time: steps of ten seconds for an hour, of five minutes for a day, bounded.
#include "serve/watch/history.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "serve/api_fixture.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

class Histories : public ApiTest {
 protected:
  ~Histories() override { history_.reset(); }
  void count() {
    open();
    run([this]() -> Coro<void> {
      history_ = std::make_unique<History>(*engine_, *feed_);
      co_return;
    });
  }
  void work_one() {
    const std::string token = lease().text("/leases/0/token");
    post("/v1/leases/settle", fmt::format(R"({{"settlements":[{{"token":{},"outcome":"done"}}]}})", token));
  }
  static std::size_t place(Tallied kind) { return static_cast<std::size_t>(kind); }

  std::unique_ptr<History> history_;
};

TEST_F(Histories, CountEachStepByItself) {
  count();
  put_job(R"({"queue":"mail"})");
  put_job(R"({"queue":"mail"})");
  pass(11s);
  work_one();
  pass(10s);
  const auto& points = *history_->points("mail", true);
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].counts[place(Tallied::added)], 2u);
  EXPECT_EQ(points[0].ready, 2u);
  EXPECT_EQ(points[1].counts[place(Tallied::added)], 0u);
  EXPECT_EQ(points[1].counts[place(Tallied::done)], 1u);
  EXPECT_EQ(points[1].ready, 1u);
  EXPECT_NEAR(points[1].wait_mean_s, 11, 1);
  EXPECT_EQ(points[1].wait_p95_s, 60);
  EXPECT_EQ(points[1].at - points[0].at, 10s);
}

TEST_F(Histories, KeepAnHourOfTenSecondsAndADayOfFiveMinutes) {
  count();
  put_job(R"({"queue":"mail"})");
  pass(25h);
  EXPECT_EQ(history_->points("", true)->size(), 360u);
  EXPECT_EQ(history_->points("", false)->size(), 288u);
  EXPECT_EQ(history_->points("mail", false)->size(), 288u);
  EXPECT_EQ(history_->points("film", false), nullptr);
}

TEST_F(Histories, CountAllQueuesInTheWhole) {
  count();
  put_job(R"({"queue":"mail"})");
  put_job(R"({"queue":"film"})");
  pass(11s);
  EXPECT_EQ(history_->points("", true)->at(0).counts[place(Tallied::added)], 2u);
  EXPECT_EQ(history_->points("", true)->at(0).ready, 2u);
}

TEST_F(Histories, GoOnFromWhatTheProcessBeforeHasCounted) {
  const TemporaryFolder folder;
  const std::string file = folder.file("jobs.db-history.jsonl"), left = folder.file("left-by-a-kill.jsonl");
  open();
  const auto begin = [&](const std::string& path) {
    run([&]() -> Coro<void> {
      history_ = std::make_unique<History>(*engine_, *feed_, path);
      history_->open();
      co_return;
    });
  };
  begin(file);
  put_job(R"({"queue":"mail"})");
  put_job(R"({"queue":"film"})");
  pass(6min + 1s);
  history_->stop();
  std::filesystem::copy_file(file, left);
  begin(left);
  const auto sum = [&](const char* queue, bool is_fine) {
    std::uint64_t all = 0;
    for (const HistoryPoint& point : *history_->points(queue, is_fine)) all += point.counts[place(Tallied::added)];
    return all;
  };
  EXPECT_EQ(history_->points("mail", true)->size(), 36u);
  EXPECT_EQ(history_->points("", false)->size(), 1u);
  EXPECT_EQ(sum("mail", true), 1u);
  EXPECT_EQ(sum("", true), 2u);
  EXPECT_EQ(sum("", false), 2u);
  EXPECT_EQ(history_->points("mail", true)->back().ready, 1u);
  put_job(R"({"queue":"mail"})");
  pass(4min + 1s);
  EXPECT_EQ(history_->points("", false)->size(), 2u) << "the step that was under way went on";
  EXPECT_EQ(history_->points("mail", true)->size(), 60u);
  pass(2h);
  begin(left);
  EXPECT_EQ(history_->points("", true)->size(), 360u);
}

TEST_F(Histories, BeginAnewWhereTheFileIsDamaged) {
  const TemporaryFolder folder;
  const std::string file = folder.file("history.jsonl");
  std::ofstream(file) << "nonsense\n{\"at\":1}\n{\"queue\":";
  open();
  run([&]() -> Coro<void> {
    history_ = std::make_unique<History>(*engine_, *feed_, file);
    history_->open();
    co_return;
  });
  EXPECT_TRUE(history_->points("", true)->empty());
  pass(11s);
  EXPECT_EQ(history_->points("", true)->size(), 1u);
}

TEST_F(Histories, AreColumnsInTheApi) {
  run([this]() -> Coro<void> {
    engine_ = co_await open_engine(store_);
    feed_ = std::make_unique<EventFeed>(*engine_, EventFeedOptions{}, 1);
    history_ = std::make_unique<History>(*engine_, *feed_);
  });
  gate_ = std::make_unique<Gate>(GateOptions{}, loop_.clock());
  api_ = std::make_unique<Api>(*engine_, *gate_, *feed_, ApiOptions{.history = history_.get()});
  api_->add_to(router_);
  put_job(R"({"queue":"mail"})");
  pass(25s);
  const Answered all = get("/v1/history?queue=mail");
  EXPECT_EQ(all.status, 200) << all.body;
  EXPECT_EQ(all.text("/queue"), "mail");
  EXPECT_EQ(all.text("/step_s"), "10");
  EXPECT_EQ(all.text("/added"), "[1,0]");
  EXPECT_EQ(all.text("/ready"), "[1,1]");
  EXPECT_EQ(all.at("/at").as_array().size(), 2u);
  const std::string second = all.text("/at/1");
  EXPECT_EQ(get("/v1/history?queue=mail&from=" + second).text("/added"), "[0]");
  EXPECT_EQ(get("/v1/history?queue=mail&from=0").text("/added"), "[1,0]") << "milliseconds since 1970";
  EXPECT_EQ(get("/v1/history?queue=mail&from=-1").text("/errors/0/parameter"), "from");
  EXPECT_EQ(get("/v1/history?step=300").text("/added"), "[]");
  EXPECT_EQ(get("/v1/history?queue=nobody").text("/added"), "[]");
  EXPECT_EQ(get("/v1/history?step=7").problem(), "invalid_input");
  EXPECT_EQ(get("/v1/history?from=yesterday").problem(), "invalid_input");
}

}  // namespace
}  // namespace argiope
