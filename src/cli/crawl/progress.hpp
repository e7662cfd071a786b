// The line that shows a crawl at work: rewritten in place on a terminal, a plain log line now and then elsewhere.
#pragma once

#include <cstdio>
#include <string>

#include "argiope/async/coro.hpp"
#include "argiope/crawl/local_crawl.hpp"

namespace argiope {

class Progress {
 public:
  // `out` is a terminal or not by itself; `color` asks for colours even when it is not.
  Progress(std::FILE* out, bool color);
  ~Progress() { clear(); }

  // Shows `crawler` until cancelled.
  Coro<void> run(const Crawler& crawler);
  // Takes the live line away, so that something else can be printed.
  void clear();

 private:
  std::string line(const CrawlStats& stats, double pages_per_second, double seconds, TimePoint now) const;

  std::FILE* out_;
  bool terminal_;
  bool color_;
  bool shown_ = false;
};

}  // namespace argiope
