// Scripts in processes of their own: what they are sent and answer, and all that can go wrong with them, by real
// processes.
#include "project/process/internal/child_processor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "async/unique_fd.hpp"
#include "sockets_in_virtual_time.hpp"
#include "support/few_threads.hpp"
#include "support/processes.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A processor that does with a page what the page's rule is called.
constexpr const char* kBehaviours = R"python(
import json, os, sys, time
receive, send = sys.stdin.buffer, sys.stdout
def raw(line): os.write(1, line)
def say(kind, **members): raw(json.dumps({"type": kind, **members}).encode() + b"\n")
def done(page, **members): say("done", id=page["id"], **members)
DESCRIBED = {"protocol": 1}
held = []

def echo(page, body): done(page, results=[{"value": {"bytes": len(body), "first": body[:20].decode(), "pid": os.getpid(), "n": page["page"]["context"]}}],
                           pages=[{"url": "next", "rule": "echo"}], save={"seen": page["save"]})
def wordy(page, body):
    for i in range(3): say("log", id=page["id"], level="info", text="line %d" % i)
    print("to the", "log", file=sys.stderr)
    os.write(2, b"\xff without an end")
    say("log", level="warning", text="of nobody's page")
    done(page, logs=[{"level": "debug", "text": "last"}])
def parts(page, body):
    for i in range(3): say("more", id=page["id"], results=[{"part": str(i), "value": i}], pages=[{"url": "/%d" % i}])
    done(page, results=[{"part": "end", "value": "end"}], messages=[{"project": "other", "message": 7}])
def error(page, body): done(page, error={"text": "no price", "kind": "ValueError", "where": "shop.py:12"})
def wrong(page, body): done(page, pages=17)
def silent(page, body): pass
def late(page, body): time.sleep(0.05); done(page)
def crash(page, body): print("last words", file=sys.stderr, flush=True); os._exit(3)
def killed(page, body): os.kill(os.getpid(), 9)
def leave(page, body): os._exit(0)
def answer_and_leave(page, body): done(page); os._exit(0)
def answer_and_crash(page, body): done(page); os._exit(5)
def hold(page, body):
    held.append(page)
    if len(held) == 3:
        for other in reversed(held): done(other, results=[{"value": other["id"]}])
def two_words(page, body): print("shared", file=sys.stderr, flush=True); held.append(page); len(held) == 2 and [done(other) for other in held]
def crash_of_two(page, body): held.append(page); len(held) == 2 and os._exit(1)
def no_json(page, body): raw(b"hello, world" + b"!" * 1000 + b"\n")
def no_object(page, body): raw(b"[1]\n")
def no_utf8(page, body): raw(b'{"type":"log","text":"\xff\xfe"}\n')
def odd_type(page, body): say("odd")
def no_such_id(page, body): say("done", id=page["id"] + 1000)
def described_again(page, body): say("described", protocol=1)
def twice(page, body): raw(b'{"type":"done","id":%d}\n{"type":"done","id":%d}\n' % (page["id"], page["id"]))
def long_line(page, body): raw(b"x" * 300000 + b"\n"); time.sleep(60)
def endless_line(page, body):
    while True: raw(b"x" * 65536)
def endless_answer(page, body):
    while True: say("more", id=page["id"], pages=[{"url": "/" + "x" * 1000}])
def endless_log(page, body):
    for i in range(3000): say("log", id=page["id"], text="x" * 100)
    done(page)
def empty_lines(page, body): raw(b"\n  \n\r\n"); done(page)
def flood_errors(page, body):
    for i in range(int(page["page"]["context"])): os.write(2, b"y" * 65536)
    done(page)
def talk_without_page(page, body):
    done(page)
    while True: say("log", text="x" * 1000)
def shut_output(page, body): os.close(1); time.sleep(60)
def shut_input(page, body): os.close(0); done(page); time.sleep(60)
def environment(page, body): done(page, results=[{"value": dict(os.environ)}])
def niceness(page, body): done(page, results=[{"value": os.nice(0)}])
def niceness_and_leave(page, body): niceness(page, body); os._exit(0)

def main(on_end=None):
    while line := receive.readline():
        message = json.loads(line)
        if message["type"] == "describe": say("described", **DESCRIBED)
        else:
            body = receive.read(message["body"])
            if len(body) < message["body"]: break
            globals()[message["rule"]](message, body)
    if on_end: on_end()
)python";

class ChildProcessorTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::permissions(folder_.file(""), std::filesystem::perms(0755)); }
  void write(const std::string& name, const std::string& text) const {
    // As editors do: a new file in the place of the old one.
    std::ofstream(folder_.file(name + ".new")) << text;
    std::filesystem::rename(folder_.file(name + ".new"), folder_.file(name));
  }
  void script(const std::string& end = "main()\n") const { write("script.py", kBehaviours + end); }

  ChildProcessorOptions options() {
    ChildProcessorOptions options;
    options.command = {"/usr/bin/python3", "script.py"};
    options.directory = folder_.file("");
    options.project = "shop";
    options.argiope = "0.1.0";
    options.workers = 1;
    options.sandbox.kind = SandboxKind::none;
    options.first_wait = 10ms;
    options.longest_wait = 40ms;
    options.look_every = 0ns;
    options.describe_time = options.grace = options.end_time = kPatience;
    options.on_log = [this](PageLog line) { project_log_.push_back(std::move(line)); };
    options.on_trouble = [this](const std::string& why) { troubles_.push_back(why); };
    options.on_described = [this](const ProcessorDescription& its) { descriptions_.push_back(its); };
    return options;
  }
  template <class Body>
  static Coro<void> guarded(ChildProcessorOptions options, Body body) {
    ChildProcessor processor(EventLoop::current(), std::move(options));
    co_await wait_for(body(processor), kPatience);
    co_await wait_for(processor.close(), kPatience);
    EXPECT_EQ(processor.counts().children, 0u);
    EXPECT_EQ(processor.counts().waiting, 0u);
  }
  template <class Body>
  void with(ChildProcessorOptions options, Body body) {
    run(guarded(std::move(options), std::move(body)));
  }
  static PageCall page(const std::string& rule, std::string body = {}) {
    PageCall call;
    call.rule = rule;
    call.project = "shop";
    call.time_limit = kPatience;
    call.name = call.url = call.response.url = "https://shop.example/list/";
    call.response.status = 200;
    call.response.encoding = "utf-8";
    call.response.headers = {{"Content-Type", "text/html"}};
    call.response.body = std::move(body);
    return call;
  }
  // Looks until it holds.
  template <class Condition>
  static Coro<void> until(Condition condition) {
    while (!condition()) co_await sleep(1ms);
  }
  std::string project_log() const {
    std::string all;
    for (const PageLog& line : project_log_) all += line.level + ": " + line.text + "\n";
    return all;
  }

  TemporaryFolder folder_;
  std::vector<PageLog> project_log_;
  std::vector<std::string> troubles_;
  std::vector<ProcessorDescription> descriptions_;
};

// A pipe with a name: what a script waits for, by `wait(name)`, or tells, by `tell(name)`.
constexpr const char* kByPipes =
    "def wait(pipe):\n  with open(pipe, 'rb', 0) as pipe: pipe.read(1)\n"
    "def tell(pipe):\n  with open(pipe, 'wb', 0) as pipe: pipe.write(b'x')\n";
class NamedPipe {
 public:
  explicit NamedPipe(const std::string& path) {
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    pipe_.reset(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    EXPECT_TRUE(pipe_);
  }
  void tell() { EXPECT_EQ(::write(pipe_.get(), "x", 1), 1); }
  bool was_told() {
    char byte = 0;
    return ::read(pipe_.get(), &byte, 1) == 1;
  }

 private:
  detail::UniqueFd pipe_;
};

std::string log_of(const VisitAnswer& answer) {
  std::string all;
  for (const PageLog& line : answer.logs) all += line.level + ": " + line.text + "\n";
  return all;
}
std::string only_result(const VisitAnswer& answer) {
  if (answer.failure) return "failure: " + answer.failure->text;
  return answer.results && answer.results->size() == 1 ? answer.results->front().value_json : "no result";
}
std::string failure_of(const VisitAnswer& answer) { return answer.failure ? answer.failure->text : "no failure"; }
bool is_crash(const VisitAnswer& answer) { return answer.failure && answer.failure->is_crash; }

// --- what goes well

TEST_F(ChildProcessorTest, TellsWhatTheScriptSaysOfItself) {
  script(
      "DESCRIBED = {'protocol': 1, 'concurrency': 3, 'on': {'start': 'on_start'}, 'ticks': [{'rule': 'tick', "
      "'every_ms': 1000}]}\nmain()\n");
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    EXPECT_EQ(processor.capacity(), 1u);
    const auto described = co_await processor.describe();
    if (!described) co_return ADD_FAILURE() << described.error().message, void();
    EXPECT_EQ(described->concurrency, 3u);
    EXPECT_EQ(described->on_start, "on_start");
    EXPECT_EQ(described->ticks.size(), 1u);
    EXPECT_EQ(processor.capacity(), 3u);
    const auto again = co_await processor.describe();
    EXPECT_TRUE(again);
    EXPECT_EQ(processor.counts().started, 1u);
  });
}

TEST_F(ChildProcessorTest, APageGoesThereAndItsAnswerComesBack) {
  script();
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    PageCall call = page("echo", std::string(40'960, 'a'));
    call.context_json = "[1]";
    call.save_json = "\"before\"";
    const VisitAnswer answer = co_await processor.process(call);
    EXPECT_THAT(only_result(answer), HasSubstr(R"("bytes":40960)")) << log_of(answer);
    EXPECT_THAT(only_result(answer), HasSubstr(R"("n":[1])"));
    if (answer.pages.size() != 1) co_return ADD_FAILURE(), void();
    EXPECT_EQ(answer.pages[0].url, "https://shop.example/list/next");
    EXPECT_THAT(answer.save_json.value_or(""), HasSubstr("before"));
    // The child stays.
    const VisitAnswer empty = co_await processor.process(page("echo"));
    EXPECT_THAT(only_result(empty), HasSubstr(R"("bytes":0)"));
    EXPECT_EQ(processor.counts().started, 1u);
  });
}

