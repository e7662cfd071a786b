#include "serve/watch/counters.hpp"

#include <fmt/format.h>

#include "argiope/async/coro.hpp"

namespace argiope {

namespace {

// Which state has how many, in the order they are told.
constexpr std::array kStates{JobState::ready, JobState::delayed, JobState::running,
                             JobState::done,  JobState::buried,  JobState::cancelled};

void write_entry(JsonWriter& json, const StateCounts& counts, const PerTallied<double>& rates) {
  json.object([&] {
    write_members(json, counts);
    for (std::size_t i = 0; i < rates.size(); ++i) {
      json.key(fmt::format("{}_rate", kTalliedNames[i]));
      json.fixed(rates[i], 1);
    }
  });
}

void add(StateCounts& all, StateCounts more) {
  for (const JobState state : kStates) all.of(state) += more.of(state);
}

}  // namespace

void write_members(JsonWriter& json, const StateCounts& counts) {
  StateCounts copy = counts;
  for (const JobState state : kStates) json.member(to_string(state), copy.of(state));
}

Coro<Result<void>> Counters::refresh(Duration age) {
  const auto held = co_await lock_.scoped();
  if (closed_) co_return fail(Errc::cancelled, "the daemon is stopping");
  if (number_ > 0 && EventLoop::current().time() < saturating_add(taken_at_, age)) co_return Result<void>{};
  const auto counted = co_await or_return(engine_.book().counts());
  if (closed_) co_return fail(Errc::cancelled, "the daemon is stopping");
  entries_.clear();
  for (const auto& [name, counts] : counted) {
    Entry entry{.name = name, .counts = counts, .rates = tally_.rates(name), .json = {}};
    JsonWriter json(entry.json);
    write_entry(json, entry.counts, entry.rates);
    entries_.push_back(std::move(entry));
  }
  at_ = engine_.calendar_now();
  whole_ = write({});  // which may throw: then it is no snapshot
  taken_at_ = EventLoop::current().time();
  ++number_;
  co_return Result<void>{};
}

std::string Counters::json(const MaySee& may_see) const { return may_see ? write(may_see) : whole_; }

std::string Counters::write(const MaySee& may_see) const {
  StateCounts all;
  PerTallied<double> rates{};
  return json_object([&](JsonWriter& json) {
    json.member("at", at_);
    json.object("queues", [&] {
      for (const Entry& entry : entries_) {
        if (may_see && !may_see(entry.name)) continue;
        json.key(entry.name);
        json.raw(entry.json);
        add(all, entry.counts);
        for (std::size_t i = 0; i < rates.size(); ++i) rates[i] += entry.rates[i];
      }
    });
    json.key("totals");
    write_entry(json, all, rates);
    if (may_see || !daemon_) return;
    json.key("daemon");
    json.raw(daemon_());
  });
}

}  // namespace argiope
