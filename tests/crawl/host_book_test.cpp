#include "crawl/hosts/host_book.hpp"

#include <gtest/gtest.h>

#include "base/internal/fingerprint.hpp"

namespace argiope {
namespace {

std::string site_of(int number) { return "http://host" + std::to_string(number) + ".test"; }

Host& add(HostBook& book, int number) { return book.add(site_of(number), fingerprint(site_of(number))); }

TEST(HostBook, KeepsWhatMattersOfAHundredThousandHosts) {
  constexpr int kHosts = 100'000;
  HostBook book;
  for (int number = 0; number < kHosts; ++number) {
    Host& host = add(book, number);
    host.urls = static_cast<std::uint32_t>(number);
    if (number % 2 == 0) {
      host.on_shelf = Host::Stretch{{-number, JobId(number) * 1'000'000}, {-number - 1, JobId(number) * 1'000'001}};
    }
    if (book.is_full()) book.sweep([](const Host&) { return true; });
  }
  book.sweep([](const Host&) { return true; });
  EXPECT_EQ(book.active(), 0u);
  EXPECT_EQ(book.size(), std::size_t{kHosts});
  for (int number = 0; number < kHosts; ++number) {
    const Host& host = add(book, number);
    ASSERT_EQ(host.urls, static_cast<std::uint32_t>(number));
    ASSERT_EQ(host.on_shelf.has_value(), number % 2 == 0);
    if (!host.on_shelf) continue;
    ASSERT_EQ(host.on_shelf->first, (Rank{-number, JobId(number) * 1'000'000}));
    ASSERT_EQ(host.on_shelf->last, (Rank{-number - 1, JobId(number) * 1'000'001}));
  }
  EXPECT_EQ(book.size(), std::size_t{kHosts});
}

TEST(HostBook, KnowsNothingOfWhoIsNew) {
  HostBook book;
  const Host& host = add(book, 1);
  EXPECT_EQ(host.urls, 0u);
  EXPECT_TRUE(host.health.is_new());
  EXPECT_FALSE(host.lost);
  EXPECT_FALSE(host.on_shelf);
  EXPECT_EQ(book.find(site_of(1)), &host);
  EXPECT_EQ(book.find(site_of(2)), nullptr);
}

TEST(Host, IsNamedWithoutSchemeAndPort) {
  const auto name_of = [](const char* site) {
    Host host;
    host.site = site;
    return std::string(host.name());
  };
  EXPECT_EQ(name_of("http://example.org"), "example.org");
  EXPECT_EQ(name_of("https://example.org:8443"), "example.org");
  EXPECT_EQ(name_of("http://[::1]:80"), "[::1]");
}

}  // namespace
}  // namespace argiope
