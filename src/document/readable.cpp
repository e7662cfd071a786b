#include "document/internal/readable.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "document/document_state.hpp"
#include "document/document_text.hpp"
#include "document/internal/linked_data.hpp"
#include "document/internal/page_parts.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::size_t kLeastParagraph = 25;  // bytes: shorter ones are buttons and dates
constexpr double kOfName = 25;               // points of a class or id
constexpr double kLikeTheBest = 0.2;         // of its points: what a sibling needs
constexpr double kLeastPoints = 10;
constexpr std::size_t kLongSibling = 80;   // bytes of a paragraph beside the best element
constexpr double kMostLinksInText = 0.33;  // share of a block's text, beyond which it is navigation
constexpr double kMuchMore = 1.2;          // times the text in paragraphs: what an element around the best needs
constexpr double kMostCommas = 10;         // that count; with so many a block of links is text nevertheless
constexpr std::size_t kMostExcerpt = 300;
constexpr std::size_t kEnough = 500;             // bytes of an article, which is not looked for again
constexpr std::size_t kMostStyleBytes = 10'000;  // of an element that are looked at
constexpr std::size_t kMostNameBytes = 500;      // of a class or id that are looked at

constexpr std::string_view kOfArticles[] = {"article", "body", "content", "entry", "main",
                                            "page",    "post", "story",   "text",  "blog"};
constexpr std::string_view kOfOthers[] = {
    "ads",        "advert",    "banner",   "breadcrumb", "byline", "combx",      "comment",   "comments",
    "cookie",     "disqus",    "footer",   "gdpr",       "hidden", "masthead",   "menu",      "nav",
    "newsletter", "outbrain",  "pager",    "popup",      "promo",  "related",    "recommend", "remark",
    "share",      "sharing",   "shoutbox", "sidebar",    "signup", "skyscraper", "social",    "sponsor",
    "sponsored",  "subscribe", "tags",     "taboola",    "teaser", "toolbar",    "widget"};

// Whether a word of `name`, in which "-" is around and between words, begins or ends with `part`.
bool has_word_part(std::string_view name, std::string_view part) {
  for (std::size_t at = name.find(part); at != std::string_view::npos; at = name.find(part, at + 1)) {
    if (name[at - 1] == '-' || name[at + part.size()] == '-') return true;
  }
  return false;
}
// Elements that are no part of an article, whatever their names.
constexpr std::string_view kBeside[] = {"aside", "button", "dialog", "fieldset", "footer", "form",
                                        "input", "label",  "menu",   "nav",      "select", "textarea"};
static_assert(std::ranges::is_sorted(kBeside));

struct NamedPoints {
  std::string_view name;
  double points;
};
constexpr NamedPoints kOfElements[] = {
    {"address", -3}, {"article", 25}, {"blockquote", 3}, {"dd", -3},     {"div", 5}, {"dl", -3}, {"dt", -3},
    {"h1", -5},      {"h2", -5},      {"h3", -5},        {"h4", -5},     {"h5", -5}, {"h6", -5}, {"li", -3},
    {"main", 15},    {"ol", -3},      {"pre", 3},        {"section", 5}, {"td", 3},  {"th", -5}, {"ul", -3},
};
static_assert(std::ranges::is_sorted(kOfElements, {}, &NamedPoints::name));

double points_of_element(std::string_view name) {
  const auto* const found = std::ranges::lower_bound(kOfElements, name, {}, &NamedPoints::name);
  return found != std::end(kOfElements) && found->name == name ? found->points : 0;
}

class ArticleFinder {
 public:
  explicit ArticleFinder(const Document& document)
      : document_(document),
        tree_(DocumentAccess::tree(document)),
        text_(tree_.nodes.size()),
        linked_(tree_.nodes.size()),
        points_(tree_.nodes.size()) {}

