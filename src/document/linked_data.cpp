#include "document/internal/linked_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

#include "base/internal/json_reader.hpp"
#include "base/internal/printable.hpp"
#include "document/document_state.hpp"
#include "document/document_text.hpp"
#include "web/html/internal/lenient_json.hpp"
#include "web/html/internal/salvaged_json.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

// Calls visit(item) for each object that is no list and no @graph; to a depth that JsonText allows.
void for_each_item(const JsonValue& value, std::size_t& left, const std::function<void(const JsonValue&)>& visit) {
  if (left == 0) return;
  if (value.is_list()) return value.for_each([&](const JsonValue& entry) { for_each_item(entry, left, visit); });
  if (!value.is_object()) return;
  bool has_graph = false;
  bool has_type = false;
  value.for_each_name([&](std::string_view name, const JsonValue& member) {
    has_type = has_type || name == "@type";
    if (name != "@graph") return;
    has_graph = true;
    for_each_item(member, left, visit);
  });
  if (has_graph && !has_type) return;
  --left;
  visit(value);
}

// All objects in it, also those that are values of others.
void for_each_object(const JsonValue& value, std::size_t& left, const std::function<void(const JsonValue&)>& visit) {
  if (left == 0) return;
  value.for_each([&](const JsonValue& entry) { for_each_object(entry, left, visit); });
  if (!value.is_object()) return;
  --left;
  visit(value);
  value.for_each_name([&](std::string_view, const JsonValue& member) { for_each_object(member, left, visit); });
}

using ItemVisit = std::function<void(const JsonValue&)>;
using ItemWalk = void (*)(const JsonValue&, std::size_t& left, const ItemVisit&);
void for_each_text(const std::vector<std::string>& texts, ItemWalk walk, const ItemVisit& visit) {
  std::size_t left = LinkedData::kMostItems;
  for (const std::string& text : texts) {
    const auto json = JsonText::parse(text);
    if (!json) continue;
    JsonErrors errors;
    walk(json->root(errors), left, visit);
  }
}

std::vector<std::string> types_of(const JsonValue& item) {
  std::vector<std::string> types;
  item.for_each_name([&](std::string_view name, const JsonValue& value) {
    if (name != "@type") return;
    if (value.if_text()) types.emplace_back(*value.if_text());
    value.for_each([&](const JsonValue& entry) {
      if (entry.if_text()) types.emplace_back(*entry.if_text());
    });
  });
  return types;
}

// "http://schema.org/Product" is a Product, too.
bool is_type(std::string_view given, std::string_view wanted) {
  if (given.ends_with('/')) given.remove_suffix(1);
  return given == wanted || (given.ends_with(wanted) && given.size() > wanted.size() &&
                             std::string_view("/#:").contains(given[given.size() - wanted.size() - 1]));
}

// Whether it is JSON, and not a string that may have some within it.
bool is_data(std::string_view text) {
  const auto json = JsonText::parse(text);
  if (!json) return false;
  JsonErrors errors;
  return !json->root(errors).if_text();
}

// As much of it as can be read.
std::string readable(const std::string& text) {
  std::string mended = mended_json(text);
  if (is_data(mended) || trim_space(mended).empty()) return mended;
  std::string salvaged = salvaged_json(text);
  return salvaged.empty() ? text : salvaged;
}

class LinkedDataSearch {
 public:
  LinkedDataSearch(const LinkedDataPath& path, std::vector<LinkedValue>& found) : path_(path), found_(found) {}

  void search(const JsonValue& value, std::size_t step) {
    if (found_.size() >= LinkedData::kMostValues) return;
    if (step == path_.steps.size()) return add(value);
    const LinkedDataPath::Step& wanted = path_.steps[step];
    switch (wanted.kind) {
      case LinkedDataPath::Step::Kind::member: return search_member(value, wanted.name, step);
      case LinkedDataPath::Step::Kind::anywhere: return search_anywhere(value, wanted.name, step);
      case LinkedDataPath::Step::Kind::all:
        return value.for_each([&](const JsonValue& entry) { search(entry, step + 1); });
      case LinkedDataPath::Step::Kind::place: {
        std::size_t place = 0;
        if (!value.is_list() && wanted.place == 0) return search(value, step + 1);  // one stands for a list of one
        return value.for_each([&](const JsonValue& entry) {
          if (place++ == wanted.place) search(entry, step + 1);
        });
      }
    }
  }

