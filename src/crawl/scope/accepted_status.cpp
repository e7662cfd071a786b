#include "crawl/scope/internal/accepted_status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "argiope/web/http_client.hpp"
#include "base/internal/printable.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr int kLeastStatus = 100, kLastStatus = 599;
constexpr int kMostStatus = 999;  // some servers make up their own, as LinkedIn this one

std::optional<int> parse_status(std::string_view text, int missing) {
  if (text.empty()) return missing;
  int status = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), status);
  const bool is_status =
      error == std::errc{} && end == text.data() + text.size() && status >= kLeastStatus && status <= kMostStatus;
  return is_status ? std::optional(status) : std::nullopt;
}

std::optional<StatusRange> parse_range(std::string_view text) {
  if (text.size() == 3 && text[0] >= '1' && text[0] <= '5' && (text.substr(1) == "xx" || text.substr(1) == "XX")) {
    const int first = 100 * (text[0] - '0');
    return StatusRange{first, first + 99};
  }
  std::size_t dots = text.find("..");
  std::size_t behind = 2;
  if (dots == std::string_view::npos) {
    dots = text.find('-');
    behind = 1;
  }
  if (dots == std::string_view::npos) {
    const auto status = parse_status(text, 0);
    if (!status || *status == 0) return std::nullopt;
    return StatusRange{*status, *status};
  }
  std::string_view rest = text.substr(dots + behind);
  if (behind == 2 && rest.starts_with('=')) rest.remove_prefix(1);  // as others write it
  const auto first = parse_status(text.substr(0, dots), kLeastStatus);
  const auto last = parse_status(rest, kLastStatus);
  if (!first || !last || *first > *last || text.size() == behind) return std::nullopt;
  return StatusRange{*first, *last};
}

}  // namespace

Result<std::vector<StatusRange>> parse_status_ranges(std::string_view text) {
  std::vector<StatusRange> ranges;
  std::optional<Error> wrong;
  for_each_token(
      text, [](char c) { return c == ','; },
      [&](std::string_view part) {
        const auto range = parse_range(trim_space(part));
        if (range) return ranges.push_back(*range);
        wrong = Error{Errc::invalid_input,
                      fmt::format("{}: not a status or a range of them; write 200..299,403", in_quotes(part))};
      });
  if (wrong) return std::unexpected(std::move(*wrong));
  if (ranges.empty()) return fail(Errc::invalid_input, "no status is named; write 200..299,403");
  return ranges;
}

bool is_broken(const UrlRecord& record, std::span<const StatusRange> accepted) noexcept {
  const bool answered = record.state == UrlState::done || (record.state == UrlState::failed && record.status_code > 0);
  if (accepted.empty() || !answered || is_redirect(record.status_code)) return is_broken(record);
  return std::ranges::none_of(accepted, [&](const StatusRange& range) {
    return record.status_code >= range.first && record.status_code <= range.last;
  });
}

Result<void> scan_unaccepted(UrlStore& store, std::span<const StatusRange> accepted, const UrlStore::Visitor& visit) {
  if (accepted.empty()) return store.scan_broken(visit);
  return store.scan(1, [&](const UrlRecord& record) { return !is_broken(record, accepted) || visit(record); });
}

}  // namespace argiope
