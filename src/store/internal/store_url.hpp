// The URLs that name stores, for commands and configurations.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace argiope {

// What open_store() would rather have; nullopt: `where` is well formed.
std::optional<std::string> why_no_store(std::string_view where);
// As it may be shown: without a password.
std::string shown_store(const std::string& where);

}  // namespace argiope