 private:
  void search_member(const JsonValue& value, std::string_view name, std::size_t step) {
    if (value.is_list()) return value.for_each([&](const JsonValue& entry) { search_member(entry, name, step); });
    value.for_each_name([&](std::string_view other, const JsonValue& member) {
      if (other == name) search(member, step + 1);
    });
  }
  void search_anywhere(const JsonValue& value, std::string_view name, std::size_t step) {
    if (found_.size() >= LinkedData::kMostValues) return;
    value.for_each([&](const JsonValue& entry) { search_anywhere(entry, name, step); });
    value.for_each_name([&](std::string_view other, const JsonValue& member) {
      if (other == name) search(member, step + 1);
      search_anywhere(member, name, step);
    });
  }
  void add(const JsonValue& value) {
    const bool is_json = value.is_list() || value.is_object();
    std::string text = is_json ? value.json() : value.shown();
    if (text != "null" || is_json || value.if_text()) found_.push_back({std::move(text), is_json});
  }

  const LinkedDataPath& path_;
  std::vector<LinkedValue>& found_;
};

// Reads a path, and tells where it is wrong.
class LinkedDataPathParser {
 public:
  explicit LinkedDataPathParser(std::string_view text) : text_(text) {}

  Result<LinkedDataPath> read() {
    LinkedDataPath path;
    at_ = text_.find('$');
    if (at_ == std::string_view::npos) return wrong(0, "write it as $.name or Product$.name");
    path.type = text_.substr(0, at_++);
    while (at_ < text_.size()) {
      auto step = read_step();
      if (!step) return std::unexpected(std::move(step.error()));
      path.steps.push_back(std::move(*step));
    }
    return path;
  }

 private:
  Result<LinkedDataPath::Step> read_step() {
    using Kind = LinkedDataPath::Step::Kind;
    const std::size_t start = at_;
    if (text_[at_] == '[') {
      const std::size_t end = text_.find(']', at_);
      if (end == std::string_view::npos) return wrong(start, "\"]\" is missing");
      const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
      if (inside == "*") return LinkedDataPath::Step{Kind::all, {}};
      std::size_t place = 0;
      const auto [rest, trouble] = std::from_chars(inside.data(), inside.data() + inside.size(), place);
      if (inside.empty() || trouble != std::errc{} || rest != inside.data() + inside.size()) {
        return wrong(start, "write [0], [1] … or [*]");
      }
      return LinkedDataPath::Step{Kind::place, {}, place};
    }
    if (text_[at_] != '.') return wrong(start, "\".\" or \"[\" is missing");
    const bool anywhere = text_.substr(at_).starts_with("..");
    at_ += anywhere ? 2 : 1;
    const std::size_t end = std::min(text_.find_first_of(".[", at_), text_.size());
    if (end == at_) return wrong(at_, "a name is missing");
    std::string name(text_.substr(at_, end - at_));
    at_ = end;
    return LinkedDataPath::Step{anywhere ? Kind::anywhere : Kind::member, std::move(name)};
  }
  std::unexpected<Error> wrong(std::size_t at, std::string_view why) const {
    return fail(Errc::invalid_input, fmt::format("jsonld {}: {}, at character {}", in_quotes(text_), why, at + 1));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<LinkedDataPath> LinkedDataPath::parse(std::string_view text) { return LinkedDataPathParser(text).read(); }

LinkedData::LinkedData(const Document& document) {
  const DocumentTree& tree = DocumentAccess::tree(document);
  const std::uint32_t script = tree.find_name("script");
  if (script == tree.names.size()) return;
  for (NodeIndex node = 1; node < tree.nodes.size(); ++node) {
    if (!tree.is_element(node) || tree.nodes[node].name != script) continue;
    const TreeAttribute* const type = tree.find_attribute(node, "type");
    if (type == nullptr || !starts_with_lower(trim_space(type->value), "application/ld+json")) continue;
    std::string text = raw_text(tree, node);
    if (!is_data(text)) text = readable(text);
    if (trim_space(text).empty()) continue;
    if (is_data(text)) {
      texts_.push_back(std::move(text));
    } else {
      ++unreadable_;
    }
  }
}

std::vector<LinkedValue> LinkedData::find(const LinkedDataPath& path) const {
  std::vector<LinkedValue> found;
  bool has_type = path.type.empty();
  const auto search = [&](const JsonValue& item) {
    const auto types = path.type.empty() ? std::vector<std::string>{} : types_of(item);
    const auto fits = [&](const std::string& type) { return is_type(type, path.type); };
    if (!path.type.empty() && std::ranges::none_of(types, fits)) return;
    has_type = true;
    LinkedDataSearch(path, found).search(item, 0);
  };
  for_each_text(texts_, for_each_item, search);
  // A page's item may be the value of another: of a WebPage, of a list.
  if (!has_type) for_each_text(texts_, for_each_object, search);
  return found;
}

std::vector<std::vector<std::string>> LinkedData::types() const {
  std::vector<std::vector<std::string>> types;
  for_each_text(texts_, for_each_item, [&](const JsonValue& item) { types.push_back(types_of(item)); });
  return types;
}

}  // namespace argiope
