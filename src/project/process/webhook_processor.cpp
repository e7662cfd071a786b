#include "project/process/internal/webhook_processor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/async/threads.hpp"
#include "argiope/calls/calls.hpp"
#include "base/internal/printable.hpp"
#include "project/process/bounded_log.hpp"
#include "project/process/internal/webhook_answer.hpp"
#include "web/http/internal/http_date.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostReadHere = 64 * 1024;  // of an answer: longer ones take a thread
constexpr Duration kLongestTime = std::chrono::hours{24};

// The line that tells a description from another: the logs before it may differ each time.
std::string_view last_line(std::string_view content) {
  content = content.substr(0, content.find_last_not_of(" \r\n") + 1);
  return content.substr(content.find_last_of('\n') + 1);
}

}  // namespace

// Requests under way may end after their owner.
class WebhookProcessor::Impl {
 public:
  Impl(EventLoop& loop, HttpTransport& transport, WebhookProcessorOptions options)
      : loop_(loop),
        transport_(transport),
        options_(std::move(options)),
        log_(loop_, options_.limits.log_bytes, options_.watch.log) {}

  static Coro<Result<ProcessorDescription>> describe(std::shared_ptr<Impl> self);
  static Coro<void> when_changed(std::shared_ptr<Impl> self);
  static Coro<VisitAnswer> process(std::shared_ptr<Impl> self, const PageCall& call);
  void close();
  std::size_t capacity() const noexcept { return concurrency_; }
  const std::string& trouble() const noexcept { return trouble_; }

 private:
  // The outcome of a POST: an answer with a status of success, or why there is none.
  struct Posted {
    std::optional<HttpResponse> response;
    ProcessorFailure failure;
  };
  // The room of a page among those under way.
  class Turn {
   public:
    explicit Turn(std::shared_ptr<Impl> of) : of_(std::move(of)) {}
    Turn(const Turn&) = delete;
    ~Turn() {
      --of_->under_way_;
      of_->give_turns();
    }

   private:
    const std::shared_ptr<Impl> of_;
  };

  static Coro<void> wait_for_turn(std::shared_ptr<Impl> self);
  void give_turns();
  static Coro<Posted> post(std::shared_ptr<Impl> self, std::string content, std::uint64_t id, Duration limit);
  HttpRequest request_for(std::string content, std::uint64_t id, Duration limit, const std::string& secret) const;
  Posted judge(Result<void> sent, HttpResponse response);
  Posted nobody_is_there(std::string why);
  Posted come_again(const HttpResponse& response);
  std::optional<ProcessorFailure> refusal() const;
  void set_trouble(std::string why);
  std::string describe_line() const {
    return write_describe(options_.project, options_.argiope, options_.use, options_.limits);
  }

  EventLoop& loop_;
  HttpTransport& transport_;
  const WebhookProcessorOptions options_;
  BoundedLog log_;
  std::string described_;               // the last description, as it came
  std::optional<std::string> refused_;  // why it is of no use
  std::size_t concurrency_ = 1;
  std::size_t under_way_ = 0;
  std::deque<Event*> waiting_;
  std::uint64_t next_id_ = 1;
  bool is_closed_ = false;

  std::string trouble_;
  Duration wait_{};  // of the last time that nobody was there; 0: somebody was
  TimePoint next_try_ = TimePoint::min();
  std::string resting_for_;  // why nothing is sent before that
};

WebhookProcessor::WebhookProcessor(EventLoop& loop, HttpTransport& transport, WebhookProcessorOptions options)
    : impl_(std::make_shared<Impl>(loop, transport, std::move(options))) {}
WebhookProcessor::~WebhookProcessor() { impl_->close(); }
Coro<Result<ProcessorDescription>> WebhookProcessor::describe() { return Impl::describe(impl_); }
Coro<void> WebhookProcessor::when_changed() { return Impl::when_changed(impl_); }
Coro<VisitAnswer> WebhookProcessor::process(const PageCall& call) { return Impl::process(impl_, call); }
std::size_t WebhookProcessor::capacity() const { return impl_->capacity(); }
const std::string& WebhookProcessor::trouble() const { return impl_->trouble(); }
Coro<void> WebhookProcessor::close() {
  impl_->close();
  co_return;
}

// --- describe

