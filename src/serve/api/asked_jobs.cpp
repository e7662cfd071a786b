#include "serve/api/asked_jobs.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/internal/printable.hpp"
#include "jobs/internal/job_rules.hpp"

namespace argiope {

void AskedJobs::reserve(std::size_t count) {
  jobs.reserve(count);
  places.reserve(count);
}

void AskedJobs::read(const JsonValue& value, RawJson& raw) {
  JsonErrors errors;
  JobNames named;
  NewJob job = read_new_job(value.telling(errors), now_, &named, raw);
  take(std::move(job), std::move(named), errors, false);
}

void AskedJobs::read_line(std::string_view line) {
  JsonErrors errors;
  const auto text = JsonText::parse(line);
  if (!text) {
    errors.add({}, {}, text.error().message);
    return take({}, {}, errors, true);
  }
  JobNames named;
  RawJson raw(line);
  NewJob job = read_new_job(text->root(errors), now_, &named, raw);
  take(std::move(job), std::move(named), errors, true);
}

void AskedJobs::take(NewJob job, JobNames names_of_it, const JsonErrors& errors, bool is_line) {
  const std::size_t place = count_++;
  if (errors) {
    wrong.emplace(place, problem_of(errors, is_line ? JsonPath{"jobs", place} : JsonPath{}));
    return;
  }
  if (auto why_not = caller_.why_not_put(job.queue, job.function)) {
    const std::string_view member = caller_.may_fill(job.queue) ? "function" : "queue";
    wrong.emplace(place, Problem{ProblemType::forbidden,
                                 *why_not,
                                 {{fmt::format("/jobs/{}/{}", place, member), "one that the token may use"}}});
    return;
  }
  job.within = reach_;
  waits_ += job.waits_for.size() + names_of_it.waits_for.size();
  if (!names_of_it.empty()) names.emplace(jobs.size(), std::move(names_of_it));
  jobs.push_back(std::move(job));
  places.push_back(place);
}

std::optional<Problem> problem_of_put(const Result<PutReply>& reply, std::string_view pointer) {
  if (!reply) return problem_of_job(reply.error(), pointer);
  if (reply->outcome != PutOutcome::taken) return std::nullopt;
  const std::string why = "a job of another has that id, and this one was not put";
  return Problem{ProblemType::conflict, why, {{fmt::format("{}/id", pointer), why}}};
}

Problem too_many_waits(std::string_view again, std::string_view pointer) {
  std::string why = fmt::format("the jobs of a request wait for at most {} others together (waits_for): {}",
                                kMostWaitsTogether, again);
  return {ProblemType::too_large, why, {{std::string(pointer), why}}};
}

std::string told_if_taken(const NewJob& job) {
  return job.id == 0 && job.name.empty() ? std::string() : job_rules::taken(job).message;
}

namespace {

// The member of the new job that the error is about. An error of other jobs that it names begins with that member.
std::string_view blamed_member(const Error& error) {
  for (const std::string_view member : {"/waits_for", "/batch"}) {
    const std::string_view name = member.substr(1);
    if (error.message.starts_with(name) && error.message.substr(name.size()).starts_with(':')) return member;
  }
  if (error.code == Errc::conflict) return "/id";
  if (error.code == Errc::too_large) return "/payload";
  return error.code == Errc::refused || error.code == Errc::not_found ? "/queue" : "";
}

}  // namespace

Problem problem_of_job(const Error& error, std::string_view pointer) {
  Problem problem = problem_of(error);
  const std::string_view member = blamed_member(error);
  if (problem.type != ProblemType::io) problem.places.push_back({fmt::format("{}{}", pointer, member), error.message});
  return problem;
}

}  // namespace argiope
