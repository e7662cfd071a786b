// What is kept of the answer to a request with an Idempotency-Key: any bytes, and any answer. What is read as an answer
// is written and read as the same; and what is written is read back.
#include "jobs/internal/request_memory.hpp"

#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"

using namespace argiope;

namespace {

// Numbers and texts from the bytes of an input; zeros at its end.
class Draw {
 public:
  explicit Draw(std::string_view input) : rest_(input) {}
  std::uint64_t number(std::uint64_t below) {
    std::uint64_t drawn = 0;
    const int bytes = below > 0x100 ? 8 : 1;
    for (int i = 0; i < bytes; ++i) drawn = drawn << 8 | byte();
    return drawn % below;
  }
  std::string text() {
    const std::size_t size = std::min<std::size_t>(byte(), rest_.size());
    std::string drawn(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return drawn;
  }

 private:
  unsigned char byte() {
    if (rest_.empty()) return 0;
    const auto first = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return first;
  }
  std::string_view rest_;
};

Error some_error(Draw& draw) {
  return {static_cast<Errc>(draw.number(static_cast<std::uint64_t>(Errc::internal) + 1)), draw.text()};
}
PutReply some_put(Draw& draw) {
  return {.outcome = static_cast<PutOutcome>(draw.number(static_cast<std::uint64_t>(PutOutcome::cancelled) + 1)),
          .id = draw.number(kMostJobId + 1),
          .job = {},
          .cancelled = {}};
}
OnceReply some_reply(Draw draw) {
  OnceReply reply;
  for (std::uint64_t left = draw.number(8); left > 0; --left) {
    if (draw.number(3) == 0) {
      reply.puts.emplace_back(std::unexpected(some_error(draw)));
    } else {
      reply.puts.emplace_back(some_put(draw));
    }
  }
  for (std::uint64_t left = draw.number(8); left > 0; --left) {
    SettleReply& settled = reply.settlements.emplace_back();
    if (draw.number(3) == 0) {
      settled.refused = some_error(draw);
      continue;
    }
    settled.settled = draw.number(2) == 1;
    settled.outcome = static_cast<Outcome>(draw.number(static_cast<std::uint64_t>(Outcome::expire) + 1));
    for (std::uint64_t more = draw.number(4); more > 0; --more) settled.follow_ups.push_back(some_put(draw));
  }
  for (std::uint64_t left = draw.number(8); left > 0; --left) {
    const auto outcome = draw.number(static_cast<std::uint64_t>(ChangeOutcome::asked) + 1);
    reply.changes.push_back(
        {.outcome = static_cast<ChangeOutcome>(outcome), .job = {}, .released = {}, .cancelled = {}, .ended_runs = {}});
  }
  return reply;
}

bool same(const Error& a, const Error& b) { return a.code == b.code && a.message == b.message; }
bool same(const PutReply& a, const PutReply& b) { return a.outcome == b.outcome && a.id == b.id; }
bool same(const Result<PutReply>& a, const Result<PutReply>& b) {
  if (a.has_value() != b.has_value()) return false;
  return a ? same(*a, *b) : same(a.error(), b.error());
}
bool same(const SettleReply& a, const SettleReply& b) {
  if (a.refused.has_value() != b.refused.has_value()) return false;
  if (a.refused) return same(*a.refused, *b.refused);
  if (a.settled != b.settled || a.outcome != b.outcome || a.follow_ups.size() != b.follow_ups.size()) return false;
  for (std::size_t i = 0; i < a.follow_ups.size(); ++i) {
    if (!same(a.follow_ups[i], b.follow_ups[i])) return false;
  }
  return true;
}
void require_same(const OnceReply& a, const OnceReply& b) {
  require(a.puts.size() == b.puts.size() && a.settlements.size() == b.settlements.size() &&
          a.changes.size() == b.changes.size());
  for (std::size_t i = 0; i < a.puts.size(); ++i) require(same(a.puts[i], b.puts[i]));
  for (std::size_t i = 0; i < a.settlements.size(); ++i) require(same(a.settlements[i], b.settlements[i]));
  for (std::size_t i = 0; i < a.changes.size(); ++i) require(a.changes[i].outcome == b.changes[i].outcome);
}

void check_bounds(const OnceReply& reply, std::size_t bytes) {
  require(reply.how == Repetition::repeated);
  require(reply.puts.size() + reply.settlements.size() + reply.changes.size() <= bytes);
  for (const auto& put : reply.puts) {
    if (put) require(put->id <= kMostJobId && put->outcome <= PutOutcome::cancelled);
    if (!put) require(put.error().code <= Errc::internal && put.error().message.size() <= bytes);
  }
  for (const SettleReply& settled : reply.settlements) {
    require(settled.outcome <= Outcome::expire && settled.follow_ups.size() <= bytes);
    for (const PutReply& put : settled.follow_ups) require(put.id <= kMostJobId);
  }
  for (const ChangeReply& change : reply.changes) require(change.outcome <= ChangeOutcome::asked);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (const auto read = recalled(input)) {
    check_bounds(*read, size);
    const auto again = recalled(remembered(*read));
    require(again.has_value());
    require_same(*read, *again);
  }
  const OnceReply reply = some_reply(Draw(input));
  const std::string written = remembered(reply);
  const auto read = recalled(written);
  require(read.has_value());
  require_same(reply, *read);
  // What was cut off, or goes on, is none.
  require(!recalled(std::string_view(written).substr(0, written.size() - 1)) && !recalled(written + '\0'));
  return 0;
}
