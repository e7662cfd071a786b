// Why a URL is not fetched (yet), or what came of it, as far as a crawl's store tells: `argiope crawl explain`,
// `argiope explain`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/store/detail/url_store.hpp"
#include "argiope/web/url.hpp"

namespace argiope {

struct UrlExplanation {
  // A URL on the way from a seed: the one before it links to it, or redirects there.
  struct Step {
    std::string url;
    bool redirected = false;
  };
  // A page that has a link to it. Text and line where the crawl keeps them.
  struct LinkingPage {
    std::string url;
    bool redirects = false;
    std::string text;
    std::uint32_t line = 0;
  };

  UrlRecord record;
  std::string what;       // "is excluded: robots.txt forbids it"; begins with a verb
  std::string advice;     // what would change it; may be empty
  std::vector<Step> way;  // from a seed to the URL itself; the first steps are left out where they are too many
  bool whole_way = true;
  bool knows_links =
      false;  // whether the crawl has kept where pages lead; else only the page is here that has led to it first
  std::vector<LinkingPage> linked_from;
  bool more_links = false;
  std::vector<std::string> leads_to;  // where its redirects lead, one after the other
  std::string end;                    // what came of the last of them, as `what`; empty: the crawl does not know it
  // Of its host
  std::string site;
  std::uint64_t queued = 0, done = 0, failed = 0, excluded = 0;
  std::uint64_t ahead = 0;  // of a queued URL: those of its host that go before it
  WallTime host_last_fetched{};
  std::string host_error;       // why URLs of it were not asked
  WallTime host_rests_until{};  // the epoch: it does not rest
  std::string host_rests_for;   // "retry_after", "crawl_delay", "pace", "trouble", "elsewhere"
};

// Reads the table once; twice where the URL waits; and once more for each redirect to a URL that was known before it.
// nullopt: it knows no such URL. `url` has no fragment. Errors: those of the store.
Result<std::optional<UrlExplanation>> explain_url(UrlStore& store, const Url& url, WallTime now);

// The words of a reason, as in "is excluded: …", and which option would change it; both may be empty.
struct ReasonWords {
  std::string_view what, advice;
};
ReasonWords words_of(UrlReason reason) noexcept;

}  // namespace argiope
