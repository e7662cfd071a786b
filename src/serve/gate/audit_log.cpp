#include "serve/gate/audit_log.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/async/threads.hpp"
#include "async/internal/as_error.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "base/internal/utf8.hpp"
#include "serve/base/line_file.hpp"
#include "serve/base/without_secrets.hpp"

namespace argiope {

namespace {

constexpr std::size_t kMostAuditedText = 1024;
constexpr std::size_t kMostReadBody = 1024 * 1024;
// The file is written anew when it has so many lines more than are kept, and more than twice as many.
constexpr std::size_t kMostStaleLines = 1'000;
// Besides the secrets of projects and pages.
constexpr std::string_view kHidden[] = {"payload", "payload_base64", "result", "result_base64", "secret", "environment",
                                        "input",   "args",           "error",  "source",        "message"};

std::optional<std::string> in_place_of(std::string_view name, const JsonValue& value) {
  if (std::ranges::find(kHidden, name) != std::end(kHidden)) return "…";
  return in_place_of_secret(name, value);
}

// `name`: of the member that it is, or is an entry of.
void write_hiding(JsonWriter& json, const JsonValue& value, std::string_view name = {}) {
  if (value.is_object()) {
    return json.object([&] {
      value.for_each_name([&](std::string_view its_name, const JsonValue& member) {
        json.key(its_name);
        const auto shown = in_place_of(its_name, member);
        shown ? json.value(*shown) : write_hiding(json, member, its_name);
      });
    });
  }
  if (!value.is_list()) return json.raw(value.json());
  json.array([&] {
    value.for_each([&](const JsonValue& entry) {
      const auto shown = entry.if_text() ? in_place_of(name, entry) : std::nullopt;
      shown ? json.value(*shown) : write_hiding(json, entry, name);
    });
  });
}

std::string line_of(const AuditEntry& entry) {
  return json_object([&](JsonWriter& json) {
    json.member("number", entry.number);
    json.member("at", entry.at);
    json.member("who", entry.who);
    json.member("from", entry.from);
    json.member("method", entry.method);
    json.member("path", entry.path);
    json.member("request", entry.request);
    json.member("status", entry.status);
    json.member("request_id", entry.request_id);
  });
}

// nullopt: it is none.
std::optional<AuditLog::Kept> read_audit_line(std::string_view line) {
  const auto text = JsonText::parse(line);
  if (!text) return std::nullopt;
  JsonErrors errors;
  AuditLog::Kept kept{.json = std::string(line)};
  text->root(errors).for_each_member([&](std::string_view name, const JsonValue& value) {
    if (name == "number") kept.number = value.if_natural().value_or(0);
    if (name == "at") kept.at = parse_rfc3339(value.if_text().value_or("")).value_or(WallTime{});
  });
  return kept.number == 0 ? std::nullopt : std::optional(std::move(kept));
}

}  // namespace

std::string audited_text(std::string_view body) {
  if (body.size() > kMostReadBody) return "…";
  const auto text = JsonText::parse(body);
  if (!text) return {};
  std::string out;
  JsonErrors errors;
  JsonWriter json(out);
  write_hiding(json, text->root(errors));
  if (out.size() <= kMostAuditedText) return out;
  return std::string(cut_between_characters(out, kMostAuditedText)) + "…";
}

struct AuditLog::State : std::enable_shared_from_this<AuditLog::State> {
  explicit State(AuditOptions given) : options(std::move(given)), file(options.file) {}

  void keep(Kept entry) {
    last = entry.number;
    bytes += entry.json.size();
    entries.push_back(std::move(entry));
    while (entries.size() > options.most_entries || bytes > options.most_bytes) forget_first();
  }
  void forget_first() {
    bytes -= entries.front().json.size();
    entries.pop_front();
  }
  bool is_to_be_rewritten() const {
    return has_failed || (lines_in_file > 2 * entries.size() && lines_in_file > entries.size() + kMostStaleLines);
  }
  std::string all_lines() const {
    std::string lines;
    for (const Kept& entry : entries) lines += entry.json + '\n';
    return lines;
  }
  void start_writing() {
    if (options.file.empty() || is_writing) return;
    if (!thread) thread.emplace(1);
    EventLoop::current().create_task(write_pending(shared_from_this()), "write the audit");
    is_writing = true;  // until it has begun, too
  }

