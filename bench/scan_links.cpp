// How fast links are found in real pages held in memory: the link scanner against libxml2's SAX interface and gumbo's
// tree, in one run. The peers see every 8th and every 40th page, for they are slow; rates are over what each saw.
//
//   bench_scan_links [TREE…]      default: the documentation trees of cppreference-doc-en-html and python3-doc
#include <gumbo.h>
#include <libxml/HTMLparser.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/web/link_scanner.hpp"
#include "bench/report.hpp"

namespace {

namespace fs = std::filesystem;
using Pages = std::vector<std::string>;

Pages load(const fs::path& tree) {
  Pages pages;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(tree, none)) {
    if (entry.path().extension() != ".html") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    pages.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return pages;
}

Pages every(const Pages& pages, std::size_t step) {
  Pages sample;
  for (std::size_t i = 0; i < pages.size(); i += step) sample.push_back(pages[i]);
  return sample;
}

struct Rate {
  double megabytes_per_second = 0;
  double pages_per_second = 0;
  double links = 0;  // of all pages together
};

// The median of `rounds` passes of `count_links` over all pages.
template <class CountLinks>
Rate measure(const Pages& pages, int rounds, CountLinks count_links) {
  double bytes = 0;
  for (const std::string& page : pages) bytes += static_cast<double>(page.size());
  Rate rate;
  std::vector<double> seconds;
  for (int i = 0; i < rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    std::size_t links = 0;
    for (const std::string& page : pages) links += count_links(page);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    rate.links = static_cast<double>(links);
  }
  const double took = argiope::bench::median(seconds);
  rate.megabytes_per_second = bytes / took / 1e6;
  rate.pages_per_second = static_cast<double>(pages.size()) / took;
  return rate;
}

std::size_t sax_links(const std::string& page) {
  std::size_t links = 0;
  htmlSAXHandler sax{};
  sax.startElement = [](void* count, const xmlChar* name, const xmlChar** attributes) {
    if (std::strcmp(reinterpret_cast<const char*>(name), "a") != 0 || attributes == nullptr) return;
    for (; *attributes != nullptr; attributes += 2) {
      if (std::strcmp(reinterpret_cast<const char*>(*attributes), "href") == 0) ++*static_cast<std::size_t*>(count);
    }
  };
  const int size = static_cast<int>(page.size());
  htmlParserCtxtPtr parser = htmlCreatePushParserCtxt(&sax, &links, nullptr, 0, nullptr, XML_CHAR_ENCODING_UTF8);
  htmlParseChunk(parser, page.data(), size, 1);
  htmlFreeParserCtxt(parser);
  return links;
}

std::size_t gumbo_links(const std::string& page) {
  GumboOptions options = kGumboDefaultOptions;
  options.max_errors = 0;
  GumboOutput* output = gumbo_parse_with_options(&options, page.data(), page.size());
  std::size_t links = 0;
  std::vector<const GumboNode*> ahead{output->root};
  while (!ahead.empty()) {
    const GumboNode* node = ahead.back();
    ahead.pop_back();
    if (node->type != GUMBO_NODE_ELEMENT) continue;
    const GumboElement& element = node->v.element;
    if (element.tag == GUMBO_TAG_A && gumbo_get_attribute(&element.attributes, "href") != nullptr) ++links;
    for (unsigned i = 0; i < element.children.length; ++i) {
      ahead.push_back(static_cast<const GumboNode*>(element.children.data[i]));
    }
  }
  gumbo_destroy_output(&options, output);
  return links;
}

void compare(const fs::path& tree) {
  const Pages pages = load(tree);
  if (pages.empty()) {
    fmt::print("no pages under {}\n", tree.string());
    return;
  }
  argiope::ScanResult result;
  const auto scan = [&result](const std::string& page) {
    argiope::scan_links(page, {}, result);
    return result.links.size();
  };
  const Rate ours = measure(pages, 15, scan);
  const Rate sax = measure(every(pages, 8), 3, sax_links);
  const Rate gumbo = measure(every(pages, 40), 3, gumbo_links);
  fmt::print("{}: {} pages, {:.0f} links\n", tree.string(), pages.size(), ours.links);
  const std::string name = fmt::format("scan_links {}", tree == "/usr/share/cppreference/doc/html" ? "cppreference"
                                                        : tree == "/usr/share/doc/python3.11/html" ? "python3-doc"
                                                                                                   : tree.string());
  argiope::bench::report(name, ours.megabytes_per_second, "MB/s",
                         {{"libxml2 SAX", sax.megabytes_per_second}, {"gumbo", gumbo.megabytes_per_second}});
  argiope::bench::report(name, ours.pages_per_second, "pages/s",
                         {{"libxml2 SAX", sax.pages_per_second}, {"gumbo", gumbo.pages_per_second}});
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<fs::path> trees(argv + 1, argv + argc);
  if (trees.empty()) trees = {"/usr/share/cppreference/doc/html", "/usr/share/doc/python3.11/html"};
  for (const fs::path& tree : trees) compare(tree);
}
