// The file of who changed what: any bytes as the file, any bytes as the body of a change. What is read has numbers that
// grow and is a part of the file; what a crash has cut off is removed, and the file is then read as the same. Of a body
// nothing is told that hides in it.
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/internal/utf8.hpp"
#include "fuzz/require.hpp"
#include "serve/gate/audit_log.hpp"

using namespace argiope;

namespace {

// One file for all inputs.
const std::string& path() {
  static const std::string kPath = [] {
    std::string name = "/tmp/argiope-fuzz-audit-XXXXXX";
    const int fd = ::mkstemp(name.data());
    require(fd >= 0);
    ::close(fd);
    static std::string kept;
    kept = name;
    std::atexit([] { ::unlink(kept.c_str()); });
    return name;
  }();
  return kPath;
}

void write(std::string_view bytes) {
  const int fd = ::open(path().c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  require(fd >= 0 && ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  ::close(fd);
}

struct Entry {
  std::uint64_t number;
  std::string json;
  friend bool operator==(const Entry&, const Entry&) = default;
};
std::vector<Entry> read(std::size_t most_entries) {
  AuditLog log({.file = path(), .most_entries = most_entries, .most_bytes = 2'000});
  require(log.open().has_value());
  std::vector<Entry> entries;
  for (const AuditLog::Kept& kept : log.entries()) entries.push_back({kept.number, kept.json});
  return entries;
}

void read_file(std::string_view input) {
  write(input);
  const auto entries = read(20);
  require(entries.size() <= 20);
  std::size_t bytes = 0;
  std::uint64_t last = 0;
  for (const Entry& entry : entries) {
    require(entry.number > last && entry.json.find('\n') == std::string::npos);
    require(input.find(entry.json + '\n') != std::string_view::npos);
    last = entry.number;
    bytes += entry.json.size();
  }
  require(bytes <= 2'000);
  require(read(20) == entries);
}

void tell_of(std::string_view input) {
  const std::string told = audited_text(input);
  require(told.size() <= 1024 + 3 && told.find('\n') == std::string::npos);
  if (!told.empty()) require(is_utf8(told));
  // As a value that is hidden: a word of it that nothing else has is not told.
  std::string secret = R"({"queue":"q","payload":"topsecret)";
  for (const char c : input.substr(0, 200)) secret += static_cast<char>('a' + static_cast<unsigned char>(c) % 26);
  secret += R"(","jobs":[{"headers":{"x":"topsecret"}}]})";
  require(audited_text(secret).find("topsecret") == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spdlog::set_level(spdlog::level::off);
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  read_file(input);
  tell_of(input);
  return 0;
}
