#include "argiope/crawl/local_crawl.hpp"

#include <algorithm>
#include <exception>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/web/dns.hpp"
#include "argiope/web/http_client.hpp"
#include "web/internal/host_address.hpp"

namespace argiope {
namespace {

// Asks nothing about hosts whose names only a proxy should look up.
class ResolverBesideProxies final : public Resolver {
 public:
  ResolverBesideProxies(const ProxySettings& proxies, Resolver& resolver) : proxies_(proxies), resolver_(resolver) {}
  Coro<Result<AddressList>> resolve(std::string_view host) override {
    if (proxies_.looks_up_here(host)) co_return co_await resolver_.resolve(host);
    co_return fail(Errc::dns, "looked up by a proxy");
  }

 private:
  const ProxySettings& proxies_;
  Resolver& resolver_;
};

// What one thread of a crawl runs on. The members are destroyed from the last to the first.
struct Part {
  Part(const Clock& clock, const HttpClientOptions& http, const AddressGuard& guard,
       std::unique_ptr<HttpTransport> other)
      : backend(clock),
        loop(backend),
        resolver(ResolverOptions{}, backend),
        host_resolver(http.proxies, resolver),
        client(http, backend, resolver, guard),
        instead(std::move(other)) {}
  HttpTransport& transport() noexcept { return instead != nullptr ? *instead : client; }
  Coro<void> work(Crawler& crawler, std::size_t index) {
    return instead != nullptr ? crawler.work(index, *instead, nullptr) : crawler.work(index, client, &host_resolver);
  }
  AsioBackend backend;
  EventLoop loop;
  CaresResolver resolver;
  ResolverBesideProxies host_resolver;  // the crawler's own
  HttpClient client;
  std::unique_ptr<HttpTransport> instead;  // of the client
};

// A URL given that names a private address, or a private name that a proxy is to look up, is permission to connect there, and
// only there.
void permit(AddressGuard& guard, const Url& url) {
  guard.permit_name(url.host());
  if (is_loopback(url)) {
    guard.permit_loopback();
  } else if (const auto address = address_of_host(url.host())) {
    guard.permit(*address);
  }
}

// Of those that have no port of their own for http also where they may be with TLS.
std::vector<std::string> https_sites(const std::vector<Url>& seeds) {
  std::vector<std::string> sites;
  for (const Url& seed : seeds) {
    if (seed.scheme() == "https") {
      sites.push_back(seed.site_key());
    } else if (seed.port().empty()) {
      sites.push_back("https://" + std::string(seed.host()));
    }
  }
  return sites;
}

HttpClientOptions http_options(const CrawlOptions& options, const CrawlSetup& setup) {
  HttpClientOptions http;
  http.user_agent = options.user_agent;
  http.headers_for = options.headers_for;
  http.connect_timeout = options.connect_timeout;
  http.extra_ca_file = setup.ca_file;
  http.proxies = setup.proxies;
  if (setup.rate_limit > 0) http.byte_rate = std::make_shared<ByteRate>(setup.rate_limit);
  http.client_certificate = setup.client_certificate;
  if (!setup.client_certificate.certificate.empty()) http.client_certificate_for = https_sites(options.seeds);
  http.max_idle = std::max<std::size_t>(http.max_idle, options.concurrency);
  return http;
}

}  // namespace

struct LocalCrawl::State {
  State(CrawlOptions options, const CrawlSetup& setup, std::unique_ptr<UrlStore> its_store)
      : guard(setup.allow_private, setup.private_advice),
        http(http_options(options, setup)),
        transport(setup.transport),
        max_time(options.max_time),
        store(std::move(its_store)),
        parts(setup.threads) {
    for (const Url& seed : options.seeds) permit(guard, seed);
    if (options.login) permit(guard, options.login->page);
    crawler.emplace(std::move(options), *store, std::random_device{}(), setup.threads);
  }

  std::unique_ptr<Part> make_part() const {
    return std::make_unique<Part>(clock, http, guard, transport ? transport() : nullptr);
  }
  Coro<void> first_part(Part& part, Coro<void> beside);

