// Files of `argiope crawl --config FILE.toml`: the crawl's own options under [crawl], and what is otherwise at some
// hosts under [[host]] (docs/crawl.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/crawl/detail/host_settings.hpp"
#include "base/internal/json_reader.hpp"

namespace argiope {

// A member of [crawl]: which options there are, only the command knows.
struct CrawlFileOption {
  enum class Kind : std::uint8_t { text, number, flag, list };
  std::string name;
  Kind kind = Kind::text;
  // As they would be written on the command line. Of a list its entries; of a flag "true" or "false".
  std::vector<std::string> values;
  std::uint32_t line = 0;
};

struct CrawlFile {
  std::string name;  // of the file, for errors
  std::vector<CrawlFileOption> options;
  std::vector<HostSettings> hosts;
};

// Of a table that has options of a command, and settings of hosts as "host". The options have no lines yet. Mistakes go
// to the errors of `table`.
void read_options_and_hosts(const JsonValue& table, std::vector<CrawlFileOption>& options,
                            std::vector<HostSettings>& hosts);

inline constexpr std::size_t kMostCrawlFileBytes = 4 * 1024 * 1024;

// Strict: what is unknown, of the wrong type or out of range is an error, and so are patterns that are none.
// Errors: invalid_input, too_large; `name:LINE: host[0].rate "fast": …`, one line. read_crawl_file() also not_found and
// io.
Result<CrawlFile> parse_crawl_file(std::string_view text, std::string_view name);
Result<CrawlFile> read_crawl_file(const std::string& path);

}  // namespace argiope
