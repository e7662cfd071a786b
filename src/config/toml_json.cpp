#include "config/toml_json.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace argiope {
namespace {

std::vector<std::pair<const toml::key*, const toml::node*>> members_of(const toml::table& table, TomlOrder order) {
  std::vector<std::pair<const toml::key*, const toml::node*>> members;
  for (const auto& [key, value] : table) members.emplace_back(&key, &value);
  if (order == TomlOrder::as_written) {
    std::ranges::stable_sort(members, {}, [](const auto& member) {
      const toml::source_position& at = member.first->source().begin;
      return std::pair(at.line, at.column);
    });
  }
  return members;
}

}  // namespace

void write_json(JsonWriter& out, const toml::node& node, const toml::node*& trouble, TomlOrder order) {
  switch (node.type()) {
    case toml::node_type::table:
      return out.object([&] {
        for (const auto& [key, value] : members_of(*node.as_table(), order)) {
          out.key(key->str());
          write_json(out, *value, trouble, order);
        }
      });
    case toml::node_type::array:
      return out.array([&] {
        for (const toml::node& value : *node.as_array()) write_json(out, value, trouble, order);
      });
    case toml::node_type::string: return out.value(node.as_string()->get());
    case toml::node_type::integer: return out.value(node.as_integer()->get());
    case toml::node_type::floating_point:
      if (!std::isfinite(node.as_floating_point()->get()) && trouble == nullptr) trouble = &node;
      return out.real(node.as_floating_point()->get());
    case toml::node_type::boolean: return out.value(node.as_boolean()->get());
    default: {
      std::ostringstream text;
      if (const auto* date = node.as_date()) text << date->get();
      if (const auto* time = node.as_time()) text << time->get();
      if (const auto* date_time = node.as_date_time()) text << date_time->get();
      return out.value(text.str());
    }
  }
}

toml::source_region source_of(const toml::node& from, const JsonPath& path) {
  const toml::node* node = &from;
  toml::source_region found = from.source();
  for (const auto& step : path) {
    if (const toml::table* table = node->as_table()) {
      const auto* name = std::get_if<std::string>(&step);
      const auto member = name != nullptr ? table->find(*name) : table->end();
      if (member == table->end()) break;
      found = member->first.source();
      node = &member->second;
    } else if (const toml::array* array = node->as_array()) {
      const auto* place = std::get_if<std::size_t>(&step);
      if (place == nullptr || *place >= array->size()) break;
      node = array->get(*place);
      found = node->source();
    } else {
      break;
    }
  }
  return found;
}

}  // namespace argiope
