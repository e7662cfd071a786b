#include "store/directory_driver.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "jobs/internal/job_rules.hpp"
#include "jobs/internal/job_tally.hpp"
#include "jobs/internal/job_transitions.hpp"
#include "jobs/internal/schedule_rules.hpp"
#include "store/jobs/internal/job_range.hpp"
#include "store/jobs/internal/queue_list.hpp"
#include "store/jobs/internal/store_driver.hpp"
#include "store/jobs/store_place.hpp"
#include "store/sqlite/internal/sqlite.hpp"

namespace argiope {

using namespace job_rules;

namespace {

// --- rows ------------------------------------------------------------------------------------------------------------

struct DirectoryJob {
  JobRow row;
  std::string name, function, payload, result, error, worker;
  std::uint32_t max_attempts = 0;
  std::int64_t lease_ms = 0;
  WallTime created_at{};
  WallTime lease_until{};
  bool is_remote = false;
  std::vector<Attempt> attempts;
  void fields(auto& io) {
    io(row, name, function, payload, result, error, worker, max_attempts, lease_ms, created_at, lease_until, is_remote,
       attempts);
  }
};
struct DirectoryQueue {
  std::string name;
  std::string config;  // as JSON
  bool is_erased = false;
  std::uint64_t ended = 0;
  void fields(auto& io) { io(name, config, is_erased, ended); }
};
struct DirectorySchedule {
  StoredSchedule stored;
  std::map<std::uint64_t, ScheduleRun> runs;  // the last kRunsKept, and older ones that go on
  std::optional<ScheduleOutput> output;
  void fields(auto& io) { io(stored, runs, output); }
};
struct DirectoryRequest {
  RequestKey key;
  WallTime at{};
  std::string reply;
  void fields(auto& io) { io(key.key, key.digest, at, reply); }
};
// What there is once.
struct DirectoryMeta {
  JobCounters counters;
  ScheduleId last_schedule = 0;
  std::uint64_t last_request = 0;
  std::map<std::string, std::int64_t> remembered;
  void fields(auto& io) {
    io(counters.last_id, counters.last_chosen_id, counters.last_token, last_schedule, last_request, remembered);
  }
};
struct DirectoryChange {
  std::string file;
  std::optional<std::string> bytes;  // nullopt: it goes
  void fields(auto& io) { io(file, bytes); }
};

// --- bytes -----------------------------------------------------------------------------------------------------------

// Fields one after the other: appended, or read back in the same order. Structures say which they are: fields(), or
// fields_of().
template <bool kWrites>
class DirectoryBytes {
 public:
  explicit DirectoryBytes(std::string bytes = {}) : bytes_(std::move(bytes)) {}

  template <class... Fields>
  void operator()(Fields&... fields) {
    (field(fields), ...);
  }
  std::string take() { return std::move(bytes_); }

 private:
  void raw(char* data, std::size_t size) {
    if constexpr (kWrites) {
      bytes_.append(data, size);
    } else {
      if (bytes_.size() - at_ < size) throw DatabaseFailed{{Errc::corrupt, "a file of the directory is too short"}};
      std::memcpy(data, bytes_.data() + at_, size);
      at_ += size;
    }
  }
  std::uint64_t size(std::uint64_t size) {
    field(size);
    return size;
  }
  template <class Field>
  void field(Field& value) {
    if constexpr (std::is_integral_v<Field> || std::is_enum_v<Field>) {
      auto number = static_cast<std::uint64_t>(value);
      raw(reinterpret_cast<char*>(&number), sizeof number);
      value = static_cast<Field>(number);
    } else if constexpr (std::is_same_v<Field, WallTime>) {
      Duration::rep count = value.time_since_epoch().count();
      field(count);
      value = WallTime{Duration{count}};
    } else if constexpr (std::is_same_v<Field, std::string>) {
      value.resize(size(value.size()));
      raw(value.data(), value.size());
    } else if constexpr (requires { value.resize(0); }) {
      value.resize(size(value.size()));
      for (auto& one : value) field(one);
    } else if constexpr (requires { typename Field::mapped_type; }) {
      std::vector<std::pair<typename Field::key_type, typename Field::mapped_type>> all(value.begin(), value.end());
      field(all);
      value = Field(all.begin(), all.end());
    } else if constexpr (requires { value.has_value(); }) {
      bool is_there = value.has_value();
      field(is_there);
      if (is_there && !value) value.emplace();
      if (is_there) field(*value);
    } else if constexpr (requires { value.first; }) {
      (*this)(value.first, value.second);
    } else if constexpr (requires { value.fields(*this); }) {
      value.fields(*this);
    } else {
      fields_of(*this, value);
    }
  }

