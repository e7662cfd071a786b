#include "site/synthetic_hostile.hpp"

#include <fmt/format.h>

#include <array>

#include "argiope/base/random.hpp"
#include "site/synthetic_codings.hpp"
#include "site/synthetic_page.hpp"

namespace argiope {
namespace {

using Behaviour = SyntheticReply::Behaviour;

constexpr std::size_t kBombBytes = 64 * 1024 * 1024;
constexpr std::uint32_t kManyHeaders = 1000;
constexpr std::uint32_t kResetsInARow = 30;
constexpr std::size_t kLongHeader = 1024 * 1024;

constexpr std::array<std::string_view, 5> kGarbage = {
    "\x16\x03\x01 this is not HTTP \r\n\r\n\xff\xfe",
    "<!DOCTYPE html><title>An answer without status or headers</title>",
    "HTTP/1.1 abc Nonsense\r\nContent-Length: -5\r\n\r\n<p>text",
    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n<p>no chunk\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\nno colon in this line\r\n\r\n12345",
};

// 0 and 1 in a circle, 2 to itself, and from 3 on without an end.
void loop(std::uint32_t number, SyntheticReply& reply) {
  constexpr std::array<std::uint32_t, 3> kNext = {1, 0, 2};
  reply.status = 302;
  reply.headers.emplace_back("Location", fmt::format("/loops/{}", number < kNext.size() ? kNext[number] : number + 1));
  reply.body = small_page("On and on");
}

void add_link(std::string& html, std::string_view href) { html += fmt::format("<a href=\"{}\">on</a>\n", href); }

// Pages that lead to ever new ones.
void endless(std::string_view rest, std::uint64_t chance, SyntheticReply& reply) {
  std::string links;
  if (rest.starts_with("mirror/")) {
    // A relative link that should have been absolute: mirror/mirror/mirror/…
    add_link(links, "mirror/");
    add_link(links, "index/mirror/");
  } else if (rest.starts_with("deep/")) {
    for (std::uint64_t i = 0; i < 3; ++i) add_link(links, fmt::format("level-{}/", mix64(chance + i) % 100'000));
  } else if (rest.starts_with("search")) {
    for (std::uint64_t i = 0; i < 4; ++i) {
      const std::uint64_t word = mix64(chance + i);
      add_link(links, fmt::format("search?q=w{}&amp;page={}", word % 1'000'000, word >> 48));
    }
  } else {
    for (std::uint64_t i = 0; i < 5; ++i) add_link(links, fmt::format("/endless/{}", mix64(chance + i) >> 33));
    links += "<a href=\"/\">home</a>";
  }
  reply.body = small_page("Ever more", links);
}

// Connections that are torn down; "all" is a page that leads to thirty of them, one after the other.
void reset(std::string_view rest, SyntheticReply& reply) {
  if (rest != "all") {
    reply.behaviour = Behaviour::reset;
    return;
  }
  std::string links;
  for (std::uint32_t i = 0; i < kResetsInARow; ++i) add_link(links, fmt::format("/reset/{}", i));
  reply.body = small_page("One after the other", links);
}

void send_headers(std::uint32_t number, SyntheticReply& reply) {
  if (number == 0) {
    for (std::uint32_t i = 0; i < kManyHeaders; ++i) reply.headers.emplace_back(fmt::format("X-Field-{}", i), "value");
  } else {
    reply.headers.emplace_back("X-Long", std::string(kLongHeader, 'x'));
  }
}

// "{0}" is the page, "{1}" its length in decimal, "{2}" in hexadecimal, "{3}" a length that is too long.
constexpr std::array<std::string_view, 16> kOddities = {
    "HTTP/1.1 200\r\nContent-Type: text/html\r\nContent-Length: {1}\r\n\r\n{0}",
    "HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: {1}\n\n{0}",
    "HTTP/1.1 200 OK\r\nno colon here\r\nContent-Type: text/html\r\nContent-Length: {1}\r\n\r\n{0}",
    "HTTP/1.1 200 OK\r\nContent-Encoding: utf-8\r\nContent-Type: text/html\r\nContent-Length: {1}\r\n\r\n{0}",
    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n"
    "{2}\r\n{0}\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {3}\r\n\r\n{0}",
    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n{2}\r\n{0}\r\n",
    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n{2}\n{0}\n0\n\n",
    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {1}\r\nContent-Length: {1}\r\n\r\n{0}",
    "HTTP/1.1 200 OK\r\nContent-Type:\r\n text/html;\r\n\tcharset=utf-8\r\nContent-Length: {1}\r\n\r\n{0}",
    "\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {1}\r\n\r\n{0}",
    "ICY 200 OK\r\nContent-Type: text/html\r\n\r\n{0}",
    "HTTP/1.0 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n{2}\r\n{0}\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: identity\r\nContent-Length: {1}\r\n\r\n{0}",
    "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200  OK\r\nContent-Type: text/html\r\nContent-Length: "
    "{1}\r\n\r\n{0}",
    "HTTP/1.1 200 OK\r\nContent-Type : text/html\r\nContent-Length: {1}\r\n\r\n{0}",
};

bool be_odd(std::uint32_t number, SyntheticReply& reply) {
  if (number >= kOddities.size()) return false;
  std::string next;
  if (number + 1 < kOddities.size()) add_link(next, fmt::format("/odd/{}", number + 1));
  reply.behaviour = Behaviour::odd;
  reply.body = small_page("Odd", next);
  reply.wire = fmt::format(fmt::runtime(kOddities[number]), reply.body, reply.body.size(),
                           fmt::format("{:x}", reply.body.size()), reply.body.size() + 100);
  return true;
}

}  // namespace

bool answer_hostile(WebFeature feature, std::string_view rest, std::uint32_t number, std::uint64_t chance,
                    SyntheticReply& reply) {
  const auto behave = [&](Behaviour behaviour) {
    reply.behaviour = behaviour;
    return true;
  };
  switch (feature) {
    case WebFeature::loops: loop(number, reply); return true;
    case WebFeature::endless: endless(rest, chance, reply); return true;
    case WebFeature::drip: return behave(Behaviour::drip);
    case WebFeature::reset: reset(rest, reply); return true;
    case WebFeature::lengths: return behave(number % 2 == 0 ? Behaviour::cut : Behaviour::surplus);
    case WebFeature::silent: return behave(Behaviour::silent);
    case WebFeature::garbage: reply.body = kGarbage[number % kGarbage.size()]; return behave(Behaviour::garbage);
    case WebFeature::flood: return behave(Behaviour::flood);
    case WebFeature::closed: return behave(Behaviour::closed);
    case WebFeature::failing:
      reply.status = std::array{500, 502, 503, 504}[number % 4];
      reply.body = small_page("It does not work");
      return true;
    case WebFeature::headers: send_headers(number, reply); return true;
    case WebFeature::odd: return be_odd(number, reply);
    default: return false;
  }
}

Bomb make_bomb(std::uint32_t number) {
  const std::string spaces(kBombBytes, ' ');
  switch (number) {
    case 0: return {"gzip", compress_gzip(spaces)};
    case 1: return {"br", compress_brotli(spaces)};
    case 2: return {"zstd", compress_zstd(spaces)};
    default: return {"gzip, gzip", compress_gzip(compress_gzip(spaces))};
  }
}

}  // namespace argiope
