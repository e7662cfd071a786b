// Jobs from a stream of JSON lines.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/engine/book.hpp"
#include "base/internal/file_reading.hpp"
#include "base/internal/text_lines.hpp"
#include "jobs/internal/job_json.hpp"

namespace argiope {

// Puts one job a line of a file, and prints its id, one a line and in order, once it is committed. Reading, parsing
// and committing go on at the same time: what came while the last commit ran goes into the next, so a single line is
// answered at once and a million share their syncs. The lines that wait in memory are bounded.
//
// A line that is refused is told of on standard error, and the rest goes on. Blank lines are passed over.
class JobFeed {
 public:
  JobFeed(InputFile file, std::string source, bool json);
  // Reads to the first line that `empty` takes, a book for nothing else; it waits for run(), with those behind it. For
  // a store that is made for such a line alone. nullopt: there is one; else the exit status. Errors: of `empty`.
  Coro<Result<std::optional<int>>> find_good(Book& empty);
  // The exit status. Errors: the store's; what was printed is committed, nothing else is known to be.
  Coro<Result<int>> run(Book& book);
  // Reads no more; what was read is put. For signals.
  void stop();

 private:
  // On the loop that runs, until end_reading(), stop() or the end of the input.
  void begin_reading();
  Coro<void> end_reading();
  // Nothing is read any more. Throws what has ended the reader before the last line.
  Coro<void> come_to_the_end();
  // Until there are some, or no more come.
  Coro<void> wait_for_jobs();
  Coro<void> read();
  int status() const noexcept;
  Coro<Result<bool>> is_good(NewJob job, std::uint64_t line, Book& empty);
  void take(const TextLine& line);
  Coro<Result<void>> put_in_order(Book& book, std::vector<NewJob> jobs, std::vector<std::uint64_t> lines);
  Coro<Result<void>> put(Book& book, std::vector<NewJob> jobs, std::vector<std::uint64_t> lines);
  void refuse(std::uint64_t line, std::string_view why);

  const InputFile file_;
  const std::string source_;
  const bool json_;
  LineSplitter splitter_;
  std::vector<NewJob> jobs_;  // read and not on their way
  std::vector<std::uint64_t> lines_;
  std::map<std::uint64_t, JobNames> names_;  // by line, of those that name others
  std::size_t bytes_ = 0;
  bool ended_ = false;    // nothing is read now
  bool is_over_ = false;  // and nothing will be
  bool stopped_ = false;
  bool refused_ = false;
  Event came_;
  Event room_;
  Task<void> reader_;
  std::optional<Error> failure_;
};

// The outcome of a put, one line.
std::string put_reply_json(const PutReply& reply, std::string_view name);

}  // namespace argiope
