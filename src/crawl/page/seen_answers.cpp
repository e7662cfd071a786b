#include "crawl/page/seen_answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/internal/fingerprint.hpp"
#include "crawl/page/find_note.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {

std::string demand_of_sink(std::string_view kind, const std::string& path, std::string_view how) {
  std::error_code failed;
  std::filesystem::path place = path;
  if (path != "-") place = std::filesystem::weakly_canonical(std::filesystem::absolute(place, failed), failed);
  return fmt::format("{}/{:016x}", kind, fingerprint(how, fingerprint(failed ? path : place.string())));
}

std::int64_t SeenTimes::in_ms(WallTime time) noexcept {
  return std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

SeenTimes::SeenTimes(std::string_view text) {
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    Stretch stretch;
    const auto from = std::from_chars(one.data(), one.data() + one.size(), stretch.from);
    if (from.ec != std::errc{} || from.ptr == one.data() + one.size() || *from.ptr != '-') continue;
    const char* const until = from.ptr + 1;
    if (until != one.data() + one.size() &&
        std::from_chars(until, one.data() + one.size(), stretch.until).ec != std::errc{}) {
      continue;
    }
    stretches_.push_back(stretch);
  }
}

std::string SeenTimes::text() const {
  std::string text;
  for (const Stretch& stretch : stretches_) {
    if (!text.empty()) text += ',';
    text += fmt::format("{}-", stretch.from);
    if (stretch.until != kNoEnd) text += std::to_string(stretch.until);
  }
  return text;
}

bool SeenTimes::contains(WallTime time) const noexcept {
  const std::int64_t at = in_ms(time);
  return std::ranges::any_of(stretches_, [&](const Stretch& one) { return one.from <= at && at < one.until; });
}

void SeenTimes::begin(WallTime now) {
  if (is_open()) return;
  if (stretches_.size() == kMostStretches) stretches_.erase(stretches_.begin());
  stretches_.push_back({in_ms(now)});
}

void SeenTimes::end(WallTime now) {
  if (is_open()) stretches_.back().until = in_ms(now);
}

bool is_page_answer(const UrlRecord& record) noexcept {
  if (record.status_code != 200) return false;
  switch (record.reason) {
    case UrlReason::checked:
    case UrlReason::asset:
    case UrlReason::requisite:
    case UrlReason::sitemap:
    case UrlReason::content_type: return false;
    default: return record.content_type.empty() || is_html(record.content_type);
  }
}

bool is_answer_for(std::string_view demand, const UrlRecord& record) noexcept {
  if (is_page_answer(record)) return true;
  const bool is_of_pages = record.reason == UrlReason::asset || record.reason == UrlReason::requisite;
  const bool is_sheet = equals_lower(parse_content_type(record.content_type).type, "text/css");
  return demand == kAssetsDemand && record.status_code == 200 && is_sheet &&
         (is_of_pages || record.reason == UrlReason::none);
}

Result<UnseenPages> UnseenPages::read(UrlStore& store, std::string_view demand) {
  UnseenPages pages;
  pages.demand_ = demand;
  auto scanned = store.scan_runs([&](const UrlRun&) {
    pages.is_of_crawls_ = true;
    return false;
  });
  if (!scanned) return std::unexpected(std::move(scanned.error()));
  const auto text = find_note(store, fmt::format("{}{}", kSeenNotes, demand));
  if (!text) return std::unexpected(text.error());
  if (*text) pages.times_ = SeenTimes(**text);
  return pages;
}

Result<std::uint64_t> UnseenPages::count(UrlStore& store, std::string_view demand) {
  const auto pages = read(store, demand);
  if (!pages) return std::unexpected(pages.error());
  std::uint64_t unseen = 0;
  auto scanned = store.scan(1, [&](const UrlRecord& record) {
    unseen += pages->has(record);
    return true;
  });
  if (!scanned) return std::unexpected(std::move(scanned.error()));
  return unseen;
}

}  // namespace argiope
