// The outcome of one page under a project: its rule, its fields, its links and what would become of them. Pure: nothing
// is fetched and nothing stored here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/crawl/page.hpp"
#include "argiope/crawl/sinks.hpp"
#include "argiope/store/detail/url_record.hpp"
#include "argiope/web/url.hpp"
#include "project/rules/internal/decide_ask.hpp"
#include "project/rules/internal/project_definition.hpp"
#include "project/rules/internal/project_map.hpp"

namespace argiope {

// An answer, redirects followed.
struct FetchedPage {
  Url url;
  int status = 0;
  std::string content_type;
  std::string body;  // decoded, in the charset it came in
  std::vector<PageLink> links;
  WallTime fetched_at{};
};

// The outcome of an ask for a URL.
struct TrialAsk {
  ProjectMap::Answer answer;
  std::optional<AskDecision> decision;  // of pages with a rule
};

struct TrialLink {
  std::string url;
  LinkKind kind{};
  std::uint32_t times = 1;  // on the page; the first is told of
  bool nofollow = false;
  bool is_followed = false;  // the page's rule follows it; only then anything becomes of it
  TrialAsk ask;
};

struct PageTrial {
  TrialAsk ask;  // of the page itself
  // Of a page that was answered with 200 and whose rule has fields; the columns are the fields' names.
  std::vector<std::string> columns;
  ExtractedRecords extracted;
  std::optional<Error> not_extracted;  // why the page could not be read
  std::vector<TrialLink> links;        // each URL once, in their order
};

// `find`: what is known of a page, by its URL. `page` null: it was not answered.
// Errors: those of Extractor::compile().
using FindUrl = std::function<std::optional<KnownPage>(std::string_view url)>;
Result<PageTrial> try_page(const ProjectDefinition& project, const ProjectMap& map, const Url& asked,
                           const FetchedPage* page, const FindUrl& find, WallTime now);

// The knowledge of a crawl about a URL, as a page; nullopt for a URL that it has left out.
std::optional<KnownPage> known_page_of(const UrlRecord& record);

}  // namespace argiope
