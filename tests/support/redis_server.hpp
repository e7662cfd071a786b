// A Redis server that a test program starts for itself, where one is installed.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/redis/redis_connection.hpp"
#include "support/processes.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {

// In a folder of its own, reached by a socket there alone.
class RedisServer {
 public:
  static constexpr const char* kNotThere = "no Redis is installed: apt-get install redis-server";
  static constexpr const char* kProgram = "/usr/bin/redis-server";

  static bool is_installed() { return std::filesystem::exists(kProgram); }
  // One for the whole program, which keeps nothing; started when it is asked for first. Null: none is installed.
  static RedisServer* shared() {
    static const std::unique_ptr<RedisServer> server = is_installed() ? std::make_unique<RedisServer>() : nullptr;
    return server.get();
  }
  // `options`: as its configuration file has them.
  explicit RedisServer(std::string options = "appendonly no\n") : options_(std::move(options)) {
    start();
    ask("PING");
  }
  ~RedisServer() { stop(); }
  RedisServer(const RedisServer&) = delete;

  void start() {
    const std::string config = "port 0\nunixsocket " + socket_ + "\ndir " + folder_.file("") +
                               "\nsave \"\"\nlogfile log\ndaemonize no\n" + options_;
    process_ = ::fork();
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const std::string file = folder_.file("redis.conf");
      std::ofstream(file) << config;
      ::execl(kProgram, kProgram, file.c_str(), nullptr);
      ::_exit(127);
    }
  }
  void stop(int signal = SIGTERM) {
    if (process_ <= 0) return;
    ::kill(process_, SIGCONT);
    ::kill(process_, signal);
    ::waitpid(std::exchange(process_, 0), nullptr, 0);
  }
  // It answers nothing until it may go on.
  void pause() const { ::kill(process_, SIGSTOP); }
  void go_on() const { ::kill(process_, SIGCONT); }

  static constexpr const char* kSocket = "/redis.sock";
  std::string folder() const { return socket_.substr(0, socket_.rfind('/')); }
  std::string url(const std::string& options, const std::string& credentials = {}) const {
    return url_at(folder(), options, credentials);
  }
  static std::string url_at(const std::string& folder, const std::string& options,
                            const std::string& credentials = {}) {
    std::string host;
    for (const char c : folder + kSocket) host += c == '/' ? "%2F" : std::string(1, c);
    return "redis://" + credentials + host + "/0?" + options;
  }
  // Of a store that nobody has used yet.
  std::string new_store() { return url("durability=none&store_timeout=300&prefix=t" + std::to_string(++stores_)); }

  // The reply to a command as text, numbers too; waits for a server that has only been started.
  template <class... Arguments>
  std::string ask(const Arguments&... arguments) {
    RedisAddress address = parse_redis_url(url("")).value();
    address.store_timeout = kPatience;
    RedisConnection connection(std::move(address));
    connection.be_patient();
    RedisCommands commands;
    commands.add(std::string_view(arguments)...);
    const RedisReplies replies = connection.ask(commands);
    return replies[0].text().empty() ? std::to_string(replies[0].number()) : std::string(replies[0].text());
  }

 private:
  const std::string options_;
  const TemporaryFolder folder_;
  const std::string socket_ = folder_.file(kSocket + 1);
  pid_t process_ = 0;
  int stores_ = 0;
};

}  // namespace argiope
