#include "argiope/crawl/synthetic_web.hpp"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <stdexcept>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

constexpr std::uint32_t kIndexLinks = 400;
constexpr std::uint32_t kFlakyPages = 2;
constexpr std::size_t kFillerBytes = 64 * 1024;
constexpr std::size_t kBombBytes = 64 * 1024 * 1024;
constexpr std::array<std::string_view, 6> kSections = {"guide", "reference", "blog", "news", "faq", "archive"};
constexpr std::array<std::string_view, kWebFeatures> kFeatureNames = {
    "robots",  "redirects", "broken", "flaky",   "compressed", "encodings", "nofollow", "loops",
    "endless", "drip",      "reset",  "lengths", "silent",     "garbage",   "bomb",     "flood"};

// What is peculiar about a page follows from its number.
bool is_utf16(std::uint32_t page) noexcept { return page % 17 == 3; }
bool is_latin1(std::uint32_t page) noexcept { return page % 17 == 5; }
bool is_shift_jis(std::uint32_t page) noexcept { return page % 17 == 7; }
bool is_gzipped(std::uint32_t page) noexcept { return page % 5 == 1; }
bool is_zstd(std::uint32_t page) noexcept { return page % 5 == 2; }

std::string gzip(std::string_view text, int level) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string zstd(std::string_view text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  const std::size_t size = ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1);
  if (ZSTD_isError(size)) throw std::runtime_error("zstd");
  packed.resize(size);
  return packed;
}

std::string utf16_with_bom(std::string_view ascii) {
  std::string wide = "\xff\xfe";
  for (const char c : ascii) {
    wide += c;
    wide += '\0';
  }
  return wide;
}

// "/kind/123…": the kind and the number behind it.
struct Target {
  std::string_view kind;
  std::uint64_t number = 0;
};
Target parse_target(std::string_view target) {
  target = target.substr(0, target.find('?'));
  if (target.starts_with('/')) target.remove_prefix(1);
  Target parsed;
  parsed.kind = target.substr(0, target.find('/'));
  const std::size_t digits = target.find_first_of("0123456789");
  if (digits != std::string_view::npos) {
    std::from_chars(target.data() + digits, target.data() + target.size(), parsed.number);
  }
  return parsed;
}

SyntheticReply redirect(int status, std::string to) {
  SyntheticReply reply;
  reply.status = status;
  reply.headers.emplace_back("Location", std::move(to));
  reply.body = "<!doctype html><title>Moved</title>Moved.";
  return reply;
}

SyntheticReply simple(int status, std::string_view text) {
  SyntheticReply reply;
  reply.status = status;
  reply.body = fmt::format("<!doctype html><title>{0}</title><p>{0}", text);
  return reply;
}

}  // namespace

std::string_view to_string(WebFeature feature) noexcept { return kFeatureNames[static_cast<std::size_t>(feature)]; }

Result<std::uint32_t> parse_web_features(std::string_view names) {
  std::uint32_t features = 0;
  while (!names.empty()) {
    const std::size_t comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    names = comma == std::string_view::npos ? std::string_view{} : names.substr(comma + 1);
    const auto found = std::ranges::find(kFeatureNames, name);
    if (name == "friendly") {
      features |= kFriendlyFeatures;
    } else if (name == "hostile") {
      features |= kHostileFeatures;
    } else if (name == "all") {
      features |= kFriendlyFeatures | kHostileFeatures;
    } else if (found != kFeatureNames.end()) {
      features |= 1u << (found - kFeatureNames.begin());
    } else if (name != "none") {
      return fail(Errc::invalid_input, fmt::format("feature \"{}\": one of {}, friendly, hostile, all, none", name,
                                                   fmt::join(kFeatureNames, ", ")));
    }
  }
  return features;
}

SyntheticWeb::SyntheticWeb(SyntheticWebOptions options, std::vector<std::string> origins)
    : options_(options), origins_(std::move(origins)) {
  if (options_.hosts == 0 || options_.pages == 0 || origins_.size() != options_.hosts) {
    throw std::invalid_argument("a synthetic web needs hosts, pages, and an origin for each host");
  }
  constexpr std::array<std::string_view, 16> kWords = {"spider", "web",   "thread", "orb",  "silk",  "anchor",
                                                       "spiral", "hub",   "dew",    "dawn", "frame", "radius",
                                                       "garden", "catch", "mend",   "wait"};
  Random random(options_.seed);
  while (filler_.size() < kFillerBytes) {
    filler_ += kWords[random.below(kWords.size())];
    filler_ += random.chance(0.08) ? ".</p>\n<p>" : " ";
  }
}

