// The examples and the helpers as ChildProcessor runs them in the strict sandbox, what hostile scripts can do there,
// and how many pages a second go through a callback of Python's.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "argiope/async/threads.hpp"
#include "project/process/internal/child_processor.hpp"
#include "support/few_threads.hpp"
#include "support/processes.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::filesystem::path kSources = ARGIOPE_SOURCE_DIR;

Coro<Result<ProcessorDescription>> tried_sandbox(ChildProcessorOptions options) {
  ChildProcessor processor(EventLoop::current(), std::move(options));
  Result<ProcessorDescription> described = co_await wait_for(processor.describe(), kPatience);
  co_await processor.close();
  co_return described;
}

class ScriptProcessorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::permissions(folder_.file(""), std::filesystem::perms(0755));
    static const std::string why = [&] {
      std::ofstream(folder_.file("try.sh")) << "read line; echo '{\"type\":\"described\",\"protocol\":1}'; read line\n";
      const auto described = run(tried_sandbox(options({"bash", "try.sh"})));
      return described ? std::string() : described.error().message;
    }();
    if (!why.empty()) GTEST_SKIP() << "no strict sandbox on this machine: " << why;
  }
  ChildProcessorOptions options(std::vector<std::string> command) {
    ChildProcessorOptions options;
    options.command = std::move(command);
    options.directory = folder_.file("");
    options.project = "shop";
    options.argiope = "0.1.0";
    options.workers = 2;
    options.sandbox.kind = SandboxKind::strict;
    options.describe_time = options.end_time = kPatience;
    options.grace = 100ms;
    options.on_log = [this](const PageLog& line) { log_ += line.level + ": " + line.text + "\n"; };
    return options;
  }
  void example(const std::string& name) const {
    std::filesystem::copy_file(kSources / "examples/processors" / name, folder_.file(name));
  }
  // Where Python finds the helper, readable to a script's user whatever the sources' folder is.
  std::string helper() const {
    std::filesystem::create_directory(folder_.file("helper"));
    std::filesystem::copy(kSources / "clients/python/argiope", folder_.file("helper/argiope"),
                          std::filesystem::copy_options::recursive);
    return folder_.file("helper");
  }
  void script(const std::string& text) const { std::ofstream(folder_.file("script.py")) << text; }
  template <class Body>
  void with(ChildProcessorOptions options, Body body) {
    run([](ChildProcessorOptions its, Body to_run) -> Coro<void> {
      ChildProcessor processor(EventLoop::current(), std::move(its));
      const auto described = co_await wait_for(processor.describe(), kPatience);
      if (!described) co_return ADD_FAILURE() << described.error().message, void();
      co_await wait_for(to_run(processor, *described), kPatience);
      co_await wait_for(processor.close(), kPatience);
    }(std::move(options), std::move(body)));
  }
  static PageCall page(const std::string& rule, std::string body = {}, PageEvent event = PageEvent::fetch) {
    PageCall call;
    call.event = event;
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
  static std::string told(const VisitAnswer& answer) {
    if (answer.failure) return "failure: " + answer.failure->text;
    std::string all;
    for (const AskedPage& asked : answer.pages) all += asked.rule + " " + asked.url + "\n";
    for (const PageResult& result : answer.results.value_or(std::vector<PageResult>{})) all += result.value_json + "\n";
    return all;
  }

  TemporaryFolder folder_;
  std::string log_;
};

TEST_F(ScriptProcessorTest, TheExampleInBashFollowsLinks) {
  example("links.sh");
  with(options({"bash", "links.sh", "https://shop.example/"}),
       [&](ChildProcessor& processor, const ProcessorDescription& its) -> Coro<void> {
         EXPECT_EQ(its.on_start, "start");
         const VisitAnswer start = co_await processor.process(page("start", {}, PageEvent::start));
         EXPECT_EQ(told(start), "page https://shop.example/\n");
         const VisitAnswer answer =
             co_await processor.process(page("page", "<title>Shop</title><a href=\"item/1\">One</a>"));
         EXPECT_EQ(told(answer), "page https://shop.example/list/item/1\n{\"title\":\"Shop\"}\n") << log_;
       });
}

