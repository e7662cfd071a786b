// Reading JSON strictly, the same way everywhere: a value knows where it is in its text, so that what is wrong with it
// is told with the names of the members that lead to it: `trigger.triggers[1].every "soon": a time such as 90s`.
//
//   JsonErrors errors;
//   const auto text = JsonText::parse(bytes);
//   if (!text) return std::unexpected(text.error());
//   text->root(errors).for_each_member([&](std::string_view name, const JsonValue& value) {
//     if (name == "priority") job.priority = value.whole(0, 9);
//   });
//   if (errors) return std::unexpected(errors.error());
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "argiope/base/error.hpp"

namespace argiope {

inline constexpr std::size_t kMostJsonDepth = 64;

// From the whole to a part of it: the names of members, and of lists the places from 0. Empty: the whole.
using JsonPath = std::vector<std::variant<std::string, std::size_t>>;

// "jobs[3].retry.max_attempts". Names are made printable.
std::string to_string(const JsonPath& path);

// The first thing that is wrong with a text, and where. Whatever is read after it is not used.
class JsonErrors {
 public:
  explicit operator bool() const noexcept { return why_.has_value(); }
  // `given` as it is shown, or empty.
  void add(JsonPath where, std::string_view given, std::string_view why, Errc code = Errc::invalid_input);
  // The member itself should not be there: `given` or `why` names it, and the path that is told ends before it.
  void add_member(JsonPath where, std::string_view given, std::string_view why);

  // Of the first. There must be one.
  const JsonPath& where() const noexcept { return where_; }
  // As it is shown; or empty.
  const std::string& given() const noexcept { return given_; }
  // The right kind of value, without place and value.
  const std::string& why() const noexcept { return *why_; }
  // `PATH GIVEN: WHY`.
  Error error() const;

 private:
  JsonPath where_;
  std::size_t told_ = 0;  // steps of the path
  std::string given_;
  std::optional<std::string> why_;
  Errc code_ = Errc::invalid_input;
};

// A value of a JsonText, and the way to it. Cheap: the path is made when something is wrong.
//
// Lifetime: the text, the errors and the value it is in outlive it.
class JsonValue {
 public:
  using Element = simdjson::dom::element;

  JsonValue(Element element, JsonErrors& errors) : element_(element), errors_(&errors) {}

  // --- what it is, without complaint

  std::optional<std::string_view> if_text() const noexcept { return get<std::string_view>(); }
  std::optional<bool> if_flag() const noexcept { return get<bool>(); }
  std::optional<std::int64_t> if_whole() const noexcept { return get<std::int64_t>(); }
  // Also 1e3 and 5.0.
  std::optional<std::uint64_t> if_natural() const noexcept;
  std::optional<double> if_number() const noexcept { return get<double>(); }
  // 5.0 too, but not 5.
  bool is_fraction() const noexcept { return element_.type() == simdjson::dom::element_type::DOUBLE; }
  bool is_null() const noexcept { return element_.is_null(); }
  bool is_list() const noexcept { return element_.is_array(); }
  bool is_object() const noexcept { return element_.is_object(); }
  // Of a list, or an object; else 0.
  std::size_t size() const noexcept;
  // Its JSON, without white space.
  std::string json() const;
  // The same with each name once and other numbers as 5.0: what is kept, or sent, of a value that is for others to
  // read.
  std::string kept_json() const;
  // As people see it: a string without quotes, else its JSON.
  std::string shown() const;

  // --- what it has to be; where it is not, that is added to the errors, and what is given stands for nothing

  bool flag() const;
  // `also`: what else would be right, for the message.
  std::int64_t whole(std::int64_t least, std::int64_t most, std::string_view also = {}) const;
  // A string of so many bytes.
  std::string text(std::size_t least, std::size_t most) const;
  // The place of the string among `words`.
  std::size_t one_of(std::initializer_list<std::string_view> words) const;

  // --- what is in it, until something is wrong. A value that is no list or no object has nothing in it

