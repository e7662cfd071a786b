// Sorting an index that may be larger than memory: parts are sorted in memory and written beside the file, and then merged.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "web/internal/cdxj.hpp"

namespace argiope {
namespace {

struct CloseStream {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using OutStream = std::unique_ptr<std::FILE, CloseStream>;

std::unexpected<Error> not_sorted(const std::string& path, const std::string& file) {
  const Errc code = errno == ENOSPC || errno == EDQUOT ? Errc::disk_full : Errc::io;
  return fail(code, fmt::format("{}: cannot be sorted: {}: {}", path, file, std::strerror(errno)));
}

// LinesInMemory, and their order.
class LinesInMemory {
 public:
  // Reads on until there are so many bytes. False: there are no more lines.
  bool read(std::ifstream& in, std::size_t most) {
    text_.clear();
    places_.clear();
    for (std::string line; text_.size() < most && std::getline(in, line);) {
      places_.emplace_back(text_.size(), line.size());
      text_ += line;
    }
    return !places_.empty();
  }
  void sort() {
    std::ranges::sort(places_, {}, [&](const Place& place) { return line(place); });
  }
  bool write(std::FILE* out) const {
    return std::ranges::all_of(places_, [&](const Place& place) {
      const std::string_view text = line(place);
      return std::fwrite(text.data(), 1, text.size(), out) == text.size() && std::fputc('\n', out) != EOF;
    });
  }

 private:
  using Place = std::pair<std::size_t, std::size_t>;
  std::string_view line(const Place& place) const { return std::string_view(text_).substr(place.first, place.second); }

  std::string text_;
  std::vector<Place> places_;
};

// The files beside the one that is sorted. Removed with it, whatever becomes of it.
class PartFiles {
 public:
  explicit PartFiles(std::string path) : path_(std::move(path)) {}
  ~PartFiles() {
    for (const std::string& name : names_) ::unlink(name.c_str());
  }
  const std::string& add() { return names_.emplace_back(fmt::format("{}.sorting-{}", path_, names_.size())); }
  const std::vector<std::string>& names() const noexcept { return names_; }

 private:
  const std::string path_;
  std::vector<std::string> names_;
};

bool are_sorted(std::ifstream& in) {
  for (std::string before, line; std::getline(in, line); before.swap(line)) {
    if (line < before) return false;
  }
  return true;
}

Result<void> write_part(const LinesInMemory& lines, const std::string& path, const std::string& name) {
  const OutStream out(std::fopen(name.c_str(), "we"));
  if (out == nullptr || !lines.write(out.get()) || std::fflush(out.get()) != 0) return not_sorted(path, name);
  return {};
}

bool merge_parts(const std::vector<std::string>& names, std::FILE* out) {
  std::vector<std::ifstream> parts;
  using Next = std::pair<std::string, std::size_t>;  // a line, and the part it is from
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
  const auto read_on = [&](std::size_t part) {
    std::string line;
    if (std::getline(parts[part], line)) next.emplace(std::move(line), part);
  };
  for (const std::string& name : names) {
    parts.emplace_back(name, std::ios::binary);
    read_on(parts.size() - 1);
  }
  while (!next.empty()) {
    const auto [line, part] = next.top();
    next.pop();
    if (std::fwrite(line.data(), 1, line.size(), out) != line.size() || std::fputc('\n', out) == EOF) return false;
    read_on(part);
  }
  return true;
}

}  // namespace

Result<void> sort_lines(const std::string& path, std::size_t memory) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return not_sorted(path, path);
  if (are_sorted(in)) return {};
  in.clear();
  in.seekg(0);
  PartFiles parts(path);
  LinesInMemory lines;
  while (lines.read(in, memory)) {
    lines.sort();
    if (auto written = write_part(lines, path, parts.add()); !written) return written;
  }
  const std::string sorted = path + ".sorting";
  const OutStream out(std::fopen(sorted.c_str(), "we"));
  if (out == nullptr || !merge_parts(parts.names(), out.get()) || std::fflush(out.get()) != 0 ||
      ::fdatasync(::fileno(out.get())) != 0 || std::rename(sorted.c_str(), path.c_str()) != 0) {
    auto failed = not_sorted(path, sorted);
    ::unlink(sorted.c_str());
    return failed;
  }
  return {};
}

}  // namespace argiope