  // By all rules; where little remains, without some of them. The longest of what was found is taken where none is
  // long.
  std::optional<ReadableArticle> find() {
    std::optional<ReadableArticle> best;
    for (const Rules rules : {Rules::all, Rules::no_names, Rules::shown}) {
      auto found = find_by(rules);
      if (found && (!best || found->text.size() > best->text.size())) best = std::move(found);
      if (best && best->text.size() >= kEnough) break;
    }
    return best;
  }

 private:
  // The parts that are left out before anything is measured.
  enum class Rules : std::uint8_t {
    all,
    no_names,  // but not for the names of classes
    shown,     // only what is not shown
  };

  std::optional<ReadableArticle> find_by(Rules rules) {
    begin();
    leave_out_hidden();
    measure();
    if (rules != Rules::shown) leave_out_others(rules == Rules::all);
    measure();
    give_points();
    const NodeIndex best = best_of_all();
    const std::vector<NodeIndex> parts = best != kNoNode         ? with_siblings(around_all(best))
                                         : rules == Rules::shown ? whole_body()
                                                                 : std::vector<NodeIndex>{};
    if (parts.empty()) return std::nullopt;
    ReadableArticle article;
    for (const NodeIndex part : parts) {
      leave_out_navigation(part);
      if (!article.text.empty()) article.text += "\n\n";
      article.text += shown_text(tree_, part, TextShape::lines, &left_out_);
      append_markup(tree_, part, article.html, &left_out_);
    }
    if (trim_space(article.text).empty()) return std::nullopt;
    describe(article, parts.front());
    return article;
  }

  void begin() {
    points_.assign(tree_.nodes.size(), 0);
    is_candidate_.assign(tree_.nodes.size(), false);
    left_out_.assign(tree_.nodes.size(), false);
  }

  // Points of what its class and id are called: positive, negative or none.
  double points_of_names(NodeIndex node) {
    double points = 0;
    for (const std::string_view attribute : {"class", "id"}) {
      const TreeAttribute* const found = tree_.find_attribute(node, attribute);
      if (found == nullptr || found->value.empty()) continue;
      // Pages have few classes, and each of them often.
      const auto [known, is_new] = points_of_name_.try_emplace(found->value, 0);
      if (is_new) known->second = points_of_name(found->value);
      points += known->second;
    }
    return points;
  }
  static double points_of_name(std::string_view value) {
    std::string name = "-" + std::string(value.substr(0, kMostNameBytes)) + "-";
    std::ranges::transform(name, name.begin(), [](char c) { return is_space(c) || c == '_' ? '-' : to_lower(c); });
    const auto is_in_name = [&](std::string_view part) { return has_word_part(name, part); };
    double points = 0;
    if (std::ranges::any_of(kOfOthers, is_in_name)) points -= kOfName;
    if (std::ranges::any_of(kOfArticles, is_in_name)) points += kOfName;
    return points;
  }

  void leave_out_hidden() {
    for (NodeIndex node = 1; node < tree_.nodes.size(); ++node) {
      if (tree_.is_element(node)) left_out_[node] = is_hidden(node);
    }
  }
  bool is_hidden(NodeIndex node) const {
    const std::string_view name = tree_.nodes[node].text;
    if (name == "html" || name == "body") return false;
    if (tree_.find_attribute(node, "hidden") != nullptr) return true;
    const TreeAttribute* const style = tree_.find_attribute(node, "style");
    if (style == nullptr || style->value.size() > kMostStyleBytes) return false;
    std::string declared;
    for (const char c : style->value) {
      if (!is_space(c)) declared += to_lower(c);
    }
    return declared.contains("display:none") || declared.contains("visibility:hidden");
  }

