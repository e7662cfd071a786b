#include "argiope/web/http_client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <unordered_map>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "base/internal/printable.hpp"
#include "web/http/connector.hpp"
#include "web/http/http2_origins.hpp"
#include "web/http/http_request_head.hpp"
#include "web/http/internal/http_response_reader.hpp"
#include "web/http/quota_use.hpp"

namespace argiope {
namespace {

constexpr std::size_t kBufferBytes = 64 * 1024;
constexpr int kMostInterim = 100;  // 1xx responses before the real one
// Of one request by HTTP/2, each on another connection: by a server that answers nobody, and by one that answers some.
constexpr int kMostRefusals = 4;
constexpr int kMostRefusalsBesides = 20;
constexpr int kProxyWantsLogin = 407;
// A body's memory is kept for the next page up to this size.
constexpr std::size_t kKeptBodyBytes = 1024 * 1024;

}  // namespace

class HttpClient::Impl {
 public:
  Impl(HttpClientOptions options, AsioBackend& backend, Resolver& resolver, const AddressGuard& guard)
      : options_(std::move(options)),
        connector_(options_, backend, resolver, guard),
        request_head_(options_),
        origins_(std::make_shared<Http2Origins>(options_)),
        shared_buffer_(options_.byte_rate == nullptr ? kBufferBytes : options_.byte_rate->piece(), '\0') {}

  ~Impl() { origins_->close(); }

  Coro<Result<void>> send(const HttpRequest& request, HttpResponse& response) {
    for (std::string* body : {&response.body, &response.wire.coded_body}) {
      if (body->capacity() > kKeptBodyBytes) std::string{}.swap(*body);
    }
    response.connected = false;
    response.sent_at = EventLoop::current().time();
    if (request.is_anonymous && connector_.shows_certificate_to(request.url)) {
      co_return fail(Errc::refused,
                     fmt::format("{}: it would be shown the client certificate", request.url.site_key()));
    }
    Timeout timeout(saturating_add(response.sent_at, request.timeout));
    Result<void> result;
    bool timed_out = false;
    try {
      result = co_await timeout.run(may_be_http2(request.url) ? exchange_by_tls(request, response, timeout)
                                                              : exchange(request, response, timeout, nullptr));
    } catch (const TimeoutError&) {
      timed_out = true;
    }
    if (timed_out) {
      co_return fail(Errc::timeout, fmt::format("{}: {} within {:g} s", request.url.site_key(),
                                                response.connected ? "no complete response" : "no connection",
                                                to_seconds(request.timeout)));
    }
    co_return result;
  }

  std::size_t idle_connections() const noexcept { return idle_.size() + origins_->idle(); }
  std::uint64_t connections_opened() const noexcept { return connector_.opened(); }
  void close_idle() {
    by_key_.clear();
    idle_.clear();
    origins_->close_idle();
  }

 private:
  using IdleList = std::list<ConnectionPtr>;
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };

  // By HTTP/1.1. `first`: a new connection to use; null: whichever.
  Coro<Result<void>> exchange(const HttpRequest& request, HttpResponse& response, Timeout& deadline,
                              ConnectionPtr first) {
    response.wire_bytes = response.quota_bytes = 0;
    std::size_t proxies_failed = 0;
    for (bool again = false;; again = true) {
      const bool may_keep = !again && (is_idempotent(request.method) || request.is_repeatable);
      Route route = connector_.route_to(request);
      if (auto allowed = connector_.check(request.url, route); !allowed) co_return allowed;
      ConnectionPtr connection = std::move(first);
      if (connection == nullptr && may_keep) connection = take_idle(route.key);
      if (connection == nullptr) {
        auto opened = co_await connector_.open(request, route);
        if (!opened) co_return std::unexpected(std::move(opened.error()));
        connection = std::move(*opened);
      }
      response.connected = true;
      bool answered = false;
      Result<bool> reusable = co_await exchange_on(*connection, request, response, deadline, answered);
      if (reusable) {
        if (connection->asked_proxy != nullptr && response.status == kProxyWantsLogin) {
          response.connected = false;
          route.failed(*connection->asked_proxy, EventLoop::current().time());
          if (++proxies_failed < route.proxies()) continue;
          co_return std::unexpected(wants_login(*connection->asked_proxy).error);
        }
        if (*reusable) put_idle(std::move(connection));
        co_return Result<void>{};
      }
      const Error& error = reusable.error();
      // A kept connection that the server had closed meanwhile says nothing about the request.
      if (connection->reused && !answered && error.code == Errc::network) continue;
      co_return fail(error.code, fmt::format("{}: {}", request.url.site_key(), error.message));
    }
  }

