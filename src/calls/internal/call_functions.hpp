// The functions that jobs name to be run as commands and as HTTP requests, by whatever executor of ours has them.
#pragma once

#include <cstddef>
#include <string_view>

#include "argiope/base/error.hpp"

namespace argiope {

inline constexpr std::string_view kCommandFunction = "command";  // as_command_call()
inline constexpr std::string_view kHttpFunction = "http";        // as_http_call()

// Of the payload of such a job, and of the texts that become one.
inline constexpr std::size_t kMostCallBytes = 1024 * 1024;

// Whether an executor of ours can run a job with that function and payload. A function of another name is not ours to
// judge.
// Errors: invalid_input naming the member.
Result<void> check_call(std::string_view function, std::string_view payload);

}  // namespace argiope
