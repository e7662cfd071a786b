// Sorting an index that may be larger than memory: parts are sorted in memory and written beside the file, and then
// merged.
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

#include "base/internal/output_file.hpp"
#include "warc/internal/cdxj.hpp"

namespace argiope {
namespace {

struct CloseStream {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using OutStream = std::unique_ptr<std::FILE, CloseStream>;

constexpr const char* kNotSorted = "sorting of";

std::unexpected<Error> not_sorted(const std::string& path) {
  const Errc code = errno == ENOSPC || errno == EDQUOT ? Errc::disk_full : Errc::io;
  return fail(code, fmt::format("{} {}: {}", kNotSorted, path, std::strerror(errno)));
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
  // Null: errno says why.
  OutStream add() {
    std::string name;
    OutStream out(open_beside(path_, ".sorting", 0600, name));
    if (out != nullptr) names_.push_back(std::move(name));
    return out;
  }
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

Result<void> write_part(const LinesInMemory& lines, const std::string& path, PartFiles& parts) {
  const OutStream out = parts.add();
  if (out == nullptr || !lines.write(out.get()) || std::fflush(out.get()) != 0) return not_sorted(path);
  return {};
}

void merge_parts(const std::vector<std::string>& names, OutputFile& out) {
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
  while (!next.empty() && out.ok()) {
    const auto [line, part] = next.top();
    next.pop();
    out.write(line);
    out.write("\n");
    read_on(part);
  }
}

}  // namespace

Result<void> sort_lines(const std::string& path, std::size_t memory) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return not_sorted(path);
  if (are_sorted(in)) return {};
  in.clear();
  in.seekg(0);
  PartFiles parts(path);
  LinesInMemory lines;
  while (lines.read(in, memory)) {
    lines.sort();
    if (auto written = write_part(lines, path, parts); !written) return written;
  }
  OutputFile sorted(kNotSorted, path);
  merge_parts(parts.names(), sorted);
  return sorted.finish(OutputFile::Survives::machine);
}

}  // namespace argiope