  // --- by HTTP/2, where the server chooses it

  bool may_be_http2(const Url& url) const noexcept {
    return options_.versions != HttpVersions::http1 && url.scheme() == "https";
  }

  Coro<Result<void>> exchange_by_tls(const HttpRequest& request, HttpResponse& response, Timeout& deadline) {
    response.wire_bytes = response.quota_bytes = 0;
    const bool may_repeat = is_idempotent(request.method) || request.is_repeatable;
    int refusals = 0;
    for (bool again = false;;) {
      Route route = connector_.route_to(request);
      if (auto allowed = connector_.check(request.url, route); !allowed) co_return allowed;
      Http2Origins::OriginPtr origin = origins_->at(route.key);
      if (origin->speaks_http1) {
        if (options_.versions == HttpVersions::http2) co_return std::unexpected(speaks_no_http2(request.url));
        co_return co_await exchange(request, response, deadline, nullptr);
      }
      Http2Origins::Shared connection = origins_->take(*origin);
      if (connection == nullptr && origin->is_opening) {
        if (auto waited = co_await Http2Origins::wait(std::move(origin)); !waited) co_return waited;
        continue;
      }
      if (connection == nullptr) {
        auto opened = co_await open_by_tls(request, route, origin);
        if (!opened) co_return std::unexpected(std::move(opened.error()));
        if (*opened != nullptr) co_return co_await exchange(request, response, deadline, std::move(*opened));
        continue;
      }
      const bool is_kept = connection->has_answered();
      auto ended = co_await exchange_on_stream(connection, request, response, deadline);
      switch (ended.end) {
        case Http2End::whole: co_return Result<void>{};
        case Http2End::wants_http1: continue;
        case Http2End::unprocessed:
          // One that has no more room has only said so late.
          if (connection->has_room()) connection->retire();
          if (++refusals < (connection->has_answered() ? kMostRefusalsBesides : kMostRefusals)) continue;
          ended.error = {Errc::network, fmt::format("the server refused the HTTP/2 stream {} times{}{}", refusals,
                                                    ended.error.message.empty() ? "" : ": ", ended.error.message)};
          break;
        default: break;
      }
      // It may have looked at the request, and answers it by the other version alone.
      if (connection->wants_http1() && may_repeat && ended.error.code == Errc::network) continue;
      // The same as for a kept connection of HTTP/1.1.
      if (ended.lost && !ended.answered && is_kept && may_repeat && !std::exchange(again, true) &&
          ended.error.code == Errc::network) {
        continue;
      }
      co_return fail(ended.error.code, fmt::format("{}: {}", request.url.site_key(), ended.error.message));
    }
  }

  static Error speaks_no_http2(const Url& url) {
    return {Errc::protocol,
            fmt::format("{}: the server speaks no HTTP/2, and nothing else is to be spoken", url.site_key())};
  }

  // A connection of HTTP/1.1; null: one of HTTP/2, which is the origin's now.
  Coro<Result<ConnectionPtr>> open_by_tls(const HttpRequest& request, Route& route, Http2Origins::OriginPtr origin) {
    Http2Origins::Opening opening(origin);
    route.offer = options_.versions == HttpVersions::http2 ? TlsOffer::http2 : TlsOffer::both;
    auto opened = co_await connector_.open(request, route);
    if (!opened) {
      if (options_.versions == HttpVersions::http2 && opened.error().code == Errc::tls) {
        opened.error().message += "; HTTP/2 alone was offered";
      }
      opening.fail(opened.error());
      co_return opened;
    }
    if (route.key != origin->key) origin = origins_->at(route.key);  // another proxy
    if ((*opened)->speaks_http2()) {
      origins_->add(origin, std::move(*opened));
      co_return nullptr;
    }
    origin->speaks_http1 = true;
    if (options_.versions != HttpVersions::http2) co_return opened;
    co_return std::unexpected(speaks_no_http2(request.url));
  }

  struct StreamEnd {
    Http2End end;
    Error error;
    bool lost;
    bool answered;
  };

