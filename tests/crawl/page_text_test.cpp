#include "crawl/page/internal/page_text.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace argiope {
namespace {

TEST(PageText, IsTheBodyItselfWhereThatIsUtf8) {
  const std::string body = "\xEF\xBB\xBF<p>caf\xC3\xA9";
  PageText text;
  text.begin(body, "text/html");
  EXPECT_EQ(text.charset().name, "UTF-8");
  EXPECT_EQ(text.utf8(), "<p>caf\xC3\xA9");
  EXPECT_EQ(text.utf8().data(), body.data() + 3) << "not a copy";
}

TEST(PageText, IsTranscodedOnce) {
  const std::string body = "<p>caf\xE9";
  PageText text;
  text.begin(body, "text/html; charset=iso-8859-1");
  const std::string_view first = text.utf8();
  EXPECT_EQ(first, "<p>caf\xC3\xA9");
  EXPECT_EQ(text.utf8().data(), first.data());
  EXPECT_EQ(text.charset().name, "windows-1252");
  EXPECT_EQ(text.times_made(), 1u);
}

TEST(PageText, IsTranscodedOnceForReadersOnSeveralThreads) {
  const std::string body = "<p>caf\xE9" + std::string(10'000, 'x');
  PageText text;
  text.begin(body, "text/html; charset=iso-8859-1");
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&text] {
      EXPECT_EQ(text.utf8().substr(0, 8), "<p>caf\xC3\xA9");
      EXPECT_EQ(text.charset().name, "windows-1252");
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(text.times_made(), 1u);
}

TEST(PageText, StaysUntilTheLastHolderLetsGo) {
  const std::string body = "<p>caf\xE9";
  PageText text;
  text.begin(body, "text/html; charset=iso-8859-1");
  text.hold();
  const std::string_view first = text.utf8();
  text.let_go();
  EXPECT_EQ(text.utf8().data(), first.data());
  text.let_go();
  EXPECT_EQ(text.utf8(), "<p>caf\xC3\xA9");
  EXPECT_EQ(text.times_made(), 2u);
}

TEST(PageText, IsThatOfTheLastBody) {
  const std::string one = "<p>caf\xE9", other = "<p>\xA3";
  PageText text;
  text.begin(one, "text/html; charset=iso-8859-1");
  EXPECT_EQ(text.utf8(), "<p>caf\xC3\xA9");
  text.begin(other, "text/html; charset=iso-8859-2");
  EXPECT_EQ(text.charset().name, "ISO-8859-2");
  EXPECT_EQ(text.utf8(), "<p>\xC5\x81");
  text.begin({}, "text/html");
  EXPECT_EQ(text.utf8(), "");
}

}  // namespace
}  // namespace argiope