Coro<Result<ProcessorDescription>> WebhookProcessor::Impl::describe(std::shared_ptr<Impl> self) {
  if (self->next_try_ > self->loop_.time()) co_await sleep_until(self->next_try_);
  Posted posted = co_await post(self, self->describe_line(), 0, self->options_.describe_time);
  if (!posted.response) co_return fail(Errc::network, posted.failure.text);
  std::vector<PageLog> logs;
  auto message = read_describe_answer(posted.response->body, self->options_.limits, logs);
  for (PageLog& line : logs) self->log_.add(std::move(line));
  if (message) {
    for (PageLog& line : message->logs) self->log_.add(std::move(line));
  }
  self->described_ = last_line(posted.response->body);
  if (message && message->failure) {
    const ProcessorFailure& failure = *message->failure;
    if (!failure.trace.empty()) self->log_.add({"error", failure.trace});
    message = fail(Errc::invalid_input,
                   printable(failure.text, kMostQuoted) +
                       (failure.where.empty() ? "" : fmt::format(" ({})", printable(failure.where, kMostQuoted))));
  }
  if (!message) {
    self->refused_ = message.error().message;
    co_return std::unexpected(std::move(message.error()));
  }
  self->refused_.reset();
  self->concurrency_ = std::clamp<std::size_t>(message->description.concurrency, 1, kMostConcurrency);
  self->give_turns();
  co_return std::move(message->description);
}

Coro<void> WebhookProcessor::Impl::when_changed(std::shared_ptr<Impl> self) {
  while (true) {
    co_await sleep(self->options_.look_every);
    if (self->is_closed_ || self->next_try_ > self->loop_.time()) continue;
    const Posted posted = co_await post(self, self->describe_line(), 0, self->options_.describe_time);
    if (posted.response && last_line(posted.response->body) != self->described_) co_return;
  }
}

// --- pages

Coro<VisitAnswer> WebhookProcessor::Impl::process(std::shared_ptr<Impl> self, const PageCall& call) {
  VisitAnswer answer;
  if ((answer.failure = self->refusal())) co_return answer;
  co_await wait_for_turn(self);
  const Turn turn(self);
  if ((answer.failure = self->refusal())) co_return answer;
  const std::uint64_t id = self->next_id_++;
  Posted posted = co_await post(self, write_page(call, id) + call.response.body, id,
                                std::min(call.time_limit, kLongestTime) + self->options_.grace);
  if (!posted.response) {
    answer.failure = std::move(posted.failure);
    co_return answer;
  }
  OpenVisit visit(call.response.url, self->options_.limits);
  if (posted.response->body.size() <= kMostReadHere)
    co_return read_page_answer(posted.response->body, id, std::move(visit));
  // Its findings go back to this thread whole.
  const auto content = std::make_shared<const std::string>(std::move(posted.response->body));
  const auto open = std::make_shared<OpenVisit>(std::move(visit));
  co_return co_await to_thread([id, content, open] { return read_page_answer(*content, id, std::move(*open)); });
}

// First come, first served.
Coro<void> WebhookProcessor::Impl::wait_for_turn(std::shared_ptr<Impl> self) {
  if (self->waiting_.empty() && self->under_way_ < self->concurrency_) {
    ++self->under_way_;
    co_return;
  }
  Event mine;
  self->waiting_.push_back(&mine);
  try {
    co_await mine.wait();
  } catch (...) {
    if (mine.is_set()) {
      --self->under_way_;
      self->give_turns();
    } else {
      std::erase(self->waiting_, &mine);
    }
    throw;
  }
}

void WebhookProcessor::Impl::give_turns() {
  while (!waiting_.empty() && under_way_ < concurrency_) {
    ++under_way_;
    waiting_.front()->set();
    waiting_.pop_front();
  }
}

// Why a page is not sent now.
std::optional<ProcessorFailure> WebhookProcessor::Impl::refusal() const {
  if (is_closed_) return ProcessorFailure{.text = "the project is being stopped", .not_now = true};
  if (refused_) return ProcessorFailure{.text = *refused_, .delay = options_.longest_wait, .not_now = true};
  const TimePoint now = loop_.time();
  if (now >= next_try_) return std::nullopt;
  return ProcessorFailure{.text = resting_for_, .delay = next_try_ - now, .not_now = true};
}

// --- over HTTP

