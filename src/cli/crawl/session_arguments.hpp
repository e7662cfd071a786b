// Those options of `argiope crawl` that say who it is to servers: cookies, names and passwords, a login.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/web/detail/proxy.hpp"
#include "argiope/web/http_session.hpp"
#include "argiope/web/url.hpp"
#include "cli/command_files.hpp"

namespace argiope {

// Secrets are in no message.
struct SessionArguments {
  bool no_cookies = false;
  std::string load_cookies, save_cookies;  // files
  std::vector<std::string> users;          // "[HOST=]NAME:PASSWORD"
  bool netrc = false;
  std::string netrc_file;
  std::string login;                      // the URL of a form
  std::vector<std::string> login_fields;  // "NAME=VALUE"
  std::vector<std::string> login_checks;  // "TEXT", "cookie:NAME"

  void add_to(CLI::App& command, const char* group);
  // Reads the files that are named. `options.seeds` are there already, and so are credentials that count more than
  // these. `remarks`: sentences on what is odd and no error.
  // Errors: invalid_input, not_found, io and too_large, naming the option and what is wrong with it.
  Result<void> apply(CrawlOptions& options, const ProxySettings::Variable& environment, WallTime now,
                     std::vector<std::string>& remarks) const;
  // Files of secrets and cookies. `environment` says where ~/.netrc is.
  void name_files(CommandFiles& files, const ProxySettings::Variable& environment) const;
  // Writes --save-cookies, for nobody else to read; without that option nothing. Errors: io and disk_full, naming it.
  Result<void> save(const std::vector<Cookie>& cookies) const;

 private:
  Result<void> apply_cookies(CrawlOptions& options, WallTime now, std::vector<std::string>& remarks) const;
  Result<void> apply_users(CrawlOptions& options, const ProxySettings::Variable& environment) const;
  Result<void> apply_netrc(CrawlOptions& options, const ProxySettings::Variable& environment) const;
  Result<void> apply_login(CrawlOptions& options, const ProxySettings::Variable& environment) const;
};

// The servers that what is given for a seed goes to, as HttpCredentials::where has them: its own, and where that may be
// with TLS.
std::vector<std::string> sites_of_seed(const Url& seed);
// Takes name and password out of a URL, for those servers; false when it has none. The crawl sends them as Basic by
// itself.
bool take_user_of_seed(Url& seed, CrawlOptions& options, std::string& authorization);

}  // namespace argiope
