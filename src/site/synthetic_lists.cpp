#include "site/synthetic_lists.hpp"

#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <optional>
#include <string>

#include "base/internal/rfc3339.hpp"
#include "site/synthetic_codings.hpp"
#include "site/synthetic_page.hpp"
#include "web/http/internal/http_date.hpp"

namespace argiope {
namespace {

constexpr std::string_view kSitemapSpace = "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"";
constexpr std::string_view kUsualIndex = "/sitemap.xml";
constexpr std::string_view kNamedIndex = "/maps/index.xml";

std::string_view index_of(std::uint32_t host) noexcept { return host % 2 == 0 ? kNamedIndex : kUsualIndex; }

WallTime date_of(const SyntheticLayout& layout, std::uint32_t host, std::uint32_t number) {
  return layout.modified_at(host, number);
}

std::string index_body(const SyntheticLayout& layout, std::uint32_t host) {
  std::string xml = fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<sitemapindex {}>\n", kSitemapSpace);
  for (const std::string_view part : {"pages.xml", "more.xml.gz", "hidden.txt"}) {
    fmt::format_to(std::back_inserter(xml), "<sitemap><loc>{}/maps/{}</loc></sitemap>\n", layout.origins()[host], part);
  }
  return xml + "</sitemapindex>\n";
}

// The pages of a host with even or with odd numbers.
std::string pages_body(const SyntheticLayout& layout, std::uint32_t host, std::uint32_t from) {
  std::string xml = fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset {}>\n", kSitemapSpace);
  for (std::uint32_t page = from; page < layout.options().pages; page += 2) {
    fmt::format_to(std::back_inserter(xml), "<url><loc>{}</loc><lastmod>{}</lastmod></url>\n",
                   layout.url(host, WebPlace::page, page), to_rfc3339(date_of(layout, host, page)));
  }
  return xml + "</urlset>\n";
}

std::string hidden_body(const SyntheticLayout& layout, std::uint32_t host) {
  std::string text;
  for (std::uint32_t i = 0; i < kHiddenPages; ++i) {
    fmt::format_to(std::back_inserter(text), "{}/hidden/{}\n", layout.origins()[host], i);
  }
  return text;
}

std::string rss_body(const SyntheticLayout& layout, std::uint32_t host) {
  std::string xml =
      fmt::format("<?xml version=\"1.0\"?>\n<rss version=\"2.0\"><channel><title>News</title><link>{}/</link>\n",
                  layout.origins()[host]);
  for (std::uint32_t i = 0; i < kPosts; i += 2) {
    fmt::format_to(std::back_inserter(xml),
                   "<item><title>{0}</title><link>/posts/{0}</link><pubDate>{1}</pubDate></item>\n", i,
                   format_http_date(date_of(layout, host, i)));
  }
  return xml + "</channel></rss>\n";
}

std::string atom_body(const SyntheticLayout& layout, std::uint32_t host) {
  std::string xml = "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>News</title><link href=\"/\"/>\n";
  for (std::uint32_t i = 1; i < kPosts; i += 2) {
    fmt::format_to(std::back_inserter(xml),
                   "<entry><title>{0}</title><link href=\"posts/{0}\"/><updated>{1}</updated></entry>\n", i,
                   to_rfc3339(date_of(layout, host, i)));
  }
  return xml + "</feed>\n";
}

// The number at the end of "/folder/7", if it is below `count`.
std::optional<std::uint32_t> number_below(std::string_view target, std::string_view folder, std::uint32_t count) {
  if (!target.starts_with(folder)) return std::nullopt;
  target.remove_prefix(folder.size());
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(target.data(), target.data() + target.size(), number);
  if (error != std::errc{} || end != target.data() + target.size() || number >= count) return std::nullopt;
  return number;
}

void reply_with(SyntheticReply& reply, std::string_view type, std::string body) {
  reply.content_type = type;
  reply.body = std::move(body);
}

bool answer_sitemap(const SyntheticLayout& layout, const SyntheticRequest& request, SyntheticReply& reply) {
  const std::string_view target = request.target;
  if (target == index_of(request.host)) {
    reply_with(reply, "application/xml", index_body(layout, request.host));
  } else if (target == "/maps/pages.xml") {
    reply_with(reply, "text/xml; charset=utf-8", pages_body(layout, request.host, 0));
  } else if (target == "/maps/more.xml.gz") {
    reply_with(reply, "application/octet-stream", compress_gzip(pages_body(layout, request.host, 1)));
  } else if (target == "/maps/hidden.txt") {
    reply_with(reply, "text/plain", hidden_body(layout, request.host));
  } else if (const auto hidden = number_below(target, "/hidden/", kHiddenPages)) {
    reply.body = small_page(fmt::format("Hidden {}", *hidden), "<a href=\"/\">home</a>");
  } else {
    return false;
  }
  return true;
}

bool answer_feed(const SyntheticLayout& layout, const SyntheticRequest& request, SyntheticReply& reply) {
  if (request.target == "/feed.xml") {
    reply_with(reply, "application/rss+xml", rss_body(layout, request.host));
  } else if (request.target == "/atom.xml") {
    reply_with(reply, "application/atom+xml", atom_body(layout, request.host));
  } else if (const auto post = number_below(request.target, "/posts/", kPosts)) {
    reply.body = small_page(fmt::format("Post {}", *post), "<a href=\"/\">home</a>");
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::string sitemap_line(const SyntheticLayout& layout, std::uint32_t host) {
  if (!layout.has(host, WebFeature::sitemaps) || host % 2 != 0) return {};
  return fmt::format("\nSitemap: {}{}\n", layout.origins()[host], kNamedIndex);
}

bool answer_listed(const SyntheticLayout& layout, const SyntheticRequest& request, SyntheticReply& reply) {
  if (layout.has(request.host, WebFeature::sitemaps) && answer_sitemap(layout, request, reply)) return true;
  return layout.has(request.host, WebFeature::feeds) && answer_feed(layout, request, reply);
}

std::string feed_links(const SyntheticLayout& layout, std::uint32_t host, std::uint32_t page) {
  if (page > 1 || !layout.has(host, WebFeature::feeds)) return {};
  return page == 0 ? "<link rel=\"alternate\" type=\"application/rss+xml\" title=\"News\" href=\"/feed.xml\">\n"
                   : "<link rel=\"alternate\" type=\"application/atom+xml\" href=\"/atom.xml\">\n";
}

}  // namespace argiope
