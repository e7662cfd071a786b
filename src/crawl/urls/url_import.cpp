#include "crawl/urls/internal/url_import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "argiope/web/url.hpp"
#include "base/internal/fingerprint.hpp"
#include "base/internal/printable.hpp"
#include "store/urls/internal/asyncio_crawler.hpp"

namespace argiope {
namespace {

constexpr std::size_t kRowsInABatch = 1000;
constexpr std::size_t kMostRowsBehind = 50'000;

// The URL that is fetched for it, as for a link to it; or why none is.
Result<Url> fetchable(const std::string& text) {
  auto url = Url::parse(text);
  if (!url) return url;
  if (url->scheme() != "http" && url->scheme() != "https") {
    return fail(Errc::unsupported, fmt::format("scheme {} cannot be crawled", in_quotes(url->scheme())));
  }
  url->strip_fragment();
  url->strip_credentials();
  return url;
}

bool is_to_be_tried_again(std::int64_t status) noexcept {
  return status == 408 || status == 425 || status == 429 || status >= 500;
}

class Import {
 public:
  Import(UrlStore& store, std::uint64_t seed, WallTime now)
      : store_(store), seed_(seed), now_(now), known_(mix64(seed)), next_id_(store.next_id()) {}

  Result<void> learn_what_is_known() {
    return store_.scan_known({.seed = seed_}, [&](const UrlStore::KnownUrls& known) {
      for (const std::uint64_t url : known.fingerprints) known_.insert(url);
      return true;
    });
  }

  // False: the store cannot take it.
  bool take(const AsyncioCrawlerUrl& row) {
    ++result_.rows;
    const auto url = fetchable(row.url);
    if (!url) {
      skip(row, url.error());
    } else if (!known_.insert(fingerprint(url->href(), seed_))) {
      ++result_.known;
    } else {
      add(row, url->href());
    }
    return batch_.size() < kRowsInABatch || send();
  }

  Result<UrlImport> finish() {
    send();
    if (failure_) return std::unexpected(std::move(*failure_));
    if (auto flushed = store_.flush(); !flushed) return std::unexpected(std::move(flushed.error()));
    return std::move(result_);
  }

 private:
  void skip(const AsyncioCrawlerUrl& row, const Error& why) {
    ++result_.skipped;
    if (result_.remarks.size() >= UrlImport::kMostRemarks) return;
    result_.remarks.push_back(
        fmt::format("url_id {}: {}: {}", row.url_id, in_quotes(without_credentials(row.url)), why.message));
  }

  // Nobody knows how far from a start it is, so it is one.
  void add(const AsyncioCrawlerUrl& row, const std::string& href) {
    const std::int64_t id = next_id_++;
    batch_.discovered.push_back({.url_id = id, .url = href, .ctime = row.ctime == WallTime{} ? now_ : row.ctime});
    // -1: it was too large for that crawl, and its links were not read. Where a redirect led is not written down.
    const bool is_over = row.status && *row.status >= 200 && *row.status <= 599 && *row.status / 100 != 3;
    if (!is_over) {
      ++result_.queued;
      return;
    }
    const std::int64_t status = *row.status;
    UrlOutcome outcome;
    outcome.url_id = id;
    outcome.mtime = row.mtime == WallTime{} ? now_ : row.mtime;
    outcome.status_code = static_cast<int>(status);
    outcome.content_type = row.content_type;
    outcome.size = row.size;
    outcome.attempts = 1;
    if (is_to_be_tried_again(status)) {
      outcome.state = UrlState::failed;
      outcome.error = fmt::format("HTTP {}", status);
      ++result_.failed;
    } else {
      ++result_.done;
    }
    batch_.outcomes.push_back(std::move(outcome));
  }

  bool send() {
    store_.submit(std::exchange(batch_, {}));
    failure_ = store_.failure();
    if (failure_) return false;
    if (store_.backlog() < kMostRowsBehind) return true;
    auto flushed = store_.flush();
    if (!flushed) failure_ = std::move(flushed.error());
    return flushed.has_value();
  }

  UrlStore& store_;
  const std::uint64_t seed_;
  const WallTime now_;
  FingerprintSet known_;
  std::int64_t next_id_;
  UrlBatch batch_;
  UrlImport result_;
  std::optional<Error> failure_;
};

}  // namespace

Result<UrlImport> import_asyncio_crawler(const std::string& path, UrlStore& store, std::uint64_t seed, WallTime now) {
  Import import(store, seed, now);
  if (auto learnt = import.learn_what_is_known(); !learnt) return std::unexpected(std::move(learnt.error()));
  auto read = read_asyncio_crawler(path, [&](const AsyncioCrawlerUrl& row) { return import.take(row); });
  if (!read) return std::unexpected(std::move(read.error()));
  return import.finish();
}

}  // namespace argiope
