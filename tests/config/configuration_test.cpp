// The configuration file: what is in it is what comes out, and whatever is wrong is named with its line.
#include "config/internal/configuration.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <utility>

#include "argiope/time/time_zone.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

Configuration read(std::string_view text) {
  auto configuration = parse_configuration(text, "a.toml");
  EXPECT_TRUE(configuration) << configuration.error().message;
  return configuration.value_or(Configuration{});
}

std::string error_of(std::string_view text) {
  const auto configuration = parse_configuration(text, "a.toml");
  return configuration ? "no error" : configuration.error().message;
}

TEST(Configuration, ReadsWhoIsToldOfTrouble) {
  const Configuration told = read(R"(
[[notify]]
name = "ops"
push = { url = "https://ops.example/", secret = "words" }
depth = 1000
only = ["mail"]
interval = "1h"

[[notify]]
name = "mail"
format = "mail"
to = "ann@example.org"
on = ["failed"]
)");
  ASSERT_EQ(told.notify.size(), 2u);
  EXPECT_EQ(told.notify[0].queue(), "argiope.notify.ops");
  EXPECT_EQ(told.notify[0].push.value().secret, "words");
  EXPECT_TRUE(told.notify[0].wants(Trouble::depth, "mail.1"));
  EXPECT_FALSE(told.notify[0].wants(Trouble::buried, "film"));
  EXPECT_FALSE(told.notify[0].wants(Trouble::age, "mail"));
  EXPECT_EQ(told.notify[0].interval, 1h);
  EXPECT_TRUE(told.notify[1].command);
  EXPECT_FALSE(told.notify[1].wants(Trouble::buried, "mail"));
}

TEST(Configuration, SaysWhatIsWrongWithWhoIsToldOfTrouble) {
  EXPECT_EQ(
      error_of("[[notify]]\nname = \"ops\"\npush = \"https://x.example\"\non = [\n  \"weather\"]"),
      R"(a.toml:5: notify "ops": on[0] "weather": buried, expired, missed, failed, depth, age, daemon, alarm, paused, findings)");
  EXPECT_EQ(error_of("[[notify]]\nname = \"ops\""), R"(a.toml:1: notify "ops": it needs a `push` or a `command`)");
  EXPECT_EQ(error_of("[[notify]]\nname = \"a\"\ncommand = [\"true\"]\n[[notify]]\nname = \"a\"\ncommand = [\"true\"]"),
            R"(a.toml:5: notify "a": there is one of that name in line 2)");
}

TEST(Configuration, KnowsTheLinesThatNameQueuesAndSchedules) {
  const Configuration named = read(R"(
[[queue]]
rate = 2
name = "mail"

[[schedule]]
name = "ping"
trigger = "@every 1h"
)");
  ASSERT_EQ(named.queues.size(), 1u);
  EXPECT_EQ(named.queues[0].line, "a.toml:4");
  EXPECT_EQ(named.schedule_lines, std::vector<std::string>{"a.toml:7"});
}

TEST(Configuration, ReadsQueuesWithTheMembersOfTheirPolicy) {
  const Configuration read_one = read(R"(
[[queue]]
name = "mail"
workers = 3
rate = 2.5
burst = 4
concurrency = "unlimited"
paused = true
retry_table_ms = [1_000, 60_000]
lease_time_ms = 5000
at_capacity = "wait"
capacity = 10

[[queue]]
name = "nobody's"
workers = 0
)");
  ASSERT_EQ(read_one.queues.size(), 2u);
  const ConfiguredQueue& mail = read_one.queues[0];
  EXPECT_EQ(mail.name, "mail");
  EXPECT_EQ(mail.workers, 3u);
  EXPECT_EQ(mail.config.limits.rate, 2.5);
  EXPECT_EQ(mail.config.limits.burst, 4);
  EXPECT_EQ(mail.config.limits.concurrency, kUnlimited);
  EXPECT_TRUE(mail.config.limits.paused);
  EXPECT_EQ(mail.config.retry.table, (std::vector<Duration>{1s, 60s}));
  EXPECT_EQ(mail.config.lease_time, 5s);
  EXPECT_EQ(mail.config.at_capacity, CapacityPolicy::wait);
  EXPECT_EQ(mail.config.capacity, 10u);
  EXPECT_EQ(read_one.queues[1].workers, 0u);
}

