#include "web/html/internal/salvaged_json.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "web/html/internal/lenient_json.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::size_t kLookedAhead = 200;  // bytes of a name behind a quote
constexpr int kMostStringsInStrings = 2;

// How a string begins and ends. Typographic quotes are put in by editors, often the same one on both sides.
struct QuoteKind {
  std::string_view begin;
  std::string_view ends[2];
};
constexpr QuoteKind kQuotes[] = {{"\"", {"\"", "\""}}, {"'", {"'", "'"}}, {"`", {"`", "`"}},
                                 {"“", {"”", "“"}},    {"”", {"”", "“"}}, {"‘", {"’", "‘"}}};

const QuoteKind* quote_at(std::string_view text) noexcept {
  const auto* const found =
      std::ranges::find_if(kQuotes, [&](const QuoteKind& one) { return text.starts_with(one.begin); });
  return found == std::end(kQuotes) ? nullptr : found;
}
// The length of the quote that ends a string, or 0.
std::size_t ending_at(const QuoteKind& kind, std::string_view text) noexcept {
  for (const std::string_view end : kind.ends) {
    if (text.starts_with(end)) return end.size();
  }
  return 0;
}

bool is_of_word(char c) noexcept {
  return is_alnum(c) || std::string_view("+-._$@#/").contains(c) || static_cast<unsigned char>(c) >= 0x80;
}

void skip_space(std::string_view& text) noexcept {
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= 0x20) text.remove_prefix(1);
}

// Reads it once, and counts where it had to guess.
class JsonSalvage {
 public:
  // `has_quotes_within`: a quote ends the string of a value only where something follows that may stand behind one.
  JsonSalvage(std::string_view text, bool has_quotes_within) : text_(text), has_quotes_within_(has_quotes_within) {
    out_.reserve(text.size());
  }

  std::string read() {
    while (at_ < text_.size()) {
      const std::size_t nothing = json_nothing_at(rest());
      looked_at_ += nothing;
      const std::size_t before = at_;
      if (nothing == 0) take();
      looked_at_ += at_ - before;
      at_ += nothing;
    }
    guesses_ += open_.size();
    while (!open_.empty()) close_last();
    if (roots_ == 0) return {};
    return roots_ > 1 ? "[" + out_ + "]" : std::move(out_);
  }
  std::size_t guesses() const noexcept { return guesses_; }
  std::uint64_t looked_at() const noexcept { return looked_at_; }

 private:
  enum class Awaits : std::uint8_t { name, colon, value };
  struct Open {
    char closing;
    Awaits awaits;
    bool has_any = false;
    bool has_comma = true;  // since the last one, or it is the first
  };

  std::string_view rest() const noexcept { return text_.substr(at_); }
  // How many are open that `closing` would close.
  std::size_t& open_of(char closing) noexcept { return closing == '}' ? objects_ : lists_; }

  void take() {
    const char c = text_[at_];
    if (c == '{' || c == '[') return take_opening(c);
    if (open_.empty() || static_cast<unsigned char>(c) <= 0x20) {
      ++at_;
    } else if (c == '}' || c == ']') {
      take_closing(c);
    } else if (c == ',') {
      take_comma();
    } else if (c == ':') {
      take_colon();
    } else if (const QuoteKind* const quote = quote_at(rest())) {
      take_string(*quote);
    } else if (is_of_word(c)) {
      take_word();
    } else {
      ++guesses_;
      ++at_;
    }
  }

  // Puts what has to stand before a value, or a name.
  void begin() {
    Open& in = open_.back();
    if (in.awaits == Awaits::colon) put_colon();
    if (in.awaits == Awaits::value && in.closing == '}') return;
    if (!in.has_comma) ++guesses_;
    if (in.has_any) out_ += ',';
    in.has_any = true;
    in.has_comma = false;
  }
  // What is awaited behind the value that was put.
  void end_value() {
    Open& in = open_.back();
    in.awaits = in.closing == '}' ? Awaits::name : Awaits::value;
  }
  void put_colon() {
    ++guesses_;
    out_ += ':';
    open_.back().awaits = Awaits::value;
  }
  // A name without a value has null.
  void end_member() {
    Open& in = open_.back();
    if (in.awaits == Awaits::colon) put_colon();
    if (in.closing == '}' && in.awaits == Awaits::value) {
      out_ += "null";
      in.awaits = Awaits::name;
    }
  }