  std::string bytes_;
  std::size_t at_ = 0;
};

void fields_of(auto& io, JobRow& row) {
  io(row.id, row.queue, row.state, row.rank, row.priority, row.due_ms, row.attempts, row.expiries, row.pending,
     row.cancelled_with_others, row.flags, row.token, row.fence, row.ended_ms, row.key, row.unique, row.schedule,
     row.run, row.tally);
}
void fields_of(auto& io, Attempt& attempt) {
  io(attempt.number, attempt.ended_at, attempt.outcome, attempt.error, attempt.worker);
}
void fields_of(auto& io, SchedulePlace& place) {
  io(place.next, place.last, place.fired, place.missed, place.entries, place.paused);
}
void fields_of(auto& io, StoredSchedule& stored) {
  io(stored.id, stored.version, stored.name, stored.trigger, stored.definition, stored.place, stored.active);
}
void fields_of(auto& io, ScheduleRun& run) {
  io(run.number, run.planned, run.last_planned, run.count, run.fired_at, run.ended_at, run.outcome, run.job, run.error);
}
void fields_of(auto& io, ScheduleOutput& output) {
  io(output.run, output.job, output.ended_at, output.outcome, output.error, output.output);
}

template <class... Values>
std::string directory_bytes(Values... values) {
  DirectoryBytes<true> io;
  io(values...);
  return io.take();
}

// --- files and tables ------------------------------------------------------------------------------------------------

// Throws what std::filesystem and streams throw.
class DirectoryFiles {
 public:
  // Makes it where it is not there, and finishes what was being committed.
  explicit DirectoryFiles(std::filesystem::path root) : root_(std::move(root)) {
    std::filesystem::create_directories(root_);
    auto left = read(kCommit);
    if (!left) return;
    std::vector<DirectoryChange> changes;
    DirectoryBytes<false> io(std::move(*left));
    io(changes);
    apply(changes);
  }
  // All files of a folder, which is made where it is not there.
  std::vector<std::string> in(const std::string& folder) {
    std::filesystem::create_directories(root_ / folder);
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(root_ / folder)) {
      found.push_back(entry.path().filename().string());
    }
    return found;
  }
  std::optional<std::string> read(const std::string& file) const {
    std::ifstream in(root_ / file, std::ios::binary);
    if (!in) return std::nullopt;
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  void commit(const std::vector<DirectoryChange>& changes) {
    if (changes.empty()) return;
    const std::string unnamed = std::string(kCommit) + ".new";
    write(unnamed, directory_bytes(changes));
    std::filesystem::rename(root_ / unnamed, root_ / kCommit);
    apply(changes);
  }

 private:
  static constexpr const char* kCommit = "commit";

  void write(const std::string& file, const std::string& bytes) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream out;
    out.exceptions(std::ios::failbit | std::ios::badbit);
    out.open(root_ / file, std::ios::binary | std::ios::trunc);
    out << bytes;
    out.close();
  }
  void apply(const std::vector<DirectoryChange>& changes) {
    for (const DirectoryChange& change : changes) {
      change.bytes ? write(change.file, *change.bytes) : (void)std::filesystem::remove(root_ / change.file);
    }
    std::filesystem::remove(root_ / kCommit);
  }

  const std::filesystem::path root_;
};

std::string directory_file(std::uint64_t key) { return std::to_string(key); }
std::string directory_file(const std::pair<std::uint64_t, std::uint64_t>& key) {
  return std::to_string(key.first) + "-" + std::to_string(key.second);
}

// Rows by their keys, each in a file of the folder `name`. Key: a number, or a pair of numbers.
template <class Key, class Row>
class DirectoryTable {
 public:
  explicit DirectoryTable(std::string name) : name_(std::move(name)) {}

  const std::map<Key, Row>& all() const noexcept { return rows_; }
  const Row* find(const Key& key) const {
    const auto found = rows_.find(key);
    return found == rows_.end() ? nullptr : &found->second;
  }
  // To be changed; it is made where it is not there.
  Row& operator[](const Key& key) {
    remember(key);
    return rows_[key];
  }
  void erase(const Key& key) {
    remember(key);
    rows_.erase(key);
  }

  void load(DirectoryFiles& files) {
    for (const std::string& file : files.in(name_)) {
      DirectoryBytes<false> io(files.read(name_ + "/" + file).value_or(""));
      Key key{};
      Row row{};
      io(key, row);
      rows_.insert_or_assign(key, std::move(row));
    }
  }
  void mark() {
    keep();
    is_marked_ = true;
  }
  void keep() {
    is_marked_ = false;
    at_mark_.clear();
  }
  void take_back() {
    restore(at_mark_);
    is_marked_ = false;
  }
  void collect(std::vector<DirectoryChange>& changes) {
    for (const auto& [key, before] : before_) {
      const Row* const row = find(key);
      if (row == nullptr && !before) continue;
      DirectoryChange change{.file = name_ + "/" + directory_file(key), .bytes = std::nullopt};
      if (row != nullptr) change.bytes = directory_bytes(key, *row);
      changes.push_back(std::move(change));
    }
  }
  void committed() { before_.clear(); }
  void roll_back() {
    restore(before_);
    keep();
  }

