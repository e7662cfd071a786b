// The processor whose script runs in processes of its own, and speaks docs/processors.md over their standard input and
// output.
//
//            ┌────────── started: there is work, and room for a child
//            ▼
//       starting ── described ──► ready ── script changed, unused for long, closed ──► draining
//            │                      │                                                     │ no page left:
//            │ cannot, wrong        │ ended by itself; a bound passed: killed              ▼ its input is closed
//            └──────────────────────┴─────────────────────────────────────────────────► ended
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "project/process/internal/processor.hpp"
#include "project/process/internal/processor_messages.hpp"
#include "project/process/internal/sandbox.hpp"
#include "project/process/internal/secret_mask.hpp"

namespace argiope {

class ThreadPoolExecutor;

struct ChildProcessorOptions {
  std::vector<std::string> command;  // program and arguments
  std::string directory;             // what its relative names count from, and its working directory; empty: ours
  std::string project;
  std::string argiope;  // our version, as the script is told
  ProcessorUse use;
  std::size_t workers = 2;  // children at most
  ProcessorLimits limits;
  SandboxOptions sandbox;
  // Is told each child's secrets before it starts. May be null.
  std::shared_ptr<SecretMask> mask;
  // Where documents for `select` and long lines are read, which a hostile script can make take seconds: one thread for
  // each child at most. Null: the loop's default executor. Must outlive the processor.
  ThreadPoolExecutor* executor = nullptr;

  Duration describe_time = std::chrono::seconds{30};
  Duration grace = std::chrono::seconds{2};           // behind a page's time limit
  Duration end_time = std::chrono::seconds{5};        // from the end of its input to being killed
  Duration idle_time = std::chrono::minutes{1};       // without pages; then it is ended until there are some
  Duration described_time = std::chrono::seconds{3};  // the same of one that has had none yet
  Duration first_wait = std::chrono::seconds{1};      // before what cannot be started is tried again; doubles
  Duration longest_wait = std::chrono::minutes{1};
  Duration look_every = std::chrono::seconds{1};  // at the script's files, at most

  // Calls that tell its owner, from the loop; none must throw.
  // A line of the project's log: what belongs to no visit. At most `limits.log_bytes` a minute come.
  std::function<void(PageLog)> on_log;
  // A script that has changed says this of itself now.
  std::function<void(const ProcessorDescription&)> on_described;
  // The script's files are read for the first time, or anew.
  std::function<void()> on_changed;
  // Why no child can be started, as a sentence; empty: they can again.
  std::function<void(const std::string&)> on_trouble;
};

// Children are started when there is work for them, and kept warm. Pages wait their turn, first come, first served.
//
// A killed child is likely to be killed again, and takes its neighbours' time until then: the next ones start at a low
// priority, until one of those has answered a page, or the script changes.
//
// process() while the script cannot be started, or is refused, answers `not_now` with the reason and the time until it
// is tried again.
//
// Memory:   of each child a line (`limits.line_bytes`), and the answers under way (`limits.answer_bytes` each).
// Lifetime: destroying it kills its children without waiting. Before its loop.
// Threads:  the loop's own, and the executor's.
class ChildProcessor final : public Processor {
 public:
  ChildProcessor(EventLoop& loop, ChildProcessorOptions options);
  ~ChildProcessor() override;

  // As Processor's. After an error that the script can mend (it cannot be started) the next call waits as long as the
  // table in docs/processors.md says, and tries again; after one for good (`described` with an error) it gives the same
  // until the script changes.
  Coro<Result<ProcessorDescription>> describe() override;
  Coro<void> rest() override;
  Coro<VisitAnswer> process(const PageCall& call) override;
  std::size_t capacity() const override;
  Coro<void> close() override;

  // Suspends until the script's files are others than those of the last start; looks at them every `look_every`.
  // Cancel: throws CancelledError.
  Coro<void> when_changed() override;

  // For who shows or tests it.
  struct Counts {
    std::size_t children = 0;  // that have not ended
    std::size_t pages = 0;     // that they have
    std::size_t waiting = 0;   // pages that wait their turn
    std::uint64_t started = 0, killed = 0;
  };
  Counts counts() const;
  std::vector<pid_t> pids() const;
  // As on_trouble's.
  const std::string& trouble() const;

 private:
  class Pool;
  const std::shared_ptr<Pool> pool_;
};

}  // namespace argiope