  void take_opening(char c) {
    const bool is_of_template = !open_.empty() && open_.back().closing == '}' && rest().starts_with("{{");
    if (is_of_template && find_template_end()) {
      if (open_.back().awaits != Awaits::name) put_value("null");
      at_ = template_end_ + 2;
      return;
    }
    ++at_;
    if (open_.empty()) {
      if (roots_++ > 0) out_ += ',';
    } else if (open_.back().awaits == Awaits::name) {
      ++guesses_;  // an object where a name has to be: its members are taken for members of this one
      return;
    } else {
      begin();
    }
    out_ += c;
    open_.push_back({c == '{' ? '}' : ']', c == '{' ? Awaits::name : Awaits::value});
    ++open_of(open_.back().closing);
  }
  // The next "}}", which is looked for once. False: there is none.
  bool find_template_end() noexcept {
    if (template_end_ < at_) {
      template_end_ = std::min(text_.find("}}", at_), text_.size());
      looked_at_ += template_end_ - at_;
    }
    return template_end_ < text_.size();
  }
  // Closes what is open within what it closes.
  void take_closing(char c) {
    ++at_;
    if (open_of(c) == 0) {
      ++guesses_;
      return;
    }
    const auto closed = std::ranges::find(open_.rbegin(), open_.rend(), c, &Open::closing);
    const auto within = static_cast<std::size_t>(closed - open_.rbegin());
    guesses_ += within;
    looked_at_ += within;
    for (std::size_t i = 0; i <= within; ++i) close_last();
  }
  void close_last() {
    end_member();
    out_ += open_.back().closing;
    --open_of(open_.back().closing);
    open_.pop_back();
    if (!open_.empty()) end_value();
  }
  void take_comma() {
    ++at_;
    end_member();
    open_.back().has_comma = true;
  }
  void take_colon() {
    ++at_;
    if (open_.back().awaits != Awaits::colon) return;
    out_ += ':';
    open_.back().awaits = Awaits::value;
  }

  void put_value(std::string_view json) {
    begin();
    out_ += json;
    end_value();
  }

  void take_word() {
    const auto end = std::ranges::find_if_not(rest(), is_of_word);
    std::string_view word = rest().substr(0, static_cast<std::size_t>(end - rest().begin()));
    if (open_.back().awaits == Awaits::name) {
      at_ += word.size();
      return put_name_or_text(word);
    }
    if (open_.back().closing == '}') word = with_thousands(word);
    at_ += word.size();
    for (const std::string_view literal : {"true", "false", "null"}) {
      if (equals_lower(word, literal)) return put_value(literal);
    }
    for (const std::string_view nothing : {"none", "nil", "nan", "undefined", "infinity", "-infinity"}) {
      if (equals_lower(word, nothing)) return put_value("null");
    }
    if (JsonText::parse(word)) return put_value(word);
    put_name_or_text(word);
  }
  // "1,299", where a name would have to be behind the comma.
  std::string_view with_thousands(std::string_view word) const {
    if (!std::ranges::all_of(word, is_digit)) return word;
    std::size_t size = word.size();
    const auto is_group_at = [&](std::size_t at) {
      const std::string_view group = rest().substr(std::min(at, rest().size()), 4);
      const std::string_view behind = rest().substr(std::min(at + 4, rest().size()));
      return group.size() == 4 && group[0] == ',' && std::ranges::all_of(group.substr(1), is_digit) &&
             (behind.empty() || !is_digit(behind[0]));
    };
    while (is_group_at(size)) size += 4;
    if (size > word.size() && rest().substr(size).starts_with('.')) {
      ++size;
      while (size < rest().size() && is_digit(rest()[size])) ++size;
    }
    return rest().substr(0, size);
  }
  void put_name_or_text(std::string_view word) {
    begin_text();
    for (const char c : word) out_ += c;
    end_text();
  }
  void begin_text() {
    is_name_ = open_.back().awaits == Awaits::name;
    begin();
    out_ += '"';
  }
  void end_text() {
    out_ += '"';
    if (is_name_) {
      open_.back().awaits = Awaits::colon;
    } else {
      end_value();
    }
  }

