#include "web/url/internal/url_parameters.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/internal/printable.hpp"
#include "web/text/internal/lower_case.hpp"

namespace argiope {
namespace {

// Parameters that campaigns, mailings and advertisements add to links.
constexpr std::string_view kTracking[] = {
    "utm_*",       "mtm_*",      "pk_*",       "piwik_*", "matomo_*",  "hsa_*",         "gclid",
    "gclsrc",      "dclid",      "gbraid",     "wbraid",  "fbclid",    "msclkid",       "yclid",
    "ysclid",      "twclid",     "ttclid",     "igshid",  "li_fat_id", "mc_cid",        "mc_eid",
    "mkt_tok",     "_ga",        "_gl",        "_hsenc",  "_hsmi",     "hsctatracking", "vero_id",
    "oly_anon_id", "oly_enc_id", "rb_clickid", "s_cid",   "wickedid",  "_openstat",     "srsltid"};

// Parameters that servers add to know who comes back without cookies.
constexpr std::string_view kSessions[] = {"phpsessid",  "jsessionid", "aspsessionid*", "sid",       "sessionid",
                                          "session_id", "sessid",     "cfid",          "cftoken",   "zenid",
                                          "oscsid",     "xtcsid",     "smsession",     "sessionkey"};

constexpr std::size_t kMostParameterName = 200;

bool is_parameter_name(std::string_view word) noexcept {
  return !word.empty() && word.size() <= kMostParameterName && std::ranges::none_of(word, [](char c) {
    return is_space(c) || c == '&' || c == ';' || c == '=' || c == '#' || c == '?' || c == '*';
  });
}

}  // namespace

std::span<const std::string_view> tracking_parameters() noexcept { return kTracking; }
std::span<const std::string_view> session_parameters() noexcept { return kSessions; }

Result<ParameterNames> ParameterNames::parse(std::span<const std::string> words) {
  ParameterNames names;
  const auto add = [&names](std::string_view word) {
    const bool is_beginning = word.ends_with('*');
    if (is_beginning) word.remove_suffix(1);
    if (!is_parameter_name(word)) return false;
    std::string lower = in_lower_case(word);
    (is_beginning ? names.beginnings_ : names.names_).push_back(std::move(lower));
    return true;
  };
  for (const std::string& word : words) {
    if (word == "tracking" || word == "sessions") {
      for (const std::string_view name : word == "tracking" ? tracking_parameters() : session_parameters()) add(name);
    } else if (!add(word)) {
      return fail(Errc::invalid_input, fmt::format("{}: the name of a parameter, its beginning with a * behind it, "
                                                   "tracking or sessions",
                                                   in_quotes(word)));
    }
  }
  std::ranges::sort(names.names_);
  return names;
}

bool ParameterNames::contains(std::string_view name) const noexcept {
  if (empty() || name.size() > kMostParameterName) return false;
  char lower[kMostParameterName];
  std::ranges::transform(name, lower, to_lower);
  const std::string_view found(lower, name.size());
  return std::ranges::binary_search(names_, found, {}, [](const std::string& n) { return std::string_view(n); }) ||
         std::ranges::any_of(beginnings_, [&](const std::string& beginning) { return found.starts_with(beginning); });
}

}  // namespace argiope
