#include "site/synthetic_guarded.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "argiope/web/http_client.hpp"
#include "argiope/web/url.hpp"
#include "site/synthetic_page.hpp"
#include "web/http/internal/digest_auth.hpp"

namespace argiope {
namespace {

constexpr std::uint64_t kUsesOfNonce = 4;
constexpr std::uint64_t kSessionDraw = std::uint64_t{5} << 32;  // tells it from the draws of pages
constexpr std::uint64_t kTokenDraw = kSessionDraw + 1;
constexpr std::string_view kLogoutLink = "<a href=\"/logout\">Log out</a> ";

void set_cookie(SyntheticReply& reply, std::string cookie) {
  reply.headers.emplace_back("Set-Cookie", std::move(cookie));
}

void lead_to(SyntheticReply& reply, std::string_view path, int status = 302) {
  reply.status = status;
  reply.headers.emplace_back("Location", path);
  reply.body = small_page("Elsewhere");
}

// "a=1" of "a=1; b=2".
std::string_view cookie_named(std::string_view cookies, std::string_view name) {
  while (!cookies.empty()) {
    const std::string_view pair = cookies.substr(0, cookies.find("; "));
    cookies.remove_prefix(std::min(pair.size() + 2, cookies.size()));
    if (pair.size() > name.size() && pair.starts_with(name) && pair[name.size()] == '=') {
      return pair.substr(name.size() + 1);
    }
  }
  return {};
}

// The value that a form has sent under a name.
std::string form_value(std::string_view body, std::string_view name) {
  while (!body.empty()) {
    const std::string_view pair = body.substr(0, body.find('&'));
    body.remove_prefix(std::min(pair.size() + 1, body.size()));
    if (pair.size() <= name.size() || !pair.starts_with(name) || pair[name.size()] != '=') continue;
    std::string value(pair.substr(name.size() + 1));
    for (char& c : value) {
      if (c == '+') c = ' ';
    }
    return percent_decode(value);
  }
  return {};
}

// The number of a page below `folder`; nullopt when it is none.
std::optional<std::uint32_t> guarded_number(std::string_view path, std::string_view folder) {
  if (!path.starts_with(folder)) return std::nullopt;
  path.remove_prefix(folder.size());
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(path.data(), path.data() + path.size(), number);
  const bool is_number = error == std::errc{} && end == path.data() + path.size() && path.front() != '0';
  return is_number && number <= kGuardedPagesOfEach ? std::optional(number) : std::nullopt;
}

// The page, which leads to the next one, behind `first`.
bool show(SyntheticReply& reply, std::string_view folder, std::uint32_t number, std::string_view first = {}) {
  const std::string next =
      number < kGuardedPagesOfEach ? fmt::format("<a href=\"{}{}\">next</a>", folder, number + 1) : std::string{};
  reply.body = small_page(fmt::format("For some, {}", number), fmt::format("{}{}", first, next));
  return true;
}

bool ask_who(SyntheticReply& reply, std::string challenge) {
  reply.status = 401;
  reply.headers.emplace_back("WWW-Authenticate", std::move(challenge));
  reply.body = small_page("Who are you?");
  return true;
}

std::string quoted_parameter(std::string_view field, std::string_view name) {
  const std::string start = fmt::format("{}=\"", name);
  const std::size_t at = field.find(start);
  if (at == std::string_view::npos) return {};
  field.remove_prefix(at + start.size());
  return std::string(field.substr(0, field.find('"')));
}

}  // namespace

bool SyntheticGuarded::answer(const SyntheticLayout& layout, const SyntheticRequest& request, SyntheticReply& reply) {
  if (layout.has(request.host, WebFeature::cookies) && cookies(request, reply)) return true;
  if (layout.has(request.host, WebFeature::members) && members(layout, request, reply)) return true;
  if (const auto number = guarded_number(request.target, "/basic/");
      number && layout.has(request.host, WebFeature::basic)) {
    Url url = *Url::parse(fmt::format("http://{}:{}@h/", kSyntheticName, percent_encode(kSyntheticPassword)));
    if (request.authorization != take_credentials(url))
      return ask_who(reply, "Basic realm=\"basic\", charset=\"UTF-8\"");
    return show(reply, "/basic/", *number);
  }
  const auto number = guarded_number(request.target, "/digest/");
  return number && layout.has(request.host, WebFeature::digest) && digest(request, *number, reply);
}

// A wall that redirects to itself; one that sends who comes there and back; and steps, each with the cookie of the
// last.
bool SyntheticGuarded::cookies(const SyntheticRequest& request, SyntheticReply& reply) const {
  const auto has = [&](std::string_view name) { return !cookie_named(request.cookie, name).empty(); };
  if (request.target == "/cookies/") {
    if (has("wall")) {
      reply.body = small_page("Behind the wall", "<a href=\"/cookies/there\">on</a>");
      return true;
    }
    set_cookie(reply, "wall=1; Path=/cookies; HttpOnly");
    lead_to(reply, "/cookies/");
    return true;
  }
  if (request.target == "/cookies/there") {
    if (has("back")) {
      reply.body = small_page("There and back");
    } else {
      lead_to(reply, "/cookies/check");
    }
    return true;
  }
  if (request.target == "/cookies/check") {
    set_cookie(reply, "back=1; Max-Age=86400");
    lead_to(reply, "/cookies/there");
    return true;
  }
  const auto number = guarded_number(request.target, "/cookies/step-");
  if (!number) return false;
  if (*number > 1 && cookie_named(request.cookie, "step") != fmt::to_string(*number - 1)) {
    reply.status = 403;
    reply.body = small_page("One step after the other");
    return true;
  }
  set_cookie(reply, *number == kGuardedPagesOfEach ? "step=; Max-Age=0" : fmt::format("step={}", *number));
  return show(reply, "/cookies/step-", *number);
}

bool SyntheticGuarded::members(const SyntheticLayout& layout, const SyntheticRequest& request,
                               SyntheticReply& reply) const {
  const std::string session = fmt::format("{:x}", layout.draw(request.host, 0, kSessionDraw));
  const std::string token = fmt::format("{:x}", layout.draw(request.host, 0, kTokenDraw));
  const auto form = [&](std::string_view title) {
    set_cookie(reply, fmt::format("before={}; Path=/", token));
    reply.body = small_page(title, fmt::format("<form action=\"/login\" method=\"post\"><input name=\"name\">"
                                               "<input type=\"password\" name=\"password\"><input type=\"hidden\" "
                                               "name=\"token\" value=\"{}\"><button>Log in</button></form>",
                                               token));
    return true;
  };
  if (request.target == "/logout") {
    set_cookie(reply, "session=; Path=/; Max-Age=0");
    lead_to(reply, "/");
    return true;
  }
  if (request.target == "/login" && request.post) {
    const bool is_right = form_value(request.body, "name") == kSyntheticName &&
                          form_value(request.body, "password") == kSyntheticPassword &&
                          form_value(request.body, "token") == token && cookie_named(request.cookie, "before") == token;
    if (!is_right) return form("Try again");
    set_cookie(reply, fmt::format("session={}; Path=/; HttpOnly", session));
    lead_to(reply, "/members/1", 303);
    return true;
  }
  if (request.target == "/login") return form("Log in");
  const auto number = guarded_number(request.target, "/members/");
  if (!number) return false;
  if (cookie_named(request.cookie, "session") == session) return show(reply, "/members/", *number, kLogoutLink);
  lead_to(reply, "/login");
  return true;
}

// RFC 7616, from the server's side.
bool SyntheticGuarded::digest(const SyntheticRequest& request, std::uint32_t number, SyntheticReply& reply) {
  const auto hash = [](const std::string& text) { return digest_hex(DigestHash::sha256, text); };
  const std::string_view field = request.authorization;
  const std::string their_nonce = quoted_parameter(field, "nonce");
  const std::size_t at = field.find("nc=");
  const std::string_view nc = at == std::string_view::npos ? "" : field.substr(at + 3, 8);
  const std::string expected = hash(fmt::format(
      "{}:{}:{}:{}:auth:{}", hash(fmt::format("{}:digest:{}", kSyntheticName, kSyntheticPassword)), their_nonce, nc,
      quoted_parameter(field, "cnonce"), hash(fmt::format("{}:{}", request.head ? "HEAD" : "GET", request.target))));
  const bool is_right = !nc.empty() && quoted_parameter(field, "response") == expected;
  std::uint64_t count = 0;
  std::from_chars(nc.data(), nc.data() + nc.size(), count, 16);
  std::lock_guard lock(mutex_);
  Nonce& nonce = nonces_[request.host];
  const auto name_of = [&] { return fmt::format("{}-{}", request.host, nonce.number); };
  if (is_right && their_nonce == name_of() && count > nonce.count && count <= kUsesOfNonce) {
    nonce.count = count;
    return show(reply, "/digest/", number);
  }
  if (is_right && their_nonce == name_of()) nonce = {nonce.number + 1, 0};
  const std::string rest =
      fmt::format("realm=\"digest\", nonce=\"{}\", qop=\"auth\"{}", name_of(), is_right ? ", stale=true" : "");
  reply.headers.emplace_back("WWW-Authenticate", "Digest " + rest + ", algorithm=SHA-512-257");
  return ask_who(reply, "Digest " + rest + ", algorithm=SHA-256");
}

}  // namespace argiope
