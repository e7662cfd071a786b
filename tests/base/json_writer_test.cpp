#include "argiope/base/json_writer.hpp"

#include <gtest/gtest.h>

namespace argiope {
namespace {

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(JsonWriter, EscapesWhatMustBeEscaped) {
  EXPECT_EQ(quoted("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(quoted("line\nend\x01"), R"("line\u000aend\u0001")");
}

TEST(JsonWriter, KeepsUtf8AndReplacesWhatIsNot) {
  EXPECT_EQ(quoted("dé"), "\"dé\"");
  EXPECT_EQ(quoted("\xff\xc3"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
  EXPECT_EQ(quoted("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");  // a surrogate is no character
}

}  // namespace
}  // namespace argiope
