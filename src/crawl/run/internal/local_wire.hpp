// A thread's tools to ask the net, on this machine's sockets, clock and chance: a loop, a resolver and a client. Crawls
// have one for each of their threads, `argiope project run` has one; `argiope serve` has its own loop, and on it a
// client for its projects.
#pragma once

#include <memory>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/crawl/local_crawl.hpp"
#include "argiope/web/detail/dns.hpp"
#include "argiope/web/http_client.hpp"
#include "argiope/web/url.hpp"

namespace argiope {

// A URL given that names a private address, or a private name that a proxy is to look up, is permission to connect
// there, and only there.
void permit_named(AddressGuard& guard, const Url& url);

// Of options and setup what a client needs: who it is, by which proxies and versions it asks, how fast it reads. The
// certificate is for the seeds' servers.
HttpClientOptions wire_options(const CrawlOptions& options, const CrawlSetup& setup);

// A resolver and a client.
// Lifetime: what it is given outlives it.
class WireOnLoop {
 public:
  WireOnLoop(AsioBackend& backend, const HttpClientOptions& http, const AddressGuard& guard);
  WireOnLoop(const WireOnLoop&) = delete;

  HttpClient& client() noexcept { return client_; }
  // Asks nothing about hosts whose names only a proxy should look up.
  Resolver& resolver() noexcept { return host_resolver_; }

 private:
  class ResolverBesideProxies final : public Resolver {
   public:
    ResolverBesideProxies(const ProxySettings& proxies, Resolver& resolver) : proxies_(proxies), resolver_(resolver) {}
    Coro<Result<AddressList>> resolve(std::string_view host) override;

   private:
    const ProxySettings& proxies_;
    Resolver& resolver_;
  };

  // Destroyed from the last to the first.
  CaresResolver resolver_;
  ResolverBesideProxies host_resolver_;
  HttpClient client_;
};

// The same with a loop.
// Lifetime: what it is given outlives it.
class LocalWire {
 public:
  LocalWire(const Clock& clock, const HttpClientOptions& http, const AddressGuard& guard)
      : backend_(clock), loop_(backend_), wire_(backend_, http, guard) {}
  LocalWire(const LocalWire&) = delete;

  AsioBackend& backend() noexcept { return backend_; }
  EventLoop& loop() noexcept { return loop_; }
  HttpClient& client() noexcept { return wire_.client(); }
  Resolver& resolver() noexcept { return wire_.resolver(); }

 private:
  // Destroyed from the last to the first.
  AsioBackend backend_;
  EventLoop loop_;
  WireOnLoop wire_;
};

}  // namespace argiope
