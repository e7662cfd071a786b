// Depths that are counted again at the end of a run.
#include "crawl/books/depth_book.hpp"

#include <gmock/gmock.h>

#include <limits>

namespace argiope {
namespace {

constexpr std::uint32_t kNotThere = std::numeric_limits<std::uint32_t>::max();

// Of URLs whose fingerprints are their ids.
DepthBook::FoundUrl url(std::int64_t id, std::uint32_t depth) { return {static_cast<std::uint64_t>(id), id, depth}; }

TEST(DepthBook, AShorterWayThatIsFoundLateCountsForAllBehindIt) {
  DepthBook book;
  for (std::uint32_t i = 0; i < 5; ++i) book.found({{url(i + 1, i)}});  // one behind the other
  for (std::uint64_t i = 1; i < 5; ++i) book.linked(i, {{i + 1}}, false);
  EXPECT_TRUE(book.recount().empty());
  book.linked(1, {{4}}, false);
  EXPECT_THAT(book.recount(), testing::ElementsAre(kNotThere, 0, 1, 2, 1, 2));
}

TEST(DepthBook, ARedirectIsNoLinkAndUnknownUrlsArePassedOver) {
  DepthBook book;
  book.found({{url(1, 0), url(7, 3)}});
  book.linked(9, {{7}}, false);
  book.linked(1, {{9}}, false);
  EXPECT_TRUE(book.recount().empty());
  book.linked(1, {{7}}, true);
  EXPECT_EQ(book.recount().at(7), 0u);
  book.found({{url(7, 9)}});
  EXPECT_EQ(book.recount().at(7), 0u) << "what is found again is there already";
}

// What is found late is passed on against the order in which links were met: each link is followed once, and not once a
// round.
TEST(DepthBook, ALongWayBackIsCountedAtOnce) {
  constexpr std::uint64_t kUrls = 50'000;
  DepthBook book;
  for (std::uint64_t id = 1; id <= kUrls; ++id) {
    book.found({{url(static_cast<std::int64_t>(id), static_cast<std::uint32_t>(id - 1))}});
    if (id > 1) book.linked(id, {{id - 1}}, false);
  }
  book.linked(1, {{kUrls}}, false);
  const auto depths = book.recount();
  EXPECT_EQ(depths.at(kUrls), 1u);
  EXPECT_EQ(depths.at(kUrls / 2 + 1), static_cast<std::uint32_t>(kUrls / 2));
}

TEST(DepthBook, IsBounded) {
  DepthBook book;
  for (std::uint32_t i = 0; i <= DepthBook::kMostUrls; ++i) book.found({{url(i + 1, i)}});
  book.linked(1, {{6}}, false);
  EXPECT_TRUE(book.recount().empty()) << "nothing is noted any more";
}

}  // namespace
}  // namespace argiope
