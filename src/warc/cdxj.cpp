#include "warc/internal/cdxj.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iterator>

#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/rfc3339.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/feed_date.hpp"
#include "web/url/internal/surt.hpp"

namespace argiope {
namespace {

constexpr std::size_t kTimestampDigits = 14;

// A number, whether it is written as one or as text.
std::optional<std::uint64_t> cdxj_number(const JsonValue& value) {
  if (const auto natural = value.if_natural()) return natural;
  const std::string_view text = value.if_text().value_or("");
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

void append_cdxj_member(std::string& out, std::string_view name, std::string_view value) {
  out.append(out.ends_with('{') ? "\"" : ", \"").append(name).append("\": ");
  append_json_string(out, value);
}

}  // namespace

std::string cdx_timestamp(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{std::chrono::floor<std::chrono::seconds>(time - day)};
  return fmt::format("{:04}{:02}{:02}{:02}{:02}{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

std::string cdx_timestamp(std::string_view warc_date) {
  if (const auto time = parse_rfc3339(warc_date)) return cdx_timestamp(*time);
  if (const auto date = parse_w3c_date(warc_date)) return cdx_timestamp(date->at);
  const bool is_one = warc_date.size() == kTimestampDigits && std::ranges::all_of(warc_date, is_digit);
  return is_one ? std::string(warc_date) : std::string{};
}

void append_cdxj(std::string& out, const CdxjLine& line) {
  out.append(surt_key(line.url)).append(" ").append(line.timestamp).append(" {");
  append_cdxj_member(out, "url", line.url);
  append_cdxj_member(out, "mime", line.mime);
  append_cdxj_member(out, "status", line.status == 0 ? "-" : fmt::to_string(line.status));
  append_cdxj_member(out, "digest", line.digest.empty() ? "-" : std::string_view(line.digest));
  append_cdxj_member(out, "length", fmt::to_string(line.length));
  append_cdxj_member(out, "offset", fmt::to_string(line.offset));
  append_cdxj_member(out, "filename", line.filename);
  if (!line.method.empty()) append_cdxj_member(out, "method", line.method);
  out += "}\n";
}

std::optional<CdxjLine> parse_cdxj(std::string_view text) {
  const std::size_t key_end = text.find(' ');
  const std::size_t time_end = key_end == std::string_view::npos ? key_end : text.find(' ', key_end + 1);
  if (time_end == std::string_view::npos) return std::nullopt;
  CdxjLine line;
  line.timestamp = text.substr(key_end + 1, time_end - key_end - 1);
  const auto json = JsonText::parse(text.substr(time_end + 1));
  if (!json || line.timestamp.size() != kTimestampDigits) return std::nullopt;
  JsonErrors errors;
  std::optional<std::uint64_t> length, offset;
  json->root(errors).for_each_member([&](std::string_view name, const JsonValue& value) {
    if (name == "url") line.url = value.if_text().value_or("");
    if (name == "mime") line.mime = value.if_text().value_or("");
    if (name == "status") line.status = static_cast<int>(std::min<std::uint64_t>(cdxj_number(value).value_or(0), 999));
    if (name == "digest") line.digest = value.if_text().value_or("");
    if (name == "length") length = cdxj_number(value);
    if (name == "offset") offset = cdxj_number(value);
    if (name == "method") line.method = value.if_text().value_or("");
    if (name == "filename") line.filename = value.if_text().value_or("");
  });
  if (errors || !length || !offset || line.filename.empty() || line.url.empty()) return std::nullopt;
  if (line.digest == "-") line.digest.clear();
  if (starts_with_lower(line.digest, "sha1:")) line.digest.erase(0, 5);
  line.length = *length;
  line.offset = *offset;
  return line;
}

}  // namespace argiope