 private:
  using Before = std::map<Key, std::optional<Row>>;  // nullopt: there was none

  void remember(const Key& key) {
    const Row* const row = find(key);
    const std::optional<Row> before = row == nullptr ? std::nullopt : std::optional(*row);
    if (is_marked_) at_mark_.try_emplace(key, before);
    before_.try_emplace(key, before);
  }
  void restore(Before& rows) {
    for (auto& [key, before] : rows) {
      if (before) {
        rows_.insert_or_assign(key, std::move(*before));
      } else {
        rows_.erase(key);
      }
    }
    rows.clear();
  }

  const std::string name_;
  std::map<Key, Row> rows_;
  Before before_;   // the transaction
  Before at_mark_;  // mark()
  bool is_marked_ = false;
};

struct DirectoryTables {
  DirectoryTable<std::uint64_t, DirectoryQueue> queues{"queues"};
  DirectoryTable<JobId, DirectoryJob> jobs{"jobs"};
  DirectoryTable<std::pair<JobId, JobId>, bool> links{"links"};                       // waited for, job
  DirectoryTable<std::uint64_t, std::pair<JobId, std::string>> failures{"failures"};  // by slot: whose, and how
  DirectoryTable<ScheduleId, DirectorySchedule> schedules{"schedules"};
  DirectoryTable<std::uint64_t, DirectoryRequest> requests{"requests"};  // in the order they came
  DirectoryMeta meta;

  void each(auto act) { act(queues), act(jobs), act(links), act(failures), act(schedules), act(requests); }
};

// --- groups of calls -------------------------------------------------------------------------------------------------

class DirectoryQueues final : public QueueRows {
 public:
  explicit DirectoryQueues(DirectoryTables& tables) : tables_(tables) {}
  // As the table has them.
  void load() {
    list_.clear();
    for (const auto& [id, queue] : tables_.queues.all()) {
      const auto config = parse_queue_config(queue.config);
      if (!config)
        throw DatabaseFailed{{Errc::corrupt, "directory: queue " + queue.name + ": " + config.error().message}};
      list_.add(queue.name, *config);
      if (queue.is_erased) list_.erase(static_cast<QueueId>(id));
    }
  }

  const std::vector<StoredQueue>& all() override { return list_.all(); }
  QueueId find(std::string_view name) override { return list_.find(name); }
  QueueId add(const std::string& name, const QueueConfig& config) override {
    const QueueId id = list_.add(name, config);
    DirectoryQueue& queue = tables_.queues[id];
    queue.name = name;
    queue.config = to_json(config);
    queue.is_erased = false;
    return id;
  }
  void configure(QueueId queue, const QueueConfig& config) override {
    list_.configure(queue, config);
    tables_.queues[queue].config = to_json(config);
  }
  bool is_empty(QueueId queue) override {
    return std::ranges::none_of(tables_.jobs.all(), [&](const auto& job) { return job.second.row.queue == queue; });
  }
  void erase(QueueId queue) override {
    list_.erase(queue);
    tables_.queues[queue].is_erased = true;
  }
  // What is added from mark() on can be taken back.
  void mark() { list_.mark(); }
  void take_back() { list_.take_back(); }

 private:
  DirectoryTables& tables_;
  QueueList list_;
};

class DirectoryJobs final : public JobRows, public LeaseRows, public JobHistory, public JobLooks {
 public:
  DirectoryJobs(DirectoryTables& tables, DirectoryQueues& queues) : tables_(tables), queues_(queues) {}
  // What runs are leases of an owner before.
  void open() {
    for (const auto& [id, job] : tables_.jobs.all()) {
      if (job.row.runs()) old_.insert(id);
    }
  }
  std::vector<OldLease> old_leases() const {
    std::vector<OldLease> old;
    for (const JobId id : old_) {
      const DirectoryJob* const job = tables_.jobs.find(id);
      if (job == nullptr || !job->row.runs()) continue;
      old.push_back({id, job->row.token, job->lease_until, job->worker, job->is_remote});
    }
    return old;
  }

