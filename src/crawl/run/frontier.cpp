#include "crawl/run/frontier.hpp"

#include <algorithm>
#include <limits>

#include "base/internal/fingerprint.hpp"
#include "web/url/internal/host_address.hpp"

namespace argiope {
namespace {

constexpr std::size_t kRowsAtOnce = 2000;                       // read in one go: a few milliseconds of the loop
constexpr Duration kReadPause = std::chrono::milliseconds{20};  // between reads that nobody waits for
constexpr Duration kReadPoll = std::chrono::milliseconds{2};  // between two looks whether the store is ready to be read
// Longer than any exchange may take: a lease here is given back by the visit itself.
constexpr Duration kLeaseTime = std::chrono::hours{24};

void count_url(Host& host) noexcept {
  if (host.urls < std::numeric_limits<std::uint32_t>::max()) ++host.urls;
}

// Fewer path segments and parameters first: a front page matters more than a leaf.
std::int32_t simplicity(std::string_view url) {
  return -static_cast<std::int32_t>(
      std::ranges::count_if(url, [](char c) { return c == '/' || c == '&' || c == '?'; }));
}

void note_on_shelf(Host& host, const Rank& rank) {
  if (!host.on_shelf) host.on_shelf = {rank, rank};
  if (more_important(rank, host.on_shelf->first)) host.on_shelf->first = rank;
  if (more_important(host.on_shelf->last, rank)) host.on_shelf->last = rank;
}

}  // namespace

// The window gets half of what may be in memory: it takes twice as much when all it has must wait.
Frontier::Frontier(const CrawlOptions& options, std::uint32_t part, std::uint32_t parts)
    : options_(options),
      policies_(options),
      limits_depth_(limits_depth(options)),
      part_(part),
      parts_(parts),
      clock_(std::in_place, given_clock_, Duration::zero()),
      window_(StoredQueue{}, (options.queue_size + 2 * parts - 1) / (2 * parts), *clock_,
              (options.queue_size + parts - 1) / parts, QueueWindow::OnShelves::all_but_here),
      queue_(window_.jobs()) {}

void Frontier::start_clock(TimePoint now, WallTime wall, const HostRests* rests) {
  pass_time(now);
  given_clock_.set_wall(wall);
  clock_.emplace(given_clock_, Duration::zero());
  rests_ = rests;
  hosts_.for_each([this](Host& host) { recall_rest(host); });
}

// The time that an earlier run has left of a rest. Of the crawl's own pace this run's counts.
void Frontier::recall_rest(Host& host) {
  const HostRest* kept = rests_ == nullptr || host.lost ? nullptr : rests_->of(host.site);
  if (kept == nullptr) return;
  const TimePoint now = given_clock_.now();
  Duration most = HostRests::kLongest;
  if (kept->why == RestReason::crawl_delay) most = options_.max_crawl_delay;
  if (kept->why == RestReason::pace && !host.throttled) most = rest_between_requests(host.limits);
  rest(host, std::min(clock_->to_monotonic(kept->until), saturating_add(now, most)), now, kept->why);
}

Host& Frontier::host_of(const Url& url) {
  std::string site = url.site_key();
  if (Host* known = hosts_.find(site)) return *known;
  const std::uint64_t site_fingerprint = fingerprint(site);
  Host& host = hosts_.add(std::move(site), site_fingerprint);
  if (options_.forever) host.lost.reset();  // it comes back when its URLs have rested
  host.loopback = is_loopback(url);
  host.policy = &policies_.of(host.site);
  host.throttled = is_throttled(url, *host.policy);
  host.key = queue_.key(host.site);
  host.limits = host.lost ? KeyLimits{} : limits_of_host(*host.policy, host.as_paced());
  queue_.set_key_limits(host.key, host.limits, TimePoint{});
  recall_rest(host);
  return host;
}

// A host without URLs in memory matters no more once nothing it has done is a reason to wait.
void Frontier::let_go_of_idle_hosts(TimePoint now) {
  if (!hosts_.is_full()) return;
  hosts_.sweep([&](const Host& host) { return host.rest_until <= now && queue_.forget_key(host.key, now); });
}

std::int32_t crawl_priority(const CrawlOptions& options, std::uint32_t depth, std::string_view url) {
  const auto distance = static_cast<std::int32_t>(std::min<std::uint32_t>(depth, -kLeastPriority));
  switch (options.order) {
    case CrawlOrder::bfs: return -distance;
    case CrawlOrder::dfs: return distance;
    case CrawlOrder::priority: return std::max(simplicity(url), kLeastPriority);
    // The URL's own, so that it does not matter when it was found, and the next run finds it in its place.
    case CrawlOrder::random: return static_cast<std::int32_t>(fingerprint(url, options.order_seed) >> 32) / 2;
  }
  return 0;
}

// Counted in steps that last until the year 2106.
std::int32_t late_priority(WallTime asked) noexcept {
  constexpr std::int64_t kSteps = -std::int64_t{kLeastPriority};
  const std::int64_t step = asked.time_since_epoch() / std::chrono::seconds{4};
  return static_cast<std::int32_t>(kLeastPriority - 1 - std::clamp<std::int64_t>(step, 0, kSteps - 1));
}

std::int32_t Frontier::priority_of(const UrlRecord& record) const {
  if (record.mtime != WallTime{}) return late_priority(record.mtime);
  if (record.reason == UrlReason::requisite) return kRequisitePriority;
  return crawl_priority(options_, record.depth, record.url);
}

// --- what is queued --------------------------------------------------------------------------------------------------

WaitingJob Frontier::job_of(const UrlTask& task, const Host& host) const {
  WaitingJob job;
  job.id = static_cast<JobId>(task.id);
  job.key = host.site;
  job.priority = priority_of(task);
  return job;
}

void Frontier::remember(UrlTask task) {
  if (limits_depth_) by_fingerprint_.emplace(task.fingerprint, task.id);
  tasks_.try_emplace(task.id, std::move(task));
}

void Frontier::forget(std::int64_t id) {
  const auto task = tasks_.find(id);
  if (task == tasks_.end()) return;
  if (limits_depth_) by_fingerprint_.erase(task->second.fingerprint);
  tasks_.erase(task);
}

// Whether no URL of its host on the shelf of ready ones should go before. When the window is full of what must wait, it
// gives what may start without having read them.
bool Frontier::is_its_turn(Host& host, const Lease& lease) const {
  auto& on_shelf = host.on_shelf;
  if (on_shelf && window_.ready().has_read(on_shelf->last)) on_shelf.reset();
  if (!on_shelf) return true;
  if (window_.ready().has_read(on_shelf->first)) on_shelf->first = window_.ready().first_unread();
  return !more_important(on_shelf->first, Rank{lease.priority, lease.id});
}

void Frontier::move_to(std::optional<Shelf> shelf, const UrlTask& task, Host& host) {
  if (shelf == Shelf::ready) note_on_shelf(host, {priority_of(task), static_cast<JobId>(task.id)});
  moves_.push_back({task.id, shelf, shelf ? host.site_fingerprint : 0, priority_of(task), task.depth});
}

bool Frontier::put(UrlTask task, Host& host, TimePoint due, TimePoint now) {
  pass_time(now);
  if (const auto known = tasks_.find(task.id); known != tasks_.end()) {
    if (task.counted && known->second.rotates) {
      known->second.redirects = task.redirects;
      queue_.set_due(static_cast<JobId>(task.id), now, now);
    }
    return false;
  }
  count_url(host);
  task.host = &host;
  WaitingJob job = job_of(task, host);
  if (due > now) job.due_at = stored_time(due);
  if (const auto shelf = window_.offer(job, now)) {
    move_to(*shelf, task, host);
  } else {
    remember(std::move(task));
    window_.trim(now);
    write_down_moves();
  }
  let_go_of_idle_hosts(now);
  return true;
}

void Frontier::resume(const UrlRecord& record, Host& host, UrlTask task) {
  const bool delayed = is_delayed(record, task);
  if (!record.shelf && !delayed) {
    if (record.mtime != WallTime{}) task.late = priority_of(record);
    put(std::move(task), host, TimePoint{}, TimePoint{});
    return;
  }
  resume_on_shelf(record, host);
}

void Frontier::resume_on_shelf(const UrlRecord& record, Host& host) {
  count_url(host);
  WaitingJob& job = resumed_;
  job.id = static_cast<JobId>(record.url_id);
  job.key = host.site;
  job.priority = priority_of(record);
  job.due_at = record.due;
  job.shelf = record.shelf.value_or(Shelf::delayed);
  window_.left_in_store(job);
  if (job.shelf == Shelf::ready) note_on_shelf(host, {job.priority, job.id});
  if (record.shelf != job.shelf || record.priority != job.priority) {
    moves_.push_back({record.url_id, job.shelf, host.site_fingerprint, job.priority, record.depth});
  }
  let_go_of_idle_hosts(TimePoint{});
}

void Frontier::found_nearer(std::uint64_t url_fingerprint, std::uint32_t depth, TimePoint now) {
  const auto known = by_fingerprint_.find(url_fingerprint);
  if (known == by_fingerprint_.end()) return;
  UrlTask& queued = tasks_.at(known->second);
  if (depth >= queued.depth) return;
  queued.depth = depth;
  const auto id = static_cast<JobId>(queued.id);
  queue_.set_priority(id, priority_of(queued), now);
  move_to(std::nullopt, queued, *queued.host);
}

std::optional<Frontier::Ticket> Frontier::next(TimePoint now) {
  pass_time(now);
  queue_.tick(now);
  while (window_.top_is_certain_but_for_keys()) {
    const auto lease = queue_.lease(now, kLeaseTime);
    if (!lease) break;
    window_.took(lease->key);
    UrlTask& task = tasks_.at(static_cast<std::int64_t>(lease->id));
    if (is_its_turn(*task.host, *lease)) return Ticket{*lease, &task, task.host};
    queue_.put_back(lease->token, now);
    window_.let_go(lease->id, now);
    write_down_moves();
  }
  return std::nullopt;
}

TimePoint Frontier::next_wakeup(TimePoint now) {
  if (reading_) return now + kReadPoll;
  const bool wanted = window_.wants_load(now);
  write_down_moves();
  const TimePoint read = wanted ? std::max(now, next_read_at_) : window_.next_load_time();
  const bool certain = window_.top_is_certain_but_for_keys();
  return std::min(read, certain ? queue_.next_wakeup(now) : queue_.next_change(now));
}

void Frontier::done(const Ticket& ticket, TimePoint now) {
  pass_time(now);
  queue_.done(ticket.lease.token, now);
  if (reading_) settled_.insert(ticket.task->id);
  forget(ticket.task->id);
}

void Frontier::retry(const Ticket& ticket, TimePoint due, TimePoint now) {
  pass_time(now);
  queue_.retry(ticket.lease.token, clock_->to_monotonic(stored_time(due)), now);
  note_depth(ticket, now);
}

void Frontier::put_back(const Ticket& ticket, TimePoint now) {
  pass_time(now);
  queue_.put_back(ticket.lease.token, now);
  note_depth(ticket, now);
  window_.took(ticket.lease.key);
}

// A URL that was found nearer while it was leased waits again: at the place that its task says, as the store does.
void Frontier::note_depth(const Ticket& ticket, TimePoint now) {
  const std::int32_t priority = priority_of(*ticket.task);
  if (priority != ticket.lease.priority) queue_.set_priority(ticket.lease.id, priority, now);
}

// --- the store -------------------------------------------------------------------------------------------------------

// URLs that the window does not keep go to the shelf it names, but for those fetched while they were read once more.
void Frontier::write_down_moves() {
  for (const QueueWindow::Move& moved : window_.take_moves()) {
    const UrlTask& task = tasks_.at(static_cast<std::int64_t>(moved.id));
    if (!settled_.contains(task.id)) move_to(moved.shelf, task, *task.host);
    forget(task.id);
  }
}

bool Frontier::wants_read(TimePoint now) {
  pass_time(now);
  queue_.tick(now);
  window_.trim(now);
  write_down_moves();
  const bool wanted = !reading_ && window_.wants_load(now);
  write_down_moves();
  // A shard with something to do can wait until more is wanted; a read makes the store commit.
  return wanted && (now >= next_read_at_ || !window_.top_is_certain_but_for_keys());
}

std::vector<Frontier::Read> Frontier::begin_read(TimePoint now) {
  settled_.clear();
  std::vector<Read> reads;
  std::size_t rows = 0;
  for (QueueWindow::Load& load : window_.loads(now)) {
    if (rows >= kRowsAtOnce) break;
    load.read.limit = std::min(load.read.limit, kRowsAtOnce - rows);
    rows += load.read.limit;
    const std::uint64_t site = load.read.shelf == Shelf::set_aside ? fingerprint(load.key) : 0;
    reads.push_back({std::move(load), {.site = site, .part = part_, .parts = parts_}});
  }
  reading_ = !reads.empty();
  write_down_moves();
  return reads;
}

void Frontier::take_rows(const Read& read, std::vector<Row> rows, TimePoint now) {
  pass_time(now);
  std::vector<WaitingJob> jobs;
  std::vector<std::int64_t> fresh;
  jobs.reserve(rows.size());
  for (Row& row : rows) {
    WaitingJob& job = jobs.emplace_back(job_of(row.task, *row.host));
    job.shelf = read.load.read.shelf;
    if (job.shelf == Shelf::delayed) job.due_at = row.due;
    if (tasks_.contains(row.task.id)) continue;
    fresh.push_back(row.task.id);
    row.task.host = row.host;
    remember(std::move(row.task));
  }
  window_.loaded(read.load, jobs, now);
  write_down_moves();
  for (const std::int64_t id : settled_) {
    if (tasks_.contains(id)) window_.forget(static_cast<JobId>(id), now);
  }
  for (const std::int64_t id : fresh) {
    if (!queue_.contains(static_cast<JobId>(id))) forget(id);
  }
}

void Frontier::end_read(TimePoint now) {
  reading_ = false;
  settled_.clear();
  next_read_at_ = now + kReadPause;
  queue_.tick(now);
}

// --- hosts -----------------------------------------------------------------------------------------------------------

bool Frontier::rest(Host& host, TimePoint until, TimePoint now, RestReason why) {
  queue_.rest_key(host.key, until, now);
  if (until <= host.rest_until) return false;
  host.rest_until = until;
  host.rest_why = why;
  return true;
}

void Frontier::hold(Host& host, TimePoint now) { queue_.rest_key(host.key, kNever, now); }

void Frontier::let_go(Host& host, TimePoint now) {
  queue_.wake_key(host.key, now);
  if (host.rest_until > now) queue_.rest_key(host.key, host.rest_until, now);
}

void Frontier::lift_limits(Host& host, TimePoint now) {
  host.limits = {};
  host.rest_until = TimePoint::min();
  queue_.set_key_limits(host.key, host.limits, now);
  queue_.wake_key(host.key, now);
}

void Frontier::note_latency(Host& host, Duration latency, bool is_error, TimePoint now) {
  const auto [pace, rate] = next_pace(*host.policy, host.as_paced(), latency, is_error);
  if (pace == host.pace) return;
  host.pace = pace;
  if (rate == host.limits.rate) return;
  host.limits.rate = rate;
  queue_.set_key_limits(host.key, host.limits, now);
}

void Frontier::restore_limits(Host& host, TimePoint now) {
  host.limits = limits_of_host(*host.policy, host.as_paced());
  queue_.set_key_limits(host.key, host.limits, now);
}

void Frontier::set_crawl_delay(Host& host, Duration delay, TimePoint now) {
  host.crawl_delay = delay;
  restore_limits(host, now);
}

}  // namespace argiope
