#include "base/internal/json_writer.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

namespace argiope {
namespace {

using namespace std::chrono_literals;

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

template <class T>
std::string written(const T& value) {
  std::string out;
  JsonWriter(out).value(value);
  return out;
}

TEST(JsonWriter, EscapesWhatMustBeEscaped) {
  EXPECT_EQ(quoted("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(quoted("line\nend\x01"), R"("line\u000aend\u0001")");
  EXPECT_EQ(quoted(std::string_view("\0\x1f\x7f", 3)), "\"\\u0000\\u001f\x7f\"");
  EXPECT_EQ(quoted(""), "\"\"");
}

TEST(JsonWriter, WritesControlCharactersByTheirLettersWhereItIsTold) {
  const std::string line = json_object(
      [](JsonWriter& json) { json.member("\t", std::string_view("\b\f\n\r\t\0\x1f/", 8)); }, JsonEscapes::letters);
  EXPECT_EQ(line, R"({"\t":"\b\f\n\r\t\u0000\u001f/"})");
}

TEST(JsonWriter, KeepsUtf8AndReplacesWhatIsNot) {
  EXPECT_EQ(quoted("dé"), "\"dé\"");
  EXPECT_EQ(quoted("\xff\xc3"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
  EXPECT_EQ(quoted("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");  // a surrogate is no character
}

TEST(JsonWriter, AnObjectHasItsMembersInTheOrderTheyAreWritten) {
  const std::string line = json_object([](JsonWriter& json) {
    json.member("id", 7);
    json.member("name", "a \"b\"");
    json.object("retry", [&] {
      json.member("max_attempts", 3u);
      json.object("empty", [] {});
    });
    json.list("waits_for", std::vector<int>{1, 2});
    json.list("none", std::vector<int>{});
    json.array("history", [&] {
      json.object([&] { json.member("number", 1); });
      json.object([&] { json.member("number", 2); });
      json.array([&] { json.value(true); });
    });
    json.member("last", false);
  });
  EXPECT_EQ(line, R"({"id":7,"name":"a \"b\"","retry":{"max_attempts":3,"empty":{}},"waits_for":[1,2],"none":[],)"
                  R"("history":[{"number":1},{"number":2},[true]],"last":false})");
}

TEST(JsonWriter, ATextThatEndsInABracketOrAColonIsFollowedByAComma) {
  const std::string line = json_object([](JsonWriter& json) {
    for (const char* text : {"{", "[", ":", ","}) json.member(text, text);
  });
  EXPECT_EQ(line, R"({"{":"{","[":"[",":":":",",":","})");
}

TEST(JsonWriter, WritesAfterWhatTheStringHolds) {
  std::string lines = "[";
  for (int i = 0; i < 2; ++i) {
    JsonWriter json(lines);
    json.object([&] { json.member("i", i); });
    lines += '\n';
  }
  EXPECT_EQ(lines, "[{\"i\":0}\n{\"i\":1}\n");
}

TEST(JsonWriter, WholeNumbersAreExact) {
  EXPECT_EQ(written(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(written(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(written(std::uint8_t{200}), "200");
  EXPECT_EQ(written(std::int16_t{-3}), "-3");
}

TEST(JsonWriter, OtherNumbersAreShortAndReadAsTheSame) {
  EXPECT_EQ(written(0.1), "0.1");
  EXPECT_EQ(written(0.0), "0");
  EXPECT_EQ(written(1e300), "1e+300");
  EXPECT_EQ(written(std::nan("")), "null");
  EXPECT_EQ(written(-std::numeric_limits<double>::infinity()), "null");
  std::string out;
  JsonWriter(out).fixed(2.0 / 3, 3);
  EXPECT_EQ(out, "0.667");
}

TEST(JsonWriter, RealNumbersAreNeverTakenForWholeOnes) {
  const auto real = [](double number) {
    std::string out;
    JsonWriter(out).real(number);
    return out;
  };
  EXPECT_EQ(real(0), "0.0");
  EXPECT_EQ(real(-1), "-1.0");
  EXPECT_EQ(real(1.5), "1.5");
  EXPECT_EQ(real(0.02), "0.02");
  EXPECT_EQ(real(1e10), "10000000000.0");
  EXPECT_EQ(real(-1.25e-300), "-1.25e-300");
  EXPECT_EQ(real(std::numeric_limits<double>::max()), "1.7976931348623157e+308");
  EXPECT_EQ(real(std::nan("")), "null");
  EXPECT_EQ(json_object([](JsonWriter& json) {
              json.key("a.e");
              json.real(1);
              json.member("b", 2);
            }),
            R"({"a.e":1.0,"b":2})");
}

TEST(JsonWriter, TimesAreRfc3339AndNeverIsNull) {
  EXPECT_EQ(written(WallTime{1'767'225'600s}), R"("2026-01-01T00:00:00Z")");
  EXPECT_EQ(written(WallTime{1'767'225'600s + 50ms}), R"("2026-01-01T00:00:00.050Z")");
  EXPECT_EQ(written(WallTime{}), "null");
}

TEST(JsonWriter, AnOptionalIsItsValueOrNull) {
  EXPECT_EQ(written(std::optional<int>(5)), "5");
  EXPECT_EQ(written(std::optional<int>()), "null");
  EXPECT_EQ(written(std::optional<std::string>("x")), R"("x")");
}

TEST(JsonWriter, BytesThatAreNotUtf8FollowAsBase64) {
  const auto member = [](std::string_view bytes) {
    return json_object([&](JsonWriter& json) { json.bytes("payload", bytes); });
  };
  EXPECT_EQ(member("text"), R"({"payload":"text"})");
  EXPECT_EQ(member("\xff!"), "{\"payload\":\"\xef\xbf\xbd!\",\"payload_base64\":\"/yE=\"}");
  EXPECT_EQ(member("\xef\xbf\xbd"), "{\"payload\":\"\xef\xbf\xbd\"}");
}

TEST(JsonWriter, AStringUsedAgainNeedsNoNewMemory) {
  std::string out;
  const auto write = [&] {
    out.clear();
    JsonWriter json(out);
    json.object([&] {
      json.member("id", 123'456);
      json.member("text", "some text of forty characters and a few");
      json.member("at", WallTime{1'767'225'600s + 50ms});
      json.member("share", 0.25);
    });
  };
  write();
  const char* const at = out.data();
  for (int i = 0; i < 10; ++i) write();
  EXPECT_EQ(out.data(), at);
}

}  // namespace
}  // namespace argiope
