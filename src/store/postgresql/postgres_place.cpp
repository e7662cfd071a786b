#include "store/postgresql/internal/postgres_place.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "base/internal/printable.hpp"
#include "store/postgresql/internal/postgres_link.hpp"

namespace argiope {
namespace {

constexpr std::string_view kSchemes[] = {"postgresql://", "postgres://"};
constexpr std::size_t kMostSchemaBytes = 63;
constexpr int kMostTimeoutSeconds = 24 * 3600;

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ptr == text.data() + i + 3) {
      decoded += static_cast<char>(byte);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

// All that libpq knows but for what it hides itself, and our own.
const std::set<std::string, std::less<>>& shown_parameters() {
  static const std::set<std::string, std::less<>> kShown = [] {
    std::set<std::string, std::less<>> names = {"schema", "store_timeout"};
    const PostgresOptions known(PQconndefaults());
    for (const auto* one = known.get(); one != nullptr && one->keyword != nullptr; ++one) {
      if (std::string_view(one->dispchar) != "*") names.insert(one->keyword);
    }
    return names;
  }();
  return kShown;
}

std::optional<Duration> parse_seconds(std::string_view text) {
  int seconds = 0;
  if (text.ends_with('s')) text.remove_suffix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || seconds < 1 || seconds > kMostTimeoutSeconds)
    return std::nullopt;
  return std::chrono::seconds{seconds};
}

}  // namespace

bool is_postgresql(std::string_view where) noexcept {
  return where.starts_with(kSchemes[0]) || where.starts_with(kSchemes[1]);
}

std::string quoted_identifier(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

// Where a raw @ ends the user's part for libpq and for people alike.
bool has_one_reading(std::string_view where) {
  const std::string_view rest = where.substr(where.find("://") + 3);
  const std::size_t at = rest.find('@');
  return at == std::string_view::npos || (at < rest.find_first_of("/?") && rest.find('@', at + 1) == std::string::npos);
}

// Of a URL that may be read in two ways nothing is shown that may be a password's: all before the last @ goes.
std::string without_password(std::string_view where) {
  const std::size_t begin = where.find("://") + 3;
  const std::size_t query = std::min(where.find('?', begin), where.size());
  const std::size_t at = where.rfind('@');
  std::string shown(where.substr(0, begin));
  if (!has_one_reading(where)) return without_password(shown.append(where.substr(at + 1)));
  std::string_view place = where.substr(begin, query - begin);
  if (at != std::string_view::npos) {
    const std::string_view user = where.substr(begin, at - begin);
    shown += user.substr(0, user.find(':'));
    place = where.substr(at, query - at);
  }
  shown += place;
  char separator = '?';
  for (std::size_t from = query; from < where.size();) {
    const std::size_t to = std::min(where.find('&', from + 1), where.size());
    const std::string_view one = where.substr(from + 1, to - from - 1);
    if (shown_parameters().contains(percent_decoded(one.substr(0, one.find('='))))) {
      (shown += std::exchange(separator, '&')) += one;
    }
    from = to;
  }
  return shown;
}

Result<PostgresPlace> parse_postgres_place(std::string_view where) {
  PostgresPlace place;
  place.shown = without_password(where);
  const auto wrong = [&](std::string_view why) {
    return fail(Errc::invalid_input, fmt::format("store {}: {}", in_quotes(place.shown), why));
  };
  if (!has_one_reading(where)) return wrong("in a password @ is written %40, / %2F, ? %3F, and so in parameters");
  const std::size_t query = std::min(where.find('?'), where.size());
  place.connection = where.substr(0, query);
  char separator = '?';
  for (std::size_t from = query; from < where.size();) {
    const std::size_t to = std::min(where.find('&', from + 1), where.size());
    const std::string_view one = where.substr(from + 1, to - from - 1);
    const std::size_t equals = std::min(one.find('='), one.size());
    const std::string value = percent_decoded(one.substr(std::min(equals + 1, one.size())));
    if (one.substr(0, equals) == "schema") {
      if (value.empty() || value.size() > kMostSchemaBytes || value.find('\0') != std::string::npos)
        return wrong("schema: a name of 1 to 63 bytes");
      place.schema = value;
    } else if (one.substr(0, equals) == "store_timeout") {
      const auto seconds = parse_seconds(value);
      if (!seconds) return wrong("store_timeout: whole seconds, 1 to 86400");
      place.store_timeout = *seconds;
    } else {
      (place.connection += std::exchange(separator, '&')) += one;
    }
    from = to;
  }
  if (parse_postgres_options(place.connection) == nullptr)
    return wrong("no URL of PostgreSQL: postgresql://USER@HOST:PORT/DATABASE?schema=NAME, %-escaped where need be");
  return place;
}

}  // namespace argiope