  std::optional<JobRow> load(JobId id) override {
    const DirectoryJob* const job = tables_.jobs.find(id);
    return job == nullptr ? std::nullopt : std::optional(job->row);
  }
  void insert(const JobRow& row, const NewJob& wanted, WallTime now) override {
    tables_.jobs[row.id] = {.row = row,
                            .name = wanted.name,
                            .function = wanted.function,
                            .payload = wanted.payload,
                            .max_attempts = wanted.max_attempts,
                            .lease_ms = lease_ms(wanted.lease_time),
                            .created_at = now};
  }
  void save(const JobRow& before, const JobRow& after) override {
    if (after.state == RowState::done && before.state != RowState::done) count_ended(after.queue);
    DirectoryJob& job = tables_.jobs[after.id];
    job.row = after;
    if (!before.runs() || after.runs()) return;
    job.worker.clear();
    job.lease_until = {};
  }
  void write_work(JobId id, const NewJob& wanted) override {
    DirectoryJob& job = tables_.jobs[id];
    job.function = wanted.function;
    job.payload = wanted.payload;
    job.lease_ms = lease_ms(wanted.lease_time);
  }
  void erase(const JobRow& row) override { tables_.jobs.erase(row.id); }
  std::optional<ErasedJob> erase_done(JobId id, std::uint64_t token) override {
    const DirectoryJob* const job = tables_.jobs.find(id);
    if (job == nullptr || !job->row.runs() || job->row.token != token) return std::nullopt;
    const ErasedJob erased{(job->row.flags & JobRow::kHasDependants) != 0, job->row.schedule, job->row.run};
    count_ended(job->row.queue);
    tables_.jobs.erase(id);
    return erased;
  }
  std::vector<JobId> erase_ended(QueueId queue, JobState state, WallTime before, std::size_t limit) override {
    std::vector<std::pair<std::int64_t, JobId>> old;
    for (const auto& [id, job] : tables_.jobs.all()) {
      const bool is_one =
          job.row.queue == queue && job.row.state == row_state(state) && job.row.ended_ms < to_ms(before);
      if (is_one) old.emplace_back(job.row.ended_ms, id);
    }
    std::ranges::sort(old);
    old.resize(std::min(old.size(), limit));
    std::vector<JobId> erased;
    for (const auto& [ended_ms, id] : old) {
      tables_.jobs.erase(id);
      erased.push_back(id);
    }
    return erased;
  }
  JobId find_name(const std::string& name) override {
    const auto found =
        std::ranges::find_if(tables_.jobs.all(), [&](const auto& job) { return job.second.name == name; });
    return name.empty() || found == tables_.jobs.all().end() ? 0 : found->first;
  }
  JobId find_unique(QueueId queue, const std::string& unique) override {
    const auto found = std::ranges::find_if(tables_.jobs.all(), [&](const auto& job) {
      return job.second.row.queue == queue && job.second.row.holds_unique() && job.second.row.unique == unique;
    });
    return found == tables_.jobs.all().end() ? 0 : found->first;
  }
  void link(JobId waited_for, JobId job) override {
    (void)tables_.links[{waited_for, job}];
    tables_.jobs[waited_for].row.flags |= JobRow::kHasDependants;
  }
  void unlink(JobId job) override {
    for (const JobId other : waits_for(job, tables_.links.all().size())) tables_.links.erase({other, job});
  }
  std::vector<JobId> take_dependants(JobId waited_for) override {
    std::vector<JobId> taken;
    const auto& links = tables_.links.all();
    for (auto link = links.lower_bound({waited_for, 0}); link != links.end() && link->first.first == waited_for;
         ++link) {
      taken.push_back(link->first.second);
    }
    for (const JobId job : taken) tables_.links.erase({waited_for, job});
    return taken;
  }
  std::vector<JobId> waits_for(JobId job, std::size_t limit) override {
    std::vector<JobId> found;
    for (const auto& [link, nothing] : tables_.links.all()) {
      if (found.size() == limit) break;
      if (link.second == job) found.push_back(link.first);
    }
    return found;
  }

  std::vector<std::optional<JobRecord>> lease(std::span<const LeaseRequest> leases) override {
    std::vector<std::optional<JobRecord>> records(leases.size());
    LeasedBytes bytes;
    for (std::size_t i = 0; i < leases.size(); ++i) {
      const LeaseRequest& lease = leases[i];
      tables_.meta.counters.last_token = lease.token;
      if (bytes.is_full()) {
        records[i] = left_as_it_is(lease.id);
        continue;
      }
      const DirectoryJob* const found = tables_.jobs.find(lease.id);
      if (found == nullptr || found->row.runs() || !is_leasable(found->row.state)) continue;
      if (!bytes.take(found->payload.size() + found->result.size())) {
        records[i] = left_as_it_is(lease.id);
        continue;
      }
      DirectoryJob& job = tables_.jobs[lease.id];
      job.row.token = lease.token;
      job.worker = lease.worker;
      job.is_remote = lease.remote;
      job.lease_until = from_ms(lease_end(lease, job.lease_ms));
      old_.erase(lease.id);
      records[i] = record_of(job, true);
    }
    return records;
  }
  void renew(std::span<const LeaseRequest> leases) override {
    for (const LeaseRequest& lease : leases) {
      const DirectoryJob* const found = tables_.jobs.find(lease.id);
      if (found == nullptr || !found->row.runs() || found->row.token != lease.token) continue;
      DirectoryJob& job = tables_.jobs[lease.id];
      job.worker = lease.worker;
      job.is_remote = lease.remote;
      job.lease_until = stored(lease.until);
      old_.erase(lease.id);
    }
  }