TEST_F(ChildProcessorTest, ReadsWhileItWrites) {
  // The script writes a megabyte before it reads the body, which no pipe holds either.
  write("script.py", std::string(kBehaviours) + R"python(
for line in iter(receive.readline, b""):
    message = json.loads(line)
    if message["type"] == "describe": say("described", **DESCRIBED); continue
    for i in range(1000): say("log", id=message["id"], level="debug", text="x" * 1000)
    os.write(2, b"e" * 1000000 + b"\n")
    body = receive.read(message["body"])
    done(message, results=[{"value": len(body)}])
)python");
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    const VisitAnswer answer = co_await processor.process(page("x", std::string(10'000'000, 'b')));
    EXPECT_EQ(only_result(answer), "10000000");
  });
}

TEST_F(ChildProcessorTest, AThousandPagesThroughTwoChildren) {
  script();
  ChildProcessorOptions two = options();
  two.workers = 2;
  with(two, [&](ChildProcessor& processor) -> Coro<void> {
    std::multiset<std::string> seen;
    std::set<std::string> children;
    const auto process_at_once = [&](int first, int count) {
      return TaskGroup::run([&processor, &seen, &children, first, count](TaskGroup& group) -> Coro<void> {
        for (int i = first; i < first + count; ++i) {
          group.create_task([](ChildProcessor& its, int number, std::multiset<std::string>& to,
                               std::set<std::string>& pids) -> Coro<void> {
            PageCall call = page("echo", std::string(static_cast<std::size_t>(number), 'c'));
            call.context_json = std::to_string(number);
            const VisitAnswer answer = co_await its.process(call);
            const std::string result = only_result(answer);
            EXPECT_THAT(result, HasSubstr(fmt::format(R"("bytes":{},)", number)));
            to.insert(result.substr(result.rfind("\"n\":")));
            pids.insert(result.substr(result.find("\"pid\":"), 14));
          }(processor, i, seen, children));
        }
        co_return;
      });
    };
    co_await process_at_once(0, 1000);
    EXPECT_EQ(seen.size(), 1000u);
    EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 1000u);
    // A busy machine may start the second one only after all that.
    for (int more = 1000; children.size() < 2; more += 2) co_await process_at_once(more, 2);
    EXPECT_EQ(processor.counts().started, 2u);
  });
}

TEST_F(ChildProcessorTest, AnswersOfSeveralPagesComeInAnyOrder) {
  script("DESCRIBED['concurrency'] = 3\nmain()\n");
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    const auto described = co_await processor.describe();
    EXPECT_TRUE(described);
    std::vector<std::string> results(3);
    co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
      for (std::string& result : results) {
        group.create_task([](ChildProcessor& its, std::string& into) -> Coro<void> {
          const VisitAnswer answer = co_await its.process(page("hold"));
          into = only_result(answer);
        }(processor, result));
      }
      co_return;
    });
    EXPECT_THAT(results, ElementsAre("1", "2", "3"));
    EXPECT_EQ(processor.counts().started, 1u);
  });
}

TEST_F(ChildProcessorTest, AnAnswerMayComeInParts) {
  script();
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    const VisitAnswer answer = co_await processor.process(page("parts"));
    EXPECT_FALSE(answer.failure);
    if (!answer.results) co_return ADD_FAILURE(), void();
    EXPECT_THAT(*answer.results, ElementsAre(Field(&PageResult::part, "0"), Field(&PageResult::part, "1"),
                                             Field(&PageResult::part, "2"), Field(&PageResult::part, "end")));
    EXPECT_EQ(answer.pages.size(), 3u);
    EXPECT_EQ(answer.messages.size(), 1u);
  });
}

TEST_F(ChildProcessorTest, LogsBelongToTheirVisitAndTheOthersToTheProject) {
  script();
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    const VisitAnswer answer = co_await processor.process(page("wordy"));
    const std::string log = log_of(answer);
    for (const char* const line : {"info: line 0\n", "info: line 2\n", "stderr: to the log\n", "debug: last\n",
                                   "stderr: \xef\xbf\xbd without an end\n"})
      EXPECT_THAT(log, HasSubstr(line));
    EXPECT_THAT(log, Not(HasSubstr("nobody")));
    EXPECT_EQ(project_log(), "warning: of nobody's page\n");
  });
}

TEST_F(ChildProcessorTest, ErrorsOfSeveralVisitsAreTheProjects) {
  script("DESCRIBED['concurrency'] = 2\nmain()\n");
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    const auto described = co_await processor.describe();
    EXPECT_TRUE(described);
    co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
      for (int i = 0; i < 2; ++i)
        group.create_task(
            [](ChildProcessor& its) -> Coro<void> { (void)co_await its.process(page("two_words")); }(processor));
      co_return;
    });
    EXPECT_THAT(project_log(), HasSubstr("stderr: shared"));
  });
}

TEST_F(ChildProcessorTest, EmptyLinesAreNothing) {
  script();
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    const VisitAnswer answer = co_await processor.process(page("empty_lines"));
    EXPECT_FALSE(answer.failure) << failure_of(answer);
  });
}

// --- what goes wrong in an answer

TEST_F(ChildProcessorTest, ADoneThatFailedOrIsWrongCostsNoChild) {
  script();
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    const VisitAnswer failed = co_await processor.process(page("error"));
    EXPECT_EQ(failure_of(failed), "no price");
    EXPECT_EQ(failed.failure->kind, "ValueError");
    EXPECT_FALSE(is_crash(failed));
    const VisitAnswer wrong = co_await processor.process(page("wrong"));
    EXPECT_THAT(failure_of(wrong), HasSubstr("pages"));
    EXPECT_FALSE(is_crash(wrong));
    const VisitAnswer good = co_await processor.process(page("echo"));
    EXPECT_FALSE(good.failure);
    EXPECT_EQ(processor.counts().started, 1u);
  });
}

