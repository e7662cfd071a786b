#include "site/synthetic_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "base/internal/utf8.hpp"
#include "site/synthetic_copies.hpp"
#include "site/synthetic_lists.hpp"

namespace argiope {
namespace {

constexpr std::size_t kProseBytes = 64 * 1024;
constexpr std::size_t kFileBytes = 2048;

constexpr std::string_view kPageEnd = "</body></html>\n";

// The source of a page's size: a factor whose median is 1, between 2^-1.5 and 2^1.5, mostly near the middle.
double size_factor(std::uint64_t chance) {
  const double first = static_cast<double>(chance >> 32) * 0x1p-32;
  const double second = static_cast<double>(chance & 0xffff'ffff) * 0x1p-32;
  return std::exp2((first + second - 1) * 1.5);
}

std::string to_utf16(std::string_view utf8, bool big_endian) {
  std::string wide;
  wide.reserve(utf8.size() * 2);
  while (!utf8.empty()) {
    const std::size_t length = std::max<std::size_t>(utf8_length(utf8), 1);
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(utf8[i]); };
    // All samples are in the basic plane: three bytes at most.
    const unsigned unit = length == 1   ? byte(0)
                          : length == 2 ? (byte(0) & 0x1fu) << 6 | (byte(1) & 0x3fu)
                                        : (byte(0) & 0x0fu) << 12 | (byte(1) & 0x3fu) << 6 | (byte(2) & 0x3fu);
    const auto high = static_cast<char>(unit >> 8);
    const auto low = static_cast<char>(unit & 0xff);
    wide += big_endian ? high : low;
    wide += big_endian ? low : high;
    utf8.remove_prefix(length);
  }
  return wide;
}

class PageWriter {
 public:
  PageWriter(const SyntheticLayout& layout, const SyntheticText& text, std::uint32_t host, std::uint32_t page,
             std::string& out)
      : layout_(layout), text_(text), host_(host), page_(page), out_(out) {
    based_ = layout.marked(kBasedMark, host, page);
    odd_ = layout.marked(kOddEncodingMark, host, page) ? &odd_encoding_of(page) : nullptr;
    layout.append_path(directory_, WebPlace::page, page);
    directory_.resize(directory_.rfind('/') + 1);
  }

  void write() {
    const std::uint64_t chance = layout_.draw(host_, page_, kSizeDraw);
    const auto wanted = static_cast<std::size_t>(layout_.options().size * size_factor(chance));
    out_.reserve(wanted + 1024);
    head();
    // A link is some 75 bytes; the rest of the page is text, some before each of the first links.
    constexpr std::size_t kLinkBytes = 75;
    const std::size_t links = std::max(layout_.options().links, 1u);
    const std::size_t spent = out_.size() + links * kLinkBytes;
    const std::size_t share = wanted > spent ? (wanted - spent) / links : 0;
    layout_.for_each_link(host_, page_, [&](const SyntheticLink& written) {
      if (out_.size() + share + kLinkBytes <= wanted) text_.append(out_, share, written.chance ^ chance);
      link(written);
    });
    off_web();
    if (page_ == 0) hostile();
    if (page_ == 0) guarded();
    if (page_ == 0) copies();
    out_ += layout_.marked(kPartlessMark, host_, page_) ? "<p>" : "<p id=part-2>";
    const std::size_t written = out_.size() + kPageEnd.size();
    if (written < wanted) text_.append(out_, wanted - written, chance);
    out_ += kPageEnd;
  }

 private:
  static constexpr std::uint64_t kSizeDraw = std::uint64_t{2} << 32;  // beyond all slots and children

  void head() {
    out_ += "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n";
    if (odd_ != nullptr) out_ += odd_->meta;
    fmt::format_to(std::back_inserter(out_), "<title>Page {} of host {}</title>\n", page_, host_);
    if (layout_.has(host_, WebFeature::resources)) out_ += "<link rel=\"stylesheet\" href=\"/css/site.css\">\n";
    out_ += feed_links(layout_, host_, page_);
    if (based_) out_ += "<base href=\"/\">\n";
    fmt::format_to(std::back_inserter(out_), "</head>\n<body>\n<h1>Page {}</h1>\n", page_);
    if (odd_ != nullptr) {
      out_ += "<p>";
      out_ += odd_->sample;
      out_ += "</p>\n";
    }
  }

