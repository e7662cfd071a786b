// JSON-LD in pages, and paths into it. No graph is computed of it: a page's items are taken as they are written,
// because what people look for ("the price of the product") stands where schema.org's examples have it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/document/document.hpp"

namespace argiope {

// A way into a page's items:
//
//   $                         each item, as JSON
//   $.name                    that member of each item that has it
//   Product$.offers.price     the same of items of that @type alone
//   $.image[0].url            the first of a list; [*] all of them, which may be left out before a name
//   $..sku                    wherever it is in an item
//
// Items are the objects of all <script type="application/ld+json">; lists of them and @graph are taken apart. Where
// none of them has the
// @type, the objects within them count: the Product of an ItemList.
class LinkedDataPath {
 public:
  // Errors: invalid_input, `jsonld "$.": …, at character 3`.
  static Result<LinkedDataPath> parse(std::string_view text);

  struct Step {
    enum class Kind : std::uint8_t { member, anywhere, place, all };
    Kind kind;
    std::string name;
    std::size_t place = 0;
  };
  std::string type;  // empty: any
  std::vector<Step> steps;
};

struct LinkedValue {
  std::string text;      // of a string its characters; else JSON
  bool is_json = false;  // an object or a list
};

// The page's JSON-LD, read once for all paths.
class LinkedData {
 public:
  explicit LinkedData(const Document& document);

  // How many scripts hold nothing that can be read, even when it is mended (lenient_json.hpp, salvaged_json.hpp).
  std::size_t unreadable() const noexcept { return unreadable_; }
  std::vector<LinkedValue> find(const LinkedDataPath& path) const;
  // Of each item, in order: its @types, as written.
  std::vector<std::vector<std::string>> types() const;

  static constexpr std::size_t kMostItems = 10'000;
  static constexpr std::size_t kMostValues = 10'000;

 private:
  std::vector<std::string> texts_;
  std::size_t unreadable_ = 0;
};

}  // namespace argiope
