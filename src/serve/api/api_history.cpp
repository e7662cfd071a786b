// The counts over time, as columns for plots.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "argiope/async/coro.hpp"
#include "argiope/time/time_zone.hpp"
#include "base/internal/printable.hpp"
#include "serve/api/api_state.hpp"
#include "serve/watch/history.hpp"

namespace argiope {
namespace {

// As RFC 3339 has it, or in milliseconds since 1970.
WallTime time_in(ApiQuery& query, std::string_view name, WallTime usual) {
  const auto text = query.text(name);
  if (!text) return usual;
  constexpr auto kLast = static_cast<std::uint64_t>(WallTime::max().time_since_epoch() / std::chrono::milliseconds{1});
  if (const auto number = plain_number(*text); number && *number <= kLast) {
    return WallTime{std::chrono::milliseconds{static_cast<std::int64_t>(*number)}};
  }
  const auto time = parse_timestamp(*text);
  if (!time) query.refuse(name, *text, time.error().message);
  return time.value_or(usual);
}

template <class Value>
void write_column(JsonWriter& json, std::string_view name, const std::vector<HistoryPoint>& points, Value value) {
  json.array(name, [&] {
    for (const HistoryPoint& point : points) value(point);
  });
}

void write(JsonWriter& json, const std::vector<HistoryPoint>& points) {
  write_column(json, "at", points, [&](const HistoryPoint& point) { json.value(point.at); });
  for (std::size_t i = 0; i < kTalliedNames.size(); ++i) {
    write_column(json, kTalliedNames[i], points, [&](const HistoryPoint& point) { json.value(point.counts[i]); });
  }
  write_column(json, "ready", points, [&](const HistoryPoint& point) { json.value(point.ready); });
  write_column(json, "running", points, [&](const HistoryPoint& point) { json.value(point.running); });
  write_column(json, "wait_mean_ms", points,
               [&](const HistoryPoint& point) { json.fixed(point.wait_mean_s * 1e3, 3); });
  write_column(json, "wait_p95_ms", points, [&](const HistoryPoint& point) { json.fixed(point.wait_p95_s * 1e3, 3); });
}

Coro<Result<ServerResponse>> history(ApiState& api, ApiCall& call) {
  ApiQuery query(call);
  const std::string queue = query.text("queue").value_or("");
  const WallTime from = time_in(query, "from", WallTime{});
  const WallTime to = time_in(query, "to", WallTime::max());
  const bool is_fine = query.one_of("step", {"10", "300"}).value_or(0) == 0;
  co_await or_return(query.finish());
  if (!queue.empty()) co_await or_return(call.check_use(queue));
  if (queue.empty()) co_await or_return(call.check_unbound("the history without a queue"));
  std::vector<HistoryPoint> points;
  const auto* all = api.options.history == nullptr ? nullptr : api.options.history->points(queue, is_fine);
  if (all != nullptr) {
    std::ranges::copy_if(*all, std::back_inserter(points),
                         [&](const HistoryPoint& point) { return point.at >= from && point.at <= to; });
  }
  co_return json_answer([&](JsonWriter& json) {
    json.member("queue", queue.empty() ? std::nullopt : std::optional(std::string_view(queue)));
    json.member("step_s", is_fine ? 10 : 300);
    write(json, points);
  });
}

}  // namespace

ApiRoute history_route() {
  return {.method = HttpMethod::get, .pattern = "/v1/history", .handler = history, .has_query = true};
}

}  // namespace argiope
