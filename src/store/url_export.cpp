#include "argiope/store/url_export.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>

#include "argiope/base/json_writer.hpp"
#include "argiope/base/rfc3339.hpp"

namespace argiope {
namespace {

constexpr std::size_t kBufferBytes = 256 * 1024;

// Empty for the epoch, which stands for "never".
std::string timestamp(WallTime time) { return time == WallTime{} ? std::string{} : to_rfc3339_ms(time); }

// Calls `field(name, value)` for each column, text or number, in one order for all formats.
template <class Field>
void for_each_field(const UrlRecord& record, Field&& field) {
  field("url_id", record.url_id);
  field("url", std::string_view{record.url});
  field("state", to_string(record.state));
  field("status_code", static_cast<std::int64_t>(record.status_code));
  field("content_type", std::string_view{record.content_type});
  field("size", record.size);
  field("depth", static_cast<std::int64_t>(record.depth));
  field("attempts", static_cast<std::int64_t>(record.attempts));
  field("ctime", std::string_view{timestamp(record.ctime)});
  field("mtime", std::string_view{timestamp(record.mtime)});
  field("referrer", record.referrer);
  field("redirect_to", std::string_view{record.redirect_to});
  field("etag", std::string_view{record.etag});
  field("last_modified", std::string_view{record.last_modified});
  field("digest", std::string_view{record.digest});
  field("error", std::string_view{record.error});
}

struct JsonLine {
  static void header(std::string&) {}
  static void append(std::string& out, const UrlRecord& record) {
    char separator = '{';
    for_each_field(record, [&](std::string_view name, auto value) {
      fmt::format_to(std::back_inserter(out), "{}\"{}\":", std::exchange(separator, ','), name);
      if constexpr (std::is_integral_v<decltype(value)>) {
        fmt::format_to(std::back_inserter(out), "{}", value);
      } else {
        append_json_string(out, value);
      }
    });
    out += "}\n";
  }
};

struct CsvLine {
  static void header(std::string& out) {
    for_each_field(UrlRecord{}, [&](std::string_view name, auto) { add(out, name); });
    end(out);
  }
  static void append(std::string& out, const UrlRecord& record) {
    for_each_field(record, [&](std::string_view, auto value) {
      if constexpr (std::is_integral_v<decltype(value)>) {
        add(out, std::to_string(value));
      } else {
        add(out, value);
      }
    });
    end(out);
  }

 private:
  static void add(std::string& out, std::string_view value) {
    if (value.find_first_of(",\"\r\n") == std::string_view::npos) {
      out += value;
    } else {
      out += '"';
      for (const char c : value) {
        if (c == '"') out += '"';
        out += c;
      }
      out += '"';
    }
    out += ',';
  }
  static void end(std::string& out) {
    out.pop_back();
    out += "\r\n";
  }
};

class OutputFile {
 public:
  explicit OutputFile(std::string path)
      : path_(std::move(path)), temporary_(path_ + ".part"), file_(std::fopen(temporary_.c_str(), "wb")) {}
  ~OutputFile() {
    if (file_ != nullptr) {
      std::fclose(file_);
      std::remove(temporary_.c_str());
    }
  }
  bool ok() const noexcept { return file_ != nullptr; }
  bool write(std::string_view bytes) { return std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size(); }
  // Closes and moves into place.
  bool finish() {
    const bool flushed = std::fclose(std::exchange(file_, nullptr)) == 0;
    if (flushed && std::rename(temporary_.c_str(), path_.c_str()) == 0) return true;
    const int why = errno;
    std::remove(temporary_.c_str());
    errno = why;
    return false;
  }
  Error error() const {
    const Errc code = errno == ENOSPC || errno == EDQUOT ? Errc::disk_full : Errc::io;
    return {code, fmt::format("export to {}: {}", path_, std::strerror(errno))};
  }

 private:
  std::string path_;
  std::string temporary_;
  std::FILE* file_;
};

template <class Line>
Result<void> write_lines(UrlStore& store, const std::string& path) {
  OutputFile file(path);
  if (!file.ok()) return std::unexpected(file.error());
  std::string buffer;
  Line::header(buffer);
  bool written = true;
  auto scanned = store.scan(1, [&](const UrlRecord& record) {
    Line::append(buffer, record);
    if (buffer.size() >= kBufferBytes) {
      written = file.write(buffer);
      buffer.clear();
    }
    return written;
  });
  if (!scanned) return scanned;
  if (!written || !file.write(buffer) || !file.finish()) return std::unexpected(file.error());
  return {};
}

}  // namespace

Result<void> export_urls(UrlStore& store, const std::string& path) {
  if (path.ends_with(".jsonl")) return write_lines<JsonLine>(store, path);
  if (path.ends_with(".csv")) return write_lines<CsvLine>(store, path);
  return fail(Errc::invalid_input, fmt::format("export to {}: the name must end with .jsonl or .csv", path));
}

}  // namespace argiope
