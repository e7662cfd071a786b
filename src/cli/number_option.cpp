#include "cli/number_option.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/internal/printable.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

// "010" is eight to some, and ten to others.
bool is_of_two_minds(std::string_view text) {
  const std::size_t first = std::min(text.find_first_not_of("+-"), text.size());
  const auto has_digit = [&](std::size_t at) { return at < text.size() && is_digit(text[at]); };
  return !has_digit(first) || (text[first] == '0' && has_digit(first + 1));
}

// As the option will read it: 0x10 is 16.
bool is_whole_in(const std::string& text, std::int64_t least, std::uint64_t most) {
  if (is_of_two_minds(text)) return false;
  if (text.contains('-')) {
    std::int64_t number = 0;
    return CLI::detail::lexical_cast(text, number) && number >= least &&
           (number < 0 || static_cast<std::uint64_t>(number) <= most);
  }
  std::uint64_t number = 0;
  errno = 0;  // of a number that is too large
  if (!CLI::detail::lexical_cast(text, number) || errno == ERANGE) return false;
  return number <= most && (least <= 0 || number >= static_cast<std::uint64_t>(least));
}

}  // namespace

CLI::Validator whole_number(std::int64_t least, std::uint64_t most) {
  const std::string allowed = most == kNoMost ? fmt::format("a whole number, {} or more", least)
                                              : fmt::format("a whole number from {} to {}", least, most);
  const std::string kind = most != kNoMost ? fmt::format("INT in [{} - {}]", least, most)
                           : least == 1    ? "POSITIVE"
                                           : "";
  return CLI::Validator(
      [=](std::string& text) {
        const bool has_zero = text.size() > 1 && text.front() == '0' && is_of_two_minds(text);
        return is_whole_in(text, least, most) ? std::string()
                                              : fmt::format("{}: {}{}", in_quotes(text), allowed,
                                                            has_zero ? "; write it without a 0 in front" : "");
      },
      kind);
}

CLI::Validator any_number(double least, double most) {
  return CLI::Validator(
      [=](std::string& text) {
        char* end = nullptr;
        const double number = std::strtod(text.c_str(), &end);
        const bool good = !text.empty() && *end == '\0' && number >= least && number <= most;
        return good ? std::string() : fmt::format("{}: a number from {} to {}", in_quotes(text), least, most);
      },
      fmt::format("FLOAT in [{} - {}]", least, most));
}

CLI::Validator whole_bytes(std::uint64_t least_kb) {
  return CLI::Validator(
      [least_kb](std::string& text) {
        const auto bytes = bytes_of(text);
        if (!bytes || *bytes < least_kb * 1024)
          return fmt::format("{}: at least {}K bytes, as in 1000000, 500M or 1G", in_quotes(text), least_kb);
        text = std::to_string(*bytes);
        return std::string();
      },
      "");
}

std::optional<std::uint64_t> bytes_of(std::string text) {
  if (text.contains('-') || is_of_two_minds(text)) return std::nullopt;
  try {
    if (!CLI::AsSizeValue(false)(text).empty()) return std::nullopt;
  } catch (const CLI::Error&) {
    return std::nullopt;
  }
  // A number alone is left as it is.
  std::uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  const bool is_whole = !text.empty() && error == std::errc{} && end == text.data() + text.size();
  return is_whole ? std::optional(bytes) : std::nullopt;
}

CLI::Validator not_empty() {
  return CLI::Validator(
      [](std::string& text) {
        return text.find_first_not_of(" \t") != std::string::npos ? std::string()
                                                                  : in_quotes(text) + ": it names nothing";
      },
      "");
}

CLI::Option* add_ok_status(CLI::App& command, std::vector<int>& statuses) {
  return command
      .add_option("--ok-status", statuses,
                  "Exit statuses of the command that are no failure, such as 0,1 (default: 0; of argiope crawl 0,1)")
      ->check(whole_number(0, 255))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("N,N");
}

}  // namespace argiope
