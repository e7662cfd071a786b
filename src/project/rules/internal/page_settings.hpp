// The settings of a page beside its URL, rule and context: "A page" in docs/processors.md, the members below the line.
// Scripts give them for single pages, rules and all pages, and files of projects those in `request` for rules and all
// pages; those of the page go before the rule's, and the rule's before the defaults, member by member.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/web/http.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "project/rules/internal/page_terms.hpp"

namespace argiope {

// Nothing said, taken back (`null`: what comes behind it counts for nothing either), or said.
template <class Value>
struct Said {
  bool is_said = false;
  std::optional<Value> value;  // of what is said; nullopt: taken back

  // This before `other`.
  const Said& or_else(const Said& other) const noexcept { return is_said ? *this : other; }
  friend bool operator==(const Said&, const Said&) = default;
};

// The request to the page's server, as far as it is said.
struct RequestSettings {
  // A validator: as the last success had it, this text, or none at all.
  struct Validator {
    bool sent = true;
    std::string text;  // empty: of the last success
    friend bool operator==(const Validator&, const Validator&) = default;
  };
  struct Render {
    std::string script;
    bool at_start = false;
    std::uint32_t width = 0, height = 0;  // 0: usual
    bool images = false;
    friend bool operator==(const Render&, const Render&) = default;
  };
  using Named = std::vector<std::pair<std::string, Said<std::string>>>;  // each name once; of headers without case

  static constexpr std::size_t kMostNamed = 200;  // headers, and cookies

  Said<std::string> method;  // one of HttpMethod's, in upper case
  Named headers, cookies;
  // All of them are taken back: those that come behind count for nothing, whatever their names.
  bool no_headers_behind = false, no_cookies_behind = false;
  Said<std::string> body;  // as bytes
  Said<Duration> timeout, connect_timeout;
  Said<std::uint32_t> redirects;
  Said<bool> verify_certificate;
  Said<std::string> proxy;  // as Proxy::parse() takes it; "": none
  Said<Validator> etag, last_modified;
  Said<bool> robots;
  Said<Render> render;
  friend bool operator==(const RequestSettings&, const RequestSettings&) = default;
};

struct PageSettings {
  Said<std::int32_t> priority;
  Said<Duration> age;  // said as null: never old
  Said<std::string> tag;
  Said<std::uint32_t> retries;
  Said<bool> recrawl;
  Said<Duration> time_limit;
  RequestSettings request;
  friend bool operator==(const PageSettings&, const PageSettings&) = default;

  bool is_empty() const { return *this == PageSettings{}; }
};

// Reads one member of a page, a rule or the defaults. False: it is none of these. Mistakes go to the value's errors.
bool read_setting(PageSettings& settings, std::string_view name, const JsonValue& value);
// The members that read_setting() knows in `request`, and those of its `render`, for readers that refuse others.
const std::vector<std::string>& request_member_names();
const std::vector<std::string>& render_member_names();
// Those that are said, `null` for what is taken back, as members of the object that is open in `out`.
void write_settings(JsonWriter& out, const PageSettings& settings);
// As one JSON object, which read_settings() reads: "{}" where nothing is said.
std::string stored(const PageSettings& settings);
Result<PageSettings> read_settings(std::string_view stored);

// `page` before `rule` before `defaults`, member by member; in headers and cookies name by name. Members that are taken
// back stay so, for those that may come behind.
PageSettings merged(const PageSettings& page, const PageSettings& rule, const PageSettings& defaults);
// Nothing comes behind these: what is taken back is as if nothing were said of it.
PageSettings settled(PageSettings settings);
// Takes out the headers that only the client may set (is_clients_own()). Their names, as they were said.
std::vector<std::string> take_out_clients_headers(RequestSettings& request);

// The request settings of a project's file: a rule's before those of all pages. They stand behind the script's.
PageSettings file_settings(const RequestSettings& rule, const RequestSettings& project);

// The terms of a page, for decide_ask(): what is not said is as in `usual`, what is taken back as in PageTerms.
PageTerms terms_of(const PageSettings& rule_and_defaults, const PageTerms& usual);
OwnTerms own_terms_of(const PageSettings& page);

}  // namespace argiope
