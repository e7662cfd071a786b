// Options that are spans of time: "90s", "1h30m", or a number of seconds (base/clock.hpp).
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "argiope/base/clock.hpp"

namespace argiope {

struct SpanRange {
  Duration least{};
  Duration most = std::chrono::days{200 * 365};
};

// Registers the option; it is in the group that its caller says. A bad span, or one out of range, is an error of usage.
CLI::Option* add_span(CLI::App& command, std::string name, Duration& out, std::string description,
                      SpanRange range = {});
CLI::Option* add_span(CLI::App& command, std::string name, std::optional<Duration>& out, std::string description,
                      SpanRange range = {});
// The default is said in the help.
CLI::Option* add_span_with_default(CLI::App& command, std::string name, Duration& out, std::string description,
                                   SpanRange range = {});

}  // namespace argiope
