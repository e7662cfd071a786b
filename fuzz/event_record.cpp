// Events as a stream sends them, and the Last-Event-ID of who comes back: any bytes in what jobs and workers say. A
// reader that goes by the standard reads exactly one event, of that name, whose data is JSON.
#include "serve/watch/event_record.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/internal/json_reader.hpp"
#include "fuzz/require.hpp"

using namespace argiope;

namespace {

struct Heard {
  std::string name, data;
};

// As "9.2.6 Interpreting an event stream" of the HTML standard has it.
std::vector<Heard> hear(std::string_view stream) {
  std::vector<Heard> heard;
  Heard now;
  bool has_data = false;
  while (!stream.empty()) {
    const std::size_t end = std::min(stream.find_first_of("\r\n"), stream.size());
    const std::string_view line = stream.substr(0, end);
    stream.remove_prefix(end);
    if (stream.starts_with("\r\n")) stream.remove_prefix(1);
    if (!stream.empty()) stream.remove_prefix(1);
    if (line.empty()) {
      if (has_data) heard.push_back(now);
      now = {};
      has_data = false;
      continue;
    }
    const std::size_t colon = std::min(line.find(':'), line.size());
    std::string_view value = line.substr(std::min(colon + 1, line.size()));
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (line.substr(0, colon) == "event") now.name = value;
    if (line.substr(0, colon) != "data") continue;
    if (has_data) now.data += '\n';
    now.data += value;
    has_data = true;
  }
  return heard;
}

void require_one(std::string_view written, std::string_view name) {
  const auto heard = hear(written);
  require(heard.size() == 1 && heard[0].name == name);
  const auto json = JsonText::parse(heard[0].data);
  require(json.has_value());
}

void read_id(std::string_view input) {
  const auto id = parse_event_id(input);
  if (!id) return;
  const auto again = parse_event_id(to_string(*id));
  require(again && again->run == id->run && again->number == id->number);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  read_id(input);
  if (size < 2) return 0;
  const std::string_view queue = input.substr(2, data[1]),
                         text = input.substr(std::min<std::size_t>(size, 2u + data[1]));
  EventRecord record(4);
  constexpr JobEventKind kKinds[] = {JobEventKind::added,        JobEventKind::leased,   JobEventKind::done,
                                     JobEventKind::retrying,     JobEventKind::progress, JobEventKind::buried,
                                     JobEventKind::queue_changed};
  const JobEventKind kind = kKinds[data[0] % std::size(kKinds)];
  for (std::uint64_t number = 1; number < 8; ++number) {
    record.add(JobEvent{.kind = kind,
                        .id = number,
                        .queue = queue,
                        .at = WallTime{std::chrono::seconds{number}},
                        .attempt = 1,
                        .due_at = {},
                        .text = text,
                        .fraction = 0.5});
  }
  require(record.next() == 8 && record.first() == 4);
  for (std::uint64_t number = record.first(); number < record.next(); ++number) {
    require_one(record.written(number), kind == JobEventKind::queue_changed ? "queue" : "job");
  }
  const ScheduleEvent fired{.at = WallTime{std::chrono::seconds{1}}, .name = queue, .queue = queue, .text = text};
  record.add(fired);
  require_one(record.written(8), "schedule");
  record.forget();
  require(record.first() == record.next() && record.next() > 8);
  return 0;
}