struct Garbage {
  const char* rule;
  const char* shown;
};
class GarbageTest : public ChildProcessorTest, public ::testing::WithParamInterface<Garbage> {};
INSTANTIATE_TEST_SUITE_P(Lines, GarbageTest,
                         ::testing::Values(Garbage{"no_json", "hello, world!!!"}, Garbage{"no_object", "[1]"},
                                           Garbage{"no_utf8", "log"}, Garbage{"odd_type", "odd"},
                                           Garbage{"no_such_id", "100"}, Garbage{"described_again", "twice"}),
                         [](const auto& its) { return std::string(its.param.rule); });

TEST_P(GarbageTest, KillsTheProcessorAndIsShown) {
  script();
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    const VisitAnswer answer = co_await processor.process(page(GetParam().rule));
    EXPECT_THAT(failure_of(answer), HasSubstr("the processor was killed"));
    EXPECT_THAT(failure_of(answer), HasSubstr(GetParam().shown));
    EXPECT_LT(failure_of(answer).size(), 600u);
    EXPECT_TRUE(is_crash(answer));
    EXPECT_THAT(project_log(), HasSubstr(GetParam().shown));
    EXPECT_EQ(processor.counts().killed, 1u);
    const VisitAnswer good = co_await processor.process(page("echo"));
    EXPECT_FALSE(good.failure) << failure_of(good);
    EXPECT_EQ(processor.counts().started, 2u);
  });
}

TEST_F(ChildProcessorTest, ASecondAnswerKillsTheProcessorAndTheFirstCounts) {
  script();
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    const VisitAnswer answer = co_await processor.process(page("twice"));
    EXPECT_FALSE(answer.failure) << failure_of(answer);
    co_await until([&] { return processor.counts().killed == 1 && processor.counts().children == 0; });
    EXPECT_THAT(project_log(), HasSubstr("killed"));
  });
}

// --- bounds

TEST_F(ChildProcessorTest, ALineIsBounded) {
  script();
  ChildProcessorOptions small = options();
  small.limits.line_bytes = 200'000;
  with(small, [&](ChildProcessor& processor) -> Coro<void> {
    for (const char* const rule : {"long_line", "endless_line"}) {
      const VisitAnswer answer = co_await processor.process(page(rule));
      EXPECT_THAT(failure_of(answer), HasSubstr("a line of more than 200000 bytes: \"xxx")) << rule;
      EXPECT_TRUE(is_crash(answer));
    }
  });
}

TEST_F(ChildProcessorTest, ALineOfManyMegabytesIsRead) {
  write("script.py", std::string(kBehaviours) +
                         "def big(page, body): done(page, results=[{'part': str(i), 'value': 'v' * 500000} for i in "
                         "range(10)])\nmain()\n");
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    const VisitAnswer answer = co_await processor.process(page("big"));
    EXPECT_EQ(answer.results.value_or(std::vector<PageResult>{}).size(), 10u) << failure_of(answer);
  });
}

TEST_F(ChildProcessorTest, AnAnswerIsBounded) {
  script();
  ChildProcessorOptions small = options();
  small.limits.answer_bytes = 100'000;
  with(small, [&](ChildProcessor& processor) -> Coro<void> {
    const VisitAnswer answer = co_await processor.process(page("endless_answer"));
    EXPECT_THAT(failure_of(answer), HasSubstr("wrote too much"));
    EXPECT_THAT(answer.pages, IsEmpty());
    EXPECT_TRUE(is_crash(answer));
  });
}

TEST_F(ChildProcessorTest, TheLogOfAVisitIsBounded) {
  script();
  ChildProcessorOptions small = options();
  small.limits.log_bytes = 1'000;
  with(small, [&](ChildProcessor& processor) -> Coro<void> {
    const VisitAnswer answer = co_await processor.process(page("endless_log"));
    EXPECT_FALSE(answer.failure);
    EXPECT_LT(log_of(answer).size(), 2'000u);
    EXPECT_GT(answer.logs.size(), 5u);
  });
}

TEST_F(ChildProcessorTest, AScriptWithoutAPageIsHeardWithinBounds) {
  script();
  ChildProcessorOptions small = options();
  small.limits.answer_bytes = 1'000'000;
  with(small, [&](ChildProcessor& processor) -> Coro<void> {
    const VisitAnswer answer = co_await processor.process(page("talk_without_page"));
    EXPECT_FALSE(answer.failure);
    co_await until([&] { return processor.counts().killed == 1 && processor.counts().children == 0; });
    EXPECT_THAT(processor.trouble(), HasSubstr("without having a page"));
    std::size_t bytes = 0;
    for (const PageLog& line : project_log_) bytes += line.text.size();
    EXPECT_LT(bytes, 70'000u);
  });
}

// In KiB: what this process has had in memory at most.
long peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long size = 0;
    if (word == "VmHWM:" && status >> size) return size;
  }
  return 0;
}

