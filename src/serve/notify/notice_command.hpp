// The command that shows the matter of a notice, as people paste it into a shell.
#pragma once

#include <string>
#include <string_view>

#include "serve/notify/notice.hpp"

namespace argiope {

// "argiope schedule history links". `daemon`: MessageHead::daemon, which is left out where commands look without being
// told. A name that a shell could take for anything else is quoted. Empty: no command shows it.
std::string command_for(const Notice& notice, std::string_view daemon);

}  // namespace argiope