  SystemClock clock;
  AddressGuard guard;
  const HttpClientOptions http;
  const std::function<std::unique_ptr<HttpTransport>()> transport;
  const std::optional<Duration> max_time;
  const std::unique_ptr<UrlStore> store;
  const std::size_t parts;
  std::optional<Crawler> crawler;
  std::exception_ptr failed;  // what ran beside
  bool logged_in = false;
};

LocalCrawl::LocalCrawl(std::unique_ptr<State> state) : state_(std::move(state)) {}
LocalCrawl::~LocalCrawl() = default;
Crawler& LocalCrawl::crawler() noexcept { return *state_->crawler; }
UrlStore& LocalCrawl::store() noexcept { return *state_->store; }

Result<std::unique_ptr<LocalCrawl>> LocalCrawl::open(CrawlOptions options, CrawlSetup setup) {
  if (auto good = check(setup.client_certificate); !good) return std::unexpected(std::move(good.error()));
  UrlStoreOptions stored{.sync = setup.sync, .before_commit = Crawler::keep_all(options.sinks)};
  // Cookies of who has logged in somewhere are as good as the password.
  stored.is_private = options.login || !options.credentials.empty() || !options.given_cookies.empty();
  auto store = open_url_store(setup.database, stored);
  if (!store) return std::unexpected(std::move(store.error()));
  auto state = std::make_unique<State>(std::move(options), setup, std::move(*store));
  if (auto opened = state->crawler->open(state->clock.wall_now()); !opened) {
    return std::unexpected(std::move(opened.error()));
  }
  return std::unique_ptr<LocalCrawl>(new LocalCrawl(std::move(state)));
}

Coro<void> LocalCrawl::State::first_part(Part& part, Coro<void> beside) {
  EventLoop& loop = part.loop;
  Handle time_limit;
  if (max_time) time_limit = loop.call_later(*max_time, [this] { crawler->stop("max_time", false); });
  Task<void> companion;
  if (beside) {
    companion = loop.create_task(
        [](State& state, Coro<void> work) -> Coro<void> {
          try {
            co_await std::move(work);
          } catch (const CancelledError&) {
            throw;
          } catch (...) {
            state.failed = std::current_exception();
            state.crawler->stop("error", true);
          }
        }(*this, std::move(beside)),
        "beside the crawl", Start::eagerly);
  }
  co_await part.work(*crawler, 0);
  time_limit.cancel();
  if (companion && !companion.done()) {
    companion.cancel();
    try {
      co_await companion;
    } catch (const CancelledError&) {
      // asked for
    }
  }
}

Result<void> LocalCrawl::log_in() {
  if (std::exchange(state_->logged_in, true)) return {};
  const auto part = state_->make_part();
  auto logged_in = part->loop.run_until_complete(state_->crawler->log_in(part->transport()));
  part->client.close_idle();
  return logged_in;
}

Result<CrawlReport> LocalCrawl::run(Coro<void> beside) {
  State& state = *state_;
  if (auto logged_in = log_in(); !logged_in) return std::unexpected(std::move(logged_in.error()));
  const TimePoint start = state.clock.now();
  {
    std::vector<std::unique_ptr<Part>> parts;
    for (std::size_t i = 0; i < state.parts; ++i) {
      parts.push_back(state.make_part());
    }
    std::vector<std::jthread> threads;
    try {
      for (std::size_t i = 1; i < parts.size(); ++i) {
        threads.emplace_back([&crawler = *state.crawler, &part = *parts[i], i] {
          part.loop.run_until_complete(part.work(crawler, i));
          part.client.close_idle();
        });
      }
      Part& first = *parts.front();
      first.loop.run_until_complete(state.first_part(first, std::move(beside)));
      first.client.close_idle();
    } catch (...) {
      // A thread that could not be started, say. Those that run are joined next, and without the first part they would
      // never find that nothing is left.
      state.crawler->stop("error", true);
      throw;
    }
  }
  const Duration elapsed = state.clock.now() - start;
  if (state.failed) std::rethrow_exception(std::exchange(state.failed, nullptr));
  auto report = state.crawler->report();
  if (report) report->elapsed = elapsed;
  return report;
}

Result<CrawlReport> crawl(CrawlOptions options, CrawlSetup setup) {
  auto opened = LocalCrawl::open(std::move(options), std::move(setup));
  if (!opened) return std::unexpected(std::move(opened.error()));
  auto report = (*opened)->run();
  if (auto closed = (*opened)->store().close(); !closed) return std::unexpected(std::move(closed.error()));
  return report;
}

}  // namespace argiope
