// Which host may be asked when. Its own questions (robots.txt, probes, addresses) are tasks; all else is answered at
// once.
#include "project/fetch/internal/host_desk.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/random.hpp"
#include "argiope/jobs/detail/token_level.hpp"
#include "argiope/jobs/job_queue.hpp"
#include "argiope/web/http_client.hpp"
#include "argiope/web/robots.hpp"
#include "crawl/hosts/internal/address_gate.hpp"
#include "crawl/hosts/internal/host_health.hpp"
#include "crawl/hosts/internal/host_lanes.hpp"
#include "crawl/hosts/internal/host_pace.hpp"
#include "crawl/hosts/internal/host_question.hpp"
#include "crawl/hosts/internal/robots_answer.hpp"
#include "crawl/options/internal/host_policies.hpp"
#include "project/fetch/host_notes.hpp"
#include "project/fetch/internal/page_fetcher.hpp"
#include "web/http/internal/http_date.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/url/internal/host_address.hpp"

namespace argiope {
namespace {

using Leave = HostDesk::Leave;

constexpr std::size_t kRecordRoom = 5'000;      // records that cost less than the search for those that can go
constexpr std::size_t kMostWithRules = 20'000;  // idle hosts whose robots.txt is kept
constexpr Duration kAddressLifetime = std::chrono::hours{24};
constexpr Duration kGatePoll = std::chrono::seconds{1};  // in case who was called to a free place does not come
constexpr Duration kFirstLossRest = std::chrono::minutes{5};
constexpr Duration kLongestLossRest = std::chrono::hours{1};
constexpr Duration kPatienceElsewhere =
    std::chrono::seconds{10};  // for the turn of a host that robots.txt redirects to
constexpr Duration kRestAfterBug = std::chrono::minutes{1};

// Why a host is not asked.
struct DeskLoss {
  Error cause;
  bool unreachable = false;  // else its robots.txt cannot be read
  bool verified = true;      // by who checks its certificate
  TimePoint until;
};

struct DeskHost {
  enum class Question : std::uint8_t { none, queued, under_way };

  std::uint32_t number = 0;
  std::uint32_t under_way = 0;
  const HostPolicy* policy = nullptr;
  bool loopback = false;
  bool throttled = false;
  bool asking = false;  // a request to a host that has not answered yet: nothing else meanwhile
  bool asked =
      false;  // its own question has sent something, or is about to: not while it waits for where that redirects
  bool at_gate = false;  // waits for a place at its address
  bool wants_robots = false;
  bool verifies = true;         // who was let in last, or is asked for
  bool robots_verified = true;  // by whom robots.txt was read
  Question question = Question::none;
  std::uint8_t losses = 0;  // since it answered
  std::uint32_t robots_attempts = 0;
  std::unique_ptr<const RobotsRules> robots;  // null allows everything
  TimePoint robots_until = TimePoint::min();
  TimePoint address_until = TimePoint::min();
  TimePoint rest_until = TimePoint::min();
  // Until when a caller has been told to wait; min: none has.
  TimePoint told_until = TimePoint::min();
  Duration crawl_delay{};
  Duration pace{};
  HostHealth health;
  std::unique_ptr<DeskLoss> lost;
  // Changes while nothing is under way alone, so that what was entered is what is left.
  std::optional<IpAddress> address;
  KeyLimits limits;
  TokenLevel rate;
  std::deque<Event*> hops;  // in enter(), in their order

