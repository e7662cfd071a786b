#include "warc/internal/warc_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/http_field.hpp"

namespace argiope {
namespace {

constexpr std::string_view kWarcTypes[] = {"warcinfo", "response", "request",    "revisit",
                                           "metadata", "resource", "conversion", "continuation"};
constexpr std::size_t kMostWarcFields = 256;

std::unexpected<Error> bad_warc_head(std::string why) { return fail(Errc::corrupt, std::move(why)); }

WarcType warc_type_of(std::string_view name) noexcept {
  const auto found = std::ranges::find_if(kWarcTypes, [&](std::string_view one) { return equals_lower(name, one); });
  return static_cast<WarcType>(std::distance(std::begin(kWarcTypes), found));
}

}  // namespace

std::string_view to_string(WarcType type) noexcept {
  return type == WarcType::other ? std::string_view{} : kWarcTypes[static_cast<std::size_t>(type)];
}

bool is_same_payload(std::string_view profile) noexcept { return !profile.contains("not-modified"); }

Result<WarcHead> WarcHead::parse(std::string_view text, bool is_lenient) {
  HttpHeadLine line;
  if (!starts_with_lower(text, "warc/") || !take_http_line(text, line, true))
    return bad_warc_head("no record begins here");
  const std::string_view version = trim_space(line.whole);
  if (!starts_with_lower(version, "warc/1.") && !starts_with_lower(version, "warc/0.")) {
    return bad_warc_head(
        fmt::format("a record of the version {}, of which nothing is known here", in_quotes(version, 20)));
  }
  WarcHead head;
  head.has_zeros_ = text.contains('\0');
  while (take_http_line(text, line, false)) {
    if (line.name.empty() && is_lenient) continue;
    if (line.name.empty()) return bad_warc_head(fmt::format("{} is no field", in_quotes(trim_space(line.whole), 40)));
    if (head.fields_.size() == kMostWarcFields)
      return bad_warc_head(fmt::format("more than {} fields", kMostWarcFields));
    head.fields_.emplace_back(line.name, unfolded(line));
  }
  const std::string_view type = head.field("WARC-Type");
  const std::string_view length = head.field("Content-Length");
  if (type.empty()) return bad_warc_head("a record without WARC-Type");
  const char* const end = length.data() + length.size();
  const auto [stop, error] = std::from_chars(length.data(), end, head.content_length_);
  head.has_length_ = !length.empty() && error == std::errc{} && stop == end;
  if (!head.has_length_ && !is_lenient) {
    return bad_warc_head(length.empty() ? "a record without Content-Length"
                                        : fmt::format("the Content-Length {} is no number", in_quotes(length, 40)));
  }
  head.type_ = warc_type_of(type);
  return head;
}

std::string_view WarcHead::field(std::string_view name) const noexcept {
  for (const auto& [its_name, value] : fields_) {
    if (!equals_ignoring_case(its_name, name)) continue;
    const std::string_view found = value;
    return found.starts_with('<') && found.ends_with('>') ? found.substr(1, found.size() - 2) : found;
  }
  return {};
}

std::string new_record_id(Random& random) {
  constexpr std::uint64_t kVersion = 0x4000, kVersionBits = 0xf000;
  constexpr std::uint64_t kVariant = 1ull << 63, kVariantBits = 3ull << 62;
  const std::uint64_t high = (random.next() & ~kVersionBits) | kVersion;
  const std::uint64_t low = (random.next() & ~kVariantBits) | kVariant;
  return fmt::format("<urn:uuid:{:08x}-{:04x}-{:04x}-{:04x}-{:012x}>", high >> 32, high >> 16 & 0xffff, high & 0xffff,
                     low >> 48, low & 0xffff'ffff'ffff);
}

void WarcHeadWriter::begin(WarcType type, std::string_view id, WallTime date) {
  text_.assign("WARC/1.1\r\n");
  add("WARC-Type", to_string(type));
  add("WARC-Record-ID", id);
  text_ += "WARC-Date: ";
  append_rfc3339(text_, date);
  text_ += "\r\n";
}

void WarcHeadWriter::add(std::string_view name, std::string_view value) {
  if (value.empty()) return;
  const std::size_t begin = text_.append(name).append(": ").size();
  text_ += value;
  std::replace_if(
      text_.begin() + static_cast<std::ptrdiff_t>(begin), text_.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  text_ += "\r\n";
}

std::string_view WarcHeadWriter::end(std::uint64_t content_length) {
  fmt::format_to(std::back_inserter(text_), "Content-Length: {}\r\n\r\n", content_length);
  return text_;
}

// --- the head of an HTTP message

std::optional<std::size_t> http_head_size(std::string_view message) noexcept {
  for (std::size_t end = message.find('\n'); end != std::string_view::npos; end = message.find('\n', end + 1)) {
    const std::string_view rest = message.substr(end + 1);
    if (rest.starts_with('\n')) return end + 2;
    if (rest.starts_with("\r\n")) return end + 3;
  }
  return std::nullopt;
}

bool take_http_line(std::string_view& head, HttpHeadLine& line, bool first) {
  if (head.empty() || head.starts_with('\n') || head.starts_with("\r\n")) return false;
  std::size_t end = head.find('\n');
  line.value = head.substr(0, end);
  const auto is_folded = [&] { return end + 1 < head.size() && (head[end + 1] == ' ' || head[end + 1] == '\t'); };
  while (end != std::string_view::npos && is_folded()) end = head.find('\n', end + 1);
  line.whole = head.substr(0, end == std::string_view::npos ? end : end + 1);
  head.remove_prefix(line.whole.size());
  const std::size_t colon = first ? std::string_view::npos : line.value.find(':');
  line.name = colon == std::string_view::npos ? std::string_view{} : trim_space(line.value.substr(0, colon));
  line.value = trim_space(colon == std::string_view::npos ? line.value : line.value.substr(colon + 1));
  return true;
}

std::string unfolded(const HttpHeadLine& line) {
  std::string value(line.value);
  std::string_view rest = line.whole.substr(std::min(line.whole.find('\n'), line.whole.size()));
  for_each_token(
      rest, [](char c) { return c == '\n'; },
      [&](std::string_view more) { value.append(value.empty() ? "" : " ").append(trim_space(more)); });
  return value;
}

namespace {

// "SPDY/3 200", "h2 200" with a field or nothing behind it, as some writers have it where the protocol has no such
// line.
bool is_answer_of_another_protocol(std::string_view text) noexcept {
  constexpr std::size_t kLongestProtocol = 12;
  std::string_view line = text.substr(0, text.find('\n'));
  const std::string_view next = text.substr(std::min(line.size() + 1, text.size()));
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string_view name = line.substr(0, space), code = line.substr(std::min(space + 1, line.size()));
  const auto is_of_name = [](char c) { return is_alnum(c) || c == '/' || c == '.'; };
  const auto is_of_field = [](char c) { return is_alnum(c) || c == '-' || c == '_'; };
  if (name.empty() || name.size() > kLongestProtocol || !is_alpha(name[0]) || !std::ranges::all_of(name, is_of_name))
    return false;
  if (code.size() < 3 || !std::ranges::all_of(code.substr(0, 3), is_digit) || (code.size() > 3 && !is_space(code[3])))
    return false;
  const auto field_end = static_cast<std::size_t>(std::ranges::find_if_not(next, is_of_field) - next.begin());
  return next.starts_with('\n') || next.starts_with("\r\n") ||
         (field_end > 0 && next.substr(field_end).starts_with(':'));
}

bool begins_as_answer(std::string_view text) noexcept {
  return starts_with_lower(text, "http") || starts_with_lower(text, "icy ") || is_answer_of_another_protocol(text);
}

bool has_fields(std::string_view head) noexcept {
  HttpHeadLine line;
  return take_http_line(head, line, true) && take_http_line(head, line, false);
}

}  // namespace

HttpParts http_parts(std::string_view block) {
  for (;;) {
    const std::string_view begins = block.substr(std::min(block.find_first_not_of("\r\n"), block.size()));
    if (!begins_as_answer(begins)) return {{}, block};
    const std::size_t size = http_head_size(begins).value_or(begins.size());
    const HttpParts parts{begins.substr(0, size), begins.substr(size)};
    const int status = facts_of_response(parts.head).status;
    const bool is_of_proxy = status == 200 && !has_fields(parts.head);
    const bool is_interim = (status >= 100 && status <= 199) || is_of_proxy;
    if (!is_interim || !starts_with_lower(parts.payload, "http/")) return parts;
    block = parts.payload;
  }
}

HttpHeadFacts facts_of_response(std::string_view head) {
  HttpHeadFacts facts;
  HttpHeadLine line;
  if (!take_http_line(head, line, true)) return facts;
  const std::size_t space = std::min(line.value.find(' '), line.value.size());
  const std::string_view code = trim_space(line.value.substr(space));
  (void)std::from_chars(code.data(), code.data() + std::min<std::size_t>(code.size(), 3), facts.status);
  while (facts.content_type.empty() && take_http_line(head, line, false)) {
    if (equals_lower(line.name, "content-type")) facts.content_type = line.value;
  }
  return facts;
}

std::string_view mime_of(std::string_view content_type) noexcept {
  const std::string_view type = content_type.substr(0, content_type.find_first_of("; ,\t"));
  return type.empty() ? "unk" : type;
}

}  // namespace argiope
