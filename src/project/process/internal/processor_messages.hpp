// The words of the processor protocol, version 1 (docs/processors.md): what Argiope writes, and what the lines of a
// script mean. Bytes in, bytes out: pipes, processes, time and the order of messages are the caller's.
//
//   OpenVisit visit(call.response.url);
//   out += write_page(call, 7), call.response.body;
//   auto message = read_script_message(line, [&](std::uint64_t id) { return id == 7 ? &visit : nullptr; });
//   if (!message) kill(message.error());
//   if (auto* part = std::get_if<AnswerPart>(&*message)) {
//     const bool is_last = part->is_last;
//     if (auto added = visit.add(std::move(*part)); !added) kill(added.error());
//     if (is_last) answer = visit.take_answer();
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/web/url.hpp"
#include "project/process/internal/processor.hpp"

namespace argiope {

inline constexpr std::uint32_t kProcessorProtocol = 1;
inline constexpr std::string_view kUsualRule = "__call__";

// "Bounds" in docs/processors.md: what a script is told of them, and what is not for it to know.
struct ProcessorLimits {
  std::size_t line_bytes = 16 * 1024 * 1024;
  std::size_t answer_bytes = 64 * 1024 * 1024;
  std::size_t log_bytes = 64 * 1024;
  Duration time = std::chrono::seconds{30};

  static constexpr std::size_t kMostDescribedBytes = 1024 * 1024;
  static constexpr std::size_t kMostPages = 100'000;
  static constexpr std::size_t kMostResults = 10'000;
  static constexpr std::size_t kMostMessages = 10'000;
  static constexpr std::size_t kMostValueBytes = 1024 * 1024;  // and of `save`
  static constexpr std::size_t kMostPageBytes = 2 * 1024 * 1024;
  static constexpr std::size_t kMostContextBytes = 64 * 1024;  // and of a message
  static constexpr std::size_t kMostQueries = 10'000;          // of a visit
  static constexpr std::size_t kMostHtmlBytes = 10 * 1024 * 1024;
};

// --- what Argiope writes: whole lines, each with its end

// `argiope`: the version of the program.
std::string write_describe(std::string_view project, std::string_view argiope, ProcessorUse use,
                           const ProcessorLimits& limits = {});
// The line alone; `call.response.body` follows it, byte for byte. The JSON members of the call must be JSON.
std::string write_page(const PageCall& call, std::uint64_t id);
// `matches_json`: a list. Errors are told with kind `too_large` for Errc::too_large, else `invalid_input`.
std::string write_selected(std::uint64_t id, std::uint64_t query, const Result<std::string>& matches_json);

// --- what a script writes

// A script's description of itself, or why it cannot run. `logs`: what was left out of its rules.
struct DescribedMessage {
  ProcessorDescription description;
  std::optional<ProcessorFailure> failure;  // the rest is then as in a script that says nothing
  std::vector<PageLog> logs;
};

// A line `log`.
struct LogMessage {
  std::optional<std::uint64_t> id;  // of a visit; whether that is under way is the caller's to see
  PageLog log;
};

// A line `select`.
struct SelectQuery {
  std::uint64_t id = 0;
  std::uint64_t query = 0;
  bool is_xpath = false;
  std::string selector;
  std::optional<std::vector<std::uint64_t>> within;
  std::optional<std::string> html;
  // The parts of each match that are told.
  bool text = false, raw = false, lines = false, outer_html = false, inner_html = false, name = false,
       attributes = false;
  std::size_t most = 10'000;
  // It has members that are wrong: to be answered with this, and by no document.
  std::optional<Error> wrong;
};

// A line `more` or `done`. Wrong entries are left out, the first ones with a log line each. For OpenVisit::add().
struct AnswerPart {
  std::uint64_t id = 0;
  bool is_last = false;
  std::size_t bytes = 0;  // of the line
  // `failure` also for members of a wrong type: has_wrong_type says which of the two.
  VisitAnswer answer;
  bool has_wrong_type = false;
  // How many there were in the line, what is left out included; and bytes of `logs` that are not in `answer`.
  std::size_t pages_seen = 0, results_seen = 0, messages_seen = 0, log_bytes_over = 0;
};

using ScriptMessage = std::variant<DescribedMessage, AnswerPart, LogMessage, SelectQuery>;

// A visit between its page and its `done`: joins the lines of its answer, and keeps its log within bounds.
//
// Memory: `answer_bytes` and `log_bytes` of what the script wrote, and some hundred bytes for each page.
class OpenVisit {
 public:
  // `url`: where the page came from; what relative URLs are against. It need not be one.
  explicit OpenVisit(std::string_view url, const ProcessorLimits& limits = {});

  // Null where the page's address is no base for relative ones.
  const Url* base() const noexcept { return base_ ? &*base_ : nullptr; }
  const std::string& url() const noexcept { return url_; }
  // Of the answer so far, what was left out included: what is wrong is told with its place in the joined lists.
  std::size_t pages_seen() const noexcept { return pages_seen_; }
  std::size_t results_seen() const noexcept { return results_seen_; }
  std::size_t messages_seen() const noexcept { return messages_seen_; }
  const ProcessorLimits& limits() const noexcept { return limits_; }

  // A line of its log, from wherever: kept while there is room.
  void log(PageLog log);
  // A line of its answer, with what it logged.
  // Errors: too_large for more than `answer_bytes` of all of them: the processor is to be killed.
  Result<void> add(AnswerPart part);
  // Whether another query may be answered; counts them. After kMostQueries: too_large, which is the answer.
  Result<void> count_query();

  // Once, after the last line. With a failure of its own when a member had a wrong type: then nothing else but the log
  // is kept. Of several results of one part only the last is in it.
  VisitAnswer take_answer();
  // Once, where there is no last line: the log, and why.
  VisitAnswer take_failure(ProcessorFailure why);

 private:
  void tell_of(std::string_view what, std::size_t seen, std::size_t most);
  void close_log();

  std::string url_;
  std::optional<Url> base_;
  ProcessorLimits limits_;
  VisitAnswer answer_;
  std::optional<ProcessorFailure> wrong_;
  std::size_t bytes_ = 0;
  std::size_t pages_seen_ = 0, results_seen_ = 0, messages_seen_ = 0;
  std::size_t log_bytes_ = 0, log_bytes_over_ = 0;
  std::size_t queries_ = 0;
};

// The visit that `id` names; null: none is under way.
using FindVisit = std::function<const OpenVisit*(std::uint64_t id)>;

// How long a page waits that has failed after `failed_before` failures before; nullopt: no further try.
std::optional<Duration> retry_delay_of(const ProcessorDescription& description, std::uint32_t failed_before);

// One line of a script, without its end. Empty lines (white space only) are no message and not for this: see
// is_empty_line().
//
// Errors: protocol for what is no message (no JSON, no UTF-8, no object, an unknown type, an id that is not under way)
//         and too_large for one that is too long: the processor is to be killed. They tell the first 200 bytes of the
//         line. invalid_input for a `described` that is wrong, naming the member: the project stops.
// Memory: some times the line.
Result<ScriptMessage> read_script_message(std::string_view line, const FindVisit& find_visit,
                                          const ProcessorLimits& limits = {});
bool is_empty_line(std::string_view line) noexcept;

}  // namespace argiope
