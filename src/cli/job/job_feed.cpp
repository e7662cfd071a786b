#include "cli/job/job_feed.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <utility>

#include "argiope/async/stream.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "cli/commands.hpp"
#include "cli/error_advice.hpp"
#include "cli/standard_output.hpp"
#include "engine/internal/job_names.hpp"
#include "jobs/internal/job_json.hpp"

namespace argiope {
namespace {

constexpr std::size_t kReadBytes = 256 * 1024;
// Read ahead of the commit that runs.
constexpr std::size_t kMostJobs = 20'000;
constexpr std::size_t kMostBytes = 16 * 1024 * 1024;

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

}  // namespace

JobFeed::JobFeed(InputFile file, std::string source, bool json)
    : file_(std::move(file)), source_(std::move(source)), json_(json), splitter_(kMostJobJsonBytes) {}

void JobFeed::stop() {
  stopped_ = is_over_ = true;
  if (reader_) reader_.cancel();
}

void JobFeed::begin_reading() {
  ended_ = is_over_;
  if (!ended_)
    reader_ = EventLoop::current().create_task(read(), "reader of jobs",
                                               Start::eagerly);  // so that it says when it has ended
}

Coro<void> JobFeed::end_reading() {
  if (reader_) reader_.cancel();
  while (!ended_) {
    came_.clear();
    co_await came_.wait();
  }
  reader_ = {};  // another loop may read on
}

Coro<void> JobFeed::come_to_the_end() {
  if (reader_ && !stopped_) co_await reader_;
  reader_ = {};
}

Coro<void> JobFeed::wait_for_jobs() {
  while (jobs_.empty() && !ended_) {
    came_.clear();
    co_await came_.wait();
  }
}

int JobFeed::status() const noexcept { return stopped_ ? kExitInterrupted : refused_ ? kExitUsage : kExitFinished; }

Coro<Result<std::optional<int>>> JobFeed::find_good(Book& empty) {
  begin_reading();
  for (co_await wait_for_jobs(); !jobs_.empty(); co_await wait_for_jobs()) {
    std::vector<NewJob> jobs = std::exchange(jobs_, {});
    std::vector<std::uint64_t> lines = std::exchange(lines_, {});
    bytes_ = 0;
    room_.set();
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const auto good = co_await is_good(jobs[i], lines[i], empty);
      if (good && !*good) continue;
      co_await end_reading();
      if (!good) co_return std::unexpected(good.error());
      const auto at = static_cast<std::ptrdiff_t>(i);
      jobs_.insert(jobs_.begin(), std::make_move_iterator(jobs.begin() + at), std::make_move_iterator(jobs.end()));
      lines_.insert(lines_.begin(), lines.begin() + at, lines.end());
      co_return std::optional<int>{};
    }
  }
  co_await come_to_the_end();
  if (failure_) co_return std::unexpected(*failure_);
  co_return std::optional<int>(status());
}

// Where it is not, it is told so.
Coro<Result<bool>> JobFeed::is_good(NewJob job, std::uint64_t line, Book& empty) {
  // Nothing is there that a name could be of.
  if (const auto named = names_.find(line); named != names_.end()) {
    auto found = co_await find_names(empty, JobNames(named->second), job);
    if (!found) {
      names_.erase(named);
      refuse(line, found.error().message);
      co_return false;
    }
  }
  const std::string queue = job.queue;
  const auto reply = co_await empty.put(std::move(job));
  if (!reply) refuse(line, with_queue_option(reply.error(), queue).message);
  co_return reply.has_value();
}

Coro<Result<int>> JobFeed::run(Book& book) {
  begin_reading();
  for (co_await wait_for_jobs(); !jobs_.empty(); co_await wait_for_jobs()) {
    bytes_ = 0;
    room_.set();
    auto done = co_await put_in_order(book, std::exchange(jobs_, {}), std::exchange(lines_, {}));
    if (!done) {
      co_await end_reading();
      co_return std::unexpected(std::move(done.error()));
    }
  }
  co_await come_to_the_end();
  if (failure_) co_return std::unexpected(std::move(*failure_));
  co_return status();
}