  void write_attempt(JobId id, const Attempt& attempt, const std::string* result) override {
    DirectoryJob& job = tables_.jobs[id];
    job.attempts.push_back(attempt);
    if (job.attempts.size() > kMostAttemptsKept) job.attempts.erase(job.attempts.begin());
    job.error = attempt.error;
    if (result != nullptr) job.result = *result;
  }
  void write_end(JobId id, const std::string& error, const std::string* result) override {
    DirectoryJob& job = tables_.jobs[id];
    job.error = error;
    if (result != nullptr) job.result = *result;
    job.row.schedule = 0;
    job.row.run = 0;
  }
  void write_result(JobId id, const std::string& result) override { tables_.jobs[id].result = result; }
  void write_error(JobId id, const std::string& error) override { tables_.jobs[id].error = error; }
  std::string error_of(JobId id) override { return tables_.jobs.find(id)->error; }
  std::vector<Attempt> attempts(JobId id) override {
    const DirectoryJob* const job = tables_.jobs.find(id);
    return job == nullptr ? std::vector<Attempt>{} : job->attempts;
  }
  std::string_view failure_of(JobId id) override {
    const auto* const failure = tables_.failures.find(id % kFailuresRemembered);
    return failure == nullptr || failure->first != id ? std::string_view{} : how_failed(failure->second);
  }
  void set_failure(JobId id, std::string_view how) override {
    if (!how.empty()) {
      tables_.failures[id % kFailuresRemembered] = {id, std::string(how)};
    } else if (!failure_of(id).empty()) {
      tables_.failures.erase(id % kFailuresRemembered);
    }
  }

  std::vector<WaitingJob> load_ranked(QueueId queue, const std::string* key, Rank after, std::size_t limit) override {
    std::vector<WaitingJob> found;
    for (const Rank& rank : shelf(queue, key)) {
      if (found.size() == limit) break;
      if (more_important(after, rank)) found.push_back(waiting(tables_.jobs.find(rank.id)->row));
    }
    return found;
  }
  std::uint64_t count_ranked(QueueId queue, const std::string* key, Rank before, std::uint64_t most) override {
    const std::vector<Rank> ranks = shelf(queue, key);
    const auto is_before = [&](const Rank& rank) { return more_important(rank, before); };
    return std::min(most, static_cast<std::uint64_t>(std::ranges::count_if(ranks, is_before)));
  }
  std::vector<std::string> keys_set_aside(QueueId queue, const std::optional<std::string>& after,
                                          std::size_t limit) override {
    std::set<std::string> keys;
    for (const auto& [id, job] : tables_.jobs.all()) {
      const JobRow& row = job.row;
      const bool is_aside = row.queue == queue && row.state == RowState::set_aside && !row.runs();
      if (is_aside && (!after || row.key > *after)) keys.insert(row.key);
    }
    std::vector<std::string> found(keys.begin(), keys.end());
    found.resize(std::min(found.size(), limit));
    return found;
  }
  std::vector<WaitingJob> load_delayed(QueueId queue, DueRank after, std::size_t limit) override {
    std::vector<std::pair<std::int64_t, JobId>> delayed;
    for (const auto& [id, job] : tables_.jobs.all()) {
      const JobRow& row = job.row;
      const std::pair place(row.due_ms, id);
      const bool is_one = row.queue == queue && row.state == RowState::delayed && !row.runs();
      if (is_one && place > std::pair(to_ms(after.due_at), after.id)) delayed.push_back(place);
    }
    std::ranges::sort(delayed);
    delayed.resize(std::min(delayed.size(), limit));
    std::vector<WaitingJob> found;
    for (const auto& [due_ms, id] : delayed) found.push_back(waiting(tables_.jobs.find(id)->row));
    return found;
  }
  std::optional<JobRecord> record(JobId id) override {
    const DirectoryJob* const job = tables_.jobs.find(id);
    return job == nullptr ? std::nullopt : std::optional(record_of(*job, true));
  }
  JobSlice list(const JobFilter& filter) override {
    const auto& all = tables_.jobs.all();
    JobSlice slice{.jobs = {}, .after = filter.after, .is_last = true};
    const QueueId queue = queues_.find(filter.queue);
    if (!filter.queue.empty() && queue == 0) return slice;
    if (!all.empty()) slice.newest = all.rbegin()->first;
    const JobRange range = range_of(filter);
    std::vector<JobId> ids;
    for (const auto& [id, job] : all) {
      if (!range.is_empty() && id >= range.first && id <= range.last) ids.push_back(id);
    }
    if (filter.newest_first) std::ranges::reverse(ids);
    std::size_t bytes = 0;
    for (const JobId id : ids) {
      slice.is_last =
          slice.jobs.size() < filter.limit && slice.looked < filter.most_looked && bytes < filter.most_bytes;
      if (!slice.is_last) break;
      ++slice.looked;
      slice.after = id;
      const DirectoryJob& job = *tables_.jobs.find(id);
      const JobRow& row = job.row;
      if ((queue != 0 && row.queue != queue) || (filter.key && row.key != *filter.key)) continue;
      const bool is_wanted = !filter.state || is_listed_as(*filter.state, row.shown_state(), row.pending,
                                                           from_ms(row.due_ms), filter.due_by);
      if (!is_wanted) continue;
      slice.jobs.push_back(record_of(job, filter.payloads));
      bytes += slice.jobs.back().payload.size() + slice.jobs.back().result.size();
    }
    return slice;
  }
  std::vector<QueueCounts> counts() override {
    std::vector<QueueCounts> counts;
    for (const auto& [id, queue] : tables_.queues.all()) counts.push_back({static_cast<QueueId>(id), {}, queue.ended});
    for (const auto& [id, job] : tables_.jobs.all()) ++counts[job.row.queue - 1].counts.of(job.row.shown_state());
    return counts;
  }