bool SyntheticWeb::has(std::uint32_t host, WebFeature feature) const noexcept {
  if (is_hostile(feature) && host + options_.evil_hosts < options_.hosts) return false;
  return (options_.features & bit(feature)) != 0;
}

std::uint64_t SyntheticWeb::expected_pages(std::uint32_t host) const noexcept {
  return options_.pages + (has(host, WebFeature::flaky) ? kFlakyPages : 0);
}

std::uint64_t SyntheticWeb::draw(std::uint32_t host, std::uint64_t page, std::uint64_t what) const noexcept {
  return mix64(mix64(mix64(options_.seed + host) + page) + what);
}

std::string SyntheticWeb::path_of(std::uint32_t number) const {
  if (number == 0) return "/";
  return fmt::format("/{}/page-{}.html", kSections[number % kSections.size()], number);
}

bool SyntheticWeb::fails_first(std::uint32_t host, std::uint64_t number) {
  std::lock_guard lock(mutex_);
  return !std::exchange(failed_once_[{host, number}], true);
}

// --- answering ---------------------------------------------------------------------------------------------------

SyntheticReply SyntheticWeb::reply(const SyntheticRequest& request) {
  const Target target = parse_target(request.target);
  SyntheticReply answer;
  if (target.kind == "robots.txt") {
    answer.content_type = "text/plain";
    if (has(request.host, WebFeature::robots)) {
      answer.body = "User-agent: *\nDisallow: /private/\nAllow: /private/open\n";
    } else {
      answer = simple(404, "No robots.txt");
    }
    return answer;  // without latency: it is no page
  }
  if (target.kind.empty()) {
    answer = page(request, 0);
  } else if (target.kind == "old") {
    answer = redirect(301, path_of(static_cast<std::uint32_t>(target.number % options_.pages)));
  } else if (target.kind == "private") {
    answer = simple(200, "Private");
  } else if (target.kind == "flaky") {
    answer = simple(200, "Back again");
    if (fails_first(request.host, target.number)) {
      answer = simple(503, "Busy");
      answer.headers.emplace_back("Retry-After", "1");
    }
  } else if (std::ranges::find(kSections, target.kind) != kSections.end() && target.number < options_.pages) {
    answer = page(request, static_cast<std::uint32_t>(target.number));
  } else {
    answer = hostile(request, target.kind, target.number);
  }
  answer.latency = options_.latency;
  return answer;
}

SyntheticReply SyntheticWeb::page(const SyntheticRequest& request, std::uint32_t number) {
  SyntheticReply answer;
  const std::string etag = fmt::format("\"{:x}\"", draw(request.host, number, 0));
  answer.headers.emplace_back("ETag", etag);
  answer.headers.emplace_back("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT");
  if (request.if_none_match == etag) {
    answer.status = 304;
    return answer;
  }
  answer.body = page_text(request.host, number);
  if (has(request.host, WebFeature::encodings)) {
    if (is_utf16(number)) {
      answer.content_type = "text/html";
      answer.body = utf16_with_bom(answer.body);
    } else if (is_latin1(number)) {
      answer.content_type = "text/html; charset=ISO-8859-1";
      answer.body += "<p>d\xe9j\xe0 vu</p>";
    } else if (is_shift_jis(number)) {
      answer.content_type = "text/html";
      answer.body.insert(answer.body.find("<title>"), "<meta charset=shift_jis>");
      answer.body += "<p>\x83\x4e\x83\x82</p>";
    }
  }
  if (has(request.host, WebFeature::compressed)) {
    if (is_gzipped(number) && request.accept_encoding.find("gzip") != std::string_view::npos) {
      answer.headers.emplace_back("Content-Encoding", "gzip");
      answer.body = gzip(answer.body, 1);
    } else if (is_zstd(number) && request.accept_encoding.find("zstd") != std::string_view::npos) {
      answer.headers.emplace_back("Content-Encoding", "zstd");
      answer.body = zstd(answer.body);
    }
  }
  return answer;
}

std::string SyntheticWeb::page_text(std::uint32_t host, std::uint32_t number) const {
  std::string html;
  html.reserve(options_.size + 1024);
  fmt::format_to(std::back_inserter(html),
                 "<!doctype html>\n<html><head><title>Page {} of host {}</title></head>\n<body>\n", number, host);
  add_links(html, host, number);
  html += "<p>";
  if (html.size() < options_.size) {
    const std::size_t start = draw(host, number, 1) % (kFillerBytes / 2);
    std::size_t wanted = options_.size - html.size();
    for (; wanted > 0;) {
      const std::size_t take = std::min(wanted, kFillerBytes / 2);
      html.append(filler_, start, take);
      wanted -= take;
    }
  }
  html += "</p>\n</body></html>\n";
  return html;
}

