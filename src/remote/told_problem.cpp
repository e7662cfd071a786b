#include "remote/internal/told_problem.hpp"

#include <algorithm>

#include "base/internal/json_told.hpp"

namespace argiope {
namespace {

struct Meaning {
  std::string_view type;
  Errc code;
};
constexpr Meaning kMeanings[] = {
    {"invalid_input", Errc::invalid_input},
    {"unauthorized", Errc::refused},
    {"forbidden", Errc::refused},
    {"not_found", Errc::not_found},
    {"method_not_allowed", Errc::unsupported},
    {"wrong_state", Errc::refused},
    {"conflict", Errc::refused},
    {"locked", Errc::refused},
    {"too_slow", Errc::timeout},
    {"too_large", Errc::too_large},
    {"unsupported_media_type", Errc::unsupported},
    {"unsupported_coding", Errc::unsupported},
    {"idempotency_mismatch", Errc::refused},
    {"queue_full", Errc::refused},
    {"too_many", Errc::busy},
    {"io", Errc::io},
    {"disk_full", Errc::disk_full},
    {"busy", Errc::busy},
    {"draining", Errc::busy},
    {"not_implemented", Errc::unsupported},
};

// Of a server before the API the status is all there is.
Errc code_of_status(std::uint32_t status) {
  if (status == 413) return Errc::too_large;
  return status == 503 || status == 429 ? Errc::busy : Errc::internal;
}

}  // namespace

ToldProblem read_problem(const JsonValue& told) {
  constexpr std::string_view kPrefix = "urn:argiope:problem:";
  ToldMembers in(told);
  ToldProblem problem;
  std::uint32_t status = 0;
  in.read("type", problem.type);
  in.read("status", status);
  in.read("title", problem.error.message);
  in.read("detail", problem.error.message);
  if (problem.type.starts_with(kPrefix)) problem.type.erase(0, kPrefix.size());
  const auto* const meaning = std::ranges::find(kMeanings, problem.type, &Meaning::type);
  problem.error.code = meaning != std::end(kMeanings) ? meaning->code : code_of_status(status);
  return problem;
}

}  // namespace argiope