TEST_F(ChildProcessorTest, AGigabyteOfErrorsCostsNoMemory) {
  script();
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    (void)co_await processor.process(page("echo"));
    const long before = peak_memory();
    PageCall call = page("flood_errors");
    call.context_json = "16384";
    const VisitAnswer answer = co_await processor.process(call);
    EXPECT_FALSE(answer.failure) << failure_of(answer);
    EXPECT_LT(log_of(answer).size(), 100'000u);
#ifndef ARGIOPE_SANITIZED  // they keep what was freed
    EXPECT_LT(peak_memory() - before, 50 * 1024);
#else
    EXPECT_GT(peak_memory(), before / 2);
#endif
  });
}

TEST_F(ChildProcessorTest, APageWithoutAnAnswerIsTheOnlyOneThatFails) {
  script();
  ChildProcessorOptions two = options();
  two.workers = 2;
  two.grace = 20ms;
  with(two, [&](ChildProcessor& processor) -> Coro<void> {
    PageCall silent = page("silent");
    silent.time_limit = 20ms;
    Task<VisitAnswer> failing = EventLoop::current().create_task(processor.process(silent));
    const VisitAnswer other = co_await processor.process(page("echo"));
    EXPECT_FALSE(other.failure);
    const VisitAnswer answer = co_await failing;
    EXPECT_THAT(failure_of(answer), HasSubstr("no answer within 20ms"));
    EXPECT_TRUE(is_crash(answer));
    const VisitAnswer after = co_await processor.process(page("echo"));
    EXPECT_FALSE(after.failure);
  });
}

TEST_F(ChildProcessorTest, AnAnswerInTheGraceCounts) {
  script();
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    PageCall late = page("late");
    late.time_limit = 1ms;
    const VisitAnswer answer = co_await processor.process(late);
    EXPECT_FALSE(answer.failure) << failure_of(answer);
  });
}

TEST_F(ChildProcessorTest, AfterAKillTheNextOnesAreOfLowPriorityUntilOneHasAnswered) {
  script();
  ChildProcessorOptions strict = options();
  strict.grace = 20ms;
  with(strict, [&](ChildProcessor& processor) -> Coro<void> {
    const auto niceness = [&]() -> Coro<std::string> {
      co_return only_result(co_await processor.process(page("niceness_and_leave")));
    };
    const auto loop = [&]() -> Coro<void> {
      PageCall silent = page("silent");
      silent.time_limit = 20ms;
      const VisitAnswer answer = co_await processor.process(silent);
      EXPECT_THAT(failure_of(answer), HasSubstr("was killed"));
    };
    const std::string ours = std::to_string(::getpriority(PRIO_PROCESS, 0)),
                      low = std::to_string(std::min(::getpriority(PRIO_PROCESS, 0) + 10, 19));
    EXPECT_EQ(co_await niceness(), ours);
    const VisitAnswer crashed = co_await processor.process(page("crash"));
    EXPECT_TRUE(is_crash(crashed));
    EXPECT_EQ(co_await niceness(), ours) << "what ends by itself costs nobody anything";
    co_await loop();
    co_await loop();  // and again
    EXPECT_EQ(co_await niceness(), low);
    EXPECT_EQ(co_await niceness(), ours) << "one has answered";
    co_await loop();
    write("script.py", std::string(kBehaviours) + "main()  # without the loop\n");
    EXPECT_EQ(co_await niceness(), ours) << "another script";
  });
}

// --- ends

TEST_F(ChildProcessorTest, ACrashFailsItsPageAndTellsTheLastWords) {
  script();
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    const VisitAnswer crashed = co_await processor.process(page("crash"));
    EXPECT_EQ(failure_of(crashed), "the processor ended with status 3: last words");
    EXPECT_TRUE(is_crash(crashed));
    EXPECT_THAT(log_of(crashed), HasSubstr("stderr: last words"));
    const VisitAnswer killed = co_await processor.process(page("killed"));
    EXPECT_THAT(failure_of(killed), HasSubstr("was ended by SIGKILL"));
    EXPECT_TRUE(is_crash(killed));
    const VisitAnswer good = co_await processor.process(page("echo"));
    EXPECT_FALSE(good.failure) << "at once: no page waits for another one's crash";
  });
}

TEST_F(ChildProcessorTest, ACrashOfSeveralPagesIsNoOnesOwn) {
  script("DESCRIBED['concurrency'] = 2\nmain()\n");
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    const auto described = co_await processor.describe();
    EXPECT_TRUE(described);
    std::vector<VisitAnswer> answers(2);
    co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
      for (VisitAnswer& answer : answers)
        group.create_task([](ChildProcessor& its, VisitAnswer& into) -> Coro<void> {
          into = co_await its.process(page("crash_of_two"));
        }(processor, answer));
      co_return;
    });
    for (const VisitAnswer& answer : answers) {
      EXPECT_THAT(failure_of(answer), HasSubstr("ended with status 1"));
      EXPECT_FALSE(is_crash(answer));
    }
  });
}

TEST_F(ChildProcessorTest, AScriptMayEndAfterEachPage) {
  script();
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    for (int i = 0; i < 10; ++i) {
      const VisitAnswer answer = co_await processor.process(page("answer_and_leave"));
      EXPECT_FALSE(answer.failure) << failure_of(answer);
    }
    EXPECT_EQ(processor.counts().killed, 0u);
    EXPECT_THAT(troubles_, IsEmpty());
  });
}

