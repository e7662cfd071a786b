#include "argiope/crawl/local_crawl.hpp"

#include <algorithm>
#include <exception>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/web/http_client.hpp"
#include "crawl/run/internal/local_wire.hpp"
#include "web/text/internal/lower_case.hpp"

namespace argiope {
namespace {

// The things that one thread of a crawl runs on.
struct Part {
  Part(const Clock& clock, const HttpClientOptions& http, const AddressGuard& guard,
       std::unique_ptr<HttpTransport> other)
      : wire(clock, http, guard), instead(std::move(other)) {}
  HttpTransport& transport() noexcept { return instead != nullptr ? *instead : wire.client(); }
  Coro<void> work(Crawler& crawler, std::size_t index) {
    return instead != nullptr ? crawler.work(index, *instead, nullptr)
                              : crawler.work(index, wire.client(), &wire.resolver());
  }
  LocalWire wire;
  std::unique_ptr<HttpTransport> instead;  // of the client
};

// Whether a header field is one that lets in who sends it. One that is taken for it though it is none does no harm.
bool lets_in(std::string_view name) {
  const std::string lower = in_lower_case(name);
  constexpr std::string_view kWords[] = {"auth", "cookie", "token", "key", "secret", "session", "password"};
  return std::ranges::any_of(kWords, [&](std::string_view word) { return lower.contains(word); });
}

// Whether servers are shown something that others do not have. Their answers then, and the cookies of who has logged
// in, are nobody else's business either.
bool has_secrets(const CrawlOptions& options, const CrawlSetup& setup) {
  if (options.login || !options.credentials.empty() || !options.given_cookies.empty()) return true;
  if (!setup.client_certificate.certificate.empty()) return true;
  if (std::ranges::any_of(options.headers_for, [](const HeaderFor& field) { return lets_in(field.name); })) return true;
  return std::ranges::any_of(options.hosts, [](const HostSettings& host) {
    return host.headers && std::ranges::any_of(*host.headers, [](const auto& field) { return lets_in(field.first); });
  });
}

}  // namespace

struct LocalCrawl::State {
  State(CrawlOptions options, const CrawlSetup& setup, std::unique_ptr<UrlStore> its_store)
      : guard(setup.allow_private, setup.private_advice),
        http(wire_options(options, setup)),
        transport(setup.transport),
        max_time(options.max_time),
        store(std::move(its_store)),
        parts(setup.threads) {
    for (const Url& seed : options.seeds) permit_named(guard, seed);
    if (options.login) permit_named(guard, options.login->page);
    for (const Url& sitemap : options.sitemap_urls) permit_named(guard, sitemap);
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
  stored.is_private = has_secrets(options, setup);
  auto store = open_url_store(setup.database, stored);
  if (!store) return std::unexpected(std::move(store.error()));
  auto state = std::make_unique<State>(std::move(options), setup, std::move(*store));
  if (auto opened = state->crawler->open(state->clock.wall_now()); !opened) {
    return std::unexpected(std::move(opened.error()));
  }
  return std::unique_ptr<LocalCrawl>(new LocalCrawl(std::move(state)));
}

Coro<void> LocalCrawl::State::first_part(Part& part, Coro<void> beside) {
  EventLoop& loop = part.wire.loop();
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
  auto logged_in = part->wire.loop().run_until_complete(state_->crawler->log_in(part->transport()));
  part->wire.client().close_idle();
  return logged_in;
}

Result<CrawlReport> LocalCrawl::run(Coro<void> beside) {
  State& state = *state_;
  // Where the crawl cannot begin, nobody has forgotten it.
  struct Closed {
    Coro<void>& beside;
    ~Closed() { beside.close(); }
  } const closed{beside};
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
          part.wire.loop().run_until_complete(part.work(crawler, i));
          part.wire.client().close_idle();
        });
      }
      Part& first = *parts.front();
      first.wire.loop().run_until_complete(state.first_part(first, std::move(beside)));
      first.wire.client().close_idle();
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
