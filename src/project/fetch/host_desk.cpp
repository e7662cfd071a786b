// Which host may be asked when. Its own questions (robots.txt, probes, addresses) are tasks; all else is answered at
// once.
#include "project/fetch/internal/host_desk.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "project/fetch/host_desk_impl.hpp"
#include "project/fetch/internal/page_fetcher.hpp"
#include "web/http/internal/http_date.hpp"
#include "web/url/internal/host_address.hpp"

namespace argiope {
namespace {

using Leave = HostDesk::Leave;

constexpr std::size_t kMostWithRules = 20'000;           // idle hosts whose robots.txt is kept
constexpr Duration kGatePoll = std::chrono::seconds{1};  // in case who was called to a free place does not come
constexpr Duration kLongestLossRest = std::chrono::hours{1};

}  // namespace

// --- records --------------------------------------------------------------------------------------------------------

DeskHost& HostDesk::Impl::record_of(std::uint32_t number, const Url& url) {
  if (const auto known = records_.find(number); known != records_.end()) return *known->second;
  const TimePoint now = loop_.time();
  let_go_of_idle_records(now);
  std::string_view site = notes_.site(number);
  if (site.empty()) site = notes_.add(number, url.site_key());
  auto record = std::make_unique<DeskHost>();
  record->number = number;
  record->policy = &policies_.of(site);
  record->loopback = is_loopback(url);
  record->throttled = is_throttled(url, *record->policy);
  recall(*record);
  set_limits(*record, now);
  return *records_.emplace(number, std::move(record)).first->second;
}

DeskHost& HostDesk::Impl::busy_record(std::uint32_t number) {
  const auto found = records_.find(number);
  if (found == records_.end() || found->second->under_way == 0) {
    throw std::logic_error("a host was left that nobody had entered");
  }
  return *found->second;
}

// A note keeps the state of a host: whether it answers, that its robots.txt allows all, and until when it is lost.
void HostDesk::Impl::take_note(const DeskHost& host) {
  DeskNotes::Note& note = notes_.of(host.number);
  note.is_answered = host.health.answered();
  note.is_proven = host.health.proven();
  note.losses = host.losses;
  note.is_lost = host.lost != nullptr;
  note.is_unreachable = host.lost && host.lost->unreachable;
  note.lost_to = host.lost ? host.lost->cause.code : Errc{};
  note.is_open =
      host.robots_verified && !host.robots && host.crawl_delay == Duration::zero() && host.robots_until > loop_.time();
  note.set_until(host.lost ? host.lost->until : note.is_open ? host.robots_until : TimePoint{});
}

void HostDesk::Impl::recall(DeskHost& host) {
  const DeskNotes::Note& note = notes_.of(host.number);
  host.health.remember(note.is_answered, note.is_proven);
  host.losses = note.losses;
  if (note.is_lost) {
    Error cause{note.lost_to, fmt::format("{} could not be reached before", notes_.site(host.number))};
    if (!note.is_unreachable)
      cause.message = fmt::format("{}: its robots.txt could not be read before", notes_.site(host.number));
    host.lost = std::make_unique<DeskLoss>(
        DeskLoss{std::move(cause), static_cast<bool>(note.is_unreachable), true, note.until()});
  } else if (note.is_open) {
    host.robots_until = note.until();
  }
}

void HostDesk::Impl::let_go_of_idle_records(TimePoint now) {
  if (records_.size() < sweep_at_) return;
  const auto is_idle = [&](const DeskHost& host) {
    return host.under_way == 0 && !host.is_blocked() && host.hops.empty() && host.told_until != kNever &&
           host.rest_until <= now && host.rate.next_available(now) <= now;
  };
  const auto sweep = [&](bool with_rules) {
    std::erase_if(records_, [&](const auto& entry) {
      const DeskHost& host = *entry.second;
      const bool has_rules = host.robots != nullptr || host.crawl_delay > Duration::zero();
      if (!is_idle(host) || (has_rules && !with_rules && host.robots_until > now)) return false;
      take_note(host);
      return true;
    });
  };
  sweep(false);
  if (records_.size() >= kMostWithRules) sweep(true);
  sweep_at_ = records_.size() + std::max(kRecordRoom, records_.size() / 16);
}

// --- whether a host may be asked ------------------------------------------------------------------------------------

HostDesk::Answer HostDesk::Impl::wait(DeskHost& host, TimePoint until, std::string words, bool is_hop) {
  if (!is_hop) host.told_until = std::max(host.told_until, until);
  return {.leave = Leave::wait, .until = until, .words = std::move(words)};
}

HostDesk::Answer HostDesk::Impl::ask(DeskHost& host, const Url& url, bool asks_robots, bool verifies, bool is_hop) {
  const TimePoint now = loop_.time();
  asks_robots = asks_robots && host.policy->robots;
  verifies = verifies || url.scheme() != "https";
  const bool may_be_reached = host.lost && !verifies && host.lost->verified && host.lost->cause.code == Errc::tls;
  if (host.lost && (may_be_reached || now >= host.lost->until)) revive(host);
  if (host.lost && (host.lost->unreachable || asks_robots)) {
    return {.leave = Leave::lost,
            .until = host.lost->until,
            .why = host.lost->cause,
            .is_refused = host.lost->unreachable && is_refused_by_us(host.lost->cause)};
  }
  if (closing_) return {.leave = Leave::wait, .words = "no host is asked any more"};
  const bool robots_known = now < host.robots_until && (host.robots_verified || !verifies);
  if (asks_robots && robots_known && host.robots && !host.robots->allowed(url.path_and_query()))
    return {.leave = Leave::forbidden};
  const bool wants_robots = asks_robots && !robots_known;
  const bool is_due = wants_robots || host.health.suspected() || (resolver_ != nullptr && now >= host.address_until);
  if (auto held = held_up(host, is_due, now)) return wait(host, held->until, std::move(held->words), is_hop);
  if (is_due) {
    host.wants_robots = wants_robots;
    host.verifies = verifies;
    begin_question(host);
    return wait(host, kNever, wants_robots ? "its robots.txt is being read" : "it is being asked whether it answers",
                is_hop);
  }
  if (!is_hop && !host.hops.empty()) return wait(host, kNever, "what was redirected to it goes first", is_hop);
  if (!enter_address(host)) {
    return wait(host, saturating_add(now, kGatePoll),
                fmt::format("{} requests are under way at its address", options_.per_address), is_hop);
  }
  ++host.under_way;
  host.rate.take(now);
  host.asking = !host.health.proven();
  host.verifies = verifies;
  return {.leave = Leave::go, .until = now};
}

bool HostDesk::Impl::enter_address(DeskHost& host) {
  const auto address = shared_address(host);
  if (!address) return true;
  AddressGate::Waker waker;
  if (!host.at_gate) {
    waker = [this, number = host.number, alive = std::weak_ptr(alive_)] {
      return !alive.expired() && woken_at_address(number);
    };
  }
  const bool entered = gate_.enter(*address, std::move(waker));
  host.at_gate = !entered;
  return entered;
}

bool HostDesk::Impl::woken_at_address(std::uint32_t number) {
  const auto found = records_.find(number);
  if (found == records_.end() || !std::exchange(found->second->at_gate, false)) return false;
  review(*found->second);
  return true;
}

void HostDesk::Impl::leave(DeskHost& host) {
  --host.under_way;
  host.asking = false;
  if (const auto address = shared_address(host)) gate_.leave(*address);
}

class HostDesk::Impl::Hop {
 public:
  Hop(Impl& desk, DeskHost& host) : desk_(desk), host_(host), alive_(desk.alive_) { host_.hops.push_back(&news); }
  Hop(const Hop&) = delete;
  Hop& operator=(const Hop&) = delete;
  ~Hop() {
    if (alive_.expired()) return;
    std::erase(host_.hops, &news);
    desk_.review(host_);
  }
  bool is_first() const noexcept { return host_.hops.front() == &news; }

