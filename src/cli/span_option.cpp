#include "cli/span_option.hpp"

#include <fmt/format.h>

#include <utility>

#include "argiope/base/clock.hpp"

namespace argiope {
namespace {

Duration read(const std::string& option, const std::string& text, const SpanRange& range) {
  const auto span = parse_span(text);
  if (!span) throw CLI::ValidationError(option, span.error().message);
  if (*span < range.least || *span > range.most) {
    throw CLI::ValidationError(
        option, fmt::format("{}: from {} to {}", text, format_duration(range.least), format_duration(range.most)));
  }
  return *span;
}

template <class Out>
CLI::Option* add(CLI::App& command, std::string name, Out& out, std::string description, SpanRange range) {
  const std::string said = name.substr(name.rfind(',') + 1);
  return command
      .add_option_function<std::string>(
          std::move(name), [&out, said, range](const std::string& text) { out = read(said, text, range); },
          std::move(description))
      ->type_name("SPAN");
}

}  // namespace

CLI::Option* add_span(CLI::App& command, std::string name, Duration& out, std::string description, SpanRange range) {
  return add(command, std::move(name), out, std::move(description), range);
}

CLI::Option* add_span(CLI::App& command, std::string name, std::optional<Duration>& out, std::string description,
                      SpanRange range) {
  return add(command, std::move(name), out, std::move(description), range);
}

CLI::Option* add_span_with_default(CLI::App& command, std::string name, Duration& out, std::string description,
                                   SpanRange range) {
  return add(command, std::move(name), out, std::move(description), range)->default_str(format_duration(out));
}

}  // namespace argiope