TEST(Configuration, ReadsSchedulesAsTheirJsonForm) {
  const Configuration read_one = read(R"(
[[schedule]]
name = "backup"
misfire_grace = "1h"
coalesce = "all"
most_catch_up = 7
max_instances = 2
overlap = "queue_one"
max_runs = 9
paused = true
[schedule.trigger]
type = "cron"
expression = "0 3 * * *"
zone = "Europe/Berlin"
start = 2026-03-01T00:00:00+01:00
[schedule.job]
queue = "night"
function = "backup"
priority = -5
payload = { disks = ["a", "b"] }

[[schedule]]
name = "tick"
trigger = "@every 90s"
)");
  ASSERT_EQ(read_one.schedules.size(), 2u);
  const Schedule& backup = read_one.schedules[0];
  auto form =
      parse_schedule(R"({"name":"backup","misfire_grace":"1h","coalesce":"all","most_catch_up":7,"max_instances":2,
    "overlap":"queue_one","max_runs":9,"paused":true,
    "trigger":{"type":"cron","expression":"0 3 * * *","zone":"Europe/Berlin","start":"2026-03-01T00:00:00+01:00"},
    "job":{"queue":"night","function":"backup","priority":-5,"payload":{"disks":["a","b"]}}})");
  ASSERT_TRUE(form) << form.error().message;
  EXPECT_EQ(backup, *form);
  EXPECT_EQ(backup.job.payload, R"({"disks":["a","b"]})");
  EXPECT_EQ(read_one.schedules[1].trigger, Trigger::parse("@every 90s").value());
  EXPECT_FALSE(read_one.simulates);
}

TEST(Configuration, ReadsWhatTheDaemonIsToDo) {
  const auto read = parse_configuration(R"(
[serve]
listen = ["127.0.0.1:80", "unix:/run/a"]
store = "memory:"
drain_limit = 3
[serve.new_queue]
rate = 5.0
[[queue]]
name = "mail"
command = ["./send", "--fast"]
[[queue]]
name = "nightly"
command = { args = ["./run"], timeout = "1m" }
[[queue]]
name = "hooks"
push = "https://shop.example/hook"
[[queue]]
name = "signed"
push = { url = "https://shop.example/hook", secret = "s" }
)",
                                        "a.toml");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->serve.http.size(), 2u);
  EXPECT_EQ(read->serve.store, "memory:");
  EXPECT_EQ(read->serve.drain_limit, 3s);
  EXPECT_EQ(read->serve.new_queue.limits.rate, 5.0);
  ASSERT_EQ(read->queues.size(), 4u);
  EXPECT_EQ(read->queues[0].command->args, (std::vector<std::string>{"./send", "--fast"}));
  EXPECT_FALSE(read->queues[0].command->input) << "the payload is the input";
  EXPECT_FALSE(read->queues[0].command->is_from_job) << "a program that is not there is no job's fault";
  EXPECT_EQ(read->queues[1].command->timeout, 1min);
  EXPECT_EQ(read->queues[2].push->call.request.url.href(), "https://shop.example/hook");
  EXPECT_EQ(read->queues[3].push->secret, "s");
}

TEST(Configuration, ReadsDatesOfTomlAsDates) {
  const Configuration read_one = read(R"(
[[schedule]]
name = "once"
trigger = { type = "date", time = 2026-03-29T12:00:00Z }
[[schedule]]
name = "monthly"
trigger = { type = "calendar", months = 1, start_date = 2026-01-31 }
)");
  ASSERT_EQ(read_one.schedules.size(), 2u);
  EXPECT_EQ(read_one.schedules[0].trigger.next(WallTime{}), parse_timestamp("2026-03-29T12:00:00Z").value());
  EXPECT_EQ(read_one.schedules[1].trigger.next(WallTime{}), parse_timestamp("2026-01-31").value());
}