  Event news;

 private:
  Impl& desk_;
  DeskHost& host_;
  const std::weak_ptr<const bool> alive_;
};

Coro<void> HostDesk::Impl::until_news(Hop& hop, TimePoint until) {
  struct Alarm {
    Handle handle;
    ~Alarm() { handle.cancel(); }
  };
  Alarm alarm;
  if (until != kNever) alarm.handle = loop_.call_at(until, [&hop] { hop.news.set(); });
  co_await hop.news.wait();
}

Coro<HostDesk::Answer> HostDesk::Impl::enter(std::uint32_t number, Url url, bool asks_robots, TimePoint deadline,
                                             bool verifies) {
  DeskHost& host = record_of(number, url);
  Hop hop(*this, host);
  Answer answer{.words = "others were redirected to it before"};
  for (;;) {
    if (loop_.time() >= deadline) co_return answer;  // with what it waited for last
    if (hop.is_first()) answer = ask(host, url, asks_robots, verifies, true);
    if (answer.leave != Leave::wait) co_return answer;
    hop.news.clear();
    co_await until_news(hop, std::min(answer.until, deadline));
  }
}

// Whatever its own robots.txt says, and also while that is being asked for elsewhere: two hosts may name each other.
Coro<Result<void>> HostDesk::Impl::enter_for_robots(DeskHost& host, TimePoint deadline) {
  Hop hop(*this, host);
  for (;;) {
    const TimePoint now = loop_.time();
    if (host.lost && host.lost->unreachable && now < host.lost->until) co_return std::unexpected(host.lost->cause);
    const TimePoint next = host.next_turn(now);
    const bool is_free = !host.asked && !host.at_gate && host.under_way < host.limits.concurrency;
    if (hop.is_first() && is_free && next <= now && !closing_) break;
    if (now >= deadline || next > deadline) {
      co_return fail(Errc::busy, fmt::format("{}: it redirects there, and that host may not be asked yet",
                                             notes_.site(host.number)));
    }
    hop.news.clear();
    co_await until_news(hop, is_free && next > now ? next : deadline);
  }
  ++host.under_way;
  host.rate.take(loop_.time());
  co_return Result<void>{};
}

// --- how it went ----------------------------------------------------------------------------------------------------

void HostDesk::Impl::end(std::uint32_t number, const Result<void>& sent, const HttpResponse& response) {
  DeskHost& host = busy_record(number);
  leave(host);
  const TimePoint now = loop_.time();
  if (host.throttled) note_latency(host, sent.has_value(), response, now);
  be_polite(host, response.sent_at, now);
  if (sent) {
    host.health.page_answered();
    host.losses = 0;
    if (is_temporary(response.status)) {
      const auto wait = parse_retry_after(response.headers.retry_after, loop_.clock().wall_now());
      if (wait) rest(host, saturating_add(now, *wait));
    }
  } else {
    on_error(host, sent.error(), response, now);
  }
  review(host);
}

void HostDesk::Impl::give_back(std::uint32_t number) {
  DeskHost& host = busy_record(number);
  leave(host);
  // Of several the permit that is the last's may be another's, which has been used.
  if (host.under_way == 0) host.rate.undo_take();
  review(host);
}

void HostDesk::Impl::note_latency(DeskHost& host, bool answered, const HttpResponse& response, TimePoint now) {
  // By its name it might have been public.
  const bool is_public = !host.address || classify(*host.address) == AddressClass::public_ || host.policy->autothrottle;
  if (!is_public || !response.connected) return;
  const bool is_page = answered && response.status >= 200 && response.status < 300;
  const TimePoint end = answered && response.answered_at > response.sent_at ? response.answered_at : now;
  const auto [pace, rate] = next_pace(*host.policy, host.as_paced(), end - response.sent_at, !is_page);
  host.pace = pace;
  if (rate != host.limits.rate) set_limits(host, now);
}

void HostDesk::Impl::on_error(DeskHost& host, const Error& error, const HttpResponse& response, TimePoint now) {
  if (error.code == Errc::invalid_input || error.code == Errc::internal || error.code == Errc::cancelled)
    return;  // nothing was sent
  if (!response.connected) return host_failed(host, error, now);
  if (says_something(error, response)) {
    host.health.page_answered();
    host.losses = 0;
  } else {
    host.health.url_failed(now);
  }
}

void HostDesk::Impl::probe_answered(DeskHost& host, TimePoint now) {
  if (const auto pause = host.health.probe_answered(now)) return rest(host, saturating_add(now, *pause));
  lose(host, {Errc::timeout, fmt::format("{}: no answer to any URL for an hour", notes_.site(host.number))}, true, {},
       now);
}

void HostDesk::Impl::question_failed(DeskHost& host, Error error, Duration patience, TimePoint now) {
  if (error.code == Errc::timeout && patience < host.policy->timeout) {
    host.health.was_slow();
    return rest(host, saturating_add(now, kRestAfterPatience));
  }
  host_failed(host, std::move(error), now);
}

void HostDesk::Impl::host_failed(DeskHost& host, Error error, TimePoint now) {
  const bool never_answered = !host.health.answered();
  const auto pause = host.health.failed(error.code, attempts_of(host));
  if (!pause) return lose(host, std::move(error), true, {}, now);
  Duration wait = *pause;
  if (never_answered) wait = std::max(wait, wait_after(host, host.health.failures()).value_or(wait));
  rest(host, saturating_add(now, wait));
}

void HostDesk::Impl::lose(DeskHost& host, Error cause, bool unreachable, Duration at_least, TimePoint now) {
  const Duration usual =
      std::min<Duration>(kFirstLossRest * (1 << std::min<unsigned>(host.losses, 10)), kLongestLossRest);
  if (host.losses < std::numeric_limits<std::uint8_t>::max()) ++host.losses;
  const Duration pause = std::max(usual, at_least);
  spdlog::debug("{}: {}; it is asked again in {}", notes_.site(host.number), cause.message, format_roughly(pause));
  host.lost =
      std::make_unique<DeskLoss>(DeskLoss{std::move(cause), unreachable, host.verifies, saturating_add(now, pause)});
}

// --- who waits ------------------------------------------------------------------------------------------------------

// After anything that may let a host be asked sooner.
void HostDesk::Impl::review(DeskHost& host) {
  if (!host.hops.empty()) {
    host.hops.front()->set();
    return;
  }
  if (host.told_until == TimePoint::min()) return;
  const TimePoint next = host.lost ? TimePoint::min() : host.is_blocked() ? kNever : host.next_turn(loop_.time());
  if (next < host.told_until) tell(host);
}

void HostDesk::Impl::tell(DeskHost& host) {
  host.told_until = TimePoint::min();
  if (!told) return;
  to_tell_.push_back(host.number);
  if (std::exchange(telling_, true)) return;
  loop_.call_soon([this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) flush_told();
  });
}

