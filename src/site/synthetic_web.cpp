#include "site/internal/synthetic_web.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <mutex>
#include <stdexcept>
#include <tuple>

#include "base/internal/fingerprint.hpp"
#include "base/internal/printable.hpp"
#include "site/synthetic_codings.hpp"
#include "site/synthetic_copies.hpp"
#include "site/synthetic_guarded.hpp"
#include "site/synthetic_hostile.hpp"
#include "site/synthetic_layout.hpp"
#include "site/synthetic_lists.hpp"
#include "site/synthetic_page.hpp"
#include "site/synthetic_scripts.hpp"
#include "web/http/internal/http_date.hpp"

namespace argiope {
namespace {

constexpr std::array<std::string_view, kWebFeatures> kFeatureNames = {
    "robots",     "redirects",     "broken",       "flaky",    "compressed", "encodings", "nofollow",
    "resources",  "duplicates",    "offsite",      "phantoms", "base",       "chain",     "loops",
    "endless",    "drip",          "reset",        "lengths",  "silent",     "garbage",   "bomb",
    "flood",      "closed",        "throttling",   "failing",  "headers",    "odd",       "slow",
    "robots-500", "robots-silent", "robots-reset", "mute",     "cookies",    "members",   "basic",
    "digest",     "copies",        "sessions",     "traps",    "sitemaps",   "feeds",     "scripts"};

constexpr std::uint32_t kThrottledAttempts = 2;
constexpr std::uint32_t kThrottledPages = 3;
constexpr std::size_t kHostileTextBytes = 2000;
// Tells the draws of headers from those of text and links.
constexpr std::uint64_t kTagDraw = std::uint64_t{3} << 32;

void not_found(SyntheticReply& reply) {
  reply.status = 404;
  reply.body = small_page("Not found", "<a href=\"/\">home</a>");
}

// The number at the front of `text`; 0 without.
std::uint32_t leading_number(std::string_view text) noexcept {
  std::uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string robots_txt(Duration crawl_delay) {
  std::string rules =
      "# What this web asks of crawlers.\n"
      "User-agent: badbot\n"
      "Disallow: /\n\n"
      "User-agent: *\n"
      "Disallow: /private/\n"
      "Allow: /private/press/\n"
      "Disallow: /*?session=\n";
  if (crawl_delay > Duration::zero()) rules += fmt::format("Crawl-delay: {}\n", to_seconds(crawl_delay));
  return rules;
}

// Where and how an old address sends its visitors; every status and every form of reference has its turn.
void redirect(const SyntheticLayout& layout, std::uint32_t host, SyntheticLayout::Location from,
              SyntheticReply& reply) {
  constexpr std::array<int, 5> kStatuses = {301, 302, 303, 307, 308};
  const std::uint32_t turn = from.number / kRedirectedMark.period;
  std::string path;
  if (from.place == WebPlace::leave) {
    path = fmt::format("{}/", kOffsiteOrigin);
  } else {
    const bool again = from.place == WebPlace::old && SyntheticLayout::in_two_hops(from.number);
    layout.append_path(path, again ? WebPlace::moved : WebPlace::page, from.number);
    if (turn % 3 == 1) path.insert(0, layout.origins()[host]);
    if (turn % 3 == 2) path.insert(0, "..");  // old addresses stand one directory deep
  }
  reply.status = kStatuses[turn % kStatuses.size()];
  reply.headers.emplace_back("Location", path);
  reply.body = small_page("Moved");
}

void compress(std::string_view accepted, std::uint32_t page, SyntheticReply& reply) {
  struct Coding {
    std::string_view name;
    std::string (*compress)(std::string_view);
  };
  static constexpr std::array kCodings = {Coding{"gzip", compress_gzip}, Coding{"br", compress_brotli},
                                          Coding{"zstd", compress_zstd}};
  reply.headers.emplace_back("Vary", "Accept-Encoding");
  // Each is some page's first choice.
  for (std::size_t i = 0; i < kCodings.size(); ++i) {
    const Coding& coding = kCodings[(page / kCompressedMark.period + i) % kCodings.size()];
    if (!accepts_coding(accepted, coding.name)) continue;
    reply.body = coding.compress(reply.body);
    reply.headers.emplace_back("Content-Encoding", coding.name);
    return;
  }
}

}  // namespace

std::string_view to_string(WebFeature feature) noexcept { return kFeatureNames[static_cast<std::size_t>(feature)]; }

Result<WebFeatures> parse_web_features(std::string_view names) {
  WebFeatures features = 0;
  while (!names.empty()) {
    const std::size_t comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
    const auto found = std::ranges::find(kFeatureNames, name);
    if (found != kFeatureNames.end()) {
      features |= bit(static_cast<WebFeature>(found - kFeatureNames.begin()));
    } else if (name == "friendly") {
      features |= kFriendlyFeatures;
    } else if (name == "hostile") {
      features |= kHostileFeatures;
    } else if (name == "guarded") {
      features |= kGuardedFeatures;
    } else if (name == "listed") {
      features |= kListedFeatures;
    } else if (name == "repeated") {
      features |= kRepeatedFeatures;
    } else if (name == "all") {
      features |= kFriendlyFeatures | kHostileFeatures;
    } else if (name != "none") {
      return fail(Errc::invalid_input,
                  fmt::format("feature {}: one of {}, friendly, hostile, guarded, repeated, listed, all, none",
                              in_quotes(name), fmt::join(kFeatureNames, ", ")));
    }
  }
  return features;
}

class SyntheticWeb::Impl {
 public:
  Impl(SyntheticWebOptions options, std::vector<std::string> origins)
      : layout_(std::move(options), std::move(origins)), text_(layout_.options().seed) {}

