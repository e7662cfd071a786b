// A visit, step by step: what a URL is visited for, what can be asked of it, and what follows from an answer. Pure
// functions: no loop, no I/O, no clock. docs/crawl.md draws them, tests/crawl/visit_step_test.cpp has each row.
#pragma once

#include <cstdint>
#include <optional>

#include "argiope/base/error.hpp"
#include "argiope/store/detail/url_record.hpp"
#include "crawl/books/requisite_book.hpp"

namespace argiope {

// The purpose of a visit to a URL.
enum class Purpose : std::uint8_t {
  page,       // read for its links, which are followed
  requisite,  // a page is shown with it: fetched whole, and not followed
  sitemap,    // read for what it lists
  link,       // only checked: a link leads there, and it is out of scope
  asset,      // only checked: pages refer to it, and no link leads there
  part,       // an asset that an earlier run has saved as a requisite, and this one does not save
};

constexpr bool is_only_checked(Purpose purpose) noexcept {
  return purpose == Purpose::link || purpose == Purpose::asset || purpose == Purpose::part;
}
// Only checked because pages refer to it.
constexpr bool is_asset(Purpose purpose) noexcept { return purpose == Purpose::asset || purpose == Purpose::part; }
// Pages refer to it, and no link leads there: it is as deep as its page.
constexpr bool is_of_pages(Purpose purpose) noexcept { return purpose == Purpose::requisite || is_asset(purpose); }

// The reason for which the store keeps what is visited for this.
UrlReason reason_of(Purpose purpose) noexcept;

// The questions that can be asked of a URL. With the validators of its last answer each of them also asks whether that
// has changed: 304 says no.
enum class UrlAsk : std::uint8_t {
  page,  // GET, whole
  head,  // HEAD: of what is only checked, and of a page whose name says that its type is not accepted
  get,   // GET, of what is only checked: the first bytes, after a HEAD that proves nothing
  body,  // GET, of what is only checked: whole, for what is in it
};

// The first question. `looks_unwanted`: its name says that its type is not accepted.
UrlAsk first_ask(Purpose purpose, bool looks_unwanted) noexcept;

// A request of a visit.
struct VisitRequest {
  Purpose purpose = Purpose::page;
  UrlAsk ask = UrlAsk::page;
  std::uint8_t challenges = 0;   // how often it was asked once more, because an answer wanted to know who asks
  bool is_last_attempt = false;  // as many as the host's policy allows
};

// The answer to such a request.
struct VisitAnswer {
  int status = 0;                 // 0: no answer has come
  std::optional<Errc> failure{};  // why not; or why the page of the answer could not be rendered
  bool is_challenge = false;      // the server wanted to know who asks, and can be told now; or there are new cookies
  bool is_unwanted = false;       // it is of a type that is not accepted
  bool is_worth_reading = false;  // of what is only checked: the run wants to know what is in its body
  bool is_truncated = false;      // there was more of its body than was asked for
  bool is_damaged = false;        // its body ended too early
  bool is_unchanged = false;      // 304, and it was asked whether it has changed
};

enum class VisitStep : std::uint8_t {
  settle,   // the URL is answered
  fail,     // it is answered, and that counts as a failure
  again,    // the same is asked once more, at once
  instead,  // something else is asked, at once
  retry,    // it is asked after a while, as another attempt
  give_up,  // it is not answered, and nothing more is asked in this run
};

struct NextStep {
  VisitStep step = VisitStep::settle;
  UrlAsk ask = UrlAsk::page;  // what is asked then; of what is answered, what it has turned out to be the answer to

  friend bool operator==(const NextStep&, const NextStep&) = default;
};

// The first row that applies counts, of visit_step.cpp.
NextStep next_step(const VisitRequest& asked, const VisitAnswer& answer) noexcept;

// Whether a failure says something of the server. Others come from before the request, or are our own.
constexpr bool is_of_server(Errc failure) noexcept {
  return failure != Errc::invalid_input && failure != Errc::internal;
}

// --- when a URL is dealt with ----------------------------------------------------------------------------------------

// The purpose of its next visit, because of what pages have made of it meanwhile. The same: no more than it was.
Purpose purpose_among_requisites(Purpose purpose, RequisiteBook::Part known) noexcept;
// Of what is only checked. `is_linked`: a link leads there; `is_in_scope`: such a link is followed.
Purpose purpose_among_checks(Purpose purpose, bool is_linked, bool is_in_scope) noexcept;

}  // namespace argiope
