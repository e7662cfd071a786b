// The crawl's queue of one shard: a JobQueue whose keys are hosts, with what is needed to fetch each URL and to treat
// its host politely. Called by the shard on its own thread; knows nothing of sockets or the store.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argiope/crawl/crawl_options.hpp"
#include "argiope/jobs/job_queue.hpp"
#include "argiope/web/ip_address.hpp"
#include "argiope/web/robots.hpp"
#include "argiope/web/url.hpp"

namespace argiope {

// One URL that is to be fetched.
struct UrlTask {
  std::uint64_t fingerprint = 0;
  std::int64_t id = 0;  // 0: known already, and found once more; has fingerprint and depth alone
  std::string url;
  std::uint32_t depth = 0;
  std::uint8_t attempts = 0;
  std::uint8_t redirects = 0;  // hops that led here
  bool seed = false;           // named by the user, or a redirect of such a one
  bool revisit = false;        // fetched before: ask whether it has changed
  bool off_scope = false;      // only to be checked (HEAD), not to be followed
};

// What is known of a scheme, host and port. Its address is stable.
struct Host {
  std::string site;  // "http://example.org:8080"
  std::string name;  // host alone
  KeyId key{};
  bool loopback = false;
  // robots.txt: valid until `robots_until`; before the first fetch that is the beginning of time.
  RobotsRules robots;
  TimePoint robots_until = TimePoint::min();
  std::string robots_error;  // why everything is disallowed, when that is not the file's own word
  std::uint32_t robots_attempts = 0;
  bool preparing = false;
  std::optional<IpAddress> address;
  std::uint32_t failures_in_row = 0;
  std::uint64_t urls = 0;  // ever queued
  KeyLimits limits;
};

class Frontier {
 public:
  // A URL that may be fetched now.
  struct Ticket {
    Lease lease;
    std::uint32_t task = 0;  // see task()
    Host* host = nullptr;
  };

  explicit Frontier(const CrawlOptions& options);

  // The record of the host of `url`, made at first sight.
  Host& host_of(const Url& url);

  // Queues a URL, due at `due`, unless it is queued already.
  void put(UrlTask task, Host& host, TimePoint due, TimePoint now);

  // A link at `depth` leads to a URL that is known: if it is queued here, and farther from a seed, this is its depth now.
  void found_nearer(std::uint64_t url_fingerprint, std::uint32_t depth, TimePoint now);

  // The most important URL that is due and whose host may be asked.
  std::optional<Ticket> next(TimePoint now);
  // What a ticket is for. The reference is good until the next put().
  UrlTask& task(const Ticket& ticket) noexcept { return tasks_[ticket.task]; }
  // When next() may give something it does not give now; kNever without a call in between.
  TimePoint next_wakeup(TimePoint now) { return queue_.next_wakeup(now); }

  // The URL is dealt with.
  void done(const Ticket& ticket, TimePoint now);
  // It is to be fetched again, not before `due`.
  void retry(const Ticket& ticket, TimePoint due, TimePoint now);
  // It could not be fetched just now: back to its place, as if it had not been taken.
  void put_back(const Ticket& ticket, TimePoint now);

  // The host is not asked before `until` (kNever: before let_go()).
  void rest(Host& host, TimePoint until, TimePoint now);
  void hold(Host& host, TimePoint now) { rest(host, kNever, now); }
  void let_go(Host& host, TimePoint now);
  // Makes the robots file's Crawl-delay part of the host's limits.
  void set_crawl_delay(Host& host, Duration delay, TimePoint now);

  std::size_t size() const { return queue_.size(); }
  std::size_t host_count() const noexcept { return hosts_.size(); }
  // Hosts with URLs that are due and may not be asked yet.
  std::size_t hosts_waiting() const noexcept { return queue_.keys_waiting(); }

 private:
  std::int32_t priority_of(const UrlTask& task) const;
  KeyLimits limits_of(const Host& host) const;

  const CrawlOptions& options_;
  JobQueue queue_;
  std::vector<UrlTask> tasks_;
  std::vector<std::uint32_t> free_tasks_;
  std::vector<std::unique_ptr<Host>> hosts_;  // by key
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_map<std::string_view, Host*, Hash, std::equal_to<>> by_site_;
};

}  // namespace argiope
