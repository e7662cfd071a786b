// What a host costs a crawl for good: resident memory over a million hosts, one URL each, that are met one after the
// other and done with, and over as many that all wait at once.
// Usage: bench_crawl_hosts [hosts]
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "bench/report.hpp"
#include "crawl/run/frontier.hpp"

namespace {

using namespace argiope;
using namespace std::chrono_literals;

constexpr std::size_t kAtOnce = 10'000;  // hosts met in a second

double resident_mb() {
  long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return static_cast<double>(pages * ::sysconf(_SC_PAGESIZE)) / 1e6;
}

class Crawl {
 public:
  explicit Crawl(std::size_t hosts) : hosts_(hosts) { frontier_.start_clock(now_, {}); }

  // Queues a URL of the next `count` hosts.
  void meet(std::size_t count) {
    for (; count > 0 && met_ < hosts_; --count) {
      const Url url = *Url::parse("http://www.example-" + std::to_string(met_++) + ".test/index.html");
      UrlTask task;
      task.id = static_cast<std::int64_t>(met_);
      task.fingerprint = met_;
      task.url = url;
      frontier_.put(std::move(task), frontier_.host_of(url), now_, now_);
      frontier_.take_moves();  // to the store
    }
    look();
  }
  // Fetches all that is in memory.
  void fetch() {
    while (auto ticket = frontier_.next(now_)) {
      ticket->host->health.page_answered();
      frontier_.done(*ticket, now_);
    }
    now_ += 1s;
    look();
  }
  bool all_met() const { return met_ == hosts_; }
  double most_mb() const { return most_mb_; }
  std::size_t hosts() const { return frontier_.host_count(); }

 private:
  void look() { most_mb_ = std::max(most_mb_, resident_mb()); }

  const std::size_t hosts_;
  CrawlOptions options_;
  Frontier frontier_{options_};
  TimePoint now_{1s};
  std::size_t met_ = 0;
  double most_mb_ = 0;
};

template <class Run>
void measure(const char* name, std::size_t hosts, Run run) {
  ::malloc_trim(0);
  const double before = resident_mb();
  Crawl crawl(hosts);
  run(crawl);
  if (crawl.hosts() != hosts) std::abort();
  const double grown = crawl.most_mb() - before;
  bench::report(fmt::format("crawl_hosts {}, {} hosts", name, hosts), grown, "MB");
  bench::report(fmt::format("crawl_hosts {}, a host", name), grown * 1e6 / static_cast<double>(hosts), "B");
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t hosts = argc > 1 ? std::max<std::size_t>(std::strtoull(argv[1], nullptr, 10), 1000) : 1'000'000;
  measure("one after the other", hosts, [](Crawl& crawl) {
    while (!crawl.all_met()) {
      crawl.meet(kAtOnce);
      crawl.fetch();
    }
  });
  // All but those that fit into memory lie on the store's shelf.
  measure("all waiting", hosts, [](Crawl& crawl) {
    while (!crawl.all_met()) crawl.meet(kAtOnce);
  });
}
