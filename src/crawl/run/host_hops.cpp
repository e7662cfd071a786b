#include "crawl/run/host_hops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "argiope/async/event_loop.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/web/http_client.hpp"
#include "crawl/hosts/internal/host_question.hpp"
#include "crawl/run/host_desk.hpp"

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

// A request by which one shard asks another. The asker waits for `answered`, an event of its own loop.
struct Crawler::Shard::HostHops::Hop {
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

// Sends the requests of one question: the first in the turn that the host has just got, the others in turns of their
// own.
class Crawler::Shard::HostHops::FileTransport final : public HttpTransport {
 public:
  FileTransport(HostHops& hops, Host& host, ExchangeKind kind, bool is_detour)
      : hops_(hops), host_(host), kind_(kind), is_first_(!is_detour) {}

  Coro<Result<void>> send(const HttpRequest& request, HttpResponse& response) override {
    if (std::exchange(is_first_, false)) co_return co_await hops_.desk_.ask_in_turn(host_, kind_, request, response);
    HostHops& owner = hops_.shared_.shards[hops_.shared_.shard_of(request.url)]->hops();
    if (&owner == &hops_) co_return co_await hops_.ask_as_hop(kind_, request, response, put_off);
    co_return co_await hops_.ask_by(owner, kind_, request, response, put_off);
  }

  Duration put_off{};  // more than zero: the last request was not sent, and may be after so long

 private:
  HostHops& hops_;
  Host& host_;
  const ExchangeKind kind_;
  bool is_first_;
};

Crawler::Shard::HostHops::HostHops(Core& core, HostDesk& desk) : Part(core), desk_(desk) {}

Coro<std::optional<Result<void>>> Crawler::Shard::HostHops::ask_for_file(Host& host, ExchangeKind kind,
                                                                         HttpRequest& request, HttpResponse& response) {
  const std::string question = request.url.href();
  request.timeout = desk_.patience_with(host);
  request.headers = host.policy->headers;
  desk_.prepare(request);
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
  const TimePoint now = loop().time();
  desk_.rest(host, saturating_add(now, transport.put_off), RestReason::elsewhere, now);
  co_return std::nullopt;
}

// Waits for the host's turn, as long as that may be soon.
Coro<Crawler::Shard::HostHops::HopTurn> Crawler::Shard::HostHops::await_hop_turn(Host& host) {
  const TimePoint limit = saturating_add(loop().time(), kHopPatience);
  const auto is_too_late = [&] { return std::max(host.rest_until, loop().time()) > limit; };
  const auto put_off = [&] {
    return HopTurn{.put_off = std::max<Duration>(host.rest_until - loop().time(), kHopPatience)};
  };
  while (host.has_hop) {
    if (is_too_late()) co_return put_off();
    co_await sleep(kHopPoll);
  }
  host.has_hop = true;
  Leaving ends([this, &host] {
    host.has_hop = false;
    if (std::exchange(host.holds_for_hop, false) && !host.asking) frontier_.let_go(host, loop().time());
  });
  // A page of the host that waits for the same moment goes first, so that neither holds up the other for ever.
  if (host.rest_until > loop().time()) {
    if (is_too_late()) co_return put_off();
    co_await sleep_until(host.rest_until);
    co_await sleep(kHopPoll);
  }
  host.holds_for_hop = true;
  frontier_.hold(host, loop().time());
  while (host.asked >= host.limits.concurrency || host.rest_until > loop().time()) {
    if (is_too_late()) co_return put_off();
    co_await sleep(kHopPoll);
  }
  co_return HopTurn{.place = std::move(ends)};
}

// A request of another host's question to one of this shard's.
Coro<Result<void>> Crawler::Shard::HostHops::ask_as_hop(ExchangeKind kind, const HttpRequest& request,
                                                        HttpResponse& response, Duration& put_off) {
  Host& host = frontier_.host_of(request.url);
  response.connected = false;
  ++host.pins;
  const Leaving unpins([&host] { --host.pins; });
  if (host.lost) co_return fail(host.lost->cause.code, fmt::format("{}: {}", host.site, host.lost->cause.message));
  const Duration rests = host.rest_until > loop().time() ? host.rest_until - loop().time() : Duration::zero();
  if (rests > kLongestHopRest) {
    co_return fail(Errc::busy, fmt::format("it redirects to {}, which rests for {}", host.site, format_roughly(rests)));
  }
  const HopTurn turn = co_await await_hop_turn(host);
  put_off = turn.put_off;
  if (!turn.place) co_return std::unexpected(not_yet());
  desk_.take_turn(host, loop().time());
  co_return co_await desk_.ask_in_turn(host, kind, request, response);
}

// --- between shards --------------------------------------------------------------------------------------------------

// Of another shard's host: that shard asks.
Coro<Result<void>> Crawler::Shard::HostHops::ask_by(HostHops& owner, ExchangeKind kind, const HttpRequest& request,
                                                    HttpResponse& response, Duration& put_off) {
  const auto hop = std::make_shared<Hop>(kind, request, loop());
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
bool Crawler::Shard::HostHops::post(std::shared_ptr<Hop> hop) {
  {
    std::lock_guard lock(mutex_);
    if (takes_no_hops_) return false;
    hops_.push_back(std::move(hop));
  }
  core_.shard.wake();
  return true;
}

void Crawler::Shard::HostHops::take_hops() {
  std::vector<std::shared_ptr<Hop>> hops;
  {
    std::lock_guard lock(mutex_);
    hops.swap(hops_);
  }
  for (auto& hop : hops) {
    served_hops_.push_front(loop().create_task(serve(hop), "hop"));
    served_hops_.front().add_done_callback([this, hop, place = served_hops_.begin()] {
      Hop::answer(hop);
      served_hops_.erase(place);
    });
  }
}

// A cancelled one leaves its answer as it is: not now.
Coro<void> Crawler::Shard::HostHops::serve(std::shared_ptr<Hop> hop) {
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

void Crawler::Shard::HostHops::refuse_hops() {
  std::vector<std::shared_ptr<Hop>> hops;
  {
    std::lock_guard lock(mutex_);
    takes_no_hops_ = true;
    hops.swap(hops_);
  }
  for (const auto& hop : hops) Hop::answer(hop);
  for (Task<void>& task : served_hops_) task.cancel();
}

}  // namespace argiope
