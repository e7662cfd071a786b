#include "engine/store_book.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "argiope/async/coro.hpp"
#include "argiope/async/group.hpp"
#include "engine/book_rules.hpp"
#include "jobs/internal/job_json.hpp"

namespace argiope {
namespace {

constexpr std::size_t kJobsAPage = 10'000;
constexpr std::size_t kFirstPage = 16;
// Of a queue's delayed jobs that are due. Beyond that they are counted as what they were, until they leave their shelf.
constexpr std::size_t kMostDueCounted = 2'000;

template <class List>
std::size_t size_of(const List& list) {
  return list.size();
}

}  // namespace

// --- queues are changed ----------------------------------------------------------------------------------------------

Coro<Result<void>> StoreJobBook::configure(std::string name, QueueConfig config, JobReachRef asker) {
  const auto in_turn = co_await configuring_.scoped();
  co_return co_await configure_in_turn(std::move(name), std::move(config), std::move(asker));
}

Coro<Result<void>> StoreJobBook::set_paused(std::string name, bool paused, WallTime until) {
  const auto in_turn = co_await configuring_.scoped();
  StoredQueue found = co_await or_return(queue(name));
  found.config.limits.paused = paused;
  found.config.paused_until = until;
  co_return co_await configure_in_turn(std::move(name), std::move(found.config), nullptr);
}

Coro<Result<void>> StoreJobBook::configure_in_turn(std::string name, QueueConfig config, JobReachRef asker) {
  co_await or_return(set_clock());
  config.paused_until = whole_ms(clock().from_calendar(config.paused_until));
  co_return co_await write_config(std::move(name), std::move(config), std::move(asker));
}

Coro<Result<void>> StoreJobBook::erase_queue(std::string name) {
  const auto in_turn = co_await configuring_.scoped();
  co_return co_await erase_named(std::move(name));
}

// --- looks -----------------------------------------------------------------------------------------------------------

void StoreJobBook::as_of_now(JobRecord& record) const {
  if (record.state == JobState::delayed && record.pending == 0 && record.due_at <= clock().now()) {
    record.state = JobState::ready;
  }
  to_calendar(record, clock());
}

JobOutput StoreJobBook::output_of(JobRecord record, const OutputLook& look) {
  JobOutput output{.run = record.tally.runs, .state = record.state, .error = std::move(record.error)};
  if (look.run == output.run) output.after = std::min(look.after, record.result.size());
  output.bytes = std::move(record.result);
  output.bytes.erase(0, output.after);
  return output;
}

Coro<Result<JobId>> StoreJobBook::find(std::string id_or_name) {
  const auto number = co_await or_return(parse_job_id(id_or_name));
  if (number && !co_await or_return(store_(&Store::get, *number))) co_return no_such_job(*number);
  if (number) co_return *number;
  const auto named = co_await or_return(store_(&Store::find_name, id_or_name));
  if (!named) co_return no_job_named(id_or_name);
  co_return *named;
}

Coro<Result<JobRecord>> StoreJobBook::get(JobId id) {
  co_await or_return(set_clock());
  auto found = co_await or_return(store_(&Store::get, id));
  if (!found) co_return no_such_job(id);
  as_of_now(*found);
  co_return std::move(*found);
}

Coro<Result<std::vector<Attempt>>> StoreJobBook::history(JobId id) {
  co_await or_return(set_clock());
  auto attempts = co_await or_return(store_(&Store::history, id));
  for (Attempt& attempt : attempts) attempt.ended_at = clock().to_calendar(attempt.ended_at);
  co_return attempts;
}

Coro<Result<JobSlice>> StoreJobBook::look(JobFilter filter) {
  co_await or_return(set_clock());
  filter.due_by = clock().now();
  filter.limit = std::min(filter.limit, kJobsAPage);
  if (calls_of_others()) filter.most_looked = std::min(filter.most_looked, kRowsALook);
  auto slice = co_await or_return(
      in_turn(store_(&Store::look, std::move(filter)), [](const JobSlice& its) { return its.looked; }));
  for (JobRecord& record : slice.jobs) as_of_now(record);
  co_return slice;
}

Coro<Result<std::vector<JobRecord>>> StoreJobBook::list(JobFilter filter) {
  const std::size_t limit = filter.limit;
  std::vector<JobRecord> all;
  for (bool more = true; more && all.size() < limit;) {
    filter.limit = limit - all.size();
    auto slice = co_await or_return(look(filter));
    std::ranges::move(slice.jobs, std::back_inserter(all));
    filter.after = slice.after;
    filter.up_to = std::min(filter.up_to, slice.newest);
    more = !slice.is_last;
  }
  co_return all;
}

Coro<Result<StoredQueue>> StoreJobBook::queue(std::string name) {
  auto all = co_await or_return(queues());
  const auto found = std::ranges::find(all, name, &StoredQueue::name);
  if (found == all.end()) co_return no_such_queue(name);
  co_return std::move(*found);
}

Coro<Result<std::vector<StoredQueue>>> StoreJobBook::queues() {
  co_await or_return(set_clock());
  auto all = co_await or_return(in_turn(store_(&Store::queues), size_of<std::vector<StoredQueue>>));
  for (StoredQueue& queue : all) queue = as_of_now(std::move(queue));
  co_return all;
}

StoredQueue StoreJobBook::as_of_now(StoredQueue queue) const {
  end_pause_if_over(queue.config, clock().now());
  queue.config.paused_until = clock().to_calendar(queue.config.paused_until);
  return queue;
}

Coro<Result<std::vector<NamedCounts>>> StoreJobBook::counts(std::string only) {
  const auto wants = [only](const std::string& name) { return only.empty() || name == only; };
  auto named = co_await or_return(counts_where(wants));
  if (!only.empty() && named.empty()) co_return no_such_queue(only);
  co_return named;
}

Coro<Result<std::vector<NamedCounts>>> StoreJobBook::counts_of(std::vector<std::string> names) {
  const std::unordered_set<std::string> wanted(names.begin(), names.end());
  const auto wants = [&](const std::string& name) { return wanted.contains(name); };
  co_return co_await counts_where(wants);
}

Coro<Result<std::vector<NamedCounts>>> StoreJobBook::counts_where(std::function<bool(const std::string& name)> wants) {
  co_await or_return(set_clock());
  const auto queues = co_await or_return(this->queues());
  auto counted = co_await or_return(in_turn(store_(&Store::counts), size_of<std::vector<QueueCounts>>));
  std::unordered_map<QueueId, const StoredQueue*> by_id;
  for (const StoredQueue& queue : queues) by_id.emplace(queue.id, &queue);
  std::vector<NamedCounts> named;
  std::vector<std::size_t> with_delayed;
  std::vector<Coro<Result<std::uint64_t>>> counting;
  for (const QueueCounts& of_queue : counted) {
    const auto found = by_id.find(of_queue.queue);
    if (found == by_id.end() || !wants(found->second->name)) continue;
    named.emplace_back(found->second->name, of_queue.counts);
    if (of_queue.counts.delayed == 0) continue;
    with_delayed.push_back(named.size() - 1);
    counting.push_back(count_due(of_queue.queue));
  }
  // All queues at once: the store reads what few most have one after the other without being asked again in between.
  const auto dues = co_await gather(std::move(counting));
  for (std::size_t i = 0; i < dues.size(); ++i) {
    if (!dues[i]) co_return std::unexpected(dues[i].error());
    StateCounts& counts = named[with_delayed[i]].second;
    const std::uint64_t due = std::min(*dues[i], counts.delayed);
    counts.ready += due;
    counts.delayed -= due;
  }
  std::ranges::sort(named, {}, &NamedCounts::first);
  co_return named;
}

// Of a queue's delayed jobs; of very many the first.
Coro<Result<std::uint64_t>> StoreJobBook::count_due(QueueId queue) {
  const WallTime now = clock().now();
  const auto is_due = [now](const WaitingJob& job) { return job.due_at <= now; };
  ShelfRead read{.shelf = Shelf::delayed, .limit = kFirstPage};
  const auto first = co_await or_return(store_(&Store::read_shelf, queue, read, std::string{}));
  const auto count = static_cast<std::uint64_t>(std::ranges::count_if(first, is_due));
  if (count < kFirstPage) co_return count;
  read.due_after = {first.back().due_at, first.back().id};
  read.limit = kMostDueCounted - kFirstPage;
  const auto more = co_await or_return(
      in_turn(store_(&Store::read_shelf, queue, read, std::string{}), size_of<std::vector<WaitingJob>>));
  co_return count + static_cast<std::uint64_t>(std::ranges::count_if(more, is_due));
}

}  // namespace argiope