 private:
  std::vector<Rank> shelf(QueueId queue, const std::string* key) const {
    const RowState state = key == nullptr ? RowState::ready : RowState::set_aside;
    std::vector<Rank> ranks;
    for (const auto& [id, job] : tables_.jobs.all()) {
      const JobRow& row = job.row;
      if (row.queue != queue || row.state != state || row.runs() || (key != nullptr && row.key != *key)) continue;
      ranks.push_back({row.rank, id});
    }
    std::ranges::sort(ranks, more_important);
    return ranks;
  }
  void count_ended(QueueId queue) { ++tables_.queues[queue].ended; }
  JobRecord record_of(const DirectoryJob& job, bool with_payloads) const {
    const JobRow& row = job.row;
    return {.id = row.id,
            .name = job.name,
            .queue = queues_.all()[row.queue - 1].name,
            .key = row.key,
            .unique = row.unique,
            .state = row.shown_state(),
            .priority = row.priority,
            .due_at = from_ms(row.due_ms),
            .function = job.function,
            .payload = with_payloads ? job.payload : std::string(),
            .attempts = row.attempts,
            .max_attempts = job.max_attempts,
            .expiries = row.expiries,
            .tally = job_tally::tally_of(row.tally, row.attempts, row.expiries, row.runs()),
            .lease_time = std::chrono::milliseconds{job.lease_ms},
            .pending = row.pending,
            .if_failed = row.cancelled_with_others ? DependencyPolicy::cancel : DependencyPolicy::run,
            .created_at = job.created_at,
            .ended_at = from_ms(row.ended_ms),
            .result = with_payloads ? job.result : std::string(),
            .error = job.error,
            .token = row.token,
            .worker = job.worker,
            .lease_until = job.lease_until,
            .cancel_asked = row.runs() && (row.flags & JobRow::kCancelAsked) != 0,
            .schedule = row.schedule,
            .run = row.run};
  }

  DirectoryTables& tables_;
  DirectoryQueues& queues_;
  std::set<JobId> old_;
};

class DirectorySchedules final : public ScheduleRows {
 public:
  explicit DirectorySchedules(DirectoryTables& tables) : tables_(tables) {}