TEST(Configuration, ReadsHowLongSimulatedJobsTake) {
  const Configuration read_one = read(R"(
[[schedule]]
name = "a"
trigger = "* * * * *"
job = { queue = "q", function = "f" }
[simulate]
seed = 12
duration = "5s"
[[simulate.job]]
schedule = "a"
duration = { distribution = "uniform", from = "1s", to = "2s" }
failures = 0.25
[[simulate.job]]
queue = "q"
duration = { distribution = "normal", mean = "1m", deviation = "10s" }
failures = [1, 3]
[[simulate.job]]
function = "f"
duration = { distribution = "exponential", mean = "1h" }
[[simulate.job]]
duration = ["0s", "1500ms"]
)");
  EXPECT_TRUE(read_one.simulates);
  const SimulationConfig& simulation = read_one.simulation;
  EXPECT_EQ(simulation.seed, 12u);
  EXPECT_EQ(simulation.others.duration.values, std::vector<Duration>{5s});
  ASSERT_EQ(simulation.jobs.size(), 4u);
  using enum SimulatedDuration::Kind;
  EXPECT_EQ(simulation.jobs[0].schedule, "a");
  EXPECT_EQ(simulation.jobs[0].duration.kind, uniform);
  EXPECT_EQ(simulation.jobs[0].duration.high, 2s);
  EXPECT_EQ(simulation.jobs[0].failures, 0.25);
  EXPECT_EQ(simulation.jobs[1].queue, "q");
  EXPECT_EQ(simulation.jobs[1].duration.kind, normal);
  EXPECT_EQ(simulation.jobs[1].duration.high, 10s);
  EXPECT_EQ(simulation.jobs[1].failing, (std::vector<std::uint64_t>{1, 3}));
  EXPECT_EQ(simulation.jobs[2].duration.kind, exponential);
  EXPECT_EQ(simulation.jobs[3].duration.values, (std::vector<Duration>{0s, 1500ms}));
}

TEST(SimulatedDuration, DrawsWhatItsDistributionSays) {
  using enum SimulatedDuration::Kind;
  constexpr int kDraws = 20'000;
  const auto mean_and_deviation = [&](const SimulatedDuration& duration) {
    Random random(5);
    double sum = 0, squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double seconds = to_seconds(duration.draw(static_cast<std::uint64_t>(i), random));
      EXPECT_GE(seconds, 0);
      sum += seconds;
      squares += seconds * seconds;
    }
    const double mean = sum / kDraws;
    return std::pair(mean, std::sqrt(squares / kDraws - mean * mean));
  };
  const auto [uniform_mean, uniform_deviation] = mean_and_deviation({.kind = uniform, .low = 1s, .high = 3s});
  EXPECT_NEAR(uniform_mean, 2, 0.02);
  EXPECT_NEAR(uniform_deviation, 2 / std::sqrt(12.0), 0.02);
  const auto [normal_mean, normal_deviation] = mean_and_deviation({.kind = normal, .low = 60s, .high = 5s});
  EXPECT_NEAR(normal_mean, 60, 0.2);
  EXPECT_NEAR(normal_deviation, 5, 0.1);
  const auto [exponential_mean, exponential_deviation] = mean_and_deviation({.kind = exponential, .low = 10s});
  EXPECT_NEAR(exponential_mean, 10, 0.3);
  EXPECT_NEAR(exponential_deviation, 10, 0.4);
  Random random(1);
  const SimulatedDuration in_turn{.kind = listed, .values = {1s, 2s, 3s}};
  EXPECT_EQ(in_turn.draw(0, random), 1s);
  EXPECT_EQ(in_turn.draw(4, random), 2s);
}

