// Parsing and resolving URLs, beside libcurl's URL interface. Prints processor time. Usage: bench_parse_url
#include <curl/curl.h>

#include <clocale>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "argiope/base/random.hpp"
#include "argiope/web/url.hpp"
#include "bench/report.hpp"

namespace {

using namespace argiope;

constexpr int kRounds = 7;

std::vector<std::string> make_absolute() {
  Random random(1);
  std::vector<std::string> urls;
  for (int i = 0; i < 2000; ++i) {
    urls.push_back(fmt::format("https://{}.example{}.org/section-{}/page/{}.html{}",
                               random.chance(0.5) ? "www" : "Docs", random.below(50), random.below(20),
                               random.below(100'000), random.chance(0.3) ? "?id=42&sort=asc" : ""));
  }
  return urls;
}

std::vector<std::string> make_relative() {
  Random random(2);
  std::vector<std::string> urls;
  for (int i = 0; i < 2000; ++i) {
    constexpr const char* kShapes[] = {"../container/vector-{}.html", "index-{}.html#part", "/en/cpp/{}/string?x=1",
                                       "./{}/"};
    urls.push_back(fmt::format(fmt::runtime(kShapes[random.below(4)]), random.below(1000)));
  }
  return urls;
}

std::vector<std::string> make_international() {
  Random random(3);
  std::vector<std::string> urls;
  for (int i = 0; i < 2000; ++i) {
    urls.push_back(fmt::format("https://bücher{}.example/seite/{}", random.below(50), random.below(1000)));
  }
  return urls;
}

// Of this thread alone: on a busy machine the slower of two parsers would also be interrupted more often.
double processor_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Median nanoseconds of processor time a call.
template <class Work>
double time_each(const std::vector<std::string>& urls, Work&& work) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const double start = processor_ns();
    for (const std::string& url : urls) work(url);
    rounds.push_back((processor_ns() - start) / static_cast<double>(urls.size()));
  }
  return bench::median(rounds);
}

[[noreturn]] void give_up(const std::string& url) {
  fmt::print(stderr, "not parsed: {}\n", url);
  std::exit(1);
}

double time_argiope(const std::vector<std::string>& urls, const Url* base) {
  Url out;
  return time_each(urls, [&](const std::string& url) {
    if (parse_into(out, url, base) != UrlStatus::ok) give_up(url);
  });
}

// libcurl parses and serialises in two calls, on one handle for all. Resolving replaces what the handle holds, so the
// base is set again for each relative URL; curl_url_dup() of a handle that holds it costs the same.
double time_curl(const std::vector<std::string>& urls, const char* base, unsigned get_flags = 0) {
  CURLU* handle = curl_url();
  const double each = time_each(urls, [&](const std::string& url) {
    if (base != nullptr && curl_url_set(handle, CURLUPART_URL, base, 0) != CURLUE_OK) give_up(base);
    char* text = nullptr;
    if (curl_url_set(handle, CURLUPART_URL, url.c_str(), 0) != CURLUE_OK ||
        curl_url_get(handle, CURLUPART_URL, &text, get_flags) != CURLUE_OK) {
      give_up(url);
    }
    curl_free(text);
  });
  curl_url_cleanup(handle);
  return each;
}

}  // namespace

int main() {
  std::setlocale(LC_CTYPE, "C.UTF-8");  // in which libcurl reads names beyond ASCII
  constexpr const char* kBase = "https://www.example.org/en/cpp/algorithm/sort.html";
  const Url base = *Url::parse(kBase);
  const auto absolute = make_absolute();
  const auto relative = make_relative();
  const auto international = make_international();
  bench::report("parse_url absolute", time_argiope(absolute, nullptr), "ns",
                {{"libcurl", time_curl(absolute, nullptr)}});
  bench::report("parse_url relative", time_argiope(relative, &base), "ns", {{"libcurl", time_curl(relative, kBase)}});
  bench::report("parse_url international host", time_argiope(international, nullptr), "ns",
                {{"libcurl", time_curl(international, nullptr, CURLU_PUNYCODE)}});
}
