// Everything a page refers to, links and assets alike, each with its line; what fragments may name; and what its head
// says. Where the link scanner (link_scanner.hpp) is for every page of a crawl, this is for those that are checked or
// reported on: it looks at every attribute, and costs some three times as much.
//
// The links that are followed are those of scan_links(), by the same rules; a test holds the two to each other. The
// list of what holds a URL is url_table.hpp's to say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/web/detail/robots_meta.hpp"
#include "argiope/web/link_scanner.hpp"

namespace argiope {

struct SurveyedLink {
  // The attribute's value with character references replaced; neither trimmed nor resolved, and possibly empty.
  std::string_view url;
  LinkKind kind{};
  bool nofollow = false;
  std::string_view rel;     // of `a`, `area` and `link`
  std::string_view type{};  // of `link`
  std::string_view label;   // the `alt` of an image or area
  std::uint32_t line = 0;   // from 1: where its tag begins, or of a url() in a style where that is
  std::size_t behind = 0;   // of `a` elements, for link_text(); else 0
};

struct SurveyOptions {
  std::size_t max_links = 50'000;  // links and assets; those beyond are counted
  std::size_t max_ids = 50'000;
  std::size_t max_value_bytes = 65'536;  // of an attribute's value, as written; a longer link, or id, is dropped
  std::size_t max_text_bytes = 1'000;    // of title, description and heading
  // `<meta name=AGENT>` counts as `<meta name=robots>`; case-insensitive, none when empty.
  std::string_view agent{};
};

// Lifetime: its views hold while the page's bytes and the survey do.
struct PageSurvey {
  std::vector<SurveyedLink> links;  // in the page's order
  std::size_t dropped = 0;
  // Names for fragments: the `id` of any element, the `name` of an `a`; not empty ones. In the page's order.
  std::vector<std::string_view> ids;
  bool has_all_ids = true;
  std::string_view base_href;  // as ScanResult::base_href
  std::string_view canonical;  // the first, unresolved
  // Of the first of each, with space collapsed; and how many there are.
  std::string title, description, heading;  // heading: h1
  std::uint32_t titles = 0, descriptions = 0, headings = 0;
  RobotsDirectives robots;

  PageSurvey() = default;
  PageSurvey(PageSurvey&&) = default;
  PageSurvey& operator=(PageSurvey&&) = default;
  std::deque<std::string> decoded;  // what the views may point into
};

// Surveys `html`, which is UTF-8; what is not passes through, and a page cut short is fine.
//
// Cost:    linear in the page, whatever it holds.
// Threads: any.
PageSurvey survey_page(std::string_view html, const SurveyOptions& options = {});

}  // namespace argiope
