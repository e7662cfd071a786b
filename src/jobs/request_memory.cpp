#include "jobs/internal/request_memory.hpp"

#include <algorithm>
#include <limits>

namespace argiope {
namespace {

// Numbers take 7 bits a byte, the lowest first; texts follow their length. An item is refused where it begins with
// kRefused, the error's code and its message.
constexpr std::uint64_t kRefused = 0;

class ReplyWriter {
 public:
  void number(std::uint64_t number) {
    for (; number >= 0x80; number >>= 7) bytes_ += static_cast<char>(number | 0x80);
    bytes_ += static_cast<char>(number);
  }
  void text(std::string_view text) {
    number(text.size());
    bytes_ += text;
  }
  void error(const Error& error) {
    number(kRefused);
    number(static_cast<std::uint64_t>(error.code));
    text(error.message);
  }
  void put(const PutReply& reply) {
    number(1 + static_cast<std::uint64_t>(reply.outcome));
    number(reply.id);
  }
  template <class Items, class Write>
  void each(const Items& items, Write write) {
    number(items.size());
    for (const auto& item : items) write(item);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Whatever is not there is 0, and says so at the end.
class ReplyReader {
 public:
  explicit ReplyReader(std::string_view bytes) noexcept : rest_(bytes) {}

  std::uint64_t number(std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      number |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80 && number <= most) return number;
    }
    return broken();
  }
  std::string text() {
    const std::uint64_t size = number(rest_.size());
    if (size > rest_.size()) return std::string(broken(), ' ');
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return std::string(text);
  }
  // After kRefused.
  Error error() {
    const auto code = static_cast<Errc>(number(static_cast<std::uint64_t>(Errc::conflict)));
    return {code, text()};
  }
  Result<PutReply> put() {
    const std::uint64_t kind = number(1 + static_cast<std::uint64_t>(PutOutcome::taken));
    if (kind == kRefused) return std::unexpected(error());
    return PutReply{static_cast<PutOutcome>(kind - 1), number(kMostJobId), {}};
  }
  // Each item has a byte at least.
  template <class Read>
  void each(Read read) {
    for (std::uint64_t left = number(rest_.size()); left > 0 && good_; --left) read();
  }
  bool at_end() const noexcept { return good_ && rest_.empty(); }

 private:
  std::uint64_t broken() noexcept {
    good_ = false;
    rest_ = {};
    return 0;
  }

  std::string_view rest_;
  bool good_ = true;
};

}  // namespace

std::string remembered(const OnceReply& reply) {
  ReplyWriter out;
  out.each(reply.puts, [&](const Result<PutReply>& put) { put ? out.put(*put) : out.error(put.error()); });
  out.each(reply.settlements, [&](const SettleReply& settled) {
    if (settled.refused) return out.error(*settled.refused);
    out.number(settled.settled ? 2 : 1);
    out.number(static_cast<std::uint64_t>(settled.outcome));
    out.each(settled.follow_ups, [&](const PutReply& put) { out.put(put); });
  });
  out.each(reply.changes, [&](const ChangeReply& change) { out.number(static_cast<std::uint64_t>(change.outcome)); });
  return out.take();
}

std::optional<OnceReply> recalled(std::string_view bytes) {
  OnceReply reply{.how = Repetition::repeated};
  ReplyReader in(bytes);
  in.each([&] { reply.puts.push_back(in.put()); });
  in.each([&] {
    SettleReply& settled = reply.settlements.emplace_back();
    const std::uint64_t kind = in.number(2);
    if (kind == kRefused) {
      settled.refused = in.error();
      return;
    }
    settled.settled = kind == 2;
    settled.outcome = static_cast<Outcome>(in.number(static_cast<std::uint64_t>(Outcome::expire)));
    in.each([&] {
      if (auto put = in.put()) settled.follow_ups.push_back(std::move(*put));
    });
  });
  in.each([&] {
    const std::uint64_t outcome = in.number(static_cast<std::uint64_t>(ChangeOutcome::asked));
    reply.changes.push_back({.outcome = static_cast<ChangeOutcome>(outcome)});
  });
  return in.at_end() ? std::optional(std::move(reply)) : std::nullopt;
}

}  // namespace argiope
