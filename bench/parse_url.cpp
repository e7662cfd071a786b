// Parsing and resolving URLs, beside libcurl's URL interface. Usage: bench_parse_url
#include <curl/curl.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "argiope/base/random.hpp"
#include "argiope/web/url.hpp"
#include "bench/report.hpp"

namespace {

using namespace argiope;
using Stopwatch = std::chrono::steady_clock;

constexpr int kRounds = 7;

std::vector<std::string> make_absolute() {
  Random random(1);
  std::vector<std::string> urls;
  for (int i = 0; i < 2000; ++i) {
    urls.push_back(fmt::format("https://{}.example{}.org/section-{}/page/{}.html{}", random.chance(0.5) ? "www" : "Docs",
                               random.below(50), random.below(20), random.below(100'000),
                               random.chance(0.3) ? "?id=42&sort=asc" : ""));
  }
  return urls;
}

std::vector<std::string> make_relative() {
  Random random(2);
  std::vector<std::string> urls;
  for (int i = 0; i < 2000; ++i) {
    constexpr const char* kShapes[] = {"../container/vector-{}.html", "index-{}.html#part", "/en/cpp/{}/string?x=1", "./{}/"};
    urls.push_back(fmt::format(fmt::runtime(kShapes[random.below(4)]), random.below(1000)));
  }
  return urls;
}

// Median nanoseconds a call.
template <class Work>
double time_each(const std::vector<std::string>& urls, Work&& work) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = Stopwatch::now();
    for (const std::string& url : urls) work(url);
    rounds.push_back(std::chrono::duration<double, std::nano>(Stopwatch::now() - start).count() /
                     static_cast<double>(urls.size()));
  }
  return bench::median(rounds);
}

double time_curl(const std::vector<std::string>& urls, const char* base) {
  return time_each(urls, [&](const std::string& url) {
    CURLU* handle = curl_url();
    if (base != nullptr) curl_url_set(handle, CURLUPART_URL, base, 0);
    char* text = nullptr;
    if (curl_url_set(handle, CURLUPART_URL, url.c_str(), 0) == CURLUE_OK) curl_url_get(handle, CURLUPART_URL, &text, 0);
    curl_free(text);
    curl_url_cleanup(handle);
  });
}

}  // namespace

int main() {
  const auto absolute = make_absolute();
  const auto relative = make_relative();
  constexpr const char* kBase = "https://www.example.org/en/cpp/algorithm/sort.html";
  const Url base = *Url::parse(kBase);
  Url out;
  const auto must = [](UrlStatus status) {
    if (status != UrlStatus::ok) std::abort();
  };
  bench::report("parse_url absolute", time_each(absolute, [&](const auto& url) { must(parse_into(out, url, nullptr)); }),
                "ns", {{"libcurl", time_curl(absolute, nullptr)}});
  bench::report("parse_url relative", time_each(relative, [&](const auto& url) { must(parse_into(out, url, &base)); }),
                "ns", {{"libcurl", time_curl(relative, kBase)}});
}
