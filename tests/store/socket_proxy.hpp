// A proxy in front of a server at a socket, at a socket of its own, which loses what the test says.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/temporary_folder.hpp"

namespace argiope {

class SocketProxy {
 public:
  // `server`: the folder of the server's socket, which has the name `socket` there, and here.
  SocketProxy(const std::string& server, const std::string& socket)
      : server_(server + socket), socket_(folder() + socket) {
    const sockaddr_un address = address_of(socket_);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_, 16) != 0)
      throw std::runtime_error("no socket for a proxy");
    accepting_ = std::thread([this] { accept_all(); });
  }
  ~SocketProxy() {
    is_over_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    accepting_.join();
    for (std::thread& one : connections_) one.join();
    ::close(listener_);
  }
  SocketProxy(const SocketProxy&) = delete;
  std::string folder() const { return std::filesystem::path(folder_.file("x")).parent_path().string(); }

  // What the client says next reaches the server whole, and the connection ends without an answer.
  void lose_next_answer() { lose_answer_ = true; }
  // The connection ends before what the client says next reaches the server.
  void lose_next_request() { lose_request_ = true; }
  bool has_lost() const {
    const std::lock_guard lock(mutex_);
    return !lose_answer_ && !lose_request_ && text_.empty();
  }
  // As lose_next_answer(), of the next request that has `text` in it.
  void lose_answer_to(const std::string& text) {
    const std::lock_guard lock(mutex_);
    text_ = text;
  }
  // The next request that has `text` in it is kept, and its connection ends.
  void keep_request(const std::string& text) {
    const std::lock_guard lock(mutex_);
    kept_text_ = text;
  }
  bool has_kept() const {
    const std::lock_guard lock(mutex_);
    return !kept_.empty();
  }
  // What was kept reaches the server, which answers it.
  void deliver_kept() {
    std::string said;
    {
      const std::lock_guard lock(mutex_);
      said = std::exchange(kept_, {});
    }
    const int server = to_server();
    if (send_all(server, said)) await_end(server);
    ::close(server);
  }
  // Nothing is passed on any more; connections are made, and stay.
  void fall_silent() { is_silent_ = true; }
  // The same behind the answer to the next request.
  void fall_silent_after_next_answer() { is_silent_soon_ = true; }
  // Connections that are made from here on are as before; the others end.
  void speak_again() { is_silent_ = false; }
  // Before it passes on what the client says next (1), or then (2), and so on: `act`, once, in a thread of the proxy.
  void before_request(std::size_t number, std::function<void()> act) {
    const std::lock_guard lock(mutex_);
    requests_left_ = number;
    act_ = std::move(act);
  }
  bool has_acted() {
    const std::lock_guard lock(mutex_);
    return act_ == nullptr;
  }
  // How many there were.
  int connections() const { return count_; }
  // What clients have said, in all, and how often.
  std::size_t bytes() const { return bytes_; }
  std::size_t requests() const { return requests_; }

 private:
  static sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    return address;
  }
  void accept_all() {
    for (;;) {
      const int client = ::accept(listener_, nullptr, nullptr);
      if (client < 0) return;
      ++count_;
      connections_.emplace_back([this, client] { pass_on(client); });
    }
  }
  static bool send_all(int to, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  bool is_the_one(std::string_view said) {
    const std::lock_guard lock(mutex_);
    if (text_.empty() || said.find(text_) == std::string_view::npos) return false;
    text_.clear();
    return true;
  }
  bool keeps(std::string_view said) {
    const std::lock_guard lock(mutex_);
    if (kept_text_.empty() || said.find(kept_text_) == std::string_view::npos) return false;
    kept_text_.clear();
    kept_ = said;
    return true;
  }
  // -1: there is none.
  int to_server() const {
    const int server = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un address = address_of(server_);
    if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return server;
    ::close(server);
    return -1;
  }
  void note_request(std::size_t bytes) {
    bytes_ += bytes;
    ++requests_;
    std::function<void()> act;
    {
      const std::lock_guard lock(mutex_);
      if (act_ != nullptr && --requests_left_ == 0) act = std::exchange(act_, nullptr);
    }
    if (act != nullptr) act();
  }
  // The server ends a connection whose client has gone when it has done what was asked.
  void await_end(int server) {
    ::shutdown(server, SHUT_WR);
    std::array<char, 4096> buffer{};
    while (::read(server, buffer.data(), buffer.size()) > 0) {
    }
  }
  void pass_on(int client) {
    const int server = to_server();
    bool goes_on = server >= 0;
    std::array<char, 64 * 1024> buffer{};
    for (bool was_silent = false; goes_on && !is_over_ && (!was_silent || is_silent_); was_silent = is_silent_) {
      std::array<pollfd, 2> both{pollfd{.fd = client, .events = POLLIN}, pollfd{.fd = server, .events = POLLIN}};
      if (is_silent_) both[0].fd = both[1].fd = -1;
      if (::poll(both.data(), both.size(), 50) <= 0) continue;
      for (std::size_t i = 0; i < both.size() && goes_on; ++i) {
        if (both[i].revents == 0) continue;
        const ssize_t count = ::read(both[i].fd, buffer.data(), buffer.size());
        if (i == 0 && count > 0) note_request(static_cast<std::size_t>(count));
        if (count <= 0 || is_silent_) {
          goes_on = count > 0;
          continue;
        }
        const std::string_view said(buffer.data(), static_cast<std::size_t>(count));
        if (i == 0 && (lose_request_.exchange(false) || keeps(said))) {
          goes_on = false;
        } else {
          const bool loses = i == 0 && (lose_answer_.exchange(false) || is_the_one(said));
          goes_on = send_all(both[1 - i].fd, said) && !loses;
          if (loses) await_end(server);
          if (i == 1 && is_silent_soon_.exchange(false)) is_silent_ = true;
        }
      }
    }
    if (server >= 0) ::close(server);
    ::close(client);
  }

  const TemporaryFolder folder_;
  const std::string server_, socket_;
  const int listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::atomic<bool> is_over_ = false, lose_answer_ = false, lose_request_ = false;
  std::atomic<bool> is_silent_ = false, is_silent_soon_ = false;
  std::atomic<int> count_ = 0;
  std::atomic<std::size_t> bytes_ = 0, requests_ = 0;
  mutable std::mutex mutex_;
  std::string text_, kept_text_, kept_;
  std::size_t requests_left_ = 0;
  std::function<void()> act_;
  std::thread accepting_;
  std::vector<std::thread> connections_;
};

}  // namespace argiope
