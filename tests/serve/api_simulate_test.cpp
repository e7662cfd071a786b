// What if: what the book says goes into the question, and so do the request's changes.
#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "serve/api_fixture.hpp"

namespace argiope {
namespace {

class ApiSimulate : public ApiTest {
 protected:
  // Keeps what it was asked.
  void open_with() {
    open({.what_if = [this](const WhatIf& question) -> Result<std::string> {
            asked_ = question;
            return R"({"runs":1})";
          },
          .workers_of = [](std::string_view queue) -> std::optional<std::size_t> {
            return queue == "mail" ? std::optional<std::size_t>(4) : std::nullopt;
          }});
  }
  const WhatIfQueue& queue(std::string_view name) const {
    const auto found = std::ranges::find(asked_.queues, name, &WhatIfQueue::name);
    EXPECT_NE(found, asked_.queues.end()) << name;
    static const WhatIfQueue none;
    return found == asked_.queues.end() ? none : *found;
  }

  WhatIf asked_;
};

TEST_F(ApiSimulate, AsksOfTheQueuesThatAreThereWithTheJobsThatWaitAndRun) {
  open_with();
  put("/v1/queues/mail", R"({"rate":2})");
  put_job(R"({"queue":"mail","priority":7,"key":"ann"})");
  put_job(R"({"queue":"mail","delay_ms":60000})");
  put_job(R"({"queue":"mail","priority":9})");
  lease();
  const Answered answered = post("/v1/simulate", R"({"for_ms":3600000,"seed":5,"zone":"Europe/Berlin"})");
  EXPECT_EQ(answered.status, 200) << answered.body;
  EXPECT_EQ(answered.text("/report/runs"), "1");
  EXPECT_EQ(answered.text("/assumed/0/name"), "mail");
  EXPECT_EQ(answered.text("/assumed/0/workers"), "4");
  EXPECT_EQ(answered.text("/assumed/0/waiting"), "3");
  EXPECT_EQ(answered.text("/assumed/0/duration_ms"), "null");
  EXPECT_EQ(asked_.span, 1h);
  EXPECT_EQ(asked_.seed, 5u);
  EXPECT_EQ(asked_.zone.name(), "Europe/Berlin");
  const WhatIfQueue& mail = queue("mail");
  EXPECT_EQ(mail.config.limits.rate, 2);
  ASSERT_EQ(mail.jobs.waiting.size(), 3u);
  EXPECT_EQ(mail.jobs.waiting[1].key, "ann");
  EXPECT_EQ(mail.jobs.waiting[1].priority, 7);
  EXPECT_EQ(mail.jobs.waiting[2].due_in, 60s);
  EXPECT_EQ(mail.jobs.more_waiting, 0u);
}

TEST_F(ApiSimulate, TakesFromWhatWasCountedHowJobsComeAndRun) {
  open_with();
  for (int minute = 0; minute < 4; ++minute) {
    if (minute > 0) pass(61s);
    for (int i = 0; i < 120; ++i) put_job(R"({"queue":"mail"})");
  }
  pass(55500ms);
  const std::string token = lease().text("/leases/0/token");
  pass(2s);
  post("/v1/leases/settle", fmt::format(R"({{"settlements":[{{"token":{},"outcome":"done"}}]}})", token));
  const Answered answered = post("/v1/simulate", R"({"waiting":false})");
  EXPECT_EQ(answered.text("/assumed/0/waiting"), "0");
  EXPECT_NEAR(queue("mail").jobs.arrivals_per_second, 2, 0.1);
  EXPECT_EQ(queue("mail").mean_duration, 2s);
  EXPECT_EQ(queue("mail").failures, 0);
  EXPECT_EQ(answered.text("/counted_s"), "240");
  EXPECT_EQ(answered.text("/assumed/0/counted/put"), "480");
  EXPECT_EQ(answered.text("/assumed/0/counted/minutes"), "4");
  EXPECT_EQ(answered.text("/assumed/0/counted/runs"), "1");
}

TEST_F(ApiSimulate, MakesNoRateOfWhatCameOnce) {
  open_with();
  for (int i = 0; i < 500; ++i) put_job(R"({"queue":"mail"})");
  pass(2h);
  put_job(R"({"queue":"mail"})");
  const Answered twice = post("/v1/simulate");
  EXPECT_EQ(queue("mail").jobs.arrivals_per_second, 0);
  EXPECT_EQ(twice.text("/assumed/0/counted/put"), "501");
  EXPECT_EQ(twice.text("/assumed/0/counted/minutes"), "2");
  pass(61s);
  put_job(R"({"queue":"mail"})");
  post("/v1/simulate");
  EXPECT_GT(queue("mail").jobs.arrivals_per_second, 0);
}

TEST_F(ApiSimulate, CountsNoJobsOfSchedulesAsComing) {
  open_with();
  run([&]() -> Coro<void> {
    engine_->scheduler().start();
    co_return;
  });
  post("/v1/schedules", R"({"name":"often","trigger":"@every 1m","job":{"queue":"mail"}})");
  pass(10min);
  const Answered answered = post("/v1/simulate");
  EXPECT_EQ(queue("mail").jobs.arrivals_per_second, 0);
  EXPECT_EQ(answered.text("/assumed/0/counted/put"), "0");
  EXPECT_EQ(answered.text("/assumed/0/counted/minutes"), "0");
}

TEST_F(ApiSimulate, LeavesTheDaemonsOwnQueuesOut) {
  open_with();
  run([&]() -> Coro<void> {
    EXPECT_TRUE(co_await engine_->book().configure("argiope.notify.ops", {}));
    EXPECT_TRUE(co_await engine_->book().configure("mail", {}));
  });
  const Answered answered = post("/v1/simulate");
  ASSERT_EQ(asked_.queues.size(), 1u) << answered.body;
  EXPECT_EQ(asked_.queues[0].name, "mail");
  const Answered named = post("/v1/simulate", R"({"queues":[{"name":"argiope.notify.ops","workers":1}]})");
  EXPECT_EQ(named.text("/errors/0/pointer"), "/queues/0/name");
  const Answered filled =
      post("/v1/simulate", R"({"schedules":[{"name":"x","trigger":"@every 1h","job":{"queue":"argiope.x"}}]})");
  EXPECT_EQ(filled.text("/errors/0/pointer"), "/schedules/0") << filled.body;
}

TEST_F(ApiSimulate, ChangesWhatTheRequestNames) {
  open_with();
  put("/v1/queues/mail", R"({"rate":2,"burst":3})");
  post("/v1/schedules", R"({"name":"a","trigger":"0 3 * * *","job":{"queue":"night"}})");
  post("/v1/schedules", R"({"name":"b","trigger":"0 4 * * *"})");
  const Answered answered = post("/v1/simulate", R"({
    "queues":[{"name":"mail","config":{"rate":9},"workers":32,"arrivals_per_second":1.5,"duration_ms":250,"failures":0.5},
              {"name":"new","workers":1}],
    "schedules":[{"name":"b","trigger":"@every 1h","job":{"queue":"hourly"}},{"name":"c","trigger":"@every 2h"}],
    "without_schedules":["a"]})");
  EXPECT_EQ(answered.status, 200) << answered.body;
  const WhatIfQueue& mail = queue("mail");
  EXPECT_EQ(mail.config.limits.rate, 9);
  EXPECT_EQ(mail.config.limits.burst, 3);
  EXPECT_EQ(mail.workers, 32u);
  EXPECT_EQ(mail.jobs.arrivals_per_second, 1.5);
  EXPECT_EQ(mail.mean_duration, 250ms);
  EXPECT_EQ(mail.failures, 0.5);
  EXPECT_EQ(queue("new").workers, 1u);
  EXPECT_EQ(queue("hourly").workers, 0u);
  ASSERT_EQ(asked_.schedules.size(), 2u);
  EXPECT_EQ(asked_.schedules[0].name, "b");
  EXPECT_EQ(asked_.schedules[0].job.queue, "hourly");
  EXPECT_EQ(asked_.schedules[1].name, "c");
  // Nothing of it has happened.
  EXPECT_EQ(get("/v1/queues/mail").at("/config/rate").to_number<double>(), 2);
  EXPECT_EQ(get("/v1/schedules/c").problem(), "not_found");
}

TEST_F(ApiSimulate, AsksOfWhatIsLeftOfASchedule) {
  open_with();
  run([&]() -> Coro<void> {
    engine_->scheduler().start();
    co_return;
  });
  post("/v1/schedules", R"({"name":"thrice","trigger":"@every 1m","max_runs":3,"job":{"queue":"mail"}})");
  post("/v1/schedules", R"({"name":"once","trigger":"@every 1m","max_runs":1,"job":{"queue":"mail"}})");
  post("/v1/schedules", R"({"name":"paused","trigger":"@every 1m","job":{"queue":"mail"}})");
  post("/v1/schedules/paused/pause", R"({"by":"ann"})");
  pass(61s);
  post("/v1/simulate");
  ASSERT_EQ(asked_.schedules.size(), 2u);
  EXPECT_EQ(asked_.schedules[0].name, "thrice");
  EXPECT_LT(asked_.schedules[0].max_runs, 3u);
  EXPECT_TRUE(asked_.schedules[1].paused);
}

TEST_F(ApiSimulate, CountsFurtherJobsWhereVeryManyWait) {
  open_with();
  for (int batch = 0; batch < 10; ++batch) {
    std::string lines;
    for (int i = 0; i < 1'000; ++i) lines += "{\"queue\":\"mail\"}\n";
    ask(HttpMethod::post, "/v1/jobs", lines, {{"Content-Type", "application/x-ndjson"}});
  }
  post("/v1/simulate");
  EXPECT_LT(queue("mail").jobs.waiting.size(), 7'000u);
  EXPECT_EQ(queue("mail").jobs.waiting.size() + queue("mail").jobs.more_waiting, 10'000u);
}

TEST_F(ApiSimulate, SaysWhereAQuestionIsWrong) {
  open_with();
  const auto pointer = [&](std::string body) {
    const Answered answered = post("/v1/simulate", std::move(body));
    EXPECT_EQ(answered.problem(), "invalid_input") << answered.body;
    return answered.text("/errors/0/pointer");
  };
  EXPECT_EQ(pointer(R"({"for_ms":1})"), "/for_ms");
  EXPECT_EQ(pointer(R"({"for_ms":99999999999})"), "/for_ms");
  EXPECT_EQ(pointer(R"({"zone":"Middle/Earth"})"), "/zone");
  EXPECT_EQ(pointer(R"({"queues":[{"name":"mail","failures":1.5}]})"), "/queues/0/failures");
  EXPECT_EQ(pointer(R"({"queues":[{"name":"mail","arrivals_per_second":-1}]})"), "/queues/0/arrivals_per_second");
  EXPECT_EQ(pointer(R"({"queues":[{"name":"mail","config":{"rate":"fast"}}]})"), "/queues/0/config/rate");
  EXPECT_EQ(pointer(R"({"queues":[{"workers":1}]})"), "/queues/0");
  EXPECT_EQ(pointer(R"({"queues":{"mail":1}})"), "/queues");
  EXPECT_TRUE(pointer(R"({"schedules":[{"name":"x"}]})").starts_with("/schedules/0"));
  EXPECT_EQ(pointer(R"({"without_schedules":["x"]})"), "/without_schedules/0");
  EXPECT_EQ(post("/v1/simulate", R"({"speed":2})").problem(), "invalid_input");
}

TEST_F(ApiSimulate, SeesNoMoreThanItsToken) {
  open({.what_if = [this](const WhatIf& question) -> Result<std::string> {
         asked_ = question;
         return "{}";
       }},
       {}, {.tokens = {token_named("all", TokenScope::admin), token_named("ann", TokenScope::read, {"ann."})}});
  const Fields all{{"Authorization", "Bearer all"}}, ann{{"Authorization", "Bearer ann"}};
  ask(HttpMethod::put, "/v1/queues/ann.mail", "{}", all);
  ask(HttpMethod::put, "/v1/queues/bob.mail", "{}", all);
  ask(HttpMethod::put, "/v1/schedules/bob.s", R"({"name":"bob.s","trigger":"@every 1h"})", all);
  EXPECT_EQ(ask(HttpMethod::post, "/v1/simulate", "{}", ann).status, 200);
  ASSERT_EQ(asked_.queues.size(), 1u);
  EXPECT_EQ(asked_.queues[0].name, "ann.mail");
  EXPECT_TRUE(asked_.schedules.empty());
  EXPECT_EQ(ask(HttpMethod::post, "/v1/simulate", R"({"queues":[{"name":"bob.mail"}]})", ann).problem(), "forbidden");
  EXPECT_EQ(ask(HttpMethod::post, "/v1/simulate", R"({"queues":[{"name":"bob.mail"}]})", ann).text("/errors/0/pointer"),
            "/queues/0/name");
  EXPECT_EQ(ask(HttpMethod::post, "/v1/simulate", R"({"without_schedules":["bob.s"]})", ann).problem(), "forbidden");
  EXPECT_EQ(ask(HttpMethod::post, "/v1/simulate", R"({"without_schedules":["ann.none"]})", ann).problem(),
            "invalid_input");
  EXPECT_EQ(ask(HttpMethod::post, "/v1/simulate",
                R"({"schedules":[{"name":"ann.s","trigger":"@every 1h","job":{"queue":"bob.mail"}}]})", ann)
                .problem(),
            "forbidden");
}

TEST_F(ApiSimulate, AnswersOneAtATimeAndLetsGoOfWhatNobodyWaitsFor) {
  std::atomic<bool> is_asked = false, was_abandoned = false;
  open({.what_if = [&](const WhatIf& question) -> Result<std::string> {
    is_asked = true;
    is_asked.notify_all();
    while (!question.abandoned()) std::this_thread::yield();
    was_abandoned = true;
    return fail(Errc::cancelled, "abandoned");
  }});
  run([&]() -> Coro<void> {
    Task<Answered> first = loop_.create_task(asking(HttpMethod::post, "/v1/simulate"));
    while (!is_asked) co_await yield_now();
    EXPECT_EQ((co_await asking(HttpMethod::post, "/v1/simulate")).problem(), "too_many");
    first.cancel();
    try {
      co_await first;
      ADD_FAILURE() << "it was cancelled";
    } catch (const CancelledError&) {
    }
  });
  api_->stop();
  EXPECT_EQ(post("/v1/simulate").problem().empty(), false);
  router_ = {};
  api_.reset();
  EXPECT_TRUE(was_abandoned);
}

TEST_F(ApiSimulate, EachTokenHasOneAtATimeAndOthersWaitForTheirTurn) {
  std::atomic<int> asked = 0;
  std::atomic<bool> may_end = false;
  open({.what_if = [&](const WhatIf& question) -> Result<std::string> {
         ++asked;
         while (!may_end && !question.abandoned()) std::this_thread::yield();
         return "{}";
       }},
       {}, {.tokens = {token_named("ann", TokenScope::read), token_named("bob", TokenScope::read)}});
  run([&]() -> Coro<void> {
    const auto as = [&](std::string_view who) {
      return asking(HttpMethod::post, "/v1/simulate", {},
                    {{"Authorization", who == "ann" ? "Bearer ann" : "Bearer bob"}});
    };
    Task<Answered> anns = loop_.create_task(as("ann"));
    while (asked == 0) co_await yield_now();
    Task<Answered> bobs = loop_.create_task(as("bob"));
    for (int i = 0; i < 100; ++i) co_await yield_now();
    EXPECT_FALSE(bobs.done()) << "it waits";
    const Answered again = co_await as("ann");
    EXPECT_EQ(again.status, 429);
    EXPECT_EQ(again.header("Retry-After"), "1");
    may_end = true;
    EXPECT_EQ((co_await anns).status, 200);
    EXPECT_EQ((co_await bobs).status, 200);
    EXPECT_EQ((co_await as("ann")).status, 200);
  });
  EXPECT_EQ(asked, 3);
}

TEST_F(ApiSimulate, IsNotThereWhereNobodyAnswers) { EXPECT_EQ(post("/v1/simulate").problem(), "not_found"); }

}  // namespace
}  // namespace argiope
