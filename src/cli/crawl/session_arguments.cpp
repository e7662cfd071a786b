#include "cli/crawl/session_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "argiope/web/detail/credentials.hpp"
#include "argiope/web/http_client.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/file_reading.hpp"
#include "base/internal/output_file.hpp"
#include "base/internal/printable.hpp"
#include "cli/crawl/seed_list.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/url/internal/host_address.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostCookieFileBytes = std::size_t{32} * 1024 * 1024;
constexpr std::size_t kMostNetrcBytes = std::size_t{4} * 1024 * 1024;
constexpr std::size_t kMostSecretBytes = std::size_t{64} * 1024;
constexpr std::string_view kVariableMark = "@env:";
constexpr std::string_view kCookieMark = "cookie:";
constexpr const char* kUsualNetrc = "/.netrc";

// The whole file. Errors begin with `option` and the file's name.
Result<std::string> read_file_of(std::string_view option, const std::string& path, std::size_t most) {
  auto text = read_file_text(path, most, FileReading::first);
  if (!text) return fail(text.error().code, fmt::format("{} {}: {}", option, printable(path), text.error().message));
  return text;
}

// A secret as it stands, or where it is: "@FILE" is the file's first line, "@env:NAME" a variable; "@@…" begins with an
// "@" itself. `option` begins errors, and is all of what was typed that they have.
Result<std::string> read_secret(std::string_view option, const std::string& text,
                                const ProxySettings::Variable& environment) {
  if (!text.starts_with('@')) return text;
  if (text.starts_with("@@")) return text.substr(1);
  if (text.starts_with(kVariableMark)) {
    const std::string name = text.substr(kVariableMark.size());
    if (auto value = environment(name.c_str())) return std::move(*value);
    return fail(Errc::not_found,
                fmt::format("{}: there is no variable {} in the environment", option, in_quotes(name)));
  }
  const std::string path = text.substr(1);
  auto file = read_file_of(option, path, kMostSecretBytes);
  if (!file) {
    file.error().message += "; what begins with @ itself is written with @@";
    return file;
  }
  std::string line = file->substr(0, file->find_first_of("\r\n"));
  if (line.empty())
    return fail(Errc::invalid_input, fmt::format("{} {}: its first line is empty", option, printable(path)));
  return line;
}

// FILE of a text with "@FILE" behind its mark; empty: it has none.
std::string secret_file_in(const std::string& text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  const std::string secret = at == std::string::npos ? std::string() : text.substr(at + mark.size() - 1);
  const bool is_file = !secret.empty() && !secret.starts_with("@@") && !secret.starts_with(kVariableMark);
  return is_file ? secret.substr(1) : std::string();
}

bool has_port_behind_host(std::string_view text) {
  return text.find(':', text.rfind(']') + 1) != std::string_view::npos;
}

void add_site(std::vector<std::string>& sites, std::string site) {
  if (std::ranges::find(sites, site) == sites.end()) sites.push_back(std::move(site));
}

// Where a name for a host goes: "https://HOST", and what the seeds have of that host. Nothing that is not asked for in
// so many words goes over the wire in the clear.
std::vector<std::string> sites_of_host(const Url& https, bool has_port, const std::vector<Url>& seeds) {
  std::vector<std::string> sites{https.site_key()};
  for (const Url& seed : seeds) {
    if (seed.host() != https.host()) continue;
    if (has_port) {
      if (seed.effective_port() == https.effective_port()) add_site(sites, seed.site_key());
    } else {
      for (std::string& site : sites_of_seed(seed)) add_site(sites, std::move(site));
    }
  }
  return sites;
}

// Of "HOST", "HOST:PORT" and "http://HOST".
Result<std::vector<std::string>> sites_of_place(const std::string& text, const std::vector<Url>& seeds) {
  const bool is_origin = text.contains("://");
  const auto url = Url::parse(is_origin ? text : "https://" + text + "/");
  const bool is_web = url && (url->scheme() == "http" || url->scheme() == "https");
  if (!is_web || !can_be_host(url->host()) || url->path_and_query() != "/" || !url->username().empty()) {
    return fail(Errc::invalid_input,
                fmt::format("--user {}=…: in front of = is a host, HOST:PORT or http://HOST", in_quotes(text)));
  }
  if (is_origin) return std::vector{url->site_key()};
  return sites_of_host(*url, has_port_behind_host(text), seeds);
}

