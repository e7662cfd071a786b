#include "project/process/internal/page_selector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/internal/json_writer.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

// XHTML is read as HTML, as pages are.
bool is_xml_text(std::string_view text) {
  return trim_space(text).starts_with("<?xml") && !text.substr(0, 1024).contains("<html");
}

// How often a match is written out.
std::uint64_t forms_of(const SelectQuery& query) noexcept {
  return std::uint64_t{query.text} + query.raw + query.lines + query.outer_html + query.inner_html;
}

void write_element(JsonWriter& out, const Match& match, std::uint64_t node, const SelectQuery& query) {
  out.member("node", node);
  if (query.name) out.member("name", match.name());
  if (query.text) out.member("text", match.text());
  if (query.raw) out.member("raw", match.raw());
  if (query.lines) out.member("lines", match.lines());
  if (query.outer_html) out.member("html", match.outer_html());
  if (query.inner_html) out.member("inner_html", match.inner_html());
  if (!query.attributes) return;
  out.object("attributes", [&] {
    for (const auto& [name, value] : match.attributes()) out.member(name, value);
  });
}

// Of a text, an attribute or a value.
void write_other(JsonWriter& out, const Match& match, const SelectQuery& query) {
  out.member("text", match.text());
  if (query.raw) out.member("raw", match.raw());
  if (query.lines) out.member("lines", match.lines());
}

}  // namespace

PageSelector::PageSelector(const PageResponse& response)
    : url_(response.url), content_type_(content_type_of(response)), body_(response.body) {}

Result<std::string> PageSelector::select(const SelectQuery& query) {
  if (query.wrong) return std::unexpected(*query.wrong);
  const auto selector = query.is_xpath ? Selector::xpath(query.selector) : Selector::css(query.selector);
  if (!selector) return std::unexpected(selector.error());
  std::vector<Match> within;
  const auto known = document_of(query, within);
  if (!known) return std::unexpected(known.error());
  const Document& document = (*known)->document;
  if (!query.within) within.push_back(document.root());
  const auto matches = document.select(*selector, within, query.most);
  if (!matches) return std::unexpected(matches.error());
  return told(**known, *matches, query);
}

Result<std::string> PageSelector::told(const Known& known, const std::vector<Match>& matches,
                                       const SelectQuery& query) {
  const std::uint64_t forms = forms_of(query);
  std::uint64_t steps = 0;
  std::optional<Error> trouble;
  std::string json;
  JsonWriter out(json);
  out.array([&] {
    for (const Match& match : matches) {
      if (forms > 0) steps += forms * known.document.cost_of(match);
      if (steps > Document::kMostSteps)
        trouble = Error{Errc::too_large, "select: the texts of all matches take too long"};
      if (trouble) return;
      out.object([&] {
        if (const auto number = match.number()) {
          write_element(out, match, known.first + *number, query);
        } else {
          write_other(out, match, query);
        }
      });
      if (json.size() <= kMostAnswerBytes) continue;
      trouble = Error{Errc::too_large, fmt::format("select: the matches have more than {} bytes", kMostAnswerBytes)};
      return;
    }
  });
  if (trouble) return std::unexpected(*std::move(trouble));
  return json;
}

// --- documents ------------------------------------------------------------------------------------------------------

Result<const PageSelector::Known*> PageSelector::document_of(const SelectQuery& query, std::vector<Match>& within) {
  if (query.html) return add_document(*query.html);
  if (!query.within || query.within->empty()) return page();
  const Known* document = nullptr;
  for (const std::uint64_t node : *query.within) {
    const Known* const its = find(node);
    const auto element =
        its == nullptr ? std::nullopt : its->document.element(static_cast<std::uint32_t>(node - its->first));
    if (!element) return fail(Errc::invalid_input, fmt::format("within {}: there is no such node", node));
    if (document != nullptr && document != its) {
      return fail(Errc::invalid_input, fmt::format("within {}: a node of another document than those before it", node));
    }
    document = its;
    within.push_back(*element);
  }
  return document;
}

Result<const PageSelector::Known*> PageSelector::page() {
  if (!page_) {
    page_.emplace(known(Document::parse(body_, content_type_), body_.size()));
    body_ = {};
  }
  if (!*page_) return std::unexpected(page_->error());
  return &**page_;
}

Result<const PageSelector::Known*> PageSelector::add_document(const std::string& html) {
  auto added = known(is_xml_text(html) ? Document::parse_xml(html) : Document::parse_html(html), html.size());
  if (!added) return std::unexpected(std::move(added.error()));
  others_.push_back(*std::move(added));
  forget_oldest();
  return &others_.back();
}

Result<PageSelector::Known> PageSelector::known(Result<Document> document, std::size_t bytes) {
  if (!document) return std::unexpected(std::move(document.error()));
  const auto url = Url::parse(url_);
  const auto links = document->make_links_absolute(url ? &*url : nullptr);
  if (!links) return std::unexpected(links.error());
  const std::uint64_t first = std::exchange(next_, next_ + document->most_number());
  return Known{.document = *std::move(document), .first = first, .bytes = bytes + *links};
}

const PageSelector::Known* PageSelector::find(std::uint64_t node) const noexcept {
  const auto has = [&](const Known& known) {
    return node >= known.first && node - known.first < known.document.most_number();
  };
  if (page_ && *page_ && has(**page_)) return &**page_;
  const auto found = std::ranges::find_if(others_, has);
  return found == others_.end() ? nullptr : &*found;
}

void PageSelector::forget_oldest() {
  std::size_t documents = 0, bytes = 0, nodes = 0;
  auto oldest = others_.end();
  while (oldest != others_.begin()) {
    const Known& known = *std::prev(oldest);
    ++documents;
    bytes += known.bytes;
    nodes += known.document.most_number();
    const bool is_last = oldest == others_.end();
    if (!is_last && (documents > kMostKeptDocuments || bytes > kMostKeptBytes || nodes > kMostKeptNodes)) break;
    --oldest;
  }
  others_.erase(others_.begin(), oldest);
}

}  // namespace argiope
