#include "serve/watch/history_lines.hpp"

#include <limits>

#include "base/internal/json_reader.hpp"
#include "base/internal/json_told.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope {

std::string to_line(std::string_view queue, bool is_fine, const HistoryPoint& point) {
  return json_object([&](JsonWriter& json) {
           if (!queue.empty()) json.member("queue", queue);
           json.member("fine", is_fine);
           json.member("at", point.at);
           json.list("counts", point.counts);
           json.member("ready", point.ready);
           json.member("running", point.running);
           json.member("wait_mean_s", static_cast<double>(point.wait_mean_s));
           json.member("wait_p95_s", static_cast<double>(point.wait_p95_s));
         }) +
         '\n';
}

std::optional<HistoryLine> read_history_line(std::string_view line) {
  const auto text = JsonText::parse(line);
  if (!text) return std::nullopt;
  JsonErrors errors;
  const JsonValue root = text->root(errors);
  ToldMembers in(root);
  HistoryLine found;
  double mean = 0, p95 = 0;
  in.read("queue", found.queue);
  in.read("fine", found.is_fine);
  in.read("at", found.point.at);
  if (const JsonValue* counts = in.find("counts")) {
    std::size_t place = 0;
    counts->for_each([&](const JsonValue& count) {
      if (place < found.point.counts.size()) {
        found.point.counts[place++] =
            static_cast<std::uint32_t>(count.whole(0, std::numeric_limits<std::uint32_t>::max()));
      }
    });
  }
  in.read("ready", found.point.ready);
  in.read("running", found.point.running);
  in.read("wait_mean_s", mean);
  in.read("wait_p95_s", p95);
  found.point.wait_mean_s = static_cast<float>(mean);
  found.point.wait_p95_s = static_cast<float>(p95);
  if (errors || found.point.at == WallTime{}) return std::nullopt;
  return found;
}

}  // namespace argiope
