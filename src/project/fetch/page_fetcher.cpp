// One page's way to its answer. Its settings of the request are gathered once (OrderedRequest), for all hops.
#include "project/fetch/internal/page_fetcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/web/detail/proxy.hpp"
#include "argiope/web/http_client.hpp"
#include "argiope/web/http_session.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/printable.hpp"
#include "crawl/hosts/internal/host_question.hpp"
#include "crawl/render/internal/part_rules.hpp"
#include "project/fetch/page_encoding.hpp"
#include "project/rules/internal/data_scheme.hpp"
#include "web/http/internal/http_date.hpp"
#include "web/http/internal/http_method_names.hpp"
#include "web/http/internal/reason_phrase.hpp"
#include "web/http/internal/validators.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {
namespace {

constexpr std::uint32_t kUsualPageRedirects = 5;
constexpr std::uint32_t kMostPageChallenges = 3;
constexpr Duration kStrangersPatience =
    std::chrono::seconds{10};              // with a host that is not the page's, until it lets a part in
constexpr std::uint32_t kMostReloads = 5;  // of a page whose script sets cookies and asks for it anew

using RequestFields = std::vector<std::pair<std::string, std::string>>;

template <class Value>
Value said_or(const Said<Value>& said, Value usual) {
  return said.value ? *said.value : std::move(usual);
}

bool has_named(const RequestFields& fields, std::string_view lower) {
  return std::ranges::any_of(fields, [&](const auto& field) { return equals_lower(field.first, lower); });
}

bool is_field_name(std::string_view name) {
  return !name.empty() && is_header_safe(name) && name.find_first_of(": \t") == std::string_view::npos;
}

// Null: none of its own.
Result<std::shared_ptr<const HttpWay>> way_of(const RequestSettings& said) {
  HttpWay way;
  way.verifies = said_or(said.verify_certificate, true);
  way.connect_timeout = said_or(said.connect_timeout, Duration{});
  way.is_direct = said.proxy.value && said.proxy.value->empty();
  if (said.proxy.value && !said.proxy.value->empty()) {
    auto proxy = Proxy::parse(*said.proxy.value);
    if (!proxy) return fail(Errc::invalid_input, fmt::format("request/proxy: {}", proxy.error().message));
    way.proxy = std::move(*proxy);
  }
  if (way == HttpWay{}) return nullptr;
  return std::make_shared<const HttpWay>(std::move(way));
}

RenderOptions wishes_of(const RequestSettings::Render& said) {
  return {.script = said.script,
          .script_at_start = said.at_start,
          .width = said.width,
          .height = said.height,
          .images = said.images};
}

struct OrderedRequest {
  HttpRequest request;  // without cookies and what proves who we are
  std::string cookie_field, authorization;
  std::vector<std::pair<std::string, std::string>> cookies;
  std::vector<PageLog> notes;
};

void take_request_fields(const RequestSettings& said, OrderedRequest& out) {
  for (const auto& [name, value] : said.headers) {
    if (!value.value) continue;
    if (is_clients_own(name)) {
      out.notes.push_back({"warning", fmt::format("request/headers/{}: is left out: only Argiope can say it",
                                                  printable(name, kMostQuoted))});
    } else if (!is_field_name(name) || !is_header_safe(*value.value)) {
      out.notes.push_back({"warning", fmt::format("request/headers/{}: is left out: no header can be so",
                                                  printable(name, kMostQuoted))});
    } else if (equals_lower(name, "cookie")) {
      out.cookie_field = *value.value;
    } else if (equals_lower(name, "authorization")) {
      out.authorization = *value.value;
    } else {
      out.request.headers.emplace_back(name, *value.value);
    }
  }
  for (const auto& [name, value] : said.cookies) {
    if (!value.value) continue;
    if (is_header_safe(name) && is_header_safe(*value.value)) {
      out.cookies.emplace_back(name, *value.value);
    } else {
      out.notes.push_back({"warning", fmt::format("request/cookies/{}: is left out: no cookie can be so",
                                                  printable(name, kMostQuoted))});
    }
  }
}

void take_validators(const FetchOrder& order, HttpRequest& request) {
  if (request.method != HttpMethod::get && request.method != HttpMethod::head) return;
  const auto add = [&](const Said<RequestSettings::Validator>& said, const std::string& last, std::string_view name,
                       std::string_view lower) {
    const RequestSettings::Validator validator = said_or(said, RequestSettings::Validator{});
    // The rendered page may have changed where the page itself has not.
    const std::string& text = validator.text.empty() && !order.settings.request.render.value ? last : validator.text;
    if (validator.sent && !text.empty() && is_header_safe(text) && !has_named(request.headers, lower))
      request.headers.emplace_back(name, text);
  };
  add(order.settings.request.etag, order.etag, "If-None-Match", "if-none-match");
  add(order.settings.request.last_modified, order.last_modified, "If-Modified-Since", "if-modified-since");
}

Result<OrderedRequest> ordered_request(const FetchOrder& order) {
  const RequestSettings& said = order.settings.request;
  OrderedRequest out;
  auto url = Url::parse(order.url);
  if (!url)
    return fail(Errc::invalid_input,
                fmt::format("{}: {}", in_quotes(without_credentials(order.url)), url.error().message));
  if (url->scheme() != "http" && url->scheme() != "https") {
    return fail(Errc::invalid_input,
                fmt::format("{}: only http, https and data are fetched", in_quotes(without_credentials(order.url))));
  }
  HttpRequest& request = out.request;
  request.url = std::move(*url);
  request.url.strip_fragment();
  request.body = said_or(said.body, std::string());
  const std::string method = said_or(said.method, std::string(said.body.value ? "POST" : "GET"));
  const auto known = http_method_in_any_case(method);
  if (!known) {
    return fail(Errc::invalid_input,
                fmt::format("request/method: {} is none of GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS",
                            in_quotes(method)));
  }
  request.method = *known;
  take_request_fields(said, out);
  // Credentials in the URL count where no header has some.
  if (std::string given = take_credentials(request.url); out.authorization.empty())
    out.authorization = std::move(given);
  if (said.body.value && !has_named(request.headers, "content-type")) {
    request.headers.emplace_back("Content-Type", "application/x-www-form-urlencoded");
  }
  take_validators(order, request);
  request.body_limit = order.body_limit;
  request.timeout = said_or(said.timeout, order.timeout);
  request.keep_fields = true;
  auto way = way_of(said);
  if (!way) return std::unexpected(std::move(way.error()));
  request.way = std::move(*way);
  return out;
}

// Appends to "a=1; b=2" those of `more` whose names are not there.
void add_cookies(std::string& cookies, std::string_view more) {
  const std::string before = cookies;
  const auto name_of = [](std::string_view pair) { return trim_space(pair.substr(0, pair.find('='))); };
  const auto is_semicolon = [](char c) { return c == ';'; };
  for_each_token(more, is_semicolon, [&](std::string_view pair) {
    bool is_there = false;
    for_each_token(before, is_semicolon,
                   [&](std::string_view known) { is_there = is_there || name_of(known) == name_of(pair); });
    if (is_there) return;
    cookies.append(cookies.empty() ? "" : "; ").append(trim_space(pair));
  });
}

// The cookies of one page's way: those that it was given, which are for its first host, and those that were set since.
class TripCookies {
 public:
  void give(const Url& url, const std::vector<std::pair<std::string, std::string>>& cookies, WallTime now,
            std::vector<PageLog>& notes) {
    for (const auto& [name, value] : cookies) {
      Cookie cookie{.name = name, .value = value, .domain = std::string(url.host()), .secure = url.scheme() == "https"};
      if (!sent().put(std::move(cookie), now)) {
        notes.push_back({"warning", fmt::format("request/cookies/{}: is left out: no cookie can be so",
                                                printable(name, kMostQuoted))});
      }
    }
  }
  void take(const Url& from, std::string_view set_cookie, WallTime now) {
    sent().take(from, set_cookie, now);
    if (!set_) set_.emplace();
    set_->take(from, set_cookie, now);
  }
  void put(const Cookie& cookie, WallTime now) {
    if (!sent().put(cookie, now)) return;
    if (!set_) set_.emplace();
    set_->put(cookie, now);
  }
  std::vector<Cookie> all(WallTime now) const { return sent_ ? sent_->all(now) : std::vector<Cookie>(); }
  std::string field_for(const Url& url, WallTime now) { return sent_ ? sent_->field_for(url, now) : std::string(); }
  // By name; of several of one name the last.
  RequestFields set_on_the_way(WallTime now) const {
    RequestFields found;
    if (!set_) return found;
    for (Cookie& cookie : set_->all(now)) {
      const auto known =
          std::ranges::find(found, cookie.name, [](const auto& one) -> const std::string& { return one.first; });
      if (known == found.end()) {
        found.emplace_back(std::move(cookie.name), std::move(cookie.value));
      } else {
        known->second = std::move(cookie.value);
      }
    }
    return found;
  }

