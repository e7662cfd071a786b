#include "web/url/internal/url_patterns.hpp"

#include <fmt/format.h>
#include <re2/re2.h>
#include <re2/set.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "argiope/web/url.hpp"
#include "base/internal/printable.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/url/internal/host_address.hpp"

namespace argiope {
namespace {

constexpr std::int64_t kPatternMemory = 64 * 1024 * 1024;  // of a set, once it is compiled
constexpr int kMostBraces = 20;                            // one in the other
constexpr std::string_view kExpression = "re:";
constexpr std::string_view kWild = "*?[{\\";
// Characters that URLs write as %XX in their paths, and some of them not in their queries (URL Standard, 1.3).
constexpr std::string_view kOftenEncoded = " \"#'<>^`{|}";

std::unexpected<Error> bad_pattern(std::string_view pattern, std::string_view what) {
  return fail(Errc::invalid_input, fmt::format("pattern {}: {}", in_quotes(pattern), what));
}

bool has_other_than_ascii(std::string_view text) noexcept {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

// "[::1]", which is no class of characters.
bool is_ipv6_host(std::string_view bracketed) noexcept {
  return std::ranges::count(bracketed, ':') >= 2 &&
         std::ranges::all_of(bracketed, [](char c) { return hex_value(c) >= 0 || c == ':' || c == '.'; });
}

// In lower case, and what is not ASCII by IDNA, label by label, because others may have wildcards.
std::string host_as_in_urls(std::string_view host) {
  std::string spelled;
  while (true) {
    const std::size_t dot = host.find('.');
    const std::string_view label = host.substr(0, dot);
    const bool is_plain = !has_other_than_ascii(label) || label.find_first_of(kWild) != std::string_view::npos;
    const auto url = is_plain ? std::unexpected(Error{}) : Url::parse(fmt::format("http://{}/", label));
    if (url) {
      spelled += url->host();
    } else {
      std::ranges::transform(label, std::back_inserter(spelled), to_lower);
    }
    if (dot == std::string_view::npos) return spelled;
    spelled += '.';
    host.remove_prefix(dot + 1);
  }
}

// Whether a glob without a slash is one that no URL can fit, as "example.org" and "secret*" are: only "*" covers the
// slashes of "https://", and what is before it has to be the beginning of that.
bool fits_no_url(std::string_view glob) noexcept {
  if (glob.contains('/')) return false;
  if (!glob.contains('*')) return true;
  const std::string_view begins = glob.substr(0, glob.find_first_of(kWild));
  return !std::string_view("https://").starts_with(begins) && !std::string_view("http://").starts_with(begins);
}

// From one glob to an expression of RE2.
class GlobTranslator {
 public:
  explicit GlobTranslator(std::string_view glob) : glob_(glob) {}

  Result<std::string> translate() {
    begin();
    while (error_.empty() && at_ < text_.size()) take();
    if (error_.empty() && braces_ > 0) error_ = "{ without }; write \\{ for the character";
    if (!error_.empty()) return bad_pattern(glob_, error_);
    if (may_end_host_) out_ += "/?";
    return out_ + "(?:\\?.*)?$";
  }

 private:
  // Decides what the glob is compared with, and its host as URLs have it.
  void begin() {
    // "//example.org/**" is one of any scheme, as in a page.
    const std::string_view glob = glob_.starts_with("//") ? glob_.substr(2) : glob_;
    const std::size_t scheme = glob.find("://");
    const bool has_scheme = scheme != std::string_view::npos;
    crosses_slashes_ = !glob_.contains('/');
    text_ = glob_;
    out_ = "^";
    if (glob.starts_with('/')) {
      out_ += "[a-z]+://[^/]*";
    } else if (!crosses_slashes_) {
      if (!has_scheme) out_ += "[a-z]+://";
      const std::size_t host = has_scheme ? scheme + 3 : 0;
      const std::size_t path = std::min(glob.find('/', host), glob.size());
      // Where the host has "**", that is also what follows the host.
      may_end_host_ = path == glob.size() && glob.substr(host).contains("**");
      std::string begins(glob.substr(0, host));
      std::ranges::transform(begins, begins.begin(), to_lower);
      text_ = fmt::format("{}{}{}", begins, host_as_in_urls(without_own_port(begins, glob.substr(host, path - host))),
                          path == glob.size() && !may_end_host_ ? "/" : glob.substr(path));
    }
  }
  // URLs do not have the port that is their scheme's.
  static std::string_view without_own_port(std::string_view scheme, std::string_view host) {
    const std::string_view port = scheme == "https://" ? ":443" : scheme == "http://" ? ":80" : "";
    if (host.ends_with(port)) host.remove_suffix(port.size());
    return host;
  }

  void take() {
    const char c = text_[at_];
    switch (c) {
      case '*': return take_star();
      case '?': return take_one();
      case '[': return take_class();
      case '{': return open_brace();
      case '}':
        if (braces_ > 0) return close_brace();
        break;
      case ',':
        if (braces_ > 0) return next_alternative();
        break;
      case '\\':
        if (++at_ == text_.size()) {
          error_ = "ends with \\; write \\\\ for the character";
          return;
        }
        break;
      default: break;
    }
    take_literal();
  }

  void take_star() {
    const std::size_t end = std::min(text_.find_first_not_of('*', at_), text_.size());
    const bool any = end - at_ > 1 || crosses_slashes_ || in_query_;
    const bool whole_folders =
        end - at_ > 1 && end < text_.size() && text_[end] == '/' && at_ > 0 && text_[at_ - 1] == '/';
    out_ += whole_folders ? "(?:.*/)?" : any ? ".*" : "[^/?]*";
    at_ = end + (whole_folders ? 1 : 0);
  }

  void take_one() {
    out_ += "[^/]";
    in_query_ = true;
    ++at_;
  }

  void take_class() {
    const std::size_t first = at_ + 1;
    const bool negated = first < text_.size() && (text_[first] == '!' || text_[first] == '^');
    // A "]" right at the front is one of the characters.
    const std::size_t end = text_.find(']', first + (negated ? 2 : 1));
    if (end == std::string::npos) {
      error_ = "[ without ]; write \\[ for the character";
      return;
    }
    const std::string_view inside = std::string_view(text_).substr(first, end - first);
    at_ = end + 1;
    if (is_ipv6_host(inside)) {
      out_ += RE2::QuoteMeta(fmt::format("[{}]", inside));
    } else if (has_other_than_ascii(inside)) {
      error_ = "what is between [ and ] must be ASCII; write {ä,ö}";
    } else {
      append_class(negated ? inside.substr(1) : inside, negated);
    }
  }
  void append_class(std::string_view characters, bool negated) {
    out_ += negated ? "[^/" : "[";
    for (const char c : characters) {
      if (c == '\\' || c == '[' || c == ']' || c == '^') out_ += '\\';
      out_ += c;
    }
    out_ += ']';
  }

  void open_brace() {
    if (++braces_ > kMostBraces) error_ = fmt::format("more than {} braces one in the other", kMostBraces);
    out_ += "(?:";
    ++at_;
  }
  void close_brace() {
    --braces_;
    out_ += ')';
    ++at_;
  }
  void next_alternative() {
    out_ += '|';
    ++at_;
  }

  void take_literal() {
    const auto byte = static_cast<unsigned char>(text_[at_]);
    const bool is_escape =
        byte == '%' && at_ + 2 < text_.size() && hex_value(text_[at_ + 1]) >= 0 && hex_value(text_[at_ + 2]) >= 0;
    if (is_escape) {
      out_ += fmt::format("(?i:{})", std::string_view(text_).substr(at_, 3));
      at_ += 3;
      return;
    }
    const std::string quoted = RE2::QuoteMeta(std::string_view(text_).substr(at_++, 1));
    if (byte >= 0x80) {
      out_ += fmt::format("(?i:%{:02X})", byte);
    } else if (kOftenEncoded.contains(static_cast<char>(byte))) {
      out_ += fmt::format("(?:{}|(?i:%{:02X}))", quoted, byte);
    } else {
      out_ += quoted;
    }
  }

  const std::string_view glob_;
  std::string text_;  // the same, with its host as URLs have it
  std::string out_, error_;
  std::size_t at_ = 0;
  int braces_ = 0;
  bool crosses_slashes_ = false;
  bool in_query_ = false;
  bool may_end_host_ = false;  // the glob may cover a host alone, whose URL ends with a slash
};

RE2::Options expression_options() {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_never_capture(true);
  return options;
}

}  // namespace

namespace {

// The parts of a glob that has a slash and does not begin with one: "//" counts as no scheme.
struct GlobParts {
  std::string_view scheme, host, behind;  // with "://" and "/"
};
std::optional<GlobParts> parts_of(std::string_view glob) noexcept {
  if (glob.starts_with("//")) {
    glob.remove_prefix(2);
  } else if (glob.starts_with('/') || !glob.contains('/')) {
    return std::nullopt;
  }
  const std::size_t scheme = glob.find("://");
  const std::size_t host = scheme == std::string_view::npos ? 0 : scheme + 3;
  const std::size_t path = std::min(glob.find('/', host), glob.size());
  return GlobParts{glob.substr(0, host), glob.substr(host, path - host), glob.substr(path)};
}

std::string why_host_fits_none(std::string_view host) {
  if (host.empty()) return "has no host";
  if (host.contains('@') && !host.contains("**"))
    return "has a name in front of its host, and URLs are compared without it";
  if (host.find_first_of(kWild) != std::string_view::npos) return {};
  const auto url = Url::parse(fmt::format("http://{}/", host));
  return url && can_be_host(url->host()) ? std::string() : fmt::format("fits no URL: {} is no host", in_quotes(host));
}

// URLs do not have the port that is their scheme's: what else fits a glob that names it, and leaves the scheme open.
// Empty: nothing.
std::string glob_without_port(std::string_view glob) {
  const auto parts = parts_of(glob);
  if (!parts || equals_lower(parts->scheme, "http://") || equals_lower(parts->scheme, "https://")) return {};
  for (const auto& [port, scheme] :
       {std::pair<std::string_view, std::string_view>{":443", "https://"}, {":80", "http://"}}) {
    if (!parts->host.ends_with(port)) continue;
    const std::string_view host = parts->host.substr(0, parts->host.size() - port.size());
    return fmt::format("{}{}{}", scheme, host, parts->behind);
  }
  return {};
}

// Why an expression that has to begin where the URL does begins with letters of no scheme; empty: it does not.
std::string why_beginning_fits_none(std::string_view expression) {
  if (!expression.starts_with('^')) return {};
  std::string_view rest = expression.substr(1);
  std::string_view begins =
      rest.substr(0, static_cast<std::size_t>(std::ranges::find_if_not(rest, is_alnum) - rest.begin()));
  rest.remove_prefix(begins.size());
  // What is repeated may be absent, and with another alternative nothing is certain.
  if (!rest.empty() && std::string_view("?*{").contains(rest[0]) && !begins.empty()) begins.remove_suffix(1);
  if (expression.contains('|') || std::string_view("https://").starts_with(begins) ||
      std::string_view("http://").starts_with(begins))
    return {};
  return fmt::format("begins with ^{}, but a URL with its scheme; write ^https?://", begins);
}

// Why a glob fits no URL that is ever asked, though it has a slash or a wildcard; empty: it may fit some.
std::string why_glob_fits_none(std::string_view glob) {
  constexpr std::string_view kSchemeEnd = "://";
  if (glob.starts_with('!'))
    return "begins with !, which negates nothing: --include takes what is wanted, --exclude what is not";
  if (glob.contains('#')) return "has a #, and URLs are compared without their fragment";
  const std::string_view scheme = glob.substr(0, glob.find(kSchemeEnd));
  const bool is_named = scheme.size() < glob.size() && !scheme.empty() && std::ranges::all_of(scheme, is_alnum);
  if (is_named && !equals_lower(scheme, "http") && !equals_lower(scheme, "https"))
    return "fits no URL: only those of http and https are asked";
  const auto parts = parts_of(glob);
  return parts ? why_host_fits_none(parts->host) : std::string();
}

}  // namespace

Result<std::string> url_pattern_expression(std::string_view pattern) {
  if (pattern.size() > UrlPatterns::kMostPatternBytes) {
    return bad_pattern(pattern.substr(0, 60), fmt::format("longer than {} bytes", UrlPatterns::kMostPatternBytes));
  }
  if (pattern.empty() || pattern == kExpression) return bad_pattern(pattern, "is empty");
  if (is_space(pattern.front()) || is_space(pattern.back()))
    return bad_pattern(pattern, "begins or ends with a blank, as no URL does");
  if (!pattern.starts_with(kExpression)) {
    if (fits_no_url(pattern)) {
      return bad_pattern(
          pattern,
          fmt::format("fits no URL: without a slash it is compared with all of it; write *{0}*, {0}/** or /{0}",
                      pattern));
    }
    if (const std::string why = why_glob_fits_none(pattern); !why.empty()) return bad_pattern(pattern, why);
    auto expression = GlobTranslator(pattern).translate();
    const std::string without_port = glob_without_port(pattern);
    if (!expression || without_port.empty()) return expression;
    const auto other = GlobTranslator(without_port).translate();
    return other ? fmt::format("(?:{}|{})", *expression, *other) : expression;
  }
  const std::string_view expression = pattern.substr(kExpression.size());
  // These would be found in no URL.
  if (has_other_than_ascii(expression))
    return bad_pattern(pattern, "must be ASCII: URLs write other letters as %C3%BC, in capitals");
  if (expression.starts_with("^/"))
    return bad_pattern(pattern, "begins with ^/, but a URL with its scheme; write ^https?://[^/]*/");
  if (const std::string why = why_beginning_fits_none(expression); !why.empty()) return bad_pattern(pattern, why);
  return std::string(expression);
}

struct UrlPatterns::Set {
  explicit Set(const RE2::Options& options) : all(options, RE2::UNANCHORED) {}
  RE2::Set all;
  // Asked where `all` has run out of memory: slower, and right.
  std::vector<std::unique_ptr<RE2>> each;
};

Result<UrlPatterns> UrlPatterns::compile(const std::vector<std::string>& patterns) {
  UrlPatterns compiled;
  if (patterns.empty()) return compiled;
  if (patterns.size() > kMostPatterns)
    return fail(Errc::too_large, fmt::format("more than {} patterns", kMostPatterns));
  RE2::Options options = expression_options();
  const RE2::Options of_one = options;
  options.set_max_mem(kPatternMemory);
  auto set = std::make_shared<Set>(options);
  for (const std::string& pattern : patterns) {
    auto expression = url_pattern_expression(pattern);
    if (!expression) return std::unexpected(std::move(expression.error()));
    set->each.push_back(std::make_unique<RE2>(*expression, of_one));
    if (!set->each.back()->ok()) return bad_pattern(pattern, set->each.back()->error());
    set->all.Add(*expression, nullptr);
  }
  if (!set->all.Compile()) return fail(Errc::too_large, "the patterns are too large together");
  compiled.set_ = std::move(set);
  return compiled;
}

Result<std::string> parse_url_pattern(std::string_view pattern) {
  const auto compiled = UrlPatterns::compile({std::string(pattern)});
  if (!compiled) return std::unexpected(compiled.error());
  return std::string(pattern);
}

bool UrlPatterns::match(std::string_view href) const {
  if (set_ == nullptr) return false;
  const re2::StringPiece text(href.data(), href.size());
  RE2::Set::ErrorInfo error{RE2::Set::kNoError};
  if (set_->all.Match(text, nullptr, &error)) return true;
  if (error.kind == RE2::Set::kNoError) return false;
  return std::ranges::any_of(set_->each, [&](const auto& one) { return RE2::PartialMatch(text, *one); });
}

}  // namespace argiope
