#include "crawl/extract/output_mark.hpp"

#include <limits>

#include "base/internal/json_members.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope {

std::string OutputMark::text() const {
  std::string text;
  JsonWriter json(text);
  json.object([&] {
    json.member("identity", identity);
    json.member("size", size);
    json.member("tail", tail);
    json.member("done_before", done_before);
    json.member("ended", is_ended);
  });
  return text;
}

std::optional<OutputMark> OutputMark::parse(const std::string& text) {
  const auto json = JsonText::parse(text);
  if (!json) return std::nullopt;
  JsonErrors errors;
  const JsonValue root = json->root(errors);
  JsonMembers members(root);
  OutputMark mark;
  mark.identity = members.text("identity");
  const auto place = [&](std::string_view name) {
    return static_cast<std::uint64_t>(members.whole(name, std::numeric_limits<std::int64_t>::max()));
  };
  mark.size = place("size");
  mark.done_before = place("done_before");
  mark.tail = members.text("tail");
  mark.is_ended = members.flag("ended", false);
  return errors || mark.tail.empty() ? std::nullopt : std::optional(std::move(mark));
}

}  // namespace argiope
