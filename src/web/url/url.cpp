#include "argiope/web/url.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/internal/utf8.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/url/url_host.hpp"

namespace argiope {

namespace {

// --- bytes and what they need --------------------------------------------------------------------------------

enum EncodeSet : std::uint8_t {
  kFragmentSet = 1,
  kQuerySet = 2,  // of special schemes
  kPathSet = 4,
  kUserinfoSet = 8,
  kNeverPlain = 16,  // in a path: its end, or a separator or dot that needs a closer look
};

// Bit sets of the URL Standard's percent-encode sets (section 1.3), one byte a byte.
constexpr auto kByteSets = [] {
  std::array<std::uint8_t, 256> table{};
  const auto add = [&](std::string_view bytes, int sets) {
    for (const char c : bytes) table[static_cast<unsigned char>(c)] |= static_cast<std::uint8_t>(sets);
  };
  for (std::size_t c = 0; c < 256; ++c) {
    if (c < 0x20 || c > 0x7e) table[c] = kFragmentSet | kQuerySet | kPathSet | kUserinfoSet;
  }
  add(" \"<>", kFragmentSet | kQuerySet | kPathSet | kUserinfoSet);
  add("`", kFragmentSet | kPathSet | kUserinfoSet);
  add("#", kQuerySet | kPathSet | kUserinfoSet);
  add("'", kQuerySet);
  add("?^{}", kPathSet | kUserinfoSet);
  add("/:;=@[\\]|", kUserinfoSet);
  add("?#\\", kNeverPlain);
  return table;
}();

bool in_set(char c, std::uint8_t sets) noexcept { return (kByteSets[static_cast<unsigned char>(c)] & sets) != 0; }

constexpr bool is_slash(char c) noexcept { return c == '/' || c == '\\'; }

void append_percent(std::string& out, unsigned char byte) {
  constexpr char kHex[] = "0123456789ABCDEF";
  const char text[3] = {'%', kHex[byte >> 4], kHex[byte & 15]};
  out.append(text, 3);
}

// Appends `text` with the bytes of `set` percent-encoded; what is not UTF-8 as U+FFFD.
void append_encoded(std::string& out, std::string_view text, std::uint8_t set) {
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() && !in_set(text[plain], set)) ++plain;
    out.append(text.data(), plain);
    text.remove_prefix(plain);
    if (text.empty()) return;
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      out += "%EF%BF%BD";
      text.remove_prefix(1);
      continue;
    }
    for (std::size_t i = 0; i < length; ++i) append_percent(out, static_cast<unsigned char>(text[i]));
    text.remove_prefix(length);
  }
}

// --- schemes -------------------------------------------------------------------------------------------------

struct SpecialScheme {
  std::string_view name;
  std::uint16_t port;  // 0: none
};
constexpr SpecialScheme kSpecialSchemes[] = {{"http", 80}, {"https", 443}, {"ws", 80},
                                             {"wss", 443}, {"ftp", 21},    {"file", 0}};

const SpecialScheme* find_special(std::string_view name) noexcept {
  for (const SpecialScheme& scheme : kSpecialSchemes) {
    if (equals_lower(name, scheme.name)) return &scheme;
  }
  return nullptr;
}

// --- dots and drive letters ------------------------------------------------------------------------------------

// Takes a "." or "%2e" off the front.
bool take_dot(std::string_view& text) noexcept {
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    return true;
  }
  if (text.size() >= 3 && text[0] == '%' && text[1] == '2' && (text[2] == 'e' || text[2] == 'E')) {
    text.remove_prefix(3);
    return true;
  }
  return false;
}

int count_dots(std::string_view segment) noexcept {
  int dots = 0;
  while (dots < 3 && take_dot(segment)) ++dots;
  return segment.empty() ? dots : 3;
}

bool is_drive_letter(std::string_view text) noexcept {
  return text.size() == 2 && is_alpha(text[0]) && (text[1] == ':' || text[1] == '|');
}
bool starts_with_drive_letter(std::string_view text) noexcept {
  return text.size() >= 2 && is_drive_letter(text.substr(0, 2)) &&
         (text.size() == 2 || is_slash(text[2]) || text[2] == '?' || text[2] == '#');
}