Coro<void> JobFeed::read() {
  struct Ended {
    JobFeed& feed;
    ~Ended() {
      feed.ended_ = true;
      feed.came_.set();
    }
  } const ended{*this};
  const auto take_each = [this](const TextLine& line) {
    take(line);
    return true;
  };
  std::string buffer(kReadBytes, '\0');
  for (;;) {
    while (jobs_.size() >= kMostJobs || bytes_ >= kMostBytes) {
      room_.clear();
      co_await room_.wait();
    }
    co_await readable(file_.descriptor());
    // Not by read(): what others have made not to block is waited for above.
    const ssize_t count = ::read(file_.descriptor(), buffer.data(), buffer.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count < 0) {
      failure_ = Error{Errc::io, fmt::format("{}: {}", source_, std::strerror(errno))};
      is_over_ = true;
      co_return;
    }
    if (count == 0) break;
    (void)splitter_.take(std::string_view(buffer).substr(0, static_cast<std::size_t>(count)), take_each);
    if (!jobs_.empty()) came_.set();
    co_await yield_now();
  }
  (void)splitter_.end(take_each);
  is_over_ = true;
}

void JobFeed::take(const TextLine& line) {
  if (line.is_too_long) return refuse(line.number, fmt::format("longer than {} bytes", kMostJobJsonBytes));
  if (is_blank(line.text)) return;
  JobNames names;
  auto job = parse_new_job(line.text, EventLoop::current().clock().wall_now(), &names);
  if (!job) return refuse(line.number, job.error().message);
  jobs_.push_back(std::move(*job));
  if (!names.empty()) names_[line.number] = std::move(names);
  lines_.push_back(line.number);
  bytes_ += line.text.size();
}

// A name may be that of a job some lines before: what comes before is put first.
Coro<Result<void>> JobFeed::put_in_order(Book& book, std::vector<NewJob> jobs, std::vector<std::uint64_t> lines) {
  std::vector<NewJob> ready;
  std::vector<std::uint64_t> ready_lines;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (auto named = names_.extract(lines[i]); !named.empty()) {
      if (auto done = co_await put(book, std::exchange(ready, {}), std::exchange(ready_lines, {})); !done)
        co_return done;
      auto found = co_await find_names(book, std::move(named.mapped()), jobs[i]);
      if (!found && found.error().code != Errc::not_found && found.error().code != Errc::invalid_input) co_return found;
      if (!found) {
        refuse(lines[i], found.error().message);
        continue;
      }
    }
    ready.push_back(std::move(jobs[i]));
    ready_lines.push_back(lines[i]);
  }
  co_return co_await put(book, std::move(ready), std::move(ready_lines));
}

Coro<Result<void>> JobFeed::put(Book& book, std::vector<NewJob> jobs, std::vector<std::uint64_t> lines) {
  if (jobs.empty()) co_return Result<void>{};
  std::vector<std::string> names(jobs.size());
  std::vector<std::string> queues(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    names[i] = jobs[i].name;
    queues[i] = jobs[i].queue;
  }
  auto replies = co_await book.put_each(std::move(jobs));
  if (!replies) co_return std::unexpected(std::move(replies.error()));
  std::string out;
  for (std::size_t i = 0; i < replies->size(); ++i) {
    const Result<PutReply>& reply = (*replies)[i];
    if (!reply) {
      refuse(lines[i], with_queue_option(reply.error(), queues[i]).message);
    } else if (json_) {
      out += put_reply_json(*reply, names[i]);
    } else {
      out += names[i].empty() ? std::to_string(reply->id) : printable(names[i]);
      out += '\n';
    }
  }
  co_return print_now(out);
}

void JobFeed::refuse(std::uint64_t line, std::string_view why) {
  refused_ = true;
  say(fmt::format("argiope: {}: {}\n", place_of_line(source_, line), printable(why)));
}

std::string put_reply_json(const PutReply& reply, std::string_view name) {
  return json_object([&](JsonWriter& json) {
           json.member("id", reply.id);
           json.member("outcome", to_string(reply.outcome));
           if (!name.empty()) json.member("name", name);
         }) +
         '\n';
}

}  // namespace argiope
