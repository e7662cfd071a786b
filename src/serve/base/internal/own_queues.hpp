// Queues of the daemon's own: it alone puts into them and works them off. Its messages are sent with its rights.
#pragma once

#include <string_view>

namespace argiope {

inline constexpr std::string_view kOwnQueues = "argiope.";
inline constexpr std::string_view kNotifyQueues = "argiope.notify.";  // of messages to people

inline bool is_own_queue(std::string_view name) noexcept { return name.starts_with(kOwnQueues); }

}  // namespace argiope
