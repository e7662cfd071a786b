// Which page or program a request comes from, as far as its fields tell: against pages that make a browser send
// requests to a daemon that only the browser can reach.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "argiope/web/http_server.hpp"

namespace argiope {

// Whether the request asks for a host that is this daemon's: localhost and names below it, any IP address, or one of
// `hosts` ("jobs.example" with any port, "jobs.example:8080" with that one). An attacker can have his own name resolve
// to this machine (DNS rebinding), but his page then sends that name. A request without Host comes from no browser.
bool asks_for_us(const ServerRequest& request, const std::vector<std::string>& hosts) noexcept;

// Whether the request was sent by a page that is neither this daemon's nor of `origins` ("https://jobs.example").
// Programs send neither Origin nor Sec-Fetch-Site. A link that the user follows is none of the page's: only the user
// sees what it brings.
bool is_of_foreign_page(const ServerRequest& request, const std::vector<std::string>& origins) noexcept;

// GET, HEAD and OPTIONS.
bool changes_nothing(HttpMethod method) noexcept;

}  // namespace argiope