std::string_view strip_controls(std::string_view text) noexcept {
  const auto strip = [](char c) { return static_cast<unsigned char>(c) <= 0x20; };
  while (!text.empty() && strip(text.front())) text.remove_prefix(1);
  while (!text.empty() && strip(text.back())) text.remove_suffix(1);
  return text;
}

constexpr bool is_tab_or_newline(char c) noexcept { return c == '\t' || c == '\n' || c == '\r'; }

std::string without_tabs_and_newlines(std::string_view text) {
  std::string cleaned(text);
  std::erase_if(cleaned, is_tab_or_newline);
  return cleaned;
}

// `input` begins with a scheme.
std::string describe_unsupported(std::string_view input) {
  constexpr std::size_t kShown = 32;
  const std::string cleaned = without_tabs_and_newlines(strip_controls(input));
  const std::string_view scheme = std::string_view{cleaned}.substr(0, cleaned.find(':'));
  return fmt::format("scheme \"{}{}\" is none of http, https, ws, wss, ftp and file", scheme.substr(0, kShown),
                     scheme.size() > kShown ? "…" : "");
}

}  // namespace

// The Standard's basic URL parser for special schemes, as straight-line code: its states are these functions.
class UrlParser {
 public:
  UrlParser(Url& out, const Url* base, const QueryEncoder* encoder)
      : out_(out), href_(out.href_), base_(base), encoder_(encoder) {}

  // After a failure `out` is in pieces.
  UrlStatus parse(std::string_view input) {
    href_.clear();
    const std::size_t scheme_length = scheme_of(input);
    if (scheme_length == std::string_view::npos) {
      if (base_ == nullptr || base_->href_.empty()) return UrlStatus::no_base;
      scheme_ = find_special(base_->scheme());
      return is_file() ? parse_file(input) : parse_relative(input);
    }
    scheme_ = find_special(input.substr(0, scheme_length));
    if (scheme_ == nullptr) return UrlStatus::unsupported;
    const bool same_as_base = base_ != nullptr && base_->scheme() == scheme_->name;
    if (!same_as_base) base_ = nullptr;
    input.remove_prefix(scheme_length + 1);
    if (is_file()) return parse_file(input);
    if (same_as_base && !input.starts_with("//")) return parse_relative(input);
    return parse_authority(skip_slashes(input));
  }

 private:
  static std::size_t scheme_of(std::string_view input) noexcept {
    if (input.empty() || !is_alpha(input.front())) return std::string_view::npos;
    for (std::size_t i = 1; i < input.size(); ++i) {
      const char c = input[i];
      if (c == ':') return i;
      if (!is_alpha(c) && !is_digit(c) && c != '+' && c != '-' && c != '.') break;
    }
    return std::string_view::npos;
  }

  static std::string_view skip_slashes(std::string_view input) noexcept {
    while (!input.empty() && is_slash(input.front())) input.remove_prefix(1);
    return input;
  }

  std::uint32_t here() const noexcept { return static_cast<std::uint32_t>(href_.size()); }
  bool is_file() const noexcept { return scheme_->port == 0; }

  void write_scheme() {
    href_ += scheme_->name;
    out_.scheme_end_ = here();
    href_ += "://";
    out_.username_end_ = out_.host_start_ = out_.host_end_ = here();
  }

  // Scheme, credentials, host and port of the base.
  void copy_authority() {
    href_.assign(base_->href_, 0, base_->path_start_);
    out_.scheme_end_ = base_->scheme_end_;
    out_.username_end_ = base_->username_end_;
    out_.host_start_ = base_->host_start_;
    out_.host_end_ = base_->host_end_;
    out_.path_start_ = base_->path_start_;
  }

  void copy_path() {
    href_.append(base_->pathname());
    out_.query_start_ = out_.hash_start_ = here();
  }

  // --- relative

  UrlStatus parse_relative(std::string_view input) {
    if (input.size() >= 2 && is_slash(input[0]) && is_slash(input[1])) return parse_authority(skip_slashes(input));
    copy_authority();
    if (!input.empty() && is_slash(input.front())) return parse_path(input);
    return parse_relative_path(input);
  }