TEST_F(ScriptProcessorTest, TheExampleInPythonAsksForElements) {
  example("prices.py");
  with(options({"python3", "prices.py", "https://shop.example/"}),
       [&](ChildProcessor& processor, const ProcessorDescription&) -> Coro<void> {
         const VisitAnswer list = co_await processor.process(page(
             "list", "<a class=item href='item/1'>One</a><a class=next href='?p=2'>Next</a><a href='/other'>x</a>"));
         EXPECT_EQ(told(list), "item https://shop.example/list/item/1\nlist https://shop.example/list/?p=2\n");
         const VisitAnswer item =
             co_await processor.process(page("item", "<h1>One &amp; only</h1><b class=price>3.50</b>"));
         EXPECT_THAT(told(item), HasSubstr("One & only"));
         EXPECT_THAT(told(item), HasSubstr("3.5"));
         EXPECT_THAT(item.logs, ::testing::Contains(::testing::Field(&PageLog::level, "stderr")));
       });
}

TEST_F(ScriptProcessorTest, ExamplesWithTheHelpersRun) {
  example("shop.py");
  ChildProcessorOptions python = options({"python3", "-m", "argiope.processor", "shop.py"});
  python.sandbox.python_path = helper();
  with(python, [&](ChildProcessor& processor, const ProcessorDescription& its) -> Coro<void> {
    EXPECT_EQ(its.ticks.size(), 1u);
    const VisitAnswer list = co_await processor.process(page("list_page", "<a class=item href='item/1'>One</a>"));
    EXPECT_EQ(told(list), "item_page https://shop.example/list/item/1\n") << log_;
    const VisitAnswer item = co_await processor.process(page("item_page", "<h1>One</h1><b class=price>3.50</b>"));
    EXPECT_EQ(told(item), "{\"name\":\"One\",\"price\":3.5}\n") << log_;
  });
}

TEST_F(ScriptProcessorTest, TheExampleInJavaScriptRuns) {
  if (::access("/usr/bin/node", X_OK) != 0) GTEST_SKIP() << "no /usr/bin/node";
  example("titles.mjs");
  with(options({"node", "titles.mjs", "https://shop.example/"}),
       [&](ChildProcessor& processor, const ProcessorDescription&) -> Coro<void> {
         const VisitAnswer start = co_await processor.process(page("start", {}, PageEvent::start));
         EXPECT_THAT(told(start), HasSubstr("https://shop.example/")) << log_;
       });
}

TEST_F(ScriptProcessorTest, ManyQueriesBeforeTheFirstAnswerIsRead) {
  script(R"python(
import json, sys
receive = sys.stdin.buffer
def say(**members): sys.stdout.write(json.dumps(members) + "\n"); sys.stdout.flush()
while line := receive.readline():
    page = json.loads(line)
    if page["type"] == "describe": say(type="described", protocol=1); continue
    receive.read(page["body"])
    for i in range(2000): say(type="select", id=page["id"], query=i, css="b" if i % 2 else "b[")
    answers = [json.loads(receive.readline()) for i in range(2000)]
    say(type="done", id=page["id"], results=[{"value": [[a["query"] for a in answers] == list(range(2000)), "error" in answers[0], answers[1]["matches"][0]["text"]]}])
)python");
  with(options({"python3", "script.py"}), [&](ChildProcessor& processor, const ProcessorDescription&) -> Coro<void> {
    const VisitAnswer answer = co_await processor.process(page("x", "<b>bold</b>"));
    EXPECT_EQ(told(answer), "[true,true,\"bold\"]\n");
  });
}

// --- hostile scripts: each costs its own page, and no other

constexpr const char* kHostile = R"python(
import json, os, sys, time
receive, send = sys.stdin.buffer, sys.stdout
def say(**members): send.write(json.dumps(members) + "\n"); send.flush()
def good(page): pass
def spin(page):
    while True: pass
def fork_bomb(page):
    while True:
        try: os.fork()
        except OSError: pass
def fork_and_leave(page):
    for i in range(20):
        if os.fork() == 0:
            os.setsid()
            while True: time.sleep(60)
    os._exit(7)
def much_memory(page):
    try: bytearray(10 << 30)
    except MemoryError: os._exit(9)
def fill_tmp(page):
    i = 0
    while True:
        i += 1
        open("/tmp/%d" % i, "wb").write(bytes(1 << 20))
def much_output(page):
    while True: os.write(1, b"z" * (1 << 20))
def much_error(page):
    while True: os.write(2, b"\xff\n" * (1 << 19))