void HostDesk::Impl::flush_told() {
  telling_ = false;
  const std::weak_ptr alive(alive_);
  EventLoop& loop = loop_;
  const auto tell_each = told;
  for (const std::uint32_t number : std::exchange(to_tell_, {})) {
    try {
      tell_each(number);
    } catch (...) {
      loop.handle_exception("HostDesk::on_free", std::current_exception());
    }
    if (alive.expired()) return;
  }
}

void HostDesk::Impl::dress(std::uint32_t number, HttpRequest& request) {
  const auto found = records_.find(number);
  add_fields(found != records_.end() ? *found->second->policy : policies_.of(notes_.site(number)), request);
}

Coro<void> HostDesk::Impl::close() {
  closing_ = true;
  for (auto& [number, task] : questions_) task.cancel("the desk closes");
  while (!no_questions_.is_set()) co_await no_questions_.wait();
}

// --- the class ------------------------------------------------------------------------------------------------------

std::string_view to_string(HostDesk::Doing doing) noexcept {
  constexpr std::string_view kNames[] = {"ready", "busy", "waiting", "resting"};
  return kNames[static_cast<std::size_t>(doing)];
}

HostDesk::HostDesk(const CrawlOptions& options, EventLoop& loop, HttpTransport& transport, Resolver* resolver,
                   std::uint64_t seed)
    : impl_(std::make_unique<Impl>(options, loop, transport, resolver, seed)) {}
