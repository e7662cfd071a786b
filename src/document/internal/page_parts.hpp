// The statements of pages about themselves, in elements that all of them write alike: title, meta elements (OpenGraph's
// among them), the canonical URL, headings.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/document/document.hpp"
#include "argiope/web/url.hpp"

namespace argiope {

// Of the first `title` element of HTML, in one line; empty when there is none.
std::string page_title(const Document& document);
// The contents of the `meta` elements whose name, property, itemprop or http-equiv is `name`, in any case, in their
// order; those that are empty are not there. "og:title" is such a name.
std::vector<std::string> meta_values(const Document& document, std::string_view name);
// As `html lang` has it; empty when it has none.
std::string page_language(const Document& document);
// The href of the first `base` that has one, resolved against `page`; else `page`.
Url base_url(const Document& document, const Url& page);
// The first `link rel=canonical`, resolved, without fragment.
std::optional<Url> canonical_url(const Document& document, const Url& page);

struct Heading {
  int level;  // 1 to 6
  std::string text;
};
std::vector<Heading> headings(const Document& document);

}  // namespace argiope
