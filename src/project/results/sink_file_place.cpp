#include "project/results/sink_file_place.hpp"

#include <limits>

#include "base/internal/json_members.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope {

std::string SinkFilePlace::stored() const {
  return json_object([&](JsonWriter& json) {
    json.member("file", file);
    json.member("identity", identity);
    json.member("length", length);
    json.member("tail", tail);
    json.member("rotated", rotated);
    json.member("columns", columns);
    json.member("begun_ms", std::chrono::floor<std::chrono::milliseconds>(begun.time_since_epoch()).count());
  });
}

std::optional<SinkFilePlace> SinkFilePlace::parse(std::string_view stored) {
  if (stored.empty()) return std::nullopt;
  const auto text = JsonText::parse(stored);
  if (!text) return std::nullopt;
  JsonErrors errors;
  const JsonValue form = text->root(errors);
  if (!form.is_object()) return std::nullopt;
  JsonMembers in(form);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMostMilliseconds = 9'000'000'000'000;  // within what a WallTime holds
  SinkFilePlace place;
  place.file = in.text("file");
  place.identity = in.text("identity");
  place.length = static_cast<std::uint64_t>(in.whole("length", kMost));
  place.tail = static_cast<std::uint64_t>(in.whole("tail", kMost));
  place.rotated = static_cast<std::uint64_t>(in.whole("rotated", kMost / 2));
  place.columns = static_cast<std::uint64_t>(in.whole("columns", kMost));
  place.begun = WallTime{std::chrono::milliseconds{in.whole("begun_ms", kMostMilliseconds)}};
  if (errors) return std::nullopt;
  return place;
}

}  // namespace argiope
