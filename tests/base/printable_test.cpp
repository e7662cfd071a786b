// Text from outside as messages and terminals may have it.
#include "base/internal/printable.hpp"

#include <gtest/gtest.h>

namespace argiope {
namespace {

TEST(InQuotes, LeavesWhatPeopleReadAsItIs) {
  EXPECT_EQ(in_quotes("plain"), "\"plain\"");
  EXPECT_EQ(in_quotes(""), "\"\"");
  EXPECT_EQ(in_quotes("Grüße, 日本語, 👩‍👩‍👧, 𝒳"),
            "\"Grüße, 日本語, 👩‍👩‍👧, 𝒳\"");
  EXPECT_EQ(in_quotes(R"({"a":"C:\b"})"), R"("{"a":"C:\b"}")");
}

TEST(InQuotes, IsOneLineWithoutControlCharactersOfEitherHalf) {
  EXPECT_EQ(in_quotes("0xA\t\nt\r"), R"("0xA\t\nt\r")");
  EXPECT_EQ(in_quotes(std::string_view("\0\x1b[2J\x7f", 6)), R"("\x00\x1b[2J\x7f")");
  EXPECT_EQ(in_quotes("\u0085\u009b31m"), R"("\u0085\u009b31m")");
}

TEST(InQuotes, ShowsWhatIsInvisibleOrTurnsTheText) {
  EXPECT_EQ(in_quotes("exe.\u202egpj"), R"("exe.\u202egpj")");
  EXPECT_EQ(in_quotes("a\u2028b\u2066c\u200bd\ufeff"), R"("a\u2028b\u2066c\u200bd\ufeff")");
  EXPECT_EQ(in_quotes("\U000e0041"), R"("\U000e0041")");
}

TEST(InQuotes, ShowsBytesThatAreNotUtf8) {
  EXPECT_EQ(in_quotes("\xff\xc3"), R"("\xff\xc3")");
  EXPECT_EQ(in_quotes("\x9b"
                      "31m"),
            R"("\x9b31m")");
  EXPECT_EQ(in_quotes("\xed\xa0\x80"), R"("\xed\xa0\x80")");  // a surrogate
}

TEST(InQuotes, IsCutAtItsCharacters) {
  EXPECT_EQ(in_quotes("äöü", 3), "\"äöü\"");
  EXPECT_EQ(in_quotes("äöüß", 3), "\"äöü…\"");
  EXPECT_EQ(in_quotes("abc", 2), "\"ab…\"");
  EXPECT_EQ(in_quotes(std::string(1000, 'x')).size(), kMostQuoted + 2 + std::string("…").size());
}

TEST(Printable, KeepsLinesWhereItIsToldTo) {
  EXPECT_EQ(printable("a\nb"), R"(a\nb)");
  EXPECT_EQ(printable_lines("a\nb\r\x1b"), "a\nb\\r\\x1b");
  EXPECT_EQ(printable("a\x1b", 1), "a…");
}

}  // namespace
}  // namespace argiope
