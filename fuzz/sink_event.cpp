// What sinks write of a result: any JSON as its value, any bytes as names, and any place of a file from the store. A
// line of JSON stays a line and is read back with the same value; a record of CSV has its columns; a row for COPY has
// one line and its column.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/internal/json_members.hpp"
#include "base/internal/utf8.hpp"
#include "fuzz/require.hpp"
#include "project/results/result_sink.hpp"
#include "project/results/sink_copy_text.hpp"
#include "project/results/sink_file_place.hpp"

using namespace argiope;

namespace {

void check_place(std::string_view bytes) {
  const auto place = SinkFilePlace::parse(bytes);
  if (place) require(SinkFilePlace::parse(place->stored()) == place);
}

void check_copied(std::string_view bytes) {
  std::string copied;
  append_copy_text(copied, bytes);
  require(is_utf8(copied) && copied.find_first_of(std::string_view("\t\n\r\0", 4)) == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_place(bytes);
  check_copied(bytes);
  check_copied(without_null_characters(bytes));

  FeedRow row{.number = 7,
              .page_name = std::string(bytes.substr(0, size / 2)),
              .rule = "item",
              .part = std::string(bytes.substr(size / 2))};
  std::string record;
  append_event_csv(record, "shop", {"a", "b"}, row);
  require(record.ends_with("\r\n") && std::ranges::count(record, '"') % 2 == 0);

  const auto value = JsonText::parse(bytes);
  if (!value) return 0;
  row.value = bytes;
  std::string line;
  append_event_json(line, "shop", row);
  require(line.find('\n') == std::string::npos);
  // One level deeper than what was read.
  const auto event = JsonText::parse(line);
  if (!event) return 0;
  JsonErrors errors;
  require(JsonMembers(event->root(errors)).find("value")->json() == value->root(errors).json());
  require(JsonText::parse(without_null_characters(bytes)).has_value());
  append_event_csv(record, "shop", {"a", "b"}, row);
  return 0;
}
