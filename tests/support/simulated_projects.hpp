// A PageEngine in virtual time on a store in memory, and a web that answers what a test says.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/io_backend.hpp"
#include "base/internal/json_reader.hpp"
#include "project/run/internal/page_engine.hpp"

namespace argiope {

// What a server answers.
struct PageAnswer {
  int status = 200;
  std::string body;
  std::string type = "text/html; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers{};
  Duration latency = std::chrono::milliseconds{10};
  std::optional<Errc> error{};  // instead of an answer
  bool connects = true;         // of an error: whether there was a connection
};

// A page with links.
inline PageAnswer page_with(const std::vector<std::string>& links, std::string_view text = {}) {
  std::string body = "<!doctype html><title>page</title>";
  for (const std::string& link : links) body += "<a href=\"" + link + "\">link</a>\n";
  return {.body = body + std::string(text)};
}

class PageWeb final : public HttpTransport {
 public:
  struct Seen {
    TimePoint at;
    WallTime wall;
    std::string method, url;
    std::vector<std::pair<std::string, std::string>> headers;
    std::string body;
  };

  // What is asked for robots.txt is 404 unless `robots` says otherwise; 404 for what is not there.
  std::map<std::string, PageAnswer, std::less<>> pages;
  std::function<std::optional<PageAnswer>(const HttpRequest&)> answer;  // goes before `pages`
  std::map<std::string, std::string, std::less<>> robots;               // by site
  std::map<std::string, Duration, std::less<>> robots_latency;          // by site
  std::map<std::string, Errc, std::less<>> refused;                     // by site: nothing is sent, robots.txt included
  std::vector<Seen> log;                                                // but for robots.txt
  std::size_t under_way = 0, most_under_way = 0;

  Coro<Result<void>> send(const HttpRequest& request, HttpResponse& response) override {
    EventLoop& loop = EventLoop::current();
    response.headers.clear();
    response.fields.clear();
    response.body.clear();
    response.damage.clear();
    response.truncated = response.unwanted = false;
    response.sent_at = loop.time();
    response.connected = false;
    if (const auto no = refused.find(request.url.site_key()); no != refused.end())
      co_return fail(no->second, "it may not be asked");
    response.connected = true;
    const std::string url = request.url.href();
    PageAnswer reply{.status = 404, .body = "not here"};
    if (request.url.path_and_query() == "/robots.txt") {
      const auto rules = robots.find(request.url.site_key());
      if (rules != robots.end()) reply = {.body = rules->second, .type = "text/plain"};
      const auto latency = robots_latency.find(request.url.site_key());
      if (latency != robots_latency.end()) reply.latency = latency->second;
    } else {
      log.push_back({loop.time(), loop.clock().wall_now(), std::string(to_string(request.method)), url, request.headers,
                     request.body});
      const auto page = pages.find(url);
      if (page != pages.end()) reply = page->second;
      if (answer) {
        if (auto given = answer(request)) reply = std::move(*given);
      }
    }
    most_under_way = std::max(most_under_way, ++under_way);
    const bool never = reply.latency > request.timeout;
    try {
      co_await sleep(never ? request.timeout : reply.latency);
    } catch (...) {
      --under_way;
      throw;
    }
    --under_way;
    if (never) co_return std::unexpected(Error{Errc::timeout, "no answer in time"});
    if (reply.error) {
      response.connected = reply.connects;
      co_return std::unexpected(Error{*reply.error, "the test says so"});
    }
    response.answered_at = loop.time();
    response.status = reply.status;
    response.headers.content_type = reply.type;
    response.fields.emplace_back("Content-Type", reply.type);
    for (const auto& [name, value] : reply.headers) {
      response.fields.emplace_back(name, value);
      if (name == "Location") response.headers.location = value;
      if (name == "Retry-After") response.headers.retry_after = value;
      if (name == "ETag") response.headers.etag = value;
      if (name == "Last-Modified") response.headers.last_modified = value;
      if (name == "Set-Cookie") response.headers.set_cookie = value;
    }
    response.body = reply.status == 304 || request.method == HttpMethod::head ? std::string{} : reply.body;
    response.wire_bytes = response.body.size();
    co_return Result<void>{};
  }

  // The URLs that were asked for, in their order.
  std::vector<std::string> asked() const {
    std::vector<std::string> urls;
    for (const Seen& seen : log) urls.push_back(seen.url);
    return urls;
  }
  std::size_t times_asked(std::string_view url) const {
    std::size_t times = 0;
    for (const Seen& seen : log) times += seen.url == url ? 1 : 0;
    return times;
  }
};

// A processor whose answers a test says.
class TestProcessor final : public Processor {
 public:
  using Answer = std::function<Coro<VisitAnswer>(const PageCall&)>;
  TestProcessor(ProcessorDescription description, Answer answer)
      : description_(std::move(description)), answer_(std::move(answer)) {}
  Coro<Result<ProcessorDescription>> describe() override { co_return description_; }
  Coro<VisitAnswer> process(const PageCall& call) override { return answer_(call); }
  std::size_t capacity() const override { return 2; }
  Coro<void> close() override { co_return; }

