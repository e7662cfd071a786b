// How a queue has fared: what was counted of its jobs since the daemon began.
#include <utility>

#include "argiope/async/coro.hpp"
#include "serve/api/api_state.hpp"
#include "serve/watch/counters.hpp"

namespace argiope {
namespace {

// The bound below which such a share of the spans lies, in milliseconds; null where it is above all bounds, or there
// are none.
std::optional<double> quantile_ms(const SpanHistogram& spans, std::uint64_t count, double share) {
  const double wanted = share * static_cast<double>(count);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < SpanHistogram::kBounds.size(); ++i) {
    below += spans.counts[i];
    if (count > 0 && static_cast<double>(below) >= wanted) return SpanHistogram::kBounds[i] * 1000;
  }
  return std::nullopt;
}

void write(JsonWriter& json, std::string_view name, const SpanHistogram& spans) {
  const std::uint64_t count = spans.count();
  json.object(name, [&] {
    json.member("count", count);
    json.member("mean_ms", count == 0 ? std::nullopt : std::optional(spans.sum * 1000 / static_cast<double>(count)));
    json.member("p50_ms", quantile_ms(spans, count, 0.5));
    json.member("p90_ms", quantile_ms(spans, count, 0.9));
    json.member("p99_ms", quantile_ms(spans, count, 0.99));
  });
}

template <class T>
void write(JsonWriter& json, std::string_view name, const PerTallied<T>& counts) {
  json.object(name, [&] {
    for (std::size_t i = 0; i < counts.size(); ++i) json.member(kTalliedNames[i], counts[i]);
  });
}

Coro<Result<ServerResponse>> stats(ApiState& api, ApiCall& call) {
  const auto name = co_await or_return(call.name_in_path("queue"));
  const auto counts = co_await or_return(api.book().counts(name));
  const Tally& tally = api.events.tally();
  QueueTally counted;
  tally.for_each_queue([&](std::string_view queue, const QueueTally& its) {
    if (queue == name) counted = its;
  });
  co_return json_answer([&](JsonWriter& json) {
    json.member("name", name);
    json.object("counts", [&] { write_members(json, counts.front().second); });
    write(json, "rates", tally.rates(name));
    write(json, "totals", counted.totals);
    write(json, "waits", counted.waits);
    write(json, "runs", counted.runs);
  });
}

}  // namespace

ApiRoute queue_stats_route() { return {HttpMethod::get, "/v1/queues/{queue}/stats", TokenScope::read, stats}; }

}  // namespace argiope
