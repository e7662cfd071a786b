// Which of a crawl's HostSettings are for a host, and how people write hosts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/crawl/detail/host_settings.hpp"

namespace argiope {

// A place of HostSettings::match as it is kept there: "Example.org:80" becomes "example.org:80".
// Errors: invalid_input saying what is wrong, without naming the option.
Result<std::string> parse_host_place(std::string_view text);

// "http://example.org:8080" of "http://example.org:8080/x?y", as Url spells it.
std::string_view site_in(std::string_view href) noexcept;

// Finds settings by the site of a URL: scheme, host and port, "http://example.org:8080".
//
// Cost:    some look-ups in a hash table, one for each label of the name; none where there are no settings.
// Threads: any.
class HostRules {
 public:
  explicit HostRules(std::vector<HostSettings> settings);
  HostRules(const HostRules&) = delete;
  HostRules& operator=(const HostRules&) = delete;

  bool empty() const noexcept { return by_place_.empty(); }
  const std::vector<HostSettings>& settings() const noexcept { return settings_; }
  // Those that are for the site, the most specific first. `site` may have a path behind it.
  std::vector<const HostSettings*> of(std::string_view site) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  const std::vector<HostSettings> settings_;
  std::unordered_map<std::string, std::vector<const HostSettings*>, Hash, std::equal_to<>> by_place_;
};

// The first of `settings` that sets the member; null when none does.
template <class Value>
const Value* setting_of(const std::vector<const HostSettings*>& settings, std::optional<Value> HostSettings::*member) {
  for (const HostSettings* one : settings) {
    if (const auto& value = one->*member) return &*value;
  }
  return nullptr;
}

// The name that robots.txt is read for: the first word of a User-Agent.
std::string product_token_of(std::string_view user_agent);

}  // namespace argiope
