#include "argiope/web/http_session.hpp"

#include <algorithm>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "web/http/http_request_head.hpp"
#include "web/session/http_authenticator.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostSpareRequests = 16;

bool names_field(const HttpRequest& request, std::string_view lower) {
  return std::ranges::any_of(request.headers, [&](const auto& field) { return equals_lower(field.first, lower); });
}

// Whether "a=1; b=2" has a cookie of the name that "b=3" begins with.
bool has_name_of(std::string_view cookies, std::string_view pair) {
  const std::string_view name = pair.substr(0, pair.find('='));
  bool found = false;
  for_each_token(
      cookies, [](char c) { return c == ';'; },
      [&](std::string_view one) { found = found || trim_space(one.substr(0, one.find('='))) == name; });
  return found;
}

// Cookies that the user has given count before those that servers have set.
std::string join_cookies(std::string given, std::string_view kept) {
  const std::size_t own = given.size();
  while (!kept.empty()) {
    const std::size_t end = std::min(kept.find("; "), kept.size());
    const std::string_view pair = kept.substr(0, end);
    kept.remove_prefix(std::min(end + 2, kept.size()));
    if (has_name_of(std::string_view(given).substr(0, own), pair)) continue;
    given.append("; ").append(pair);
  }
  return given;
}

}  // namespace

class HttpSession::Impl {
 public:
  Impl(HttpTransport& below, CookieJar* jar, HttpSessionOptions options, Random random)
      : below_(below), jar_(jar), authenticator_(std::move(options.credentials), random) {
    for (HeaderFor& field : options.headers_for) {
      if (equals_lower(field.name, "cookie")) given_.push_back(std::move(field));
    }
  }

  Coro<Result<void>> send(const HttpRequest& request, HttpResponse& response) {
    response.new_cookies = false;
    response.challenged = HttpChallenged::none;
    if (request.is_anonymous) co_return co_await below_.send(request, response);
    std::string cookies = cookies_for(request);
    HttpAuthenticator::Answer answer;
    if (!authenticator_.empty() && !names_field(request, "authorization")) answer = authenticator_.answer_for(request);
    Result<void> sent;
    if (cookies.empty() && answer.field.empty()) {
      sent = co_await below_.send(request, response);
    } else {
      std::unique_ptr<HttpRequest> dressed = take_spare();
      *dressed = request;
      if (!cookies.empty()) dressed->headers.emplace_back("Cookie", std::move(cookies));
      if (!answer.field.empty()) dressed->headers.emplace_back("Authorization", answer.field);
      sent = co_await below_.send(*dressed, response);
      give_spare(std::move(dressed));
    }
    if (sent) learn(request, answer, response);
    co_return sent;
  }

 private:
  static WallTime now() { return EventLoop::current().clock().wall_now(); }

  std::string cookies_for(const HttpRequest& request) {
    if (jar_ == nullptr || jar_->empty() || names_field(request, "cookie")) return {};
    std::string kept = jar_->field_for(request.url, now());
    if (kept.empty() || given_.empty()) return kept;
    const auto given =
        std::ranges::find_if(given_, [&](const HeaderFor& field) { return goes_to(field, request.url); });
    return given == given_.end() ? kept : join_cookies(given->value, kept);
  }

  void learn(const HttpRequest& request, const HttpAuthenticator::Answer& answer, HttpResponse& response) {
    if (jar_ != nullptr && !response.headers.set_cookie.empty()) take_cookies(request.url, response);
    if (authenticator_.empty()) return;
    if (response.status != 401) return authenticator_.accepted(request, answer);
    if (names_field(request, "authorization")) return;
    response.challenged = authenticator_.challenged(request, answer, response.headers.authenticate);
  }

  void take_cookies(const Url& from, HttpResponse& response) {
    const WallTime time = now();
    for_each_token(
        response.headers.set_cookie, [](char c) { return c == '\n'; },
        [&](std::string_view field) { response.new_cookies |= jar_->take(from, field, time); });
  }

  std::unique_ptr<HttpRequest> take_spare() {
    if (spares_.empty()) return std::make_unique<HttpRequest>();
    auto spare = std::move(spares_.back());
    spares_.pop_back();
    return spare;
  }
  void give_spare(std::unique_ptr<HttpRequest> spare) {
    if (spares_.size() < kMostSpareRequests) spares_.push_back(std::move(spare));
  }

  HttpTransport& below_;
  CookieJar* const jar_;
  HttpAuthenticator authenticator_;
  std::vector<HeaderFor> given_;  // Cookie fields
  std::vector<std::unique_ptr<HttpRequest>> spares_;
};

HttpSession::HttpSession(HttpTransport& below, CookieJar* jar, HttpSessionOptions options, Random random)
    : impl_(std::make_unique<Impl>(below, jar, std::move(options), random)) {}
HttpSession::~HttpSession() = default;

Coro<Result<void>> HttpSession::send(const HttpRequest& request, HttpResponse& response) {
  return impl_->send(request, response);
}

}  // namespace argiope
