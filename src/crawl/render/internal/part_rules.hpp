// The parts that rendered pages may ask for, what is sent, and what pages become: the rules that crawls and projects
// share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argiope/async/sync.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/render/page_renderer.hpp"
#include "argiope/web/http.hpp"
#include "argiope/web/http_session.hpp"
#include "crawl/render/internal/part_cache.hpp"

namespace argiope {

// A part is asked for again so often where its server wants to know who we are.
inline constexpr int kMostPartChallenges = 3;

// The requests and bytes that one page may still ask for. `limits` outlive it.
class PartBudget {
 public:
  explicit PartBudget(const RenderLimits& limits) : limits_(limits) {}

  // One request more. Errors: refused, too_large.
  Result<void> begin();
  void end(const HttpResponse& response) noexcept { bytes_ += response.body.size(); }

 private:
  const RenderLimits& limits_;
  std::size_t requests_ = 0;
  std::uint64_t bytes_ = 0;
};

// Of one page: its turns to ask.
struct PartTurns {
  Lock own;  // one request at a time to the page's own host
  // Requests under way: the answers are in memory until the browser has them.
  Semaphore places{16};
};

// The book on parts that is kept for all pages.
class PartBook {
 public:
  PartCache cache;

  // Whose turn it is to ask a host that is not the page's own. Valid until the next call, and while it is held.
  Lock& turn_of(const std::string& site);
  // Of a site that could not be connected to: it is not tried again for a minute.
  void note_silent(const std::string& site, TimePoint now);
  bool is_silent(const std::string& site, TimePoint now) const;

  // A page may name any host: what is known of so many sites is kept, and then what is of no use any more goes.
  static constexpr std::size_t kMostSites = 10'000;
  std::size_t sites() const noexcept { return turns_.size() + silent_until_.size(); }

 private:
  std::unordered_map<std::string, std::unique_ptr<Lock>> turns_;
  std::unordered_map<std::string, TimePoint> silent_until_;
};

// Of a request of a page, what is sent: its own fields, without those that name the client or the connection. Of
// another site than the page's it is anonymous, and has no cookies.
struct PartRequest {
  HttpRequest request;
  std::string cookies;  // that the page would send
};
// Errors: refused and too_large for what pages may not ask for.
Result<PartRequest> part_request(const Url& page, HttpRequest asked, PartKind kind);
// The cookies that the page would send, and beside them those that only we have.
std::string joined_cookies(std::string_view of_page, std::string_view of_ours);

// Those of `cookies` that the host of `url` may be sent.
std::vector<Cookie> cookies_for_host(std::vector<Cookie> cookies, const Url& url);
// Those of `now_there` that its scripts have set: they are for the host of `url`, and were not there before.
std::vector<Cookie> cookies_set_since(const std::vector<Cookie>& before, std::vector<Cookie> now_there, const Url& url);

// The answer with the document that was made of it, in UTF-8, and the type that this has. Takes the document.
HttpResponse rendered_response(const HttpResponse& fetched, RenderedPage& made);

}  // namespace argiope
