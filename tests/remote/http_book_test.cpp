// A book on a daemon does what the daemon's own book does, in its words, whatever happens to the connection.
#include "remote/internal/http_book.hpp"

#include "engine/internal/book_telling.hpp"
#include "serve/api_fixture.hpp"
#include "support/router_transport.hpp"

namespace argiope {
namespace {

using Loss = RouterTransport::Loss;
using testing::ElementsAre;
using testing::HasSubstr;

class HttpBookTest : public ApiTest {
 protected:
  // The daemon, and a book on it.
  void connect(EngineOptions options = {}, ApiOptions api = {}) {
    open(std::move(api), std::move(options));
    client_ =
        std::make_unique<ApiClient>(transport_, *ApiClient::parse_base("http://localhost:7733"), ApiClientOptions{});
    run([this]() -> Coro<void> {
      book_.emplace(Book::of_remote(std::make_shared<HttpBook>(*client_)));
      EXPECT_TRUE(co_await book_->queues());
    });
    transport_.sent = 0;
    transport_.paths.clear();
  }
  Book& book() {
    if (!book_) connect();
    return *book_;
  }
  Book& own() {
    book();
    return engine_->book();
  }
  template <class T>
  Result<T> ask(Coro<Result<T>> call) {
    return loop_.run_until_complete(std::move(call));
  }
  template <class T>
  T get(Coro<Result<T>> call) {
    return value_or_throw(ask(std::move(call)));
  }
  void get(Coro<Result<void>> call) { value_or_throw(ask(std::move(call))); }
  // That both books refuse in the same way.
  template <class T>
  void expect_same_error(Coro<Result<T>> remote, Coro<Result<T>> local) {
    const auto theirs = ask(std::move(remote));
    const auto ours = ask(std::move(local));
    ASSERT_FALSE(theirs);
    ASSERT_FALSE(ours);
    EXPECT_EQ(theirs.error().code, ours.error().code);
    EXPECT_EQ(theirs.error().message, ours.error().message);
  }
  JobId put(std::string payload = "x", std::string name = {}) {
    return get(book().put({.name = std::move(name), .queue = "mail", .payload = std::move(payload)})).id;
  }
  std::uint64_t lease_one() {
    std::uint64_t token = 0;
    run([&]() -> Coro<void> {
      const auto leased = value_or_throw(co_await engine_->lease_now({.queues = {"mail"}, .worker = "w"}));
      if (!leased.empty()) token = leased.front().token;
    });
    return token;
  }
  std::size_t count() { return get(own().list({.limit = 100'000})).size(); }

  RouterTransport transport_{router_};
  std::unique_ptr<ApiClient> client_;
  std::optional<Book> book_;
};

// --- jobs come

TEST_F(HttpBookTest, PutsAJobWithAllThatItIs) {
  const JobId first = put("first");
  NewJob job{.queue = "mail", .key = "k", .unique = "u", .priority = 4};
  job.due_at = WallTime{4'000'000'000s};
  job.function = "f";
  job.payload = std::string("\xff\0", 2);
  job.max_attempts = 3;
  job.waits_for = {first};
  const PutReply reply = get(book().put(job));
  EXPECT_EQ(reply.outcome, PutOutcome::added);
  const JobRecord here = get(book().get(reply.id));
  EXPECT_EQ(here.payload, job.payload);
  EXPECT_EQ(here, get(own().get(reply.id)));
}

TEST_F(HttpBookTest, TellsWhatAPutHasComeTo) {
  EXPECT_EQ(get(book().put({.name = "a", .queue = "mail"})).outcome, PutOutcome::added);
  EXPECT_EQ(get(book().put({.name = "a", .queue = "mail"})).outcome, PutOutcome::kept);
  NewJob unique{.queue = "mail", .unique = "u"};
  unique.unique_policy = UniquePolicy::replace;
  EXPECT_EQ(get(book().put(unique)).outcome, PutOutcome::added);
  EXPECT_EQ(get(book().put(unique)).outcome, PutOutcome::changed);
}

TEST_F(HttpBookTest, PutsInSeveralRequestsWhatOneCannotHold) {
  book();
  std::vector<NewJob> jobs(10'001, NewJob{.queue = "mail", .payload = "x"});
  const auto replies = get(book().put_each(std::move(jobs)));
  EXPECT_EQ(replies.size(), 10'001u);
  EXPECT_EQ(transport_.sent, 2u);
  EXPECT_EQ(count(), 10'001u);
}

TEST_F(HttpBookTest, AJobThatIsRefusedKeepsNoOtherBack) {
  QueueConfig config;
  config.max_payload_bytes = 3;
  get(book().configure("mail", config));
  const auto replies = get(book().put_each({{.queue = "mail", .payload = "abc"},
                                            {.queue = "mail", .payload = "abcd"},
                                            {.id = 9, .name = "both", .queue = "mail"},
                                            {.queue = "mail", .payload = "ab"}}));
  ASSERT_EQ(replies.size(), 4u);
  EXPECT_TRUE(replies[0]);
  ASSERT_FALSE(replies[1]);
  EXPECT_EQ(replies[1].error().code, Errc::too_large);
  ASSERT_FALSE(replies[2]);
  EXPECT_EQ(replies[2].error().code, Errc::invalid_input);
  EXPECT_TRUE(replies[3]);
  expect_same_error(book().put({.queue = "mail", .payload = "abcd"}), own().put({.queue = "mail", .payload = "abcd"}));
}

TEST_F(HttpBookTest, SaysThatAQueueIsFullAsTheDaemonDoes) {
  QueueConfig config;
  config.capacity = 1;
  get(book().configure("mail", config));
  put();
  expect_same_error(book().put({.queue = "mail"}), own().put({.queue = "mail"}));
}

TEST_F(HttpBookTest, PutsAllOrNone) {
  QueueConfig config;
  config.max_payload_bytes = 3;
  get(book().configure("mail", config));
  EXPECT_EQ(get(book().put_all({{.queue = "mail"}, {.queue = "mail"}})).size(), 2u);
  EXPECT_FALSE(ask(book().put_all({{.queue = "mail"}, {.queue = "mail", .payload = "abcd"}})));
  EXPECT_EQ(count(), 2u);
}

TEST_F(HttpBookTest, PutsABatchWithItsCompletion) {
  const auto replies = get(book().put_batch({{.queue = "mail"}, {.queue = "mail"}}, {.queue = "report"}));
  ASSERT_EQ(replies.size(), 3u);
  const JobRecord completion = get(book().get(replies.back().id));
  EXPECT_EQ(completion.queue, "report");
  EXPECT_EQ(completion.pending, 2u);
}

// --- jobs are changed

TEST_F(HttpBookTest, ChangesJobsAndTellsWhatCameOfIt) {
  const JobId waits = put(), runs = put(), later = put();
  get(book().set_due(later, WallTime{4'000'000'000s}));
  EXPECT_EQ(get(book().get(later)).state, JobState::delayed);
  get(book().set_priority(runs, 9));
  EXPECT_NE(lease_one(), 0u);
  EXPECT_EQ(get(book().get(runs)).state, JobState::running);
  const auto replies = get(book().change({{.id = waits, .kind = ChangeKind::cancel},
                                          {.id = runs, .kind = ChangeKind::cancel},
                                          {.id = runs, .kind = ChangeKind::erase},
                                          {.id = 999, .kind = ChangeKind::erase},
                                          {.id = later, .kind = ChangeKind::kick}}));
  std::vector<ChangeOutcome> outcomes;
  for (const ChangeReply& reply : replies) outcomes.push_back(reply.outcome);
  using enum ChangeOutcome;
  EXPECT_THAT(outcomes, ElementsAre(changed, asked, running, not_found, changed));
  expect_same_error(book().kick(999), own().kick(999));
  expect_same_error(book().erase(runs), own().erase(runs));
}

TEST_F(HttpBookTest, SaysInWhichStateAJobCannotBeChanged) {
  const JobId id = put();
  expect_same_error(book().kick(id), own().kick(id));
}

// --- looks

TEST_F(HttpBookTest, FindsJobsByTheirNames) {
  const JobId id = put("x", "order/7 \xc3\xa4?");
  EXPECT_EQ(get(book().find("order/7 \xc3\xa4?")), id);
  EXPECT_EQ(get(book().find(std::to_string(id))), id);
  expect_same_error(book().find("nobody"), own().find("nobody"));
  for (const char* name : {".", "..", "change", "=", "=7"}) {
    EXPECT_EQ(ask(book().find(name)).error().code, Errc::not_found) << name;
    const JobId odd = put("x", name);
    EXPECT_EQ(get(book().find(name)), odd) << name;
  }
  EXPECT_EQ(ask(book().find("")).error().code, Errc::not_found);
  expect_same_error(book().get(999), own().get(999));
}

TEST_F(HttpBookTest, ListsAsManyJobsAsThereAre) {
  get(book().put_each(std::vector<NewJob>(2'500, NewJob{.queue = "mail", .payload = "x"})));
  put("other key");
  const auto all = get(book().list({.queue = "mail", .limit = 10'000}));
  EXPECT_EQ(all.size(), 2'501u);
  EXPECT_EQ(all.back().payload, "other key");
  EXPECT_EQ(get(book().list({.queue = "mail", .limit = 1'100})).size(), 1'100u);
  EXPECT_EQ(get(book().list({.queue = "mail", .after = all[2'000].id, .limit = 10'000})).size(), 500u);
  EXPECT_EQ(get(book().list({.state = JobState::buried})).size(), 0u);
  EXPECT_EQ(get(book().list({.key = "none"})).size(), 0u);
  EXPECT_EQ(get(book().list({.limit = 1, .payloads = false})).front().payload, "");
}

TEST_F(HttpBookTest, ExplainsInTheDaemonsWords) {
  get(book().configure("mail", {}));
  const JobId id = put();
  get(book().pause("mail"));
  const JobExplanation here = get(book().explain(id));
  EXPECT_EQ(here.reason, WaitReason::queue_paused);
  EXPECT_EQ(to_json(here), to_json(get(own().explain(id))));
  EXPECT_EQ(to_sentence(here), to_sentence(get(own().explain(id))));
}

TEST_F(HttpBookTest, TellsTheHistoryOfAJob) {
  const JobId id = put();
  const std::uint64_t token = lease_one();
  run([&]() -> Coro<void> {
    value_or_throw(co_await engine_->settle(token, {.outcome = Outcome::bury, .error = "broken"}));
  });
  const auto history = get(book().history(id));
  EXPECT_EQ(history, get(own().history(id)));
  ASSERT_EQ(history.size(), 1u);
  EXPECT_EQ(history.front().error, "broken");
  get(book().kick(id));
  EXPECT_EQ(get(book().get(id)).state, JobState::ready);
}

// --- queues

TEST_F(HttpBookTest, ConfiguresQueues) {
  QueueConfig config;
  config.limits.rate = 2.5;
  config.lease_time = 90s;
  config.keep_done = 24h;
  get(book().configure("mail", config));
  EXPECT_EQ(to_json(get(book().queue("mail")).config), to_json(get(own().queue("mail")).config));
  get(book().pause("mail"));
  EXPECT_TRUE(get(book().queue("mail")).config.limits.paused);
  get(book().resume("mail"));
  EXPECT_FALSE(get(book().queue("mail")).config.limits.paused);
  EXPECT_EQ(get(book().queues()).size(), 1u);
  expect_same_error(book().queue("none"), own().queue("none"));
  expect_same_error(book().pause("none"), own().pause("none"));
}

TEST_F(HttpBookTest, CountsJobs) {
  put();
  put();
  lease_one();
  const auto counts = get(book().counts());
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts.front().second.ready, 1u);
  EXPECT_EQ(counts.front().second.running, 1u);
  EXPECT_EQ(get(book().counts("mail")).size(), 1u);
  expect_same_error(book().counts("none"), own().counts("none"));
}

// --- schedules

Schedule nightly(std::string name = "backup") {
  return value_or_throw(
      parse_schedule(R"({"name":")" + name +
                     R"(","trigger":{"type":"cron","expression":"30 3 * * *","zone":"Europe/Berlin"},)"
                     R"("job":{"queue":"mail","payload":"x","priority":3}})"));
}

TEST_F(HttpBookTest, AddsSchedules) {
  ScheduleBook& schedules = book().schedules();
  EXPECT_EQ(get(schedules.add(nightly())).outcome, AddOutcome::added);
  expect_same_error(schedules.add(nightly()), own().schedules().add(nightly()));
  EXPECT_EQ(get(schedules.add(nightly(), ConflictPolicy::keep)).outcome, AddOutcome::kept);
  EXPECT_EQ(get(schedules.add(nightly(), ConflictPolicy::replace)).outcome, AddOutcome::replaced);
  const auto replies = get(schedules.add_all({nightly(), nightly("other")}));
  EXPECT_EQ(replies[0].outcome, AddOutcome::exists);
  EXPECT_NE(replies[0].id, 0u);
  EXPECT_EQ(replies[1].outcome, AddOutcome::added);
  EXPECT_EQ(get(schedules.list()).size(), 2u);
}

TEST_F(HttpBookTest, AddsManySchedulesInOneRequestOrNoneOfThem) {
  connect({}, {.schedule_is_locked = [](std::string_view name) { return name == "fixed"; }});
  get(own().schedules().add(nightly("a")));
  Schedule other = nightly("a");
  other.trigger = Trigger::parse("@every 2h").value();
  const auto refused =
      ask(book().schedules().add_all({other, nightly("b"), nightly("fixed")}, ConflictPolicy::replace));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::refused);
  EXPECT_THAT(refused.error().message, HasSubstr(R"(schedule "fixed")"));
  EXPECT_EQ(get(own().schedules().get("a")).schedule->trigger, nightly().trigger) << "what came before it is as it was";
  EXPECT_EQ(get(own().schedules().list()).size(), 1u);

  transport_.sent = 0;
  const auto replies = get(book().schedules().add_all({other, nightly("b")}, ConflictPolicy::replace));
  EXPECT_EQ(transport_.sent, 1u);
  EXPECT_EQ(replies[0].outcome, AddOutcome::replaced);
  EXPECT_EQ(replies[1].outcome, AddOutcome::added);
  EXPECT_EQ(get(own().schedules().get("a")).schedule->trigger, other.trigger);
  EXPECT_TRUE(get(book().schedules().add_all({})).empty());
  EXPECT_EQ(ask(book().schedules().add_all(std::vector<Schedule>(10'001, nightly()))).error().code, Errc::too_large);
}

TEST_F(HttpBookTest, TellsWhereASchedulesStands) {
  get(book().schedules().add(nightly()));
  const ScheduleStatus here = get(book().schedules().get("backup"));
  EXPECT_EQ(to_json(here), to_json(get(own().schedules().get("backup"))));
  EXPECT_NE(here.place.next, WallTime::max());
  expect_same_error(book().schedules().get("none"), own().schedules().get("none"));
  EXPECT_EQ(to_json(get(book().schedules().explain("backup"))), to_json(get(own().schedules().explain("backup"))));
}

TEST_F(HttpBookTest, ChangesWhatAnEditHasChangedAndNothingElse) {
  get(book().schedules().add(nightly()));
  const auto edit = [](Schedule& schedule) {
    schedule.job.priority = 0;
    schedule.job.payload = "y";
    schedule.max_instances = 4;
  };
  const ScheduleStatus status = get(book().schedules().modify("backup", edit));
  ASSERT_TRUE(status.schedule);
  EXPECT_EQ(status.schedule->job.priority, 0);
  EXPECT_EQ(status.schedule->job.payload, "y");
  EXPECT_EQ(status.schedule->max_instances, 4u);
  EXPECT_EQ(to_json(*status.schedule), to_json(*get(own().schedules().get("backup")).schedule));
  EXPECT_FALSE(ask(book().schedules().modify("backup", [](Schedule& schedule) { schedule.name = "other"; })));
}

TEST_F(HttpBookTest, PausesAndResumesSchedules) {
  get(book().schedules().add(nightly()));
  const ScheduleStatus paused = get(book().schedules().pause("backup", "ann"));
  EXPECT_TRUE(paused.place.paused);
  EXPECT_EQ(paused.paused_by, "ann");
  EXPECT_FALSE(get(book().schedules().resume("backup", ResumeFrom::now)).place.paused);
}

TEST_F(HttpBookTest, RunsASchedulesNowAndTellsWhatItHasLeft) {
  get(book().schedules().add(nightly()));
  EXPECT_FALSE(get(book().schedules().output("backup")));
  const auto job = ask(book().schedules().run_now("backup"));
  if (!job) GTEST_SKIP() << job.error().message;
  const std::uint64_t token = lease_one();
  run([&]() -> Coro<void> { value_or_throw(co_await engine_->settle(token, {.result = "left"})); });
  const auto runs = get(book().schedules().history("backup"));
  EXPECT_EQ(runs, get(own().schedules().history("backup")));
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs.front().job, *job);
  const auto output = get(book().schedules().output("backup"));
  ASSERT_TRUE(output);
  EXPECT_EQ(output->output, "left");
}

TEST_F(HttpBookTest, RemovesSchedules) {
  get(book().schedules().add_all({nightly("a"), nightly("b"), nightly("c")}));
  EXPECT_NE(get(book().schedules().remove("b")), 0u);
  expect_same_error(book().schedules().remove("b"), own().schedules().remove("b"));
  EXPECT_EQ(get(book().schedules().remove_all()), 2u);
  EXPECT_TRUE(get(book().schedules().list()).empty());
}

// --- connections are lost

// Whichever request is lost, and on whichever way.
class LostConnection : public HttpBookTest, public testing::WithParamInterface<Loss> {};

TEST_P(LostConnection, NeitherLosesNorRepeatsWhatItsPutsAndChangesDo) {
  book();
  for (std::size_t lost = 1; lost <= 4; ++lost) {
    const std::size_t before = count();
    transport_.sent = 0;
    transport_.loss = [&](std::size_t number, const HttpRequest&) { return number == lost ? GetParam() : Loss::none; };
    const JobId first = put();
    get(book().put_each({{.queue = "mail"}, {.queue = "mail"}}));
    get(book().put_all({{.queue = "mail"}, {.queue = "mail"}}));
    get(book().cancel(first));
    transport_.loss = {};
    EXPECT_EQ(count() - before, 4u + (get(own().queue("mail")).config.keep_cancelled > Duration{} ? 1u : 0u)) << lost;
  }
}

INSTANTIATE_TEST_SUITE_P(Each, LostConnection, testing::Values(Loss::refused, Loss::before_effect, Loss::after_effect));

TEST_F(HttpBookTest, NeverRunsAScheduleTwiceBecauseAnAnswerWasLost) {
  get(book().schedules().add(nightly()));
  transport_.loss = [](std::size_t, const HttpRequest& request) {
    return request.url.href().ends_with("/run") ? Loss::after_effect : Loss::none;
  };
  const auto told = ask(book().schedules().run_now("backup"));
  ASSERT_FALSE(told);
  EXPECT_LE(count(), 1u);
}

}  // namespace
}  // namespace argiope