 private:
  ProcessorDescription description_;
  Answer answer_;
};

// A store whose thread never decides how long something takes in virtual time: who wants to know whether it has been
// written waits for it.
class PromptPageStore : public PageStore {
 public:
  explicit PromptPageStore(std::unique_ptr<PageStore> store) : store_(std::move(store)) {}
  void submit(PageBatch batch) override { store_->submit(std::move(batch)); }
  Result<void> flush() override { return store_->flush(); }
  std::uint64_t begin_flush() override {
    const std::uint64_t flush = store_->begin_flush();
    (void)store_->flush();
    return flush;
  }
  bool flushed(std::uint64_t flush) const override { return store_->flushed(flush); }
  std::size_t backlog() const override { return 0; }
  std::optional<Error> failure() const override { return store_->failure(); }
  void on_feed(std::function<void()> told) override { store_->on_feed(std::move(told)); }
  Result<std::vector<ProjectRecord>> projects() override { return store_->projects(); }
  Result<std::vector<ProjectVersion>> versions(ProjectId project, std::size_t most) override {
    return store_->versions(project, most);
  }
  Result<std::optional<ProjectVersion>> version(ProjectId project, std::int64_t number) override {
    (void)store_->flush();
    return store_->version(project, number);
  }
  ProjectId next_project_id() override { return store_->next_project_id(); }
  Result<std::vector<HostRow>> hosts() override { return store_->hosts(); }
  Result<void> scan_known(ProjectId project, const std::function<bool(const KnownRow&)>& visit) override {
    return store_->scan_known(project, visit);
  }
  Result<std::vector<PageRecord>> pages(std::span<const PageId> ids) override { return store_->pages(ids); }
  Result<void> scan_pages(ProjectId project, PageId after,
                          const std::function<bool(const PageRecord&)>& visit) override {
    return store_->scan_pages(project, after, visit);
  }
  Result<std::optional<PageRecord>> find_page(ProjectId project, std::string_view name) override {
    return store_->find_page(project, name);
  }
  Result<void> scan_results(ProjectId project, const std::optional<ResultPlace>& after,
                            const std::function<bool(const ResultRow&)>& visit) override {
    return store_->scan_results(project, after, visit);
  }
  Result<std::uint64_t> count_results(ProjectId project) override { return store_->count_results(project); }
  Result<std::vector<FeedRow>> read_feed(ProjectId project, std::int64_t after, std::size_t most) override {
    return store_->read_feed(project, after, most);
  }
  Result<std::vector<FeedRow>> read_feed_back(ProjectId project, std::int64_t before, std::size_t most,
                                              std::size_t most_bytes) override {
    return store_->read_feed_back(project, before, most, most_bytes);
  }
  Result<std::vector<RoundRecord>> rounds(ProjectId project, std::size_t most) override {
    (void)store_->flush();
    return store_->rounds(project, most);
  }
  Result<std::vector<SinkRow>> sinks(ProjectId project) override { return store_->sinks(project); }
  Result<void> close() override { return store_->close(); }

 private:
  std::unique_ptr<PageStore> store_;
};

// What a project's file says, as JSON. Errors fail the test.
inline PageEngine::Draft draft_of(const std::string& json) {
  const auto text = JsonText::parse(json);
  EXPECT_TRUE(text) << json;
  JsonErrors errors;
  PageEngine::Draft draft{
      .definition = read_project(text->root(errors)), .text = json, .source = {}, .script = {}, .note = {}};
  EXPECT_FALSE(errors) << (errors ? errors.error().message : "");
  return draft;
}

struct SimulatedProjects {
  SimulatedProjects() {
    options.hosts.user_agent = options.hosts.product_token = "argiope";
    options.reads_on_threads = false;
  }
  ~SimulatedProjects() {
    web.answer = nullptr;  // what it looks at was the test's, and is gone by now
    if (engine) stop();
  }

  // Opens what the store has, and begins to visit.
  PageEngine& begin() {
    if (!store) store = std::make_unique<PromptPageStore>(std::move(*open_page_store(":memory:")));
    engine = std::make_unique<PageEngine>(options, *store);
    const auto opened = engine->open(backend.clock().wall_now());
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    running = loop.create_task(work(), "engine");
    pass(Duration{});
    return *engine;
  }
  // Ends it as Ctrl-C does.
  void stop(bool at_once = false) {
    engine->stop(at_once);
    loop.run_until_complete(await_end());
    engine.reset();
  }
  void pass(Duration span) { loop.run_until_complete(rest(span)); }
  // Until the project has no round, at most a day.
  void finish_round(const std::string& name) { loop.run_until_complete(end_of_round(name)); }
  std::vector<ResultRow> results(ProjectId project) {
    std::vector<ResultRow> rows;
    EXPECT_TRUE(store->flush());
    EXPECT_TRUE(store->scan_results(project, std::nullopt, [&](const ResultRow& row) {
      rows.push_back(row);
      return true;
    }));
    return rows;
  }
  std::optional<PageRecord> page(ProjectId project, std::string_view name) {
    EXPECT_TRUE(store->flush());
    auto found = store->find_page(project, name);
    EXPECT_TRUE(found);
    return found ? *found : std::nullopt;
  }

  VirtualBackend backend{WallTime{std::chrono::hours{24} * 20'000}};
  EventLoop loop{backend};
  PageWeb web;
  PageEngineOptions options;
  std::unique_ptr<PageStore> store;
  std::unique_ptr<PageEngine> engine;
  Task<void> running;
  // Of a store that fails: the run may end with an error, which is kept.
  bool may_fail = false;
  std::optional<Error> failed;

 private:
  Coro<void> work() {
    const auto ended = co_await engine->run(web, nullptr);
    if (!ended) failed = ended.error();
    EXPECT_TRUE(ended || may_fail) << (ended ? "" : ended.error().message);
  }
  Coro<void> await_end() { co_await running; }
  Coro<void> rest(Duration span) { co_await sleep(span); }
  Coro<void> end_of_round(std::string name) {
    const TimePoint limit = loop.time() + std::chrono::hours{24};
    while (loop.time() < limit) {
      const auto status = engine->project(name);
      if (status && !status->round) co_return;
      co_await sleep(std::chrono::milliseconds{100});
    }
    ADD_FAILURE() << "the round of " << name << " did not end within a day";
  }
};

}  // namespace argiope