  // As a reference from this page; relative where `relative` is.
  void reference(const SyntheticLink& link, bool relative) {
    target_.clear();
    if (link.host != host_) target_ = layout_.origins()[link.host];
    const std::size_t path = target_.size();
    layout_.append_path(target_, link.place, link.number);
    if (link.host != host_ || !(relative || based_)) return;
    if (!based_ && target_.starts_with(directory_)) {
      target_.erase(0, directory_.size());
    } else if (!based_ && directory_.size() > 1) {
      target_.replace(path, 1, "../../");  // all pages but the front page stand two directories deep
    } else {
      target_.erase(path, 1);
    }
    if (target_.empty()) target_ = "./";
  }

  void link(const SyntheticLink& link) {
    switch (link.place) {
      case WebPlace::ad:
        reference(link, false);
        add("<p><a rel=\"sponsored NoFollow\" href=\"{}\">an offer</a></p>\n");
        return;
      case WebPlace::phantom:
        reference(link, false);
        phantom(link.number % kPhantomKinds);
        return;
      case WebPlace::figure:
        reference(link, false);
        add("<a href=\"{0}\"><img src=\"{0}\" alt=\"\"></a>\n");
        return;
      case WebPlace::print:
        reference(link, true);
        target_.replace(target_.find('&'), 1, "&amp;");
        add("<a href=\"{}\">to print</a>\n");
        return;
      case WebPlace::query:
        // The name itself, which the reader has to percent-encode.
        reference({WebPlace::page, link.host, link.number}, true);
        target_ += "?name=";
        target_ += odd_->sample;
        add("<a href=\"{}\">by name</a>\n");
        return;
      default: plain(link);
    }
  }

  void plain(const SyntheticLink& link) {
    reference(link, (link.chance & 1) != 0);
    if (link.place == WebPlace::page && (link.chance >> 1) % 8 == 0) target_ += "#part-2";
    switch ((link.chance >> 4) % 5) {
      case 0: add("<p>See also <a class=more href='{}'>this</a>, and more.</p>\n"); return;
      case 1: add("<p>It was <A HREF={}>said</A> before.</p>\n"); return;
      case 2: add("<p>See <a title=\"a > b\"\n  href = \" {} \">there</a>.</p>\n"); return;
      default: add("<p>More is <a href=\"{}\">on another page</a>.</p>\n");
    }
  }

  // Texts that only look like links, and links that are no web addresses.
  void phantom(std::uint32_t kind) {
    switch (kind) {
      case 0: add("<!-- <a href=\"{}\">old</a> -->\n"); return;
      case 1: add("<script>const s = '<a href=\"{}\">s</a>';</script>\n"); return;
      case 2:
        add("<p title='<a href=\"{}\">t</a>'>A <a name=here>mark</a>, <a href=\"#here\">and to it</a>.</p>\n");
        return;
      default:
        add("<textarea><a href=\"{}\">x</a></textarea>\n<a href=\"mailto:web@example.invalid\">write</a> "
            "<a href=\"javascript:void(0)\">open</a> <a href=\"tel:+100\">call</a> <a href=\"http://:bad\">?</a>\n");
    }
  }

  void off_web() {
    if (!layout_.marked(kOffsiteMark, host_, page_)) return;
    target_ = fmt::format("{}/page-{}", kOffsiteOrigin, page_);
    add("<p>Others <a href=\"{}\">say so too</a>.</p>\n");
  }

  void hostile() {
    for (const HostileEntrance& trouble : kHostileEntrances) {
      if (!layout_.has(host_, trouble.feature)) continue;
      for (const std::string_view entrance : trouble.entrances) {
        if (entrance.empty()) break;
        target_ = fmt::format("/{}/{}", to_string(trouble.feature), entrance);
        add("<p><a href=\"{}\">trouble</a></p>\n");
      }
    }
  }

  void guarded() {
    if (layout_.has(host_, WebFeature::cookies)) {
      target_ = "/cookies/";
      add("<p><a href=\"{}\">with a cookie</a></p>\n");
    }
    if (layout_.has(host_, WebFeature::scripts)) {
      target_ = "/scripts/1";
      add("<p><a href=\"{}\">with a browser</a></p>\n");
    }
    for (const GuardedPages& pages : kGuardedPages) {
      if (!layout_.has(host_, pages.feature)) continue;
      target_ = fmt::format("{}1", pages.folder);
      add("<p><a href=\"{}\">for some</a></p>\n");
    }
  }

  void copies() {
    for (const CopiesEntrance& entrance : kCopiesEntrances) {
      if (!layout_.has(host_, entrance.feature)) continue;
      target_ = entrance.path;
      add("<p><a href=\"{}\">again</a></p>\n");
    }
  }

  void add(fmt::format_string<std::string&> markup) { fmt::format_to(std::back_inserter(out_), markup, target_); }