// Whether "x" of "x=ann:secret" is a host, rather than the beginning of "x=a", a name, or of "ann:x=…", a password.
bool reads_as_host(std::string_view text, const std::vector<Url>& seeds) {
  if (text.starts_with("http://") || text.starts_with("https://") || text.starts_with('[')) return true;
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  if (colon != std::string_view::npos) {
    const std::string_view port = text.substr(colon + 1);
    if (port.empty() || !std::ranges::all_of(port, is_digit)) return false;
  }
  if (name.empty() || name.find_first_of("@/ \t") != std::string_view::npos) return false;
  const auto is_of_seed = [&](const Url& seed) { return equals_ignoring_case(seed.host(), name); };
  return name.contains('.') || name == "localhost" || std::ranges::any_of(seeds, is_of_seed);
}

struct NamedUser {
  std::optional<std::string> place;
  std::string name;
  std::string password;  // or where it is
};
// Nothing that was typed is told, but for the host: the rest may be a password.
Result<NamedUser> split_user(const std::string& text, const std::vector<Url>& seeds) {
  NamedUser user;
  std::string_view rest = text;
  const std::size_t equals = rest.find('=');
  if (equals != std::string_view::npos && reads_as_host(rest.substr(0, equals), seeds) &&
      rest.find(':', equals) != std::string_view::npos) {
    user.place = text.substr(0, equals);
    rest.remove_prefix(equals + 1);
  }
  const std::size_t colon = rest.find(':');
  if (colon == std::string_view::npos) {
    return fail(Errc::invalid_input,
                "--user: write NAME:PASSWORD or HOST=NAME:PASSWORD; NAME:@FILE and NAME:@env:VARIABLE say where the "
                "password is");
  }
  user.name = rest.substr(0, colon);
  user.password = rest.substr(colon + 1);
  return user;
}

void add_credentials(CrawlOptions& options, const std::vector<std::string>& sites, const std::string& name,
                     const std::string& password) {
  for (const std::string& site : sites)
    options.credentials.push_back({.where = site, .name = name, .password = password});
}

}  // namespace

std::vector<std::string> sites_of_seed(const Url& seed) {
  std::vector<std::string> sites{seed.site_key()};
  if (seed.scheme() == "http" && seed.port().empty()) sites.push_back(fmt::format("https://{}", seed.host()));
  return sites;
}

bool take_user_of_seed(Url& seed, CrawlOptions& options, std::string& authorization) {
  const std::string name = percent_decode(seed.username());
  const std::string password = percent_decode(seed.password());
  authorization = take_credentials(seed);
  if (authorization.empty()) return false;
  for (std::string& site : sites_of_seed(seed)) {
    options.credentials.push_back(
        {.where = std::move(site), .name = name, .password = password, .goes_as_basic = true});
  }
  return true;
}

// One option, two lines: no formatter sees that.
// clang-format off
void SessionArguments::add_to(CLI::App& command, const char* group) {
  CLI::Option* const none = command.add_flag("--no-cookies", no_cookies, "Send no cookies back, and keep none")->group(group);
  command.add_option("--load-cookies", load_cookies, "Begin with the cookies of this file, in the format of Netscape's cookies.txt")
      ->excludes(none)->group(group)->type_name("FILE");
  command.add_option("--save-cookies", save_cookies, "At the end, write all cookies to this file in that format; nobody else may read it")
      ->excludes(none)->group(group)->type_name("FILE");
  command.add_option("--user", users, "For servers that ask for a name and password (basic, digest): the URLs' hosts, or HOST; the password may be @FILE or @env:VARIABLE (repeatable)")
      ->group(group)->type_name("[HOST=]NAME:PASSWORD")->allow_extra_args(false);
  CLI::Option* const usual = command.add_flag("--netrc", netrc, "Names and passwords of ~/.netrc, too")->group(group);
  command.add_option("--netrc-file", netrc_file, "Names and passwords of this file, in the format of .netrc")
      ->excludes(usual)->group(group)->type_name("FILE");
  CLI::Option* const form = command.add_option("--login", login, "First fill in and send the form on this page; links that log out are not followed then")
      ->excludes(none)->group(group)->type_name("URL");
  command.add_option("--login-field", login_fields, "A field of the form by its name; the value may be @FILE or @env:VARIABLE (repeatable)")
      ->needs(form)->group(group)->type_name("NAME=VALUE")->allow_extra_args(false);
  command.add_option("--login-check", login_checks, "The login has worked when the page that comes has this text, or when there is this cookie (repeatable; default: the form does not come again)")
      ->needs(form)->group(group)->type_name("TEXT|cookie:NAME")->allow_extra_args(false);
}
// clang-format on