  // The references that are resolved against the base's path: "", "?…", "#…" or a path without a leading slash.
  UrlStatus parse_relative_path(std::string_view input) {
    if (input.empty() || input.front() == '?' || input.front() == '#') {
      copy_path();
      if (input.empty() || input.front() == '#') {
        href_.append(base_->href_, base_->query_start_, base_->hash_start_ - base_->query_start_);
        out_.hash_start_ = here();
      }
      return parse_query(input);
    }
    const std::string_view path = base_->pathname();
    href_.append(path.substr(0, path.rfind('/')));
    return parse_path(input);
  }

  // --- authority

  UrlStatus parse_authority(std::string_view input) {
    write_scheme();
    const std::size_t end = std::min(input.find_first_of("/\\?#"), input.size());
    std::string_view authority = input.substr(0, end);
    const std::size_t at = authority.rfind('@');
    if (at != std::string_view::npos) {
      write_credentials(authority.substr(0, at));
      authority.remove_prefix(at + 1);
    }
    if (authority.empty()) return UrlStatus::no_host;
    const std::size_t colon = port_colon(authority);
    const std::string_view host = authority.substr(0, colon);
    if (host.empty()) return UrlStatus::no_host;
    out_.host_start_ = here();
    if (!parse_host(host, href_)) return UrlStatus::bad_host;
    out_.host_end_ = here();
    if (colon != std::string_view::npos && !write_port(authority.substr(colon + 1))) return UrlStatus::bad_port;
    out_.path_start_ = here();
    return parse_path(input.substr(end));
  }

  void write_credentials(std::string_view text) {
    const std::size_t colon = text.find(':');
    append_encoded(href_, text.substr(0, colon), kUserinfoSet);
    out_.username_end_ = here();
    if (colon != std::string_view::npos && colon + 1 < text.size()) {
      href_ += ':';
      append_encoded(href_, text.substr(colon + 1), kUserinfoSet);
    }
    if (here() > out_.scheme_end_ + 3) href_ += '@';
  }

  // The ":" before the port: the first outside of brackets.
  static std::size_t port_colon(std::string_view authority) noexcept {
    bool inside_brackets = false;
    for (std::size_t i = 0; i < authority.size(); ++i) {
      if (authority[i] == '[') inside_brackets = true;
      if (authority[i] == ']') inside_brackets = false;
      if (authority[i] == ':' && !inside_brackets) return i;
    }
    return std::string_view::npos;
  }

  bool write_port(std::string_view digits) {
    std::uint32_t port = 0;
    for (const char c : digits) {
      if (!is_digit(c)) return false;
      port = port * 10 + static_cast<std::uint32_t>(c - '0');
      if (port > 65535) return false;
    }
    if (digits.empty() || port == scheme_->port) return true;
    char text[8];
    href_ += ':';
    href_.append(text, std::to_chars(text, text + sizeof text, port).ptr);
    return true;
  }

  // --- file

  UrlStatus parse_file(std::string_view input) {
    if (!input.empty() && is_slash(input.front())) {
      if (input.size() >= 2 && is_slash(input[1])) return parse_file_host(input.substr(2));
      write_scheme();
      if (base_ != nullptr) write_host_text(base_->host());
      out_.path_start_ = here();
      if (base_ != nullptr && !starts_with_drive_letter(input.substr(1))) copy_drive_letter();
      return parse_path(input);
    }
    if (base_ == nullptr) {
      write_scheme();
      out_.path_start_ = here();
      return parse_path(input);
    }
    copy_authority();
    if (starts_with_drive_letter(input)) return parse_path(input);
    if (input.empty() || input.front() == '?' || input.front() == '#') return parse_relative_path(input);
    href_.append(base_->pathname());
    shorten_path();
    return parse_path(input);
  }

  UrlStatus parse_file_host(std::string_view input) {
    write_scheme();
    const std::size_t end = std::min(input.find_first_of("/\\?#"), input.size());
    const std::string_view host = input.substr(0, end);
    if (is_drive_letter(host)) {  // file://C:/… : a path after all
      out_.path_start_ = here();
      return parse_path(input);
    }
    if (!host.empty()) {
      if (!parse_host(host, href_)) return UrlStatus::bad_host;
      if (std::string_view{href_}.substr(out_.host_start_) == "localhost") href_.resize(out_.host_start_);
    }
    out_.host_end_ = out_.path_start_ = here();
    return parse_path(input.substr(end));
  }

  void write_host_text(std::string_view host) {
    href_ += host;
    out_.host_end_ = here();
  }

