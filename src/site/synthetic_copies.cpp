#include "site/synthetic_copies.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "base/internal/fingerprint.hpp"
#include "site/synthetic_page.hpp"

namespace argiope {
namespace {

constexpr std::uint64_t kWordDraw = std::uint64_t{6} << 32;  // tells it from the draws of pages
constexpr std::uint32_t kVocabulary = 4096;
constexpr std::uint32_t kCopiedWords = 600;
constexpr std::uint32_t kItemWords = 60;
constexpr std::uint32_t kCalendarWords = 900;

// The number that is all of `text`.
std::optional<std::uint32_t> number_in(std::string_view text, std::uint32_t below) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc{} && end == text.data() + text.size() && !text.empty();
  return is_whole && number < below ? std::optional(number) : std::nullopt;
}

std::optional<std::uint32_t> number_behind(std::string_view path, std::string_view prefix, std::uint32_t below) {
  return path.starts_with(prefix) ? number_in(path.substr(prefix.size()), below) : std::nullopt;
}

// Words of their own for each `subject`, of which the first `edits` are others.
std::string prose(const SyntheticLayout& layout, std::uint32_t host, std::uint64_t subject, std::uint32_t words,
                  std::uint32_t edits = 0) {
  std::string text = "<p>";
  for (std::uint32_t i = 0; i < words; ++i) {
    const std::uint64_t word = layout.draw(host, subject, kWordDraw + (i < edits ? words + i : i)) % kVocabulary;
    fmt::format_to(std::back_inserter(text), "word{} ", word);
  }
  return text + "</p>\n";
}

std::string link_to(std::string_view href) { return fmt::format("<a href=\"{}\">on</a>\n", href); }

// --- copies

std::string document(const SyntheticLayout& layout, std::uint32_t host, std::uint32_t number, std::uint32_t edits = 0) {
  return small_page(fmt::format("Document {}", number),
                    prose(layout, host, number, kCopiedWords, edits) +
                        link_to(fmt::format("/copies/doc-{}", (number + 1) % kCopiedDocuments)));
}

std::string index_of_copies() {
  std::string links;
  for (std::uint32_t i = 0; i < kCopiedDocuments; ++i) {
    links += link_to(fmt::format("/copies/doc-{}", i));
    links += link_to(fmt::format("/copies/mirror/doc-{}", i));
    links += link_to(fmt::format("/copies/doc-{}?utm_source=news&amp;utm_medium=mail", i));
    links += link_to(fmt::format("/copies/view-{}?sort=price", i));
    for (std::uint32_t edits = 1; edits <= kNearCopies; ++edits)
      links += link_to(fmt::format("/copies/near-{}-{}", i, edits));
  }
  return small_page("Copies", links);
}

// The same things in another order; every second says in a header what it is a view of.
void view(const SyntheticLayout& layout, std::uint32_t host, std::uint32_t number, std::string_view sort,
          SyntheticReply& reply) {
  const std::string original = fmt::format("/copies/doc-{}", number);
  const bool in_header = number % 2 == 1;
  if (in_header)
    reply.headers.emplace_back("Link", fmt::format("</style.css>; rel=preload, <{}>; rel=\"canonical\"", original));
  std::string html = in_header ? "" : fmt::format("<link rel=\"canonical\" href=\"{}#top\">", original);
  html += prose(layout, host, fingerprint(sort, number), kItemWords);
  for (const std::string_view other : {"price", "name", "date"})
    html += link_to(fmt::format("/copies/view-{}?sort={}", number, other));
  reply.body = small_page(fmt::format("Document {} by {}", number, sort), html);
}

bool answer_copy(const SyntheticLayout& layout, std::uint32_t host, std::string_view rest, std::string_view query,
                 SyntheticReply& reply) {
  if (rest.empty()) {
    reply.body = index_of_copies();
    return true;
  }
  if (const auto number = number_behind(rest, "view-", kCopiedDocuments)) {
    view(layout, host, *number, query.substr(query.find('=') + 1), reply);
    return true;
  }
  const std::size_t dash = rest.rfind('-');
  if (rest.starts_with("near-") && dash > 4) {
    const auto number = number_in(rest.substr(5, dash - 5), kCopiedDocuments);
    const auto edits = number_in(rest.substr(dash + 1), kNearCopies + 1);
    if (!number || !edits) return false;
    reply.body = document(layout, host, *number, *edits);
    return true;
  }
  if (rest.starts_with("mirror/")) rest.remove_prefix(7);
  const auto number = number_behind(rest, "doc-", kCopiedDocuments);
  if (number) reply.body = document(layout, host, *number);
  return number.has_value();
}

// --- sessions

// Every answer knows a session of its own, and writes it into all its links: by two names that everybody knows, or by
// one that must be learned.
bool answer_session(const SyntheticLayout& layout, std::uint32_t host, std::string_view target, std::string_view rest,
                    SyntheticReply& reply) {
  const bool is_item = rest.starts_with("item-");
  rest = rest.substr(0, rest.find(';'));
  const auto number = number_behind(rest, is_item ? "item-" : "page-", kSessionPages);
  if (!number) return false;
  const std::uint64_t session = layout.draw(host, fingerprint(target), kWordDraw);
  std::string links;
  for (const std::uint32_t other : {2 * *number + 1, 2 * *number + 2, *number / 2}) {
    if (other >= kSessionPages) continue;
    if (is_item) {
      links += link_to(fmt::format("/sessions/item-{}?visit={:016x}", other, session));
    } else if (other % 2 == 0) {
      links += link_to(fmt::format("/sessions/page-{}?PHPSESSID={:016x}", other, session));
    } else {
      links += link_to(fmt::format("/sessions/page-{};jsessionid={:016x}", other, session));
    }
  }
  reply.body = small_page(fmt::format("{} {}", is_item ? "Item" : "Page", *number),
                          prose(layout, host, fingerprint(rest), kItemWords) + links);
  return true;
}

// --- traps

// "2026-12" and the month behind it.
std::optional<std::string> next_month(std::string_view month) {
  const std::size_t dash = month.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto year = number_in(month.substr(0, dash), 1'000'000);
  const auto number = number_in(month.substr(dash + 1), 13);
  if (!year || !number) return std::nullopt;
  return *number == 12 ? fmt::format("{}-1", *year + 1) : fmt::format("{}-{}", *year, *number + 1);
}

bool answer_trap(const SyntheticLayout& layout, std::uint32_t host, std::string_view rest, std::string_view query,
                 SyntheticReply& reply) {
  if (rest.starts_with("calendar/")) {
    const std::string_view month = rest.substr(9);
    const auto next = next_month(month);
    if (!next) return false;
    reply.body =
        small_page(fmt::format("Events in {}", month), prose(layout, host, fingerprint("calendar"), kCalendarWords) +
                                                           link_to(fmt::format("/traps/calendar/{}", *next)));
    return true;
  }
  if (rest.starts_with("folder/")) {
    reply.body = small_page("A folder", prose(layout, host, fingerprint("folder"), kItemWords) + link_to("sub/"));
    return true;
  }
  if (rest != "filter") return false;
  reply.body = small_page("Filter", prose(layout, host, fingerprint("filter"), kItemWords) +
                                        link_to(fmt::format("/traps/filter{}&amp;colour=red", query)));
  return true;
}

}  // namespace

