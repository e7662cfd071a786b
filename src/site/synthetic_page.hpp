// The bytes of a synthetic web's documents: markup and text around the links that the layout says. The links are
// written in the many ways that HTML allows, so that a crawl which finds them all reads HTML as browsers do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "site/internal/synthetic_web.hpp"
#include "site/synthetic_layout.hpp"

namespace argiope {

// Prose of a few words, made once and copied from.
// Threads: any; it never changes.
class SyntheticText {
 public:
  explicit SyntheticText(std::uint64_t seed);
  // Appends exactly `bytes` of it, ASCII without markup; `chance` says from where.
  void append(std::string& out, std::size_t bytes, std::uint64_t chance) const;

 private:
  std::string prose_;
};

// Fills in content type, body and X-Robots-Tag of the page, in its own encoding.
void write_page(const SyntheticLayout& layout, const SyntheticText& text, std::uint32_t host, std::uint32_t page,
                SyntheticReply& reply);

// The same for a place that is no page of the tree and answers 200: press, note, sponsored, ad, phantom, step, flaky,
// paper, figure.
void write_place(const SyntheticLayout& layout, const SyntheticText& text, std::uint32_t host, WebPlace place,
                 std::uint32_t number, SyntheticReply& reply);

// A document that says `title`, with `html` in its body.
std::string small_page(std::string_view title, std::string_view html = {});

}  // namespace argiope