TEST_F(ChildProcessorTest, AScriptThatEndsInsteadOfAnsweringHasFailed) {
  script();
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    const VisitAnswer answer = co_await processor.process(page("leave"));
    EXPECT_THAT(failure_of(answer), HasSubstr("ended with status 0"));
    EXPECT_TRUE(is_crash(answer));
    EXPECT_EQ(processor.counts().started, 2u) << "it was given to another one, which may have been the first to see it";
  });
}

TEST_F(ChildProcessorTest, OneThatCrashesWithoutAPageIsStartedAgainLater) {
  script();
  ChildProcessorOptions patient = options();
  patient.first_wait = patient.longest_wait = 1h;
  with(patient, [&](ChildProcessor& processor) -> Coro<void> {
    const VisitAnswer first = co_await processor.process(page("answer_and_crash"));
    EXPECT_FALSE(first.failure);
    co_await until([&] { return processor.counts().children == 0; });
    const VisitAnswer second = co_await processor.process(page("echo"));
    if (!second.failure) co_return ADD_FAILURE(), void();
    EXPECT_TRUE(second.failure->not_now);
    EXPECT_GT(second.failure->delay.value_or(0s), 59min);
    EXPECT_THAT(second.failure->text, HasSubstr("ended with status 5"));
    EXPECT_THAT(troubles_, ElementsAre(HasSubstr("ended with status 5")));
  });
}

TEST_F(ChildProcessorTest, OneThatShutsItsOutputIsKilled) {
  script();
  ChildProcessorOptions quick = options();
  quick.end_time = 20ms;
  with(quick, [&](ChildProcessor& processor) -> Coro<void> {
    const VisitAnswer answer = co_await processor.process(page("shut_output"));
    EXPECT_THAT(failure_of(answer), HasSubstr("closed its standard output"));
    const VisitAnswer first = co_await processor.process(page("shut_input"));
    EXPECT_FALSE(first.failure) << failure_of(first);
    const VisitAnswer second = co_await processor.process(page("echo"));
    EXPECT_FALSE(second.failure) << failure_of(second);
  });
}

// --- starts

TEST_F(ChildProcessorTest, WhatCannotBeStartedIsTriedAgainEverLater) {
  ChildProcessorOptions missing = options();
  missing.command = {"/no/such/program"};
  missing.first_wait = 20s;
  missing.longest_wait = 60s;
  // There is never a process: time may be simulated.
  SocketsInVirtualTime backend(WallTime{});
  EventLoop loop(backend);
  loop.run_until_complete(guarded(missing, [&](ChildProcessor& processor) -> Coro<void> {
    std::vector<Duration> waits;
    for (int i = 0; i < 4; ++i) {
      const auto described = co_await processor.describe();
      if (described) co_return ADD_FAILURE(), void();
      EXPECT_THAT(described.error().message, HasSubstr("/no/such/program"));
      const VisitAnswer answer = co_await processor.process(page("echo"));
      EXPECT_TRUE(answer.failure && answer.failure->not_now);
      waits.push_back(answer.failure->delay.value_or(0s));
    }
    EXPECT_EQ(processor.counts().started, 4u) << "pages start nothing before its time";
    EXPECT_THAT(waits, ElementsAre(20s, 40s, 60s, 60s));
    EXPECT_THAT(troubles_, ElementsAre(HasSubstr("/no/such/program")));
  }));
}

TEST_F(ChildProcessorTest, OneThatEndsBeforeItIsDescribedSaysWhy) {
  write("script.py", "import no_such_module\n");
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    const auto described = co_await processor.describe();
    if (described) co_return ADD_FAILURE(), void();
    EXPECT_THAT(described.error().message,
                HasSubstr("ended with status 1 before it answered `describe`: ModuleNotFoundError"));
    EXPECT_THAT(project_log(), HasSubstr("stderr: Traceback"));
  });
}

TEST_F(ChildProcessorTest, OneThatDoesNotAnswerDescribeIsKilled) {
  write("script.py", "import time\ntime.sleep(60)\n");
  ChildProcessorOptions quick = options();
  quick.describe_time = 50ms;
  with(quick, [&](ChildProcessor& processor) -> Coro<void> {
    const auto described = co_await processor.describe();
    EXPECT_THAT(described ? "" : described.error().message, HasSubstr("did not answer `describe` within 50ms"));
  });
}

TEST_F(ChildProcessorTest, ADescriptionOfMoreThanAMegabyteIsRefused) {
  write("script.py", std::string(kBehaviours) + "DESCRIBED['x'] = 'x' * (1 << 20)\nmain()\n");
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    const auto described = co_await processor.describe();
    EXPECT_THAT(described ? "" : described.error().message, HasSubstr("1048576"));
  });
}

class RefusedTest : public ChildProcessorTest,
                    public ::testing::WithParamInterface<std::pair<const char*, const char*>> {};
INSTANTIATE_TEST_SUITE_P(
    Descriptions, RefusedTest,
    ::testing::Values(std::pair{"{'protocol': 1, 'error': {'text': 'no lxml here', 'where': 'shop.py:3'}}",
                                "no lxml here"},
                      std::pair{"{'protocol': 99}", "99"},
                      std::pair{"{'protocol': 1, 'concurrency': 'many'}", "concurrency"}));