  Coro<StreamEnd> exchange_on_stream(Http2Origins::Shared connection, const HttpRequest& request,
                                     HttpResponse& response, Timeout& deadline) {
    response.connected = true;
    response.remote = connection->remote();
    std::string head = take_string();
    request_head_.write(request, head);
    keep_request(request, head, false, response.wire.request);
    auto decoder = take_decoder();
    Http2Stream stream(response, *decoder, limits_for(request), request.method);
    stream.deadline = &deadline;
    stream.quota = request.quota;
    struct Hold {
      Http2Connection& connection;
      Http2Stream& stream;
      ~Hold() { connection.stop(stream, stream.deadline->expired()); }
    };
    {
      const Hold hold{*connection, stream};
      response.sent_at = EventLoop::current().time();
      connection->start(stream, head);
      co_await stream.over.wait();
    }
    give_string(std::move(head));
    give_decoder(std::move(decoder));
    origins_->trim(options_.max_idle - std::min(options_.max_idle, idle_.size()));
    co_return StreamEnd{stream.end, std::move(stream.error), stream.lost, stream.answered};
  }

  HttpReaderLimits limits_for(const HttpRequest& request) const noexcept {
    return {options_.header_limit, options_.header_fields_limit, request.body_limit,
            request.keep_fields,   request.wanted_types,         request.keep_wire};
  }

  // --- one exchange

  // Whether the connection may be used again.
  Coro<Result<bool>> exchange_on(ClientConnection& connection, const HttpRequest& request, HttpResponse& response,
                                 Timeout& deadline, bool& answered) {
    response.remote = connection.remote;
    std::string head = take_string();
    request_head_.write(request, head, connection.asked_proxy);
    keep_request(request, head, connection.asked_proxy != nullptr, response.wire.request);
    response.sent_at = EventLoop::current().time();
    Result<void> written = co_await connection.write_all(head);
    give_string(std::move(head));
    if (!written) co_return std::unexpected(std::move(written.error()));

    const HttpReaderLimits limits = limits_for(request);
    auto decoder = take_decoder();
    std::string leftover;  // of a head that came in pieces
    Result<bool> result = false;
    for (int interim = 0;; ++interim) {
      HttpResponseReader reader(response, *decoder, limits, request.method);
      auto read = co_await read_response(connection, reader, leftover, request, response, deadline, answered);
      if (!read) {
        result = std::unexpected(std::move(read.error()));
        break;
      }
      result = reader.reusable() && leftover.empty();
      if (!reader.interim()) break;
      if (interim == kMostInterim) {
        result = fail(Errc::protocol, "too many interim responses");
        break;
      }
    }
    give_decoder(std::move(decoder));
    co_return result;
  }

  // As a server gets it: what a proxy is told of us is nobody else's business.
  void keep_request(const HttpRequest& request, std::string_view sent, bool by_proxy, std::string& kept) const {
    kept.clear();
    if (!request.keep_wire) return;
    if (by_proxy) {
      request_head_.write(request, kept);
    } else {
      kept = sent;
    }
  }

  Coro<Result<void>> read_response(ClientConnection& connection, HttpResponseReader& reader, std::string& leftover,
                                   const HttpRequest& request, HttpResponse& response, Timeout& deadline,
                                   bool& answered) {
    if (!leftover.empty()) {
      auto used = reader.feed(leftover);
      if (!used) co_return std::unexpected(std::move(used.error()));
      leftover.erase(0, *used);
    }
    while (!reader.done()) {
      const auto count = co_await connection.read_some(shared_buffer_);
      if (!count) co_return reader.feed_end(&count.error());
      if (*count == 0) co_return reader.feed_end();
      const std::string_view received(shared_buffer_.data(), *count);
      if (!std::exchange(answered, true)) response.answered_at = EventLoop::current().time();
      response.wire_bytes += received.size();
      // The received bytes are in a buffer that others use too: nothing may suspend before they are taken.
      const bool in_pieces = !leftover.empty();
      if (in_pieces) leftover.append(received);
      auto used = reader.feed(in_pieces ? std::string_view{leftover} : received);
      if (!used) co_return std::unexpected(std::move(used.error()));
      if (in_pieces) {
        leftover.erase(0, *used);
      } else {
        leftover.assign(received.substr(*used));
      }
      take_from_quota(request.quota, *count, response);
      if (!reader.done() && is_used_up(request.quota)) co_return std::unexpected(over_quota());
      if (options_.byte_rate != nullptr) co_await pay(*count, deadline);
    }
    co_return Result<void>{};
  }

  // Waits for what has come; the server has the time that takes.
  Coro<void> pay(std::size_t bytes, Timeout& deadline) {
    const TimePoint now = EventLoop::current().time();
    const TimePoint until = options_.byte_rate->pay(bytes, now);
    if (until <= now) co_return;
    deadline.reschedule(saturating_add(deadline.when(), until - now));
    co_await sleep_until(until);
  }

