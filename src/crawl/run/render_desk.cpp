#include "crawl/run/render_desk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/web/http_client.hpp"
#include "crawl/render/internal/part_rules.hpp"
#include "crawl/run/host_desk.hpp"
#include "crawl/run/host_questions.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {
namespace {

constexpr Duration kTurnPoll = std::chrono::milliseconds{10};  // between two looks whether a host may be asked

// As every request to the host has them; where the page is of another site, only what says nothing of who we are.
void take_host_fields(const HostPolicy& policy, HttpRequest& request) {
  for (const auto& [name, value] : policy.headers) {
    if (request.is_anonymous && !equals_lower(name, "user-agent")) continue;
    std::erase_if(request.headers, [&](const auto& field) { return equals_ignoring_case(field.first, name); });
    request.headers.emplace_back(name, value);
  }
}

UrlPatterns compiled(const std::vector<std::string>& patterns) {
  auto set = UrlPatterns::compile(patterns);
  if (!set) throw std::invalid_argument(set.error().message);
  return std::move(*set);
}

}  // namespace

Rendering::Rendering(const CrawlOptions& options)
    : only(compiled(options.render_only)), exclude(compiled(options.exclude)) {}

// A page's requests while it is rendered. Lives in render().
class Crawler::Shard::RenderDesk::Parts final : public PageParts {
 public:
  Parts(RenderDesk& desk, Visit& visit) : desk_(desk), visit_(visit) {}

  Coro<Result<void>> fetch(HttpRequest asked, PartKind kind, HttpResponse& response) override {
    if (auto begun = budget_.begin(); !begun) co_return begun;
    const Url& page = visit_.request.url;
    auto part = part_request(page, std::move(asked), kind);
    if (!part) co_return std::unexpected(std::move(part.error()));
    HttpRequest& request = part->request;
    if (desk_.rendering_->exclude.match(request.url.href())) co_return fail(Errc::refused, "excluded from the crawl");
    if (!request.is_anonymous) {
      std::string field = joined_cookies(part->cookies, desk_.shared_.session.cookie_field(request.url, desk_.wall()));
      if (!field.empty()) request.headers.emplace_back("Cookie", std::move(field));
    }
    PartCache& cache = desk_.rendering_->cache;
    const bool may_be_known = PartCache::is_for(request, kind);
    if (may_be_known && cache.find(request, desk_.loop().time(), response)) {
      budget_.end(response);
      co_return Result<void>{};
    }
    auto fetched = co_await desk_.fetch_part(*visit_.ticket.host, turns_, request, may_be_known, response);
    budget_.end(response);
    co_return fetched;
  }

  std::vector<Cookie> cookies() const override { return desk_.cookies_of(visit_.request.url); }

 private:
  RenderDesk& desk_;
  Visit& visit_;
  PartTurns turns_;
  PartBudget budget_{desk_.options_.render_limits};
};

Crawler::Shard::RenderDesk::RenderDesk(Core& core, HostDesk& desk, HostQuestions& questions)
    : Part(core), desk_(desk), questions_(questions) {}

// The crawl cannot do without what it was asked to render with.
Coro<void> Crawler::Shard::RenderDesk::open() {
  rendering_.emplace(options_);
  if (auto opened = co_await options_.renderer->open(); !opened) shared_.fail(std::move(opened.error()));
}

bool Crawler::Shard::RenderDesk::is_worth_rendering(const Visit& visit) const {
  const HttpResponse& response = visit.page->response;
  const bool is_page = visit.ticket.task->purpose == Purpose::page && visit.request.method == HttpMethod::get;
  return is_page && response.status == 200 && !response.unwanted && response.damage.empty() &&
         visit.page->view.is_html() && (rendering_->only.empty() || rendering_->only.match(visit.request.url.href()));
}

Coro<std::optional<Error>> Crawler::Shard::RenderDesk::render(Visit& visit) {
  Host& host = *visit.ticket.host;
  ++host.rendering;
  const Leaving ends_rendering([&host] { --host.rendering; });
  Parts parts(*this, visit);
  auto made = co_await options_.renderer->render(visit.request, visit.page->response, parts, {});
  if (!made) {
    ShardCounters::add(counters_.render_errors);
    co_return Error{made.error().code, "rendering: " + made.error().message};
  }
  ShardCounters::add(counters_.rendered);
  const bool has_new_cookies =
      shared_.session.take_cookies(visit.request.url, cookies_of(visit.request.url), std::move(made->cookies), wall());
  const HttpResponse& fetched = visit.page->response;
  auto rendered = std::make_unique<RenderedVisit>();
  rendered->fetched_type = fetched.headers.content_type;
  rendered->own_urls = std::move(made->own_urls);
  rendered->wants_cookies = made->reloads && made->led_to.empty() && has_new_cookies;
  if (auto target = Url::parse(made->led_to);
      target && target->without_fragment() != visit.request.url.without_fragment()) {
    rendered->led_to = std::move(made->led_to);
  }
  rendered->page = std::make_shared<FetchedPage>();
  rendered->page->response = rendered_response(fetched, *made);
  rendered->page->begin(visit.request.url);
  visit.rendered = std::move(rendered);
  co_return std::nullopt;
}

void Crawler::Shard::RenderDesk::take_rendered(Visit& visit) {
  visit.page->view.end();
  visit.page = std::move(visit.rendered->page);
}

void Crawler::Shard::RenderDesk::note_rendered(Visit& visit, UrlOutcome& outcome) {
  outcome.content_type = visit.rendered->fetched_type;
  if (!visit.rendered->led_to.empty()) visit.page->response.headers.location = visit.rendered->led_to;
}

// --- a page's requests ----------------------------------------------------------------------------------------------