  HostPace as_paced() const noexcept { return {loopback, throttled, pace, crawl_delay}; }
  bool is_blocked() const noexcept {
    return question != Question::none || asking || at_gate || under_way >= limits.concurrency;
  }
  // When the next request may begin, as far as that is a matter of time.
  TimePoint next_turn(TimePoint now) const noexcept { return std::max({now, rest_until, rate.next_available(now)}); }
};

using DeskLanes = LanesOf<DeskHost>;

// Why a request may not begin, whatever its URL is.
struct HeldUp {
  TimePoint until;
  std::string words;
  bool counts_requests = false;  // in these words
};

// `is_due`: something is to be asked of it before, its robots.txt or whether it answers.
std::optional<HeldUp> held_up(const DeskHost& host, bool is_due, TimePoint now) {
  using Question = DeskHost::Question;
  if (host.question == Question::under_way) {
    return HeldUp{kNever, host.wants_robots ? "its robots.txt is being read" : "it is being asked whether it answers"};
  }
  if (host.question == Question::queued) return HeldUp{kNever, "many hosts are to be asked for the first time"};
  if (host.asking) return HeldUp{kNever, "one request at a time until it has answered"};
  if (now < host.rest_until)
    return HeldUp{host.rest_until, fmt::format("rests for {}", format_roughly(host.rest_until - now))};
  if (is_due && host.under_way > 0) return HeldUp{kNever, "is asked for its robots.txt when its requests have ended"};
  if (host.under_way >= host.limits.concurrency) {
    return HeldUp{kNever, fmt::format("{} of {} requests are under way", host.under_way, host.limits.concurrency),
                  true};
  }
  if (const TimePoint next = host.rate.next_available(now); next > now) {
    return HeldUp{next, fmt::format("its pace allows the next request in {}", format_roughly(next - now))};
  }
  return std::nullopt;
}

std::optional<IpAddress> shared_address(const DeskHost& host) {
  return host.address && classify(*host.address) == AddressClass::public_ ? host.address : std::nullopt;
}

std::string trouble_of(const DeskHost& host) {
  if (host.lost) return host.lost->cause.message;
  if (host.health.suspected()) return "it answered none of its last requests";
  if (host.health.failures() > 1)
    return fmt::format("it could not be reached {} times in a row", host.health.failures());
  if (host.health.failures() == 1) return "it could not be reached just now";
  if (host.robots_attempts > 0) return "its robots.txt could not be read";
  return {};
}

std::uint32_t attempts_of(const DeskHost& host) noexcept { return host.losses > 0 ? 1 : host.policy->attempts; }

void rest(DeskHost& host, TimePoint until) noexcept { host.rest_until = std::max(host.rest_until, until); }

void be_polite(DeskHost& host, TimePoint sent_at, TimePoint now) noexcept {
  // Counted from when the request went out, so that the server sees no two closer than this, however long the first
  // took to connect.
  if (host.limits.rate > 0 && std::isfinite(host.limits.rate))
    rest(host, saturating_add(sent_at, from_seconds(1.0 / host.limits.rate)));
  if (host.limits.delay > Duration::zero()) rest(host, saturating_add(now, host.limits.delay));
}

void set_limits(DeskHost& host, TimePoint now) {
  host.limits = limits_of_host(*host.policy, host.as_paced());
  host.rate.set(host.limits.rate, 1, now);
}

void revive(DeskHost& host) {
  host.lost.reset();
  host.health = {};
  host.robots_until = TimePoint::min();
  host.robots_attempts = 0;
}

void add_fields(const HostPolicy& policy, HttpRequest& request) {
  for (const auto& field : policy.headers) {
    const bool has_it = std::ranges::any_of(
        request.headers, [&](const auto& own) { return equals_ignoring_case(own.first, field.first); });
    const bool may_go = !request.is_anonymous || equals_lower(field.first, "user-agent");
    if (!has_it && may_go) request.headers.push_back(field);
  }
}

// Of a question: the host's fields, and the way of the page that it is asked for, as far as certificates go.
void prepare(const DeskHost& host, HttpRequest& request) {
  if (!host.verifies) {
    static const auto kUnverified = std::make_shared<const HttpWay>(HttpWay{.verifies = false});
    request.way = kUnverified;
    request.is_anonymous = true;
  }
  add_fields(*host.policy, request);
}

}  // namespace

class HostDesk::Impl {
 public:
  Impl(const CrawlOptions& options, EventLoop& loop, HttpTransport& transport, Resolver* resolver, std::uint64_t seed)
      : options_(options),
        loop_(loop),
        transport_(transport),
        resolver_(resolver),
        random_(seed),
        policies_(options),
        gate_(options.per_address),
        lanes_(options.concurrency) {}
  ~Impl() {
    for (auto& [number, task] : questions_) task.cancel("the desk is gone");
  }

  void add(std::uint32_t number, std::string_view site) { notes_.add(number, site); }
  Answer begin(std::uint32_t number, const Url& url, bool asks_robots, bool verifies) {
    return ask(record_of(number, url), url, asks_robots, verifies, false);
  }
  Coro<Answer> enter(std::uint32_t number, Url url, bool asks_robots, TimePoint deadline, bool verifies);
  void end(std::uint32_t number, const Result<void>& sent, const HttpResponse& response);
  void give_back(std::uint32_t number);
  void dress(std::uint32_t number, HttpRequest& request);
  State look(std::uint32_t number, std::string_view site) const;
  Doing doing(std::uint32_t number) const noexcept;
  Coro<void> close();

