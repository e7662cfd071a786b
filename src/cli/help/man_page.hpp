// A command's help as a manual page, in roff with the macros of man(7).
#pragma once

#include <string>
#include <string_view>

#include "cli/help/command_help.hpp"

namespace argiope {

struct ManPageOptions {
  std::string date;    // "2026-11-22"
  std::string source;  // "argiope 0.1.0"
};

// The page NAME(1) of a command, with the commands below it as sections. That of the whole program names them alone,
// since each of them has a page; `program` is the whole program.
std::string man_page(const CommandHelp& command, const CommandHelp& program, const ManPageOptions& options);

// Text that stands for itself in roff, down to the last quotation mark.
std::string roff_text(std::string_view text);

}  // namespace argiope
