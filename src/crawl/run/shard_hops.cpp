// Where files that any host may have are redirected to: each such request is in the turn of the host that it goes to, which may be
// another shard's.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <list>

#include "argiope/async/sleep.hpp"
#include "argiope/base/duration.hpp"
#include "argiope/web/http_client.hpp"
#include "crawl/hosts/internal/host_question.hpp"
#include "crawl/run/shard.hpp"

namespace argiope {
namespace {

constexpr int kFileRedirects = kRobotsRedirects;  // sitemaps at usual places are asked for like robots.txt
// So long a question waits for a turn elsewhere while it holds a connection of the shard's; then its host rests.
constexpr Duration kHopPatience = std::chrono::seconds{2};
constexpr Duration kHopPoll = std::chrono::milliseconds{10};
// A file on a host that rests for longer is one that cannot be had.
constexpr Duration kLongestHopRest = std::chrono::minutes{10};

Error not_yet() { return {Errc::busy, "the host that it redirects to may not be asked yet"}; }

}  // namespace

// What one shard asks another for. The asker waits for `answered`, an event of its own loop.
struct Crawler::Shard::Hop {
  Hop(ExchangeKind its_kind, HttpRequest its_request, EventLoop& its_asker)
      : kind(its_kind), request(std::move(its_request)), asker(&its_asker) {}

  const ExchangeKind kind;
  const HttpRequest request;
  HttpResponse response;
  Result<void> sent = std::unexpected(not_yet());
  Duration put_off = kHopPatience;
  Event answered;

  std::mutex mutex;
  EventLoop* asker;  // null: it waits no more

  static void answer(const std::shared_ptr<Hop>& hop) {
    std::lock_guard lock(hop->mutex);
    if (hop->asker == nullptr) return;
    hop->asker->call_soon_threadsafe([hop] { hop->answered.set(); });
  }
};

// Sends the requests of one question: the first in the turn that the host has just got, the others in turns of their own.
class Crawler::Shard::FileTransport final : public HttpTransport {
 public:
  FileTransport(Shard& shard, Host& host, ExchangeKind kind, bool is_detour)
      : shard_(shard), host_(host), kind_(kind), is_first_(!is_detour) {}

  Coro<Result<void>> send(const HttpRequest& request, HttpResponse& response) override {
    if (std::exchange(is_first_, false)) co_return co_await shard_.ask_in_turn(host_, kind_, request, response);
    Shard& owner = *shard_.shared_.shards[shard_.shared_.shard_of(request.url)];
    if (&owner == &shard_) co_return co_await shard_.ask_as_hop(kind_, request, response, put_off);
    co_return co_await shard_.ask_by(owner, kind_, request, response, put_off);
  }

  Duration put_off{};  // more than zero: the last request was not sent, and may be after so long