HostDesk::~HostDesk() = default;

void HostDesk::on_free(std::function<void(std::uint32_t host)> told) { impl_->told = std::move(told); }
void HostDesk::number_by(std::function<std::uint32_t(const Url&)> number_of) {
  impl_->number_of = std::move(number_of);
}
void HostDesk::add(std::uint32_t host, std::string_view site) { impl_->add(host, site); }
HostDesk::Answer HostDesk::begin(std::uint32_t host, const Url& url, bool asks_robots, bool verifies) {
  return impl_->begin(host, url, asks_robots, verifies);
}
void HostDesk::end(std::uint32_t host, const Result<void>& sent, const HttpResponse& response) {
  impl_->end(host, sent, response);
}
void HostDesk::give_back(std::uint32_t host) { impl_->give_back(host); }
Coro<HostDesk::Answer> HostDesk::enter(std::uint32_t host, Url url, bool asks_robots, TimePoint deadline,
                                       bool verifies) {
  return impl_->enter(host, std::move(url), asks_robots, deadline, verifies);
}
void HostDesk::dress(std::uint32_t host, HttpRequest& request) { impl_->dress(host, request); }
HostDesk::State HostDesk::look(std::uint32_t host, std::string_view site) const { return impl_->look(host, site); }
HostDesk::Doing HostDesk::doing(std::uint32_t host) const noexcept { return impl_->doing(host); }
Coro<void> HostDesk::close() { return impl_->close(); }
std::size_t HostDesk::active_hosts() const noexcept { return impl_->active_hosts(); }

}  // namespace argiope
