// The processor whose script lives elsewhere, and speaks docs/processors.md over HTTP: each page is one POST.
//
//   describe ──► POST ──► described ──────────► pages, as many at a time as it has said
//      ▲                                          │ nobody there: 1 s, 2 s … 1 min; 429, 503: as long as it says
//      └── it says something else now ◄───────────┘ pages wait meanwhile, without an attempt
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "argiope/async/event_loop.hpp"
#include "argiope/web/http.hpp"
#include "argiope/web/url.hpp"
#include "project/process/internal/processor.hpp"
#include "project/process/internal/processor_messages.hpp"

namespace argiope {

struct WebhookProcessorOptions {
  Url url;  // without credentials
  std::string project;
  std::string argiope;  // our version, as the script is told
  ProcessorUse use;
  ProcessorLimits limits;
  // The secret for signatures, asked for each; empty text: none is signed. An error is as if nobody were there.
  std::function<Result<std::string>()> secret;

  Duration describe_time = std::chrono::seconds{30};
  Duration grace = std::chrono::seconds{2};        // behind a page's time limit
  Duration usual_rest = std::chrono::seconds{30};  // after 429 or 503 without Retry-After
  Duration first_wait = std::chrono::seconds{1};   // before what is not there is asked again; doubles
  Duration longest_wait = std::chrono::minutes{1};
  Duration look_every = std::chrono::minutes{1};  // whether it says something else of itself
  ProcessorWatch watch;
};

// Memory:   of each page under way its body and its answer, of up to `limits.line_bytes`.
// Lifetime: before its loop, and before the transport. Calls under way may outlive it.
// Threads:  the loop's own; long answers are read on the loop's default executor.
class WebhookProcessor final : public Processor {
 public:
  static constexpr std::size_t kMostConcurrency = 100;

  WebhookProcessor(EventLoop& loop, HttpTransport& transport, WebhookProcessorOptions options);
  ~WebhookProcessor() override;

  // As Processor's. While nobody is there the next call waits as long as the table in docs/processors.md says.
  Coro<Result<ProcessorDescription>> describe() override;
  // Asks every `look_every`; suspends until the answer is another than the last. A failed question is no change.
  Coro<void> when_changed() override;
  Coro<VisitAnswer> process(const PageCall& call) override;
  std::size_t capacity() const override;
  Coro<void> close() override;

  // Why no server answers, as a sentence; empty: one does.
  const std::string& trouble() const;

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace argiope
