#include "remote/settlement_telling.hpp"

#include "base/internal/utf8.hpp"
#include "jobs/internal/job_telling.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostToldErrorBytes = 64 * 1024;

std::string_view word_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::done: return "done";
    case Outcome::bury: return "bury";
    case Outcome::cancel: return "cancel";
    case Outcome::retry: return "retry";
    case Outcome::release:
    case Outcome::expire: return "release";
  }
  return {};
}

}  // namespace

void write_settlement(JsonWriter& json, std::uint64_t token, const Verdict& verdict) {
  using enum Outcome;
  const Outcome outcome = verdict.outcome;
  const bool keeps = outcome == done || outcome == retry || outcome == bury;
  const bool has_delay = verdict.delay && (outcome == retry || outcome == release);
  json.member("token", token);
  json.member("outcome", word_of(outcome));
  if (keeps) write_bytes_once(json, "result", verdict.result);
  if ((outcome == retry || outcome == bury || outcome == cancel) && !verdict.error.empty()) {
    json.member("error", cut_between_characters(verdict.error, kMostToldErrorBytes));
  }
  if (has_delay) {
    const auto delay = std::chrono::ceil<std::chrono::milliseconds>(std::max(*verdict.delay, Duration{}));
    json.member("delay_ms", delay.count());
  }
  if (verdict.priority && outcome != done && outcome != cancel) json.member("priority", *verdict.priority);
  if (verdict.follow_ups.empty() || outcome != done) return;
  json.array("follow_ups", [&] {
    for (const NewJob& job : verdict.follow_ups) json.object([&] { write_members(json, job); });
  });
}

}  // namespace argiope
