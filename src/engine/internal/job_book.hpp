// JobBook: what a book does with jobs and queues. There are three: the owner's and one beside the owner
// (store_book.hpp), and one whose store is behind a daemon (remote_book.hpp). Book chooses when it is opened.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "argiope/engine/book.hpp"
#include "engine/internal/job_clock.hpp"
#include "engine/store_use.hpp"

namespace argiope {

// As the functions of Book whose names they have. Those who call keep it until what they have called has ended, but for
// put().
class JobBook : public std::enable_shared_from_this<JobBook> {
 public:
  virtual ~JobBook() = default;
  // From here on no call reaches the store.
  virtual void let_go() noexcept {}
  virtual const JobClock& clock() const = 0;

  // Keeps itself: a frame more a job would be felt.
  virtual Coro<Result<PutReply>> put(NewJob job) { return keep_alive(shared_from_this(), put_one(std::move(job))); }
  virtual Coro<Result<std::vector<Result<PutReply>>>> put_each(std::vector<NewJob> jobs) = 0;
  // `last_completes`: the last one waits for those before it.
  virtual Coro<Result<std::vector<PutReply>>> put_all(std::vector<NewJob> jobs, bool last_completes) = 0;
  virtual Coro<Result<OnceReply>> once(OnceCall call) = 0;

  Coro<Result<void>> apply(Change change);
  virtual Coro<Result<std::vector<ChangeReply>>> change(std::vector<Change> changes) = 0;
  virtual Coro<Result<void>> configure(std::string name, QueueConfig config, JobReachRef asker) = 0;
  // `until`: of a pause; the epoch: until it is resumed.
  virtual Coro<Result<void>> set_paused(std::string name, bool paused, WallTime until = {}) = 0;
  virtual Coro<Result<void>> erase_queue(std::string name) = 0;

  virtual Coro<Result<JobId>> find(std::string id_or_name) = 0;
  virtual Coro<Result<JobRecord>> get(JobId id) = 0;
  virtual Coro<Result<JobOutput>> output(JobId id, OutputLook look) = 0;
  virtual Coro<Result<std::vector<Attempt>>> history(JobId id) = 0;
  virtual Coro<Result<JobSlice>> look(JobFilter filter) = 0;
  virtual Coro<Result<std::vector<JobRecord>>> list(JobFilter filter) = 0;
  virtual Coro<Result<StoredQueue>> queue(std::string name) = 0;
  virtual Coro<Result<std::vector<StoredQueue>>> queues() = 0;
  virtual Coro<Result<std::vector<NamedCounts>>> counts(std::string only) = 0;
  virtual Coro<Result<std::vector<NamedCounts>>> counts_of(std::vector<std::string> names) = 0;
  virtual Coro<Result<JobExplanation>> explain(JobId id) = 0;

 private:
  Coro<Result<PutReply>> put_one(NewJob job);
};

}  // namespace argiope