 private:
  CookieJar& sent() {
    if (!sent_) sent_.emplace();
    return *sent_;
  }
  std::optional<CookieJar> sent_, set_;  // made when there is a first cookie: nearly no page has any
};

// Whether what proves who we are may go on from one to the other: to the same server, and to that server by TLS.
bool is_same_server(const Url& from, const Url& to) {
  if (from.host() != to.host()) return false;
  if (from.scheme() == to.scheme()) return from.effective_port() == to.effective_port();
  return from.scheme() == "http" && to.scheme() == "https" && from.port().empty() && to.port().empty();
}

class PageTrip {
 public:
  PageTrip(const FetchOrder& order, HttpTransport& transport, HostDesk& desk,
           const std::function<std::uint32_t(const Url&)>& host_of, PageRendering* rendering)
      : order_(order),
        transport_(transport),
        desk_(desk),
        host_of_(host_of),
        rendering_(rendering),
        loop_(EventLoop::current()) {}

  Coro<FetchedAnswer> run() {
    auto ordered = ordered_request(order_);
    if (!ordered) {
      if (const auto url = Url::parse(order_.url); url && url->scheme().starts_with("http"))
        desk_.give_back(host_of_(*url));
      co_return refuse(ordered.error());
    }
    ordered_ = std::move(*ordered);
    answer_.notes = std::move(ordered_.notes);
    HttpRequest& request = ordered_.request;
    host_ = host_of_(request.url);
    if (wants_rendering() && !can_render()) {
      desk_.give_back(host_);
      co_return refuse({Errc::refused, fmt::format("request/render: {}", rendering_ == nullptr ? PageRendering{}.why_not
                                                                                               : rendering_->why_not)});
    }
    began_ = loop_.time();
    deadline_ = saturating_add(began_, request.timeout);
    own_fields_ = std::move(request.headers);
    cookies_.give(request.url, ordered_.cookies, wall(), answer_.notes);
    for (;;) {
      co_await ask();
      if (!answer_.sent) co_return failed(answer_.sent.error());
      if (is_to_be_asked_again()) {
        ++challenges_;
      } else if (is_redirect(response_.status) && most_redirects() > 0) {
        if (const auto trouble = turn()) co_return failed(*trouble, "redirects");
      } else if (is_worth_rendering()) {
        if (const auto trouble = co_await render()) co_return not_rendered(*trouble);
        if (leads_to_) {
          if (const auto trouble = turn_to(*std::exchange(leads_to_, std::nullopt)))
            co_return failed(*trouble, "redirects");
        } else if (!is_reloaded_) {
          break;
        }
      } else {
        break;
      }
      const HostDesk::Answer entered = co_await desk_.enter(host_, request.url, asks_robots(), deadline_, verifies());
      if (entered.leave != HostDesk::Leave::go) co_return not_entered(entered);
    }
    co_return answered();
  }