  // each(const JsonValue&)
  template <class Each>
  void for_each(Each each) const {
    const auto list = element_.get_array();
    if (list.error() != simdjson::SUCCESS) return;
    std::size_t place = 0;
    for (const Element entry : list.value_unsafe()) {
      each(JsonValue(entry, *this, {}, place++));
      if (*errors_) return;
    }
  }
  // each(name, const JsonValue&), in the order of the text; a name that is there twice comes twice.
  template <class Each>
  void for_each_member(Each each) const {
    const auto object = element_.get_object();
    if (object.error() != simdjson::SUCCESS) return;
    for (const auto [name, value] : object.value_unsafe()) {
      each(name, JsonValue(value, *this, name, kNoPlace));
      if (*errors_) return;
    }
  }
  // The same, but a name that is there twice comes once, in its first place with its last value.
  template <class Each>
  void for_each_name(Each each) const {
    for (const auto& [name, value] : names()) {
      each(name, JsonValue(value, *this, name, kNoPlace));
      if (*errors_) return;
    }
  }

  // --- errors

  // `PATH VALUE: WANTED`.
  void wrong(std::string_view wanted) const;
  // `PATH "VALUE": WHY`, in quotes whatever it is; or with something else to show for it.
  void complain(std::string_view why) const { complain_of(shown(), why); }
  void complain_of(std::string_view given, std::string_view why) const;
  // `PATH: WHY`; of an error that begins with the member's name and value, as `dst_gap "jump": …`, `PATH "VALUE": …`.
  void refuse(std::string_view why) const { refuse(Error{Errc::invalid_input, std::string(why)}); }
  void refuse(const Error& why) const;
  // The same of the member's name, which `why` tells: the path ends before it.
  void refuse_member(std::string_view why) const { errors_->add_member(path(), {}, why); }
  // `PATH "NAME": WHY`, where the path ends before the name.
  void refuse_name(std::string_view why) const;
  JsonPath path() const;
  // The same value, what is wrong with which, and with what is in it, goes to `errors`: for a part that fails alone.
  JsonValue telling(JsonErrors& errors) const {
    JsonValue value = *this;
    value.errors_ = &errors;
    return value;
  }
  JsonErrors& errors() const noexcept { return *errors_; }

 private:
  static constexpr std::size_t kNoPlace = static_cast<std::size_t>(-1);

  JsonValue(Element element, const JsonValue& parent, std::string_view name, std::size_t place)
      : element_(element), errors_(parent.errors_), parent_(&parent), name_(name), place_(place) {}

  std::vector<std::pair<std::string_view, Element>> names() const;

  template <class T>
  std::optional<T> get() const noexcept {
    T value{};
    return element_.get(value) == simdjson::SUCCESS ? std::optional<T>(value) : std::nullopt;
  }

  Element element_;
  JsonErrors* errors_;
  const JsonValue* parent_ = nullptr;
  std::string_view name_;
  std::size_t place_ = kNoPlace;
};

// A bound of how many values are in a text, or `most` + 1 where it is above `most`: a value begins the text, or is
// behind a bracket or comma outside of its strings. An empty list or object counts as two. Far cheaper than to parse
// it, and without memory.
std::size_t count_json_values(std::string_view text, std::size_t most) noexcept;

// A parsed text. Not thread-safe; a thread keeps the memory of its last one for the next.
class JsonText {
 public:
  // Errors: invalid_input for what is no JSON value, no UTF-8, nested deeper than kMostJsonDepth, or goes on after the
  //         value; numbers anywhere must fit a double or 64 bits.
  static Result<JsonText> parse(std::string_view text);
  // One that is an object.
  // Errors: invalid_input also for what is none, or has more bytes. They begin with `what`, and show the text.
  static Result<JsonText> parse_object(std::string_view what, std::string_view text, std::size_t most_bytes);

  JsonText(JsonText&&) noexcept = default;
  JsonText& operator=(JsonText&&) noexcept = default;
  ~JsonText();

  JsonValue root(JsonErrors& errors) const { return {root_, errors}; }

 private:
  JsonText(std::unique_ptr<simdjson::dom::parser> parser, simdjson::dom::element root)
      : parser_(std::move(parser)), root_(root) {}

  std::unique_ptr<simdjson::dom::parser> parser_;
  simdjson::dom::element root_;
};

}  // namespace argiope