def many_logs(page):
    while True: say(type="log", id=page["id"], text="z" * 1000)
def many_queries(page):
    while True: say(type="select", id=page["id"], query=1, css="*", html="<p>" * 1000)
def small_documents(page):
    while True: say(type="select", id=page["id"], query=1, css="*", html="<p>")
def kill_all(page):
    os.kill(-1, 9)
    os.kill(os.getppid(), 9)
    while True: pass
def stop(page): os.kill(os.getpid(), 19)
def deaf(page):
    import signal
    for number in range(1, 32):
        try: signal.signal(number, signal.SIG_IGN)
        except OSError: pass
    while True: pass
while line := receive.readline():
    page = json.loads(line)
    if page["type"] == "describe": say(type="described", protocol=1); continue
    receive.read(page["body"])
    globals()[page["rule"]](page)
    say(type="done", id=page["id"])
)python";

class HostileScriptTest : public ScriptProcessorTest, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Deeds, HostileScriptTest,
                         ::testing::Values("spin", "fork_bomb", "fork_and_leave", "much_memory", "fill_tmp",
                                           "much_output", "much_error", "many_logs", "many_queries", "small_documents",
                                           "kill_all", "stop", "deaf"),
                         [](const auto& deed) { return std::string(deed.param); });

long resident_kib() {
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages * ::sysconf(_SC_PAGESIZE) / 1024;
}

TEST_P(HostileScriptTest, CostsItsOwnPageAlone) {
  script(kHostile);
  with(options({"python3", "script.py"}), [&](ChildProcessor& processor, const ProcessorDescription&) -> Coro<void> {
    const long before = resident_kib();
    PageCall bad = page(GetParam(), std::string(40'000, 'a'));
    bad.time_limit = 300ms;
    const PageCall good = page("good", std::string(40'000, 'a'));
    Task<VisitAnswer> failing = EventLoop::current().create_task(processor.process(bad));
    int others = 0;
    while (!failing.done()) {
      const VisitAnswer other = co_await processor.process(good);
      EXPECT_FALSE(other.failure) << other.failure->text;
      ++others;
    }
    EXPECT_GE(others, 1);
    const VisitAnswer answer = co_await failing;
    if (!answer.failure) co_return ADD_FAILURE(), void();
    EXPECT_TRUE(answer.failure->is_crash) << answer.failure->text;
#ifndef ARGIOPE_SANITIZED  // which keep what was freed
    ::malloc_trim(0);      // how much of what was freed the allocator keeps depends on what ran before
    EXPECT_LT(resident_kib() - before, 50 * 1024) << answer.failure->text;
#else
    EXPECT_GT(before, 0);
#endif
    const VisitAnswer after = co_await processor.process(good);
    EXPECT_FALSE(after.failure);
  });
}

// --- how fast

TEST_F(ScriptProcessorTest, PagesASecondThroughACallbackOfPythons) {
  script(
      "from argiope.processor import BaseHandler\n"
      "class Handler(BaseHandler):\n"
      "    def item(self, response): return {'bytes': len(response.content)}\n");
  ChildProcessorOptions python = options({"python3", "-m", "argiope.processor", "script.py"});
  python.sandbox.python_path = helper();
  with(python, [&](ChildProcessor& processor, const ProcessorDescription&) -> Coro<void> {
    constexpr int kPages = 3'000;
    const PageCall call = page("item", std::string(40'960, 'a'));
    const auto run_pages = [&](int count) -> Coro<int> {
      int left = count, good = 0;
      co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
        for (int i = 0; i < 4; ++i) {
          group.create_task([](ChildProcessor& its, const PageCall& its_call, int& to_do, int& done) -> Coro<void> {
            while (to_do-- > 0) {
              const VisitAnswer answer = co_await its.process(its_call);
              done += !answer.failure && answer.results && answer.results->size() == 1;
            }
          }(processor, call, left, good));
        }
        co_return;
      });
      co_return good;
    };
    const int warm = co_await run_pages(200);
    EXPECT_EQ(warm, 200);
    const auto begin = std::chrono::steady_clock::now();
    const int good = co_await run_pages(kPages);
    const double seconds = to_seconds(std::chrono::steady_clock::now() - begin);
    EXPECT_EQ(good, kPages);
    fmt::print("{:.0f} pages of 40 KiB a second through two children\n", kPages / seconds);
  });
}

}  // namespace
}  // namespace argiope
