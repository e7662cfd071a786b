// Clients of a daemon at Unix sockets, for tests of long load: they say what they were answered, or that the connection
// was lost.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/async/stream.hpp"
#include "base/internal/json_reader.hpp"

namespace argiope {

// What all of them were told, as one number: the same in each run from the same seed.
class Trace {
 public:
  void note(std::string_view text) noexcept {
    for (const char c : text) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    ++notes_;
  }
  std::uint64_t hash() const noexcept { return hash_; }
  std::uint64_t notes() const noexcept { return notes_; }

  std::uint64_t changes = 0;  // requests that are told in the audit

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325u;
  std::uint64_t notes_ = 0;
};

// Calls `work`, a coroutine; false where the connection was lost.
template <class Work>
Coro<bool> unless_lost(Work work) {
  try {
    co_await work();
    co_return true;
  } catch (const std::system_error&) {
  } catch (const IncompleteReadError&) {
  }
  co_return false;
}

struct SoakReply {
  int status = 0;  // 0: the connection was lost
  std::string body;
  explicit operator bool() const noexcept { return status >= 200 && status < 300; }
};

// One connection at a time, made when it is needed.
class SoakHttp {
 public:
  SoakHttp(std::string path, Trace& trace) : path_(std::move(path)), trace_(trace) {}

  Coro<SoakReply> ask(std::string_view method, std::string target, std::string body = {}, std::string fields = {}) {
    SoakReply reply;
    std::string request = std::string(method) + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + fields;
    if (method != "GET") request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    request += "\r\n" + body;
    const bool good = co_await unless_lost([&]() -> Coro<void> {
      co_await connect();
      stream_->write(request);
      const std::string head = co_await stream_->read_until("\r\n\r\n");
      reply.body = co_await stream_->read_exactly(length_in(head));
      reply.status = std::stoi(head.substr(9, 3));
      if (head.find("Connection: close") != std::string::npos) leave();
    });
    if (!good) {
      leave();
      reply = {};
    }
    trace_.note(reply.body);
    const bool is_everyday = target == "/v1/jobs" || target.starts_with("/v1/leases");
    if (method != "GET" && !is_everyday) ++trace_.changes;
    co_return reply;
  }
  Coro<SoakReply> get(std::string target) { return ask("GET", std::move(target)); }
  Coro<SoakReply> post(std::string target, std::string body, std::string fields = {}) {
    return ask("POST", std::move(target), std::move(body), std::move(fields));
  }

  // Sends it and leaves, whatever comes of it.
  Coro<void> post_and_leave(std::string target, std::string body, std::string fields) {
    (void)co_await unless_lost([&]() -> Coro<void> {
      co_await connect();
      stream_->write("POST " + target + " HTTP/1.1\r\nHost: localhost\r\n" + fields +
                     "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
      co_await stream_->drain();
    });
  }
  Coro<void> connect() {
    if (!stream_) stream_.emplace(co_await open_unix_connection(path_));
  }
  Stream& stream() { return *stream_; }
  void leave() { stream_.reset(); }

 private:
  static std::size_t length_in(std::string_view head) {
    constexpr std::string_view kName = "Content-Length: ";
    const std::size_t at = head.find(kName);
    std::size_t length = 0;
    if (at != std::string_view::npos)
      std::from_chars(head.data() + at + kName.size(), head.data() + head.size(), length);
    return length;
  }

  const std::string path_;
  Trace& trace_;
  std::optional<Stream> stream_;
};

// One connection of beanstalkd's protocol.
class SoakBeanstalkd {
 public:
  SoakBeanstalkd(std::string path, Trace& trace) : path_(std::move(path)), trace_(trace) {}

  // The words of the answer, the last of which is its data where it has some; none: the connection was lost.
  Coro<std::vector<std::string>> ask(std::string command) {
    std::vector<std::string> words;
    const bool good = co_await unless_lost([&]() -> Coro<void> {
      if (!stream_) stream_.emplace(co_await open_unix_connection(path_));
      stream_->write(command + "\r\n");
      const std::string line = co_await stream_->read_until("\r\n");
      trace_.note(line);
      for (std::size_t from = 0; from < line.size() - 2;) {
        const std::size_t end = std::min(line.find(' ', from), line.size() - 2);
        words.push_back(line.substr(from, end - from));
        from = end + 1;
      }
      if (words[0] == "RESERVED" || words[0] == "FOUND" || words[0] == "OK") {
        const std::string data = co_await stream_->read_exactly(std::stoul(words.back()) + 2);
        words.push_back(data.substr(0, data.size() - 2));
      }
    });
    if (!good) {
      leave();
      words.clear();
    }
    co_return words;
  }
  // A command with its data.
  Coro<std::vector<std::string>> put(std::string_view data, int ttr) {
    return ask("put 5 0 " + std::to_string(ttr) + " " + std::to_string(data.size()) + "\r\n" + std::string(data));
  }
  void leave() { stream_.reset(); }

 private:
  const std::string path_;
  Trace& trace_;
  std::optional<Stream> stream_;
};

}  // namespace argiope