  // Until nothing is left to write, or it fails.
  static Coro<void> write_pending(std::shared_ptr<State> self) {
    const struct Writing {
      bool& is_writing;
      ~Writing() { is_writing = false; }
    } writing{self->is_writing};
    bool done = true;
    while (done && (!self->pending.empty() || self->is_to_be_rewritten())) {
      const std::uint64_t last = self->last;
      done = co_await self->write_some();
      self->tried = done ? last : self->last;
      std::exchange(self->batch, std::make_shared<Event>())->set();
    }
  }
  Coro<Result<void>> write(bool anew, std::shared_ptr<const std::string> lines) {
    co_return co_await run_in_executor(
        *thread, [this, anew, lines] { return anew ? file.replace(*lines) : file.append(*lines); });
  }
  Coro<bool> write_some() {
    const bool anew = is_to_be_rewritten();
    const std::size_t count = anew ? entries.size() : pending_lines;
    const auto lines = std::make_shared<const std::string>(anew ? all_lines() : std::move(pending));
    pending.clear();
    pending_lines = 0;
    const Result<void> done = co_await as_error(write(anew, lines));
    has_failed = !done;
    if (done) lines_in_file = anew ? count : lines_in_file + count;
    if (!done) spdlog::error("the audit cannot be written, and is kept in memory: {}", done.error().message);
    co_return done.has_value();
  }
  // Writes the entries that were not written while the loop ran.
  void write_the_rest() {
    if (thread) thread->shutdown();
    if (options.file.empty() || (pending.empty() && !has_failed)) return;
    const Result<void> done = has_failed ? file.replace(all_lines()) : file.append(pending);
    if (!done) spdlog::error("the audit is not complete: {}", done.error().message);
  }

  const AuditOptions options;
  LineFile file;  // of the thread, while that writes
  std::deque<Kept> entries;
  std::size_t bytes = 0;
  std::uint64_t last = 0;
  std::size_t lines_in_file = 0;
  std::string pending;  // lines to write
  std::size_t pending_lines = 0;
  bool is_writing = false;
  bool has_failed = false;                                   // the last time; the file is written anew then
  std::uint64_t tried = 0;                                   // the last number that was written, or could not be
  std::shared_ptr<Event> batch = std::make_shared<Event>();  // set when the next write has ended
  std::optional<ThreadPoolExecutor> thread;
};

AuditLog::AuditLog(AuditOptions options) : state_(std::make_shared<State>(std::move(options))) {}
AuditLog::~AuditLog() { state_->write_the_rest(); }

Result<void> AuditLog::open() {
  if (state_->options.file.empty()) return {};
  std::size_t unreadable = 0;
  auto opened = state_->file.open([&](std::string_view line) {
    ++state_->lines_in_file;
    auto entry = read_audit_line(line);
    if (entry && entry->number > state_->last) return state_->keep(*std::move(entry));
    ++unreadable;
  });
  if (unreadable > 0) {
    spdlog::warn("{}: left out {} that no audit has", printable(state_->options.file), counted(unreadable, "line"));
  }
  state_->tried = state_->last;
  return opened;
}

void AuditLog::add(AuditEntry entry) {
  entry.number = state_->last + 1;
  spdlog::info("{} {} by {} from {}: {}{}", entry.method, printable(entry.path, 200), in_quotes(entry.who),
               entry.from.empty() ? "a local socket" : entry.from,
               entry.status ? fmt::to_string(*entry.status) : "not answered",
               entry.request_id.empty() ? "" : fmt::format(" ({})", entry.request_id));
  Kept kept{.number = entry.number, .at = entry.at, .json = line_of(entry)};
  if (!state_->options.file.empty()) {
    state_->pending += kept.json + '\n';
    ++state_->pending_lines;
  }
  state_->keep(std::move(kept));
  state_->start_writing();
}

Coro<void> AuditLog::written() {
  const auto state = state_;
  const std::uint64_t last = state->last;
  while (!state->options.file.empty() && state->tried < last) {
    const auto batch = state->batch;
    co_await batch->wait();
  }
}

std::size_t AuditLog::prune(WallTime now) {
  std::size_t forgotten = 0;
  while (!state_->entries.empty() && state_->entries.front().at < now - state_->options.keep) {
    state_->forget_first();
    ++forgotten;
  }
  if (state_->is_to_be_rewritten()) state_->start_writing();
  return forgotten;
}

const std::deque<AuditLog::Kept>& AuditLog::entries() const noexcept { return state_->entries; }

}  // namespace argiope
