#include "crawl/extract/json_pointer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/internal/printable.hpp"

namespace argiope {
namespace {

// As RFC 6901 has it: without leading zeros.
std::optional<std::size_t> place_named(std::string_view name) {
  if (name.empty() || (name.size() > 1 && name.front() == '0')) return std::nullopt;
  std::size_t place = 0;
  const auto [end, trouble] = std::from_chars(name.data(), name.data() + name.size(), place);
  if (trouble != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return place;
}

}  // namespace

Result<JsonPointer> JsonPointer::parse(std::string_view text) {
  const auto wrong = [&](std::string_view why, Errc code = Errc::invalid_input) {
    return fail(code, fmt::format("json {}: {}", in_quotes(text), why));
  };
  if (text.size() > kMostBytes) return wrong(fmt::format("it has more than {} bytes", kMostBytes), Errc::too_large);
  JsonPointer pointer;
  if (text.empty()) return pointer;
  if (text.front() != '/') return wrong("begin it with a slash, as in /items/0/price");
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('/', at + 1), text.size());
    Step step;
    for (std::size_t i = at + 1; i < end; ++i) {
      if (text[i] != '~') {
        step.name += text[i];
        continue;
      }
      const char coded = ++i < end ? text[i] : '\0';
      if (coded != '0' && coded != '1')
        return wrong("behind \"~\" there is 0 or 1: \"~0\" stands for \"~\", \"~1\" for \"/\"");
      step.name += coded == '0' ? '~' : '/';
    }
    step.place = place_named(step.name);
    pointer.steps_.push_back(std::move(step));
    at = end;
  }
  return pointer;
}

class JsonPointer::Search {
 public:
  Search(const JsonPointer& pointer, std::size_t& steps_left, const std::function<bool(const JsonValue&)>& visit)
      : pointer_(pointer), steps_left_(steps_left), visit_(visit) {}

  void search(const JsonValue& value, std::size_t step) {
    if (step == pointer_.steps_.size()) {
      goes_on_ = visit_(value);
      return;
    }
    const Step& wanted = pointer_.steps_[step];
    if (value.is_list()) {
      if (wanted.place || wanted.name == "*") search_list(value, wanted, step);
    } else if (value.is_object()) {
      search_object(value, wanted, step);
    }
  }
  bool was_too_much() const noexcept { return too_much_; }

 private:
  bool may_look_at(const JsonValue& value) {
    const std::size_t size = value.size();
    too_much_ = too_much_ || size > steps_left_;
    if (too_much_) goes_on_ = false;
    steps_left_ -= std::min(size, steps_left_);
    return !too_much_;
  }
  void search_list(const JsonValue& list, const Step& wanted, std::size_t step) {
    if (!may_look_at(list)) return;
    std::size_t place = 0;
    list.for_each([&](const JsonValue& entry) {
      if (goes_on_ && (!wanted.place || *wanted.place == place)) search(entry, step + 1);
      ++place;
    });
  }
  void search_object(const JsonValue& object, const Step& wanted, std::size_t step) {
    if (!may_look_at(object)) return;
    std::optional<JsonValue> found;
    object.for_each_member([&](std::string_view name, const JsonValue& member) {
      if (name == wanted.name) found = member;
    });
    if (found) search(*found, step + 1);
  }

  const JsonPointer& pointer_;
  std::size_t& steps_left_;
  const std::function<bool(const JsonValue&)>& visit_;
  bool goes_on_ = true, too_much_ = false;
};

bool JsonPointer::find(const JsonValue& from, std::size_t& steps_left,
                       const std::function<bool(const JsonValue&)>& visit) const {
  Search search(*this, steps_left, visit);
  search.search(from, 0);
  return !search.was_too_much();
}

}  // namespace argiope