  // Leaves out elements that are surely beside the article, by their names and their classes'. An element that holds
  // most of the page's text is around the article, whatever it is called: "no-sidebar", "overflow-hidden", one form.
  void leave_out_others(bool by_names) {
    const std::size_t all = own_text(0);
    for (NodeIndex node = 1; node < tree_.nodes.size(); ++node) {
      if (!tree_.is_element(node) || 2 * own_text(node) > all) continue;
      const std::string_view name = tree_.nodes[node].text;
      const bool may_be_all = name == "html" || name == "body" || name == "article" || name == "main" ||
                              name == "pre" || name == "code" || name == "a" || name == "p";
      const bool is_beside = std::ranges::binary_search(kBeside, name) || (name == "header" && !is_in_article(node));
      if (is_beside || (by_names && !may_be_all && points_of_names(node) < 0)) left_out_[node] = true;
    }
  }
  // Bytes that are in no link.
  std::size_t own_text(NodeIndex node) const { return text_[node] - linked_[node]; }
  bool is_in_article(NodeIndex node) const {
    for (node = tree_.nodes[node].parent; node != kNoNode; node = tree_.nodes[node].parent) {
      if (tree_.nodes[node].text == "article" || tree_.nodes[node].text == "main") return true;
    }
    return false;
  }

  // Bytes of text, and those of them in links, of each node with all in it.
  void measure() {
    std::ranges::fill(text_, 0);
    std::ranges::fill(linked_, 0);
    NodeIndex skip_until = 0;
    NodeIndex link_until = 0;
    bool is_within_page = false;
    for (NodeIndex node = 1; node < tree_.nodes.size(); ++node) {
      const TreeNode& row = tree_.nodes[node];
      if (row.kind == TreeNode::Kind::element) {
        if (left_out_[node] || is_code(row.text)) skip_until = std::max(skip_until, row.end);
        if (row.text == "a" && row.end > link_until) {
          const TreeAttribute* const href = tree_.find_attribute(node, "href");
          is_within_page = href != nullptr && href->value.starts_with('#');
          const bool leads_nowhere = href == nullptr || starts_with_lower(href->value, "javascript:");
          link_until = leads_nowhere ? link_until : row.end;
        }
      }
      if (row.kind != TreeNode::Kind::text || node < skip_until) continue;
      const std::size_t length = trim_space(row.text).size();
      text_[node] = length;
      // Notes and contents link within the page, and are a part of its text.
      linked_[node] = node >= link_until ? 0 : is_within_page ? length * 3 / 10 : length;
    }
    for (auto node = static_cast<NodeIndex>(tree_.nodes.size() - 1); node > 0; --node) {
      text_[tree_.nodes[node].parent] += text_[node];
      linked_[tree_.nodes[node].parent] += linked_[node];
    }
  }
  static bool is_code(std::string_view name) {
    return name == "script" || name == "style" || name == "noscript" || name == "template" || name == "head";
  }
  double share_of_links(NodeIndex node) const {
    return text_[node] == 0 ? 0 : static_cast<double>(linked_[node]) / static_cast<double>(text_[node]);
  }

  bool is_paragraph(NodeIndex node) const {
    const std::string_view name = tree_.nodes[node].text;
    if (name == "p" || name == "pre" || name == "blockquote" || name == "td") return true;
    if (name != "div" && name != "section") return false;
    // One that holds text itself, be it in elements of a line.
    std::size_t own = 0;
    for (NodeIndex child = node + 1; child < tree_.nodes[node].end; child = tree_.nodes[child].end) {
      const TreeNode& row = tree_.nodes[child];
      if (row.kind == TreeNode::Kind::text || (tree_.is_element(child) && !is_block(row.text))) own += text_[child];
    }
    return own >= kLeastParagraph;
  }

