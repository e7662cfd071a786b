#include "project/run/visit_track.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/internal/json_writer.hpp"

namespace argiope {
namespace {

// The end of a text, from a character's beginning on.
std::string_view end_of(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  text.remove_prefix(text.size() - most);
  while (!text.empty() && (static_cast<unsigned char>(text.front()) & 0xC0) == 0x80) text.remove_prefix(1);
  return text;
}

// By whole numbers: each visit pays for it, and printing a double costs ten times as much.
void write_milliseconds(JsonWriter& out, std::string_view name, Duration span) {
  const std::int64_t us = std::max<std::int64_t>(std::chrono::floor<std::chrono::microseconds>(span).count(), 0);
  out.key(name);
  out.raw(fmt::format("{}.{:03}", us / 1'000, us % 1'000));
}

void write_last_logs(JsonWriter& out, const std::vector<PageLog>& logs) {
  if (logs.empty()) return;
  std::size_t first = logs.size(), bytes = 0;
  while (first > 0 && bytes + logs[first - 1].text.size() + 1 <= kMostTrackedLogs)
    bytes += logs[--first].text.size() + 1;
  if (first == logs.size()) --first;  // one that is too long alone
  out.array("logs", [&] {
    for (std::size_t i = first; i < logs.size(); ++i) {
      out.object([&] {
        out.member("level", logs[i].level);
        out.member("text", end_of(logs[i].text, kMostTrackedLogs));
      });
    }
  });
  if (first > 0) out.member("logs_left_out", first);
}

}  // namespace

std::string track_of(const VisitNote& visit, const std::vector<PageLog>& logs, const ProcessorFailure* failure) {
  return json_object([&](JsonWriter& out) {
    write_milliseconds(out, "fetch_ms", visit.fetched);
    write_milliseconds(out, "process_ms", visit.processed);
    out.member("pages", visit.pages);
    out.member("results", visit.results);
    write_last_logs(out, logs);
    if (failure == nullptr) return;
    out.object("failure", [&] {
      out.member("text", end_of(failure->text, kMostTrackedTrace));
      out.member("kind", failure->kind);
      out.member("where", failure->where);
      out.member("trace", end_of(failure->trace, kMostTrackedTrace));
    });
  });
}

}  // namespace argiope
