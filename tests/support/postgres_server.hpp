// A server of PostgreSQL that a test program starts for itself, where one is installed.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "support/temporary_folder.hpp"

namespace argiope {

// In a folder of its own, reached by a socket there alone.
class PostgresServer {
 public:
  // One for the whole program, started when it is asked for first; null: none is installed, or it does not start.
  static PostgresServer* shared() {
    static const std::unique_ptr<PostgresServer> server = [] {
      const std::string programs = installed_programs();
      auto made = programs.empty() ? nullptr : std::make_unique<PostgresServer>(programs);
      return made == nullptr || made->is_up() ? std::move(made) : nullptr;
    }();
    return server.get();
  }
  static constexpr const char* kNotThere =
      "no PostgreSQL is installed, or it does not start: apt-get install postgresql";

  // Where the programs of the newest version are; empty: none is installed.
  static std::string installed_programs() {
    std::string newest;
    std::error_code none;
    for (const auto& version : std::filesystem::directory_iterator("/usr/lib/postgresql", none)) {
      const std::string programs = (version.path() / "bin").string();
      if (std::filesystem::exists(programs + "/initdb") && std::filesystem::exists(programs + "/psql"))
        newest = std::max(newest, programs);
    }
    return newest;
  }

  explicit PostgresServer(std::string programs)
      : programs_(std::move(programs)), path_(std::filesystem::path(folder_.file("x")).parent_path().string()) {
    ::chmod(path_.c_str(), 0777);
    is_up_ = run("initdb -D '" + path_ + "/data' -U argiope -A trust -E UTF8 --locale=C --no-sync") && start();
  }
  ~PostgresServer() { stop(); }
  bool start() {
    return run("pg_ctl -D '" + path_ + "/data' -w -t 60 -l '" + path_ +
               "/log' -o \"-F -c listen_addresses='' -c unix_socket_directories='" + path_ + "'\" start");
  }
  bool stop() { return run("pg_ctl -D '" + path_ + "/data' -m immediate -w stop"); }
  bool is_up() const { return is_up_; }
  const std::string& path() const { return path_; }
  std::string connection() const { return "host=" + path_ + " user=argiope dbname=postgres"; }
  // Of a store in a schema that nobody has used yet.
  std::string new_store() { return store("t" + std::to_string(++schemas_)); }
  void drop_store(const std::string& where) const {
    query("drop schema " + where.substr(where.rfind('=') + 1) + " cascade");
  }
  std::string store(const std::string& schema) const { return store_at(path_, schema); }
  static std::string store_at(const std::string& folder, const std::string& schema) {
    return "postgresql:///postgres?host=" + folder + "&user=argiope&schema=" + schema;
  }

  // What psql prints, without the line's end.
  std::string query(const std::string& sql) const {
    FILE* const pipe =
        ::popen((programs_ + "/psql -X -q -At '" + connection() + "' -c \"" + sql + "\" 2>&1").c_str(), "re");
    std::string said;
    std::array<char, 4096> buffer{};
    for (std::size_t count; (count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
      said.append(buffer.data(), count);
    ::pclose(pipe);
    if (said.ends_with('\n')) said.pop_back();
    return said;
  }
  // Has another hold what the statement locks until it is released.
  void hold(const std::string& statement) const {
    (void)!std::system((programs_ + "/psql -X -q '" + connection() + "' -c \"begin; " + statement +
                        "; select pg_sleep(600)\" >/dev/null 2>&1 &")
                           .c_str());
    while (query("select count(*) from pg_stat_activity where wait_event = 'PgSleep'") == "0") {
    }
  }
  void release() const {
    query(
        "select pg_terminate_backend(pid) from pg_stat_activity where query like '%pg_sleep%' and pid <> "
        "pg_backend_pid()");
  }

 private:
  // The server refuses to be root's.
  bool run(const std::string& command) const {
    const std::string whole = programs_ + "/" + command + " </dev/null >/dev/null 2>&1";
    if (::geteuid() != 0) return std::system(whole.c_str()) == 0;
    std::string quoted;
    for (const char c : whole) quoted += c == '\'' ? "'\\''" : std::string(1, c);
    return std::system(("cd / && runuser -u postgres -- sh -c '" + quoted + "'").c_str()) == 0;
  }

  const std::string programs_;
  const TemporaryFolder folder_;
  const std::string path_;
  bool is_up_ = false;
  int schemas_ = 0;
};

}  // namespace argiope