void SessionArguments::name_files(CommandFiles& files, const ProxySettings::Variable& environment) const {
  files.reads("--load-cookies", load_cookies, "--save-cookies");
  files.writes_secret("--save-cookies", save_cookies);
  files.reads("--netrc-file", netrc_file);
  if (const auto home = environment("HOME"); netrc && home) files.reads("--netrc", *home + kUsualNetrc);
  for (const std::string& user : users) files.reads("--user", secret_file_in(user, ":@"));
  for (const std::string& field : login_fields) files.reads("--login-field", secret_file_in(field, "=@"));
}

Result<void> SessionArguments::apply(CrawlOptions& options, const ProxySettings::Variable& environment, WallTime now,
                                     std::vector<std::string>& remarks) const {
  if (auto applied = apply_cookies(options, now, remarks); !applied) return applied;
  if (auto applied = apply_users(options, environment); !applied) return applied;
  if (auto applied = apply_netrc(options, environment); !applied) return applied;
  return apply_login(options, environment);
}

Result<void> SessionArguments::apply_cookies(CrawlOptions& options, WallTime now,
                                             std::vector<std::string>& remarks) const {
  options.cookies = !no_cookies;
  if (save_cookies == "-")
    return fail(Errc::invalid_input, "--save-cookies -: cookies go to a file, and to no terminal");
  if (load_cookies.empty()) return {};
  const auto text = read_file_of("--load-cookies", load_cookies, kMostCookieFileBytes);
  if (!text) return std::unexpected(text.error());
  auto cookies = parse_cookies_txt(*text);
  if (!cookies) {
    return fail(cookies.error().code,
                fmt::format("--load-cookies {}: {}", printable(load_cookies), cookies.error().message));
  }
  const std::size_t all = cookies->size();
  std::erase_if(*cookies, [&](const Cookie& cookie) { return cookie.expires && *cookie.expires <= now; });
  if (cookies->empty()) {
    remarks.push_back(fmt::format("--load-cookies {}: {}", printable(load_cookies),
                                  all == 0 ? "there are no cookies in it" : "all its cookies have expired"));
  }
  options.given_cookies = std::move(*cookies);
  return {};
}

// Those that name their host count more than those that are for all.
Result<void> SessionArguments::apply_users(CrawlOptions& options, const ProxySettings::Variable& environment) const {
  std::vector<NamedUser> for_all;
  for (const std::string& text : users) {
    auto user = split_user(text, options.seeds);
    if (!user) return std::unexpected(std::move(user.error()));
    auto password = read_secret("--user", user->password, environment);
    if (!password) return std::unexpected(std::move(password.error()));
    user->password = std::move(*password);
    if (!user->place) {
      for_all.push_back(std::move(*user));
      continue;
    }
    const auto sites = sites_of_place(*user->place, options.seeds);
    if (!sites) return std::unexpected(sites.error());
    add_credentials(options, *sites, user->name, user->password);
  }
  if (for_all.size() > 1) {
    return fail(Errc::invalid_input, "--user: two names for the same hosts; HOST=NAME:PASSWORD says which is whose");
  }
  for (const NamedUser& user : for_all) {
    for (const Url& seed : options.seeds) add_credentials(options, sites_of_seed(seed), user.name, user.password);
  }
  return {};
}

