#include "serve/watch/event_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/internal/json_writer.hpp"
#include "base/internal/utf8.hpp"

namespace argiope {

namespace {

// Of an error or a message: the whole of it is in the job.
constexpr std::size_t kMostTextBytes = 300;

// A place keeps blocks of so many bytes for the events to come; or a long text now and then would leave a long block in
// each.
constexpr std::size_t kKeptBytes = 256;

void empty(std::string& text) noexcept {
  if (text.capacity() > kKeptBytes) {
    std::string().swap(text);
  } else {
    text.clear();
  }
}

std::string_view name_of_text(JobEventKind kind) noexcept {
  switch (kind) {
    case JobEventKind::leased: return "worker";
    case JobEventKind::progress: return "message";
    default: return "error";
  }
}

void append_job(std::string& out, const KeptEvent& kept) {
  const JobEvent& event = kept.job;
  JsonWriter json(out);
  json.object([&] {
    json.member("event", event.kind == JobEventKind::queue_changed ? "changed" : to_string(event.kind));
    if (event.id != 0) json.member("id", event.id);
    json.member("queue", kept.owner);
    json.member("at", event.at);
    if (event.attempt != 0) json.member("attempt", event.attempt);
    if (event.due_at != WallTime{}) json.member("due_at", event.due_at);
    if (!kept.text.empty()) json.member(name_of_text(event.kind), kept.text);
    if (event.kind == JobEventKind::progress) json.member("progress", event.fraction);
    if (event.schedule == 0) return;
    json.member("schedule", event.schedule);
    json.member("run", event.run);
  });
}

void append_run(JsonWriter& json, const KeptEvent& kept) {
  const ScheduleEvent& event = kept.schedule;
  if (event.job != 0) json.member("job", event.job);
  if (event.run != 0) json.member("run", event.run);
  if (!kept.queue.empty()) json.member("queue", kept.queue);
  if (event.planned == WallTime{}) return;
  json.member("planned", event.planned);
  if (event.last_planned != event.planned) json.member("last_planned", event.last_planned);
  if (event.count != 1) json.member("count", event.count);
}

void append_schedule(std::string& out, const KeptEvent& kept) {
  const ScheduleEvent& event = kept.schedule;
  JsonWriter json(out);
  json.object([&] {
    json.member("event", to_string(event.kind));
    if (event.schedule != 0) json.member("id", event.schedule);
    if (!kept.name.empty()) json.member("name", kept.name);
    json.member("at", event.at);
    append_run(json, kept);
    if (!kept.text.empty()) json.member("text", kept.text);
    if (event.jump != Duration::zero()) json.member("jump_ms", event.jump / std::chrono::milliseconds{1});
  });
}

bool read_whole(std::string_view text, int base, std::uint64_t& number) noexcept {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return read.ec == std::errc{} && read.ptr == text.data() + text.size();
}

}  // namespace

std::string to_string(const EventId& id) { return fmt::format("{:x}-{}", id.run, id.number); }

std::optional<EventId> parse_event_id(std::string_view text) noexcept {
  EventId id;
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  if (!read_whole(text.substr(0, dash), 16, id.run) || !read_whole(text.substr(dash + 1), 10, id.number))
    return std::nullopt;
  return id;
}

void append_event(std::string& out, std::string_view name, std::string_view data) {
  fmt::format_to(std::back_inserter(out), "event: {}\ndata: {}\n\n", name, data);
}

KeptEvent& EventRecord::append(KeptEvent::Kind kind, std::string_view owner) {
  const std::size_t place = next_ % most_;
  if (place >= events_.size()) events_.resize(place + 1);
  KeptEvent& kept = events_[place];
  kept.kind = kind;
  for (std::string* text : {&kept.owner, &kept.name, &kept.queue, &kept.text, &kept.written}) empty(*text);
  kept.owner.assign(owner);
  ++next_;
  kept_ = std::min<std::uint64_t>(kept_ + 1, most_);
  return kept;
}

void EventRecord::add(const JobEvent& event) {
  const bool is_queue = event.kind == JobEventKind::queue_changed;
  KeptEvent& kept = append(is_queue ? KeptEvent::Kind::queue : KeptEvent::Kind::job, event.queue);
  kept.job = event;
  kept.job.queue = kept.job.text = {};
  kept.text.assign(cut_between_characters(event.text, kMostTextBytes));
}

void EventRecord::add(const ScheduleEvent& event) {
  KeptEvent& kept = append(KeptEvent::Kind::schedule, event.name);
  kept.schedule = event;
  kept.schedule.name = kept.schedule.queue = kept.schedule.text = {};
  kept.name.assign(event.name);
  kept.queue.assign(event.queue);
  kept.text.assign(cut_between_characters(event.text, kMostTextBytes));
}

void EventRecord::add(std::string_view kind, std::string_view data, std::string_view owner) {
  std::string line(data);
  std::ranges::replace(line, '\n', ' ');  // which in JSON is the same, between its values
  append_event(append(kind == "project" ? KeptEvent::Kind::project : KeptEvent::Kind::other, owner).written, kind,
               line);
}

void EventRecord::forget() {
  events_ = {};
  kept_ = 0;
  ++next_;
}

std::string_view EventRecord::written(std::uint64_t number) {
  KeptEvent& kept = events_[number % most_];
  if (!kept.written.empty()) return kept.written;
  std::string data;
  kept.kind == KeptEvent::Kind::schedule ? append_schedule(data, kept) : append_job(data, kept);
  constexpr std::string_view kNames[] = {"job", "schedule", "queue"};
  append_event(kept.written, kNames[static_cast<std::size_t>(kept.kind)], data);
  return kept.written;
}

}  // namespace argiope
