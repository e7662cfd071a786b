#include "base/internal/json_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <unordered_map>
#include <utility>

#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/raw_json.hpp"

namespace argiope {
namespace {

namespace dom = simdjson::dom;

constexpr std::size_t kMostJsonBytes = 64 * 1024 * 1024;
// A parser that has read a large text keeps its memory; one that has read an extraordinary one is thrown away.
constexpr std::size_t kMostKeptCapacity = 1024 * 1024;
// Of an input shown in a message.
constexpr std::size_t kMostShown = 60;

// Of the last text of this thread. A text that is read while another is open has a parser of its own.
thread_local std::unique_ptr<dom::parser> spare_parser;

std::unique_ptr<dom::parser> take_parser() {
  if (spare_parser) return std::move(spare_parser);
  auto parser = std::make_unique<dom::parser>(kMostJsonBytes);
  if (parser->allocate(4096, kMostJsonDepth) != simdjson::SUCCESS) throw std::bad_alloc();
  return parser;
}

void give_back(std::unique_ptr<dom::parser> parser) {
  if (parser->capacity() <= kMostKeptCapacity) spare_parser = std::move(parser);
}

std::string what_is_wrong(simdjson::error_code error) {
  switch (error) {
    case simdjson::EMPTY: return "it is empty: one JSON object is wanted";
    case simdjson::DEPTH_ERROR: return fmt::format("nested deeper than {} levels", kMostJsonDepth);
    case simdjson::UTF8_ERROR: return "not valid UTF-8";
    case simdjson::NUMBER_ERROR: return "a number that is no JSON number, or fits neither 64 bits nor a double";
    case simdjson::STRING_ERROR: return "a string with a bad escape in it";
    case simdjson::UNCLOSED_STRING: return "a string does not end";
    case simdjson::UNESCAPED_CHARS: return "a control character in a string, which must be written \\u00XX";
    default: return "not one JSON object: a bracket, comma, quote or word is missing, wrong, or one too many";
  }
}

// Each name once, in its first place with its last value.
std::vector<std::pair<std::string_view, dom::element>> names_of(const dom::object& object) {
  std::vector<std::pair<std::string_view, dom::element>> members;
  std::unordered_map<std::string_view, std::size_t> places;
  for (const auto [name, value] : object) {
    const auto [found, is_new] = places.try_emplace(name, members.size());
    if (is_new) {
      members.emplace_back(name, value);
    } else {
      members[found->second].second = value;
    }
  }
  return members;
}

// As deep as the text, which is parsed.
void write(JsonWriter& out, const dom::element& value) {
  switch (value.type()) {
    case dom::element_type::ARRAY:
      return out.array([&] {
        for (const dom::element entry : value.get_array().value_unsafe()) write(out, entry);
      });
    case dom::element_type::OBJECT:
      return out.object([&] {
        for (const auto& [name, member] : names_of(value.get_object().value_unsafe())) {
          out.key(name);
          write(out, member);
        }
      });
    case dom::element_type::STRING: return out.value(value.get_string().value_unsafe());
    case dom::element_type::DOUBLE: return out.real(value.get_double().value_unsafe());
    default: return out.raw(simdjson::minify(value));
  }
}

}  // namespace

std::string to_string(const JsonPath& path) {
  std::string out;
  for (const auto& step : path) {
    if (const auto* place = std::get_if<std::size_t>(&step)) {
      out += fmt::format("[{}]", *place);
    } else {
      out += fmt::format("{}{}", out.empty() ? "" : ".", printable(std::get<std::string>(step), kMostShown));
    }
  }
  return out;
}

void JsonErrors::add(JsonPath where, std::string_view given, std::string_view why, Errc code) {
  if (why_) return;
  code_ = code;
  where_ = std::move(where);
  told_ = where_.size();
  given_ = given;
  why_ = why;
}

void JsonErrors::add_member(JsonPath where, std::string_view given, std::string_view why) {
  if (why_) return;
  add(std::move(where), given, why);
  if (told_ > 0) --told_;
}

Error JsonErrors::error() const {
  const std::string place = to_string({where_.begin(), where_.begin() + static_cast<std::ptrdiff_t>(told_)});
  const std::string_view gap = place.empty() || given_.empty() ? "" : " ";
  const std::string_view colon = place.empty() && given_.empty() ? "" : ": ";
  return {code_, fmt::format("{}{}{}{}{}", place, gap, given_, colon, *why_)};
}

std::optional<std::uint64_t> JsonValue::if_natural() const noexcept {
  if (const auto whole = get<std::uint64_t>()) return whole;
  const auto number = get<double>();
  if (!number || !(*number >= 0 && *number < 0x1p64)) return std::nullopt;
  const auto whole = static_cast<std::uint64_t>(*number);
  return static_cast<double>(whole) == *number ? std::optional(whole) : std::nullopt;
}

std::size_t JsonValue::size() const noexcept {
  dom::array list;
  if (element_.get(list) == simdjson::SUCCESS) return list.size();
  dom::object object;
  return element_.get(object) == simdjson::SUCCESS ? object.size() : 0;
}

std::string JsonValue::json() const { return simdjson::minify(element_); }

std::string JsonValue::kept_json() const {
  std::string out;
  JsonWriter writer(out, JsonEscapes::letters);
  write(writer, element_);
  return out;
}

std::string JsonValue::shown() const {
  const auto text = if_text();
  return text ? std::string(*text) : json();
}

std::vector<std::pair<std::string_view, JsonValue::Element>> JsonValue::names() const {
  dom::object object;
  if (element_.get(object) != simdjson::SUCCESS) return {};
  return names_of(object);
}

bool JsonValue::flag() const {
  const auto value = if_flag();
  if (!value) wrong("true or false");
  return value.value_or(false);
}

std::int64_t JsonValue::whole(std::int64_t least, std::int64_t most, std::string_view also) const {
  const auto number = if_whole();
  if (number && *number >= least && *number <= most) return *number;
  wrong(fmt::format("a whole number from {} to {}{}", least, most, also));
  return least;
}

std::string JsonValue::text(std::size_t least, std::size_t most) const {
  const auto value = if_text();
  if (value && value->size() >= least && value->size() <= most) return std::string(*value);
  wrong(least == 0 ? fmt::format("a string of at most {} bytes", most)
                   : fmt::format("a string of {} to {} bytes", least, most));
  return {};
}

std::size_t JsonValue::one_of(std::initializer_list<std::string_view> words) const {
  const auto value = if_text();
  const auto* const place = value ? std::ranges::find(words, *value) : words.end();
  if (place != words.end()) return static_cast<std::size_t>(place - words.begin());
  std::string all;
  for (const std::string_view& word : words) {
    all += fmt::format("{}\"{}\"", all.empty() ? "" : &word == words.end() - 1 ? " or " : ", ", word);
  }
  wrong(all);
  return 0;
}

void JsonValue::wrong(std::string_view wanted) const { errors_->add(path(), printable(json(), kMostShown), wanted); }

void JsonValue::complain_of(std::string_view given, std::string_view why) const {
  errors_->add(path(), in_quotes(given), why);
}

void JsonValue::refuse(const Error& why) const {
  const std::string given = in_quotes(shown());
  const std::string own = fmt::format("{} {}: ", name_, given);
  if (name_.empty() || !why.message.starts_with(own)) return errors_->add(path(), {}, why.message, why.code);
  errors_->add(path(), given, std::string_view(why.message).substr(own.size()), why.code);
}

void JsonValue::refuse_name(std::string_view why) const { errors_->add_member(path(), in_quotes(name_), why); }

JsonPath JsonValue::path() const {
  JsonPath path;
  for (const JsonValue* value = this; value->parent_ != nullptr; value = value->parent_) {
    if (value->place_ == kNoPlace) {
      path.emplace_back(std::string(value->name_));
    } else {
      path.emplace_back(value->place_);
    }
  }
  std::ranges::reverse(path);
  return path;
}

std::size_t count_json_values(std::string_view text, std::size_t most) noexcept {
  std::size_t count = 1;
  for (std::size_t i = 0; i < text.size() && count <= most; ++i) {
    const char c = text[i];
    if (c == '"') {
      i = end_of_json_string(text, i + 1);
      if (i == std::string_view::npos) break;
    } else if (c == ',' || c == '[' || c == '{') {
      ++count;
    }
  }
  return count;
}

Result<JsonText> JsonText::parse(std::string_view text) {
  auto parser = take_parser();
  // Copies the text to where the parser may read beyond its end.
  const auto parsed = parser->parse(text.data(), text.size());
  if (parsed.error() == simdjson::SUCCESS) return JsonText(std::move(parser), parsed.value_unsafe());
  const auto error = parsed.error();
  give_back(std::move(parser));
  return fail(Errc::invalid_input, what_is_wrong(error));
}

Result<JsonText> JsonText::parse_object(std::string_view what, std::string_view text, std::size_t most_bytes) {
  if (text.size() > most_bytes) {
    return fail(Errc::invalid_input, fmt::format("{}: {} bytes of JSON, at most {}", what, text.size(), most_bytes));
  }
  auto parsed = parse(text);
  if (parsed && parsed->root_.is_object()) return parsed;
  return fail(Errc::invalid_input, fmt::format("{} {}: no JSON object ({})", what, in_quotes(text),
                                               parsed ? "another value" : parsed.error().message));
}

JsonText::~JsonText() {
  if (parser_) give_back(std::move(parser_));
}

}  // namespace argiope
