// The notes that are kept of an answer for link checks and reports: its links as rows, and facts of its head. Pure:
// which URLs become targets of the crawl is the shard's business.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/store/detail/url_record.hpp"
#include "argiope/web/url.hpp"
#include "web/html/internal/page_survey.hpp"

namespace argiope {

// Bounds of what is kept, in bytes but for the first.
inline constexpr std::size_t kMostKeptLinks = 20'000;  // of a page
inline constexpr std::size_t kMostKeptText = 300;
inline constexpr std::size_t kMostKeptHref = 1'000;
inline constexpr std::size_t kMostKeptFragment = 1'000;  // a longer one is not checked

// A link as it is kept, without its target. `resolved`: where it leads, with its fragment, if `status` is ok. Its own
// fault is in `error`: a URL that is none, a mistyped scheme, a file of one computer, a mail address that can be none.
KeptLink kept_link(const SurveyedLink& link, std::string_view html, UrlStatus status, const Url& resolved);

// The facts that a page's head gives; all but how it was fetched.
PageFacts facts_of(const PageSurvey& survey);

// fingerprint() of what each fragment may name, ascending, each once.
std::vector<std::uint64_t> anchors_of(const PageSurvey& survey);

// Whether a page with these anchors has what `fragment` names, as the URL spells it (HTML standard, "find a potential
// indicated element"): by itself, decoded, or the top of the page; or where GitHub and the like put it by a script:
// behind "user-content-", which they set before the ids of texts that are not their own. A fragment for the page's
// scripts (#/…, #!…, #:~:…) names nothing that could be missing.
bool names_anchor(std::string_view fragment, const std::vector<std::uint64_t>& anchors);

}  // namespace argiope
