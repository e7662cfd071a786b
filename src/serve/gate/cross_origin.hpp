// Pages of other origins: browsers let them read an answer, and send what they like, only where the daemon says so
// (CORS).
#pragma once

#include <string>
#include <vector>

#include "argiope/web/http_server.hpp"

namespace argiope {

// `handler`, whose answers to pages of `origins` ("https://shop.example") say that these may read them, and which
// answers the question that a browser asks before other requests. Everyone else gets what `handler` answers. No
// cookies: a page that needs rights sends a token.
HttpHandler with_origins(HttpHandler handler, std::vector<std::string> origins);

}  // namespace argiope
