// The API's answers when something is wrong: RFC 9457, with the types of docs/http-api.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/web/http_server.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope {

enum class ProblemType : std::uint8_t {
  invalid_input,
  unauthorized,
  forbidden,
  not_found,
  method_not_allowed,
  wrong_state,
  conflict,
  locked,
  too_slow,
  too_large,
  unsupported_media_type,
  unsupported_coding,
  idempotency_mismatch,
  queue_full,
  too_many,
  io,
  disk_full,
  busy,
  draining,
  internal,
  not_implemented,
};
// "queue_full", as in urn:argiope:problem:queue_full.
std::string_view to_string(ProblemType type) noexcept;
int status_of(ProblemType type) noexcept;

struct Problem {
  ProblemType type = ProblemType::internal;
  std::string detail;
  // A pointer into the request's JSON (RFC 6901), or the name of what `member` says; and what is wrong there.
  struct Place {
    std::string pointer;
    std::string detail;
    std::string_view member = "pointer";  // also "parameter" of the query, "header"
  };
  std::vector<Place> places;
  int status = 0;  // 0: that of the type
};

// One that is of no place in the request.
inline Problem problem(ProblemType type, std::string detail) {
  return {.type = type, .detail = std::move(detail), .places = {}};
}
// A server's answer with that status to a request that no handler has seen, or to one whose handler failed.
Problem problem_of_status(int status, std::string_view detail);
// The problem that an error of the book or the engine is. The reader of the request adds a place, where it is known.
Problem problem_of(const Error& error);
// The first thing that is wrong with a request's JSON; `within`: where in the request the text was that has these
// errors.
Problem problem_of(const JsonErrors& errors, const JsonPath& within = {});
// RFC 6901.
std::string pointer_to(const JsonPath& path);

// {"type","title","status","detail","errors"}, as one value: of a request, or of one of its parts. `request_id` is a
// member more where it is not empty.
void write(JsonWriter& json, const Problem& problem, std::string_view request_id = {});
// application/problem+json; with Retry-After where trying again helps, WWW-Authenticate where a token does, and
// Accept-Encoding where the body should have come without a coding.
ServerResponse answer(const Problem& problem, std::string_view request_id = {});

}  // namespace argiope