  std::function<void(std::uint32_t)> told;
  std::function<std::uint32_t(const Url&)> number_of;
  std::size_t active_hosts() const noexcept { return records_.size(); }

 private:
  // A place at an address, for questions.
  class AtAddress;
  class PoliteTransport;
  // One that waits in enter().
  class Hop;

  DeskHost& record_of(std::uint32_t number, const Url& url);
  DeskHost& busy_record(std::uint32_t number);
  void let_go_of_idle_records(TimePoint now);
  void take_note(const DeskHost& host);
  void recall(DeskHost& host);

  Answer ask(DeskHost& host, const Url& url, bool asks_robots, bool verifies, bool is_hop);
  static Answer wait(DeskHost& host, TimePoint until, std::string words, bool is_hop);
  bool enter_address(DeskHost& host);
  bool woken_at_address(std::uint32_t number);
  void leave(DeskHost& host);

  void begin_question(DeskHost& host);
  void end_question(std::uint32_t number, DeskLanes::Lane lane);
  Coro<Result<void>> enter_for_robots(DeskHost& host, TimePoint deadline);
  Coro<void> until_news(Hop& hop, TimePoint until);
  Coro<void> question(DeskHost& host);
  Coro<void> find_address(DeskHost& host);
  Coro<void> fetch_robots(DeskHost& host);
  Coro<void> probe(DeskHost& host);
  void take_robots(DeskHost& host, RobotsAnswer answer, TimePoint sent_at, TimePoint now);
  void robots_refused(DeskHost& host, RobotsAnswer answer, TimePoint now);
  // Throws Failure where the host's name is none.
  Url url_at(const DeskHost& host, std::string_view path) const {
    return value_or_throw(Url::parse(fmt::format("{}{}", notes_.site(host.number), path)));
  }
  Duration patience_with(const DeskHost& host) const {
    return host.health.is_new() && host.losses == 0 ? std::min(host.policy->timeout, kFirstPatience)
                                                    : host.policy->timeout;
  }

  std::optional<Duration> wait_after(const DeskHost& host, std::uint32_t attempts) {
    return attempts < attempts_of(host) ? retry_policy_.delay_after(attempts, random_) : std::nullopt;
  }
  void note_latency(DeskHost& host, bool answered, const HttpResponse& response, TimePoint now);
  void on_error(DeskHost& host, const Error& error, const HttpResponse& response, TimePoint now);
  void probe_answered(DeskHost& host, TimePoint now);
  void question_failed(DeskHost& host, Error error, Duration patience, TimePoint now);
  void host_failed(DeskHost& host, Error error, TimePoint now);
  void lose(DeskHost& host, Error cause, bool unreachable, Duration at_least, TimePoint now);

  static Doing doing_of(const DeskHost& host, TimePoint now) noexcept;
  State look_at_note(std::uint32_t number, std::string site) const;
  static void put_limits(const KeyLimits& limits, State& state) noexcept;

  void review(DeskHost& host);
  void tell(DeskHost& host);
  void flush_told();

