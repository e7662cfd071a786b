// Where a URL stands in a project: which rule it gets, if any.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"
#include "crawl/options/internal/host_rules.hpp"
#include "project/rules/internal/project_definition.hpp"
#include "web/url/internal/url_patterns.hpp"

namespace argiope {

// Threads: any may ask at a time.
class ProjectMap {
 public:
  // Errors: invalid_input and too_large for patterns that are none.
  static Result<ProjectMap> make(const ProjectDefinition& project);

  enum class Place : std::uint8_t {
    page,       // `rule` is its rule; of a project without rules, which has a processor, there is none
    no_rule,    // no rule matches it
    off_scope,  // it is on another host
    no_page,    // neither http nor https
  };
  struct Answer {
    Place place = Place::no_page;
    std::optional<std::size_t> rule;
  };
  // The last host that was asked about, so that many links of one host in a row ask once: for one thread, and one map.
  struct Host {
    std::string site;
    bool in_scope = false;
  };
  // `href` as Url spells it, without fragment.
  Answer find(std::string_view href) const;
  Answer find(std::string_view href, Host& last) const;
  // Whether a page of the rule leads to a URL, as far as the rule says so.
  bool follows(std::size_t rule, std::string_view href) const;

 private:
  struct Patterns {
    bool all = false;
    UrlPatterns some;
    bool match(std::string_view href) const { return all || some.match(href); }
  };

  std::shared_ptr<const HostRules> hosts_;
  std::vector<Patterns> rules_, follows_;
};

std::string_view to_string(ProjectMap::Place place) noexcept;

}  // namespace argiope
