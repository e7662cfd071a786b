#include "crawl/hosts/host_rests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "crawl/page/find_note.hpp"

namespace argiope {
namespace {

constexpr std::string_view kRestNotes = "hosts/";
constexpr std::array kRestReasons = {RestReason::pace, RestReason::crawl_delay, RestReason::retry_after,
                                     RestReason::trouble, RestReason::elsewhere};

// "1764324000000 retry_after". nullopt: it is none.
std::optional<HostRest> parse_rest(std::string_view text) {
  std::int64_t ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  constexpr std::int64_t kMostMs =
      std::chrono::floor<std::chrono::milliseconds>(WallTime::max()).time_since_epoch().count();
  if (error != std::errc{} || ms < 0 || ms > kMostMs) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.starts_with(' ')) return std::nullopt;
  const auto why = std::ranges::find(kRestReasons, text.substr(1), [](RestReason reason) { return to_string(reason); });
  if (why == kRestReasons.end()) return std::nullopt;
  return HostRest{WallTime{std::chrono::milliseconds{ms}}, *why};
}

bool is_believed(const HostRest& rest, WallTime now) noexcept {
  return rest.until > now && (rest.why == RestReason::pace || rest.until <= now + HostRests::kLongest);
}

}  // namespace

std::string_view to_string(RestReason why) noexcept {
  constexpr std::string_view kNames[] = {"pace", "crawl_delay", "retry_after", "trouble", "elsewhere"};
  return kNames[static_cast<std::size_t>(why)];
}

std::string_view words_of(RestReason why) noexcept {
  constexpr std::string_view kWords[] = {
      "the crawl's pace leaves that much time between two requests", "the Crawl-delay of its robots.txt asks for that",
      "its Retry-After asks for that", "it did not answer, or not with its robots.txt",
      "its robots.txt is on another host, which may not be asked sooner"};
  return kWords[static_cast<std::size_t>(why)];
}

UrlNote HostRests::note_of(std::string_view site, const HostRest& rest) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(rest.until).time_since_epoch().count();
  return {fmt::format("{}{}", kRestNotes, site), fmt::format("{} {}", ms, to_string(rest.why))};
}

Result<std::optional<HostRest>> HostRests::find(UrlStore& store, std::string_view site) {
  const auto text = find_note(store, fmt::format("{}{}", kRestNotes, site));
  if (!text) return std::unexpected(text.error());
  return *text ? parse_rest(**text) : std::nullopt;
}

Result<void> HostRests::load(UrlStore& store, WallTime now) {
  UrlBatch forgotten;
  auto scanned = store.scan_notes(kRestNotes, [&](const UrlNote& note) {
    const auto rest = parse_rest(note.text);
    if (rest && is_believed(*rest, now)) {
      by_site_.emplace(note.name.substr(kRestNotes.size()), *rest);
    } else {
      forgotten.notes.push_back({note.name, {}});
    }
    return true;
  });
  if (!scanned) return scanned;
  if (forgotten.size() > 0) store.submit(std::move(forgotten));
  return {};
}

const HostRest* HostRests::of(std::string_view site) const {
  if (by_site_.empty()) return nullptr;
  const auto found = by_site_.find(std::string(site));
  return found == by_site_.end() ? nullptr : &found->second;
}

}  // namespace argiope
