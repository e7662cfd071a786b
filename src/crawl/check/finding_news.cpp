#include "crawl/check/internal/finding_news.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/internal/counted.hpp"
#include "base/internal/fingerprint.hpp"
#include "crawl/page/find_note.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostRemembered = 100'000;
constexpr std::string_view kNothingFound = "-";

std::uint64_t fingerprint_of(const LinkFinding& finding) {
  return fingerprint(finding.url, fingerprint(to_string(finding.kind)));
}

std::unordered_set<std::uint64_t> remembered_in(std::string_view text) {
  std::unordered_set<std::uint64_t> known;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    std::uint64_t number = 0;
    if (std::from_chars(one.data(), one.data() + one.size(), number, 16).ec == std::errc{}) known.insert(number);
  }
  return known;
}

// "URL on PAGE and 2 more pages".
Result<std::string> where_it_is(UrlStore& store, const LinkFinding& finding) {
  std::string page = finding.page;
  std::uint64_t more = 0;
  if (!finding.places.empty()) {
    auto record = store.get(finding.places.front().page);
    if (!record) return std::unexpected(std::move(record.error()));
    if (*record) page = std::move((*record)->url);
    for (std::size_t i = 1; i < finding.places.size(); ++i)
      more += finding.places[i].page != finding.places[i - 1].page;
  }
  if (page.empty()) return fmt::format("{}, which was given", finding.url);
  return fmt::format("{} on {}{}", finding.url, page,
                     more > 0 ? fmt::format(" and {}", counted(more, "more page")) : "");
}

}  // namespace

Result<FindingNews> note_findings(UrlStore& store, std::span<const LinkFinding> findings, std::uint32_t kinds,
                                  bool is_whole) {
  const std::string name = fmt::format("findings/{:x}", kinds);
  const auto before = find_note(store, name);
  if (!before) return std::unexpected(before.error());
  const std::unordered_set<std::uint64_t> known = remembered_in(*before ? **before : std::string{});
  const LinkFinding* first = nullptr;
  std::uint64_t fresh = 0;
  std::vector<std::uint64_t> found;
  for (const LinkFinding& finding : findings) {
    if (is_warning(finding.kind)) continue;
    found.push_back(fingerprint_of(finding));
    const bool is_fresh = !known.contains(found.back());
    if (first == nullptr || (is_fresh && fresh == 0)) first = &finding;
    fresh += is_fresh;
  }
  FindingNews news;
  if (*before && is_whole) news.fresh = fresh;
  if (first != nullptr) {
    auto where = where_it_is(store, *first);
    if (!where) return std::unexpected(std::move(where.error()));
    news.first = std::move(*where);
  }
  const bool is_remembered = is_whole && found.size() <= kMostRemembered;
  UrlBatch batch;
  batch.notes.push_back({name, found.empty() && is_remembered ? std::string(kNothingFound)
                               : is_remembered                ? fmt::format("{:x}", fmt::join(found, ","))
                                                              : std::string{}});
  store.submit(std::move(batch));
  if (auto flushed = store.flush(); !flushed) return std::unexpected(std::move(flushed.error()));
  return news;
}

}  // namespace argiope
