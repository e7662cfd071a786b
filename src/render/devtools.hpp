// DevTools: the way to a browser by its debugging protocol, over a pair of pipes (Chromium's --remote-debugging-pipe):
// each message ends with a null byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/async/detail/future.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/stream.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/base/error.hpp"
#include "render/devtools_message.hpp"

namespace argiope {

// Threads:  the loop's own.
// Lifetime: outlives the tasks that call it, and run().
class DevTools {
 public:
  using Listener = std::function<void(const DevToolsMessage&)>;

  // The streams outlive it. Messages of the browser that are longer than `most_bytes` are passed over: one page, whose
  // request may have a body of any size, must not end the others'. A call that waits for such a message times out.
  DevTools(Stream& to, Stream& from, std::size_t most_bytes) : to_(to), from_(from), most_bytes_(most_bytes) {}

  // Takes what the browser says, until it says no more; then every call that waits fails. Why it has ended.
  // To be awaited once, by a task of its own. Cancel: ends it.
  Coro<Error> run();
  bool has_ended() const noexcept { return ended_.has_value(); }
  const Error& why_ended() const noexcept { return *ended_; }

  // Asks, and waits for the answer. `params`: a JSON object.
  // Errors: network when the browser has ended; protocol when it refuses; timeout after `limit`, and then it may be
  // stuck. Cancel: throws CancelledError; the answer is passed over.
  Coro<Result<DevToolsMessage>> call(std::string method, std::string params, std::string session, Duration limit);
  // Says something whose answer does not matter.
  void tell(std::string_view method, std::string_view params, std::string_view session);
  // The same for what is large: one at a time, each until most of it is sent.
  Coro<void> tell_much(std::string_view method, std::string params, std::string session);

  // Events of a session are told to `listener`, as they come, until forget(). It must not throw, and must not forget
  // itself.
  void listen(const std::string& session, Listener listener) { listeners_[session] = std::move(listener); }
  void forget(const std::string& session) { listeners_.erase(session); }

 private:
  std::uint64_t send(std::string_view method, std::string_view params, std::string_view session);
  void take(std::string_view json);
  void end(Error why);

  Stream& to_;
  Stream& from_;
  const std::size_t most_bytes_;
  std::uint64_t last_id_ = 0;
  Lock much_;
  std::map<std::uint64_t, Future<Result<DevToolsMessage>>> waiting_;
  std::map<std::string, Listener, std::less<>> listeners_;
  std::optional<Error> ended_;
};

}  // namespace argiope
