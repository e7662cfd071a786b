// How servers know a crawl: its cookies, its names and passwords, and whether it has logged in. Shared by the shards.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/store/detail/url_store.hpp"
#include "argiope/web/http.hpp"
#include "argiope/web/http_session.hpp"
#include "crawl/books/cookie_detours.hpp"

namespace argiope {

// Threads: load() before the shards work, and log_in(); the rest from any.
class CrawlSession {
 public:
  // `options` outlives it.
  CrawlSession(const CrawlOptions& options, std::uint64_t seed);

  // Takes up the cookies that were saved with the crawl, then those of the options. Before a login the saved ones are
  // forgotten: it begins a session of its own.
  Result<void> load(UrlStore& store, WallTime now);
  // Whether there is a login that a wrong link could end: by the options, or by cookies of an earlier run that had one.
  // After load().
  bool has_login() const noexcept { return has_login_; }
  // Hands the store what has changed since the last time.
  void save(UrlStore& store, WallTime now);
  std::vector<Cookie> cookies(WallTime now) const;

  // The value of a request's Cookie field; empty: nothing.
  std::string cookie_field(const Url& url, WallTime now) const;
  // Takes those that a page of `url` has now and did not have `before`, if they are for its host. Whether there were
  // some.
  bool take_cookies(const Url& url, const std::vector<Cookie>& before, std::vector<Cookie> now_there, WallTime now);

  // Sends requests by `below` and adds what is theirs; null where nothing is ever added.
  std::unique_ptr<HttpTransport> over(HttpTransport& below, std::uint64_t stream) const;

  // The login step of the options; without one, nothing. Errors: those of argiope::log_in().
  Coro<Result<void>> log_in(HttpTransport& below);

  // Learns from an answer who we are to that server: warns where a name is not taken, and where the login is lost.
  void note(const HttpRequest& request, const HttpResponse& response, WallTime now);

  // A redirect from one URL, `id`, to another, by their fingerprints. Where the redirects have led back to where they
  // began, and have set cookies on the way, the id of that URL, which is to be asked again; else 0.
  std::int64_t comes_back(std::uint64_t from, std::int64_t id, std::uint64_t to, bool new_cookies);

 private:
  bool has_login_cookies(WallTime now) const;

  const CrawlOptions& options_;
  const std::uint64_t seed_;
  const std::unique_ptr<CookieJar> jar_;  // null: without cookies
  bool has_login_ = false;
  CookieDetours detours_;
  std::mutex login_mutex_;
  std::vector<Cookie> login_cookies_;  // that came of the login, until one of them is gone
};

}  // namespace argiope