  const SyntheticLayout& layout() const noexcept { return layout_; }
  SyntheticReply reply(const SyntheticRequest& request);

 private:
  const SyntheticWebOptions& options() const noexcept { return layout_.options(); }
  bool has(std::uint32_t host, WebFeature feature) const noexcept { return layout_.has(host, feature); }

  void robots(std::uint32_t host, SyntheticReply& reply) const;
  void answer(const SyntheticRequest& request, WebPlace place, std::uint32_t number, SyntheticReply& reply);
  void page(const SyntheticRequest& request, std::uint32_t number, SyntheticReply& reply) const;
  void hostile(const SyntheticRequest& request, SyntheticReply& reply);
  void throttle(std::uint32_t host, std::uint32_t number, SyntheticReply& reply);
  void bomb(std::uint32_t number, SyntheticReply& reply);
  // How often this was called with these arguments before.
  std::uint32_t earlier_attempts(std::uint32_t host, WebFeature feature, std::uint32_t number);

  const SyntheticLayout layout_;
  const SyntheticText text_;
  SyntheticGuarded guarded_;
  // All that changes, and its lock.
  std::mutex mutex_;
  std::map<std::tuple<std::uint32_t, WebFeature, std::uint32_t>, std::uint32_t> attempts_;
  std::array<Bomb, kBombs> bombs_;
};

SyntheticWeb::SyntheticWeb(SyntheticWebOptions options, std::vector<std::string> origins)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(origins))) {}

SyntheticWeb::~SyntheticWeb() = default;

SyntheticReply SyntheticWeb::reply(const SyntheticRequest& request) { return impl_->reply(request); }
const SyntheticWebOptions& SyntheticWeb::options() const noexcept { return impl_->layout().options(); }
const std::vector<std::string>& SyntheticWeb::origins() const noexcept { return impl_->layout().origins(); }
bool SyntheticWeb::has(std::uint32_t host, WebFeature feature) const noexcept {
  return impl_->layout().has(host, feature);
}
SyntheticTruth SyntheticWeb::truth(std::uint32_t host) const { return impl_->layout().truth(host); }

SyntheticReply SyntheticWeb::Impl::reply(const SyntheticRequest& request) {
  if (request.host >= options().hosts) throw std::out_of_range("no such host");
  SyntheticReply reply;
  if (has(request.host, WebFeature::mute)) {
    reply.behaviour = SyntheticReply::Behaviour::silent;
    return reply;
  }
  if (request.target == "/robots.txt") {
    robots(request.host, reply);
    return reply;  // without latency: it is no page
  }
  if (const auto location = layout_.locate(request.host, request.target)) {
    answer(request, location->place, location->number, reply);
  } else if (request.target == "/css/site.css" && has(request.host, WebFeature::resources)) {
    reply.content_type = "text/css";
    reply.body = "body { max-width: 40em }\n";
  } else if (has(request.host, WebFeature::scripts) && answer_scripts(request, reply)) {
    // as it is
  } else if (!guarded_.answer(layout_, request, reply) && !answer_copies(layout_, request, reply) &&
             !answer_listed(layout_, request, reply)) {
    hostile(request, reply);
  }
  reply.latency = has(request.host, WebFeature::slow) ? options().slow_latency : options().latency;
  return reply;
}