TEST(Configuration, NamesFileLineAndMemberOfWhatIsWrong) {
  const std::pair<const char*, const char*> kCases[] = {
      {"a = 1\n", R"(a.toml:1: member "a": a configuration has none)"},
      {"\n[[queue]]\nrate = 1\n", "a.toml:2: a queue needs a name"},
      {"[[queue]]\nname = \"\"\n", R"(a.toml:2: name "": a string of 1 to 512 bytes)"},
      {"[[queue]]\nname = 'm'\n\nrat = 1\n", R"(a.toml:4: queue "m": there is no member "rat")"},
      {"[[queue]]\nname = 'm'\nrate = 'fast'\n",
       R"(a.toml:3: queue "m": rate "fast": a number from 0 to 1000000000 or "unlimited")"},
      {"[[queue]]\nname = 'm'\nretry_table = [\n  '1s',\n  'soon']\n",
       R"(a.toml:5: queue "m": retry_table[1]: duration "soon": )"},
      {"[[queue]]\nname = 'm'\nrate = inf\n", "a.toml:3: queue \"m\": rate inf: a finite number"},
      {"[[queue]]\nname = 'm'\nworkers = -1\n", R"(a.toml:3: queue "m": workers -1: a whole number, 0 to 100000)"},
      {"[[queue]]\nname = 'm'\n[[queue]]\nname = 'm'\n", R"(a.toml:4: queue "m": there is one of that name in line 2)"},
      {"queue = 1\n", "a.toml:1: queue: tables, each under [[queue]]"},
      {"[[queue]]\nname = 'm'\npaused_until = 2026-03-29T:00Z\n",
       "a.toml:3: Error while parsing time: expected 2-digit hour"},
      {"[queue]\nname = 'm'\n", "a.toml:1: queue: tables, each under [[queue]]"},
      {"[[schedule]]\nname = 's'\n", R"(a.toml:1: schedule "s": a schedule needs a trigger)"},
      {"[[schedule]]\nname = 's'\ntrigger = '61 * * * *'\n",
       R"(a.toml:3: schedule "s": trigger: minute "61": 0 to 59)"},
      {"[[schedule]]\nname = 's'\n[schedule.trigger]\ntype = 'cron'\nexpression = '* * * * *'\nzone = 'Mars/Olympus'\n",
       R"(a.toml:6: schedule "s": trigger.zone: time zone "Mars/Olympus": )"},
      {"[[schedule]]\nname = 's'\n[schedule.trigger]\ntype = 'or'\ntriggers = [\n  { type = 'cron', expression = '* * "
       "* * *' },\n"
       "  { type = 'cron', expression = '* 25 * * *' }]\n",
       R"(a.toml:7: schedule "s": trigger.triggers[1].expression: hour "25": 0 to 23)"},
      // Values that look alike: the member counts, and not the text.
      {"[[schedule]]\nname = 's'\n[schedule.trigger]\ntype = 'or'\ntriggers = [\n"
       "  { type = 'cron', expression = '24 3 * * *' },\n  { type = 'cron', expression = '0 24 * * *' }]\n",
       R"(a.toml:7: schedule "s": trigger.triggers[1].expression: hour "24": 0 to 23)"},
      {"[[schedule]]\nname = 'minute 61'\njob = { payload = '61' }\ntrigger = '61 * * * *'\n",
       R"(a.toml:4: schedule "minute 61": trigger: minute "61": 0 to 59)"},
      {"[[schedule]]\nname = 's'\nmisfire_grace = '1h'\n\n[schedule.trigger]\ntype = 'interval'\nevery = '1h'\n"
       "start = '2026-03-01'\nend = '2026-02-01'\n",
       R"(a.toml:9: schedule "s": trigger.end "2026-02-01": not before the start)"},
      {"[[schedule]]\nname = 's'\ntrigger = '* * * * *'\n[schedule.job]\nqueue = ''\nkey = ''\n",
       R"(a.toml:5: schedule "s": job.queue "": 1 to 512 bytes)"},
      {"[[schedule]]\nname = 's'\n[schedule.trigger]\ntype = 'and'\ntriggers = [\n"
       "  { type = 'cron', expression = '0 8 * * *' }, { type = 'cron', expression = '0 9 * * *' }]\n",
       R"(a.toml:3: schedule "s": trigger: no time was found until 20)"},
      {"[[schedule]]\nname = 's'\ntrigger = 5\n", R"(a.toml:3: schedule "s": trigger 5: a table or a string)"},
      {"[[schedule]]\nname = 's'\ntrigger = '* * * * *'\n\nmax_instances = 0\n",
       R"(a.toml:5: schedule "s": max_instances "0": a whole number, 1 to 1000000)"},
      {"[[schedule]]\nname = 's'\ntrigger = '* * * * *'\njob = { colour = 'red' }\n",
       R"(a.toml:4: schedule "s": job: member "colour": a job has none)"},
      {"[[schedule]]\nname = 's'\ntrigger = '* * * * *'\noverlap = 'maybe'\n",
       R"(a.toml:4: schedule "s": overlap "maybe": skip, queue_one, queue_all, cancel_running)"},
      {"[[schedule]]\nname = 's'\ntrigger = '* * * * *'\n[[schedule]]\nname = 's'\ntrigger = '* * * * *'\n",
       R"(a.toml:5: schedule "s": there is one of that name in line 2)"},
      {"simulate = 1\n", "a.toml:1: simulate: a table, [simulate]"},
      {"[simulate]\nseeds = 1\n", R"(a.toml:2: simulate: member "seeds": [simulate] has none)"},
      {"[simulate]\nseed = 1.5\n", "a.toml:2: simulate: seed 1.5: a whole number"},
      {"[simulate]\nduration = true\n",
       R"(a.toml:2: simulate: duration true: a string such as "90s" or "1h30m", or a number of seconds)"},
      {"[simulate]\nduration = '5 parsecs'\n", "a.toml:2: simulate: duration: duration \"5 parsecs\""},
      {"[simulate]\nduration = []\n", "a.toml:2: simulate: duration []: 1 to 100000 of them"},
      {"[simulate]\nduration = { mean = '5s' }\n",
       R"(a.toml:2: simulate: distribution {"mean":"5s"}: constant, uniform, normal or exponential)"},
      {"[simulate]\nduration = { distribution = 'normal', mean = '5s' }\n",
       R"(a.toml:2: simulate: duration: a normal distribution needs "deviation")"},
      {"[simulate]\nduration = { distribution = 'uniform', from = '5s', to = '1s' }\n",
       R"(a.toml:2: simulate: duration: "from" must not be more than "to")"},
      {"[simulate]\nfailures = 2\n", "a.toml:2: simulate: failures 2: a number from 0 to 1, or a list of attempts"},
      {"[simulate]\nfailures = [3, 2]\n", "a.toml:2: simulate: failures 2: numbers of attempts"},
      {"[[simulate.job]]\nschedule = 'x'\n", R"(a.toml:2: simulate.job: schedule "x": no schedule here has that name)"},
      {"[[simulate.job]]\nqueue = 'x'\n", R"(a.toml:2: simulate.job: queue "x": no schedule here has that queue)"},
      {"x = 1\nx = 2\n", "a.toml:2: "},
      {"name = \"unfinished\n", "a.toml:1: "},
  };
  for (const auto& [text, expected] : kCases) {
    const std::string error = error_of(text);
    EXPECT_TRUE(error.starts_with(expected)) << text << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

TEST(Configuration, NamesTheLineOfWhatIsWrongWithTheDaemon) {
  const auto error = [](std::string_view text) {
    const auto read = parse_configuration(text, "a.toml");
    return read ? "none" : read.error().message;
  };
  EXPECT_EQ(error("[serve]\nstore = \"memory:\"\nlisten = [\"a:1\",\n \"b:x\"]"),
            "a.toml:4: serve: listen[1]: address \"b:x\": port \"x\": a whole number, 0 to 65535");
  EXPECT_EQ(error("[serve]\nlisen = 1"), "a.toml:2: serve: member \"lisen\": [serve] has none");
  EXPECT_EQ(error("serve = 1"), "a.toml:1: serve: a table, [serve]");
  EXPECT_EQ(
      error("[serve]\nstore = \"mysql:x\""),
      R"(a.toml:2: serve: store "mysql:x": "sqlite:FILE", "postgresql://USER@HOST/DATABASE", "redis://HOST/DB" or )"
      R"("memory:" (nothing is kept))");
  EXPECT_EQ(error("[serve]\nlisten = [\n\"a:1\",\n\"a:1\"]"),
            "a.toml:4: serve: listen[1] \"a:1\": \"a:1\" is listened at already");
  EXPECT_EQ(error("[serve]\norigins = [\n\"https://a\",\n\"*\"]").substr(0, 31), "a.toml:4: serve: origins[1] \"*\"");
  EXPECT_EQ(error("[[queue]]\nname = \"q\"\ncommand = []"),
            "a.toml:3: queue \"q\": command: args: a list of a program and its arguments");
  EXPECT_EQ(error("[[queue]]\nname = \"q\"\npush = \"ftp://a\""),
            "a.toml:3: queue \"q\": push: url \"ftp://a\": http:// or https://");
  EXPECT_EQ(error("[[queue]]\nname = \"q\"\ncommand = [\"a\"]\npush = \"http://a\""),
            "a.toml:4: queue \"q\": push: it has a command already");
}

TEST(Configuration, LetsNobodyButTheDaemonFillAndWorkOffItsOwnQueues) {
  EXPECT_EQ(
      error_of("[[schedule]]\nname = 's'\ntrigger = '@every 1s'\n[schedule.job]\nqueue = 'argiope.notify.ops'\n"),
      "a.toml:5: schedule \"s\": job.queue \"argiope.notify.ops\": the daemon alone puts jobs into its own queues");
  EXPECT_EQ(error_of("[[queue]]\nname = 'argiope.notify.ops'\ncommand = ['cat']\n"),
            "a.toml:3: queue \"argiope.notify.ops\": command: the daemon alone works off its own queues");
  EXPECT_EQ(error_of("[[queue]]\nname = 'argiope.x'\npush = 'https://a.example/'\n"),
            "a.toml:3: queue \"argiope.x\": push: the daemon alone works off its own queues");
  EXPECT_EQ(error_of("[[queue]]\nname = 'argiope.x'\nworkers = 2\n"),
            "a.toml:3: queue \"argiope.x\": workers: the daemon alone works off its own queues");
  EXPECT_EQ(read("[[queue]]\nname = 'argiope.notify.ops'\nmax_attempts = 3\n").queues.size(), 1u)
      << "its policy is the operator's";
}

TEST(Configuration, NamesFilesOfProjects) {
  const Configuration told =
      read("[serve]\npages = \"shops.db\"\n[[project]]\nfile = \"shop.toml\"\n[[project]]\nfile = \"news.toml\"\n");
  EXPECT_EQ(told.serve.pages, "shops.db");
  ASSERT_EQ(told.projects.size(), 2u);
  EXPECT_EQ(told.projects[1].file, "news.toml");
  EXPECT_EQ(error_of("[[project]]\n"), "a.toml:1: project: a project needs a file");
  EXPECT_EQ(error_of("[[project]]\nfile = 7\n"), "a.toml:2: project: file 7: the name of a project's file");
  EXPECT_EQ(error_of("[[project]]\nfiles = \"a\"\n"), "a.toml:2: project: member \"files\": [[project]] has none");
  EXPECT_EQ(error_of("[[project]]\nfile = \"a\"\n[[project]]\nfile = \"a\"\n"),
            "a.toml:4: project: file \"a\": it is there already");
  EXPECT_EQ(error_of("[project]\nname = \"shop\"\n"), "a.toml:1: project: tables, each under [[project]]");
  const Configuration visits =
      read("[projects]\nrate = 2\nheader = [\"X: 1\"]\n[[projects.host]]\nmatch = \"a.test\"\nper_host = 3\n");
  ASSERT_EQ(visits.visits.options.size(), 2u);
  const auto rate = std::ranges::find(visits.visits.options, "rate", &CrawlFileOption::name);
  ASSERT_NE(rate, visits.visits.options.end());
  EXPECT_EQ(rate->values, std::vector<std::string>{"2"});
  EXPECT_EQ(rate->line, 2u);
  ASSERT_EQ(visits.visits.hosts.size(), 1u);
  EXPECT_EQ(visits.visits.hosts[0].per_host, 3u);
  EXPECT_NE(visits.visits.text, read("[projects]\nrate = 3\n").visits.text);
  EXPECT_EQ(error_of("[projects]\nrate = {}\n").substr(0, 24), "a.toml:2: projects: rate");
  EXPECT_EQ(error_of("[projects]\n[[projects.host]]\nrate = 1\n").substr(0, 27), "a.toml:2: projects: host[0]");
}

TEST(Configuration, SaysWhichProgramsAreNotThere) {
  const auto trouble = [](std::string_view text) {
    const auto good = check_targets(read(text));
    return good ? std::string() : good.error().message;
  };
  EXPECT_EQ(trouble("[[queue]]\nname = 'a'\ncommand = ['/bin/sh']\n"), "");
  EXPECT_EQ(trouble("[[queue]]\nname = 'mail'\ncommand = ['./not-there']\n").substr(0, 52),
            R"(a.toml:3: queue "mail": command "./not-there": No su)");
  EXPECT_EQ(trouble("[[notify]]\nname = 'ops'\ncommand = ['./not-there']\n").substr(0, 52),
            R"(a.toml:3: notify "ops": command "./not-there": No su)");
  EXPECT_EQ(trouble("[[queue]]\nname = 'mail'\nworkers = 0\ncommand = ['./not-there']\n"), "") << "nothing starts it";
}

TEST(Configuration, SaysWhichCallsOfSchedulesCannotBeRun) {
  const auto trouble = [](std::string_view job, std::string_view executor = "default") {
    const std::string text = fmt::format("[[schedule]]\nname = 'a'\ntrigger = '@every 1h'\njob = {}\n", job);
    const auto good = check_calls(read(text), [&](std::string_view queue) { return queue == executor; });
    return good ? std::string() : good.error().message;
  };
  constexpr std::string_view kRelative = "{ function = 'command', payload = { args = ['true'], directory = 'here' } }";
  EXPECT_EQ(trouble(kRelative), R"(a.toml:4: schedule "a": job.payload: directory "here": an absolute path)");
  EXPECT_EQ(trouble(kRelative, "other"), "") << "workers may call anything a command";
  EXPECT_EQ(trouble("{ function = 'command', payload = { args = ['true'], directory = '/' } }"), "");
  EXPECT_EQ(trouble("{ function = 'http', payload = { url = 'https://shop.example/' } }"), "");
  EXPECT_NE(trouble("{ function = 'http', payload = { url = 'shop' } }"), "");
  EXPECT_NE(trouble("{ queue = 'b', function = 'http', payload = '' }", "b"), "");
  EXPECT_EQ(trouble("{ function = 'mine', payload = '' }"), "");
}

TEST(Configuration, SaysWhichSchedulesCallWhatNobodyRuns) {
  const auto found = [](std::string_view queues, std::string_view function = "command") {
    const std::string text = fmt::format(
        "[[schedule]]\nname = 'a'\ntrigger = '@every 1h'\njob = {{ queue = 'night', function = '{}', "
        "payload = {{ args = ['true'] }} }}\n{}",
        function, queues);
    return calls_without_workers(read(text), [](std::string_view queue) { return queue == "default"; });
  };
  ASSERT_EQ(found("").size(), 1u);
  EXPECT_EQ(
      found("").front(),
      R"(a.toml:4: schedule "a": the daemon does not run its command, for the queue "night" has no workers: [[queue]] name = "night", )"
      "workers = 1 has it run; workers = 0 says that others do");
  EXPECT_EQ(found("[[queue]]\nname = 'night'\n").size(), 1u) << "it waits for workers elsewhere, and does not say so";
  EXPECT_EQ(found("", "http").size(), 1u);
  EXPECT_TRUE(found("[[queue]]\nname = 'night'\nworkers = 0\n").empty());
  EXPECT_TRUE(found("[[queue]]\nname = 'night'\npush = 'https://shop.example/'\n").empty());
  EXPECT_TRUE(found("", "mine").empty()) << "workers know it";
  EXPECT_TRUE(
      calls_without_workers(read("[[schedule]]\nname = 'a'\ntrigger = '@every 1h'\njob = { function = 'command' }\n"),
                            [](std::string_view queue) { return queue == "default"; })
          .empty());
}

TEST(Configuration, SaysWhichPushesNeedPrivateAddresses) {
  const auto found =
      private_pushes(read("[[queue]]\nname = 'a'\npush = 'http://10.0.0.1/x'\n[[queue]]\nname = 'b'\n"
                          "push = { url = 'http://10.0.0.1/', allow_private = true }\n[[queue]]\nname = 'c'\n"
                          "push = 'https://shop.example/'\n[[notify]]\nname = 'n'\npush = 'http://localhost/'\n"
                          "[[notify]]\nname = 'm'\nallow_private = true\npush = 'http://localhost/'\n"));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].substr(0, 36), R"(a.toml:3: queue "a": push: 10.0.0.1 )");
  EXPECT_EQ(found[1].substr(0, 38), R"(a.toml:12: notify "n": push: localhost)");
  EXPECT_TRUE(private_pushes(read("[serve]\nallow_private = true\n[[queue]]\nname = 'a'\npush = 'http://10.0.0.1/'\n"))
                  .empty());
}

