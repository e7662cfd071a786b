// Loads in Redis' protocol. A list is pushed and popped, and a job that was popped is the worker's to lose. A stream
// with a group keeps what was read until it is acknowledged and deleted, as leases do.
#include <fmt/format.h>

#include <iterator>
#include <utility>
#include <vector>

#include "bench/load/protocol.hpp"

namespace argiope::bench {
namespace {

// Reads one reply from the front of `in` and gives its strings to `take`; 0: it is not whole.
template <class Take>
std::size_t read_reply(std::string_view in, Take take) {
  const std::size_t line = in.find('\n');
  if (line == std::string_view::npos) return 0;
  if (in.front() == '-') stop_load(in.substr(0, line));
  std::size_t used = line + 1;
  const auto size = static_cast<std::int64_t>(in.starts_with("$-") || in.starts_with("*-") ? -1 : 1) *
                    static_cast<std::int64_t>(number_after(in.substr(0, line), in.substr(0, 1)));
  if (in.front() == '$' && size >= 0) {
    const auto bytes = static_cast<std::size_t>(size);
    if (in.size() < used + bytes + 2) return 0;
    take(in.substr(used, bytes));
    return used + bytes + 2;
  }
  if (in.front() == '*') {
    for (std::int64_t i = 0; i < size; ++i) {
      const std::size_t part = read_reply(in.substr(used), take);
      if (part == 0) return 0;
      used += part;
    }
  }
  return used;
}

void append_command(std::string& out, std::initializer_list<std::string_view> words) {
  fmt::format_to(std::back_inserter(out), "*{}\r\n", words.size());
  for (const std::string_view word : words) fmt::format_to(std::back_inserter(out), "${}\r\n{}\r\n", word.size(), word);
}

class RedisListLoad final : public Protocol {
 public:
  using Protocol::Protocol;
  void put(std::string_view payload) override { append_command(out, {"RPUSH", "bench", payload}); }
  void work(std::size_t most) override {
    works_ = true;
    for (std::size_t i = 0; i < most; ++i) take();
  }
  std::size_t hear(std::string_view in) override {
    std::size_t used = 0;
    while (used < in.size()) {
      std::string_view last;
      const std::size_t size = read_reply(in.substr(used), [&](std::string_view text) { last = text; });
      if (size == 0) break;
      used += size;
      hear_reply(last);
    }
    return used;
  }

 private:
  void take() { append_command(out, {"BLPOP", "bench", "0"}); }
  void hear_reply(std::string_view last) {
    if (!works_) return listener_.put(*this, 1);
    listener_.came(last);
    take();
    listener_.settled(1);
  }
  bool works_ = false;
};

// The group is made beforehand.
class RedisStreamLoad final : public Protocol {
 public:
  using Protocol::Protocol;
  void put(std::string_view payload) override { append_command(out, {"XADD", "bench", "*", "p", payload}); }
  void work(std::size_t most) override {
    most_ = std::to_string(most);
    read();
  }
  std::size_t hear(std::string_view in) override {
    std::size_t used = 0;
    while (used < in.size()) {
      std::size_t strings = 0;
      std::vector<std::string_view> ids;
      const std::size_t size = read_reply(in.substr(used), [&](std::string_view text) {
        // The stream's name, and of each entry its id, a name and the payload.
        if (strings++ % 3 == 1) ids.push_back(text);
        if (strings > 1 && strings % 3 == 1) listener_.came(text);
      });
      if (size == 0) break;
      used += size;
      hear_reply(ids, strings);
    }
    return used;
  }

 private:
  void read() {
    append_command(out,
                   {"XREADGROUP", "GROUP", "workers", "w", "COUNT", most_, "BLOCK", "60000", "STREAMS", "bench", ">"});
  }
  void hear_reply(const std::vector<std::string_view>& ids, std::size_t strings) {
    if (most_.empty()) return listener_.put(*this, 1);
    if (strings > 1) return settle(ids);
    if (answers_to_come_ > 0 && --answers_to_come_ == 0) listener_.settled(std::exchange(settling_, 0));
  }
  void settle(const std::vector<std::string_view>& ids) {
    append_many("XACK", {"bench", "workers"}, ids);
    append_many("XDEL", {"bench"}, ids);
    settling_ = ids.size();
    answers_to_come_ = 2;
    read();
  }
  void append_many(std::string_view word, std::initializer_list<std::string_view> first,
                   const std::vector<std::string_view>& ids) {
    fmt::format_to(std::back_inserter(out), "*{}\r\n${}\r\n{}\r\n", 1 + first.size() + ids.size(), word.size(), word);
    const auto append = [&](std::string_view text) {
      fmt::format_to(std::back_inserter(out), "${}\r\n{}\r\n", text.size(), text);
    };
    for (const std::string_view text : first) append(text);
    for (const std::string_view id : ids) append(id);
  }

  std::string most_;  // of a worker
  std::size_t answers_to_come_ = 0;
  std::size_t settling_ = 0;
};

}  // namespace

std::unique_ptr<Protocol> make_redis(Listener& listener, const ProtocolOptions&) {
  return std::make_unique<RedisListLoad>(listener);
}
std::unique_ptr<Protocol> make_redis_stream(Listener& listener, const ProtocolOptions&) {
  return std::make_unique<RedisStreamLoad>(listener);
}

}  // namespace argiope::bench
