#include "project/rules/internal/failure_pause.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "base/internal/json_members.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/wall_time.hpp"

namespace argiope {
namespace {

constexpr std::int64_t kMostStoredNumber = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view kPauseStates[] = {"running", "paused", "probing"};

// JSON's whole numbers are signed.
std::int64_t as_stored(std::uint64_t number) { return static_cast<std::int64_t>(number); }

}  // namespace

FailurePause::FailurePause(PauseRules rules) : rules_(rules) {
  if (rules_.probes == 0 || rules_.first <= Duration{} || rules_.longest < rules_.first ||
      rules_.probing <= Duration{}) {
    throw std::invalid_argument("a pause needs probes, and lengths above zero");
  }
}

void FailurePause::run() {
  state_ = State::running;
  ++epoch_;
  begun_ = failed_probes_ = under_way_ = 0;
}

void FailurePause::pause(WallTime now) {
  length_ = length_ == Duration{}
                ? rules_.first
                : std::min(rules_.longest, length_ > rules_.longest / 2 ? rules_.longest : 2 * length_);
  state_ = State::paused;
  ++epoch_;
  changes_at_ = saturating_add(now, length_);
  begun_ = failed_probes_ = 0;
}

void FailurePause::advance(WallTime now) {
  if (state_ == State::running) return;
  // A clock that was set back.
  const Duration longest = state_ == State::paused ? length_ : rules_.probing;
  if (changes_at_ > saturating_add(now, longest)) changes_at_ = saturating_add(now, longest);
  if (changes_at_ > now) return;
  if (state_ == State::paused) {
    state_ = State::probing;
    ++epoch_;
    changes_at_ = saturating_add(now, rules_.probing);
    begun_ = failed_probes_ = 0;
  } else if (begun_ > 0) {
    pause(now);
  } else {
    // There was nothing to probe with. It takes as many failures as a probing does to pause it again, for twice as
    // long.
    run();
    failures_ = rules_.after > rules_.probes ? rules_.after - rules_.probes : 0;
  }
}

FailurePause FailurePause::advanced(WallTime now) const {
  FailurePause then = *this;
  then.advance(now);
  return then;
}

bool FailurePause::may_begin(WallTime now) const {
  const FailurePause then = advanced(now);
  if (then.state_ == State::probing) return then.begun_ < rules_.probes;
  if (then.state_ == State::paused) return false;
  const bool may_pause = then.failures_ > 0 && rules_.after > 0 && then.spans_hosts();
  return !may_pause || then.under_way_ == 0 || then.failures_ + then.under_way_ < rules_.after;
}

std::optional<VisitPass> FailurePause::begin(WallTime now) {
  advance(now);
  if (!may_begin(now)) return std::nullopt;
  if (state_ == State::probing) {
    // The time counts from the first one: a queue that was empty has had no chance.
    if (begun_ == 0) changes_at_ = saturating_add(now, rules_.probing);
    ++begun_;
  } else {
    ++under_way_;
  }
  return VisitPass{epoch_};
}

void FailurePause::left(VisitPass pass) noexcept {
  if (state_ == State::running && pass.epoch == epoch_ && under_way_ > 0) --under_way_;
}

void FailurePause::give_back(VisitPass pass) {
  left(pass);
  if (state_ == State::probing && pass.epoch == epoch_ && begun_ > failed_probes_) --begun_;
}

void FailurePause::ended(VisitPass pass, std::uint64_t host, bool succeeded, WallTime now) {
  advance(now);
  left(pass);
  if (!first_host_) first_host_ = host;
  knows_several_hosts_ = knows_several_hosts_ || *first_host_ != host;
  if (pass.epoch != epoch_ || rules_.after == 0) return;
  if (succeeded) {
    failures_ = 0;
    failing_host_.reset();
    failing_hosts_differ_ = false;
    length_ = {};
    if (state_ == State::probing) run();
    return;
  }
  if (state_ == State::probing) {
    if (++failed_probes_ >= rules_.probes) pause(now);
    return;
  }
  if (!failing_host_) failing_host_ = host;
  failing_hosts_differ_ = failing_hosts_differ_ || *failing_host_ != host;
  failures_ = std::min(failures_ + 1, rules_.after);
  if (failures_ >= rules_.after && spans_hosts()) pause(now);
}

void FailurePause::set_after(std::uint32_t after) {
  rules_.after = after;
  failures_ = std::min(failures_, after);
  if (after == 0) resume();
}

void FailurePause::resume() {
  if (state_ == State::running) return;
  run();
  failures_ = 0;
  failing_host_.reset();
  failing_hosts_differ_ = false;
  length_ = {};
}

std::optional<WallTime> FailurePause::next_change() const {
  return state_ == State::running ? std::nullopt : std::optional(changes_at_);
}

std::string FailurePause::stored() const {
  return json_object([&](JsonWriter& out) {
    // A probing begins anew, at once: what was on its way is lost with the process.
    out.member("state", to_string(state_ == State::running ? State::running : State::paused));
    out.member("failures", failures_);
    out.member("length_ns", length_.count());
    if (state_ == State::paused && changes_at_ != WallTime{})
      out.member("until_ns", changes_at_.time_since_epoch().count());
    if (first_host_) out.member("first_host", as_stored(*first_host_));
    if (failing_host_) out.member("failing_host", as_stored(*failing_host_));
    if (knows_several_hosts_) out.member("several_hosts", true);
    if (failing_hosts_differ_) out.member("failing_hosts", true);
  });
}

Result<FailurePause> FailurePause::read(std::string_view stored, PauseRules rules) {
  const auto text = JsonText::parse_object("the pause of a project", stored, 4096);
  if (!text) return std::unexpected(text.error());
  JsonErrors errors;
  const JsonValue form = text->root(errors);
  JsonMembers in(form);
  FailurePause pause(rules);
  in.choice("state", pause.state_, kPauseStates);
  pause.failures_ = static_cast<std::uint32_t>(in.whole("failures", std::numeric_limits<std::uint32_t>::max()));
  pause.length_ = Duration{in.whole("length_ns", kMostStoredNumber)};
  pause.changes_at_ = WallTime{Duration{in.whole("until_ns", kMostStoredNumber)}};
  const auto host = [&](std::string_view name) -> std::optional<std::uint64_t> {
    if (!in.has(name)) return std::nullopt;
    return static_cast<std::uint64_t>(in.whole(name, kMostStoredNumber, std::numeric_limits<std::int64_t>::min()));
  };
  pause.first_host_ = host("first_host");
  pause.failing_host_ = host("failing_host");
  pause.knows_several_hosts_ = in.flag("several_hosts", false);
  pause.failing_hosts_differ_ = in.flag("failing_hosts", false);
  in.finish("a pause has none");
  if (errors) return std::unexpected(errors.error());
  // Its rules may have changed.
  pause.failures_ = std::min(pause.failures_, rules.after);
  pause.length_ = std::min(pause.length_, rules.longest);
  if (rules.after == 0 || pause.state_ != State::paused) pause.state_ = State::running;
  if (pause.state_ == State::paused && pause.length_ == Duration{}) pause.length_ = rules.first;
  return pause;
}

std::string_view to_string(FailurePause::State state) noexcept { return kPauseStates[static_cast<std::size_t>(state)]; }

}  // namespace argiope
