// Servers without sockets, in virtual time, and a HostDesk before them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/io_backend.hpp"
#include "argiope/async/sync.hpp"
#include "project/fetch/internal/host_desk.hpp"

namespace argiope {

struct DeskReply {
  int status = 200;
  std::string body{};
  std::vector<std::pair<std::string, std::string>> fields{};
  Duration latency = std::chrono::milliseconds{50};
  std::optional<Errc> error{};  // instead of an answer
  bool connected = true;        // with an error: whether it came after the connection
  std::string damage{};
  bool truncated = false;
  HttpChallenged challenged = HttpChallenged::none;
};

struct DeskRequest {
  TimePoint at;
  TimePoint ended = kNever;
  std::string site, target, url;
  HttpMethod method{};
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string body{};
  Duration timeout{};
  std::shared_ptr<const HttpWay> way{};
  bool is_anonymous = false;

  bool verifies() const { return way == nullptr || way->verifies; }
  std::string field(std::string_view name) const {
    for (const auto& [its_name, value] : headers) {
      if (its_name == name) return value;
    }
    return {};
  }
};

class DeskWeb final : public HttpTransport {
 public:
  // What is not said is 404 for robots.txt, and else 200.
  std::function<DeskReply(const DeskRequest&)> reply;
  std::vector<DeskRequest> log;
  std::size_t under_way = 0, most_under_way = 0;

  Coro<Result<void>> send(const HttpRequest& request, HttpResponse& response) override {
    EventLoop& loop = EventLoop::current();
    struct Leaves {
      std::size_t& under_way;
      ~Leaves() { --under_way; }
    } const leaves{under_way};
    most_under_way = std::max(most_under_way, ++under_way);
    response = {};
    response.sent_at = loop.time();
    const std::size_t entry = log.size();
    log.push_back({.at = loop.time(),
                   .site = request.url.site_key(),
                   .target = std::string(request.url.path_and_query()),
                   .url = request.url.href(),
                   .method = request.method,
                   .headers = request.headers,
                   .body = request.body,
                   .timeout = request.timeout,
                   .way = request.way,
                   .is_anonymous = request.is_anonymous});
    DeskReply answer{.status = request.url.pathname() == "/robots.txt" ? 404 : 200};
    if (reply) answer = reply(log[entry]);
    response.connected = answer.connected;
    const bool is_late = answer.latency >= request.timeout;
    co_await sleep(is_late ? request.timeout : answer.latency);
    log[entry].ended = loop.time();
    if (is_late) co_return fail(Errc::timeout, "no answer in time");
    if (answer.error) co_return fail(*answer.error, "made up");
    response.status = answer.status;
    for (const auto& [name, value] : answer.fields) {
      if (name == "Location") response.headers.location = value;
      if (name == "Retry-After") response.headers.retry_after = value;
      if (name == "ETag") response.headers.etag = value;
      if (name == "Last-Modified") response.headers.last_modified = value;
      if (name == "Content-Type") response.headers.content_type = value;
      if (name == "Set-Cookie") {
        if (!response.headers.set_cookie.empty()) response.headers.set_cookie += '\n';
        response.headers.set_cookie += value;
      }
    }
    if (request.keep_fields) response.fields = answer.fields;
    response.body = request.method == HttpMethod::head ? "" : answer.body;
    response.truncated = answer.truncated;
    response.damage = answer.damage;
    response.challenged = answer.challenged;
    co_return Result<void>{};
  }

  std::vector<DeskRequest> of(std::string_view site) const {
    std::vector<DeskRequest> found;
    std::ranges::copy_if(log, std::back_inserter(found), [&](const DeskRequest& one) { return one.site == site; });
    return found;
  }
  std::size_t count(std::string_view target) const {
    return static_cast<std::size_t>(std::ranges::count(log, target, &DeskRequest::target));
  }
};

// Numbers for sites, from 1, as a store would give them.
class DeskHosts {
 public:
  std::uint32_t operator()(const Url& url) { return number(url.site_key()); }
  std::uint32_t number(const std::string& site) {
    return numbers_.try_emplace(site, numbers_.size() + 1).first->second;
  }

 private:
  std::map<std::string, std::uint32_t> numbers_;
};

class DeskResolver final : public Resolver {
 public:
  std::map<std::string, std::string, std::less<>> addresses;
  Coro<Result<AddressList>> resolve(std::string_view host) override {
    co_await sleep(std::chrono::milliseconds{5});
    const auto found = addresses.find(host);
    if (found == addresses.end()) co_return fail(Errc::dns, std::string(host));
    co_return AddressList{*IpAddress::parse(found->second)};
  }
};

// A desk, and callers who ask it as an engine does: again when they are told to, or when the time has come.
struct DeskRig {
  explicit DeskRig(CrawlOptions how = {}) : options(std::move(how)) {}

  HostDesk& open(Resolver* resolver = nullptr) {
    desk = std::make_unique<HostDesk>(options, loop, web, resolver, 1);
    desk->on_free([this](std::uint32_t host) {
      ++told[host];
      free.set();
      free.clear();
    });
    desk->number_by([this](const Url& url) { return hosts(url); });
    return *desk;
  }
  std::uint32_t host_of(std::string_view url) { return hosts(*Url::parse(url)); }

  // What begin() says when it does not say "wait" any more, or at `deadline`.
  Coro<HostDesk::Answer> begun(std::string url, bool asks_robots = true, TimePoint deadline = kNever,
                               bool verifies = true) {
    const Url parsed = *Url::parse(url);
    for (;;) {
      HostDesk::Answer answer = desk->begin(hosts(parsed), parsed, asks_robots, verifies);
      if (answer.leave != HostDesk::Leave::wait || loop.time() >= deadline) co_return answer;
      Handle alarm;
      const TimePoint until = std::min(answer.until, deadline);
      if (until != kNever) {
        alarm = loop.call_at(until, [this] {
          free.set();
          free.clear();
        });
      }
      co_await free.wait();
      alarm.cancel();
    }
  }
  // Asks for a page of a host that has been entered.
  Coro<Result<void>> sent(std::string url, HttpMethod method = HttpMethod::get) {
    HttpRequest request;
    request.url = *Url::parse(url);
    request.method = method;
    HttpResponse response;
    const Result<void> sent = co_await web.send(request, response);
    desk->end(hosts(request.url), sent, response);
    co_return sent;
  }
  // Both; what begin() said.
  Coro<HostDesk::Answer> visit(std::string url, bool asks_robots = true) {
    HostDesk::Answer answer = co_await begun(url, asks_robots);
    if (answer.leave == HostDesk::Leave::go) (void)co_await sent(url);
    co_return answer;
  }
  template <class Body>
  auto run(Body body) {
    return loop.run_until_complete(body());
  }
  void close() { loop.run_until_complete(desk->close()); }

  CrawlOptions options;
  VirtualBackend backend;
  EventLoop loop{backend};
  DeskWeb web;
  DeskHosts hosts;
  std::map<std::uint32_t, int> told;
  Event free;
  std::unique_ptr<HostDesk> desk;
};

}  // namespace argiope