  std::vector<PutScheduleReply> put(const std::vector<PutSchedule>& schedules) override {
    std::vector<PutScheduleReply> replies;
    for (const PutSchedule& wanted : schedules) replies.push_back(put(wanted));
    return replies;
  }
  bool erase(ScheduleId id) override {
    if (tables_.schedules.find(id) == nullptr) return false;
    tables_.schedules.erase(id);
    return true;
  }
  std::vector<StoredSchedule> list(const ScheduleFilter& filter) override {
    std::vector<StoredSchedule> found;
    const auto& all = tables_.schedules.all();
    for (auto at = all.upper_bound(filter.after); at != all.end() && found.size() < filter.limit; ++at) {
      StoredSchedule& one = found.emplace_back(at->second.stored);
      if (!filter.texts) one.name = one.trigger = one.definition = {};
    }
    return found;
  }
  std::optional<StoredSchedule> get(ScheduleId id) override {
    const DirectorySchedule* const found = tables_.schedules.find(id);
    return found == nullptr ? std::nullopt : std::optional(found->stored);
  }
  std::optional<StoredSchedule> find(std::string_view name) override {
    for (const auto& [id, schedule] : tables_.schedules.all()) {
      if (schedule.stored.name == name) return schedule.stored;
    }
    return std::nullopt;
  }
  std::optional<ScheduleView> look(const ScheduleLook& look) override {
    const DirectorySchedule* const found = tables_.schedules.find(look.id);
    if (found == nullptr) return std::nullopt;
    ScheduleView view{.schedule = found->stored};
    if (!found->runs.empty()) view.last_entry = found->runs.rbegin()->second;
    std::size_t left_out = look.newest_left_out;
    for (auto at = found->runs.rbegin(); at != found->runs.rend() && view.active_jobs.size() < look.most; ++at) {
      if (at->second.outcome != RunOutcome::running) continue;
      if (left_out > 0) {
        --left_out;
      } else {
        view.active_jobs.push_back(at->second.job);
      }
    }
    std::ranges::reverse(view.active_jobs);
    return view;
  }
  std::optional<ScheduleRun> run(ScheduleId id, std::uint64_t number) override {
    const DirectorySchedule* const found = tables_.schedules.find(id);
    if (found == nullptr) return std::nullopt;
    const auto run = found->runs.find(number);
    return run == found->runs.end() ? std::nullopt : std::optional(run->second);
  }
  std::vector<ScheduleRun> runs(ScheduleId id, std::size_t limit) override {
    std::vector<ScheduleRun> last;
    const DirectorySchedule* const found = tables_.schedules.find(id);
    if (found == nullptr || found->runs.empty()) return last;
    const std::uint64_t newest = found->runs.rbegin()->first;
    for (auto at = found->runs.rbegin(); at != found->runs.rend() && last.size() < limit; ++at) {
      if (at->first + kRunsKept > newest) last.push_back(at->second);
    }
    return last;
  }
  std::optional<ScheduleOutput> output(ScheduleId id) override {
    const DirectorySchedule* const found = tables_.schedules.find(id);
    return found == nullptr ? std::nullopt : found->output;
  }
  bool advance(const FireRequest& step, std::uint64_t entries, std::uint32_t started) override {
    const DirectorySchedule* const found = tables_.schedules.find(step.id);
    if (found == nullptr || found->stored.version != step.version || found->stored.place.entries != entries)
      return false;
    StoredSchedule& stored = tables_.schedules[step.id].stored;
    ++stored.version;
    stored.place = schedule_rules::stored(step.place);
    stored.active += started;
    return true;
  }
  void write_runs(const FireRequest& step, const std::vector<ScheduleRun>& runs) override {
    auto& kept = tables_.schedules[step.id].runs;
    if (step.amended) kept[step.amended->number] = schedule_rules::stored(*step.amended);
    for (const ScheduleRun& run : runs) {
      kept[run.number] = schedule_rules::stored(run);
      const auto pushed_out = run.number > kRunsKept ? kept.find(run.number - kRunsKept) : kept.end();
      if (pushed_out != kept.end() && pushed_out->second.outcome != RunOutcome::running) kept.erase(pushed_out);
    }
  }
  void take_off_started(ScheduleId id, std::uint32_t count) override { tables_.schedules[id].stored.active -= count; }
  void end_run(const EndedRun& run, WallTime at, std::string_view error, std::string_view result) override {
    if (tables_.schedules.find(run.schedule) == nullptr) return;
    DirectorySchedule& schedule = tables_.schedules[run.schedule];
    const std::string cut(schedule_rules::cut_error(error));
    if (!result.empty()) {
      schedule.output = ScheduleOutput{run.number, run.job, stored(at), run.outcome, cut, std::string(result)};
    }
    --schedule.stored.active;
    const auto entry = schedule.runs.find(run.number);
    if (entry == schedule.runs.end()) return;  // it is still to be written
    if (run.number + kRunsKept <= schedule.runs.rbegin()->first) {
      schedule.runs.erase(entry);
      return;
    }
    entry->second.outcome = run.outcome;
    entry->second.ended_at = stored(at);
    entry->second.error = cut;
  }

 private:
  PutScheduleReply put(const PutSchedule& wanted) {
    using enum PutScheduleOutcome;
    const auto old = find(wanted.name);
    const auto outcome = schedule_rules::outcome_of(wanted, old ? std::optional(old->version) : std::nullopt);
    if (outcome != added && outcome != replaced) {
      return old ? PutScheduleReply{outcome, old->id, old->version} : PutScheduleReply{outcome};
    }
    const ScheduleId id = old ? old->id : ++tables_.meta.last_schedule;
    StoredSchedule& stored = tables_.schedules[id].stored;
    const std::uint64_t entries = stored.place.entries;  // of a new one: none
    stored.id = id;
    ++stored.version;
    stored.name = wanted.name;
    stored.trigger = wanted.trigger;
    stored.definition = wanted.definition;
    stored.place = schedule_rules::stored(wanted.place);
    stored.place.entries = entries;
    return {outcome, id, stored.version};
  }

