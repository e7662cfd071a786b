#include "serve/beanstalkd/beanstalkd_parser.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "serve/base/internal/own_queues.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

// How what follows the word is read.
enum class Shape : std::uint8_t {
  put,
  nothing,
  id,
  id_priority,
  id_priority_delay,
  bound,
  timeout,
  tube,
  pause,
  anything
};
struct Word {
  std::string_view text;  // one that ends in a space needs it
  Shape shape;
};
constexpr std::array<Word, kBeanstalkdVerbs - 1> kWords = {{
    {"put ", Shape::put},
    {"peek ", Shape::id},
    {"peek-ready", Shape::nothing},
    {"peek-delayed", Shape::nothing},
    {"peek-buried", Shape::nothing},
    {"reserve-with-timeout ", Shape::timeout},
    {"reserve-job ", Shape::id},
    {"reserve", Shape::nothing},
    {"delete ", Shape::id},
    {"release ", Shape::id_priority_delay},
    {"bury ", Shape::id_priority},
    {"kick ", Shape::bound},
    {"kick-job ", Shape::id},
    {"touch ", Shape::id},
    {"stats-job ", Shape::id},
    {"stats-tube ", Shape::tube},
    {"stats", Shape::nothing},
    {"use ", Shape::tube},
    {"watch ", Shape::tube},
    {"ignore ", Shape::tube},
    {"list-tubes-watched", Shape::nothing},
    {"list-tube-used", Shape::nothing},
    {"list-tubes", Shape::nothing},
    {"quit", Shape::anything},
    {"pause-tube", Shape::pause},
}};

constexpr std::array<bool, 256> kNameCharacters = [] {
  std::array<bool, 256> allowed{};
  for (const char c : std::string_view{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()"}) {
    allowed[static_cast<unsigned char>(c)] = true;
  }
  return allowed;
}();
bool is_name_character(char c) noexcept { return kNameCharacters[static_cast<unsigned char>(c)]; }

void skip(std::string_view& text, std::string_view what) noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(what), text.size()));
}

// Takes spaces and then a number without a sign from the front of `text`.
template <class Number>
bool take_number(std::string_view& text, Number& value) noexcept {
  skip(text, " ");
  if (text.empty() || !is_digit(text.front())) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}
template <class Number>
bool is_number(std::string_view text, Number& value) noexcept {
  return take_number(text, value) && text.empty();
}

// As strtol and strtoul read one: with a sign, and whatever comes after it.
struct LenientNumber {
  bool is_there = false;
  bool is_negative = false;
  bool fits = true;  // 64 bits
  std::uint64_t magnitude = 0;
  std::uint64_t value() const noexcept { return is_negative ? std::uint64_t{0} - magnitude : magnitude; }
};
LenientNumber read_leniently(std::string_view text) noexcept {
  LenientNumber number;
  skip(text, " \t\n\v\f\r");
  number.is_negative = text.starts_with('-');
  if (number.is_negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front())) return number;
  number.is_there = true;
  number.fits = std::from_chars(text.data(), text.data() + text.size(), number.magnitude).ec == std::errc{};
  return number;
}

// "POST / HTTP/1.1": no command of ours ends so.
bool is_http(std::string_view line) noexcept {
  constexpr std::string_view kProtocol = " HTTP/";
  const std::size_t place = line.rfind(kProtocol);
  if (place == std::string_view::npos || place == 0) return false;
  const std::string_view version = line.substr(place + kProtocol.size());
  return !version.empty() && version.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool read_bound(std::string_view text, std::uint32_t& bound) noexcept {
  const LenientNumber number = read_leniently(text);
  bound = static_cast<std::uint32_t>(number.value());
  return number.is_there && number.fits;
}

// beanstalkd 1.12 takes what is no number for 0, and of a larger one than an int holds the low bits.
bool read_timeout(std::string_view text, std::int64_t& timeout) noexcept {
  const LenientNumber number = read_leniently(text);
  timeout = static_cast<std::int32_t>(number.value());
  const std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  return number.fits && number.magnitude <= most + (number.is_negative ? 1 : 0);
}

// A command that is refused only for its name counts.
bool read_pause(std::string_view text, BeanstalkdCommand& command) noexcept {
  skip(text, " ");
  const auto* const end = std::ranges::find_if_not(text, is_name_character);
  command.tube = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(command.tube.size());
  command.counts = !command.tube.empty() && is_number(text, command.delay);
  return command.counts && is_tube_name(command.tube);
}

// Everything but a put.
bool read_rest(Shape shape, std::string_view text, BeanstalkdCommand& command) noexcept {
  switch (shape) {
    case Shape::anything: return true;
    case Shape::nothing: return text.empty();
    case Shape::id: return is_number(text, command.id);
    case Shape::id_priority: return take_number(text, command.id) && is_number(text, command.priority);
    case Shape::id_priority_delay:
      return take_number(text, command.id) && take_number(text, command.priority) && is_number(text, command.delay);
    case Shape::bound: return read_bound(text, command.bound);
    case Shape::timeout: return read_timeout(text, command.timeout);
    case Shape::tube: command.tube = text; return is_tube_name(text);
    case Shape::pause: return read_pause(text, command);
    case Shape::put: break;
  }
  return false;
}

}  // namespace

