// HttpVersions: by which versions of HTTP servers are asked.
#pragma once

#include <cstdint>

namespace argiope {

// By which versions of HTTP https servers are asked. http servers are asked by HTTP/1.1.
enum class HttpVersions : std::uint8_t {
  best,   // HTTP/2 where the server chooses it (ALPN), else HTTP/1.1
  http1,  // HTTP/1.1 alone
  http2,  // HTTP/2 alone: a server without it is an error
};

}  // namespace argiope
