#include "site/synthetic_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iterator>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "site/synthetic_copies.hpp"
#include "site/synthetic_scripts.hpp"

namespace argiope {
namespace {

constexpr std::array<std::string_view, 5> kSections = {"docs", "guide", "reference", "blog", "news"};
constexpr std::array<std::string_view, 8> kTopics = {"alpha", "orb", "silk", "frame", "hub", "radius", "dew", "garden"};
constexpr std::uint32_t kPagesOfTopic = 16;

constexpr std::string_view kPrintQuery = "?view=print&lang=en";
constexpr std::string_view kSessionQuery = "?session=";
constexpr std::string_view kNameQuery = "?name=";

// Numbered places with a path of their own: prefix, number, suffix.
struct NumberedPath {
  WebPlace place;
  std::string_view prefix;
  std::string_view suffix;
};
constexpr std::array kNumberedPaths = {
    NumberedPath{WebPlace::old, "/old/page-", ".html"},
    NumberedPath{WebPlace::moved, "/moved/page-", ".html"},
    NumberedPath{WebPlace::missing, "/missing/", ".html"},
    NumberedPath{WebPlace::flaky, "/flaky/", ".html"},
    NumberedPath{WebPlace::press, "/private/press/release-", ".html"},
    NumberedPath{WebPlace::note, "/private/note-", ".html"},
    NumberedPath{WebPlace::sponsored, "/sponsored/offer-", ".html"},
    NumberedPath{WebPlace::ad, "/ads/ad-", ".html"},
    NumberedPath{WebPlace::phantom, "/phantom/ghost-", ".html"},
    NumberedPath{WebPlace::step, "/chain/step-", ".html"},
    NumberedPath{WebPlace::paper, "/files/paper-", ".pdf"},
    NumberedPath{WebPlace::figure, "/img/figure-", ".png"},
};
constexpr std::string_view kLeavePath = "/leave.html";
// Pages were last modified within the year before this.
constexpr WallTime kNewest{std::chrono::sys_days{std::chrono::year{2026} / 1 / 1}};
constexpr std::uint64_t kSecondsOfYear = 365 * 24 * 3600;
constexpr std::uint64_t kModifiedDraw = (std::uint64_t{3} << 32) + 1;  // beyond all slots, children and sizes

// The number that is all of `text`, written without leading zeros.
std::optional<std::uint32_t> whole_number(std::string_view text) noexcept {
  std::uint32_t number = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (ec != std::errc{} || end != text.data() + text.size() || (text.size() > 1 && text.front() == '0')) return {};
  return number;
}

std::optional<std::uint32_t> number_between(std::string_view path, std::string_view prefix, std::string_view suffix) {
  if (path.size() < prefix.size() + suffix.size() || !path.starts_with(prefix) || !path.ends_with(suffix)) return {};
  path.remove_prefix(prefix.size());
  path.remove_suffix(suffix.size());
  return whole_number(path);
}

void append_number(std::string& out, std::uint32_t number) {
  char digits[10];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

// The feature that a place is part of; nullopt: every web has it.
std::optional<WebFeature> feature_of(WebPlace place) noexcept {
  switch (place) {
    case WebPlace::page: return {};
    case WebPlace::print: return WebFeature::duplicates;
    case WebPlace::query: return WebFeature::encodings;
    case WebPlace::session:
    case WebPlace::press:
    case WebPlace::note: return WebFeature::robots;
    case WebPlace::old:
    case WebPlace::moved:
    case WebPlace::leave: return WebFeature::redirects;
    case WebPlace::missing: return WebFeature::broken;
    case WebPlace::flaky: return WebFeature::flaky;
    case WebPlace::sponsored:
    case WebPlace::ad: return WebFeature::nofollow;
    case WebPlace::phantom: return WebFeature::phantoms;
    case WebPlace::step: return WebFeature::chain;
    case WebPlace::paper:
    case WebPlace::figure: return WebFeature::resources;
  }
  return {};
}

// How many of a place there are; a bound for what a visitor may ask for.
std::uint64_t count_of(WebPlace place, std::uint64_t pages) noexcept {
  switch (place) {
    case WebPlace::missing: return kMissingPages;
    case WebPlace::flaky: return kFlakyPages;
    case WebPlace::step: return kChainSteps + 1;
    case WebPlace::phantom: return pages * kPhantomKinds;
    default: return pages;
  }
}

std::vector<std::string>* list_of(SyntheticTruth& truth, WebPlace place) noexcept {
  switch (place) {
    case WebPlace::page:
    case WebPlace::print:
    case WebPlace::query:
    case WebPlace::flaky:
    case WebPlace::press:
    case WebPlace::sponsored:
    case WebPlace::step: return &truth.pages;
    case WebPlace::old:
    case WebPlace::moved:
    case WebPlace::leave: return &truth.redirects;
    case WebPlace::missing: return &truth.broken;
    case WebPlace::paper:
    case WebPlace::figure: return &truth.resources;
    case WebPlace::note:
    case WebPlace::session: return &truth.disallowed;
    case WebPlace::ad:
    case WebPlace::phantom: return &truth.shunned;
  }
  std::unreachable();
}

using Unit = OddEncoding::Unit;
constexpr std::array kOddEncodings = {
    OddEncoding{"text/html", "", "\xff\xfe", Unit::utf16_le, "caf\xc3\xa9", "caf%C3%A9"},
    OddEncoding{"text/html; charset=windows-1252", "", "", Unit::byte, "caf\xe9", "caf%E9"},
    OddEncoding{"text/html", "<meta charset=Shift_JIS>", "", Unit::byte, "\x93\xfa\x95\x5c", "%93%FA%95\\"},
    OddEncoding{"text/html", "", "\xfe\xff", Unit::utf16_be, "\xe6\x97\xa5", "%E6%97%A5"},
    OddEncoding{"text/html", "<meta http-equiv=\"Content-Type\" content=\"text/html; charset=iso-8859-1\">", "",
                Unit::byte, "na\xefve", "na%EFve"},
    OddEncoding{"text/html; charset=\"koi8-r\"", "<meta charset=utf-8>", "", Unit::byte, "\xf0\xd2\xc9", "%F0%D2%C9"},
    OddEncoding{"text/html; charset=windows-1252", "", "\xef\xbb\xbf", Unit::byte, "\xe6\x97\xa5", "%E6%97%A5"},
    OddEncoding{"text/html", "<META CHARSET='gb2312'>", "", Unit::byte, "\xd6\xd0\xce\xc4", "%D6%D0%CE%C4"},
    OddEncoding{"text/html; charset=utf-16le", "", "", Unit::utf16_le, "caf\xc3\xa9", "caf%C3%A9"},
    OddEncoding{"text/html; charset=EUC-KR", "", "", Unit::byte, "\xc7\xd1\xb1\xdb", "%C7%D1%B1%DB"},
};

}  // namespace

const OddEncoding& odd_encoding_of(std::uint32_t page) noexcept {
  return kOddEncodings[page / kOddEncodingMark.period % kOddEncodings.size()];
}

SyntheticLayout::SyntheticLayout(SyntheticWebOptions options, std::vector<std::string> origins)
    : options_(std::move(options)), origins_(std::move(origins)) {
  if (options_.hosts == 0 || options_.pages == 0) throw std::invalid_argument("a synthetic web needs hosts and pages");
  if (origins_.size() != options_.hosts) throw std::invalid_argument("a synthetic web needs an origin for each host");
  if (!(options_.errors >= 0 && options_.errors <= 1)) throw std::invalid_argument("errors: from 0 to 1");
  // So that every number of a place fits 32 bits.
  if (options_.pages > UINT32_MAX / kPhantomKinds) throw std::invalid_argument("pages: at most 1,073,741,823 a host");
}

void SyntheticLayout::append_page_path(std::string& out, std::uint32_t number) {
  out += '/';
  if (number == 0) return;
  const std::uint32_t topic = number / kPagesOfTopic;
  out += kSections[topic / kTopics.size() % kSections.size()];
  out += '/';
  out += kTopics[topic % kTopics.size()];
  out += "/page-";
  append_number(out, number);
  out += ".html";
}

void SyntheticLayout::append_path(std::string& out, WebPlace place, std::uint32_t number) const {
  for (const NumberedPath& numbered : kNumberedPaths) {
    if (numbered.place != place) continue;
    out += numbered.prefix;
    append_number(out, number);
    out += numbered.suffix;
    return;
  }
  if (place == WebPlace::leave) {
    out += kLeavePath;
    return;
  }
  append_page_path(out, number);
  if (place == WebPlace::print) out += kPrintQuery;
  if (place == WebPlace::query) {
    out += kNameQuery;
    out += odd_encoding_of(number).query;
  }
  if (place == WebPlace::session) {
    out += kSessionQuery;
    append_number(out, number);
  }
}

WallTime SyntheticLayout::modified_at(std::uint32_t host, std::uint32_t page) const noexcept {
  return kNewest - std::chrono::seconds{draw(host, page, kModifiedDraw) % kSecondsOfYear};
}

std::string SyntheticLayout::url(std::uint32_t host, WebPlace place, std::uint32_t number) const {
  std::string url = origins_[host];
  append_path(url, place, number);
  return url;
}

std::optional<std::uint32_t> SyntheticLayout::page_at(std::string_view path) const {
  if (path == "/") return 0;
  const std::size_t digits = path.rfind("/page-");
  if (digits == std::string_view::npos) return {};
  const auto number = number_between(path.substr(digits), "/page-", ".html");
  if (!number || *number == 0 || *number >= options_.pages) return {};
  std::string right;
  append_page_path(right, *number);
  return right == path ? number : std::nullopt;
}

std::optional<SyntheticLayout::Location> SyntheticLayout::locate(std::uint32_t host, std::string_view target) const {
  const std::string_view path = target.substr(0, target.find('?'));
  if (const auto number = page_at(path)) return Location{WebPlace::page, *number};
  if (path == kLeavePath && has(host, WebFeature::redirects)) return Location{WebPlace::leave, 0};
  for (const NumberedPath& numbered : kNumberedPaths) {
    const auto number = number_between(path, numbered.prefix, numbered.suffix);
    if (!number) continue;
    if (*number >= count_of(numbered.place, options_.pages) || !has(host, *feature_of(numbered.place))) return {};
    return Location{numbered.place, *number};
  }
  return {};
}

SyntheticLink SyntheticLayout::random_link(std::uint32_t host, std::uint32_t page, std::uint32_t slot) const noexcept {
  const std::uint64_t chance = draw(host, page, slot);
  const std::uint64_t where = mix64(chance);
  const auto number = static_cast<std::uint32_t>((where >> 20) % options_.pages);
  const bool astray = static_cast<double>(chance >> 40) * 0x1p-24 < options_.errors;
  if (astray && has(host, WebFeature::broken)) {
    return {WebPlace::missing, host, static_cast<std::uint32_t>(where % kMissingPages), chance};
  }
  if (options_.hosts > 1 && options_.cross_links && where % 8 == 0) {
    const std::uint64_t away = 1 + mix64(where) % (options_.hosts - 1);
    return {WebPlace::page, static_cast<std::uint32_t>((host + away) % options_.hosts), number, chance};
  }
  return {WebPlace::page, host, number, chance};
}

SyntheticTruth SyntheticLayout::truth(std::uint32_t host) const {
  SyntheticTruth truth;
  for (const WebFeature closed :
       {WebFeature::robots_500, WebFeature::robots_silent, WebFeature::robots_reset, WebFeature::mute}) {
    if (has(host, closed)) return truth;
  }
  // The tree reaches every page, so that random links to them need no look.
  std::unordered_set<std::uint32_t> missing;
  const auto note = [&](WebPlace place, std::uint32_t number) {
    list_of(truth, place)->push_back(url(host, place, number));
  };
  for (std::uint32_t page = 0; page < options_.pages; ++page) {
    note(WebPlace::page, page);
    for_each_link(host, page, [&](const SyntheticLink& link) {
      if (link.place == WebPlace::page) return;
      if (link.place == WebPlace::missing && !missing.insert(link.number).second) return;
      note(link.place, link.number);
      if (link.place == WebPlace::old && in_two_hops(link.number)) note(WebPlace::moved, link.number);
      // Its pages know of nothing but the next one.
      for (std::uint32_t step = 2; link.place == WebPlace::step && step <= kChainSteps; ++step)
        note(WebPlace::step, step);
      if (link.place == WebPlace::sponsored) note(WebPlace::ad, link.number);
    });
  }
  for_each_guarded(host, [&](const std::string& path) { truth.guarded.push_back(origins_[host] + path); });
  truth.originals = argiope::originals(*this, host);
  for (std::uint32_t i = 0; i < kHiddenPages && has(host, WebFeature::sitemaps); ++i) {
    truth.listed.push_back(fmt::format("{}/hidden/{}", origins_[host], i));
  }
  for (std::uint32_t i = 0; i < kPosts && has(host, WebFeature::feeds); ++i) {
    truth.posts.push_back(fmt::format("{}/posts/{}", origins_[host], i));
  }
  for (std::uint32_t i = 1; has(host, WebFeature::scripts) && i <= kScriptedPages; ++i) {
    truth.scripted.push_back(origins_[host] + "/scripts/" + std::to_string(i));
  }
  for (std::vector<std::string>* list :
       {&truth.pages, &truth.redirects, &truth.broken, &truth.resources, &truth.disallowed, &truth.guarded,
        &truth.scripted, &truth.shunned, &truth.originals}) {
    std::ranges::sort(*list);
  }
  return truth;
}

}  // namespace argiope