 private:
  std::uint32_t most_redirects() const { return said_or(order_.settings.request.redirects, kUsualPageRedirects); }
  bool asks_robots() const { return said_or(order_.settings.request.robots, true); }
  bool verifies() const { return ordered_.request.way == nullptr || ordered_.request.way->verifies; }
  WallTime wall() const { return loop_.clock().wall_now(); }
  bool is_to_be_asked_again() const {
    return response_.challenged == HttpChallenged::again && challenges_ < kMostPageChallenges;
  }

  // The request at hand, of a host that has been entered. Leaves it.
  Coro<void> ask() {
    HttpRequest& request = ordered_.request;
    answer_.response.script_result_json.clear();  // of a page that has led here
    request.headers = own_fields_;
    if (std::string cookies = cookie_field(request.url); !cookies.empty())
      request.headers.emplace_back("Cookie", std::move(cookies));
    if (!ordered_.authorization.empty()) request.headers.emplace_back("Authorization", ordered_.authorization);
    request.is_anonymous = request.way != nullptr && request.way->may_be_heard(request.url);
    desk_.dress(host_, request);
    request.timeout = deadline_ - loop_.time();
    answer_.sent = co_await send(host_, request, response_);
    if (answer_.sent) take_cookies(request.url, response_);
  }

  // To a host that has been entered. Leaves it.
  Coro<Result<void>> send(std::uint32_t host, const HttpRequest& request, HttpResponse& response) {
    response.sent_at = loop_.time();
    response.connected = false;
    response.challenged = HttpChallenged::none;
    Result<void> sent;
    try {
      sent = co_await transport_.send(request, response);
    } catch (...) {
      // It may have been sent: the next one keeps its distance.
      desk_.end(host, fail(Errc::cancelled, "cancelled"), response);
      throw;
    }
    desk_.end(host, is_of_the_way(request, sent, response) ? fail(Errc::cancelled, "its own way leads nowhere") : sent,
              response);
    co_return sent;
  }