  // --- what is kept for the next exchange

  ConnectionPtr take_idle(std::string_view key) {
    auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    const TimePoint now = EventLoop::current().time();
    ConnectionPtr connection;
    while (connection == nullptr && !found->second.empty()) {
      const IdleList::iterator newest = found->second.back();
      found->second.pop_back();
      if (now - (*newest)->idle_since < options_.keep_alive && (*newest)->is_quiet()) connection = std::move(*newest);
      idle_.erase(newest);
    }
    if (found->second.empty()) by_key_.erase(found);
    if (connection != nullptr) connection->reused = true;
    return connection;
  }

  void put_idle(ConnectionPtr connection) {
    const TimePoint now = EventLoop::current().time();
    connection->idle_since = now;
    idle_.push_back(std::move(connection));
    by_key_[idle_.back()->key].push_back(std::prev(idle_.end()));
    while (!idle_.empty() && (idle_.size() + origins_->idle() > options_.max_idle ||
                              now - idle_.front()->idle_since >= options_.keep_alive)) {
      close_oldest();
    }
  }

  void close_oldest() {
    auto found = by_key_.find(idle_.front()->key);
    std::erase(found->second, idle_.begin());
    if (found->second.empty()) by_key_.erase(found);
    idle_.pop_front();
  }

  std::unique_ptr<ContentDecoder> take_decoder() {
    if (decoders_.empty()) return std::make_unique<ContentDecoder>();
    auto decoder = std::move(decoders_.back());
    decoders_.pop_back();
    return decoder;
  }
  void give_decoder(std::unique_ptr<ContentDecoder> decoder) {
    if (decoders_.size() < kKeptSpares) decoders_.push_back(std::move(decoder));
  }
  std::string take_string() {
    if (strings_.empty()) return {};
    std::string text = std::move(strings_.back());
    strings_.pop_back();
    text.clear();
    return text;
  }
  void give_string(std::string text) {
    if (strings_.size() < kKeptSpares) strings_.push_back(std::move(text));
  }

  static constexpr std::size_t kKeptSpares = 16;

  HttpClientOptions options_;
  Connector connector_;
  const HttpRequestHead request_head_;
  const std::shared_ptr<Http2Origins> origins_;
  std::string shared_buffer_;
  IdleList idle_;  // oldest first
  std::unordered_map<std::string, std::vector<IdleList::iterator>, Hash, std::equal_to<>> by_key_;
  std::vector<std::unique_ptr<ContentDecoder>> decoders_;
  std::vector<std::string> strings_;
};

HttpClient::HttpClient(HttpClientOptions options, AsioBackend& backend, Resolver& resolver, const AddressGuard& guard)
    : impl_(std::make_unique<Impl>(std::move(options), backend, resolver, guard)) {}
HttpClient::~HttpClient() = default;

Coro<Result<void>> HttpClient::send(const HttpRequest& request, HttpResponse& response) {
  return impl_->send(request, response);
}
std::size_t HttpClient::idle_connections() const noexcept { return impl_->idle_connections(); }
std::uint64_t HttpClient::connections_opened() const noexcept { return impl_->connections_opened(); }
void HttpClient::close_idle() { impl_->close_idle(); }

Coro<Result<void>> send_following_redirects(HttpTransport& transport, HttpRequest& request, HttpResponse& response,
                                            int max_redirects, std::function<void()> after_each) {
  for (int hops = 0;; ++hops) {
    auto sent = co_await transport.send(request, response);
    if (sent && after_each) after_each();
    if (sent && !response.damage.empty()) {
      co_return fail(Errc::network, fmt::format("{}: {}", request.url.site_key(), response.damage));
    }
    if (!sent || !is_redirect(response.status) || response.headers.location.empty()) co_return sent;
    if (hops == max_redirects) {
      co_return fail(Errc::not_found, fmt::format("{}: more than {} redirects", request.url.href(), max_redirects));
    }
    auto next = Url::parse(response.headers.location, &request.url);
    if (!next || (next->scheme() != "http" && next->scheme() != "https")) {
      co_return fail(Errc::not_found, fmt::format("{}: redirect to {}, which is no http URL", request.url.href(),
                                                  in_quotes(without_credentials(response.headers.location))));
    }
    next->strip_credentials();
    request.url = std::move(*next);
  }
}

}  // namespace argiope
