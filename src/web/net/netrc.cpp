#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "argiope/web/detail/credentials.hpp"
#include "argiope/web/url.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

std::unexpected<Error> bad_netrc(std::size_t line, std::string_view what) {
  return fail(Errc::invalid_input, fmt::format("line {}: {}", line, what));
}

struct NetrcWord {
  std::string text;
  std::size_t line = 0;
  bool quoted = false;
};

// Words, and the lines they are on.
class NetrcWords {
 public:
  explicit NetrcWords(std::string_view text) : rest_(text) {}

  enum class Expected { keyword, value };
  // nullopt at the end. Comments stand where keywords do: a password may begin with "#". Errors: a quote without its
  // end.
  Result<std::optional<NetrcWord>> next(Expected expected) {
    skip_space(expected == Expected::keyword);
    if (rest_.empty()) return std::nullopt;
    NetrcWord word{.line = line_, .quoted = rest_.starts_with('"')};
    if (word.quoted) {
      if (!take_quoted(word.text)) return bad_netrc(word.line, "a double quote has no end on its line");
      return word;
    }
    std::size_t size = 0;
    while (size < rest_.size() && !is_space(rest_[size])) ++size;
    word.text.assign(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return word;
  }

  // A macro goes on to the next empty line.
  void skip_macro() {
    for (bool is_first = true; !rest_.empty(); is_first = false) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      const bool is_empty = trim_space(rest_.substr(0, end)).empty();
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++line_;
      if (is_empty && !is_first) return;
    }
  }

 private:
  void skip_space(bool and_comments) {
    while (!rest_.empty()) {
      if (and_comments && rest_.front() == '#') {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      } else if (is_space(rest_.front())) {
        if (rest_.front() == '\n') ++line_;
        rest_.remove_prefix(1);
      } else {
        return;
      }
    }
  }

  bool take_quoted(std::string& text) {
    for (std::size_t at = 1; at < rest_.size() && rest_[at] != '\n'; ++at) {
      char c = rest_[at];
      if (c == '"') {
        rest_.remove_prefix(at + 1);
        return true;
      }
      if (c == '\\' && at + 1 < rest_.size() && rest_[at + 1] != '\n') {
        c = rest_[++at];
        c = c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c;
      }
      text += c;
    }
    return false;
  }

  std::string_view rest_;
  std::size_t line_ = 1;
};

Result<std::string> netrc_host(const NetrcWord& word) {
  const auto url = Url::parse(fmt::format("http://{}/", word.text));
  const bool is_host = url && url->path_and_query() == "/" && url->port().empty() && url->username().empty();
  if (!is_host) return bad_netrc(word.line, "what follows machine is no host; ports have no place in a netrc");
  return std::string(url->host());
}

class NetrcReader {
 public:
  explicit NetrcReader(std::string_view text) : words_(text) {}

  Result<std::vector<NetrcEntry>> run() {
    for (;;) {
      auto word = words_.next(NetrcWords::Expected::keyword);
      if (!word) return std::unexpected(std::move(word.error()));
      if (!*word) break;
      if (auto taken = take(**word); !taken) return std::unexpected(std::move(taken.error()));
    }
    end_entry();
    return std::move(entries_);
  }

 private:
  Result<void> take(const NetrcWord& word) {
    if (word.quoted) return unknown(word);
    if (word.text == "machine") return begin_machine();
    if (word.text == "default") {
      end_entry();
      open_.emplace();
      return {};
    }
    if (word.text == "macdef") {
      words_.skip_macro();
      return {};
    }
    if (word.text != "login" && word.text != "password" && word.text != "account") return unknown(word);
    auto value = take_value(word);
    if (!value) return std::unexpected(std::move(value.error()));
    if (!open_) return bad_netrc(word.line, fmt::format("{} before any machine", word.text));
    if (word.text == "login") open_->name = std::move(*value);
    if (word.text == "password") open_->password = std::move(*value);
    return {};
  }

  Result<void> begin_machine() {
    end_entry();
    auto word = words_.next(NetrcWords::Expected::value);
    if (!word) return std::unexpected(std::move(word.error()));
    if (!*word) return fail(Errc::invalid_input, "the file ends behind machine");
    auto host = netrc_host(**word);
    if (!host) return std::unexpected(std::move(host.error()));
    open_ = NetrcEntry{.machine = std::move(*host)};
    return {};
  }

  Result<std::string> take_value(const NetrcWord& of) {
    auto word = words_.next(NetrcWords::Expected::value);
    if (!word) return std::unexpected(std::move(word.error()));
    if (!*word) return bad_netrc(of.line, fmt::format("the file ends behind {}", of.text));
    return std::move((*word)->text);
  }

  // It may be a part of a password with a space.
  static std::unexpected<Error> unknown(const NetrcWord& word) {
    return bad_netrc(word.line,
                     "a word that is none of machine, default, login, password, account and macdef; put what has "
                     "spaces into double quotes");
  }

  void end_entry() {
    if (!open_) return;
    const bool is_known =
        std::ranges::any_of(entries_, [&](const NetrcEntry& other) { return other.machine == open_->machine; });
    if (!is_known && !open_->name.empty()) entries_.push_back(std::move(*open_));
    open_.reset();
  }

  NetrcWords words_;
  std::vector<NetrcEntry> entries_;
  std::optional<NetrcEntry> open_;
};

}  // namespace

Result<std::vector<NetrcEntry>> parse_netrc(std::string_view text) { return NetrcReader(text).run(); }

}  // namespace argiope
