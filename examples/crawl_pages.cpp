// Crawls a site politely, and prints each page as it comes: its status, its URL and how many links it has.
#include <cstdio>
#include <string>

#include "argiope/crawl/local_crawl.hpp"

int main(int argc, char** argv) {
  const auto seed = argiope::Url::parse(argc > 1 ? argv[1] : "http://127.0.0.1:8080/");
  if (!seed) return std::fprintf(stderr, "%s\n", seed.error().message.c_str()), 2;
  argiope::CrawlOptions options{.seeds = {*seed}};
  options.on_page = [](const argiope::Page& page) {
    std::printf("%d %s %zu\n", page.status(), std::string(page.url.href()).c_str(), page.links().size());
  };
  const auto report = argiope::crawl(std::move(options));
  if (!report) return std::fprintf(stderr, "%s\n", report.error().message.c_str()), 1;
  std::printf("%llu pages\n", static_cast<unsigned long long>(report->stats.pages));
}
