// A SyntheticWeb behind a transport without sockets: what the crawler does to hosts that lie, drip or stay silent,
// under virtual time.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/io_backend.hpp"
#include "argiope/crawl/local_crawl.hpp"
#include "site/internal/synthetic_web.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {

// One request as the server saw it.
struct ServedRequest {
  TimePoint at;
  TimePoint ended;
  std::uint32_t host;
  std::string target;
  int status;
  bool head = false;
  std::string cookie{};
  std::string authorization{};
  std::vector<std::pair<std::string, std::string>> headers{};
  bool anonymous = false;
};

class SimulatedTransport final : public HttpTransport {
 public:
  explicit SimulatedTransport(SyntheticWeb& web) : web_(web) {
    for (std::uint32_t host = 0; host < web.origins().size(); ++host) hosts_[web.origins()[host]] = host;
  }

  Coro<Result<void>> send(const HttpRequest& request, HttpResponse& response) override {
    using Behaviour = SyntheticReply::Behaviour;
    EventLoop& loop = EventLoop::current();
    const auto found = hosts_.find(request.url.site_key());
    response.connected = false;
    response.sent_at = loop.time();
    if (found == hosts_.end()) co_return fail(Errc::dns, request.url.site_key());
    SyntheticRequest asked{
        .host = found->second, .head = request.method == HttpMethod::head, .target = request.url.path_and_query()};
    for (const auto& [name, value] : request.headers) {
      if (name == "If-None-Match") asked.if_none_match = value;
      if (name == "If-Modified-Since") asked.if_modified_since = value;
      if (name == "Cookie") asked.cookie = value;
      if (name == "Authorization") asked.authorization = value;
    }
    asked.post = request.method == HttpMethod::post;
    asked.body = request.body;
    response.sent_at = loop.time();
    response.connected = false;
    if (const auto trouble = trouble_connecting(found->second)) {
      if (*trouble == Errc::timeout) co_await sleep(std::min(request.timeout, connect_timeout));
      co_return fail(*trouble, "connect " + std::string(request.url.host()));
    }
    response.connected = true;
    const std::size_t entry = log.size();
    SyntheticReply reply = before_reply ? before_reply(asked, loop.time()) : web_.reply(asked);
    log.push_back({loop.time(), kNever, found->second, std::string(asked.target), reply.status, asked.head,
                   std::string(asked.cookie), std::string(asked.authorization), request.headers, request.is_anonymous});
    const Duration transfer = reply.behaviour == Behaviour::drip
                                  ? from_seconds(static_cast<double>(reply.body.size()) / reply.drip_bytes_per_second)
                                  : Duration{};
    const bool never = reply.behaviour == Behaviour::silent || reply.latency + transfer > request.timeout;
    co_await sleep(never ? request.timeout : reply.latency + transfer);
    log[entry].ended = loop.time();
    if (never) co_return fail(Errc::timeout, "no answer in time");
    switch (reply.behaviour) {
      case Behaviour::reset:
      case Behaviour::closed:
      case Behaviour::cut: co_return fail(Errc::network, "connection closed");
      case Behaviour::garbage: co_return fail(Errc::protocol, "not HTTP");
      default: break;
    }
    response.headers.clear();
    response.status = reply.status;
    response.headers.content_type = reply.content_type;
    for (const auto& [name, value] : reply.headers) {
      if (name == "Location") response.headers.location = value;
      if (name == "Refresh") response.headers.refresh = value;
      if (name == "Retry-After") response.headers.retry_after = value;
      if (name == "ETag") response.headers.etag = value;
      if (name == "Last-Modified") response.headers.last_modified = value;
      if (name == "X-Robots-Tag") response.headers.robots_tag = value;
      if (name == "Set-Cookie") add_line(response.headers.set_cookie, value);
      if (name == "WWW-Authenticate") add_line(response.headers.authenticate, value);
      if (name == "Content-Encoding") co_return fail(Errc::too_large, "decompression bomb");  // nothing else is encoded
    }
    response.fields.clear();
    if (request.keep_fields) response.fields = reply.headers;
    response.unwanted = !asked.head && !request.wanted_types.empty() && reply.status != 304 &&
                        !has_media_type(reply.content_type, request.wanted_types);
    response.body = asked.head || response.unwanted ? std::string{} : std::move(reply.body);
    response.truncated = reply.behaviour == Behaviour::flood;
    response.wire_bytes = response.body.size();
    co_return Result<void>{};
  }

  std::vector<ServedRequest> log;
  // The error there is instead of a connection to a host, when set.
  std::function<std::optional<Errc>(std::uint32_t host, TimePoint)> connect_fails;
  Duration connect_timeout = std::chrono::seconds{10};
  // Takes the web's place in answering, when set.
  std::function<SyntheticReply(const SyntheticRequest&, TimePoint)> before_reply;

 private:
  static void add_line(std::string& lines, const std::string& line) {
    if (!lines.empty()) lines += '\n';
    lines += line;
  }
  std::optional<Errc> trouble_connecting(std::uint32_t host) const {
    if (web_.has(host, WebFeature::mute)) return Errc::timeout;
    return connect_fails ? connect_fails(host, EventLoop::current().time()) : std::nullopt;
  }

  SyntheticWeb& web_;
  std::map<std::string, std::uint32_t> hosts_;
};

// A crawl of a synthetic web, from its first host on, in virtual time.
struct Simulation {
  explicit Simulation(const SyntheticWebOptions& web_options) : Simulation(web_options, origins(web_options.hosts)) {}
  Simulation(const SyntheticWebOptions& web_options, std::vector<std::string> names)
      : web(web_options, std::move(names)), transport(web), store(*open_url_store(":memory:")) {
    for (const std::string& origin : web.origins()) options.seeds.push_back(*Url::parse(origin + "/"));
    options.user_agent = options.product_token = "argiope";
  }

  // Hosts that look public: their limits are those of public hosts.
  static std::vector<std::string> origins(std::uint32_t hosts) {
    std::vector<std::string> names;
    for (std::uint32_t host = 0; host < hosts; ++host) names.push_back("http://host" + std::to_string(host) + ".test");
    return names;
  }

  CrawlReport run() {
    Crawler crawler(options, *store, 1);
    running = &crawler;
    EXPECT_TRUE(crawler.open(backend.clock().wall_now()));
    auto body = [&]() -> Coro<void> {
      Handle limit;
      if (options.max_time) limit = loop.call_later(*options.max_time, [&] { crawler.stop("max_time"); });
      logged_in = co_await crawler.log_in(transport);
      co_await crawler.work(0, transport, resolver);
      limit.cancel();
      cookies = crawler.cookies(loop.clock().wall_now());
    };
    loop.run_until_complete(body());
    running = nullptr;
    return *crawler.report();
  }

  VirtualBackend backend;
  EventLoop loop{backend};
  SyntheticWeb web;
  SimulatedTransport transport;
  std::unique_ptr<UrlStore> store;
  CrawlOptions options;
  Resolver* resolver = nullptr;      // what hosts' addresses are; null: nobody knows
  const Crawler* running = nullptr;  // during run()
  Result<void> logged_in;            // of the last run
  std::vector<Cookie> cookies;       // at its end
};

}  // namespace argiope
