#include "render/devtools.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <system_error>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"

namespace argiope {
namespace {

constexpr std::size_t kReadAtOnce = 256 * 1024;

}  // namespace

Coro<Error> DevTools::run() {
  Error why{Errc::network, "the browser has ended"};
  std::string received;
  std::size_t looked = 0;    // bytes of it without an end of a message
  bool is_too_long = false;  // what has come of this message is dropped already
  try {
    while (co_await from_.read_onto(received, kReadAtOnce)) {
      std::size_t done = 0;
      for (std::size_t end; (end = received.find('\0', looked)) != std::string::npos; looked = done) {
        if (!std::exchange(is_too_long, false)) take(std::string_view(received).substr(done, end - done));
        done = end + 1;
      }
      received.erase(0, done);
      if (received.size() > most_bytes_) {
        spdlog::debug("the browser has sent a message of more than {} bytes, which is passed over", most_bytes_);
        is_too_long = true;
        std::string{}.swap(received);
      }
      looked = received.size();
    }
  } catch (const std::system_error&) {
    // It has ended, and its last words say more.
  } catch (const CancelledError&) {
    end({Errc::cancelled, "the browser is closed"});
    throw;
  }
  end(why);
  co_return why;
}

// A text that is no message is passed over: those who wait for one will notice.
void DevTools::take(std::string_view json) {
  auto message = DevToolsMessage::parse(json);
  if (!message) return;
  if (message->id == 0) {
    const auto listener = listeners_.find(message->session);
    if (listener != listeners_.end()) listener->second(*message);
    return;
  }
  const auto found = waiting_.find(message->id);
  if (found == waiting_.end()) return;
  Future<Result<DevToolsMessage>> answer = std::move(found->second);
  waiting_.erase(found);
  if (!answer.done()) answer.set_result(std::move(message));
}

void DevTools::end(Error why) {
  if (ended_) return;
  ended_ = std::move(why);
  for (auto& [id, answer] : std::exchange(waiting_, {})) {
    if (!answer.done()) answer.set_result(std::unexpected(*ended_));
  }
  // Those who only listen are told, too.
  const auto detached =
      DevToolsMessage::parse(R"({"method":"Inspector.detached","params":{"reason":"the browser has ended"}})");
  for (const auto& [session, listener] : listeners_) listener(*detached);
}

std::uint64_t DevTools::send(std::string_view method, std::string_view params, std::string_view session) {
  std::string text = json_object([&](JsonWriter& json) {
    json.member("id", ++last_id_);
    json.member("method", method);
    if (!session.empty()) json.member("sessionId", session);
    json.key("params");
    json.raw(params.empty() ? "{}" : params);
  });
  text += '\0';
  to_.write(text);
  return last_id_;
}

void DevTools::tell(std::string_view method, std::string_view params, std::string_view session) {
  if (ended_) return;
  try {
    send(method, params, session);
  } catch (const std::length_error&) {
    to_.abort();  // it reads no more; what waits will be told
    end({Errc::network, "the browser takes no more messages"});
  }
}

Coro<void> DevTools::tell_much(std::string_view method, std::string params, std::string session) {
  const auto held = co_await much_.scoped();
  tell(method, params, session);
  if (ended_) co_return;
  try {
    co_await to_.drain();
  } catch (const std::system_error&) {
    // run() will say so
  }
}

Coro<Result<DevToolsMessage>> DevTools::call(std::string method, std::string params, std::string session,
                                             Duration limit) {
  if (ended_) co_return std::unexpected(*ended_);
  auto answer = EventLoop::current().create_future<Result<DevToolsMessage>>();
  std::uint64_t id = 0;
  try {
    id = send(method, params, session);
  } catch (const std::length_error&) {
    co_return fail(Errc::network, "the browser takes no more messages");
  }
  waiting_.emplace(id, answer);
  struct Forgets {
    DevTools& tools;
    std::uint64_t id;
    ~Forgets() { tools.waiting_.erase(id); }
  } const forgets{*this, id};
  try {
    auto message = co_await timeout(limit).run(std::move(answer));
    if (message && message->error) {
      co_return fail(Errc::protocol, fmt::format("{}: {}", method, printable(*message->error, kMostQuoted)));
    }
    co_return message;
  } catch (const TimeoutError&) {
    // said below
  }
  co_return fail(Errc::timeout, fmt::format("the browser does not answer to {}", method));
}

}  // namespace argiope
