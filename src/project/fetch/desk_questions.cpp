// What a HostDesk asks hosts itself: robots.txt, probes and addresses, each in a task.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "argiope/web/http_client.hpp"
#include "project/fetch/host_desk_impl.hpp"
#include "web/http/internal/http_date.hpp"

namespace argiope {
namespace {

constexpr Duration kAddressLifetime = std::chrono::hours{24};
constexpr Duration kPatienceElsewhere = std::chrono::seconds{10};  // for the turn of a host to which robots.txt leads
constexpr Duration kRestAfterBug = std::chrono::minutes{1};

}  // namespace

void HostDesk::Impl::begin_question(DeskHost& host) {
  const DeskLanes::Lane lane =
      host.health.is_slow() || host.losses > 0 ? DeskLanes::Lane::slow : DeskLanes::Lane::fresh;
  if (!lanes_.enter(lane, host)) {
    host.question = DeskHost::Question::queued;
    return;
  }
  host.question = DeskHost::Question::under_way;
  host.asked = true;
  no_questions_.clear();
  Task<void> task = loop_.create_task(question(host), "question");
  task.add_done_callback([this, number = host.number, lane, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) end_question(number, lane);
  });
  questions_.insert_or_assign(host.number, std::move(task));
}

void HostDesk::Impl::end_question(std::uint32_t number, DeskLanes::Lane lane) {
  DeskHost& host = *records_.at(number);
  host.question = DeskHost::Question::none;
  host.asked = false;
  questions_.erase(number);
  if (questions_.empty()) no_questions_.set();
  lanes_.leave(lane);
  if (!closing_) {
    lanes_.wake([this](DeskHost& next) {
      next.question = DeskHost::Question::none;
      begin_question(next);
    });
  }
  review(host);
}

Coro<void> HostDesk::Impl::question(DeskHost& host) {
  try {
    if (resolver_ != nullptr && loop_.time() >= host.address_until) co_await find_address(host);
    if (host.wants_robots) {
      co_await fetch_robots(host);
    } else if (host.health.suspected()) {
      co_await probe(host);
    }
  } catch (const CancelledError&) {
    throw;
  } catch (const std::exception& error) {
    spdlog::error("{}: asking it failed: {}", notes_.site(host.number), error.what());
    rest(host, saturating_add(loop_.time(), kRestAfterBug));
  }
}

Coro<void> HostDesk::Impl::find_address(DeskHost& host) {
  const auto url = url_at(host, "/");
  auto addresses = co_await resolver_->resolve(url.host());
  // The request will say what is wrong with the name.
  host.address.reset();
  if (addresses) host.address = addresses->front();
  host.address_until = saturating_add(loop_.time(), addresses ? kAddressLifetime : kFirstLossRest);
}

class HostDesk::Impl::AtAddress {
 public:
  AtAddress(Impl& desk, std::optional<IpAddress> address) : desk_(desk), alive_(desk.alive_), address_(address) {}
  AtAddress(const AtAddress&) = delete;
  AtAddress& operator=(const AtAddress&) = delete;
  ~AtAddress() {
    if (is_inside_ && !alive_.expired()) desk_.gate_.leave(*address_);
  }
  Coro<void> enter() {
    while (address_ && !is_inside_) {
      const auto called = std::make_shared<Event>();
      is_inside_ = desk_.gate_.enter(*address_, [waiting = std::weak_ptr(called)] {
        const auto event = waiting.lock();
        if (event) event->set();
        return event != nullptr;
      });
      if (is_inside_) co_return;
      try {
        co_await called->wait();
      } catch (...) {
        if (called->is_set() && !alive_.expired()) desk_.gate_.wake(*address_);
        throw;
      }
    }
  }

 private:
  Impl& desk_;
  const std::weak_ptr<const bool> alive_;
  const std::optional<IpAddress> address_;
  bool is_inside_ = false;
};

// For several requests of one question: the first in the turn that the host has got, each redirect in one of the host
// that it leads to.
class HostDesk::Impl::PoliteTransport final : public HttpTransport {
 public:
  PoliteTransport(HostDesk::Impl& desk, DeskHost& host) : desk_(desk), host_(host) {}
  Coro<Result<void>> send(const HttpRequest& request, HttpResponse& response) override {
    if (std::exchange(is_first_, false)) {
      const Result<void> sent = co_await desk_.transport_.send(request, response);
      be_polite(host_, response.sent_at, desk_.loop_.time());
      host_.asked = false;
      desk_.review(host_);
      co_return sent;
    }
    response.connected = false;
    if (!desk_.number_of) co_return fail(Errc::refused, fmt::format("{}: it redirects there", request.url.site_key()));
    const std::uint32_t number = desk_.number_of(request.url);
    DeskHost& host = desk_.record_of(number, request.url);
    if (auto entered = co_await desk_.enter_for_robots(host, saturating_add(desk_.loop_.time(), kPatienceElsewhere));
        !entered) {
      co_return entered;
    }
    InHop place(desk_, host);
    AtAddress at_address(desk_, shared_address(host));
    co_await at_address.enter();
    const Result<void> sent = co_await desk_.transport_.send(request, response);
    place.answered(sent, response);
    co_return sent;
  }