  // Whether there was no connection, and that says nothing of the host, which other pages ask in another way.
  static bool is_of_the_way(const HttpRequest& request, const Result<void>& sent, const HttpResponse& response) {
    const HttpWay* const way = request.way.get();
    if (way == nullptr || sent || response.connected) return false;
    return way->proxy || way->is_direct ||
           (way->connect_timeout > Duration::zero() && sent.error().code == Errc::timeout);
  }

  std::string cookie_field(const Url& url) {
    std::string cookies = ordered_.cookie_field;
    add_cookies(cookies, cookies_.field_for(url, wall()));
    if (order_.jar != nullptr) add_cookies(cookies, order_.jar->field_for(url, wall()));
    return cookies;
  }

  void take_cookies(const Url& from, const HttpResponse& response) {
    for_each_token(
        response.headers.set_cookie, [](char c) { return c == '\n'; },
        [&](std::string_view field) {
          cookies_.take(from, field, wall());
          if (order_.jar != nullptr) order_.jar->take(from, field, wall());
        });
  }

  // Turns the request to where the response at hand leads. Returns what is wrong with it, if anything.
  std::optional<Error> turn() {
    HttpRequest& request = ordered_.request;
    if (response_.headers.location.empty())
      return Error{Errc::protocol, fmt::format("HTTP {} does not say where to", response_.status)};
    auto next = Url::parse(response_.headers.location, &request.url);
    if (!next || (next->scheme() != "http" && next->scheme() != "https")) {
      return Error{Errc::protocol, fmt::format("redirect to {}, which is no http URL",
                                               in_quotes(without_credentials(response_.headers.location)))};
    }
    change_method(request);
    return turn_to(std::move(*next));
  }