bool answer_copies(const SyntheticLayout& layout, const SyntheticRequest& request, SyntheticReply& reply) {
  const std::string_view path = request.target.substr(0, request.target.find('?'));
  const std::string_view query = request.target.substr(path.size());
  const auto has = [&](WebFeature feature, std::string_view folder) {
    return path.starts_with(folder) && layout.has(request.host, feature);
  };
  if (has(WebFeature::copies, "/copies/")) return answer_copy(layout, request.host, path.substr(8), query, reply);
  if (has(WebFeature::sessions, "/sessions/"))
    return answer_session(layout, request.host, request.target, path.substr(10), reply);
  return has(WebFeature::traps, "/traps/") && answer_trap(layout, request.host, path.substr(7), query, reply);
}

std::vector<std::string> originals(const SyntheticLayout& layout, std::uint32_t host) {
  std::vector<std::string> urls;
  const auto add = [&](std::string_view path) { urls.push_back(layout.origins()[host] + std::string(path)); };
  if (layout.has(host, WebFeature::copies)) {
    add("/copies/");
    for (std::uint32_t i = 0; i < kCopiedDocuments; ++i) add(fmt::format("/copies/doc-{}", i));
  }
  for (std::uint32_t i = 0; i < kSessionPages && layout.has(host, WebFeature::sessions); ++i) {
    add(fmt::format("/sessions/page-{}", i));
    add(fmt::format("/sessions/item-{}", i));
  }
  for (const CopiesEntrance& entrance : kCopiesEntrances) {
    if (entrance.feature == WebFeature::traps && layout.has(host, WebFeature::traps)) add(entrance.path);
  }
  return urls;
}

}  // namespace argiope