  const CrawlOptions& options_;
  EventLoop& loop_;
  HttpTransport& transport_;
  Resolver* const resolver_;
  Random random_;
  const RetryPolicy retry_policy_{.max_attempts = std::numeric_limits<std::uint32_t>::max()};
  mutable HostPolicies policies_;  // makes what it is asked for
  AddressGate gate_;
  DeskLanes lanes_;
  DeskNotes notes_;
  std::unordered_map<std::uint32_t, std::unique_ptr<DeskHost>> records_;
  std::size_t sweep_at_ = kRecordRoom;
  std::unordered_map<std::uint32_t, Task<void>> questions_;
  Event no_questions_{true};
  bool closing_ = false;
  std::vector<std::uint32_t> to_tell_;
  bool telling_ = false;
  const std::shared_ptr<const bool> alive_ = std::make_shared<bool>(true);
};

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

// --- what it asks itself --------------------------------------------------------------------------------------------

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

Coro<void> HostDesk::Impl::close() {
  closing_ = true;
  for (auto& [number, task] : questions_) task.cancel("the desk closes");
  while (!no_questions_.is_set()) co_await no_questions_.wait();
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

// A pause that its own pace asks for is not the rest of a host that has asked for one, or has failed.
HostDesk::Doing HostDesk::Impl::doing_of(const DeskHost& host, TimePoint now) noexcept {
  if (host.lost && host.lost->until > now) return Doing::resting;
  if (host.under_way > 0 || host.question == DeskHost::Question::under_way) return Doing::busy;
  if (host.rest_until > now) {
    const double rate = host.limits.rate;
    const Duration pace = rate > 0 && std::isfinite(rate) ? from_seconds(1 / rate) : Duration{};
    const bool has_trouble = host.health.suspected() || host.health.failures() > 0 || host.robots_attempts > 0;
    return has_trouble || host.rest_until - now > std::max(pace, host.limits.delay) ? Doing::resting : Doing::waiting;
  }
  return host.is_blocked() || host.rate.next_available(now) > now ? Doing::waiting : Doing::ready;
}

HostDesk::Doing HostDesk::Impl::doing(std::uint32_t number) const noexcept {
  const TimePoint now = loop_.time();
  if (const auto found = records_.find(number); found != records_.end()) return doing_of(*found->second, now);
  const DeskNotes::Note note = notes_.find(number);
  return note.is_lost && note.until() > now ? Doing::resting : Doing::ready;
}

// Of a host that has nothing to do.
HostDesk::State HostDesk::Impl::look_at_note(std::uint32_t number, std::string site) const {
  State state{.site = std::move(site), .trouble = {}, .words = "nothing holds it up"};
  const TimePoint now = loop_.time();
  const DeskNotes::Note note = notes_.find(number);
  if (note.is_lost && note.until() > now) {
    state.doing = Doing::resting;
    state.rests_until = state.waits_until = note.until();
    state.trouble = note.is_unreachable ? "it could not be reached" : "its robots.txt could not be read";
    state.words = fmt::format("it is asked again in {}: {}", format_roughly(note.until() - now), state.trouble);
  }
  state.may_begin = state.doing == Doing::ready;
  state.robots_known = note.is_open && note.until() > now;
  if (const auto url = Url::parse(state.site + "/")) {
    const HostPolicy& policy = policies_.of(state.site);
    const bool loopback = is_loopback(*url);
    const KeyLimits limits = limits_of_host(policy, {.loopback = loopback, .throttled = is_throttled(*url, policy)});
    put_limits(limits, state);
    if (policy.robots && !state.robots_known && state.doing == Doing::ready)
      state.words += "; its robots.txt is read first";
  }
  return state;
}

void HostDesk::Impl::put_limits(const KeyLimits& limits, State& state) noexcept {
  state.at_most = limits.concurrency;
  if (limits.delay > Duration::zero()) state.delay = limits.delay;
  if (std::isfinite(limits.rate)) state.rate = limits.rate;
}

HostDesk::State HostDesk::Impl::look(std::uint32_t number, std::string_view site) const {
  const std::string_view kept = notes_.site(number);
  const auto found = records_.find(number);
  if (found == records_.end()) return look_at_note(number, std::string(kept.empty() ? site : kept));
  const DeskHost& host = *found->second;
  const TimePoint now = loop_.time();
  State state{.site = std::string(kept), .trouble = trouble_of(host), .words = {}};
  state.under_way = host.under_way + (host.question == DeskHost::Question::under_way ? 1 : 0);
  put_limits(host.limits, state);
  if (host.rest_until > now) state.rests_until = host.rest_until;
  state.robots_known = host.robots_until > now;
  state.doing = doing_of(host, now);
  state.reads_robots = host.question == DeskHost::Question::under_way && host.wants_robots;
  const bool wants_robots = host.policy->robots && !state.robots_known;
  if (host.lost) {
    state.rests_until = std::max(host.lost->until, state.rests_until.value_or(host.lost->until));
    if (host.lost->until > now) {
      state.waits_until = host.lost->until;
      state.words = fmt::format("it is asked again in {}: {}", format_roughly(host.lost->until - now), state.trouble);
      return state;
    }
  }
  const bool is_due = wants_robots || host.health.suspected();
  if (closing_) {
    state.words = "no host is asked any more";
  } else if (auto held = held_up(host, is_due, now)) {
    state.words = std::move(held->words);
    if (held->until != kNever) state.waits_until = held->until;
    state.counts_requests = held->counts_requests;
  } else if (!host.hops.empty()) {
    state.words = "what was redirected to it goes first";
  } else if (host.at_gate) {
    state.words = fmt::format("{} requests are under way at its address", options_.per_address);
  } else if (host.under_way > 0) {
    state.may_begin = true;
    state.counts_requests = true;
    state.words =
        fmt::format("{} of {} requests are under way, and another may begin", host.under_way, host.limits.concurrency);
  } else {
    state.may_begin = true;
    state.words = wants_robots ? "nothing holds it up; its robots.txt is read first" : "nothing holds it up";
  }
  return state;
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
