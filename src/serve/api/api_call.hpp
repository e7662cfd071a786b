// ApiCall: one request of the API, as its handler sees it: who asks, what the body and the query say, and what is wrong
// with them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/async/sync.hpp"
#include "argiope/base/error.hpp"
#include "argiope/jobs/detail/requests.hpp"
#include "argiope/web/http_server.hpp"
#include "base/internal/json_members.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "serve/base/problem.hpp"
#include "serve/gate/gate.hpp"

namespace argiope {

// A handler returns its answer, or an error: `co_return call.refuse(…)` where the problem is the API's own, or knows
// more than an Error of the engine does, and co_await or_return(…) passes the engine's errors on as they are.
//
// Lifetime: as the request.
class ApiCall {
 public:
  ApiCall(ServerRequest& of, Caller who) : request(of), caller(std::move(who)) {}
  ApiCall(const ApiCall&) = delete;

  ServerRequest& request;
  const Caller caller;
  // Whether the request has taken its Idempotency-Key, once it is answered: one that has done nothing leaves it free.
  bool takes_key = true;

  // --- refusing. The first problem is what is answered, whatever error is returned with it
  std::unexpected<Error> refuse(Problem problem);
  std::unexpected<Error> refuse(ProblemType type, std::string detail) {
    return refuse(problem(type, std::move(detail)));
  }
  // Of an error that says that the job's, queue's or schedule's state does not allow it.
  std::unexpected<Error> refuse_as(ProblemType type, const Error& error) { return refuse(type, error.message); }
  // The answer to `error`, which the handler has returned.
  Problem problem_for(const Error& error) const { return problem_ ? *problem_ : problem_of(error); }

  // Whether the caller may see the queue, schedule or project of that name, or, where the request changes something,
  // change it: forbidden.
  Result<void> check_use(std::string_view name);
  bool may_reach(std::string_view name) const noexcept;
  // Whether jobs of a queue of any name are within its reach.
  bool reaches_all() const noexcept;
  // Whether it may put a job of that queue and function: forbidden.
  Result<void> check_put(std::string_view queue, std::string_view function);
  // Whether the caller is bound to no queues, as it takes to see what is of all of them: forbidden.
  Result<void> check_unbound(std::string_view what);
  // The id or name that the part {part} of the path says. The text behind "=" is taken as it is, so that names can be
  // said that a path has other uses for: "..", "change", and those that begin with "=" themselves.
  std::string_view id_or_name(std::string_view part) const;
  // The queue or schedule that the part {part} of the path names, if the caller may use it.
  Result<std::string> name_in_path(std::string_view part);

  // Refuses a parameter of the query, and says why.
  std::unexpected<Error> refuse_parameter(std::string_view name, const std::string& why);

  // The request's Idempotency-Key, the caller's own, with what tells this request from another under it; nullopt: it
  // has none.
  Result<std::optional<RequestKey>> request_key();
  // Whether what has been done once was this request: idempotency_mismatch.
  Result<void> check(Repetition how);

  // --- the body
  // The request's one JSON object; of an empty body one without members. May be asked for once.
  // Errors: what is no JSON, or no object, or has more than kMostBodyValues; a member that is there twice, but in what
  //         people keep here for themselves (payloads) and in lists whose entries are refused one by one; a
  //         Content-Type that is not JSON's. None at all, and the one that curl -d sends, are taken for JSON.
  Result<JsonValue> object();
  // Reads the text of a body that object() would take, so that object() has nothing to do any more; of others nothing.
  // The problems of that text are told by object().
  void parse();
  // Of a request that has nothing to say in its body: no member.
  Result<void> no_members();
  // Whether the body is as it was sent: a Content-Encoding is not undone here.
  Result<void> check_coding();
  // The error of the members that have been read, if there is one.
  Result<void> checked();
  // The same, and no more is read: what object() gave is gone, and its memory is there for the next request, with the
  // turn that was kept for it. A handler calls it before it waits for anything.
  Result<void> read_all();
  // Keeps a turn to have parsed text in memory until read_all(), or its own end; none where there is no text.
  void keep_while_parsed(Semaphore::Permit turn) {
    if (text_) turn_.emplace(std::move(turn));
  }
  JsonErrors& errors() noexcept { return errors_; }
  bool has_body() const noexcept { return !request.body.empty(); }

 private:
  Result<std::optional<RequestKey>> read_key();
  bool has_json() const;
  Result<JsonValue> read_object();

  std::optional<Problem> problem_;
  std::optional<std::optional<RequestKey>> key_;
  std::optional<Semaphore::Permit> turn_;  // of the text
  std::optional<JsonText> text_;
  std::optional<Result<JsonValue>> parsed_;
  std::optional<Problem> wrong_body_;
  JsonErrors errors_;
};

// How many values the JSON of a request may have: those of parsed text take many times its room, and time of the loop.
inline constexpr std::size_t kMostBodyValues = 2'000'000;
Problem too_many_values();

// A whole number as it is written here: no sign, no zero before it. So each has one spelling, as ids have. nullopt:
// anything else.
std::optional<std::uint64_t> plain_number(std::string_view text) noexcept;

// "application/json" of "Application/JSON; charset=utf-8".
std::string media_type(const ServerRequest& request);

// The parameters of a query, each asked for by its name; what is wrong, unknown or there twice is told by finish().
class ApiQuery {
 public:
  // Of the request's; `of` outlives it.
  explicit ApiQuery(ApiCall& of);

  std::optional<std::string> text(std::string_view name);
  // `usual` where it is missing.
  std::uint64_t whole(std::string_view name, std::uint64_t least, std::uint64_t most, std::uint64_t usual);
  // "1", "true", or nothing behind the name; "0", "false".
  bool flag(std::string_view name, bool usual = false);
  // The place of the value among `words`.
  std::optional<std::size_t> one_of(std::string_view name, std::initializer_list<std::string_view> words);
  // Its value is none that the parameter may have. The first that is wrong counts.
  void refuse(std::string_view name, std::string_view value, std::string_view why);
  // Errors: what was wrong; a parameter that nobody has asked for.
  Result<void> finish();

 private:
  struct Parameter {
    std::string name;
    std::string value;
    bool asked = false;
  };

  ApiCall& of_;
  std::vector<Parameter> parameters_;
  std::optional<Error> error_;
};

// 200 with what `body(JsonWriter&)` writes as the members of an object.
template <class Body>
ServerResponse json_answer(Body&& body, int status = 200) {
  std::string text = json_object(std::forward<Body>(body));
  text += '\n';
  return ServerResponse::json(status, std::move(text));
}
// The output of a job, as it is: text, or bytes where it is not UTF-8. No browser takes it for a page.
ServerResponse answer_with_output(std::string output);
inline ServerResponse no_content() { return ServerResponse{.status = 204}; }

}  // namespace argiope
