// Sinks that POST their batches.
#include <fmt/format.h>

#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/calls/calls.hpp"
#include "argiope/web/http_client.hpp"
#include "base/internal/printable.hpp"
#include "project/results/result_sink.hpp"
#include "web/http/internal/http_date.hpp"

namespace argiope {
namespace {

constexpr Duration kUsualWebhookTime = std::chrono::seconds{30};
constexpr std::size_t kMostAnswerBytes = 4096;

class WebhookSink final : public ResultSink {
 public:
  explicit WebhookSink(std::shared_ptr<SinkContext> context) : context_(std::move(context)) {}

  Coro<SinkResult<std::string>> deliver(const SinkBatch& batch) override {
    HttpTransport* const transport = context_->means.transport;
    if (transport == nullptr) co_return sink_trouble("nothing is sent over the network here");
    const auto secret = context_->secret();
    if (!secret) co_return sink_trouble(secret.error());
    auto url = Url::parse(context_->sink.target);
    if (!url) co_return sink_trouble(url.error());
    const Clock& clock = EventLoop::current().clock();
    const HttpRequest request = request_for(*std::move(url), batch, *secret, clock.wall_now());
    HttpResponse response;
    const auto sent = co_await transport->send(request, response);
    // Paths and queries of webhooks are secrets, and troubles are read by many.
    const std::string address = fmt::format("POST {}", request.url.site_key());
    if (!sent) co_return sink_trouble(fmt::format("{}: {}", address, sent.error().message));
    if (response.status >= 200 && response.status <= 299) co_return SinkResult<std::string>{""};
    SinkTrouble trouble{fmt::format("{}: status {}", address, response.status)};
    if (!response.body.empty()) trouble.text += ": " + printable(response.body, kMostQuoted);
    if (response.status == 429 || response.status == 503) {
      trouble.wait = parse_retry_after(response.headers.retry_after, clock.wall_now());
    }
    co_return std::unexpected(std::move(trouble));
  }

 private:
  HttpRequest request_for(Url url, const SinkBatch& batch, const std::string& secret, WallTime now) const {
    HttpRequest request;
    request.method = HttpMethod::post;
    if (const std::string authorization = take_credentials(url); !authorization.empty()) {
      request.headers.emplace_back("Authorization", authorization);
    }
    request.url = std::move(url);
    request.body = events_as_lines(context_->project, batch);
    request.body_limit = kMostAnswerBytes;
    request.timeout = context_->sink.time_limit.value_or(kUsualWebhookTime);
    request.is_repeatable = true;  // receivers tell a repetition by its numbers
    request.headers.emplace_back("Content-Type", "application/x-ndjson");
    request.headers.emplace_back("Argiope-Project", percent_encode(context_->project));
    request.headers.emplace_back("Argiope-Sink", percent_encode(context_->sink.name));
    request.headers.emplace_back("Argiope-First-Number", fmt::to_string(batch.first()));
    request.headers.emplace_back("Argiope-Last-Number", fmt::to_string(batch.last()));
    if (!secret.empty()) {
      request.headers.emplace_back("Argiope-Signature",
                                   sign_push(secret, now, static_cast<JobId>(batch.last()), request.body));
    }
    return request;
  }

  const std::shared_ptr<SinkContext> context_;
};

}  // namespace

std::shared_ptr<ResultSink> make_webhook_sink(std::shared_ptr<SinkContext> context) {
  return std::make_shared<WebhookSink>(std::move(context));
}

}  // namespace argiope
