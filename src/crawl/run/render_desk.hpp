// Pages as JavaScript makes them: what a page is rendered to, and its requests, which are the crawl's own. Used with
// a renderer alone.
#pragma once

#include <optional>
#include <vector>

#include "crawl/run/leaving.hpp"
#include "crawl/run/shard.hpp"

namespace argiope {

class Crawler::Shard::RenderDesk : private Part {
 public:
  RenderDesk(Core& core, HostDesk& desk, HostQuestions& questions);

  // Opens the renderer of the options. The crawl ends where that fails.
  Coro<void> open();
  bool is_open() const noexcept { return rendering_.has_value(); }

  bool is_worth_rendering(const Visit& visit) const;
  // The page's response with what was rendered in `visit.rendered`; or why there is none.
  Coro<std::optional<Error>> render(Visit& visit);
  // From here on the page is what was rendered.
  static void take_rendered(Visit& visit);
  // Of the answer whose page was rendered: what is told by the answer itself, and where the page's script has gone.
  static void note_rendered(Visit& visit, UrlOutcome& outcome);

 private:
  class Parts;
  std::vector<Cookie> cookies_of(const Url& url) const;
  Coro<Result<void>> await_turn(Host& host, bool is_own, const Url& url);
  Leaving begin_part(Host& host, bool is_own);
  Coro<Leaving> enter_address(const Host& host);
  Coro<Result<void>> fetch_part(Host& page_host, PartTurns& turns, HttpRequest& request, bool may_be_known,
                                HttpResponse& response);
  Coro<Result<void>> ask_for_part(Host& host, bool is_own, HttpRequest& request, HttpResponse& response);
  void rest_after_part(Host& host, TimePoint sent_at, TimePoint now);

  HostDesk& desk_;
  HostQuestions& questions_;
  std::optional<Rendering> rendering_;  // once it is open
};

}  // namespace argiope
