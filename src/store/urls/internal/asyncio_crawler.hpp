// Databases of asyncio-crawler (github.com/codeasap-pl/asyncio-crawler): one table of URLs, from which
// `argiope crawl import` takes them over. docs/from-asyncio-crawler.md says what becomes of each column.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"

namespace argiope {

// A row as it is there: nothing of it is believed.
struct AsyncioCrawlerUrl {
  std::int64_t url_id = 0;
  std::string url;                     // whatever stands there, or the first 64 Ki characters of it
  WallTime ctime{}, mtime{};           // the epoch: none, or none that can be read
  std::optional<std::int64_t> status;  // nullopt: not answered yet, or never; -1: it was too large
  std::string content_type;
  std::int64_t size = 0;  // 0: not known
};

// Whether the file at `path` looks like one. Only looks; false where it cannot be read.
bool is_asyncio_crawler_database(const std::string& path);

// Visits all rows, those that were answered first, each kind by url_id, until `visit` returns false. Only reads the
// file, in one view, so that its crawler may go on meanwhile.
// Errors, naming the file: wrong_format of another one, io, corrupt, busy.
Result<void> read_asyncio_crawler(const std::string& path, const std::function<bool(const AsyncioCrawlerUrl&)>& visit);

}  // namespace argiope
