// The part of a page that a person came to read: its article, without navigation, advertisements and comments.
#pragma once

#include <optional>
#include <string>

#include "argiope/document/document.hpp"

namespace argiope {

struct ReadableArticle {
  std::string title;    // the article's heading, or the page's title
  std::string text;     // paragraphs, with an empty line between them
  std::string html;     // the same with its elements
  std::string excerpt;  // the page's description, or the first paragraph
  std::string author;   // empty where the page does not say it
  std::string date;     // as the page writes it
};

// How it is found: paragraphs give points to the elements around them, by length and commas; names of elements, classes
// and ids that tell articles or what stands beside them add or take some; links take a share. The best element wins,
// with those of its siblings that are much like it, or an element around it with much more text. Parts beside the text
// are left out. Where little is found, it is looked for again with fewer rules; of a page with next to no text that is
// all of it.
//
// nullopt where there is no text but in links.
// Cost: linear in the page.
std::optional<ReadableArticle> find_article(const Document& document);

}  // namespace argiope