TEST_P(RefusedTest, AScriptThatCannotRunWaitsForItsNextVersion) {
  script("DESCRIBED = " + std::string(GetParam().first) + "\nmain()\n");
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    const auto described = co_await processor.describe();
    EXPECT_THAT(described ? "" : described.error().message, HasSubstr(GetParam().second));
    const VisitAnswer page_of_it = co_await processor.process(page("echo"));
    EXPECT_TRUE(page_of_it.failure && page_of_it.failure->not_now);
    const auto again = co_await processor.describe();
    EXPECT_FALSE(again);
    EXPECT_EQ(processor.counts().started, 1u);
    Task<void> changed = EventLoop::current().create_task(processor.when_changed());
    co_await sleep(0ns);
    EXPECT_FALSE(changed.done());
    script();
    co_await changed;
    const auto mended = co_await processor.describe();
    EXPECT_TRUE(mended);
    EXPECT_EQ(processor.trouble(), "");
    const VisitAnswer good = co_await processor.process(page("echo"));
    EXPECT_FALSE(good.failure);
  });
}

TEST_F(ChildProcessorTest, AChangedScriptGetsANewProcessorAndTheOldOneEndsItsPages) {
  NamedPipe go_on(folder_.file("go on"));
  script(std::string(kByPipes) +
         "import threading\ndef slow(page, body): threading.Thread(target=lambda: (wait('go on'), done(page, "
         "results=[{'value': 'old'}]))).start()\n"
         "DESCRIBED['concurrency'] = 2\nmain(lambda: open('ended', 'w').close())\n");
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    const auto described = co_await processor.describe();
    EXPECT_TRUE(described);
    const PageCall call = page("slow");
    Task<VisitAnswer> slow = EventLoop::current().create_task(processor.process(call));
    co_await until([&] { return processor.counts().pages == 1; });
    script("DESCRIBED['concurrency'] = 7\ndef slow(page, body): done(page, results=[{'value': 'new'}])\nmain()\n");
    const VisitAnswer fresh = co_await processor.process(page("slow"));
    EXPECT_EQ(only_result(fresh), "\"new\"");
    EXPECT_FALSE(slow.done());
    go_on.tell();
    const VisitAnswer old = co_await slow;
    EXPECT_EQ(only_result(old), "\"old\"");
    co_await until([&] { return processor.counts().children == 1; });
    EXPECT_TRUE(std::filesystem::exists(folder_.file("ended"))) << "its input was closed";
    if (descriptions_.size() != 1) co_return ADD_FAILURE() << descriptions_.size(), void();
    EXPECT_EQ(descriptions_[0].concurrency, 7u);
    EXPECT_EQ(processor.counts().killed, 0u);
  });
}

TEST_F(ChildProcessorTest, AProcessorWithoutWorkEndsAndComesBack) {
  script();
  ChildProcessorOptions idle = options();
  idle.idle_time = 10ms;
  with(idle, [&](ChildProcessor& processor) -> Coro<void> {
    for (std::uint64_t i = 1; i <= 2; ++i) {
      const VisitAnswer answer = co_await processor.process(page("echo"));
      EXPECT_FALSE(answer.failure);
      co_await until([&] { return processor.counts().children == 0; });
      EXPECT_EQ(processor.counts().started, i);
    }
    EXPECT_EQ(processor.counts().killed, 0u);
    EXPECT_THAT(troubles_, IsEmpty());
  });
}

TEST_F(ChildProcessorTest, AProcessorThatWasOnlyAskedWhatItIsEndsSoon) {
  script();
  ChildProcessorOptions quick = options();
  quick.described_time = 10ms;
  with(quick, [&](ChildProcessor& processor) -> Coro<void> {
    const auto described = co_await processor.describe();
    EXPECT_TRUE(described);
    co_await until([&] { return processor.counts().children == 0; });
    const VisitAnswer answer = co_await processor.process(page("echo"));
    EXPECT_FALSE(answer.failure) << failure_of(answer);
    EXPECT_EQ(processor.counts().started, 2u);
    EXPECT_EQ(processor.counts().killed, 0u);
    EXPECT_THAT(troubles_, IsEmpty());
    EXPECT_THAT(descriptions_, IsEmpty()) << "it says the same";
  });
}

TEST_F(ChildProcessorTest, RestEndsWhatHasNoPage) {
  script("DESCRIBED['concurrency'] = 2\nmain(lambda: open('ended', 'w').close())\n");
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    co_await processor.rest();  // there is none
    const auto described = co_await processor.describe();
    EXPECT_TRUE(described);
    co_await processor.rest();
    EXPECT_EQ(processor.counts().children, 0u);
    EXPECT_TRUE(std::filesystem::exists(folder_.file("ended"))) << "its input was closed";
    // One that has a page is left with it.
    const PageCall call = page("hold");
    Task<VisitAnswer> first = EventLoop::current().create_task(processor.process(call));
    co_await until([&] { return processor.counts().pages == 1; });
    co_await processor.rest();
    EXPECT_EQ(processor.counts().children, 1u);
    const VisitAnswer echoed = co_await processor.process(page("echo"));
    EXPECT_FALSE(echoed.failure) << failure_of(echoed);
    EXPECT_EQ(processor.counts().killed, 0u);
    first.cancel();
  });
}

// --- closing

TEST_F(ChildProcessorTest, CloseLetsTheScriptEnd) {
  script("main(lambda: open('ended', 'w').close())\n");
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    (void)co_await processor.process(page("echo"));
    co_await processor.close();
    EXPECT_TRUE(std::filesystem::exists(folder_.file("ended")));
    EXPECT_EQ(processor.counts().killed, 0u);
    const VisitAnswer after = co_await processor.process(page("echo"));
    EXPECT_TRUE(after.failure && after.failure->not_now);
    const auto described = co_await processor.describe();
    EXPECT_FALSE(described);
    co_await processor.close();
  });
}

