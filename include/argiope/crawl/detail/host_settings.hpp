// Settings of a crawl that are otherwise at some hosts than its options say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"

namespace argiope {

// Settings for the hosts that it names. A setting that is not set is as another HostSettings for the host says, or as
// the crawl's options do.
//
// Precedence: each setting comes from the most specific place that has it: an origin, a host with its port, a host, the
//             longest "*.domain", "*"; among equals from the first in CrawlOptions::hosts. It stands for the option,
//             and adds nothing to it.
// Scope:      naming a host does not bring it into scope.
struct HostSettings {
  // Which hosts: "http://example.org:8080" (scheme, name and port), "example.org:8080", "example.org" (whatever the
  // scheme and the port), "*.example.org" (its subdomains, and not itself), or "*" (every host). In lower case and
  // ASCII, ports as numbers also where a scheme has them anyway.
  std::vector<std::string> match;

  // --- pace; see CrawlOptions
  std::optional<double> rate;
  std::optional<Duration> delay;
  std::optional<std::uint32_t> per_host;
  // Whether its pace follows its latency. Counts also for hosts that are not public.
  std::optional<bool> autothrottle;
  std::optional<double> autothrottle_target;

  // --- requests
  std::optional<bool> robots;  // whether robots.txt is read
  // robots.txt is read for its first word.
  std::optional<std::string> user_agent;
  // Sent instead of fields of the same names that the crawl would send.
  std::optional<std::vector<std::pair<std::string, std::string>>> headers;
  std::optional<Duration> timeout;
  std::optional<std::uint32_t> retries;

  // --- which of its URLs are followed, where it is in scope
  std::optional<std::vector<std::string>> include, exclude;
  std::optional<std::vector<std::string>> path_prefixes;
  std::optional<std::uint32_t> max_depth;
  std::optional<std::uint64_t> max_pages;  // URLs of it that are queued in one run
};

}  // namespace argiope
