#include "crawl/run/stored_redirects.hpp"

#include <optional>
#include <utility>

namespace argiope {
namespace {

std::optional<UrlRecord> stored_record(UrlStore& store, std::int64_t id) {
  auto known = store.get(id);
  return known ? std::move(*known) : std::nullopt;
}

// The URL that was met first to lead to the record's, if that is by a redirect.
std::optional<UrlRecord> redirecting_to(UrlStore& store, const UrlRecord& record) {
  if (record.referrer == 0) return std::nullopt;
  auto before = stored_record(store, record.referrer);
  if (before && before->redirect_to != record.url) before.reset();
  return before;
}

}  // namespace

std::int64_t redirects_from(UrlStore& store, std::string_view target, std::int64_t id, std::uint32_t most) {
  auto record = stored_record(store, id);
  for (std::uint32_t hops = 0; hops < most && record; ++hops) {
    record = redirecting_to(store, *record);
    if (record && record->url == target) return record->url_id;
  }
  return 0;
}

std::uint32_t redirects_to(UrlStore& store, std::int64_t id, std::uint32_t most) {
  auto record = stored_record(store, id);
  std::uint32_t hops = 0;
  while (record && hops < most) {
    record = redirecting_to(store, *record);
    if (!record) break;
    if (record->url_id == id) return 0;  // records of several runs: where the circle began is not known
    ++hops;
  }
  return hops;
}

std::uint32_t requisites_to(UrlStore& store, std::int64_t id, std::uint32_t most) {
  auto record = stored_record(store, id);
  std::uint32_t files = 0;
  while (files < most && record && record->referrer != 0) {
    record = stored_record(store, record->referrer);
    if (!record || (record->reason != UrlReason::requisite && record->reason != UrlReason::asset)) break;
    ++files;
  }
  return files;
}

}  // namespace argiope