  void copy_drive_letter() {
    const std::string_view path = base_->pathname();
    const std::string_view first = path.substr(1, path.find('/', 1) - 1);
    if (is_drive_letter(first) && first[1] == ':') {
      href_ += '/';
      href_ += first;
    }
  }

  // --- path, query and fragment

  // Removes the last segment; a file's drive letter stays.
  void shorten_path() {
    const std::string_view path = std::string_view{href_}.substr(out_.path_start_);
    if (path.empty()) return;
    if (is_file() && path.size() == 3 && is_drive_letter(path.substr(1)) && path[2] == ':') return;
    href_.resize(out_.path_start_ + path.rfind('/'));
  }

  // Appends the segments of `input` to the path that is there; a leading slash only separates.
  UrlStatus parse_path(std::string_view input) {
    if (!input.empty() && is_slash(input.front())) input.remove_prefix(1);
    for (;;) {
      // Segments of ordinary bytes are copied as they are.
      std::size_t end = 0;
      bool plain = true;
      for (; end < input.size() && input[end] != '/'; ++end) {
        const std::uint8_t sets = kByteSets[static_cast<unsigned char>(input[end])];
        if ((sets & (kPathSet | kNeverPlain)) == 0) [[likely]]
          continue;
        if ((sets & kNeverPlain) != 0) break;
        plain = false;
      }
      const bool more = end < input.size() && is_slash(input[end]);
      append_segment(input.substr(0, end), plain, more);
      input.remove_prefix(end);
      if (!more) break;
      input.remove_prefix(1);
    }
    out_.query_start_ = out_.hash_start_ = here();
    return parse_query(input);
  }

  void append_segment(std::string_view segment, bool plain, bool more) {
    if (!segment.empty() && (segment.front() == '.' || segment.front() == '%')) [[unlikely]] {
      const int dots = count_dots(segment);
      if (dots == 1 || dots == 2) {
        if (dots == 2) shorten_path();
        if (!more) href_ += '/';
        return;
      }
    }
    const bool first = here() == out_.path_start_;
    href_ += '/';
    if (first && is_file() && is_drive_letter(segment)) {
      href_ += segment[0];
      href_ += ':';
    } else if (plain) {
      href_ += segment;
    } else {
      append_encoded(href_, segment, kPathSet);
    }
  }

  UrlStatus parse_query(std::string_view input) {
    if (input.starts_with('?')) {
      const std::size_t end = std::min(input.find('#'), input.size());
      out_.query_start_ = here();
      href_ += '?';
      write_query(input.substr(1, end - 1));
      out_.hash_start_ = here();
      input.remove_prefix(end);
    }
    if (input.starts_with('#')) {
      href_ += '#';
      append_encoded(href_, input.substr(1), kFragmentSet);
    }
    return UrlStatus::ok;
  }

  void write_query(std::string_view query) {
    // The encoding matters for neither ASCII nor ws: (URL Standard, query state).
    if (encoder_ == nullptr || scheme_->name.starts_with("ws") ||
        std::ranges::all_of(query, [](char c) { return static_cast<unsigned char>(c) < 0x80; })) {
      append_encoded(href_, query, kQuerySet);
      return;
    }
    std::string bytes;
    (*encoder_)(to_valid_utf8(query), bytes);
    for (const char c : bytes) {
      if (in_set(c, kQuerySet)) {
        append_percent(href_, static_cast<unsigned char>(c));
      } else {
        href_ += c;
      }
    }
  }

  Url& out_;
  std::string& href_;
  const Url* base_;
  const QueryEncoder* encoder_;
  const SpecialScheme* scheme_ = nullptr;
};

std::string_view to_string(UrlStatus status) noexcept {
  switch (status) {
    case UrlStatus::ok: return "ok";
    case UrlStatus::unsupported: return "not a scheme that can be crawled";
    case UrlStatus::too_large: return "longer than 64 KiB";
    case UrlStatus::no_base: return "it has no scheme (such as https://)";
    case UrlStatus::no_host: return "it names no host";
    case UrlStatus::bad_host: return "the host is not valid";
    case UrlStatus::bad_port: return "the port is not a number from 0 to 65535";
  }
  return "unknown";
}