 private:
  // Leaves the host, however that comes.
  class InHop {
   public:
    InHop(HostDesk::Impl& desk, DeskHost& host) : desk_(desk), host_(host), alive_(desk.alive_) {}
    InHop(const InHop&) = delete;
    InHop& operator=(const InHop&) = delete;
    ~InHop() {
      if (alive_.expired()) return;
      --host_.under_way;
      desk_.review(host_);
    }
    void answered(const Result<void>& sent, const HttpResponse& response) {
      const TimePoint now = desk_.loop_.time();
      be_polite(host_, response.sent_at, now);
      if (!sent || !is_temporary(response.status)) return;
      const auto wait = parse_retry_after(response.headers.retry_after, desk_.loop_.clock().wall_now());
      if (wait) rest(host_, saturating_add(now, *wait));
    }

   private:
    HostDesk::Impl& desk_;
    DeskHost& host_;
    const std::weak_ptr<const bool> alive_;
  };

  HostDesk::Impl& desk_;
  DeskHost& host_;
  bool is_first_ = true;
};

Coro<void> HostDesk::Impl::probe(DeskHost& host) {
  AtAddress place(*this, shared_address(host));
  co_await place.enter();
  HttpRequest request;
  request.method = HttpMethod::head;
  request.url = url_at(host, "/");
  request.timeout = patience_with(host);
  prepare(host, request);
  HttpResponse response;
  host.rate.take(loop_.time());
  const Result<void> sent = co_await transport_.send(request, response);
  const TimePoint now = loop_.time();
  be_polite(host, response.sent_at, now);
  if (sent || says_something(sent.error(), response)) {
    probe_answered(host, now);
  } else {
    question_failed(host, sent.error(), request.timeout, now);
  }
}

Coro<void> HostDesk::Impl::fetch_robots(DeskHost& host) {
  AtAddress place(*this, shared_address(host));
  co_await place.enter();
  HttpRequest request;
  request.url = url_at(host, "/robots.txt");
  request.body_limit = kRobotsBytes;
  request.timeout = patience_with(host);
  prepare(host, request);
  HttpResponse response;
  host.rate.take(loop_.time());
  PoliteTransport polite(*this, host);
  const Result<void> sent = co_await send_following_redirects(polite, request, response, kRobotsRedirects, [&request] {
    request.headers.clear();  // where it redirects to is another place
  });
  const TimePoint now = loop_.time();
  RobotsAnswer answer =
      judge_robots(sent, response, host.robots_attempts, host.policy->product_token, loop_.clock().wall_now());
  if (answer.kind == RobotsAnswer::Kind::failed)
    co_return question_failed(host, std::move(answer.error), request.timeout, now);
  if (answer.kind == RobotsAnswer::Kind::challenged) ++host.robots_attempts;
  probe_answered(host, now);
  if (answer.kind == RobotsAnswer::Kind::challenged || host.lost) co_return;
  if (answer.kind == RobotsAnswer::Kind::refused) co_return robots_refused(host, std::move(answer), now);
  take_robots(host, std::move(answer), response.sent_at, now);
}

void HostDesk::Impl::take_robots(DeskHost& host, RobotsAnswer answer, TimePoint sent_at, TimePoint now) {
  const Duration delay = answer.crawl_delay(notes_.site(host.number), options_.max_crawl_delay);
  host.robots = answer.take_rules();
  // A file that is read again may have lost its delay.
  if (options_.heed_crawl_delay && delay != host.crawl_delay) {
    host.crawl_delay = delay;
    set_limits(host, now);
    be_polite(host, sent_at, now);
  }
  host.robots_until = saturating_add(now, kRobotsLifetime);
  host.robots_attempts = 0;
  host.robots_verified = host.verifies;
  host.losses = 0;
}

// It is asked again before that is believed.
void HostDesk::Impl::robots_refused(DeskHost& host, RobotsAnswer answer, TimePoint now) {
  rest(host, saturating_add(now, answer.at_least));
  if (const auto wait = wait_after(host, ++host.robots_attempts)) return rest(host, saturating_add(now, *wait));
  lose(host, std::move(answer.error), false, answer.at_least, now);
}

}  // namespace argiope
