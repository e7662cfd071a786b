// A web that does not exist: every page, link, redirect and nuisance follows from a seed. For trying the crawler, measuring
// it, and showing what it does with hosts that lie.
//
// This is the content alone. `argiope site` serves it on loopback; tests put it behind a simulated transport.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"

namespace argiope {

// What a synthetic host can have beside plain pages.
enum class WebFeature : std::uint8_t {
  // Friendly: any site has them.
  robots,      // robots.txt with a part that is off limits
  redirects,   // 301 to a page
  broken,      // links to what is not there
  flaky,       // 503 with Retry-After once, then fine
  compressed,  // gzip and zstd
  encodings,   // UTF-16, windows-1252, Shift_JIS
  nofollow,    // links that ask not to be followed
  // Hostile.
  loops,    // redirects in a circle, and a chain without an end
  endless,  // a calendar without an end, a path that repeats itself
  drip,     // a body that comes byte by byte
  reset,    // a connection torn down in the middle of a body
  lengths,  // a Content-Length that is too long, and one too short
  silent,   // no answer, ever
  garbage,  // an answer that is not HTTP
  bomb,     // a small body that decodes to a large one
  flood,    // a body without an end
};
inline constexpr std::size_t kWebFeatures = 16;
constexpr bool is_hostile(WebFeature feature) noexcept { return feature >= WebFeature::loops; }
std::string_view to_string(WebFeature feature) noexcept;
// Comma-separated names, "friendly", "hostile" or "all". Errors: invalid_input naming the word.
Result<std::uint32_t> parse_web_features(std::string_view names);
constexpr std::uint32_t bit(WebFeature feature) noexcept { return 1u << static_cast<unsigned>(feature); }
inline constexpr std::uint32_t kFriendlyFeatures = (1u << static_cast<unsigned>(WebFeature::loops)) - 1;
inline constexpr std::uint32_t kHostileFeatures = ((1u << kWebFeatures) - 1) & ~kFriendlyFeatures;

struct SyntheticWebOptions {
  std::uint32_t hosts = 3;
  std::uint32_t pages = 200;  // of each host
  std::uint32_t links = 12;   // on a page; the front page is an index and has up to 400
  std::uint32_t size = 4096;  // bytes of a page, about
  Duration latency{};
  double errors = 0.02;  // part of the links that lead to what is not there
  std::uint64_t seed = 1;
  std::uint32_t features = kFriendlyFeatures;
  // The last hosts are evil: they alone have the hostile ones among `features`.
  std::uint32_t evil_hosts = 1;
};

struct SyntheticRequest {
  std::uint32_t host = 0;
  bool head = false;
  std::string_view target;  // path and query
  std::string_view accept_encoding;
  std::string_view if_none_match;
};

struct SyntheticReply {
  enum class Behaviour : std::uint8_t {
    normal,
    drip,     // the body, byte by byte
    reset,    // half the body, then a torn connection
    cut,      // half the body, then an orderly end: Content-Length was too long
    surplus,  // more bytes than Content-Length says
    silent,
    garbage,
    flood,  // chunks without an end
  };
  int status = 200;
  std::string content_type = "text/html; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  Duration latency{};
  Behaviour behaviour = Behaviour::normal;
};

// Equal options give equal bytes. The only state is which flaky pages have failed already.
// Threads: any.
class SyntheticWeb {
 public:
  // `origins[h]` is host h's "http://name:port"; there must be as many as `options.hosts`.
  SyntheticWeb(SyntheticWebOptions options, std::vector<std::string> origins);

  SyntheticReply reply(const SyntheticRequest& request);

  const SyntheticWebOptions& options() const noexcept { return options_; }
  const std::vector<std::string>& origins() const noexcept { return origins_; }
  // HTML pages with status 200 that a crawl of `host` must find with friendly features, robots obeyed.
  std::uint64_t expected_pages(std::uint32_t host) const noexcept;
  bool has(std::uint32_t host, WebFeature feature) const noexcept;

 private:
  std::uint64_t draw(std::uint32_t host, std::uint64_t page, std::uint64_t what) const noexcept;
  SyntheticReply page(const SyntheticRequest& request, std::uint32_t number);
  SyntheticReply hostile(const SyntheticRequest& request, std::string_view kind, std::uint64_t number);
  std::string page_text(std::uint32_t host, std::uint32_t number) const;
  void add_links(std::string& html, std::uint32_t host, std::uint32_t number) const;
  std::string path_of(std::uint32_t number) const;
  bool fails_first(std::uint32_t host, std::uint64_t number);

  const SyntheticWebOptions options_;
  const std::vector<std::string> origins_;
  std::string filler_;
  std::mutex mutex_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, bool> failed_once_;
};

}  // namespace argiope
