#include <fmt/format.h>

#include <algorithm>

#include "argiope/async/event_loop.hpp"
#include "argiope/web/detail/charset.hpp"
#include "argiope/web/http_client.hpp"
#include "argiope/web/http_session.hpp"
#include "base/internal/printable.hpp"
#include "web/html/html_forms.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr int kMostLoginChallenges = 5;
constexpr std::size_t kMostFormsNamed = 5;  // in an error

using Entries = std::vector<std::pair<std::string, std::string>>;

// The entries that the form sends, in its order.
Entries entries_of(const HtmlForm& form, const LoginStep& step) {
  Entries entries;
  std::vector<bool> filled(step.fields.size());
  for (const FormControl& control : form.controls) {
    const auto given = std::ranges::find(step.fields, control.name, &Entries::value_type::first);
    if (given == step.fields.end()) {
      if (control.is_sent) entries.emplace_back(control.name, control.value);
      continue;
    }
    // Once, though there may be several of a name, as of radio buttons.
    const auto index = static_cast<std::size_t>(given - step.fields.begin());
    if (!filled[index]) entries.push_back(*given);
    filled[index] = true;
  }
  return entries;
}

void append_form_byte(std::string& out, char c) {
  if (is_alnum(c) || std::string_view("*-._").contains(c)) {
    out += c;
  } else if (c == ' ') {
    out += '+';
  } else {
    out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
}

// application/x-www-form-urlencoded, in the page's encoding, whose ASCII is ASCII.
void append_form_encoded(std::string& out, std::string_view text, std::string_view encoding) {
  const auto is_ascii_byte = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  for (std::size_t at = 0; at < text.size();) {
    if (encoding == "UTF-8" || is_ascii_byte(text[at])) {
      append_form_byte(out, text[at++]);
      continue;
    }
    const std::size_t start = at;
    while (at < text.size() && !is_ascii_byte(text[at])) ++at;
    std::string bytes;
    encode_query(text.substr(start, at - start), encoding, bytes);
    // Characters that the encoding lacks are percent-encoded already.
    for (const char c : bytes) {
      if (c == '%') {
        out += c;
      } else {
        append_form_byte(out, c);
      }
    }
  }
}

std::string form_encoded(const Entries& entries, std::string_view encoding) {
  std::string out;
  for (const auto& [name, value] : entries) {
    if (!out.empty()) out += '&';
    append_form_encoded(out, name, encoding);
    out += '=';
    append_form_encoded(out, value, encoding);
  }
  return out;
}

// RFC 7578; names with quotes and line ends as browsers escape them.
std::string multipart_encoded(const Entries& entries, std::string_view boundary) {
  std::string out;
  for (const auto& [name, value] : entries) {
    out += fmt::format("--{}\r\nContent-Disposition: form-data; name=\"", boundary);
    for (const char c : name) {
      out += c == '"' ? "%22" : c == '\r' ? "%0D" : c == '\n' ? "%0A" : std::string(1, c);
    }
    out += fmt::format("\"\r\n\r\n{}\r\n", value);
  }
  return out += fmt::format("--{}--\r\n", boundary);
}

std::string plain_encoded(const Entries& entries) {
  std::string out;
  for (const auto& [name, value] : entries) out += fmt::format("{}={}\r\n", name, value);
  return out;
}

// "[username, password, csrf]"
std::string describe_form(const HtmlForm& form) {
  std::string names;
  for (const FormControl& control : form.controls) {
    if (!names.empty()) names += ", ";
    names += printable(control.name, 40);
  }
  return fmt::format("[{}]", names);
}

// One page, in UTF-8.
struct LoginPage {
  Url url;
  std::string text;
  std::string encoding;
  HtmlForms forms;
};

class LoginRun {
 public:
  LoginRun(HttpTransport& session, CookieJar& jar, const LoginStep& step, const LoginOptions& options, Random random)
      : session_(session), jar_(jar), step_(step), options_(options), random_(random) {}

  Coro<Result<LoginOutcome>> run() {
    HttpRequest request;
    request.url = step_.page;
    auto before = co_await fetch(request);
    if (!before) co_return std::unexpected(std::move(before.error()));
    const auto form = find_form(*before);
    if (!form) co_return std::unexpected(form.error());
    auto filled = request_of(*before, **form);
    if (!filled) co_return std::unexpected(std::move(filled.error()));
    auto after = co_await fetch(*filled);
    if (!after) co_return std::unexpected(std::move(after.error()));
    if (auto worked = check(*after); !worked) co_return std::unexpected(std::move(worked.error()));
    co_return LoginOutcome{std::move(after->url), count_cookies(step_.page)};
  }

 private:
  std::unexpected<Error> bad(Errc code, std::string_view what) const {
    return fail(code, fmt::format("login at {}: {}", without_query(step_.page), what));
  }

  // Follows redirects, and answers challenges. `request` is left at the last hop.
  Coro<Result<LoginPage>> fetch(HttpRequest& request) {
    HttpResponse response;
    request.body_limit = options_.body_limit;
    request.timeout = options_.timeout;
    int challenges = 0;
    for (int hops = 0;;) {
      if (!std::exchange(is_first_, false)) co_await sleep(options_.pause);
      const Result<void> sent = co_await session_.send(request, response);
      if (!sent) co_return bad(sent.error().code, sent.error().message);
      if (!response.damage.empty()) co_return bad(Errc::network, response.damage);
      if (response.challenged == HttpChallenged::again && ++challenges <= kMostLoginChallenges) continue;
      if (!is_redirect(response.status) || response.headers.location.empty()) break;
      if (++hops > options_.max_redirects) {
        co_return bad(Errc::protocol, fmt::format("more than {} redirects", options_.max_redirects));
      }
      if (auto followed = follow(request, response); !followed) co_return std::unexpected(std::move(followed.error()));
    }
    if (response.status >= 400) {
      co_return bad(Errc::refused, fmt::format("{} answered HTTP {}", without_query(request.url), response.status));
    }
    co_return page_of(request.url, response);
  }

  // Fetch standard, 4.4: what was posted is not posted again, unless by 307 or 308.
  Result<void> follow(HttpRequest& request, const HttpResponse& response) const {
    auto next = Url::parse(response.headers.location, &request.url);
    if (!next || (next->scheme() != "http" && next->scheme() != "https")) {
      return bad(Errc::protocol, "a redirect leads to what is no http URL");
    }
    next->strip_credentials();
    next->strip_fragment();
    const bool goes_on = response.status == 307 || response.status == 308;
    if (goes_on && request.method == HttpMethod::post && is_downgrade(request.url, *next)) {
      return bad(Errc::refused, fmt::format("a redirect would send the form in the clear, to {}", next->site_key()));
    }
    if (!goes_on && request.method == HttpMethod::post) {
      request.method = HttpMethod::get;
      request.body.clear();
      request.headers.clear();
    }
    request.url = std::move(*next);
    return {};
  }

  static bool is_downgrade(const Url& from, const Url& to) {
    return from.scheme() == "https" && to.scheme() != "https";
  }

  static LoginPage page_of(const Url& url, const HttpResponse& response) {
    LoginPage page{.url = url};
    std::string_view body = response.body;
    const CharsetDecision charset = detect_charset(body, response.headers.content_type);
    body.remove_prefix(charset.bom_length);
    page.encoding = charset.ascii_compatible ? charset.name : "UTF-8";
    auto text = to_utf8(body, charset.name);
    page.text = text ? std::move(*text) : std::string(body);
    page.forms = scan_forms(page.text);
    return page;
  }

  Result<const HtmlForm*> find_form(const LoginPage& page) const {
    for (const HtmlForm& form : page.forms.forms) {
      if (has_all_fields(form)) return &form;
    }
    std::string wanted;
    for (const auto& [name, value] : step_.fields) wanted += (wanted.empty() ? "" : ", ") + in_quotes(name);
    if (page.forms.forms.empty()) {
      return bad(Errc::not_found,
                 fmt::format("{} has no form; one made by scripts cannot be filled in", without_query(page.url)));
    }
    std::string there;
    for (std::size_t i = 0; i < std::min(page.forms.forms.size(), kMostFormsNamed); ++i) {
      there += (there.empty() ? "" : " ") + describe_form(page.forms.forms[i]);
    }
    return bad(Errc::not_found, fmt::format("no form of {} has {}; those that are there have {}",
                                            without_query(page.url), wanted, there));
  }
  bool has_all_fields(const HtmlForm& form) const {
    return std::ranges::all_of(step_.fields, [&](const auto& field) { return form.control(field.first) != nullptr; });
  }

  Result<HttpRequest> request_of(const LoginPage& page, const HtmlForm& form) {
    const auto base = Url::parse(page.forms.base_href, &page.url);
    auto target = form.action.empty() ? Result<Url>(page.url) : Url::parse(form.action, base ? &*base : &page.url);
    if (!target || (target->scheme() != "http" && target->scheme() != "https")) {
      return bad(Errc::protocol, "the form leads to what is no http URL");
    }
    target->strip_fragment();
    target->strip_credentials();
    if (is_downgrade(page.url, *target)) {
      return bad(Errc::refused, fmt::format("the form would be sent in the clear, to {}", target->site_key()));
    }
    HttpRequest request;
    const Entries entries = entries_of(form, step_);
    if (!form.by_post) {
      const std::string bare = without_query(*target) + '?' + form_encoded(entries, page.encoding);
      auto url = Url::parse(bare);
      if (!url) return bad(Errc::too_large, "what was filled in does not fit into a URL");
      request.url = std::move(*url);
      return request;
    }
    request.method = HttpMethod::post;
    fill_body(request, form, entries, page.encoding);
    // Servers tell forms of their own pages from those of others by these.
    const bool is_own = page.url.site_key() == target->site_key();
    request.headers.emplace_back("Origin", page.url.site_key());
    request.headers.emplace_back("Referer",
                                 is_own ? std::string(page.url.without_fragment()) : page.url.site_key() + '/');
    request.url = std::move(*target);
    return request;
  }

  void fill_body(HttpRequest& request, const HtmlForm& form, const Entries& entries, std::string_view encoding) {
    std::string type = "application/x-www-form-urlencoded";
    if (form.encoding == HtmlForm::Encoding::multipart) {
      const std::string boundary = fmt::format("form-{:016x}{:016x}", random_.next(), random_.next());
      request.body = multipart_encoded(entries, boundary);
      type = "multipart/form-data; boundary=" + boundary;
    } else if (form.encoding == HtmlForm::Encoding::plain) {
      request.body = plain_encoded(entries);
      type = "text/plain";
    } else {
      request.body = form_encoded(entries, encoding);
    }
    request.headers.emplace_back("Content-Type", std::move(type));
  }

  Result<void> check(const LoginPage& page) const {
    if (!step_.expected_text.empty() && !page.text.contains(step_.expected_text)) {
      return bad(Errc::refused, fmt::format("{}, which came of it, does not have the text {}", without_query(page.url),
                                            in_quotes(step_.expected_text)));
    }
    if (!step_.expected_cookie.empty() && !has_cookie(page.url) && !has_cookie(step_.page)) {
      return bad(Errc::refused, fmt::format("there is no cookie {}", in_quotes(step_.expected_cookie)));
    }
    if (!step_.expected_text.empty() || !step_.expected_cookie.empty()) return {};
    if (std::ranges::any_of(page.forms.forms, [&](const HtmlForm& form) { return asks_again(form); })) {
      return bad(Errc::refused,
                 fmt::format("{} asks for it again: what was filled in is wrong, or not all that it wants",
                             without_query(page.url)));
    }
    if (count_cookies(step_.page) + count_cookies(page.url) == 0) {
      return bad(Errc::refused, "no cookie came of it, so nothing will tell who later requests are from");
    }
    return {};
  }
  // A form with a password that we have filled in.
  bool asks_again(const HtmlForm& form) const {
    return std::ranges::any_of(
        form.controls, [&](const FormControl& control) { return control.is_password && is_filled_in(control.name); });
  }
  bool is_filled_in(const std::string& name) const {
    return std::ranges::find(step_.fields, name, &Entries::value_type::first) != step_.fields.end();
  }

  std::string cookies_of(const Url& url) const { return jar_.field_for(url, EventLoop::current().clock().wall_now()); }
  std::size_t count_cookies(const Url& url) const {
    const std::string field = cookies_of(url);
    return field.empty() ? 0 : 1 + static_cast<std::size_t>(std::ranges::count(field, ';'));
  }
  bool has_cookie(const Url& url) const {
    return ("; " + cookies_of(url)).contains("; " + step_.expected_cookie + '=');
  }

  HttpTransport& session_;
  CookieJar& jar_;
  const LoginStep& step_;
  const LoginOptions& options_;
  Random random_;
  bool is_first_ = true;
};

}  // namespace

Coro<Result<LoginOutcome>> log_in(HttpTransport& session, CookieJar& jar, const LoginStep& step,
                                  const LoginOptions& options, Random random) {
  LoginRun run(session, jar, step, options, random);
  co_return co_await run.run();
}

}  // namespace argiope