Coro<WebhookProcessor::Impl::Posted> WebhookProcessor::Impl::post(std::shared_ptr<Impl> self, std::string content,
                                                                  std::uint64_t id, Duration limit) {
  Result<std::string> secret;
  if (self->options_.secret) secret = self->options_.secret();
  if (!secret)
    co_return self->nobody_is_there(
        fmt::format("the processor's requests cannot be signed: {}", secret.error().message));
  const HttpRequest request = self->request_for(std::move(content), id, limit, *secret);
  HttpResponse response;
  const Result<void> sent = co_await self->transport_.send(request, response);
  co_return self->judge(sent, std::move(response));
}

HttpRequest WebhookProcessor::Impl::request_for(std::string content, std::uint64_t id, Duration limit,
                                                const std::string& secret) const {
  HttpRequest request;
  request.method = HttpMethod::post;
  request.url = options_.url;
  request.body = std::move(content);
  request.body_limit = options_.limits.line_bytes;
  request.timeout = limit;
  request.is_repeatable = true;  // a page that is read twice is what a crash of ours would give, too
  request.headers.emplace_back("Content-Type", "application/x-argiope-processor");
  request.headers.emplace_back("Accept", "application/x-argiope-processor");
  if (!secret.empty()) {
    request.headers.emplace_back("Argiope-Signature",
                                 sign_push(secret, loop_.clock().wall_now(), static_cast<JobId>(id), request.body));
  }
  return request;
}

WebhookProcessor::Impl::Posted WebhookProcessor::Impl::judge(Result<void> sent, HttpResponse response) {
  // Paths and queries of webhooks are secrets, and failures are read by many.
  const auto failed = [&](std::string_view kind, std::string_view why) {
    return Posted{.response = std::nullopt,
                  .failure = {.text = fmt::format("the processor: POST {}: {}", options_.url.site_key(), why),
                              .kind = std::string(kind)}};
  };
  if (!sent) {
    if (!response.connected)
      return nobody_is_there(fmt::format("the processor cannot be reached: {}", sent.error().message));
    return failed(sent.error().code == Errc::timeout ? "timeout" : "network", sent.error().message);
  }
  if (response.status == 429 || response.status == 503) return come_again(response);
  wait_ = Duration{};
  set_trouble({});
  if (response.status < 200 || response.status > 299) {
    return failed("status", fmt::format("status {}{}{}", response.status, response.body.empty() ? "" : ": ",
                                        printable(response.body, kMostQuoted)));
  }
  if (response.truncated)
    return failed("too_large", fmt::format("its answer has more than {} bytes", options_.limits.line_bytes));
  if (!response.damage.empty()) return failed("network", fmt::format("its answer is cut short: {}", response.damage));
  return {.response = std::move(response), .failure = {}};
}

// Of several that find it out together the first counts.
WebhookProcessor::Impl::Posted WebhookProcessor::Impl::nobody_is_there(std::string why) {
  const TimePoint now = loop_.time();
  if (now >= next_try_) {
    wait_ = wait_ == Duration{} ? options_.first_wait : std::min(2 * wait_, options_.longest_wait);
    next_try_ = saturating_add(now, wait_);
    resting_for_ = why;
    if (why != trouble_) log_.add({"error", why});
    set_trouble(std::move(why));
  }
  return {.response = std::nullopt, .failure = {.text = resting_for_, .delay = next_try_ - now, .not_now = true}};
}

// It is there, and has said when it has time.
WebhookProcessor::Impl::Posted WebhookProcessor::Impl::come_again(const HttpResponse& response) {
  const TimePoint now = loop_.time();
  const Duration rest =
      parse_retry_after(response.headers.retry_after, loop_.clock().wall_now()).value_or(options_.usual_rest);
  wait_ = Duration{};
  set_trouble({});
  if (const TimePoint until = saturating_add(now, rest); until > next_try_) {
    next_try_ = until;
    resting_for_ =
        fmt::format("the processor has no time now: POST {}: status {}", options_.url.site_key(), response.status);
  }
  return {.response = std::nullopt,
          .failure = {.text = resting_for_, .delay = std::max(next_try_ - now, Duration{}), .not_now = true}};
}

void WebhookProcessor::Impl::set_trouble(std::string why) {
  if (why == trouble_) return;
  trouble_ = std::move(why);
  if (options_.watch.trouble) options_.watch.trouble(trouble_);
}

void WebhookProcessor::Impl::close() {
  is_closed_ = true;
  log_.tell_dropped();
}

}  // namespace argiope