TEST_F(ChildProcessorTest, CloseKillsWhatDoesNotEnd) {
  script("main(lambda: time.sleep(60))\n");
  ChildProcessorOptions quick = options();
  quick.end_time = 20ms;
  with(quick, [&](ChildProcessor& processor) -> Coro<void> {
    const PageCall call = page("silent");
    Task<VisitAnswer> under_way = EventLoop::current().create_task(processor.process(call));
    co_await until([&] { return processor.counts().pages == 1; });
    co_await processor.close();
    EXPECT_EQ(processor.counts().killed, 1u);
    const VisitAnswer answer = co_await under_way;
    EXPECT_TRUE(answer.failure && answer.failure->not_now && !answer.failure->is_crash);
  });
}

TEST_F(ChildProcessorTest, DestroyingItLeavesNoProcess) {
  script();
  std::vector<pid_t> pids;
  const ChildProcessorOptions chosen = options();
  run([](ChildProcessorOptions its, std::vector<pid_t>& into) -> Coro<void> {
    ChildProcessor processor(EventLoop::current(), std::move(its));
    (void)co_await processor.process(page("echo"));
    into = processor.pids();
  }(chosen, pids));
  ASSERT_EQ(pids.size(), 1u);
  EXPECT_TRUE(comes_true([&] { return !is_alive(pids[0]); }));
}

// --- cancelling

TEST_F(ChildProcessorTest, ACancelledPageIsDroppedWhereverItIs) {
  // The script says what it is, and answers, only when it is told to.
  NamedPipe start(folder_.file("start")), go_on(folder_.file("go on"));
  script(std::string(kByPipes) +
         "def slow(page, body): wait('go on'); done(page, results=[{'value': 'slow'}])\n"
         "wait('start')\nmain()\n");
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    EventLoop& loop = EventLoop::current();
    // While the child starts.
    const PageCall call = page("slow", std::string(1000, 'd'));
    Task<VisitAnswer> starting = loop.create_task(processor.process(call));
    co_await until([&] { return processor.counts().children == 1; });
    starting.cancel();
    EXPECT_THROW((void)co_await starting, CancelledError);
    EXPECT_EQ(processor.counts().waiting, 0u);
    start.tell();
    // While it has the page.
    Task<VisitAnswer> under_way = loop.create_task(processor.process(call));
    co_await until([&] { return processor.counts().pages == 1; });
    Task<VisitAnswer> waiting = loop.create_task(processor.process(call));
    co_await until([&] { return processor.counts().waiting == 1; });
    under_way.cancel();
    EXPECT_THROW((void)co_await under_way, CancelledError);
    // While it waits for its turn.
    waiting.cancel();
    EXPECT_THROW((void)co_await waiting, CancelledError);
    EXPECT_EQ(processor.counts().waiting, 0u);
    EXPECT_EQ(processor.counts().pages, 1u) << "the script still has it";
    go_on.tell();
    const VisitAnswer next = co_await processor.process(page("echo"));
    EXPECT_FALSE(next.failure) << failure_of(next);
    EXPECT_EQ(processor.counts().started, 1u);
  });
}

TEST_F(ChildProcessorTest, APageCancelledWhileItIsSentIsSentToItsEnd) {
  // The script reads bodies only when it is told to.
  NamedPipe begun(folder_.file("begun")), go_on(folder_.file("go on"));
  script(std::string(kByPipes) +
         "real = receive\n"
         "class Slow:\n"
         "  def readline(self): return real.readline()\n"
         "  def read(self, size): size > 1000 and (tell('begun'), wait('go on')); return real.read(size)\n"
         "receive = Slow()\nmain()\n");
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    {
      const auto call = std::make_unique<PageCall>(page("echo", std::string(5'000'000, 'e')));
      Task<VisitAnswer> sending = EventLoop::current().create_task(processor.process(*call));
      co_await until([&] { return processor.counts().pages == 1; });
      co_await until([&] { return begun.was_told(); });
      sending.cancel();
      EXPECT_THROW((void)co_await sending, CancelledError);
    }
    go_on.tell();
    const VisitAnswer next = co_await processor.process(page("echo", "next"));
    EXPECT_THAT(only_result(next), HasSubstr(R"("first":"next")"));
    EXPECT_EQ(processor.counts().started, 1u);
  });
}

TEST_F(ChildProcessorTest, ACancelledDescriptionLeavesNoProcess) {
  write("script.py", "import time\ntime.sleep(60)\n");
  with(options(), [&](ChildProcessor& processor) -> Coro<void> {
    Task<Result<ProcessorDescription>> describing = EventLoop::current().create_task(processor.describe());
    co_await until([&] { return !processor.pids().empty(); });
    const pid_t pid = processor.pids()[0];
    describing.cancel();
    EXPECT_THROW((void)co_await describing, CancelledError);
    co_await until([&] { return processor.counts().children == 0; });
    EXPECT_FALSE(is_alive(pid));
    EXPECT_EQ(processor.trouble(), "") << "nothing is wrong with it";
  });
}

}  // namespace
}  // namespace argiope