  std::optional<Error> turn_to(Url next) {
    HttpRequest& request = ordered_.request;
    if (redirects_ == most_redirects())
      return Error{Errc::not_found, fmt::format("more than {}", counted(redirects_, "redirect"))};
    ++redirects_;
    next.strip_credentials();
    next.strip_fragment();
    if (!is_same_server(request.url, next)) {
      ordered_.authorization.clear();
      ordered_.cookie_field.clear();
      std::erase_if(own_fields_, [](const auto& field) { return equals_lower(field.first, "proxy-authorization"); });
    }
    request.url = std::move(next);
    host_ = host_of_(request.url);
    return std::nullopt;
  }

  // As browsers do (Fetch Standard, "HTTP-redirect fetch").
  void change_method(HttpRequest& request) {
    const int status = response_.status;
    const bool was_post = (status == 301 || status == 302) && request.method == HttpMethod::post;
    const bool is_other = status == 303 && request.method != HttpMethod::get && request.method != HttpMethod::head;
    if (was_post || is_other) make_plain(request);
  }

  void make_plain(HttpRequest& request) {
    request.method = HttpMethod::get;
    request.body.clear();
    std::erase_if(own_fields_, [](const auto& field) {
      constexpr std::string_view kOfBodies[] = {"content-type", "content-encoding", "content-language",
                                                "content-location"};
      return std::ranges::any_of(kOfBodies, [&](std::string_view name) { return equals_lower(field.first, name); });
    });
  }

  // --- rendering

  class Parts;

  bool wants_rendering() const { return order_.settings.request.render.value.has_value(); }
  bool can_render() const { return rendering_ != nullptr && rendering_->renderer != nullptr; }
  bool is_worth_rendering() const {
    return wants_rendering() && response_.status == 200 && !response_.truncated && response_.damage.empty() &&
           is_html_page(response_.headers.content_type, response_.body);
  }

  // The answer becomes what was rendered; or why it does not. Time for it is its own.
  Coro<std::optional<Error>> render();

  std::vector<Cookie> cookies_of_page() const {
    std::vector<Cookie> cookies = cookies_.all(wall());
    if (order_.jar != nullptr) {
      for (Cookie& cookie : order_.jar->all(wall())) cookies.push_back(std::move(cookie));
    }
    return cookies_for_host(std::move(cookies), ordered_.request.url);
  }

  FetchedAnswer not_rendered(const Error& error) {
    FetchedAnswer answer = failed({error.code, "rendering: " + error.message}, "render");
    answer.is_refused = error.code == Errc::invalid_input;  // its script is none the next time either
    return answer;
  }

  // --- what it comes to