  void take_string(const QuoteKind& quote) {
    begin_text();
    for (at_ += quote.begin.size(); at_ < text_.size();) {
      const char c = text_[at_];
      const std::size_t ending = ending_at(quote, rest());
      if (ending > 0 && ends_string(rest().substr(ending))) {
        at_ += ending;
        return end_text();
      }
      if (c == '\\') {
        at_ += append_mended_escape(rest(), out_);
        continue;
      }
      if (c == '"') out_ += '\\';
      out_ += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
      ++at_;
    }
    ++guesses_;
    end_text();
  }
  bool ends_string(std::string_view behind) {
    // A name has none.
    if (!has_quotes_within_ || is_name_) return true;
    skip_space_behind(behind);
    if (behind.empty() || behind[0] == '}' || behind[0] == ']') return true;
    const bool in_object = open_.back().closing == '}';
    if (behind[0] != ',') return in_object && begins_with_name(behind);
    behind.remove_prefix(1);
    skip_space_behind(behind);
    if (behind.empty() || behind[0] == '}' || behind[0] == ']') return true;
    if (in_object) return begins_with_name(behind);
    return quote_at(behind) != nullptr || std::string_view("{[-tfn").contains(behind[0]) || is_digit(behind[0]);
  }
  void skip_space_behind(std::string_view& text) noexcept {
    looked_at_ += text.size();
    skip_space(text);
    looked_at_ -= text.size();
  }
  // "name": or name:
  bool begins_with_name(std::string_view text) {
    text = text.substr(0, kLookedAhead);
    std::size_t end = 0;
    if (const QuoteKind* const quote = quote_at(text)) {
      std::size_t ending = 0;
      for (end = quote->begin.size(); end < text.size() && (ending = ending_at(*quote, text.substr(end))) == 0;) ++end;
      end += ending;
    } else {
      while (end < text.size() && is_of_word(text[end])) ++end;
    }
    text.remove_prefix(std::min(end, text.size()));
    looked_at_ += end;
    skip_space_behind(text);
    return end > 0 && text.starts_with(':');
  }

  const std::string_view text_;
  const bool has_quotes_within_;
  std::string out_;
  std::size_t at_ = 0;
  std::size_t guesses_ = 0;
  std::size_t roots_ = 0;
  std::size_t objects_ = 0, lists_ = 0;  // that are open
  std::size_t template_end_ = 0;         // of a "}}" before `at_`: not looked for; the text's size: there is none
  std::uint64_t looked_at_ = 0;
  bool is_name_ = false;  // the text that is being put
  std::vector<Open> open_;
};

// The JSON that is in a string, or whose quotes were escaped as if it were.
std::optional<std::string> out_of_string(std::string_view text) {
  const std::size_t quote = text.find('"');
  const std::size_t bracket = text.find_first_of("{[");
  if (quote == std::string_view::npos || bracket == std::string_view::npos) return std::nullopt;
  const bool is_escaped = quote > bracket && text[quote - 1] == '\\';
  const bool is_string = quote < bracket && trim_space(text.substr(quote + 1, bracket - quote - 1)).empty() &&
                         text.substr(bracket).contains("\\\"");
  if (!is_escaped && !is_string) return std::nullopt;
  std::string inside(text.substr(bracket));
  if (const std::size_t last = inside.find_last_of("}]"); last != std::string::npos) inside.resize(last + 1);
  const auto json = JsonText::parse("\"" + inside + "\"");
  if (!json) return std::nullopt;
  JsonErrors errors;
  const JsonValue value = json->root(errors);
  const auto read = value.if_text();
  return read ? std::optional<std::string>(*read) : std::nullopt;
}

}  // namespace

std::string salvaged_json(std::string_view given, std::uint64_t* looked_at) {
  std::string text = with_quotes_read(given);
  for (int left = kMostStringsInStrings; left > 0; --left) {
    auto inside = out_of_string(text);
    if (!inside) break;
    text = std::move(*inside);
    if (JsonText::parse(text)) return text;
  }
  JsonSalvage plain(text, false);
  std::string read = plain.read();
  if (looked_at != nullptr) *looked_at = plain.looked_at();
  if (plain.guesses() == 0) return read;
  JsonSalvage careful(text, true);
  std::string other = careful.read();
  if (looked_at != nullptr) *looked_at += careful.looked_at();
  return careful.guesses() < plain.guesses() ? other : read;
}

}  // namespace argiope