void SyntheticWeb::Impl::robots(std::uint32_t host, SyntheticReply& reply) const {
  reply.content_type = "text/plain";
  reply.body = robots_txt(options().crawl_delay) + sitemap_line(layout_, host);
  if (has(host, WebFeature::robots_silent)) {
    reply.behaviour = SyntheticReply::Behaviour::silent;
  } else if (has(host, WebFeature::robots_reset)) {
    reply.behaviour = SyntheticReply::Behaviour::reset;
  } else if (has(host, WebFeature::robots_500)) {
    reply.status = 500;
  } else if (!has(host, WebFeature::robots)) {
    not_found(reply);
  }
}

void SyntheticWeb::Impl::answer(const SyntheticRequest& request, WebPlace place, std::uint32_t number,
                                SyntheticReply& reply) {
  switch (place) {
    case WebPlace::page: page(request, number, reply); return;
    case WebPlace::old:
    case WebPlace::moved:
    case WebPlace::leave: redirect(layout_, request.host, {place, number}, reply); return;
    case WebPlace::missing:
      not_found(reply);
      if (number % 10 == 9) reply.status = 410;
      return;
    case WebPlace::flaky:
      if (earlier_attempts(request.host, WebFeature::flaky, number) == 0) {
        reply.status = 503;
        reply.headers.emplace_back("Retry-After", "1");
        reply.body = small_page("Busy");
        return;
      }
      break;
    default: break;
  }
  write_place(layout_, text_, request.host, place, number, reply);
}

void SyntheticWeb::Impl::page(const SyntheticRequest& request, std::uint32_t number, SyntheticReply& reply) const {
  const bool compressed = layout_.marked(kCompressedMark, request.host, number);
  // A coded page is another representation: only a weak tag may stand for both (RFC 9110, 8.8.3).
  const std::string tag =
      fmt::format("{}\"{:x}\"", compressed ? "W/" : "", layout_.draw(request.host, number, kTagDraw));
  const WallTime modified = layout_.modified_at(request.host, number);
  reply.headers.emplace_back("ETag", tag);
  reply.headers.emplace_back("Last-Modified", format_http_date(modified));
  // If-None-Match goes before If-Modified-Since (RFC 9110, 13.2.2).
  const auto since = parse_http_date(request.if_modified_since);
  const bool known = request.if_none_match.empty() ? since && *since >= modified
                                                   : request.if_none_match.find(tag) != std::string_view::npos;
  if (known) {
    reply.status = 304;
    return;
  }
  write_page(layout_, text_, request.host, number, reply);
  if (compressed) compress(request.accept_encoding, number, reply);
}

void SyntheticWeb::Impl::hostile(const SyntheticRequest& request, SyntheticReply& reply) {
  // "/NAME/rest"
  std::string_view rest = request.target.substr(std::min<std::size_t>(1, request.target.size()));
  const std::size_t slash = rest.find('/');
  const auto found = std::ranges::find(kFeatureNames, rest.substr(0, slash));
  const auto feature = static_cast<WebFeature>(found - kFeatureNames.begin());
  if (slash == std::string_view::npos || found == kFeatureNames.end() || !is_hostile(feature) ||
      !has(request.host, feature)) {
    return not_found(reply);
  }
  rest.remove_prefix(slash + 1);
  const std::uint32_t number = leading_number(rest);
  if (feature == WebFeature::bomb) return bomb(number % kBombs, reply);
  if (feature == WebFeature::throttling) return throttle(request.host, number, reply);
  const std::uint64_t chance = layout_.draw(request.host, fingerprint(request.target), 0);
  std::string words;
  text_.append(words, kHostileTextBytes, chance);
  reply.body = small_page(to_string(feature), words);
  if (!answer_hostile(feature, rest, number, chance, reply)) not_found(reply);
}

void SyntheticWeb::Impl::throttle(std::uint32_t host, std::uint32_t number, SyntheticReply& reply) {
  reply.body = small_page("Patience");
  if (number >= kThrottledPages || earlier_attempts(host, WebFeature::throttling, number) >= kThrottledAttempts) return;
  reply.status = 429;
  reply.headers.emplace_back("Retry-After", "2");
}

void SyntheticWeb::Impl::bomb(std::uint32_t number, SyntheticReply& reply) {
  std::lock_guard lock(mutex_);
  Bomb& bomb = bombs_[number];
  if (bomb.body.empty()) bomb = make_bomb(number);
  reply.headers.emplace_back("Content-Encoding", bomb.coding);
  reply.body = bomb.body;
}

std::uint32_t SyntheticWeb::Impl::earlier_attempts(std::uint32_t host, WebFeature feature, std::uint32_t number) {
  std::lock_guard lock(mutex_);
  return attempts_[{host, feature, number}]++;
}

}  // namespace argiope
