#include "web/http/internal/http_lines.hpp"

#include <algorithm>
#include <charconv>

#include "web/text/internal/ascii.hpp"
#include "web/text/internal/http_field.hpp"

namespace argiope {

HttpLineFinder::Found HttpLineFinder::find(std::string_view bytes, std::size_t limit, HttpLine& line) noexcept {
  const std::size_t end = bytes.find('\n', searched_);
  const bool has_ended = end != std::string_view::npos;
  searched_ = has_ended ? end : bytes.size();
  if (used_ + searched_ > limit) return Found::too_long;
  if (!has_ended) return Found::not_yet;
  line = {bytes.substr(0, end), end + 1, !bytes.substr(0, end).ends_with('\r')};
  if (!line.is_bare) line.text.remove_suffix(1);
  return Found::whole;
}

// RFC 9110, 5.5 and 5.6.2.
HttpField http_field_in(std::string_view line) noexcept {
  using Fault = HttpField::Fault;
  const std::size_t colon = line.find(':');
  const bool has_colon = colon != std::string_view::npos;
  HttpField field{.name = line.substr(0, colon), .value = has_colon ? trim_blanks(line.substr(colon + 1)) : line};
  while (!field.name.empty() && is_blank(field.name.back())) {
    field.name.remove_suffix(1);
    field.is_spaced = true;
  }
  if (!has_colon || !is_token(field.name)) {
    field.fault = Fault::name;
    return field;
  }
  const auto control = std::ranges::find_if(field.value, is_control);
  if (control != field.value.end()) field.fault = *control == '\r' ? Fault::carriage_return : Fault::control;
  return field;
}

void append_to_list(std::string& list, std::string_view value) {
  if (!list.empty()) list += ", ";
  list += value;
}

bool keeps_connection(int minor_version, std::string_view connection) {
  bool keeps = minor_version >= 1;
  bool closes = false;
  for_each_element(connection, [&](std::string_view element) {
    keeps = keeps || equals_lower(element, "keep-alive");
    closes = closes || equals_lower(element, "close");
  });
  return keeps && !closes;
}

std::optional<std::uint64_t> agreed_length(std::string_view list, bool& is_repeated) {
  std::optional<std::uint64_t> agreed;
  bool fine = true;
  for_each_element(list, [&](std::string_view element) {
    std::uint64_t length = 0;
    const char* const end = element.data() + element.size();
    const auto [stop, error] = std::from_chars(element.data(), end, length);
    fine = fine && error == std::errc{} && stop == end && (!agreed || *agreed == length);
    is_repeated = is_repeated || agreed.has_value();
    agreed = length;
  });
  return fine ? agreed : std::nullopt;
}

// --- chunks

bool are_chunk_extensions(std::string_view text) noexcept {
  const auto take = [&](char c) {
    const std::size_t at = text.find_first_not_of(" \t");
    if (at == std::string_view::npos || text[at] != c) return false;
    text.remove_prefix(at + 1);
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    return true;
  };
  const auto take_value = [&] {
    if (!text.starts_with('"')) return !take_token(text).empty();
    const std::size_t size = text.size();
    const std::string_view quoted = take_quoted(text);
    return size - text.size() == quoted.size() + 2 && !has_controls(quoted);
  };
  while (!text.empty()) {
    if (!take(';') || take_token(text).empty() || (take('=') && !take_value())) return false;
  }
  return true;
}

HttpChunkReader::Step HttpChunkReader::take_line(std::string_view bytes, std::size_t limit, HttpLine& line) noexcept {
  switch (lines_.find(bytes, limit, line)) {
    case HttpLineFinder::Found::not_yet: return Step::needs_more;
    case HttpLineFinder::Found::too_long: return Step::too_long;
    case HttpLineFinder::Found::whole: break;
  }
  if (place_ == Place::trailers) {
    lines_.use(line);
    return Step::trailer;
  }
  std::uint64_t size = 0;
  const char* const end = line.text.data() + line.text.size();
  const auto [stop, error] = std::from_chars(line.text.data(), end, size, 16);
  extensions_ = {stop, static_cast<std::size_t>(end - stop)};
  const std::string_view behind = trim_blanks(extensions_);
  if (error != std::errc{} || (!behind.empty() && behind.front() != ';')) return Step::bad_size;
  lines_.use(line);
  if (size > 0) lines_.start_over();
  left_ = size;
  place_ = left_ == 0 ? Place::trailers : Place::data;
  return Step::size;
}

HttpChunkReader::Step HttpChunkReader::take(std::string_view bytes, std::size_t limit, HttpLine& line) noexcept {
  line = {};
  switch (place_) {
    case Place::size:
    case Place::trailers: return take_line(bytes, limit, line);
    case Place::data:
      line.text = bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), left_)));
      line.size = line.text.size();
      left_ -= line.size;
      if (left_ == 0) place_ = Place::end;
      return Step::data;
    case Place::end: break;
  }
  if (bytes == "\r") return Step::needs_more;
  line.is_bare = bytes.front() == '\n';
  if (!line.is_bare && !bytes.starts_with("\r\n")) return Step::bad_end;
  line.size = line.is_bare ? 1 : 2;
  place_ = Place::size;
  return Step::end;
}

}  // namespace argiope