 private:
  Shard& shard_;
  Host& host_;
  const ExchangeKind kind_;
  bool is_first_;
};

// Asks the host for a file that any host may have, and follows redirects. nullopt: nothing is known yet; the question is asked once
// more, and goes on where it has come to.
Coro<std::optional<Result<void>>> Crawler::Shard::ask_for_file(Host& host, ExchangeKind kind, HttpRequest& request,
                                                               HttpResponse& response) {
  const std::string question = request.url.href();
  request.timeout = patience_with(host);
  request.headers = host.policy->headers;
  prepare(request);
  int hops = 0;
  const auto detour = std::exchange(host.detour, nullptr);
  const bool goes_on = detour != nullptr && detour->question == question;
  if (goes_on) {
    request.url = detour->next;
    request.headers.clear();
    hops = detour->hops;
  }
  FileTransport transport(*this, host, kind, goes_on);
  const auto after_each = [&] {
    ++hops;
    request.headers.clear();  // where it redirects to is another place
  };
  const Result<void> sent =
      co_await send_following_redirects(transport, request, response, kFileRedirects - hops, after_each);
  if (!sent && shared_.ending.is_quota_used_up()) co_return std::nullopt;
  if (transport.put_off == Duration::zero()) co_return sent;
  host.detour = std::make_unique<Host::Detour>(Host::Detour{question, request.url, hops});
  const TimePoint now = loop_->time();
  rest(host, saturating_add(now, transport.put_off), RestReason::elsewhere, now);
  co_return std::nullopt;
}

// The host's turn has come.
Coro<Result<void>> Crawler::Shard::ask_in_turn(Host& host, ExchangeKind kind, const HttpRequest& request, HttpResponse& response) {
  Result<void> sent = co_await send(host, request, response);
  const TimePoint now = loop_->time();
  if (response.connected) count_bytes(response);
  if (sent) show(kind, request, response);
  be_polite(host, response.sent_at, now);
  if (sent) heed_retry_after(host, response, now);
  co_return sent;
}

// Waits for the host's turn, as long as that may be soon.
Coro<Crawler::Shard::HopTurn> Crawler::Shard::await_hop_turn(Host& host) {
  const TimePoint limit = saturating_add(loop_->time(), kHopPatience);
  const auto is_too_late = [&] { return std::max(host.rest_until, loop_->time()) > limit; };
  const auto put_off = [&] { return HopTurn{.put_off = std::max<Duration>(host.rest_until - loop_->time(), kHopPatience)}; };
  while (host.has_hop) {
    if (is_too_late()) co_return put_off();
    co_await sleep(kHopPoll);
  }
  host.has_hop = true;
  Leaving ends([this, &host] {
    host.has_hop = false;
    if (std::exchange(host.holds_for_hop, false) && !host.asking) frontier_.let_go(host, loop_->time());
  });
  // A page of the host that waits for the same moment goes first, so that neither holds up the other for ever.
  if (host.rest_until > loop_->time()) {
    if (is_too_late()) co_return put_off();
    co_await sleep_until(host.rest_until);
    co_await sleep(kHopPoll);
  }
  host.holds_for_hop = true;
  frontier_.hold(host, loop_->time());
  while (host.asked >= host.limits.concurrency || host.rest_until > loop_->time()) {
    if (is_too_late()) co_return put_off();
    co_await sleep(kHopPoll);
  }
  co_return HopTurn{.place = std::move(ends)};
}

// A request of another host's question to one of this shard's.
Coro<Result<void>> Crawler::Shard::ask_as_hop(ExchangeKind kind, const HttpRequest& request, HttpResponse& response,
                                              Duration& put_off) {
  Host& host = frontier_.host_of(request.url);
  response.connected = false;
  ++host.pins;
  const Leaving unpins([&host] { --host.pins; });
  if (host.lost) co_return fail(host.lost->cause.code, fmt::format("{}: {}", host.site, host.lost->cause.message));
  const Duration rests = host.rest_until > loop_->time() ? host.rest_until - loop_->time() : Duration::zero();
  if (rests > kLongestHopRest) {
    co_return fail(Errc::busy, fmt::format("it redirects to {}, which rests for {}", host.site, format_roughly(rests)));
  }
  const HopTurn turn = co_await await_hop_turn(host);
  put_off = turn.put_off;
  if (!turn.place) co_return std::unexpected(not_yet());
  take_turn(host, loop_->time());
  co_return co_await ask_in_turn(host, kind, request, response);
}

// --- between shards --------------------------------------------------------------------------------------------------

// Of another shard's host: that shard asks.
Coro<Result<void>> Crawler::Shard::ask_by(Shard& owner, ExchangeKind kind, const HttpRequest& request, HttpResponse& response,
                                          Duration& put_off) {
  const auto hop = std::make_shared<Hop>(kind, request, *loop_);
  const Leaving waits_no_more([&hop] {
    std::lock_guard lock(hop->mutex);
    hop->asker = nullptr;
  });
  response.connected = false;
  if (owner.post(hop)) co_await hop->answered.wait();
  put_off = hop->put_off;
  response = std::move(hop->response);
  co_return std::move(hop->sent);
}

// False: it asks nobody any more.
bool Crawler::Shard::post(std::shared_ptr<Hop> hop) {
  {
    std::lock_guard lock(inbox_mutex_);
    if (takes_no_hops_) return false;
    hops_.push_back(std::move(hop));
  }
  wake();
  return true;
}

void Crawler::Shard::take_hops() {
  std::vector<std::shared_ptr<Hop>> hops;
  {
    std::lock_guard lock(inbox_mutex_);
    hops.swap(hops_);
  }
  for (auto& hop : hops) {
    served_hops_.push_front(loop_->create_task(serve(hop), "hop"));
    served_hops_.front().add_done_callback([this, hop, place = served_hops_.begin()] {
      Hop::answer(hop);
      served_hops_.erase(place);
    });
  }
}

// A cancelled one leaves its answer as it is: not now.
Coro<void> Crawler::Shard::serve(std::shared_ptr<Hop> hop) {
  Duration put_off{};
  Result<void> sent;
  try {
    sent = co_await ask_as_hop(hop->kind, hop->request, hop->response, put_off);
  } catch (const CancelledError&) {
    throw;
  } catch (const std::exception& error) {
    sent = fail(Errc::internal, error.what());
  }
  hop->sent = std::move(sent);
  hop->put_off = put_off;
}

// Those that ask wait for no answer any more.
void Crawler::Shard::refuse_hops() {
  std::vector<std::shared_ptr<Hop>> hops;
  {
    std::lock_guard lock(inbox_mutex_);
    takes_no_hops_ = true;
    hops.swap(hops_);
  }
  for (const auto& hop : hops) Hop::answer(hop);
  for (Task<void>& task : served_hops_) task.cancel();
}

}  // namespace argiope
