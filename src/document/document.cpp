#include "argiope/document/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "argiope/web/detail/charset.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/utf8.hpp"
#include "document/document_state.hpp"
#include "document/document_text.hpp"
#include "document/xpath.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/content_type.hpp"
#include "web/text/internal/lower_case.hpp"

namespace argiope {
namespace {

// text/xml, application/xml and what ends with +xml, but not XHTML, which browsers of old read as HTML and so do
// crawlers.
bool says_xml(std::string_view content_type) {
  const std::string type = in_lower_case(parse_content_type(content_type).type);
  return type != "application/xhtml+xml" && (type == "text/xml" || type == "application/xml" || type.ends_with("+xml"));
}

bool looks_like_xml(std::string_view text) {
  return trim_space(text).starts_with("<?xml") && !sniff_is_html(text) && !text.substr(0, 1024).contains("<html");
}

Error too_long(std::string_view kind, const std::string& selector) {
  return {Errc::too_large, fmt::format("{} {} takes too long on this page", kind, in_quotes(selector))};
}

const DocumentTree& tree_at(const void* tree) noexcept { return *static_cast<const DocumentTree*>(tree); }

}  // namespace

// --- selectors
// -----------------------------------------------------------------------------------------------------------

struct Selector::Compiled {
  std::string text;
  CssSelector css;
  std::shared_ptr<const XPathExpression> xpath;  // null: css
};

Result<Selector> Selector::css(std::string_view text) {
  if (text.size() > kMostBytes)
    return fail(Errc::too_large, fmt::format("css: a selector of more than {} bytes", kMostBytes));
  auto parsed = parse_css_selector(text);
  if (!parsed) return std::unexpected(std::move(parsed.error()));
  auto compiled = std::make_shared<Compiled>();
  compiled->text = text;
  compiled->css = std::move(*parsed);
  return Selector(std::move(compiled));
}

Result<Selector> Selector::xpath(std::string_view text) {
  if (text.size() > kMostBytes) {
    return fail(Errc::too_large, fmt::format("xpath: an expression of more than {} bytes", kMostBytes));
  }
  auto expression = XPathExpression::compile(text);
  if (!expression) return std::unexpected(std::move(expression.error()));
  auto compiled = std::make_shared<Compiled>();
  compiled->text = text;
  compiled->xpath = std::move(*expression);
  return Selector(std::move(compiled));
}

const std::string& Selector::text() const noexcept { return compiled_->text; }

// --- matches
// -------------------------------------------------------------------------------------------------------------

Match::Match(const Document& document, Kind kind, std::uint32_t node, std::uint32_t attribute) noexcept
    : tree_(&document.state_->tree), node_(node), attribute_(attribute), kind_(kind) {}

std::string_view Match::name() const noexcept {
  if (kind_ == Kind::element) return tree_at(tree_).nodes[node_].text;
  return kind_ == Kind::attribute ? tree_at(tree_).attributes[attribute_ - 1].name : std::string_view{};
}

// Of a match that is no element.
std::string_view Match::characters() const noexcept {
  if (kind_ == Kind::value) return value_;
  return kind_ == Kind::attribute ? tree_at(tree_).attributes[attribute_ - 1].value : tree_at(tree_).nodes[node_].text;
}

std::string Match::raw() const {
  return kind_ == Kind::element ? raw_text(tree_at(tree_), node_) : std::string(characters());
}

std::string Match::text() const {
  return kind_ == Kind::element ? shown_text(tree_at(tree_), node_, TextShape::one_line) : collapse_space(characters());
}

std::string Match::lines() const {
  if (kind_ == Kind::element) return shown_text(tree_at(tree_), node_, TextShape::lines);
  return std::string(trim_space(characters()));
}

std::string Match::figures() const {
  return kind_ == Kind::element ? shown_text(tree_at(tree_), node_, TextShape::figures) : collapse_space(characters());
}

std::optional<std::string_view> Match::attribute(std::string_view name) const noexcept {
  if (kind_ != Kind::element) return std::nullopt;
  const TreeAttribute* const found = tree_at(tree_).find_attribute(node_, name);
  return found == nullptr ? std::nullopt : std::optional(found->value);
}

std::vector<std::pair<std::string_view, std::string_view>> Match::attributes() const {
  std::vector<std::pair<std::string_view, std::string_view>> all;
  if (kind_ != Kind::element) return all;
  const DocumentTree& tree = tree_at(tree_);
  const TreeNode& row = tree.nodes[node_];
  all.reserve(row.attributes);
  for (std::uint32_t i = 0; i < row.attributes; ++i) {
    const TreeAttribute& attribute = tree.attributes[row.first_attribute + i];
    all.emplace_back(attribute.name, attribute.value);
  }
  return all;
}

std::optional<std::uint32_t> Match::number() const noexcept {
  return kind_ == Kind::element ? std::optional(node_) : std::nullopt;
}

std::string Match::outer_html() const {
  if (kind_ != Kind::element) return raw();
  std::string out;
  append_markup(tree_at(tree_), node_, out);
  return out;
}

std::string Match::inner_html() const {
  if (kind_ != Kind::element) return raw();
  std::string out;
  append_inner_markup(tree_at(tree_), node_, out);
  return out;
}

std::optional<std::size_t> Match::position() const noexcept {
  if (kind_ != Kind::element && kind_ != Kind::text) return std::nullopt;
  const std::uint32_t position = tree_at(tree_).nodes[node_].position;
  return position == kNoPosition ? std::nullopt : std::optional<std::size_t>(position);
}

// --- documents
// -----------------------------------------------------------------------------------------------------------

Document::Document(std::unique_ptr<State> state) : state_(std::move(state)) {}
Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;
Document::~Document() = default;

Result<Document> Document::make(std::string text, bool is_xml, const DocumentLimits& limits) {
  auto state = std::make_unique<State>();
  state->text = is_valid_utf8(text) ? std::move(text) : to_valid_utf8(text);
  auto tree = is_xml ? build_xml_tree(state->text, limits) : build_html_tree(state->text, limits);
  if (!tree) return std::unexpected(std::move(tree.error()));
  state->tree = std::move(*tree);
  return Document(std::move(state));
}

Result<Document> Document::parse(std::string_view bytes, std::string_view content_type, const DocumentLimits& limits) {
  // A page that is too large is not worth being converted.
  if (bytes.size() > limits.most_bytes) {
    return fail(Errc::too_large,
                fmt::format("a page of {} bytes: at most {} are read as a tree", bytes.size(), limits.most_bytes));
  }
  const CharsetDecision charset = detect_charset(bytes, content_type);
  std::string text;
  const std::string_view utf8 = in_utf8(bytes, charset, text);
  if (text.empty()) text = utf8;
  return parse_text(std::move(text), content_type, charset.name, limits);
}

Result<Document> Document::parse_text(std::string text, std::string_view content_type, std::string_view encoding,
                                      const DocumentLimits& limits) {
  const bool is_xml = says_xml(content_type) || (content_type.empty() && looks_like_xml(text));
  auto document = make(std::move(text), is_xml, limits);
  if (document) document->state_->encoding = encoding;
  return document;
}

Result<Document> Document::parse_html(std::string_view text, const DocumentLimits& limits) {
  return make(std::string(text), false, limits);
}
Result<Document> Document::parse_xml(std::string_view text, const DocumentLimits& limits) {
  return make(std::string(text), true, limits);
}

bool Document::is_xml() const noexcept { return state_->tree.is_xml; }
const std::string& Document::text() const noexcept { return state_->text; }

std::size_t Document::line_of(std::size_t position) const noexcept {
  const std::string_view before = std::string_view(state_->text).substr(0, std::min(position, state_->text.size()));
  return 1 + static_cast<std::size_t>(std::ranges::count(before, '\n'));
}

Match Document::root() const noexcept { return {*this, Match::Kind::element, 0}; }

std::optional<Match> Document::element(std::uint32_t number) const noexcept {
  if (number >= state_->tree.nodes.size() || (number > 0 && !state_->tree.is_element(number))) return std::nullopt;
  return Match(*this, Match::Kind::element, number);
}

std::uint32_t Document::most_number() const noexcept { return static_cast<std::uint32_t>(state_->tree.nodes.size()); }

std::uint64_t Document::cost_of(const Match& match) const {
  constexpr std::uint64_t kBytesOfStep = 12;
  if (match.kind_ == Match::Kind::value) return 1 + match.value_.size() / kBytesOfStep;
  const DocumentTree& tree = state_->tree;
  if (match.kind_ == Match::Kind::attribute)
    return 1 + tree.attributes[match.attribute_ - 1].value.size() / kBytesOfStep;
  auto& bytes_before = state_->bytes_before;
  if (bytes_before.empty()) {
    std::uint64_t bytes = 0;
    for (const TreeNode& row : tree.nodes) {
      bytes_before.push_back(bytes);
      bytes += kBytesOfStep + row.text.size();
      for (std::uint32_t i = 0; i < row.attributes; ++i) {
        const TreeAttribute& attribute = tree.attributes[row.first_attribute + i];
        bytes += kBytesOfStep + attribute.name.size() + attribute.value.size();
      }
    }
    bytes_before.push_back(bytes);
  }
  return 1 + (bytes_before[tree.nodes[match.node_].end] - bytes_before[match.node_]) / kBytesOfStep;
}

Result<std::vector<Match>> Document::select(const Selector& selector, const Match* within) const {
  const Match all = root();
  return select(selector, std::span(within == nullptr ? &all : within, 1));
}

Result<std::optional<Match>> Document::select_first(const Selector& selector, const Match* within) const {
  const Match all = root();
  auto found = select(selector, std::span(within == nullptr ? &all : within, 1), 1);
  if (!found) return std::unexpected(std::move(found.error()));
  return found->empty() ? std::nullopt : std::optional(std::move(found->front()));
}

// A match that is no element counts as the whole document.
Result<std::vector<Match>> Document::select(const Selector& selector, std::span<const Match> within,
                                            std::size_t most) const {
  State& state = *state_;
  std::vector<NodeIndex> scopes;
  for (const Match& match : within) scopes.push_back(match.kind_ == Match::Kind::element ? match.node_ : 0);
  std::ranges::sort(scopes);
  const auto again = std::ranges::unique(scopes);
  scopes.erase(again.begin(), again.end());
  std::vector<TreePlace> found;
  std::vector<Match> matches;
  if (const XPathExpression* const expression = selector.compiled_->xpath.get()) {
    auto answer = expression->evaluate(state.tree, scopes, kMostSteps);
    if (!answer) return std::unexpected(too_long("xpath", selector.text()));
    for (std::string& value : answer->values) matches.push_back(Match(std::move(value)));
    if (matches.size() > most) matches.erase(matches.begin() + static_cast<std::ptrdiff_t>(most), matches.end());
    found = std::move(answer->nodes);
  } else if (!scopes.empty()) {
    CssMatcher matcher(selector.compiled_->css, state.tree, state.places, scopes.front(), kMostSteps);
    FoundPlaces places(state.tree);
    for (const NodeIndex scope : scopes) {
      found.clear();
      matcher.look_within(scope);
      if (!matcher.select(most, found)) return std::unexpected(too_long("css", selector.text()));
      if (scopes.size() > 1) places.add(found);
    }
    if (scopes.size() > 1) found = places.take();
  }
  if (found.size() > most) found.resize(most);
  matches.reserve(matches.size() + found.size());
  for (const auto& [node, attribute] : found) {
    const auto kind = attribute > 0                              ? Match::Kind::attribute
                      : state.tree.is_element(node) || node == 0 ? Match::Kind::element
                                                                 : Match::Kind::text;
    matches.push_back(Match(*this, kind, node, attribute));
  }
  return matches;
}

}  // namespace argiope
