// HttpJobSource: the jobs of a daemon elsewhere, for a Worker in this process.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/engine/engine.hpp"
#include "async/internal/background.hpp"
#include "engine/internal/job_source.hpp"
#include "remote/internal/api_client.hpp"

namespace argiope {

class HttpBook;

// A daemon that is away is waited for as long as the client's patience says: leases go on meanwhile, renewals and
// settlements are sent again, which their tokens make harmless. A request for leases is sent again under its key, which
// gives the leases of an answer that was lost; of a daemon that has restarted meanwhile their jobs are run again when
// the leases have run out. A request that is cancelled while it waits is ended by the daemon, and what it was given
// until then is given back.
//
// A renewal is told at once that it has succeeded, and the daemon is asked together for all of a turn. The daemon's
// word of leases that are lost, or of jobs to be stopped, reaches the worker by its call's on_cancel. Of jobs to be
// stopped each answer to a request for leases tells; while there is none, for all of the worker's places are taken,
// another request waits for that alone. Should it be lost, the daemon is asked three times in kAskWithin at least.
//
// Lifetime: `client` outlives its close(), which is awaited last.
// Threads:  the loop's own.
class HttpJobSource final : public JobSource, public std::enable_shared_from_this<HttpJobSource> {
 public:
  static constexpr Duration kAskWithin = std::chrono::seconds{15};

  // `listener`: hears of the ends of this worker's runs, with the id, attempt and error of the job; may be empty.
  explicit HttpJobSource(ApiClient& client, JobListener listener = {});

  Coro<Result<std::vector<LeasedJob>>> lease(LeaseCall call) override;
  Coro<Result<std::vector<LeasedJob>>> lease_within(LeaseCall call, Duration wait) override;
  Coro<Result<bool>> settle(std::uint64_t token, Verdict verdict) override;
  std::optional<Duration> renew(std::uint64_t token) override;
  bool set_progress(std::uint64_t token, double fraction, std::string message) override;
  bool set_output(std::uint64_t token, std::string output) override;
  Coro<Result<Backlog>> backlog(BacklogLook look) override;
  std::optional<Error> failure() const override { return std::nullopt; }

  // Whether the daemon lets the worker have jobs of these queues at all. Errors: why it does not.
  Coro<Result<void>> check(const LeaseCall& call);
  // Sends nothing more but what is under way, and waits to hear of nothing.
  Coro<void> close();

 private:
  struct Progress {
    double fraction = 0;
    std::string message;
  };
  struct Held {
    JobId id = 0;
    std::string queue;
    std::uint32_t attempt = 0;
    Duration lease_time{};
    std::shared_ptr<const LeaseCall> call;
    std::optional<Progress> progress;  // not told yet
    std::optional<std::string> output;
    bool renew = false;  // is to be
  };
  struct Settling {
    std::string text;
    Future<Result<bool>> answer;
  };
  using Settlements = std::map<std::uint64_t, Settling>;  // by token

  // One request for leases, and what it was answered. On the heap, so that who awaits it is handed it without a copy.
  struct Asked {
    LeaseCall call;
    std::size_t most = 0;
    Duration wait{};
    std::string key;
  };
  struct Told;
  using Poll = Task<std::unique_ptr<Result<Told>>>;

  static Coro<Result<std::vector<WaitingJob>>> delayed_in(HttpBook& book, std::string queue);
  static Coro<std::unique_ptr<Result<Told>>> poll(std::shared_ptr<HttpJobSource> self, Asked asked);
  Coro<void> end(Poll poll, Asked asked);
  Coro<void> give_back(std::uint64_t token);
  std::vector<LeasedJob> hold(std::vector<LeasedJob> leased, LeaseCall call);
  void start_to_listen();
  static Coro<void> listen(std::shared_ptr<HttpJobSource> self);
  Coro<Result<Told>> ask_for_leases(const Asked& asked);
  static std::string text_of(const Asked& asked);
  static Told read_told(const JsonValue& answer);
  void renew_soon(Held& run);
  Coro<void> renew_all();
  std::string renewals();
  void take_renewals(const std::string& body);
  Coro<void> settle_all();
  Settlements take_settlements();
  Coro<void> send(Settlements settlements);
  Coro<void> tell(Held run, Outcome outcome, std::string error, bool settled);
  Coro<JobEventKind> fate_of(JobId id);
  void lose(std::uint64_t token);
  Duration renewed_for(const Held& run) const;

  ApiClient& client_;
  const JobListener listener_;
  EventLoop& loop_;
  std::unordered_map<std::uint64_t, Held> held_;
  Settlements settlements_;
  std::size_t asking_ = 0;  // how many requests for leases are under way
  Task<void> listening_;
  bool renewing_ = false;
  bool settling_ = false;
  bool closed_ = false;
  Background background_;
};

}  // namespace argiope
