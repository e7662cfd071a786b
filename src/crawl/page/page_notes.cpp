#include "crawl/page/page_notes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/internal/fingerprint.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/utf8.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/url/internal/mail_address.hpp"

namespace argiope {
namespace {

std::string kept_text(std::string_view text, std::size_t most) {
  return to_valid_utf8(cut_between_characters(text, most));
}

// Whether `scheme` is `right` but for one letter that is missing, too much or another, or but for the order of its
// letters.
bool is_mistyped(std::string_view scheme, std::string_view right) {
  const auto same = [](char a, char b) { return to_lower(a) == to_lower(b); };
  const auto [typed, meant] = std::ranges::mismatch(scheme, right, same);
  const std::string_view rest(typed, scheme.end()), of_right(meant, right.end());
  if (rest.empty() && of_right.empty()) return false;
  const auto goes_on = [&](std::size_t behind, std::size_t of) {
    return rest.size() >= behind && of_right.size() >= of &&
           std::ranges::equal(rest.substr(behind), of_right.substr(of), same);
  };
  return goes_on(1, 0) || goes_on(0, 1) || goes_on(1, 1) || std::ranges::is_permutation(rest, of_right, same);
}

std::string trouble_of(std::string_view href, UrlStatus status, const Url& resolved) {
  if (status == UrlStatus::ok && resolved.scheme() == "file") return "a file of one computer, which nobody else has";
  if (status == UrlStatus::ok) return {};
  if (status != UrlStatus::unsupported) return std::string(to_string(status));
  if (starts_with_lower(href, "mailto:")) return mailto_trouble(href);
  const std::string_view scheme = href.substr(0, href.find(':'));
  for (const std::string_view right : {"http", "https"}) {
    if (is_mistyped(scheme, right)) return fmt::format("{} is no scheme, and looks like {}", in_quotes(scheme), right);
  }
  return {};
}

}  // namespace

KeptLink kept_link(const SurveyedLink& link, std::string_view html, UrlStatus status, const Url& resolved) {
  const std::string_view href = trim_space(link.url);
  KeptLink kept;
  kept.kind = to_string(link.kind);
  kept.line = link.line;
  kept.rel = kept_text(trim_space(link.rel), kMostKeptText);
  const std::string inside = link.behind > 0 ? link_text(html, link.behind) : std::string(trim_space(link.label));
  kept.text = kept_text(inside, kMostKeptText);
  kept.error = trouble_of(href, status, resolved);
  kept.href = kept_text(href, kMostKeptHref);
  if (status == UrlStatus::ok && resolved.hash().size() > 1 && resolved.hash().size() <= kMostKeptFragment) {
    kept.fragment = resolved.hash().substr(1);
  }
  return kept;
}

PageFacts facts_of(const PageSurvey& survey) {
  PageFacts facts;
  facts.title = to_valid_utf8(survey.title);
  facts.description = to_valid_utf8(survey.description);
  facts.heading = to_valid_utf8(survey.heading);
  facts.titles = survey.titles;
  facts.descriptions = survey.descriptions;
  facts.headings = survey.headings;
  facts.noindex = survey.robots.noindex;
  return facts;
}

std::vector<std::uint64_t> anchors_of(const PageSurvey& survey) {
  std::vector<std::uint64_t> anchors;
  anchors.reserve(survey.ids.size());
  for (const std::string_view id : survey.ids) anchors.push_back(fingerprint(to_valid_utf8(id)));
  std::ranges::sort(anchors);
  const auto repeated = std::ranges::unique(anchors);
  anchors.erase(repeated.begin(), repeated.end());
  return anchors;
}

bool names_anchor(std::string_view fragment, const std::vector<std::uint64_t>& anchors) {
  // A directive is for the browser; what stands before it is the fragment.
  fragment = fragment.substr(0, fragment.find(":~:"));
  if (fragment.empty() || fragment.front() == '/' || fragment.front() == '!') return true;
  const auto has = [&](std::string_view id) { return std::ranges::binary_search(anchors, fingerprint(id)); };
  const std::string decoded = to_valid_utf8(percent_decode(fragment));
  return has(fragment) || has(decoded) || has("user-content-" + decoded) || equals_lower(decoded, "top");
}

}  // namespace argiope
