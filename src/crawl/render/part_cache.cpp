#include "crawl/render/internal/part_cache.hpp"

#include <algorithm>
#include <charconv>

#include "web/text/internal/ascii.hpp"
#include "web/text/internal/http_field.hpp"
#include "web/text/internal/lower_case.hpp"

namespace argiope {
namespace {

constexpr Duration kUsualLifetime = std::chrono::minutes{5};
constexpr Duration kLongestLifetime = std::chrono::hours{1};

// The words of a list with commas, in lower case.
std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> words;
  for_each_element(list, [&](std::string_view word) {
    if (!word.empty()) words.push_back(in_lower_case(word));
  });
  return words;
}

}  // namespace

Duration lifetime_of(const HttpResponse& response) {
  Duration lifetime = kUsualLifetime;
  for (const auto& [name, value] : response.fields) {
    if (equals_lower(name, "set-cookie")) return {};
    if (equals_lower(name, "vary")) {
      for (const std::string& word : words_of(value)) {
        if (word != "accept-encoding" && word != "origin") return {};
      }
    }
    if (!equals_lower(name, "cache-control")) continue;
    for (const std::string& word : words_of(value)) {
      if (word == "no-store" || word == "no-cache" || word == "private") return {};
      if (!word.starts_with("max-age=")) continue;
      std::int64_t seconds = 0;
      const auto [end, error] = std::from_chars(word.data() + 8, word.data() + word.size(), seconds);
      if (error == std::errc{}) lifetime = std::chrono::seconds{std::clamp<std::int64_t>(seconds, 0, 1'000'000'000)};
    }
  }
  return std::min(lifetime, kLongestLifetime);
}

// A part for one origin may be barred to another, and one that came to who we are is not for pages of other sites.
std::string PartCache::key_of(const HttpRequest& request) {
  std::string key = request.url.href();
  if (request.is_anonymous) key += " anonymous";
  for (const auto& [name, value] : request.headers) {
    if (equals_lower(name, "origin")) key += ' ' + value;
  }
  return key;
}

void PartCache::drop(Entries::iterator entry) {
  bytes_ -= entry->size;
  by_key_.erase(entry->key);
  entries_.erase(entry);
}

bool PartCache::find(const HttpRequest& request, TimePoint now, HttpResponse& response) {
  const auto found = by_key_.find(key_of(request));
  if (found == by_key_.end()) return false;
  const Entries::iterator entry = found->second;
  if (entry->until <= now) {
    drop(entry);
    return false;
  }
  entries_.splice(entries_.begin(), entries_, entry);
  response.status = 200;
  response.headers = entry->headers;
  response.fields = entry->fields;
  response.body = entry->body;
  response.damage.clear();
  response.truncated = response.unwanted = false;
  response.sent_at = now;
  return true;
}

void PartCache::put(const HttpRequest& request, const HttpResponse& response, TimePoint now) {
  if (response.status != 200 || response.truncated || !response.damage.empty()) return;
  const Duration lifetime = lifetime_of(response);
  if (lifetime <= Duration::zero()) return;
  Entry entry{.key = key_of(request), .until = saturating_add(now, lifetime)};
  entry.size = sizeof(Entry) + entry.key.size() + response.body.size();
  for (const auto& [name, value] : response.fields) entry.size += name.size() + value.size();
  if (entry.size > most_bytes_ / 4) return;
  if (const auto known = by_key_.find(entry.key); known != by_key_.end()) drop(known->second);
  while (bytes_ + entry.size > most_bytes_) drop(std::prev(entries_.end()));
  entry.headers = response.headers;
  entry.fields = response.fields;
  entry.body = response.body;
  bytes_ += entry.size;
  entries_.push_front(std::move(entry));
  by_key_.emplace(entries_.front().key, entries_.begin());
}

}  // namespace argiope
