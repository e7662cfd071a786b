// From the text of a page's link to an absolute URL: the page's base, its encoding, and what a page may not say. Used
// by the harvester, for the links that a crawl follows, and by Page::links().
#pragma once

#include <string_view>

#include "argiope/web/detail/charset.hpp"
#include "argiope/web/url.hpp"

namespace argiope {

// Lifetime: refers to the page of its last begin().
class LinkResolver {
 public:
  LinkResolver() = default;
  LinkResolver(const LinkResolver&) = delete;
  LinkResolver& operator=(const LinkResolver&) = delete;

  // `base_href`: of the page's `base` element, or empty. `encoding`: the page's, as CharsetDecision names it.
  void begin(const Url& page, std::string_view base_href, std::string_view encoding) {
    base_ = &page;
    encoding_ = encoding;
    if (!base_href.empty() && parse_into(base_url_, base_href, &page) == UrlStatus::ok) base_ = &base_url_;
  }
  // The base of relative links: the page itself, or the URL of its `base` element.
  const Url& base() const noexcept { return *base_; }
  std::string_view encoding() const noexcept { return encoding_; }

  // Without fragment, and without credentials: a page's word for them counts for nothing.
  UrlStatus resolve(std::string_view text, Url& url) const {
    const UrlStatus status = resolve_with_fragment(text, url);
    if (status == UrlStatus::ok) url.strip_fragment();
    return status;
  }
  UrlStatus resolve_with_fragment(std::string_view text, Url& url) const {
    // The URL Standard encodes the query of a link in the document's own encoding.
    const UrlStatus status = parse_into(url, text, base_, encoding_ == "UTF-8" ? nullptr : &query_encoder_);
    if (status == UrlStatus::ok) url.strip_credentials();
    return status;
  }

 private:
  std::string_view encoding_;
  Url base_url_;
  const Url* base_ = nullptr;
  QueryEncoder query_encoder_ = [this](std::string_view utf8, std::string& out) { encode_query(utf8, encoding_, out); };
};

}  // namespace argiope
