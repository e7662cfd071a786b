// The reader of a project's pages: its input, and its answers. docs/processors.md is the contract in words; a
// ChildProcessor speaks it to a script, rules in a file are read without one, and programs may bring their own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "project/rules/internal/page_settings.hpp"

namespace argiope {

enum class PageEvent : std::uint8_t { fetch, start, tick, message, finished };
std::string_view to_string(PageEvent event) noexcept;

// A script's description of itself ("describe").
struct ProcessorDescription {
  struct Tick {
    std::string rule;
    Duration every{};
    friend bool operator==(const Tick&, const Tick&) = default;
  };
  struct Rule {
    PageSettings settings;
    bool errors = false;      // it gets answers that are no success, too
    std::string fields_json;  // object: name to source; empty: none
  };
  std::uint32_t protocol = 1;
  std::uint32_t concurrency = 1;
  std::string on_start, on_message, on_finished;  // the rules that get these events; empty: they are not sent
  std::vector<Tick> ticks;
  std::map<std::string, Rule, std::less<>> rules;
  PageSettings defaults;
  RetryPolicy retry_delay = pyspider_retry_delay();
  // By failed attempts so far, where the script has said so; nullopt: no further try. Beside `retry_delay` for gaps and
  // nulls.
  std::map<std::uint32_t, std::optional<Duration>> retry_delays;
};

// An answer that came from a server, or what stands for one.
struct PageResponse {
  std::string url;  // behind redirects
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<std::pair<std::string, std::string>> cookies;
  std::string encoding;  // empty: no text
  Duration took{};
  std::string error_kind, error_text;  // empty: a success, or a status that says it
  std::string script_result_json;      // empty: none
  std::string body;
};

// The first header of that name, which is in lower case; empty: none.
std::string_view header_of(const PageResponse& response, std::string_view name) noexcept;
// Its Content-Type header; empty: none.
std::string_view content_type_of(const PageResponse& response) noexcept;

// One page to be read.
struct PageCall {
  PageEvent event = PageEvent::fetch;
  std::string rule;
  std::string project;
  std::string name, url;
  std::string context_json;  // empty: null
  PageSettings settings;     // merged
  std::uint32_t attempt = 1;
  std::optional<WallTime> last_at;  // of its last success
  Duration time_limit = std::chrono::seconds{30};
  PageResponse response;
  std::string save_json;    // empty: null
  std::string fields_json;  // empty: none
};

// A page that an answer asks for.
struct AskedPage {
  std::string url;   // absolute
  std::string name;  // empty: the URL without its fragment
  std::string rule;
  std::string context_json;  // empty: null
  std::optional<WallTime> due_at;
  std::optional<Duration> delay;
  bool force = false;
  bool cancel = false;
  PageSettings settings;  // its own
};
struct PageResult {
  std::string part;
  std::string value_json;
};
struct PageMessage {
  std::string project;
  std::string message_json;
  std::string url = "data:,on_message";
};
struct PageLog {
  std::string level;  // debug, info, warning, error, print, stderr
  std::string text;
};
struct ProcessorFailure {
  std::string text;
  std::string kind, where, trace;
  std::optional<Duration> delay;
  bool is_final = false;
  bool is_crash = false;  // the page may have killed its processor: the engine counts these
  bool not_now = false;   // no attempt: the page waits for `delay`
};

struct VisitAnswer {
  std::vector<AskedPage> pages;
  std::optional<std::vector<PageResult>> results;  // nullopt: those of the page stay as they are
  std::vector<PageMessage> messages;
  std::optional<std::string> save_json;  // "null" forgets; nullopt: stays
  std::vector<PageLog> logs;
  std::optional<ProcessorFailure> failure;
};

// The purpose of a processor, as far as a script is told.
struct ProcessorUse {
  bool is_debug = false;  // its project's status is DEBUG
  bool is_try = false;    // it reads a page that is tried; then that counts as DEBUG, too
};

// A processor's reports on itself to its owner, from the loop; none of them may throw.
struct ProcessorWatch {
  std::function<void(PageLog)> log;                            // what belongs to no visit
  std::function<void(const ProcessorDescription&)> described;  // the script has changed, and says this of itself now
  std::function<void(const std::string&)> trouble;             // why it cannot be started; empty: it can again
  std::function<void()> changed =
      {};  // its script's files are read for the first time, or anew: pages go to what they hold now
};

// Threads: the loop's own.
class Processor {
 public:
  virtual ~Processor() = default;

  // Starts what there is to start, and says what the project's script says of itself.
  // Suspends: until it is known. Cancel: throws CancelledError; what was started is ended.
  // Errors: the script's own, as a sentence; invalid_input for a description that is wrong.
  virtual Coro<Result<ProcessorDescription>> describe() = 0;
  // Suspends until its script is another than the one that was described last; for ever where there is none that could
  // change.
  // Cancel: throws CancelledError.
  virtual Coro<void> when_changed() {
    Event never;
    co_await never.wait();
  }
  // Ends what describe() has started and has no page: the next call starts it again. Suspends until that has ended.
  // Cancel: throws CancelledError; it still ends.
  virtual Coro<void> rest() { co_return; }
  // One page. As many at a time as `concurrency` times the processor's workers; more wait their turn in it.
  // Suspends. Cancel: throws CancelledError, and the answer, if one still comes, is dropped.
  virtual Coro<VisitAnswer> process(const PageCall& call) = 0;
  // How many calls can be under way at once.
  virtual std::size_t capacity() const = 0;
  // A text that quotes what the script has said, without what it must keep to itself.
  virtual std::string masked(std::string text) const { return text; }
  // No more calls will come: ends its children, politely at first.
  virtual Coro<void> close() = 0;
};

}  // namespace argiope