UrlStatus parse_into(Url& out, std::string_view input, const Url* base, const QueryEncoder* encoder) {
  UrlStatus status = UrlStatus::too_large;
  if (input.size() <= kMaxUrlLength) {
    input = strip_controls(input);
    if (std::ranges::any_of(input, is_tab_or_newline)) [[unlikely]] {
      status = UrlParser(out, base, encoder).parse(without_tabs_and_newlines(input));
    } else {
      status = UrlParser(out, base, encoder).parse(input);
    }
    // Percent-encoding makes up to three bytes of one.
    if (status == UrlStatus::ok && out.href().size() > kMaxUrlLength) status = UrlStatus::too_large;
  }
  if (status != UrlStatus::ok) out.clear();
  return status;
}

Result<Url> Url::parse(std::string_view input, const Url* base) {
  Url url;
  const UrlStatus status = parse_into(url, input, base);
  if (status == UrlStatus::ok) return url;
  if (status == UrlStatus::unsupported) return fail(Errc::unsupported, describe_unsupported(input));
  const Errc code = status == UrlStatus::too_large ? Errc::too_large : Errc::invalid_input;
  return fail(code, std::string(to_string(status)));
}

void Url::clear() noexcept {
  href_.clear();
  scheme_end_ = username_end_ = host_start_ = host_end_ = path_start_ = query_start_ = hash_start_ = 0;
}

std::string without_credentials(std::string_view text) {
  const std::size_t slashes = text.find("//");
  if (slashes == std::string_view::npos) return std::string(text);
  const std::size_t begin = slashes + 2;
  const std::string_view authority = text.substr(begin, text.find_first_of("/?#\\", begin) - begin);
  const std::size_t at = authority.rfind('@');
  if (at == std::string_view::npos) return std::string(text);
  return fmt::format("{}…{}", text.substr(0, begin), text.substr(begin + at));
}

std::string without_path(std::string_view text) {
  if (const auto url = Url::parse(text); url && !url->host().empty()) {
    const std::string site = url->site_key();
    return url->href() == site + '/' ? std::string(text) : site + "/…";
  }
  std::string shown = without_credentials(text);
  const std::size_t slashes = shown.find("//");
  const std::size_t end = shown.find_first_of("/?#\\", slashes == std::string::npos ? 0 : slashes + 2);
  if (end < shown.size() && shown.substr(end) != "/") shown.replace(end, std::string::npos, "/…");
  return shown;
}

std::string without_query(const Url& url) { return url.site_key().append(url.pathname()); }

void Url::strip_credentials() noexcept {
  const std::uint32_t start = scheme_end_ + 3;
  if (host_start_ <= start) return;
  const std::uint32_t length = host_start_ - start;
  href_.erase(start, length);
  username_end_ = host_start_ = start;
  for (std::uint32_t* offset : {&host_end_, &path_start_, &query_start_, &hash_start_}) *offset -= length;
}

std::string_view Url::username() const noexcept {
  return host_start_ == 0 ? std::string_view{} : part(scheme_end_ + 3, username_end_);
}

std::string_view Url::password() const noexcept {
  if (host_start_ == scheme_end_ + 3 || username_end_ + 1 >= host_start_) return {};
  return part(username_end_ + 1, host_start_ - 1);
}

std::string_view Url::port() const noexcept {
  return host_end_ < path_start_ ? part(host_end_ + 1, path_start_) : std::string_view{};
}

bool Url::is_ip_host() const noexcept {
  // The host parser takes every name whose last label is a number for an IPv4 address, or refuses it.
  const std::string_view name = host();
  if (name.starts_with('[')) return true;
  const std::string_view last = name.substr(name.rfind('.') + 1);
  return !last.empty() && std::ranges::all_of(last, is_digit);
}

std::uint16_t Url::effective_port() const noexcept {
  std::uint16_t value = 0;
  if (const std::string_view text = port(); !text.empty()) {
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }
  const SpecialScheme* special = find_special(scheme());
  return special != nullptr ? special->port : std::uint16_t{0};
}

std::string Url::site_key() const {
  std::string key(part(0, scheme_end_ + 3));
  key += host_and_port();
  return key;
}

std::string percent_decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ptr == text.data() + i + 3) {
      decoded += static_cast<char>(value);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

std::string percent_encode(std::string_view text) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (is_alnum(c) || std::string_view("-._~").contains(c)) {
      encoded += c;
    } else {
      append_percent(encoded, static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace argiope
