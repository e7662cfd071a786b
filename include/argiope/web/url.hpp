// URLs by the WHATWG URL Standard (https://url.spec.whatwg.org): parsing, resolving against a base, serialising.
//
// Special schemes only (http, https, ws, wss, ftp, file): what a crawler meets and can follow. mailto:, javascript:
// and the like are told apart as `unsupported`, for callers to skip. Which addresses may be connected to is not decided
// here but in detail/ip_address.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"

namespace argiope {

// In bytes, of an input and also of what it serialises to, so that what was parsed can be parsed again.
inline constexpr std::size_t kMaxUrlLength = 64 * 1024;
// In bytes of UTF-8, of a host that is not ASCII; longer ones are bad_host. A departure from the standard, which has no
// such limit: normalising is quadratic in hostile names, and a name of DNS (253 bytes of ASCII) never needs as many.
inline constexpr std::size_t kMaxInternationalHostLength = 1024;

enum class UrlStatus : std::uint8_t {
  ok,
  unsupported,  // a scheme that is not special
  too_large,    // longer than kMaxUrlLength, as written or as serialised
  no_base,      // relative, and there is nothing to resolve it against
  no_host,
  bad_host,
  bad_port,
};
std::string_view to_string(UrlStatus status) noexcept;

// Appends to `out` the bytes `utf8` has in a document's encoding; a character it lacks as "%26%23NNN%3B". For the
// queries of links in documents that are not UTF-8.
using QueryEncoder = std::function<void(std::string_view utf8, std::string& out)>;

// A parsed URL: its serialisation and where the parts are in it. Views into it are valid until it is assigned to.
// A default-constructed one is empty and has no parts; one that was moved from may only be assigned to or destroyed.
//
// Threads: as a string.
class Url {
 public:
  // `input` is UTF-8; bytes that are not are read as U+FFFD. `base`, if given, must not be empty.
  // Errors: unsupported, naming the scheme; too_large; invalid_input saying what is wrong. Never names the whole input.
  static Result<Url> parse(std::string_view input, const Url* base = nullptr);

  const std::string& href() const noexcept { return href_; }
  std::string_view scheme() const noexcept { return part(0, scheme_end_); }
  std::string_view username() const noexcept;
  std::string_view password() const noexcept;
  // Lower case, IDNA in its ASCII form, IPv4 dotted, IPv6 in brackets; empty only for file:.
  std::string_view host() const noexcept { return part(host_start_, host_end_); }
  // An IPv4 or IPv6 address and no name. Any spelling of one was made canonical by parsing.
  bool is_ip_host() const noexcept;
  // As written behind the host; empty when it is the scheme's default.
  std::string_view port() const noexcept;
  std::string_view host_and_port() const noexcept { return part(host_start_, path_start_); }
  // 0 for file:.
  std::uint16_t effective_port() const noexcept;
  std::string_view pathname() const noexcept { return part(path_start_, query_start_); }
  // With its "?" or "#"; empty when there is nothing behind it.
  std::string_view search() const noexcept { return part_or_none(query_start_, hash_start_); }
  std::string_view hash() const noexcept { return part_or_none(hash_start_, size()); }
  // The target in the request line (RFC 9112, 3.2.1).
  std::string_view path_and_query() const noexcept { return part(path_start_, hash_start_); }
  std::string_view without_fragment() const noexcept { return part(0, hash_start_); }
  // "scheme://host[:port]". Not a view, because credentials may stand in between.
  std::string site_key() const;

  void strip_fragment() noexcept { href_.resize(hash_start_); }
  // Name and password go, with their "@".
  void strip_credentials() noexcept;
  // Like a default-constructed one, but keeps its memory.
  void clear() noexcept;

  friend bool operator==(const Url& a, const Url& b) noexcept { return a.href_ == b.href_; }

 private:
  friend class UrlParser;
  std::string_view part(std::uint32_t from, std::uint32_t to) const noexcept {
    return std::string_view{href_}.substr(from, to - from);
  }
  std::string_view part_or_none(std::uint32_t from, std::uint32_t to) const noexcept {
    return to - from > 1 ? part(from, to) : std::string_view{};
  }
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(href_.size()); }

  std::string href_;
  // Offsets into href_; a part that is absent is empty at its place.
  std::uint32_t scheme_end_ = 0;    // of the ":"
  std::uint32_t username_end_ = 0;  // begins 3 behind scheme_end_
  std::uint32_t host_start_ = 0;
  std::uint32_t host_end_ = 0;
  std::uint32_t path_start_ = 0;
  std::uint32_t query_start_ = 0;  // of the "?"
  std::uint32_t hash_start_ = 0;   // of the "#"
};

// The hot path of Url::parse: reuses `out`'s memory, and says what is wrong without words. `out` must be neither
// `*base` nor hold `input`; after a failure it is empty, and still has its memory.
//
// Cost: linear in the input. Allocates only while `out` grows, and for what is rare: tabs or newlines within, hosts
//       that are not plain ASCII, queries that need the encoder.
UrlStatus parse_into(Url& out, std::string_view input, const Url* base, const QueryEncoder* encoder = nullptr);

// A text that looks like a URL, for messages: "…" stands for a name and password in it.
std::string without_credentials(std::string_view text);
// The part that may be shown of a webhook's URL, whose path and query are secrets, as credentials are:
// "https://host/…". One that has neither is shown as it is. Text that is no URL with a host is cut at its first "/",
// "?" or "#" behind "//".
std::string without_path(std::string_view text);

// "scheme://host[:port]/path", for messages: a query may hold secrets.
std::string without_query(const Url& url);

// Undoes percent-encoding; a "%" without two hexadecimal digits stays.
std::string percent_decode(std::string_view text);
// All but letters, digits and "-._~" as %XX (RFC 3986, 2.3): what may stand anywhere in a URL, or in a header.
std::string percent_encode(std::string_view text);

}  // namespace argiope
