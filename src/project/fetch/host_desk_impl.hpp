// The inside of HostDesk, in three files: host_desk.cpp lets requests in and takes their ends, desk_questions.cpp has
// what the desk asks hosts itself, desk_look.cpp tells what it does.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/random.hpp"
#include "crawl/hosts/internal/address_gate.hpp"
#include "crawl/hosts/internal/host_lanes.hpp"
#include "crawl/hosts/internal/host_question.hpp"
#include "crawl/hosts/internal/robots_answer.hpp"
#include "project/fetch/desk_host.hpp"
#include "project/fetch/host_notes.hpp"
#include "project/fetch/internal/host_desk.hpp"

namespace argiope {

using DeskLanes = LanesOf<DeskHost>;

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
  static constexpr std::size_t kRecordRoom = 5'000;  // records that cost less than the search for those that can go
  static constexpr Duration kFirstLossRest = std::chrono::minutes{5};

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

}  // namespace argiope
