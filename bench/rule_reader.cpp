// How fast a project's rules read pages held in memory, on one core: links alone, with fields by CSS, and JSON by
// pointers. Pages of some 8 KiB with 60 links, half of which all pages of the site have.
#include "project/process/internal/rule_reader.hpp"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <vector>

#include "argiope/base/random.hpp"
#include "bench/must.hpp"
#include "bench/report.hpp"

namespace {

using namespace argiope;

constexpr int kPages = 500;
constexpr int kRounds = 9;

std::string shop_page(Random& random) {
  std::string page =
      "<!doctype html><html><head><title>Shop</title><meta name=description content=\"A shop\"></head><body><nav>";
  for (int i = 0; i < 30; ++i)
    page += fmt::format("<li class=\"menu-item\"><a href=\"/list/{0}\">Department number {0}</a></li>\n", i);
  page += fmt::format("</nav><h1>Item {}</h1><p class=\"price\">EUR {}.50</p><p class=stock>yes</p>",
                      random.below(100'000), random.below(1'000));
  for (int i = 0; i < 30; ++i) {
    page += fmt::format(
        "<div class=\"card\"><a href=\"https://shop.test/item/{}?from=list&amp;place={}\" title=\"More\">Item</a> and "
        "a text of some "
        "length that says what is good about it, and what it costs with all that belongs to it.</div>\n",
        random.below(1'000'000), i);
  }
  return page + "</body></html>";
}

std::string api_page(Random& random) {
  std::string page = "{\"items\":[";
  for (int i = 0; i < 60; ++i) {
    page += fmt::format(
        "{}{{\"sku\":\"S{}\",\"name\":\"A thing with a name of some "
        "length\",\"price\":{}.25,\"stock\":true,\"tags\":[\"a\",\"b\"]}}",
        i == 0 ? "" : ",", random.below(1'000'000), random.below(1'000));
  }
  return page + "]}";
}

ExtractionRule rule_of(std::string name, std::vector<std::string> match, const std::vector<std::string>& fields) {
  ExtractionRule rule{.name = std::move(name), .match = std::move(match)};
  for (const std::string& field : fields) rule.fields.push_back(bench::must(parse_field(field)));
  return rule;
}

void measure(std::string_view workload, RuleReader& reader, std::size_t rule, const std::vector<PageResponse>& pages) {
  RuleReading reading;
  std::vector<double> rates;
  std::size_t links = 0, results = 0, bytes = 0;
  for (int round = 0; round < kRounds; ++round) {
    links = results = bytes = 0;
    const auto start = std::chrono::steady_clock::now();
    for (const PageResponse& page : pages) {
      reader.read(rule, page.url, page, WallTime{}, reading);
      links += reading.links.size();
      results += reading.results ? reading.results->size() : 0;
      bytes += page.body.size();
    }
    rates.push_back(static_cast<double>(pages.size()) /
                    std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  bench::report(workload, bench::median(rates), "pages/s");
  fmt::print("  a page: {} bytes, {:.1f} links, {:.1f} results\n", bytes / pages.size(),
             static_cast<double>(links) / kPages, static_cast<double>(results) / kPages);
}

}  // namespace

int main() {
  ProjectDefinition shop{.name = "shop", .start = {bench::must(Url::parse("https://shop.test/"))}};
  shop.rules.resize(4);
  shop.rules[0].extraction =
      rule_of("item", {"/item/*"},
              {"title=css:h1", "price:number=css:.price", "stock:boolean=css:.stock", "about=meta:description"});
  shop.rules[1].extraction = rule_of("list", {"/list/*"}, {});
  shop.rules[2].extraction =
      rule_of("api", {"/api/**"}, {"sku=json:/sku", "name=json:/name", "price=json:/price", "stock=json:/stock"});
  shop.rules[2].extraction.each = "json:/items";
  shop.rules[2].part = "sku";
  shop.rules[3].extraction = rule_of("rest", {}, {});
  RuleReader reader = bench::must(RuleReader::make(shop, bench::must(ProjectMap::make(shop)), "argiope"));

  Random random(1);
  std::vector<PageResponse> pages(kPages), answers(kPages);
  for (int i = 0; i < kPages; ++i) {
    PageResponse& page = pages[static_cast<std::size_t>(i)];
    page = {.url = fmt::format("https://shop.test/list/{}", i),
            .status = 200,
            .headers = {{"Content-Type", "text/html; charset=utf-8"}}};
    page.body = shop_page(random);
    PageResponse& answer = answers[static_cast<std::size_t>(i)];
    answer = {.url = fmt::format("https://shop.test/api/{}", i),
              .status = 200,
              .headers = {{"Content-Type", "application/json"}}};
    answer.body = api_page(random);
  }
  measure("rules: links of a page", reader, 1, pages);
  measure("rules: links and four fields by CSS", reader, 0, pages);
  measure("rules: 60 records of a JSON page", reader, 2, answers);
}
