// One note of a store, by its whole name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "argiope/base/error.hpp"
#include "argiope/store/detail/url_store.hpp"

namespace argiope {

// Its text. nullopt: there is none of that name. Errors: the store's.
inline Result<std::optional<std::string>> find_note(UrlStore& store, std::string_view name) {
  std::optional<std::string> text;
  auto scanned = store.scan_notes(name, [&](const UrlNote& note) {
    // By name: others that begin so come behind it.
    if (note.name == name) text = note.text;
    return false;
  });
  if (!scanned) return std::unexpected(std::move(scanned.error()));
  return text;
}

}  // namespace argiope