  void give_points() {
    NodeIndex skip_until = 0;
    for (NodeIndex node = 1; node < tree_.nodes.size(); ++node) {
      if (!tree_.is_element(node)) continue;
      if (left_out_[node]) skip_until = std::max(skip_until, tree_.nodes[node].end);
      if (node < skip_until || text_[node] < kLeastParagraph || !is_paragraph(node)) continue;
      double points = 1 + std::min(static_cast<double>(text_[node]) / 100, 3.0) + commas_in(node);
      points *= 1 - share_of_links(node);
      NodeIndex around = tree_.nodes[node].parent;
      for (const double share : {1.0, 0.5, 0.25}) {
        if (around == kNoNode || around == 0) break;
        add_points(around, points * share);
        around = tree_.nodes[around].parent;
      }
    }
  }
  // Of its own texts, and of those of elements in it, as far as a paragraph reaches.
  double commas_in(NodeIndex node) const {
    double commas = 0;
    const NodeIndex end = std::min(tree_.nodes[node].end, node + 200);
    for (NodeIndex i = node; i < end; ++i) {
      if (tree_.is_text(i)) commas += static_cast<double>(std::ranges::count(tree_.nodes[i].text, ','));
    }
    return std::min(commas, kMostCommas);
  }
  void add_points(NodeIndex node, double points) {
    if (!is_candidate_[node]) {
      is_candidate_[node] = true;
      points_[node] = points_of_element(tree_.nodes[node].text) + points_of_names(node);
    }
    points_[node] += points;
  }
  double final_points(NodeIndex node) const { return points_[node] * (1 - share_of_links(node)); }

  NodeIndex best_of_all() const {
    NodeIndex best = kNoNode;
    double most = 0;
    for (NodeIndex node = 1; node < tree_.nodes.size(); ++node) {
      if (!is_candidate_[node] || final_points(node) <= most) continue;
      best = node;
      most = final_points(node);
    }
    return best;
  }

  // Bytes in paragraphs that are no navigation, of each node with all in it.
  std::vector<std::size_t> in_paragraphs() const {
    std::vector<std::size_t> bytes(tree_.nodes.size());
    NodeIndex skip_until = 0;
    for (NodeIndex node = 1; node < tree_.nodes.size(); ++node) {
      if (!tree_.is_element(node) || node < skip_until) continue;
      if (left_out_[node]) skip_until = tree_.nodes[node].end;
      if (left_out_[node] || text_[node] < kLongSibling || !is_paragraph(node)) continue;
      skip_until = tree_.nodes[node].end;
      if (share_of_links(node) < kMostLinksInText) bytes[node] = text_[node];
    }
    for (auto node = static_cast<NodeIndex>(tree_.nodes.size() - 1); node > 0; --node) {
      bytes[tree_.nodes[node].parent] += bytes[node];
    }
    return bytes;
  }
  // The best element, or one around it that has much more text in paragraphs: an article of several sections.
  NodeIndex around_all(NodeIndex best) const {
    const std::vector<std::size_t> bytes = in_paragraphs();
    for (NodeIndex node = best; node != kNoNode && node != 0; node = tree_.nodes[node].parent) {
      if (static_cast<double>(bytes[node]) > kMuchMore * static_cast<double>(bytes[best])) best = node;
    }
    return best;
  }
  // Of a page that has next to no text, what it has.
  std::vector<NodeIndex> whole_body() const {
    for (NodeIndex node = 1; node < tree_.nodes.size(); ++node) {
      if (tree_.is_element(node) && tree_.nodes[node].text == "body" && own_text(node) > 0) return {node};
    }
    return {};
  }

  // The best element, and of its siblings those that are a part of the same text: in their order.
  std::vector<NodeIndex> with_siblings(NodeIndex best) const {
    const NodeIndex parent = tree_.nodes[best].parent;
    const std::string_view name = tree_.nodes[best].text;
    if (parent == 0 || name == "body" || name == "article" || name == "main") return {best};
    const double least = std::max(kLeastPoints, final_points(best) * kLikeTheBest);
    std::vector<NodeIndex> parts;
    for (NodeIndex node = parent + 1; node < tree_.nodes[parent].end; node = tree_.nodes[node].end) {
      if (node == best) {
        parts.push_back(node);
      } else if (tree_.is_element(node) && !left_out_[node]) {
        const bool is_like_it = is_candidate_[node] && final_points(node) >= least;
        const bool is_text =
            tree_.nodes[node].text == "p" && text_[node] >= kLongSibling && share_of_links(node) < 0.25;
        if (is_like_it || is_text) parts.push_back(node);
      }
    }
    return parts;
  }

