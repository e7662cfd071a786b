// URLs that a database knows already, whoever made it: a crawl, or projects. `argiope project check` and `try` compare
// with them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "project/rules/internal/known_page.hpp"
#include "project/store/internal/page_store.hpp"

namespace argiope {

struct StoredUrl {
  std::string_view name;           // what makes it this page: of a crawl its URL
  std::string_view url;            // http or https
  bool may_be_page = true;         // else it is what a page is shown with, or a sitemap
  std::optional<KnownPage> known;  // nullopt: the crawl has left it out
};

// All URLs of a crawl, or all pages of the project of that name; of all projects, where the database has none of that
// name. To look, also beside an owner. Texts are valid during the visit.
// Gives who knows them, in words: "site.db", "project shop of pages.db".
// Errors: those of opening either kind of database, and of reading it.
Result<std::string> scan_stored_urls(const std::string& database, std::string_view project,
                                     const std::function<void(const StoredUrl&)>& visit);

// Puts what `database` has of the project into `store`, as one that stands still, without contexts and what scripts
// have saved: what is known of its pages, for a try. Nothing where it has no such project, or is a crawl's.
// Errors: as above.
Result<void> copy_known_pages(const std::string& database, std::string_view project, PageStore& store);

}  // namespace argiope
