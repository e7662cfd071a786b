#include "crawl/render/internal/part_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "argiope/web/http_client.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/lower_case.hpp"
#include "web/url/internal/public_suffix.hpp"

namespace argiope {
namespace {

constexpr std::string_view kRenderedType = "text/html; charset=utf-8";
constexpr Duration kSilence = std::chrono::minutes{1};  // of a site that could not be connected to
constexpr std::size_t kMostPartFields = 64;
constexpr std::size_t kMostPartFieldBytes = 16 * 1024;
constexpr std::size_t kMostPartBodyBytes = 1024 * 1024;

// Fields that the client sends itself, that are about the connection, or that say who we are.
constexpr std::array<std::string_view, 15> kClientFields = {
    "accept-encoding",  "connection", "content-length", "cookie",  "expect", "host",       "keep-alive",
    "purpose",          "te",         "trailer",        "upgrade", "via",    "user-agent", "x-forwarded-for",
    "transfer-encoding"};

bool is_pages_own_field(std::string_view name, std::string_view value) {
  if (name.empty() || !is_header_safe(name) || !is_header_safe(value) ||
      name.find_first_of(" \t:") != std::string_view::npos) {
    return false;
  }
  const std::string lower = in_lower_case(name);
  return std::ranges::find(kClientFields, lower) == kClientFields.end() && !lower.starts_with("sec-") &&
         !lower.starts_with("proxy-") && lower != "upgrade-insecure-requests";
}

// Whether a part's host may be sent the page's cookies; as browsers have it, but for the scheme: they refuse http
// within https.
bool share_domain(const Url& page, const Url& part) {
  return registrable_domain(page.host()) == registrable_domain(part.host());
}

// "a=1; b=2" as its pairs.
std::vector<std::string_view> cookie_pairs(std::string_view field) {
  std::vector<std::string_view> pairs;
  while (!field.empty()) {
    const std::size_t end = field.find(';');
    std::string_view pair = field.substr(0, end);
    field.remove_prefix(end == std::string_view::npos ? field.size() : end + 1);
    while (pair.starts_with(' ')) pair.remove_prefix(1);
    if (!pair.empty()) pairs.push_back(pair);
  }
  return pairs;
}

bool is_for_host(const Cookie& cookie, std::string_view host) {
  if (host == cookie.domain) return true;
  return !cookie.host_only && host.size() > cookie.domain.size() && host.ends_with(cookie.domain) &&
         host[host.size() - cookie.domain.size() - 1] == '.';
}

}  // namespace

// --- what pages may ask for -----------------------------------------------------------------------------------------

Result<void> PartBudget::begin() {
  if (++requests_ > limits_.requests)
    return fail(Errc::refused, fmt::format("the page has asked for more than {} parts", limits_.requests));
  if (bytes_ >= limits_.bytes)
    return fail(Errc::too_large, fmt::format("the page's parts have more than {} bytes", limits_.bytes));
  return {};
}

Lock& PartBook::turn_of(const std::string& site) {
  if (turns_.size() >= kMostSites) std::erase_if(turns_, [](const auto& one) { return !one.second->locked(); });
  std::unique_ptr<Lock>& turn = turns_[site];
  if (turn == nullptr) turn = std::make_unique<Lock>();
  return *turn;
}

void PartBook::note_silent(const std::string& site, TimePoint now) {
  if (silent_until_.size() >= kMostSites) {
    std::erase_if(silent_until_, [now](const auto& one) { return one.second <= now; });
    if (silent_until_.size() >= kMostSites) silent_until_.clear();
  }
  silent_until_[site] = saturating_add(now, kSilence);
}

bool PartBook::is_silent(const std::string& site, TimePoint now) const {
  const auto silent = silent_until_.find(site);
  return silent != silent_until_.end() && now < silent->second;
}

Result<PartRequest> part_request(const Url& page, HttpRequest asked, PartKind kind) {
  const std::string_view scheme = asked.url.scheme();
  if (scheme != "http" && scheme != "https") return fail(Errc::refused, "neither http nor https");
  const bool same_site = share_domain(page, asked.url);
  const bool reads =
      asked.method == HttpMethod::get || asked.method == HttpMethod::head || asked.method == HttpMethod::options;
  if (!reads && !(asked.method == HttpMethod::post && kind == PartKind::data && same_site)) {
    return fail(Errc::refused, fmt::format("{} to {} site: pages send GET, and POST to their own site",
                                           to_string(asked.method), same_site ? "its own" : "another"));
  }
  if (asked.body.size() > kMostPartBodyBytes) return fail(Errc::too_large, "a request of more than 1 MiB");
  PartRequest part;
  HttpRequest& request = part.request;
  request.method = asked.method;
  request.is_anonymous = !same_site;
  request.url = std::move(asked.url);
  request.url.strip_fragment();
  request.url.strip_credentials();
  request.body = std::move(asked.body);
  request.keep_fields = true;
  std::size_t bytes = 0;
  for (auto& [name, value] : asked.headers) {
    if (same_site && equals_lower(name, "cookie") && is_header_safe(value)) part.cookies = value;
    bytes += name.size() + value.size();
    if (request.headers.size() >= kMostPartFields || bytes > kMostPartFieldBytes || !is_pages_own_field(name, value))
      continue;
    request.headers.emplace_back(name, value);
  }
  return part;
}

// --- cookies --------------------------------------------------------------------------------------------------------

std::string joined_cookies(std::string_view of_page, std::string_view of_ours) {
  std::string joined(of_page);
  const std::vector<std::string_view> known = cookie_pairs(of_page);
  for (const std::string_view pair : cookie_pairs(of_ours)) {
    const std::string_view name = pair.substr(0, pair.find('='));
    const bool is_known =
        std::ranges::any_of(known, [&](std::string_view other) { return other.substr(0, other.find('=')) == name; });
    if (is_known) continue;
    if (!joined.empty()) joined += "; ";
    joined += pair;
  }
  return joined;
}

std::vector<Cookie> cookies_for_host(std::vector<Cookie> cookies, const Url& url) {
  std::erase_if(cookies, [host = url.host()](const Cookie& cookie) { return !is_for_host(cookie, host); });
  return cookies;
}

std::vector<Cookie> cookies_set_since(const std::vector<Cookie>& before, std::vector<Cookie> now_there,
                                      const Url& url) {
  std::vector<Cookie> set = cookies_for_host(std::move(now_there), url);
  std::erase_if(set, [&](const Cookie& cookie) {
    return std::ranges::any_of(before, [&](const Cookie& other) {
      return other.name == cookie.name && other.domain == cookie.domain && other.path == cookie.path &&
             other.value == cookie.value;
    });
  });
  return set;
}

// --- what pages become ----------------------------------------------------------------------------------------------

HttpResponse rendered_response(const HttpResponse& fetched, RenderedPage& made) {
  HttpResponse page;
  page.status = fetched.status;
  page.headers = fetched.headers;
  page.headers.content_type = kRenderedType;
  for (const auto& [name, value] : fetched.fields) {
    if (equals_lower(name, "content-length") || equals_lower(name, "content-encoding")) continue;
    page.fields.emplace_back(name, equals_lower(name, "content-type") ? std::string(kRenderedType) : value);
  }
  page.body = std::move(made.html);
  page.truncated = fetched.truncated || made.is_cut;
  page.oddities = fetched.oddities;
  page.wire_bytes = fetched.wire_bytes;
  page.remote = fetched.remote;
  page.sent_at = fetched.sent_at;
  page.connected = fetched.connected;
  page.new_cookies = fetched.new_cookies;
  return page;
}

}  // namespace argiope
