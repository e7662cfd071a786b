#include "argiope/calls/http_push.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "argiope/async/event_loop.hpp"
#include "base/internal/printable.hpp"
#include "calls/http_call_form.hpp"
#include "web/internal/ascii.hpp"
#include "web/internal/hmac.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostSecretBytes = 1024;
// How often a job is given back because the target has no time for it, before that counts as a failed attempt.
constexpr std::uint32_t kMostReleases = 100;

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

// The path of a webhook is often its secret, and errors are shown to whoever may read jobs.
std::string shown(const Url& url) {
  const std::string_view rest = url.path_and_query();
  return fmt::format("{}://{}/{}", url.scheme(), url.host_and_port(), rest.size() > 1 ? "…" : "");
}

// Settles the job by an answer that is no success.
[[noreturn]] void fail_by(const HttpResponse& response, std::string why, const JobRecord& job, WallTime now) {
  if (!response.body.empty()) why += ": " + printable(response.body, kMostQuoted);
  if (!is_worth_another_try(response.status)) throw BuryJob(why);
  const auto wait = detail::wait_asked_for(response, now);
  const bool has_no_time = response.status == 429 || response.status == 503;
  if (wait && has_no_time && job.tally.releases < kMostReleases) throw SnoozeJob(*wait);
  if (wait) throw RetryJob(why, *wait);
  throw std::runtime_error(why);
}

Coro<void> run_push(JobContext& context, HttpTransport& transport, std::shared_ptr<const HttpPush> push,
                    std::size_t most_kept) {
  const Clock& clock = EventLoop::current().clock();
  const HttpRequest request = request_for(*push, context, most_kept, clock.wall_now());
  HttpResponse response;
  const auto sent = co_await transport.send(request, response);
  const std::string what = fmt::format("{} {}", to_string(request.method), shown(request.url));
  if (!sent) {
    const std::string why = fmt::format("{}: {}", what, sent.error().message);
    // An address that may not be asked is trouble of the configuration: its jobs wait until that is mended.
    if (sent.error().code == Errc::refused) throw WorkerUnfit(why);
    throw std::runtime_error(why);
  }
  if (response.status < 200 || response.status > 299) {
    fail_by(response, fmt::format("{}: status {}", what, response.status), context.job(), clock.wall_now());
  }
  if (!response.damage.empty()) throw std::runtime_error(fmt::format("{}: status {}, but {}", what, response.status, response.damage));
  if (response.truncated) response.body += fmt::format("\n[cut: the answer has more than {} bytes]", most_kept);
  context.set_result(std::move(response.body));
}

}  // namespace

Result<HttpPush> parse_http_push(std::string_view json) {
  std::string secret;
  auto call = detail::read_http_call(json, HttpMethod::post, [&](JsonMembers& in, HttpCall&) {
    if (const JsonValue* given = in.find("secret")) secret = given->text(1, kMostSecretBytes);
  });
  if (!call) return std::unexpected(std::move(call.error()));
  return HttpPush{.call = *std::move(call), .secret = std::move(secret)};
}

std::string sign_push(std::string_view secret, WallTime at, JobId id, std::string_view body) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(at.time_since_epoch()).count();
  const std::string text = fmt::format("{}.{}.{}", seconds, id, body);
  std::string hex;
  for (const std::uint8_t byte : hmac_sha256(secret, text)) fmt::format_to(std::back_inserter(hex), "{:02x}", byte);
  return fmt::format("t={},v1={}", seconds, hex);
}

JobFunction as_http_push(HttpTransport& transport, HttpPush push, HttpCallOptions options) {
  return [&transport, shared = std::make_shared<const HttpPush>(std::move(push)), most_kept = options.most_kept](
             JobContext& context) { return run_push(context, transport, shared, most_kept); };
}

}  // namespace argiope