  DirectoryTables& tables_;
};

class DirectoryKeys final : public KeyRows {
 public:
  explicit DirectoryKeys(DirectoryTables& tables) : tables_(tables) {}
  std::optional<KeptRequest> find(const std::string& key) override {
    for (const auto& [number, request] : tables_.requests.all()) {
      if (request.key.key == key) return KeptRequest{request.key.digest, request.reply};
    }
    return std::nullopt;
  }
  void write(const RequestKey& key, WallTime at, const std::string& reply) override {
    tables_.requests[++tables_.meta.last_request] = {key, at, reply};
  }
  std::size_t prune(WallTime before, std::size_t most, std::size_t limit) override {
    std::size_t count = 0;
    for (; !tables_.requests.all().empty() && count < limit; ++count) {
      const auto& [number, request] = *tables_.requests.all().begin();
      if (request.at >= stored(before) && tables_.requests.all().size() <= most) break;
      tables_.requests.erase(std::uint64_t{number});
    }
    return count;
  }

 private:
  DirectoryTables& tables_;
};

// --- the driver ------------------------------------------------------------------------------------------------------

class DirectoryDriver final : public DriverAtHand, public Transaction, public OwnerRows {
 public:
  explicit DirectoryDriver(std::filesystem::path root) : files_(std::move(root)) {
    tables_.each([&](auto& table) { table.load(files_); });
    if (auto meta = files_.read(kMeta)) {
      DirectoryBytes<false> io(std::move(*meta));
      io(tables_.meta);
    }
    written_meta_ = directory_bytes(tables_.meta);
    queues_.load();
    jobs_.open();
  }

  StoreDriver& driver() noexcept override { return driver_; }
  std::uint64_t last_token() const noexcept override { return tables_.meta.counters.last_token; }
  void commit() override {
    std::vector<DirectoryChange> changes;
    tables_.each([&](auto& table) { table.collect(changes); });
    std::string meta = directory_bytes(tables_.meta);
    if (meta != written_meta_) changes.push_back({kMeta, meta});
    try {
      files_.commit(changes);
    } catch (const std::exception& error) {
      throw DatabaseFailed{{Errc::io, error.what()}};
    }
    tables_.each([](auto& table) { table.committed(); });
    written_meta_ = std::move(meta);
  }
  // A token is never given twice, whatever has become of its lease.
  void roll_back() noexcept override {
    const std::uint64_t last_token = tables_.meta.counters.last_token;
    tables_.each([](auto& table) { table.roll_back(); });
    tables_.meta = {};
    DirectoryBytes<false> io(written_meta_);
    io(tables_.meta);
    tables_.meta.counters.last_token = std::max(last_token, tables_.meta.counters.last_token);
    queues_.load();
  }

  JobCounters& counters() override { return tables_.meta.counters; }
  void mark() override {
    tables_.each([](auto& table) { table.mark(); });
    meta_at_mark_ = tables_.meta;
    queues_.mark();
  }
  void keep() override {
    tables_.each([](auto& table) { table.keep(); });
  }
  void take_back() override {
    tables_.each([](auto& table) { table.take_back(); });
    tables_.meta = meta_at_mark_;
    queues_.take_back();
  }

  std::vector<OldLease> old_leases() override { return jobs_.old_leases(); }
  ChangedElsewhere changed_elsewhere() override { return {}; }
  void remember(const std::string& name, std::int64_t value) override { tables_.meta.remembered[name] = value; }
  std::optional<std::int64_t> recall(const std::string& name) override {
    const auto found = tables_.meta.remembered.find(name);
    return found == tables_.meta.remembered.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  static constexpr const char* kMeta = "meta";

  DirectoryFiles files_;
  DirectoryTables tables_;
  std::string written_meta_;
  DirectoryMeta meta_at_mark_;
  DirectoryQueues queues_{tables_};
  DirectoryJobs jobs_{tables_, queues_};
  DirectorySchedules schedules_{tables_};
  DirectoryKeys keys_{tables_};
  StoreDriver driver_{{*this, queues_, jobs_, jobs_, jobs_, schedules_, keys_}, jobs_, *this};
};

}  // namespace

std::unique_ptr<Store> open_directory(const std::string& root) {
  return std::make_unique<Store>(std::make_shared<StorePlace>(std::make_unique<DirectoryDriver>(root)));
}

}  // namespace argiope