// "default" is for the hosts of the URLs given, and not for any host that asks.
Result<void> SessionArguments::apply_netrc(CrawlOptions& options, const ProxySettings::Variable& environment) const {
  if (!netrc && netrc_file.empty()) return {};
  const std::string option = netrc ? "--netrc" : "--netrc-file";
  std::string path = netrc_file;
  if (netrc) {
    const auto home = environment("HOME");
    if (!home || home->empty())
      return fail(Errc::not_found, "--netrc: HOME does not say where .netrc is; --netrc-file does");
    path = *home + kUsualNetrc;
  }
  const auto text = read_file_of(option, path, kMostNetrcBytes);
  if (!text) return std::unexpected(text.error());
  const auto entries = parse_netrc(*text);
  if (!entries) {
    return fail(entries.error().code, fmt::format("{} {}: {}", option, printable(path), entries.error().message));
  }
  for (const NetrcEntry& entry : *entries) {
    if (entry.machine.empty()) continue;
    const auto url = Url::parse(fmt::format("https://{}/", entry.machine));
    if (url) add_credentials(options, sites_of_host(*url, false, options.seeds), entry.name, entry.password);
  }
  const auto fallback = std::ranges::find(*entries, std::string{}, &NetrcEntry::machine);
  if (fallback == entries->end()) return {};
  for (const Url& seed : options.seeds) {
    const auto has_own = [&](const NetrcEntry& entry) { return entry.machine == seed.host(); };
    if (std::ranges::none_of(*entries, has_own)) {
      add_credentials(options, sites_of_seed(seed), fallback->name, fallback->password);
    }
  }
  return {};
}

Result<void> SessionArguments::apply_login(CrawlOptions& options, const ProxySettings::Variable& environment) const {
  if (login.empty()) return {};
  auto page = parse_seed(login);
  if (!page) {
    std::string why = page.error().message;
    return fail(Errc::invalid_input, why.replace(0, std::string_view("URL").size(), "--login"));
  }
  LoginStep step{.page = std::move(*page)};
  if (!step.page.username().empty() || !step.page.password().empty()) {
    return fail(Errc::invalid_input,
                "--login: a name and password have no place in this URL; --user gives them to its server, "
                "--login-field to the form");
  }
  for (const std::string& text : login_fields) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return fail(Errc::invalid_input,
                  "--login-field: write it as NAME=VALUE, by the name that the form has for the field");
    }
    std::string name = text.substr(0, equals);
    if (std::ranges::any_of(step.fields, [&](const auto& field) { return field.first == name; })) {
      return fail(Errc::invalid_input, fmt::format("--login-field {}: given twice", printable(name)));
    }
    auto value = read_secret(fmt::format("--login-field {}", printable(name)), text.substr(equals + 1), environment);
    if (!value) return std::unexpected(std::move(value.error()));
    step.fields.emplace_back(std::move(name), std::move(*value));
  }
  if (step.fields.empty()) {
    return fail(Errc::invalid_input,
                "--login: nothing is filled in; --login-field NAME=VALUE gives a field of the form");
  }
  for (const std::string& text : login_checks) {
    const bool is_cookie = text.starts_with(kCookieMark);
    std::string& expected = is_cookie ? step.expected_cookie : step.expected_text;
    if (!expected.empty()) {
      return fail(Errc::invalid_input, fmt::format("--login-check: {}", is_cookie ? "two cookies; one is enough"
                                                                                  : "two texts; one is enough"));
    }
    expected = is_cookie ? text.substr(kCookieMark.size()) : text;
    if (expected.empty())
      return fail(Errc::invalid_input, "--login-check: a text of the page that comes, or cookie:NAME");
  }
  options.login = std::move(step);
  return {};
}

Result<void> SessionArguments::save(const std::vector<Cookie>& cookies) const {
  if (save_cookies.empty()) return {};
  OutputFile file("--save-cookies", save_cookies, OutputFile::Readers::owner);
  file.write(format_cookies_txt(cookies));
  return file.finish();
}

}  // namespace argiope
