// A crawler in miniature: 100 workers, one queue, no page twice, and a limit to the depth.
//
// The web is a graph made up from numbers, and fetching is sleeping, so that what the workers do among themselves is
// all there is to see; crawl/ has the real one. A worker puts the links of a page before it says task_done() of it, so
// join() cannot return while there may be more to come. The workers are a group's: when the crawl ends, however it
// ends, they have ended before.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_set>
#include <vector>

#include "argiope/async.hpp"

using namespace argiope;
using namespace std::chrono_literals;

constexpr int kWorkers = 100;
constexpr unsigned kPages = 50000;

// Every page links to five others, among them one it shares with its neighbour.
std::vector<unsigned> links_of(unsigned page) {
  std::vector<unsigned> links;
  for (unsigned i = 1; i <= 5; ++i) links.push_back((page * 7 + i * i * 31 + page % 13 * i) % kPages);
  return links;
}

struct Visit {
  unsigned page;
  int depth;
};

class Crawl {
 public:
  explicit Crawl(int max_depth) : max_depth_(max_depth) {}

  Coro<void> run(unsigned seed) {
    find(seed, 0);
    co_await TaskGroup::run([&](TaskGroup& workers) -> Coro<void> {
      for (int i = 0; i < kWorkers; ++i) workers.create_task(work());
      co_await queue_.join();
      // Nobody works any more: every worker waits for a page that will not come.
      queue_.shutdown();
    });
    report();
  }

  // Every page found is visited, waiting, or under way.
  std::size_t found() const { return seen_.size(); }
  std::size_t visited() const {
    return std::accumulate(pages_at_depth_.begin(), pages_at_depth_.end(), std::size_t{0});
  }
  std::size_t waiting() const { return queue_.qsize(); }
  std::size_t under_way() const { return busy_; }

 private:
  void find(unsigned page, int depth) {
    if (seen_.insert(page).second) queue_.put_nowait({page, depth});
  }

  Coro<void> work() {
    try {
      for (;;) {
        const Visit visit = co_await queue_.get();
        busy_most_ = std::max(busy_most_, ++busy_);
        co_await sleep(10ms + 1ms * (visit.page % 90));
        --busy_;
        ++pages_at_depth_[static_cast<std::size_t>(visit.depth)];
        if (visit.depth < max_depth_) {
          for (const unsigned link : links_of(visit.page)) find(link, visit.depth + 1);
        }
        queue_.task_done();
      }
    } catch (const QueueShutDown&) {
    }
  }

  void report() const {
    for (std::size_t depth = 0; depth < pages_at_depth_.size(); ++depth) {
      fmt::print("depth {}: {} pages\n", depth, pages_at_depth_[depth]);
    }
    fmt::print("{} pages, each once: {}; at most {} workers at once; {} ms\n", visited(), visited() == found(),
               busy_most_, EventLoop::current().time().time_since_epoch() / 1ms);
  }

  int max_depth_;
  Queue<Visit> queue_;
  std::unordered_set<unsigned> seen_;
  std::vector<std::size_t> pages_at_depth_ = std::vector<std::size_t>(static_cast<std::size_t>(max_depth_) + 1);
  std::size_t busy_ = 0;
  std::size_t busy_most_ = 0;
};

int main() {
  VirtualBackend backend;
  Crawl crawl(6);
  run(backend, crawl.run(1));
}
