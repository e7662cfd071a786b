// Puts for whose jobs callers wait.
//
// A put and the lease of its job are two transactions, one synced after the other. Where it is certain beforehand that
// a job will be leased as soon as it is there, and by whom, one transaction does both. Whatever is not certain takes
// the long way.
#include <algorithm>
#include <functional>
#include <unordered_map>

#include "engine/put_desk.hpp"
#include "jobs/internal/job_rules.hpp"

namespace argiope {

// The jobs of one call of the store, while they are shared out.
struct PutDesk::Sharing {
  struct Share {
    std::size_t own = 0;  // how many of the call's jobs
    bool is_open = true;  // all of them are certain to wait for nothing
    // Jobs that were put before, and are on their way without a lease: so many callers are left to them.
    std::size_t before = 0;
  };
  const std::vector<Pending>& pending;
  std::unordered_map<Queue*, Share> shares;
  std::vector<std::size_t> next;  // those that may be leased, the most important first

  Queue* queue_of(std::size_t i) const { return pending[i].queue; }
  void leave_out(const std::vector<Queue*>& queues) {
    std::erase_if(next, [&](std::size_t i) { return std::ranges::find(queues, queue_of(i)) != queues.end(); });
  }
};

PutDesk::Awaited PutDesk::jobs_awaited(const std::vector<Pending>& pending, const std::vector<PutRequest>& requests) {
  Awaited awaited;
  if (owned_.callers.empty()) return awaited;
  // So that nobody who waits could have a job that is there already.
  if (queue_desk_.has_due(loop_.time())) lease_desk_.pump();
  if (owned_.closing || !owned_.started || lease_desk_.has_unsent()) return awaited;  // tokens reach the store in order
  Sharing sharing = shares_of(pending, requests);
  awaited.grants = owned_.callers.serve([&](const LeaseCaller& caller) {
    return sharing.next.empty() ? Grant() : jobs_for(caller, sharing, awaited.places);
  });
  return awaited;
}

PutDesk::Sharing PutDesk::shares_of(const std::vector<Pending>& pending, const std::vector<PutRequest>& requests) {
  Sharing sharing{.pending = pending, .shares = {}, .next = {}};
  const TimePoint now = loop_.time();
  for (std::size_t i = 0; i < pending.size(); ++i) {
    Queue& queue = *pending[i].queue;
    if (queue.callers == 0) continue;
    Sharing::Share& share = sharing.shares[&queue];
    ++share.own;
    share.is_open = share.is_open && gives_nothing(queue) && starts_at_once(queue, requests[i], now);
    sharing.next.push_back(i);
  }
  std::erase_if(sharing.next, [&](std::size_t i) { return !sharing.shares.at(sharing.queue_of(i)).is_open; });
  for (auto& [queue, share] : sharing.shares) share.before = unleased_on_their_way(*queue, share.own);
  std::ranges::stable_sort(sharing.next, std::greater{}, [&](std::size_t i) { return requests[i].job.priority; });
  return sharing;
}

// The jobs for the caller; none where another of its queues may have something for it, or something before that.
Grant PutDesk::jobs_for(const LeaseCaller& caller, Sharing& sharing, std::vector<std::size_t>& places) {
  Grant grant;
  bool is_left_to_others = false;
  for (Queue* queue : caller.queues) {
    const auto [found, is_other] = sharing.shares.try_emplace(queue);
    Sharing::Share& share = found->second;
    if (is_other) share.before = unleased_on_their_way(*queue, 0);
    if (!is_settled(*queue) || !share.is_open) {
      sharing.leave_out(caller.queues);  // whoever came after this one does not overtake it
      return grant;
    }
    is_left_to_others = is_left_to_others || share.before > 0;
    share.before -= std::min(share.before, caller.call->most);
  }
  if (is_left_to_others) return grant;
  const TimePoint now = loop_.time();
  std::erase_if(sharing.next, [&](std::size_t i) {
    Queue* const queue = sharing.queue_of(i);
    if (grant.requests.size() == caller.call->most) return false;
    if (std::ranges::find(caller.queues, queue) == caller.queues.end()) return false;
    lease_desk_.ask_for(*queue, 0, caller, grant, now);
    places.push_back(i);
    return true;
  });
  return grant;
}

// `own`: how many of them are of the call that is made now.
std::size_t PutDesk::unleased_on_their_way(const Queue& queue, std::size_t own) {
  const std::size_t others = queue.promised + own;
  return queue.room.arriving() - std::min<std::size_t>(queue.room.arriving(), others);
}

// It has no job to give now, and nothing is under way that may bring one.
bool PutDesk::is_settled(const Queue& queue) { return !queue.active && !queue.dirty && !queue.refilling; }

// No job of it is ready, neither in memory nor in the store.
bool PutDesk::gives_nothing(const Queue& queue) {
  return is_settled(queue) && queue.window.jobs().ready_count() == 0 && queue.window.top_is_certain();
}

// Whether the job, once it is there, is certain to wait for nothing.
bool PutDesk::starts_at_once(Queue& queue, const PutRequest& put, TimePoint now) {
  const NewJob& job = put.job;
  const bool is_named = job.id != 0 || !job.name.empty() || !job.unique.empty();
  const bool stands_alone = job.waits_for.empty() && job.batch == 0;
  if (is_named || !stands_alone || put.set_aside || job.due_at > clock_.now() || !job_rules::check_plain(put))
    return false;
  JobQueue& jobs = queue.window.jobs();
  return jobs.starts_freely(jobs.key(job.key), now);
}

Coro<void> PutDesk::send_with_leases(std::vector<Pending> pending, std::vector<PutRequest> requests, Awaited awaited) {
  const TimePoint asked = loop_.time();
  std::vector<PutLease> leases;
  leases.reserve(awaited.places.size());
  for (const Grant& grant : awaited.grants) {
    for (const LeaseRequest& request : grant.requests) leases.emplace_back(awaited.places[leases.size()], request);
  }
  for (const std::size_t place : awaited.places) ++pending[place].queue->promised;
  auto answered = co_await store_(&Store::put_and_lease, std::move(requests), clock_.now(), std::move(leases));
  for (const std::size_t place : awaited.places) --pending[place].queue->promised;
  std::vector<std::optional<JobRecord>> leased(awaited.places.size());
  if (answered) leased = std::move(answered->leased);
  for (auto& one : leased) {
    if (one && is_left_as_it_is(*one)) one.reset();  // it waits as others do
  }
  std::vector<bool> is_leased(pending.size());
  // All of them before anything is told of one, so that nobody finds them among the jobs that wait.
  std::size_t next = 0;
  for (const Grant& grant : awaited.grants) {
    for (const LeaseRequest& request : grant.requests) {
      const std::size_t place = awaited.places[next];
      if (!leased[next++]) continue;
      is_leased[place] = true;
      if (!owned_.closing)
        begin_awaited(*pending[place].queue, answered->puts[place]->job, request.token, grant.caller);
    }
  }
  for (std::size_t i = 0; i < pending.size(); ++i) {
    Result<PutReply> reply = answered ? std::move(answered->puts[i]) : std::unexpected(answered.error());
    if (is_leased[i]) {
      pending[i].queue->room.arrived(true);
      queue_desk_.tell_of_put(*pending[i].queue, *reply);
    } else if (reply) {
      queue_desk_.note_put(*pending[i].queue, *reply);
    }
    answer(pending[i], std::move(reply));
  }
  lease_desk_.hand_out(awaited.grants, std::move(leased), asked);  // callers who get none wait on
  if (auto failed = store_.failure()) owned_.stop_all(*failed);
}

// Where the queue or the key has got a limit, a pause or a rest meanwhile there is no run, and the lease is given back.
void PutDesk::begin_awaited(Queue& queue, const WaitingJob& job, std::uint64_t token, const LeaseCaller& caller) {
  const TimePoint now = loop_.time();
  lease_desk_.tick(queue, now);
  JobQueue& jobs = queue.window.jobs();
  if (!jobs.starts_freely(jobs.key(job.key), now)) return;
  queue.window.hold(job, now);
  const auto lease = jobs.lease_job(job.id, now, queue.config().lease_time);
  if (!lease) return;
  queue.pass = std::max(queue.pass, owned_.least_pass);
  owned_.least_pass = queue.pass;
  lease_desk_.begin_run(queue, *lease, token, caller);
}

}  // namespace argiope
