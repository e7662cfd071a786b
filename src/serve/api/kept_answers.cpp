#include "serve/api/kept_answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "web/text/internal/hmac.hpp"

namespace argiope {
namespace {

constexpr std::size_t kIdBytes = 32;  // in hex

std::string id_of(const SessionSecret& secret, std::uint64_t number) {
  const std::string_view key(reinterpret_cast<const char*>(secret.data()), secret.size());
  return to_hex(hmac_sha256(key, fmt::format("answer {}", number))).substr(0, kIdBytes);
}

std::size_t bytes_of(const FetchedAnswer& answer) {
  const PageResponse& response = answer.response;
  std::size_t bytes = response.body.size() + response.script_result_json.size() + response.url.size();
  for (const auto* const fields : {&response.headers, &response.cookies}) {
    for (const auto& [name, value] : *fields) bytes += name.size() + value.size();
  }
  return bytes;
}

}  // namespace

const KeptAnswers::Kept* KeptAnswers::keep(std::string owner, std::string url, std::string request,
                                           std::shared_ptr<const FetchedAnswer> answer, WallTime fetched_at,
                                           TimePoint now) {
  const std::size_t bytes = bytes_of(*answer) + url.size() + request.size();
  if (bytes > kMostBytes) return nullptr;
  drop_old(now);
  while (!kept_.empty() && (kept_.size() >= kMostAnswers || bytes_ + bytes > kMostBytes)) drop_oldest();
  bytes_ += bytes;
  kept_.push_back({.id = id_of(secret_, ++count_),
                   .owner = std::move(owner),
                   .url = std::move(url),
                   .request = std::move(request),
                   .fetched_at = fetched_at,
                   .until = saturating_add(now, kKept),
                   .bytes = bytes,
                   .answer = std::move(answer)});
  return &kept_.back();
}

const KeptAnswers::Kept* KeptAnswers::find(std::string_view id, std::string_view owner, TimePoint now) {
  drop_old(now);
  const auto found = std::ranges::find(kept_, id, &Kept::id);
  return found == kept_.end() || found->owner != owner ? nullptr : &*found;
}

void KeptAnswers::drop_old(TimePoint now) {
  while (!kept_.empty() && kept_.front().until <= now) drop_oldest();
}

void KeptAnswers::drop_oldest() {
  bytes_ -= kept_.front().bytes;
  kept_.pop_front();
}

}  // namespace argiope
