// The changes from one text to another, line by line, as `diff -u` shows it.
#pragma once

#include <string>
#include <string_view>

namespace argiope {

// Empty where the lines are the same. With three lines around each change, and file names as given. As few lines as
// possible are told as changed, up to some thousands of changes; beyond, all between the first and the last.
std::string unified_diff(std::string_view before, std::string_view after, std::string_view name_before,
                         std::string_view name_after);

}  // namespace argiope