  FetchedAnswer refuse(const Error& error) {
    answer_.response.url = without_credentials(order_.url);
    answer_.sent = std::unexpected(error);
    set_error(error, "refused");
    answer_.is_refused = true;
    return std::move(answer_);
  }
  // No usable answer to the request at hand.
  FetchedAnswer failed(const Error& error, std::string_view kind = {}) {
    if (answer_.sent) fill_in();
    finish();
    answer_.sent = std::unexpected(error);
    set_error(error, kind.empty() ? fetch_error_kind(error) : kind);
    answer_.is_refused = kind.empty() && is_refused_by_us(error);
    return std::move(answer_);
  }
  FetchedAnswer not_entered(const HostDesk::Answer& entered) {
    const std::string site = ordered_.request.url.site_key();
    answer_.sent = fail(Errc::refused, site);  // what came before is no answer of this host's
    switch (entered.leave) {
      case HostDesk::Leave::forbidden: return failed({Errc::refused, site + ": robots.txt forbids it"}, "robots");
      case HostDesk::Leave::lost: {
        FetchedAnswer answer = failed(entered.why);
        answer.is_refused = entered.is_refused;  // what robots.txt is answered with may be another thing later
        return answer;
      }
      default: return failed({Errc::timeout, fmt::format("{}: {}", site, entered.words)});
    }
  }
  FetchedAnswer answered() {
    fill_in();
    finish();
    PageResponse& page = answer_.response;
    const Error none{};
    if (response_.truncated) {
      page.body.clear();
      set_error({Errc::too_large, fmt::format("the body has more than {}", counted(order_.body_limit, "byte"))},
                "too_large");
    } else if (!response_.damage.empty()) {
      set_error({Errc::network, response_.damage}, "network");
    } else if (is_redirect(page.status) && most_redirects() > 0) {
      set_error({Errc::protocol, fmt::format("HTTP {}", page.status)}, "redirects");
    } else if (page.status == 304 && asks_whether_changed(ordered_.request)) {
      answer_.is_unchanged = true;
    } else if (page.status == 304) {
      set_error({Errc::protocol, std::string(kUnaskedNotModified)}, "status");
    } else if (page.status < 200 || page.status >= 400) {
      set_error({Errc::protocol, fmt::format("HTTP {} {}", page.status, reason_phrase(page.status))}, "status");
    } else {
      answer_.is_success = true;
    }
    if (!answer_.is_success && is_temporary(page.status))
      answer_.retry_after = parse_retry_after(response_.headers.retry_after, wall());
    return std::move(answer_);
  }

  void fill_in() {
    PageResponse& page = answer_.response;
    page.status = response_.status;
    page.headers = std::move(response_.fields);
    page.encoding = page_encoding(response_.headers.content_type, response_.body);
    page.body = std::move(response_.body);
    answer_.etag = std::move(response_.headers.etag);
    answer_.last_modified = std::move(response_.headers.last_modified);
  }
  void finish() {
    answer_.response.url = ordered_.request.url.href();
    answer_.response.cookies = cookies_.set_on_the_way(wall());
    answer_.response.took = loop_.time() - began_;
  }
  void set_error(const Error& error, std::string_view kind) {
    answer_.response.error_kind = kind;
    answer_.response.error_text = error.message;
  }

  const FetchOrder& order_;
  HttpTransport& transport_;
  HostDesk& desk_;
  const std::function<std::uint32_t(const Url&)>& host_of_;
  PageRendering* const rendering_;
  EventLoop& loop_;
  OrderedRequest ordered_;
  RequestFields own_fields_;  // of each request on the way
  TripCookies cookies_;
  HttpResponse response_;
  FetchedAnswer answer_;
  std::uint32_t host_ = 0;
  std::uint32_t redirects_ = 0;
  std::uint32_t challenges_ = 0;
  std::optional<Url> leads_to_;  // a page that was rendered, by its script
  std::uint32_t reloads_ = 0;
  bool is_reloaded_ = false;  // its script has set cookies, and wants it with them
  TimePoint began_{};
  TimePoint deadline_{};
};

// A page's requests while it is rendered: asked by the desk, with what the page's own requests are sent with.
class PageTrip::Parts final : public PageParts {
 public:
  explicit Parts(PageTrip& trip) : trip_(trip), book_(trip.rendering_->book), budget_(trip.rendering_->limits) {}

  Coro<Result<void>> fetch(HttpRequest asked, PartKind kind, HttpResponse& response) override {
    if (auto begun = budget_.begin(); !begun) co_return begun;
    auto part = part_request(trip_.ordered_.request.url, std::move(asked), kind);
    if (!part) co_return std::unexpected(std::move(part.error()));
    HttpRequest& request = part->request;
    request.body_limit = trip_.ordered_.request.body_limit;
    request.timeout = trip_.rendering_->part_timeout;
    const bool is_for_all = !take_own_fields(*part);
    request.way = trip_.ordered_.request.way;
    if (request.way != nullptr && request.way->may_be_heard(request.url)) request.is_anonymous = true;
    const bool may_be_known = is_for_all && request.way == nullptr && PartCache::is_for(request, kind);
    Result<void> fetched;
    if (!may_be_known || !book_.cache.find(request, trip_.loop_.time(), response))
      fetched = co_await fetch_in_turn(request, may_be_known, response);
    budget_.end(response);
    co_return fetched;
  }

