#include "crawl/hosts/internal/robots_answer.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "argiope/base/clock.hpp"
#include "crawl/hosts/internal/host_question.hpp"
#include "web/http/internal/http_date.hpp"

namespace argiope {

Duration RobotsAnswer::crawl_delay(std::string_view site, Duration most) const {
  const Duration asked = rules ? rules->crawl_delay().value_or(Duration{}) : Duration{};
  if (asked <= most) return asked;
  spdlog::info("{}: its robots.txt asks for {} between two requests; {} is the most that is heeded", site,
               format_roughly(asked), format_roughly(most));
  return most;
}

std::unique_ptr<const RobotsRules> RobotsAnswer::take_rules() {
  std::optional<RobotsRules> taken = std::exchange(rules, std::nullopt);
  return taken && taken->rule_count() > 0 ? std::make_unique<const RobotsRules>(std::move(*taken)) : nullptr;
}

RobotsAnswer judge_robots(const Result<void>& sent, const HttpResponse& response, std::uint32_t attempts,
                          std::string_view product_token, WallTime now) {
  using Kind = RobotsAnswer::Kind;
  RobotsAnswer answer;
  if (sent && response.challenged == HttpChallenged::again && attempts < kMostRobotsChallenges) {
    answer.kind = Kind::challenged;
    return answer;
  }
  const RobotsVerdict verdict = sent ? robots_policy(response.status) : robots_policy(sent.error());
  if (verdict == RobotsVerdict::parse) answer.rules = RobotsRules::parse(response.body, product_token);
  if (verdict != RobotsVerdict::disallow_all) return answer;
  if (sent) {
    answer.kind = Kind::refused;
    answer.error = {Errc::refused, fmt::format("robots.txt answered HTTP {}", response.status)};
    answer.at_least = parse_retry_after(response.headers.retry_after, now).value_or(Duration{});
  } else {
    answer.kind = Kind::failed;
    answer.error = sent.error();
    if (response.connected) answer.error.message.insert(0, "robots.txt: ");
  }
  return answer;
}

}  // namespace argiope
