#include "web/http/internal/http_challenge.hpp"

#include <algorithm>
#include <optional>

#include "web/text/internal/ascii.hpp"
#include "web/text/internal/http_field.hpp"
#include "web/text/internal/lower_case.hpp"

namespace argiope {
namespace {

constexpr bool is_token68_char(char c) noexcept { return is_alnum(c) || std::string_view("-._~+/").contains(c); }

std::string unescape(std::string_view quoted) {
  std::string value;
  for (std::size_t at = 0; at < quoted.size(); ++at) {
    if (quoted[at] == '\\' && at + 1 < quoted.size()) ++at;
    value += quoted[at];
  }
  return value;
}

// One field. Commas stand between challenges, and between the parameters of one: what follows a word tells them apart,
// a "=" for a parameter and anything else for a scheme.
class ChallengeReader {
 public:
  ChallengeReader(std::string_view field, std::vector<HttpChallenge>& challenges)
      : rest_(field), challenges_(challenges) {}

  void run() {
    while (skip_separators()) {
      const std::string_view word = take_token(rest_);
      if (word.empty()) {
        rest_.remove_prefix(1);  // what is no word cannot be the beginning of anything
      } else if (auto value = take_value()) {
        add_parameter(word, std::move(*value));
      } else {
        begin_challenge(word);
      }
    }
  }

 private:
  // False at the end.
  bool skip_separators() {
    while (!rest_.empty() && (is_space(rest_.front()) || rest_.front() == ',')) rest_.remove_prefix(1);
    return !rest_.empty();
  }

  // Behind a name: "=" and a token or a quoted string, with or without space around it.
  std::optional<std::string> take_value() {
    std::string_view ahead = rest_;
    while (!ahead.empty() && is_space(ahead.front())) ahead.remove_prefix(1);
    if (!ahead.starts_with('=')) return std::nullopt;
    ahead.remove_prefix(1);
    while (!ahead.empty() && is_space(ahead.front())) ahead.remove_prefix(1);
    rest_ = ahead;
    if (rest_.starts_with('"')) return unescape(take_quoted(rest_));
    // More than a token: some servers forget the quotes of a path or of base64.
    const std::size_t end = std::min(rest_.find_first_of(", \t"), rest_.size());
    std::string value(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return value;
  }

  void begin_challenge(std::string_view scheme) {
    is_beyond_ = challenges_.size() == kMostChallenges;
    if (is_beyond_) return;
    challenges_.emplace_back().scheme = in_lower_case(scheme);
    std::string_view ahead = rest_;
    while (!ahead.empty() && is_space(ahead.front())) ahead.remove_prefix(1);
    // A token68 is all there is up to a comma or the end, as "realm=x" is not.
    std::size_t size = 0;
    while (size < ahead.size() && is_token68_char(ahead[size])) ++size;
    while (size > 0 && size < ahead.size() && ahead[size] == '=') ++size;
    const std::string_view behind = trim_space(ahead.substr(size, ahead.find(',', size) - size));
    if (size == 0 || !behind.empty() || ahead.size() == rest_.size()) return;
    challenges_.back().token.assign(ahead.substr(0, size));
    rest_ = ahead.substr(size);
  }

  void add_parameter(std::string_view name, std::string value) {
    if (challenges_.empty() || is_beyond_) return;
    HttpChallenge& challenge = challenges_.back();
    std::string lower = in_lower_case(name);
    if (challenge.parameters.size() == kMostChallengeParameters || challenge.parameter(lower) != nullptr) return;
    challenge.parameters.emplace_back(std::move(lower), std::move(value));
  }

  std::string_view rest_;
  std::vector<HttpChallenge>& challenges_;
  bool is_beyond_ = false;  // a challenge too many: its parameters go nowhere
};

}  // namespace

const std::string* HttpChallenge::parameter(std::string_view name) const noexcept {
  const auto found = std::ranges::find(parameters, name, [](const auto& one) -> std::string_view { return one.first; });
  return found == parameters.end() ? nullptr : &found->second;
}

std::vector<HttpChallenge> parse_challenges(std::string_view fields) {
  std::vector<HttpChallenge> challenges;
  while (!fields.empty()) {
    const std::size_t end = std::min(fields.find('\n'), fields.size());
    ChallengeReader(fields.substr(0, end), challenges).run();
    fields.remove_prefix(std::min(end + 1, fields.size()));
  }
  return challenges;
}

}  // namespace argiope