  std::vector<Cookie> cookies() const override { return trip_.cookies_of_page(); }

 private:
  // Adds what tells servers who asks: it is this page's alone. False: nothing does.
  bool take_own_fields(PartRequest& part) const {
    HttpRequest& request = part.request;
    if (request.is_anonymous) return false;
    const std::size_t fields = request.headers.size();
    std::string cookies = part.cookies;
    const auto add = [&](std::string_view more) { cookies = joined_cookies(cookies, more); };
    add(trip_.cookies_.field_for(request.url, trip_.wall()));
    if (trip_.order_.jar != nullptr) add(trip_.order_.jar->field_for(request.url, trip_.wall()));
    if (is_same_server(trip_.ordered_.request.url, request.url)) {
      add(trip_.ordered_.cookie_field);
      for (const auto& [name, value] : trip_.own_fields_) {
        if (is_of_the_page_alone(name) || has_field(request, name)) continue;
        request.headers.emplace_back(name, value);
      }
      if (!trip_.ordered_.authorization.empty() && !has_field(request, "authorization")) {
        request.headers.emplace_back("Authorization", trip_.ordered_.authorization);
      }
    }
    if (!cookies.empty()) request.headers.emplace_back("Cookie", std::move(cookies));
    return request.headers.size() > fields;
  }

  static bool has_field(const HttpRequest& request, std::string_view name) {
    return std::ranges::any_of(request.headers,
                               [&](const auto& field) { return equals_ignoring_case(field.first, name); });
  }
  // About its body, or about what was known of it.
  static bool is_of_the_page_alone(std::string_view name) {
    return equals_ignoring_case(name.substr(0, 8), "content-") || equals_ignoring_case(name.substr(0, 3), "if-");
  }

  // One request at a time to the page's own host, and to each other host one of all pages.
  Coro<Result<void>> fetch_in_turn(HttpRequest& request, bool may_be_known, HttpResponse& response) {
    const std::uint32_t host = trip_.host_of_(request.url);
    const std::string site = request.url.site_key();
    const bool is_own = host == trip_.host_;
    Lock& turn = is_own ? turns_.own : book_.turn_of(site);
    const auto held = co_await turn.scoped();
    const auto place = co_await turns_.places.scoped();
    if (may_be_known && book_.cache.find(request, trip_.loop_.time(), response)) co_return Result<void>{};
    int challenges = 0;
    do {
      const TimePoint now = trip_.loop_.time();
      // The page does not wait for a stranger's host that is in trouble.
      if (!is_own && (book_.is_silent(site, now) || trip_.desk_.doing(host) == HostDesk::Doing::resting)) {
        co_return fail(Errc::network, fmt::format("{}: it rests", site));
      }
      const TimePoint patience = is_own ? kNever : saturating_add(now, kStrangersPatience);
      const HostDesk::Answer entered =
          co_await trip_.desk_.enter(host, request.url, trip_.asks_robots(), patience, trip_.verifies());
      if (entered.leave == HostDesk::Leave::forbidden) co_return fail(Errc::refused, "robots.txt");
      if (entered.leave != HostDesk::Leave::go) {
        if (!is_own) book_.note_silent(site, trip_.loop_.time());
        if (entered.leave == HostDesk::Leave::lost) co_return std::unexpected(entered.why);
        co_return fail(Errc::timeout, fmt::format("{}: {}", site, entered.words));
      }
      trip_.desk_.dress(host, request);
      if (auto sent = co_await trip_.send(host, request, response); !sent) {
        if (!is_own && !response.connected && request.way == nullptr && sent.error().code != Errc::refused)
          book_.note_silent(site, trip_.loop_.time());
        co_return sent;
      }
      if (!request.is_anonymous) trip_.take_cookies(request.url, response);
    } while (response.challenged == HttpChallenged::again && ++challenges <= kMostPartChallenges);
    if (may_be_known) book_.cache.put(request, response, trip_.loop_.time());
    co_return Result<void>{};
  }

