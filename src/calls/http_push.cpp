#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "argiope/async/event_loop.hpp"
#include "argiope/calls/calls.hpp"
#include "base/internal/printable.hpp"
#include "calls/http_call_form.hpp"
#include "web/http/internal/http_date.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/hmac.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostSecretBytes = 1024;
// How often a job is given back because the target has no time for it, before that counts as a failed attempt.
constexpr std::uint32_t kMostReleases = 20;

bool has_header(const HttpRequest& request, std::string_view name) {
  return std::ranges::any_of(request.headers, [&](const auto& field) { return equals_lower(field.first, name); });
}

HttpRequest request_for(const HttpPush& push, const JobContext& context, std::size_t most_kept, WallTime now) {
  HttpRequest request = push.call.request;
  const JobRecord& job = context.job();
  request.body = context.payload();
  request.body_limit = most_kept;
  if (!has_header(request, "content-type")) request.headers.emplace_back("Content-Type", "application/octet-stream");
  request.headers.emplace_back("Argiope-Job-Id", fmt::to_string(job.id));
  request.headers.emplace_back("Argiope-Job-Queue", percent_encode(job.queue));
  request.headers.emplace_back("Argiope-Job-Attempt", fmt::to_string(context.attempt()));
  request.headers.emplace_back("Argiope-Job-Token", fmt::to_string(context.token()));
  if (!job.name.empty()) request.headers.emplace_back("Argiope-Job-Name", percent_encode(job.name));
  if (!job.key.empty()) request.headers.emplace_back("Argiope-Job-Key", percent_encode(job.key));
  if (!push.secret.empty()) {
    request.headers.emplace_back("Argiope-Signature", sign_push(push.secret, now, job.id, request.body));
  }
  return request;
}

bool is_worth_another_try(int status) { return status == 408 || status == 425 || status == 429 || status >= 500; }

// Settles the job by an answer that is no success.
[[noreturn]] void fail_by(const HttpResponse& response, std::string why, WallTime now, const JobRecord& job) {
  if (!response.body.empty()) why += ": " + printable(response.body, kMostQuoted);
  if (!is_worth_another_try(response.status)) throw BuryJob(why);
  const auto wait = parse_retry_after(response.headers.retry_after, now);
  if (wait && (response.status == 429 || response.status == 503) && job.tally.releases < kMostReleases)
    throw SnoozeJob(*wait);
  if (wait) throw RetryJob(why, *wait);
  throw std::runtime_error(why);
}

struct PushTarget {
  HttpPush push;
  std::size_t most_kept;
};

// Paths and queries of webhooks are secrets, and errors are read by many.
std::string shown_address(const HttpRequest& request) {
  return fmt::format("{} {}", to_string(request.method), request.url.site_key());
}

// The body as it is kept. A body that is longer than may be kept says so.
std::string kept_body(HttpResponse& response, std::size_t most_kept) {
  std::string body = std::move(response.body);
  if (response.truncated) body += fmt::format("\n[cut: only the first {} bytes of the answer are kept]", most_kept);
  return body;
}

Coro<void> run_push(JobContext& context, HttpTransport& transport, std::shared_ptr<PushTarget> target) {
  const Clock& clock = EventLoop::current().clock();
  const HttpRequest request = request_for(target->push, context, target->most_kept, clock.wall_now());
  HttpResponse response;
  const auto sent = co_await transport.send(request, response);
  const std::string what = shown_address(request);
  if (!sent) {
    const std::string why = fmt::format("{}: {}", what, sent.error().message);
    // The configuration's trouble, and not this job's.
    if (sent.error().code == Errc::refused) throw WorkerUnfit(why);
    throw std::runtime_error(why);
  }
  if (response.status < 200 || response.status > 299) {
    fail_by(response, fmt::format("{}: status {}", what, response.status), clock.wall_now(), context.job());
  }
  // RFC 9112, 8: what has not come whole is no answer.
  if (!response.damage.empty()) throw std::runtime_error(fmt::format("{}: {}", what, response.damage));
  context.set_result(kept_body(response, target->most_kept));
}

}  // namespace

Result<HttpPush> parse_http_push(std::string_view json) {
  HttpPush push;
  auto call = detail::read_http_call(json, HttpMethod::post, [&](JsonMembers& in, HttpCall&) {
    if (const JsonValue* given = in.find("secret")) push.secret = given->text(1, kMostSecretBytes);
    push.allow_private = in.flag("allow_private", false);
  });
  if (!call) return std::unexpected(std::move(call.error()));
  push.call = *std::move(call);
  return push;
}

std::string sign_push(std::string_view secret, WallTime at, JobId id, std::string_view body) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(at.time_since_epoch()).count();
  const std::string text = fmt::format("{}.{}.{}", seconds, id, body);
  std::string hex;
  for (const std::uint8_t byte : hmac_sha256(secret, text)) fmt::format_to(std::back_inserter(hex), "{:02x}", byte);
  return fmt::format("t={},v1={}", seconds, hex);
}

JobFunction as_http_push(HttpTransport& transport, HttpPush push, HttpCallOptions options) {
  const auto target = std::make_shared<PushTarget>(PushTarget{std::move(push), options.most_kept});
  return [&transport, target](JobContext& context) { return run_push(context, transport, target); };
}

}  // namespace argiope
