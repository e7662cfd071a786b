// How the hosts of a shard are asked: on which connections, at what pace, and what is sent and counted each time.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "argiope/base/random.hpp"
#include "argiope/jobs/job_queue.hpp"
#include "crawl/hosts/internal/host_lanes.hpp"
#include "crawl/run/leaving.hpp"
#include "crawl/run/shard.hpp"

namespace argiope {

class Crawler::Shard::HostDesk : private Part {
 public:
  HostDesk(Core& core, std::size_t connections);
  // Before anything is sent; `transport` outlives it.
  void start(HttpTransport& transport);

  // --- connections
  HostLanes& lanes() noexcept { return lanes_; }
  // Hosts that wait for a connection, and may have one now, are asked again.
  void wake_lanes(TimePoint now);
  // A place among the requests at the host's address, if that is public. nullopt: there is none; the host is pinned,
  // and asked again when one is free.
  std::optional<Leaving> enter_address(Host& host);
  // Nothing else is asked of the host until what is returned goes.
  Leaving begin_question(Host& host);
  static Duration patience_with(const Host& host);

  // --- requests
  // Of each request, whatever it asks for.
  void prepare(HttpRequest& request) const noexcept;
  Coro<Result<void>> send(Host& host, const HttpRequest& request, HttpResponse& response);
  // The host's turn has come: sends, shows, counts, and lets the host rest.
  Coro<Result<void>> ask_in_turn(Host& host, ExchangeKind kind, const HttpRequest& request, HttpResponse& response);
  Exchange exchange_of(ExchangeKind kind, const HttpRequest& request, const HttpResponse& response) const;
  // False: the crawl ends, because a sink cannot take it.
  bool show(ExchangeKind kind, const HttpRequest& request, const HttpResponse& response);

  // --- pace
  void be_polite(Host& host, TimePoint sent_at, TimePoint now);
  void rest_for_delay(Host& host, TimePoint now);
  // Of an answer that says when to come back: the whole host rests for so long.
  Duration heed_retry_after(Host& host, const HttpResponse& response, TimePoint now);
  // The host is not asked before `until`, whichever run it would be.
  void rest(Host& host, TimePoint until, RestReason why, TimePoint now);
  // All others that ask it wait for as long as the host's rate says.
  void take_turn(Host& host, TimePoint now);
  // An answer, or none, tells how fast the host may be asked.
  void note_latency(Visit& visit, bool answered, TimePoint now);
  // As RetryPolicy has it, with as many attempts as the host's policy says.
  std::optional<Duration> wait_after(const Host& host, std::uint32_t attempts);
  // At the end: also what was too short to be written down at once.
  void keep_rests(TimePoint now);
  // A look at each host that has something to do: milliseconds, if they are very many.
  void note_longest_rest(TimePoint now);
  // Any thread.
  Resting longest_rest() const;

 private:
  // Tells the shard that the host may be asked again.
  AddressGate::Waker waker_of(Host& host);

  HostLanes lanes_;
  RetryPolicy retry_policy_;
  Random random_;
  std::unique_ptr<HttpTransport> session_;  // over the transport that is given, where anything is added to requests
  HttpTransport* transport_ = nullptr;
  TimePoint next_rest_look_{};
  mutable std::mutex resting_mutex_;
  Resting resting_;
};

}  // namespace argiope
