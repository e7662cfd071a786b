#include "web/text/meta_prescan.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::size_t kPrescanBytes = 1024;

using namespace std::string_view_literals;

// The first place at or after `from` where `lower` stands in `text` in any case; npos when nowhere.
std::size_t find_lower(std::string_view text, std::string_view lower, std::size_t from) noexcept {
  for (; from + lower.size() <= text.size(); ++from) {
    if (starts_with_lower(text.substr(from), lower)) return from;
  }
  return text.npos;
}

std::string_view skip_space(std::string_view text) noexcept {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  return text;
}

// "Extracting a character encoding from a meta element" (2.6.5), of its content attribute.
const Encoding* encoding_in_content(std::string_view content) noexcept {
  for (std::size_t at = 0; (at = find_lower(content, "charset", at)) != content.npos;) {
    at += 7;
    std::string_view rest = skip_space(content.substr(at));
    if (!rest.starts_with('=')) continue;
    rest = skip_space(rest.substr(1));
    if (rest.empty()) return nullptr;
    if (rest.front() == '"' || rest.front() == '\'') {
      const std::size_t close = rest.find(rest.front(), 1);
      return close == rest.npos ? nullptr : find_encoding(rest.substr(1, close - 1));
    }
    const auto end = std::ranges::find_if(rest, [](char c) { return is_space(c) || c == ';'; });
    return find_encoding({rest.begin(), end});
  }
  return nullptr;
}

// The encoding that a declaration inside the page can mean: it was read as ASCII, so it is not UTF-16.
const Encoding* as_declared(const Encoding* encoding) noexcept {
  if (encoding == nullptr) return nullptr;
  if (is_utf16(*encoding)) return &kUtf8;
  return encoding->name == "x-user-defined" ? &kWindows1252 : encoding;
}

class Prescan {
 public:
  explicit Prescan(std::string_view bytes) noexcept : rest_(bytes) {}

  const Encoding* run() noexcept {
    for (; !rest_.empty(); drop(1)) {
      if (rest_.front() != '<') continue;
      if (rest_.starts_with("<!--")) {
        drop(2);
        drop(rest_.find("-->"));
        drop(2);
      } else if (starts_with_lower(rest_, "<meta") && rest_.size() > 5 && (is_space(rest_[5]) || rest_[5] == '/')) {
        drop(5);
        if (const Encoding* found = meta()) return found;
      } else if (rest_.size() > 1 && is_alpha(rest_[rest_[1] == '/' && rest_.size() > 2 ? 2 : 1])) {
        drop(rest_.find_first_of("\t\n\f\r >"));
        for (Attribute ignored; get_attribute(ignored);) {
        }
      } else if (rest_.size() > 1 && (rest_[1] == '!' || rest_[1] == '/' || rest_[1] == '?')) {
        drop(rest_.find('>'));
      }
    }
    return nullptr;
  }

 private:
  struct Attribute {
    std::string_view name;
    std::string_view value;
  };

  // `npos` drops all: running out of bytes ends the prescan, whatever was being read.
  void drop(std::size_t count) noexcept { rest_.remove_prefix(std::min(count, rest_.size())); }
  void drop_space() noexcept { rest_ = skip_space(rest_); }

  const Encoding* meta() noexcept {
    bool got_pragma = false;
    bool needs_pragma = false;
    bool seen_pragma = false, seen_content = false, seen_charset = false;
    bool declared = false;  // `encoding` is what a charset attribute says, even if null
    const Encoding* encoding = nullptr;
    for (Attribute attribute; get_attribute(attribute);) {
      if (equals_lower(attribute.name, "http-equiv") && !std::exchange(seen_pragma, true)) {
        got_pragma = equals_lower(attribute.value, "content-type");
      } else if (equals_lower(attribute.name, "content") && !std::exchange(seen_content, true)) {
        const Encoding* const named = encoding_in_content(attribute.value);
        if (declared || named == nullptr) continue;
        encoding = named;
        needs_pragma = true;
      } else if (equals_lower(attribute.name, "charset") && !std::exchange(seen_charset, true)) {
        encoding = find_encoding(attribute.value);
        declared = true;
        needs_pragma = false;
      }
    }
    if (rest_.empty() || (needs_pragma && !got_pragma)) return nullptr;
    return as_declared(encoding);
  }

  // "Get an attribute". False at the tag's '>', which stays, and at the end of the bytes.
  bool get_attribute(Attribute& out) noexcept {
    while (!rest_.empty() && (is_space(rest_.front()) || rest_.front() == '/')) drop(1);
    if (rest_.empty() || rest_.front() == '>') return false;
    std::size_t length = rest_.find_first_of("\t\n\f\r />="sv, 1);  // a name may begin with '='
    out = {rest_.substr(0, length), {}};
    drop(length);
    drop_space();
    if (rest_.empty() || rest_.front() != '=') return !rest_.empty();
    drop(1);
    drop_space();
    if (rest_.empty() || rest_.front() == '>') return !rest_.empty();
    if (rest_.front() == '"' || rest_.front() == '\'') {
      length = rest_.find(rest_.front(), 1);
      out.value = rest_.substr(1, length - 1);
      drop(length == rest_.npos ? length : length + 1);
    } else {
      length = rest_.find_first_of("\t\n\f\r >"sv);
      out.value = rest_.substr(0, length);
      drop(length);
    }
    return !rest_.empty();
  }

  std::string_view rest_;
};

// "Get an XML encoding".
const Encoding* xml_encoding(std::string_view bytes) noexcept {
  const auto skip_low = [](std::string_view text) {
    while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') text.remove_prefix(1);
    return text;
  };
  if (!bytes.starts_with("<?xml")) return nullptr;
  const std::size_t end = bytes.find('>');
  if (end == bytes.npos) return nullptr;
  bytes = bytes.substr(0, end);
  const std::size_t at = bytes.find("encoding");
  if (at == bytes.npos) return nullptr;
  bytes = skip_low(bytes.substr(at + 8));
  if (!bytes.starts_with('=')) return nullptr;
  bytes = skip_low(bytes.substr(1));
  if (bytes.empty() || (bytes.front() != '"' && bytes.front() != '\'')) return nullptr;
  const std::size_t close = bytes.find(bytes.front(), 1);
  if (close == bytes.npos) return nullptr;
  const std::string_view label = bytes.substr(1, close - 1);
  const bool spaced = std::ranges::any_of(label, [](char c) { return static_cast<unsigned char>(c) <= ' '; });
  return spaced ? nullptr : as_declared(find_encoding(label));
}

}  // namespace

const Encoding* prescan_encoding(std::string_view bytes) noexcept {
  bytes = bytes.substr(0, kPrescanBytes);
  if (bytes.starts_with("<\0?\0x\0"sv)) return &kUtf16le;
  if (bytes.starts_with("\0<\0?\0x"sv)) return &kUtf16be;
  const Encoding* const found = Prescan(bytes).run();
  return found != nullptr ? found : xml_encoding(bytes);
}

}  // namespace argiope