void SyntheticWeb::add_links(std::string& html, std::uint32_t host, std::uint32_t number) const {
  const auto link = [&](std::string_view href, std::string_view attributes = {}) {
    fmt::format_to(std::back_inserter(html), "<li><a href=\"{}\"{}>link</a></li>\n", href, attributes);
  };
  html += "<ul>\n";
  // A tree that reaches every page: the front page is an index, and each page has some of those beyond.
  const std::uint32_t index = std::min(options_.pages - 1, kIndexLinks);
  const std::uint32_t children = std::max<std::uint32_t>(options_.links / 2, 1);
  const std::uint64_t first = number == 0 ? 1 : index + std::uint64_t{number - 1} * children + 1;
  const std::uint64_t end = std::min<std::uint64_t>(first + (number == 0 ? index : children), options_.pages);
  std::uint32_t written = 0;
  for (std::uint64_t child = first; child < end; ++child, ++written) link(path_of(static_cast<std::uint32_t>(child)));
  // Chance for the rest.
  for (std::uint32_t i = 0; written < options_.links; ++i, ++written) {
    const std::uint64_t drawn = draw(host, number, 16 + i);
    const auto other = static_cast<std::uint32_t>(drawn % options_.pages);
    const bool astray = static_cast<double>(drawn >> 40) / static_cast<double>(1u << 24) < options_.errors;
    if (astray && has(host, WebFeature::broken)) {
      link(fmt::format("/missing/{}.html", drawn % 1000));
    } else if (drawn % 23 == 0 && has(host, WebFeature::redirects)) {
      link(fmt::format("/old/{}", other));
    } else {
      link(path_of(other) + (drawn % 7 == 0 ? "#part" : ""));
    }
  }
  if (has(host, WebFeature::nofollow)) {
    link("/missing/nofollow.html", " rel=\"nofollow\"");
    html += "<!-- <a href=\"/missing/comment.html\"> --><script>'<a href=\"/missing/script.html\">'</script>\n";
  }
  if (number == 0) {
    if (options_.hosts > 1) link(origins_[(host + 1) % options_.hosts] + "/");
    if (has(host, WebFeature::robots)) link("/private/1.html");
    for (std::uint32_t i = 0; i < kFlakyPages && has(host, WebFeature::flaky); ++i)
      link(fmt::format("/flaky/{}.html", i));
    for (std::size_t f = 0; f < kWebFeatures; ++f) {
      const auto feature = static_cast<WebFeature>(f);
      if (is_hostile(feature) && has(host, feature)) link(fmt::format("/{}/0", to_string(feature)));
    }
  }
  html += "</ul>\n";
}

SyntheticReply SyntheticWeb::hostile(const SyntheticRequest& request, std::string_view kind, std::uint64_t number) {
  using Behaviour = SyntheticReply::Behaviour;
  const auto found = std::ranges::find(kFeatureNames, kind);
  const auto feature = static_cast<WebFeature>(found - kFeatureNames.begin());
  if (found == kFeatureNames.end() || !is_hostile(feature) || !has(request.host, feature))
    return simple(404, "Not found");
  SyntheticReply answer = simple(200, to_string(feature));
  answer.body += page_text(request.host, 0).substr(0, 2000);
  switch (feature) {
    case WebFeature::loops:
      // 0 and 1 in a circle; from 2 on, a chain.
      return redirect(302, fmt::format("/loops/{}", number == 0 ? 1 : number == 1 ? 0 : number + 1));
    case WebFeature::endless:
      answer.body = fmt::format(
          "<!doctype html><title>Day {0}</title><a href=\"/endless/{1}\">next</a>"
          "<a href=\"/endless/{2}?month={1}\">month</a><a href=\"a/b/{0}/\">deeper</a>"
          "<a href=\"/loops/2\">on</a>",
          number, number + 1, number + 30);
      return answer;
    case WebFeature::drip: answer.behaviour = Behaviour::drip; return answer;
    case WebFeature::reset: answer.behaviour = Behaviour::reset; return answer;
    case WebFeature::lengths:
      answer.behaviour = number % 2 == 0 ? Behaviour::cut : Behaviour::surplus;
      if (number == 0) answer.body += "<a href=\"/lengths/1\">other</a>";
      return answer;
    case WebFeature::silent: answer.behaviour = Behaviour::silent; return answer;
    case WebFeature::garbage: answer.behaviour = Behaviour::garbage; return answer;
    case WebFeature::bomb:
      answer.headers.emplace_back("Content-Encoding", "gzip");
      answer.body = gzip(std::string(kBombBytes, ' '), 9);
      return answer;
    case WebFeature::flood: answer.behaviour = Behaviour::flood; return answer;
    default: return simple(404, "Not found");
  }
}

}  // namespace argiope