  const SyntheticLayout& layout_;
  const SyntheticText& text_;
  const std::uint32_t host_;
  const std::uint32_t page_;
  std::string& out_;
  std::string directory_;  // of this page, with slashes around
  std::string target_;     // of the link being written
  bool based_ = false;
  const OddEncoding* odd_ = nullptr;
};

// The link from one step of the chain to the next, each in another way.
std::string chain_link(std::string_view next, std::uint32_t step) {
  switch (step % 5) {
    case 0: return fmt::format("<map name=m><area shape=default href=\"{}\"></map>", next);
    case 1: return fmt::format("<link rel=\"next\" href=\"{}\">", next);
    case 2: return fmt::format("<iframe src=\"{}\"></iframe>", next);
    case 3: return fmt::format("<meta http-equiv=\"refresh\" content=\"5; url='{}'\">", next);
    default: return fmt::format("<a href=\"{}\">next</a>", next);
  }
}

}  // namespace

SyntheticText::SyntheticText(std::uint64_t seed) {
  constexpr std::array<std::string_view, 24> kWords = {
      "spider", "web", "thread", "orb",   "silk", "anchor", "spiral", "hub",  "dew", "dawn", "frame",  "radius",
      "garden", "a",   "catch",  "mends", "wait", "the",    "and",    "from", "of",  "in",   "strong", "slow"};
  Random random(seed);
  prose_.reserve(kProseBytes + 16);
  while (prose_.size() < kProseBytes) {
    prose_ += kWords[random.below(kWords.size())];
    prose_ += random.chance(0.08) ? ". " : " ";
  }
}

void SyntheticText::append(std::string& out, std::size_t bytes, std::uint64_t chance) const {
  // From anywhere in the first half, so that a half is always there to take at once.
  const std::size_t half = prose_.size() / 2;
  const std::size_t start = chance % half;
  while (bytes > 0) {
    const std::size_t taken = std::min(bytes, half);
    out.append(prose_, start, taken);
    bytes -= taken;
  }
}

void write_page(const SyntheticLayout& layout, const SyntheticText& text, std::uint32_t host, std::uint32_t page,
                SyntheticReply& reply) {
  reply.body.clear();
  PageWriter(layout, text, host, page, reply.body).write();
  if (!layout.marked(kOddEncodingMark, host, page)) return;
  const OddEncoding& odd = odd_encoding_of(page);
  reply.content_type = odd.content_type;
  if (odd.unit != OddEncoding::Unit::byte) {
    reply.body = to_utf16(reply.body, odd.unit == OddEncoding::Unit::utf16_be);
  }
  reply.body.insert(0, odd.mark);
}

void write_place(const SyntheticLayout& layout, const SyntheticText& text, std::uint32_t host, WebPlace place,
                 std::uint32_t number, SyntheticReply& reply) {
  const std::uint64_t chance = layout.draw(host, number, static_cast<std::uint64_t>(place));
  std::string ad;
  layout.append_path(ad, WebPlace::ad, number);
  switch (place) {
    case WebPlace::step: {
      std::string next;
      layout.append_path(next, WebPlace::step, number + 1);
      reply.body = small_page(fmt::format("Step {}", number), number < kChainSteps ? chain_link(next, number) : "");
      return;
    }
    case WebPlace::sponsored: {
      // Every second says it in a header, the others in the page.
      const bool in_header = number % 2 == 0;
      if (in_header) reply.headers.emplace_back("X-Robots-Tag", "noarchive, nofollow");
      reply.body = small_page("An offer", fmt::format("{}<a href=\"{}\">buy</a>",
                                                      in_header ? "" : "<meta name=robots content=nofollow>", ad));
      return;
    }
    case WebPlace::note: reply.body = small_page("A private note"); return;
    case WebPlace::press: reply.body = small_page("A press release"); return;
    case WebPlace::ad: reply.body = small_page("An ad"); return;
    case WebPlace::phantom: reply.body = small_page("A phantom: no link leads here"); return;
    case WebPlace::flaky: reply.body = small_page("Back again"); return;
    case WebPlace::paper:
      reply.content_type = "application/pdf";
      // The text of a link in a file that is not HTML is none.
      reply.body = fmt::format("%PDF-1.7\n<a href=\"{}\">", ad);
      text.append(reply.body, kFileBytes, chance);
      return;
    case WebPlace::figure:
      reply.content_type = "image/png";
      reply.body = "\x89PNG\r\n\x1a\n";
      text.append(reply.body, kFileBytes, chance);
      return;
    default: return;
  }
}

std::string small_page(std::string_view title, std::string_view html) {
  return fmt::format("<!DOCTYPE html>\n<title>{0}</title>\n<h1>{0}</h1>\n{1}\n{2}", title, html, kPageEnd);
}

}  // namespace argiope
