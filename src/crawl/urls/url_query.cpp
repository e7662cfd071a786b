#include "crawl/urls/internal/url_query.hpp"

#include <algorithm>
#include <utility>

#include "web/text/internal/content_type.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMatchesAtOnce = 1000;
constexpr std::size_t kRowsAtOnceToLook = 50'000;  // read before others may have their turn

std::vector<HostSettings> named_hosts(const std::vector<std::string>& hosts) {
  if (hosts.empty()) return {};
  HostSettings settings;
  settings.match = hosts;
  return {std::move(settings)};
}

template <class Value>
bool has(const std::vector<Value>& values, const Value& value) {
  return values.empty() || std::ranges::find(values, value) != values.end();
}

bool comes_before(const UrlRecord& a, const UrlRecord& b, UrlSort sort) {
  const auto by_id = [&] { return a.url_id < b.url_id; };
  switch (sort) {
    case UrlSort::url: return a.url != b.url ? a.url < b.url : by_id();
    case UrlSort::size: return a.size != b.size ? a.size > b.size : by_id();
    case UrlSort::fetched: return a.mtime != b.mtime ? a.mtime > b.mtime : by_id();
    case UrlSort::depth: return a.depth != b.depth ? a.depth < b.depth : by_id();
    case UrlSort::status: return a.status_code != b.status_code ? a.status_code > b.status_code : by_id();
    case UrlSort::found: break;
  }
  return by_id();
}

}  // namespace

UrlMatcher::UrlMatcher(UrlQuery query)
    : query_(std::move(query)), hosts_(std::make_unique<HostRules>(named_hosts(query_.hosts))) {}

Result<UrlMatcher> UrlMatcher::compile(UrlQuery query) {
  auto patterns = UrlPatterns::compile(query.patterns);
  if (!patterns) return std::unexpected(std::move(patterns.error()));
  UrlMatcher matcher(std::move(query));
  matcher.patterns_ = std::move(*patterns);
  return matcher;
}

// The cheapest question is asked first.
bool UrlMatcher::operator()(const UrlRecord& record) const {
  if (!has(query_.states, record.state) || !has(query_.reasons, record.reason)) return false;
  const auto is_in = [&](const StatusRange& range) {
    return record.status_code >= range.first && record.status_code <= range.last;
  };
  if (!query_.statuses.empty() && std::ranges::none_of(query_.statuses, is_in)) return false;
  if (query_.broken && !is_broken(record)) return false;
  if (record.depth < query_.min_depth.value_or(0)) return false;
  if (query_.max_depth && record.depth > *query_.max_depth) return false;
  const bool was_answered = record.status_code != 0;
  if (query_.min_size && (!was_answered || record.size < *query_.min_size)) return false;
  if (query_.max_size && (!was_answered || record.size > *query_.max_size)) return false;
  const bool was_fetched = record.mtime != WallTime{};
  if (query_.fetched_since && (!was_fetched || record.mtime < *query_.fetched_since)) return false;
  if (query_.fetched_before && (!was_fetched || record.mtime >= *query_.fetched_before)) return false;
  if (!query_.types.empty() && (record.content_type.empty() || !has_media_type(record.content_type, query_.types)))
    return false;
  if (!hosts_->empty() && hosts_->of(record.url).empty()) return false;
  return patterns_.empty() || patterns_.match(record.url);
}

std::optional<UrlState> url_state_named(std::string_view name) noexcept {
  for (const UrlState state : {UrlState::queued, UrlState::done, UrlState::failed, UrlState::excluded}) {
    if (name == to_string(state)) return state;
  }
  return std::nullopt;
}

std::optional<UrlReason> url_reason_named(std::string_view name) noexcept {
  if (name == "none") return UrlReason::none;
  for (std::size_t i = 1; i < kUrlReasons; ++i) {
    if (name == to_string(static_cast<UrlReason>(i))) return static_cast<UrlReason>(i);
  }
  return std::nullopt;
}

Result<void> visit_matching(UrlStore& store, const UrlMatcher& matches, std::int64_t after, const UrlVisitor& visit) {
  std::vector<UrlRecord> found;
  for (std::int64_t from = after + 1;;) {
    found.clear();
    std::size_t rows = 0;
    bool at_end = true;
    auto scanned = store.scan(from, [&](const UrlRecord& record) {
      from = record.url_id + 1;
      if (matches(record)) found.push_back(record);
      at_end = found.size() < kMatchesAtOnce && ++rows < kRowsAtOnceToLook;
      return at_end;
    });
    if (!scanned) return scanned;
    if (!found.empty()) {
      const auto more = visit(found);
      if (!more) return std::unexpected(more.error());
      if (!*more) return {};
    }
    if (at_end) return {};
  }
}

Result<std::vector<UrlRecord>> first_matching(UrlStore& store, const UrlMatcher& matches, std::int64_t after,
                                              UrlSort sort, std::size_t most) {
  const auto before = [sort](const UrlRecord& a, const UrlRecord& b) { return comes_before(a, b, sort); };
  std::vector<UrlRecord> best;  // a heap, the last of them on top
  auto visited = visit_matching(store, matches, after, [&](std::span<const UrlRecord> found) -> Result<bool> {
    for (const UrlRecord& record : found) {
      if (best.size() == most) {
        if (most == 0 || !before(record, best.front())) continue;
        std::ranges::pop_heap(best, before);
        best.pop_back();
      }
      best.push_back(record);
      std::ranges::push_heap(best, before);
    }
    return true;
  });
  if (!visited) return std::unexpected(std::move(visited.error()));
  std::ranges::sort_heap(best, before);
  return best;
}

}  // namespace argiope
