// How well simhashes find nearly equal pages: on made documents with known edits, the figures that
// docs/crawl-duplicates.md has. Their floors are asserted; ARGIOPE_FIGURES=1 prints them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "argiope/base/random.hpp"
#include "crawl/duplicates/simhash_index.hpp"
#include "web/html/internal/page_words.hpp"

namespace argiope {
namespace {

using Words = std::vector<std::uint32_t>;

// Words as texts have them: the n-th most frequent one about 1/n as often as the first.
std::uint32_t drawn_word(Random& random) {
  constexpr double kVocabulary = 20'000;
  return static_cast<std::uint32_t>(std::exp(random.unit() * std::log(kVocabulary)));
}

Words drawn_words(std::size_t count, Random& random) {
  Words words(count);
  std::ranges::generate(words, [&] { return drawn_word(random); });
  return words;
}

// A page of a site: the same menu and footer on each, and these words.
std::string page_of(const Words& menu, const Words& words) {
  std::string html = "<!doctype html><title>A site</title><nav>";
  for (const std::uint32_t word : menu) html += fmt::format("<a href=/{0}>w{0}</a> ", word);
  html += "</nav><main><p>";
  for (const std::uint32_t word : words) html += fmt::format("w{} ", word);
  return html + "</main><footer>All rights reserved by those who have them</footer>";
}

// Each word is replaced, left out, or has another put behind it, with a third of the rate each.
Words edited(const Words& words, double rate, Random& random) {
  Words out;
  for (const std::uint32_t word : words) {
    const double chance = random.unit();
    if (chance < rate / 3) continue;
    out.push_back(chance < 2 * rate / 3 ? drawn_word(random) : word);
    if (chance >= 2 * rate / 3 && chance < rate) out.push_back(drawn_word(random));
  }
  return out;
}

struct Figures {
  double recall = 0;     // of edited documents, the part that is found to be near to its original
  double precision = 1;  // of what is found, the part that is near to its own original
};

Figures measure(unsigned distance, double rate, std::size_t least, std::size_t most, std::uint64_t seed) {
  constexpr std::size_t kDocuments = 400;
  Random random(seed);
  PageWordReader reader;
  SimhashIndex index(distance);
  const Words menu = drawn_words(40, random);
  std::vector<Words> documents;
  for (std::size_t i = 0; i < kDocuments; ++i) {
    documents.push_back(drawn_words(least + random.below(most - least), random));
    index.add(reader.read(page_of(menu, documents.back())).simhash, 0, i);
  }
  std::size_t found = 0, right = 0;
  for (std::size_t i = 0; i < kDocuments; ++i) {
    const auto match = index.find(reader.read(page_of(menu, edited(documents[i], rate, random))).simhash);
    found += match.has_value();
    right += match && match->value == i;
  }
  // Pages that are no copies: what is found for them is wrong.
  for (std::size_t i = 0; i < kDocuments; ++i) {
    found += index.find(reader.read(page_of(menu, drawn_words(least + random.below(most - least), random))).simhash)
                 .has_value();
  }
  const auto part = [](std::size_t of, std::size_t all) { return static_cast<double>(of) / static_cast<double>(all); };
  return {part(right, kDocuments), found == 0 ? 1.0 : part(right, found)};
}

TEST(NearDuplicates, AreFoundAsOftenAsDocumented) {
  struct Row {
    double rate;
    double least_recall;  // with 3 bits, of documents of 200 to 2,000 words
  };
  const bool prints = std::getenv("ARGIOPE_FIGURES") != nullptr;
  for (const Row& row :
       {Row{0.002, 0.9}, Row{0.005, 0.7}, Row{0.01, 0.45}, Row{0.02, 0.2}, Row{0.05, 0}, Row{0.1, 0}}) {
    for (unsigned distance = prints ? 0 : 3; distance <= (prints ? 7u : 3u); ++distance) {
      const Figures figures = measure(distance, row.rate, 200, 2000, 7);
      if (prints)
        fmt::print("edits {:.1f} %, {} bits: recall {:.3f}, precision {:.3f}\n", 100 * row.rate, distance,
                   figures.recall, figures.precision);
      EXPECT_GE(figures.precision, 0.99) << row.rate << ' ' << distance;
      if (distance == 3) EXPECT_GE(figures.recall, row.least_recall) << row.rate;
    }
  }
}

TEST(NearDuplicates, AreNotOtherPagesOfOneSite) {
  // Short pages with a long menu are what is most alike.
  for (const std::uint64_t seed : {1, 2, 3}) EXPECT_GE(measure(3, 0.005, 40, 80, seed).precision, 0.9) << seed;
}

}  // namespace
}  // namespace argiope