TEST(Configuration, SaysWhichSchedulesNeedPrivateAddresses) {
  const std::string text =
      "[[schedule]]\nname = 'a'\ntrigger = '@every 1h'\njob = { function = 'http', payload = { url = "
      "'http://10.0.0.1/x' } }\n"
      "[[schedule]]\nname = 'b'\ntrigger = '@every 1h'\njob = { function = 'http', payload = { url = "
      "'https://shop.example/' } }\n"
      "[[schedule]]\nname = 'c'\ntrigger = '@every 1h'\njob = { queue = 'mail', payload = 'http://10.0.0.1/' }\n";
  const auto found = private_calls(read(text));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].substr(0, 33), R"(a.toml:4: schedule "a": 10.0.0.1 )");
  EXPECT_TRUE(private_calls(read("[serve]\nallow_private = true\n" + text)).empty());
}

TEST(Configuration, ReadsFilesAndSaysWhichCannotBeRead) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.toml");
  EXPECT_EQ(read_configuration(path).error().code, Errc::not_found);
  std::ofstream(path) << "[[queue]]\nname = 'mail'\n";
  const auto configuration = read_configuration(path);
  ASSERT_TRUE(configuration);
  EXPECT_EQ(configuration->queues.front().name, "mail");
  std::ofstream(path) << "[[queue]]\nname = 7\n";
  EXPECT_EQ(read_configuration(path).error().message, path + ":2: name 7: a string of 1 to 512 bytes");
  EXPECT_EQ(parse_configuration(std::string(kMostConfigurationBytes + 1, ' '), "a").error().code, Errc::too_large);
  EXPECT_EQ(read_configuration("/dev/null", FileReading::again).error().message,
            "/dev/null: is not a plain file: it cannot be read again");
  EXPECT_TRUE(read_configuration("/dev/null"));
}

}  // namespace
}  // namespace argiope
