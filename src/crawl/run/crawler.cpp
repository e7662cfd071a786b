#include "argiope/crawl/local_crawl.hpp"
#include "crawl/run/shard.hpp"
#include "crawl/run/shared.hpp"

namespace argiope {

Crawler::Crawler(CrawlOptions options, UrlStore& store, std::uint64_t seed, std::size_t shards)
    : shared_(std::make_unique<Shared>(std::move(options), store, seed, shards)) {}
Crawler::~Crawler() = default;

std::function<Result<std::vector<UrlNote>>()> Crawler::keep_all(const std::vector<std::shared_ptr<CrawlSink>>& sinks) {
  if (sinks.empty()) return nullptr;
  return [sinks]() -> Result<std::vector<UrlNote>> {
    std::vector<UrlNote> notes;
    for (const auto& sink : sinks) {
      if (auto kept = sink->keep(); !kept) return std::unexpected(std::move(kept.error()));
      if (auto note = sink->note()) notes.push_back(std::move(*note));
    }
    return notes;
  };
}

Result<void> Crawler::open(WallTime now) { return shared_->open(now); }

Coro<Result<void>> Crawler::log_in(HttpTransport& transport) { return shared_->session.log_in(transport); }

Coro<void> Crawler::work(std::size_t index, HttpTransport& transport, Resolver* resolver) {
  return shared_->shards.at(index)->work(transport, resolver);
}

void Crawler::stop(std::string reason, bool at_once) { shared_->ending.stop(std::move(reason), at_once); }
std::vector<Cookie> Crawler::cookies(WallTime now) const { return shared_->session.cookies(now); }
CrawlStats Crawler::stats() const { return shared_->stats(); }
Result<CrawlReport> Crawler::report() { return shared_->report(); }

}  // namespace argiope
