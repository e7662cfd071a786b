#include "crawl/run/crawl_session.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "argiope/async/event_loop.hpp"
#include "argiope/base/random.hpp"
#include "argiope/web/http_session.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/printable.hpp"
#include "crawl/render/internal/part_rules.hpp"
#include "crawl/run/frontier.hpp"
#include "web/url/internal/host_address.hpp"

namespace argiope {
namespace {

constexpr std::string_view kCookieNotes = "cookies/";
constexpr std::string_view kLoginNote = "session/login";   // there are cookies of who has logged in
constexpr std::uint64_t kLoginStream = ~std::uint64_t{0};  // of chance: no shard has it

// Between two requests of a login, which no frontier paces.
Duration pause_of_login(const CrawlOptions& options) {
  if (options.delay) return *options.delay;
  if (options.rate) return from_seconds(1 / *options.rate);
  return is_loopback(options.login->page) ? Duration{} : from_seconds(1 / kPublicRate);
}

}  // namespace

CrawlSession::CrawlSession(const CrawlOptions& options, std::uint64_t seed)
    : options_(options), seed_(seed), jar_(options.cookies ? std::make_unique<CookieJar>() : nullptr) {}

Result<void> CrawlSession::load(UrlStore& store, WallTime now) {
  if (jar_ == nullptr) return {};
  UrlBatch forgotten;
  auto loaded = store.scan_notes(kCookieNotes, [&](const UrlNote& note) {
    if (options_.login) {
      forgotten.notes.push_back({note.name, {}});
      return true;
    }
    auto cookies = parse_cookies_txt(note.text);
    if (!cookies) spdlog::warn("{}, in the database: {}; passed over", printable(note.name), cookies.error().message);
    if (!cookies) return true;
    for (Cookie& cookie : *cookies) jar_->put(std::move(cookie), now);
    return true;
  });
  if (!loaded) return loaded;
  bool was_logged_in = false;
  loaded = store.scan_notes(kLoginNote, [&](const UrlNote&) { return was_logged_in = true; });
  if (!loaded) return loaded;
  const bool logs_in = options_.login || !options_.given_cookies.empty();
  has_login_ = logs_in || (was_logged_in && !jar_->empty());
  if (has_login_ != was_logged_in) forgotten.notes.push_back({std::string(kLoginNote), has_login_ ? "1" : ""});
  store.submit(std::move(forgotten));
  jar_->watch();
  for (const Cookie& cookie : options_.given_cookies) jar_->put(cookie, now);
  return {};
}

void CrawlSession::save(UrlStore& store, WallTime now) {
  if (jar_ == nullptr) return;
  UrlBatch batch;
  for (auto& [site, cookies] : jar_->take_changes(now)) {
    std::string text = cookies.empty() ? std::string{} : format_cookies_txt(cookies);
    batch.notes.push_back({.name = std::string(kCookieNotes) + site, .text = std::move(text), .is_secret = true});
  }
  store.submit(std::move(batch));
}

std::vector<Cookie> CrawlSession::cookies(WallTime now) const {
  return jar_ == nullptr ? std::vector<Cookie>{} : jar_->all(now);
}

std::string CrawlSession::cookie_field(const Url& url, WallTime now) const {
  return jar_ == nullptr || jar_->empty() ? std::string{} : jar_->field_for(url, now);
}

bool CrawlSession::take_cookies(const Url& url, const std::vector<Cookie>& before, std::vector<Cookie> now_there,
                                WallTime now) {
  bool some = false;
  if (jar_ == nullptr) return some;
  for (Cookie& cookie : cookies_set_since(before, std::move(now_there), url)) some |= jar_->put(std::move(cookie), now);
  return some;
}

std::unique_ptr<HttpTransport> CrawlSession::over(HttpTransport& below, std::uint64_t stream) const {
  if (jar_ == nullptr && options_.credentials.empty()) return nullptr;
  HttpSessionOptions session{options_.credentials, options_.headers_for};
  return std::make_unique<HttpSession>(below, jar_.get(), std::move(session), Random(mix64(seed_ ^ mix64(stream))));
}

Coro<Result<void>> CrawlSession::log_in(HttpTransport& below) {
  if (!options_.login) co_return Result<void>{};
  const auto session = over(below, kLoginStream);
  LoginOptions login;
  login.timeout = options_.timeout;
  login.pause = pause_of_login(options_);
  login.max_redirects = static_cast<int>(options_.max_redirects);
  auto outcome = co_await argiope::log_in(*session, *jar_, *options_.login, login, Random(mix64(seed_)));
  if (!outcome) co_return std::unexpected(std::move(outcome.error()));
  spdlog::info("logged in at {}: {}", without_query(options_.login->page), counted(outcome->cookies, "cookie"));
  const WallTime now = EventLoop::current().clock().wall_now();
  const std::string sent = jar_->field_for(options_.login->page, now);
  {
    std::lock_guard lock(login_mutex_);
    login_cookies_ = jar_->all(now);
    std::erase_if(login_cookies_, [&](const Cookie& cookie) { return !sent.contains(cookie.name + '='); });
  }
  co_await sleep(login.pause);
  co_return Result<void>{};
}

// Each that came of the login is still there, whatever its value.
bool CrawlSession::has_login_cookies(WallTime now) const {
  const std::vector<Cookie> there = jar_->all(now);
  return std::ranges::all_of(login_cookies_, [&](const Cookie& cookie) {
    return std::ranges::any_of(there, [&](const Cookie& other) {
      return other.name == cookie.name && other.domain == cookie.domain && other.path == cookie.path;
    });
  });
}

void CrawlSession::note(const HttpRequest& request, const HttpResponse& response, WallTime now) {
  if (response.challenged == HttpChallenged::refused) {
    spdlog::warn("{}: the name and password for it are not taken; nothing is sent with them any more",
                 without_query(request.url));
  }
  if (!response.new_cookies || !options_.login) return;
  std::lock_guard lock(login_mutex_);
  if (login_cookies_.empty() || has_login_cookies(now)) return;
  login_cookies_.clear();
  spdlog::warn(
      "{} has ended the login: what is fetched from now on may be what strangers get. Keep the crawl from such URLs",
      without_query(request.url));
}

std::int64_t CrawlSession::comes_back(std::uint64_t from, std::int64_t id, std::uint64_t to, bool new_cookies) {
  if (jar_ == nullptr) return 0;
  CookieDetours::Start start = detours_.take(from).value_or(CookieDetours::Start{from, id});
  start.new_cookies |= new_cookies;
  if (start.fingerprint == to && start.new_cookies) return start.id;
  detours_.put(to, start);
  return 0;
}

}  // namespace argiope