  PageTrip& trip_;
  PartBook& book_;
  PartTurns turns_;
  PartBudget budget_;
};

Coro<std::optional<Error>> PageTrip::render() {
  const HttpRequest& request = ordered_.request;
  const TimePoint began = loop_.time();
  Parts parts(*this);
  auto made = co_await rendering_->renderer->render(request, response_, parts,
                                                    wishes_of(*order_.settings.request.render.value));
  deadline_ = saturating_add(deadline_, loop_.time() - began);
  if (!made) co_return std::move(made.error());
  const std::vector<Cookie> set = cookies_set_since(cookies_of_page(), std::move(made->cookies), request.url);
  for (const Cookie& cookie : set) cookies_.put(cookie, wall());
  answer_.response.script_result_json = std::move(made->script_result);
  response_ = rendered_response(response_, *made);
  if (auto next = Url::parse(made->led_to);
      next && next->without_fragment() != request.url.without_fragment() && most_redirects() > 0) {
    if (next->scheme() != "http" && next->scheme() != "https") co_return std::nullopt;
    make_plain(ordered_.request);
    leads_to_ = std::move(*next);
  }
  const bool may_reload = request.method == HttpMethod::get && made->reloads && !leads_to_ && !set.empty();
  is_reloaded_ = may_reload && ++reloads_ <= kMostReloads;
  co_return std::nullopt;
}

}  // namespace

std::string_view fetch_error_kind(const Error& error) noexcept {
  switch (error.code) {
    case Errc::dns: return "dns";
    case Errc::tls: return "tls";
    case Errc::timeout: return "timeout";
    case Errc::not_found: return "redirects";
    case Errc::too_large: return "too_large";
    case Errc::refused:
    case Errc::unsupported:
    case Errc::invalid_input: return "refused";
    default: return "network";
  }
}

bool is_refused_by_us(const Error& error) noexcept {
  const bool is_refused =
      error.code == Errc::refused || error.code == Errc::unsupported || error.code == Errc::invalid_input;
  return is_refused && !error.message.contains("proxy ");  // what a proxy refuses it may not refuse later
}

Result<HttpRequest> request_of(const FetchOrder& order) {
  auto ordered = ordered_request(order);
  if (!ordered) return std::unexpected(ordered.error());
  HttpRequest request = std::move(ordered->request);
  std::string cookies = ordered->cookie_field;
  for (const auto& [name, value] : ordered->cookies)
    cookies += fmt::format("{}{}={}", cookies.empty() ? "" : "; ", name, value);
  if (!cookies.empty()) request.headers.emplace_back("Cookie", std::move(cookies));
  if (!ordered->authorization.empty()) request.headers.emplace_back("Authorization", std::move(ordered->authorization));
  return request;
}

Coro<FetchedAnswer> fetch_page(const FetchOrder& order, HttpTransport& transport, HostDesk& desk,
                               std::function<std::uint32_t(const Url&)> host_of, PageRendering* rendering) {
  if (is_data_url(order.url)) {
    FetchedAnswer answer{.response = answer_of_data_url(order.url)};
    answer.is_success = answer.response.error_kind.empty();
    answer.is_refused = !answer.is_success;
    if (!answer.is_success) answer.sent = fail(Errc::refused, answer.response.error_text);
    co_return answer;
  }
  PageTrip trip(order, transport, desk, host_of, rendering);
  co_return co_await trip.run();
}

}  // namespace argiope
