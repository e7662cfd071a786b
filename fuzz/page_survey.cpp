// The survey of pages on any bytes: it finds the links that the link scanner finds, stays within its limits, and counts
// lines that the page has. And mail addresses.
#include "web/html/internal/page_survey.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/internal/utf8.hpp"
#include "fuzz/require.hpp"
#include "web/url/internal/mail_address.hpp"

namespace {

using namespace argiope;

void compare_with_the_scanner(std::string_view html) {
  ScanResult scanned;
  scan_links(html, {.agent = "argiope"}, scanned);
  const PageSurvey survey = survey_page(html, {.agent = "argiope"});
  std::vector<SurveyedLink> links;
  std::ranges::copy_if(survey.links, std::back_inserter(links),
                       [](const auto& link) { return is_followed(link.kind); });
  if (survey.dropped > 0) return;
  require(links.size() == scanned.links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    require(links[i].url == scanned.links[i].url && links[i].kind == scanned.links[i].kind);
    require(links[i].nofollow == scanned.links[i].nofollow);
  }
  require(survey.base_href == scanned.base_href);
  require(survey.robots.nofollow == scanned.robots.nofollow && survey.robots.noindex == scanned.robots.noindex);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view html(reinterpret_cast<const char*>(data), size);
  compare_with_the_scanner(html);
  const SurveyOptions options{.max_links = 20, .max_ids = 10, .max_value_bytes = 200, .max_text_bytes = 30};
  const PageSurvey survey = survey_page(html, options);
  require(survey.links.size() <= options.max_links && survey.ids.size() <= options.max_ids);
  require(survey.title.size() <= 30 && survey.description.size() <= 30 && survey.heading.size() <= 30);
  const auto lines = static_cast<std::uint32_t>(std::ranges::count(html, '\n')) + 1;
  std::uint32_t last = 1;
  for (const SurveyedLink& link : survey.links) {
    require(link.line >= last && link.line <= lines && link.behind <= size);
    last = link.line;
  }
  require(is_utf8(mailto_trouble(html)) || !is_utf8(html));
  return 0;
}