std::string_view to_string(BeanstalkdRefusal refusal) noexcept {
  constexpr std::string_view kNames[] = {"", "BAD_FORMAT", "UNKNOWN_COMMAND", "EXPECTED_CRLF", "JOB_TOO_BIG"};
  return kNames[static_cast<std::size_t>(refusal)];
}

bool is_tube_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= kMostTubeBytes && name.front() != '-' && !is_own_queue(name) &&
         std::ranges::all_of(name, is_name_character);
}

void BeanstalkdParser::drop_used() {
  input_.erase(0, used_);
  used_ = 0;
}

const BeanstalkdCommand* BeanstalkdParser::next() {
  const BeanstalkdCommand* found = nullptr;
  switch (state_) {
    case State::line: found = read_line(); break;
    case State::long_line: found = drop_line(); break;
    case State::body: break;
    case State::too_big: break;
    case State::foreign: used_ = input_.size(); break;
  }
  if (state_ == State::body) return read_body();
  if (state_ == State::too_big) return drop_body();
  return found;
}

const BeanstalkdCommand* BeanstalkdParser::refuse(BeanstalkdRefusal refusal) noexcept {
  command_.refusal = refusal;
  return &command_;
}

const BeanstalkdCommand* BeanstalkdParser::end_here(BeanstalkdRefusal refusal) noexcept {
  state_ = State::foreign;
  used_ = input_.size();
  command_ = {};
  command_.is_foreign = true;
  return refuse(refusal);
}

// A line that has no command's word.
const BeanstalkdCommand* BeanstalkdParser::refuse_unknown(BeanstalkdRefusal refusal) noexcept {
  return speaks_it_ ? refuse(refusal) : end_here(refusal);
}

const BeanstalkdCommand* BeanstalkdParser::read_line() {
  const std::string_view there = rest().substr(0, kMostBeanstalkdLine);
  const std::size_t end = there.find(kLineEnd, searched_ == 0 ? 0 : searched_ - 1);
  if (end == std::string_view::npos) {
    searched_ = there.size();
    if (there.size() < kMostBeanstalkdLine) return nullptr;
    if (!speaks_it_) return end_here(BeanstalkdRefusal::bad_format);
    state_ = State::long_line;
    return drop_line();
  }
  searched_ = 0;
  used_ += end + kLineEnd.size();
  const std::string_view line = there.substr(0, end);
  command_ = {};
  if (is_http(line)) return end_here(BeanstalkdRefusal::unknown_command);
  if (line.find('\0') != std::string_view::npos) return refuse_unknown(BeanstalkdRefusal::bad_format);
  const auto* const word = std::ranges::find_if(kWords, [&](const Word& one) { return line.starts_with(one.text); });
  command_.verb = static_cast<BeanstalkdVerb>(word - kWords.begin());
  if (command_.verb == BeanstalkdVerb::unknown) return refuse_unknown(BeanstalkdRefusal::unknown_command);
  const std::string_view text = line.substr(word->text.size());
  if (word->shape == Shape::put) return begin_put(text);
  if (!read_rest(word->shape, text, command_)) return refuse(BeanstalkdRefusal::bad_format);
  command_.counts = speaks_it_ = true;
  return &command_;
}

const BeanstalkdCommand* BeanstalkdParser::drop_line() {
  const std::string_view there = rest();
  const std::size_t end = there.find(kLineEnd);
  if (end == std::string_view::npos) {
    // A '\r' may be half of the line's end.
    used_ += there.size() - (there.ends_with('\r') ? 1 : 0);
    return nullptr;
  }
  used_ += end + kLineEnd.size();
  searched_ = 0;
  state_ = State::line;
  command_ = {};
  return refuse(BeanstalkdRefusal::bad_format);
}

// The size decides before what comes after it is looked at.
const BeanstalkdCommand* BeanstalkdParser::begin_put(std::string_view text) {
  std::uint32_t bytes = 0;
  const bool good = take_number(text, command_.priority) && take_number(text, command_.delay) &&
                    take_number(text, command_.ttr) && take_number(text, bytes);
  if (!good) return refuse(BeanstalkdRefusal::bad_format);
  command_.counts = speaks_it_ = true;
  body_bytes_ = std::uint64_t{bytes} + kLineEnd.size();
  if (bytes > max_job_bytes_) {
    state_ = State::too_big;
    return nullptr;
  }
  if (!text.empty()) return refuse(BeanstalkdRefusal::bad_format);
  state_ = State::body;
  return nullptr;
}

const BeanstalkdCommand* BeanstalkdParser::read_body() {
  const std::string_view there = rest();
  if (there.size() < body_bytes_) return nullptr;
  state_ = State::line;
  used_ += body_bytes_;
  const std::string_view body = there.substr(0, body_bytes_);
  if (!body.ends_with(kLineEnd)) return refuse(BeanstalkdRefusal::expected_crlf);
  command_.body = body.substr(0, body.size() - kLineEnd.size());
  return &command_;
}

const BeanstalkdCommand* BeanstalkdParser::drop_body() {
  const std::uint64_t dropped = std::min<std::uint64_t>(rest().size(), body_bytes_);
  used_ += dropped;
  body_bytes_ -= dropped;
  if (body_bytes_ > 0) return nullptr;
  state_ = State::line;
  return refuse(BeanstalkdRefusal::job_too_big);
}

}  // namespace argiope
