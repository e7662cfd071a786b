#include "serve/base/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace argiope {

namespace {

struct Kind {
  std::string_view name;
  std::string_view title;
  int status;
};
// In the order of ProblemType.
constexpr std::array<Kind, 21> kKinds{{
    {"invalid_input", "Invalid input", 400},
    {"unauthorized", "Unauthorized", 401},
    {"forbidden", "Forbidden", 403},
    {"not_found", "Not found", 404},
    {"method_not_allowed", "Method not allowed", 405},
    {"wrong_state", "Wrong state", 409},
    {"conflict", "Conflict", 409},
    {"locked", "Locked by the configuration file", 409},
    {"too_slow", "Too slow", 408},
    {"too_large", "Too large", 413},
    {"unsupported_media_type", "Unsupported Content-Type", 415},
    {"unsupported_coding", "Unsupported Content-Encoding", 415},
    {"idempotency_mismatch", "Idempotency key used for another request", 422},
    {"queue_full", "Queue full", 429},
    {"too_many", "Too many requests", 429},
    {"io", "The store cannot be written", 503},
    {"disk_full", "The disk is full", 503},
    {"busy", "The store is busy", 503},
    {"draining", "The daemon is stopping", 503},
    {"internal", "Internal error", 500},
    {"not_implemented", "Not implemented", 501},
}};
static_assert(kKinds.size() == static_cast<std::size_t>(ProblemType::not_implemented) + 1);

const Kind& kind_of(ProblemType type) noexcept { return kKinds[static_cast<std::size_t>(type)]; }

ProblemType type_of(Errc code) noexcept {
  switch (code) {
    case Errc::invalid_input: return ProblemType::invalid_input;
    case Errc::too_large: return ProblemType::too_large;
    case Errc::not_found: return ProblemType::not_found;
    case Errc::refused: return ProblemType::queue_full;
    case Errc::conflict: return ProblemType::conflict;
    case Errc::busy:
    case Errc::timeout: return ProblemType::busy;
    case Errc::disk_full: return ProblemType::disk_full;
    case Errc::cancelled: return ProblemType::draining;
    case Errc::io:
    case Errc::corrupt:
    case Errc::network: return ProblemType::io;
    default: return ProblemType::internal;
  }
}

ProblemType type_of_status(int status) noexcept {
  switch (status) {
    case 414:
    case 431: return ProblemType::too_large;
    case 417: return ProblemType::invalid_input;
    case 503: return ProblemType::busy;
    case 505: return ProblemType::not_implemented;
    default: break;
  }
  const auto* const kind = std::ranges::find(kKinds, status, &Kind::status);
  return kind == kKinds.end() ? ProblemType::internal : static_cast<ProblemType>(kind - kKinds.begin());
}

int status_of(const Problem& problem) noexcept {
  return problem.status == 0 ? kind_of(problem.type).status : problem.status;
}

}  // namespace

std::string pointer_to(const JsonPath& path) {
  std::string pointer;
  for (const auto& step : path) {
    pointer += '/';
    if (const auto* place = std::get_if<std::size_t>(&step)) {
      pointer += std::to_string(*place);
      continue;
    }
    for (const char c : std::get<std::string>(step)) {
      if (c == '~') {
        pointer += "~0";
      } else if (c == '/') {
        pointer += "~1";
      } else {
        pointer += c;
      }
    }
  }
  return pointer;
}

std::string_view to_string(ProblemType type) noexcept { return kind_of(type).name; }

int status_of(ProblemType type) noexcept { return kind_of(type).status; }

Problem problem_of_status(int status, std::string_view detail) {
  return {.type = type_of_status(status), .detail = std::string(detail), .places = {}, .status = status};
}

Problem problem_of(const Error& error) { return {.type = type_of(error.code), .detail = error.message, .places = {}}; }

Problem problem_of(const JsonErrors& errors, const JsonPath& within) {
  Problem problem = problem_of(errors.error());
  problem.places.push_back({pointer_to(within) + pointer_to(errors.where()), errors.why()});
  return problem;
}

void write(JsonWriter& json, const Problem& problem, std::string_view request_id) {
  const Kind& kind = kind_of(problem.type);
  json.object([&] {
    json.member("type", fmt::format("urn:argiope:problem:{}", kind.name));
    json.member("title", kind.title);
    json.member("status", status_of(problem));
    json.member("detail", problem.detail);
    if (!problem.places.empty()) {
      json.array("errors", [&] {
        for (const Problem::Place& place : problem.places) {
          json.object([&] {
            json.member(place.member, place.pointer);
            json.member("detail", place.detail);
          });
        }
      });
    }
    if (!request_id.empty()) json.member("request_id", request_id);
  });
}

ServerResponse answer(const Problem& problem, std::string_view request_id) {
  ServerResponse response;
  response.status = status_of(problem);
  JsonWriter json(response.body);
  write(json, problem, request_id);
  response.body += '\n';
  response.headers.emplace_back("Content-Type", "application/problem+json");
  if (response.status == 429 || response.status == 503) response.headers.emplace_back("Retry-After", "1");
  if (problem.type == ProblemType::unsupported_coding) response.headers.emplace_back("Accept-Encoding", "identity");
  if (response.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace argiope
