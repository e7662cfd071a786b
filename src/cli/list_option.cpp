#include "cli/list_option.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/internal/printable.hpp"

namespace argiope {
namespace {

constexpr std::string_view kBlanks = " \t";

std::string without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(kBlanks) - first + 1));
}

std::string option_said(std::string_view names) { return std::string(names.substr(names.rfind(',') + 1)); }

CLI::Option* add_parts(CLI::App& command, std::string name, std::string description, CLI::Validator part,
                       std::function<void(std::vector<std::string> parts)> take) {
  const std::string said = option_said(name);
  const auto read = [said, part = std::move(part), take = std::move(take)](const std::vector<std::string>& texts) {
    std::vector<std::string> all;
    for (const std::string& text : texts) {
      auto parts = parts_of_list(text);
      if (!parts) throw CLI::ValidationError(said, parts.error().message);
      for (std::string& one : *parts) {
        if (const std::string why = part(one); !why.empty()) throw CLI::ValidationError(said, why);
        all.push_back(std::move(one));
      }
    }
    take(std::move(all));
  };
  return command.add_option_function<std::vector<std::string>>(std::move(name), read, std::move(description))
      ->allow_extra_args(false);
}

}  // namespace

Result<std::vector<std::string>> parts_of_list(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    parts.push_back(without_blanks(text.substr(from, comma - from)));
    from = comma + 1;
  }
  if (std::ranges::find(parts, std::string()) == parts.end()) return parts;
  return fail(Errc::invalid_input,
              fmt::format("{}: {}", in_quotes(text),
                          parts.size() == 1 ? "it names nothing; leave the option out"
                                            : "a part between its commas is empty; write it as a,b"));
}

CLI::Option* add_list(CLI::App& command, std::string name, std::vector<std::string>& out, std::string description,
                      CLI::Validator part) {
  return add_parts(command, std::move(name), std::move(description), std::move(part),
                   [&out](std::vector<std::string> parts) { out = std::move(parts); });
}

CLI::Option* add_list(CLI::App& command, std::string name, std::vector<std::uint16_t>& out, std::string description,
                      CLI::Validator part) {
  return add_parts(command, std::move(name), std::move(description), std::move(part),
                   [&out](const std::vector<std::string>& parts) {
                     out.clear();
                     for (const std::string& one : parts) out.push_back(static_cast<std::uint16_t>(std::stoul(one)));
                   });
}

}  // namespace argiope