  // Lists and blocks in the article that are mostly links.
  void leave_out_navigation(NodeIndex part) {
    for (NodeIndex node = part + 1; node < tree_.nodes[part].end; ++node) {
      const std::string_view name = tree_.nodes[node].text;
      const bool is_block = tree_.is_element(node) && (name == "ul" || name == "ol" || name == "div" ||
                                                       name == "section" || name == "table" || name == "dl");
      const bool is_navigation = share_of_links(node) > kMostLinksInText && points_[node] < kOfName && text_[node] > 0;
      if (is_block && is_navigation && commas_in(node) < kMostCommas) left_out_[node] = true;
    }
  }

  void describe(ReadableArticle& article, NodeIndex part) const {
    const auto first = [](std::vector<std::string> values) {
      return values.empty() ? std::string{} : std::move(values.front());
    };
    const auto first_of = [&](std::initializer_list<std::string_view> names) {
      std::string found;
      for (const std::string_view name : names) {
        if (found.empty()) found = first(meta_values(document_, name));
      }
      return found;
    };
    article.title = title_for(part, first_of({"og:title", "twitter:title"}));
    for (const std::string_view name : {"author", "article:author", "dc.creator"}) {
      // Of Open Graph an author is a profile's URL.
      for (std::string& value : meta_values(document_, name)) {
        if (article.author.empty() && !is_url(value)) article.author = std::move(value);
      }
    }
    article.date = first_of({"article:published_time", "datepublished", "date", "dc.date"});
    article.excerpt = first_of({"description", "og:description"});
    if (article.author.empty() || article.date.empty()) ask_linked_data(article);
    if (article.excerpt.empty()) {
      const std::string paragraph = article.text.substr(0, article.text.find("\n\n"));
      article.excerpt =
          paragraph.size() <= kMostExcerpt ? paragraph : paragraph.substr(0, paragraph.rfind(' ', kMostExcerpt));
    }
  }
  static bool is_url(std::string_view text) {
    return text.contains("://") || starts_with_lower(text, "//") || starts_with_lower(text, "www.");
  }

  // The heading that is nearest before the article's text, or in it; else what the page calls itself.
  std::string title_for(NodeIndex part, std::string social) const {
    std::string title;
    for (NodeIndex node = 1; node < tree_.nodes[part].end; ++node) {
      if (!tree_.is_element(node) || tree_.nodes[node].text != "h1") continue;
      std::string text = shown_text(tree_, node, TextShape::one_line);
      if (!text.empty()) title = std::move(text);
      if (node > part) break;
    }
    if (!title.empty()) return title;
    return social.empty() ? page_title(document_) : social;
  }
  void ask_linked_data(ReadableArticle& article) const {
    const LinkedData data(document_);
    const auto ask = [&](std::string& into, std::initializer_list<std::string_view> paths) {
      for (const std::string_view path : paths) {
        if (!into.empty()) return;
        const auto parsed = LinkedDataPath::parse(path);
        const auto values = parsed ? data.find(*parsed) : std::vector<LinkedValue>{};
        if (!values.empty() && !values.front().is_json && !is_url(values.front().text)) into = values.front().text;
      }
    };
    ask(article.author, {"$.author.name", "$.author"});
    ask(article.date, {"$.datePublished", "$.dateCreated"});
  }

  const Document& document_;
  const DocumentTree& tree_;
  std::vector<std::size_t> text_, linked_;
  std::vector<double> points_;
  std::unordered_map<std::string_view, double> points_of_name_;
  std::vector<bool> is_candidate_;
  LeftOut left_out_;
};

}  // namespace

std::optional<ReadableArticle> find_article(const Document& document) {
  if (document.is_xml()) return std::nullopt;
  return ArticleFinder(document).find();
}

}  // namespace argiope