std::vector<Cookie> Crawler::Shard::RenderDesk::cookies_of(const Url& url) const {
  return cookies_for_host(shared_.session.cookies(wall()), url);
}

// Waits until the host may be asked for one thing more. Its robots.txt is read before, if need be.
// Errors: why it is not asked.
Coro<Result<void>> Crawler::Shard::RenderDesk::await_turn(Host& host, bool is_own, const Url& url) {
  for (;;) {
    const TimePoint now = loop().time();
    if (host.lost) co_return fail(host.lost->cause.code, fmt::format("{}: {}", host.site, host.lost->cause.message));
    if (rendering_->is_silent(host.site, now)) {
      co_return fail(Errc::network, fmt::format("{}: no connection a moment ago", host.site));
    }
    // A visit that renders its page keeps its ticket, and what its page asks for takes its place.
    const std::size_t under_way = frontier_.running(host) - host.rendering + host.parts_asked;
    if (host.is_held() || (!is_own && under_way >= host.limits.concurrency)) {
      co_await sleep(kTurnPoll);
    } else if (questions_.are_due(host, now)) {
      co_await questions_.ask(host);
    } else if (host.robots && !host.robots->allowed(url.path_and_query())) {
      co_return fail(Errc::refused, "robots.txt");
    } else if (host.rest_until > now) {
      co_await sleep_until(host.rest_until);
    } else {
      co_return Result<void>{};
    }
  }
}

// A place among the requests at one address, given back by what is returned.
Coro<Leaving> Crawler::Shard::RenderDesk::enter_address(const Host& host) {
  const auto address = host.address && classify(*host.address) == AddressClass::public_ ? host.address : std::nullopt;
  if (!address) co_return Leaving([] {});
  struct Waits {
    AddressGate& gate;
    const IpAddress address;
    const std::shared_ptr<Event> freed = std::make_shared<Event>();
    const std::shared_ptr<bool> is_told = std::make_shared<bool>(false);
    bool goes_on = false;
    // A page that is done with does not keep the place to itself that it was called for.
    ~Waits() {
      if (*is_told && !goes_on) gate.wake(address);
    }
  };
  for (;;) {
    Waits waits{shared_.addresses, *address};
    const bool entered = shared_.addresses.enter(
        *address, [loop = core_.loop, alive = std::weak_ptr(waits.freed), is_told = waits.is_told] {
          const auto freed = alive.lock();
          if (freed == nullptr) return false;
          *is_told = true;
          loop->call_soon_threadsafe([freed] { freed->set(); });
          return true;
        });
    if (entered) co_return Leaving([this, entered_at = *address] { shared_.addresses.leave(entered_at); });
    co_await waits.freed->wait();
    waits.goes_on = true;
  }
}

// To its own host a page asks in the place of its visit; of another nothing else is asked meanwhile.
Leaving Crawler::Shard::RenderDesk::begin_part(Host& host, bool is_own) {
  if (!is_own) return desk_.begin_question(host);
  ++host.parts_asked;
  return Leaving([&host] { --host.parts_asked; });
}

// One request at a time, at the pace of the host.
Coro<Result<void>> Crawler::Shard::RenderDesk::fetch_part(Host& page_host, PartTurns& turns, HttpRequest& request,
                                                          bool may_be_known, HttpResponse& response) {
  Host& host = frontier_.host_of(request.url);
  ++host.pins;
  const Leaving unpins([&host] { --host.pins; });
  const bool is_own = &host == &page_host;
  Lock& turn = is_own ? turns.own : rendering_->turn_of(host.site);
  const auto held = co_await turn.scoped();
  const auto place = co_await turns.places.scoped();
  if (may_be_known && rendering_->cache.find(request, loop().time(), response)) co_return Result<void>{};
  take_host_fields(*host.policy, request);
  request.body_limit = options_.size_limit;
  request.timeout = host.policy->timeout;
  desk_.prepare(request);
  Result<void> sent;
  int challenges = 0;
  do {
    sent = co_await ask_for_part(host, is_own, request, response);
    if (!sent) co_return sent;
    ShardCounters::add(counters_.parts);
    if (response.new_cookies || response.challenged != HttpChallenged::none)
      shared_.session.note(request, response, wall());
    desk_.show(ExchangeKind::part, request, response);
  } while (response.challenged == HttpChallenged::again && ++challenges <= kMostPartChallenges);
  const TimePoint now = loop().time();
  if (may_be_known) rendering_->cache.put(request, response, now);
  co_return sent;
}

Coro<Result<void>> Crawler::Shard::RenderDesk::ask_for_part(Host& host, bool is_own, HttpRequest& request,
                                                            HttpResponse& response) {
  for (;;) {
    if (auto may_ask = co_await await_turn(host, is_own, request.url); !may_ask) co_return may_ask;
    const Leaving ends_part = begin_part(host, is_own);
    const Leaving leaves_address = co_await enter_address(host);
    const TimePoint start = loop().time();
    if (host.rest_until > start) continue;  // another has asked while this waited for the address
    desk_.take_turn(host, start);
    auto sent = co_await desk_.send(host, request, response);
    const TimePoint now = loop().time();
    core_.last_fetch = now;
    rest_after_part(host, response.sent_at, now);
    if (response.connected) count_bytes(response);
    if (!sent && !response.connected && !is_own && sent.error().code != Errc::refused) {
      rendering_->note_silent(host.site, now);
    }
    co_return sent;
  }
}

// As be_polite(), whatever else may be asked of the host at the same time: the frontier has not counted this start.
void Crawler::Shard::RenderDesk::rest_after_part(Host& host, TimePoint sent_at, TimePoint now) {
  desk_.take_turn(host, sent_at);
  desk_.rest_for_delay(host, now);
}

}  // namespace argiope
