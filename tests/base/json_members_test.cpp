#include "base/internal/json_members.hpp"

#include <gtest/gtest.h>

#include <string>

#include "argiope/base/clock.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

enum class Size : std::uint8_t { small, large };
constexpr std::string_view kSizes[] = {"small", "large"};

struct Order {
  std::string name;
  std::int64_t count = 1;
  bool urgent = false;
  std::optional<Duration> within;
  Size size = Size::small;
  std::uint64_t note = 0;
};

Result<Order> read_order(std::string_view json) {
  const auto text = JsonText::parse(json);
  if (!text) return std::unexpected(text.error());
  JsonErrors errors;
  const JsonValue form = text->root(errors);
  Order order;
  form.for_each_member([&](std::string_view, const JsonValue& value) {
    JsonMembers in(value);
    order.name = in.text("name", "nobody");
    order.count = in.whole("count", 9, 1, 1);
    order.urgent = in.flag("urgent", false);
    in.parsed("within", order.within, parse_duration);
    in.choice("size", order.size, kSizes);
    in.parsed("note", order.note, [](const std::string& digits) -> Result<std::uint64_t> {
      if (digits != "7") return fail(Errc::not_found, "note \"" + digits + "\": 7");
      return 7;
    });
    in.finish("an order has none");
  });
  if (errors) return std::unexpected(errors.error());
  return order;
}

std::string error_of(std::string_view members) {
  const auto order = read_order("{\"order\":{" + std::string(members) + "}}");
  return order ? "" : order.error().message;
}

TEST(JsonMembers, AreReadByTheirNames) {
  const Order order =
      read_order(R"({"order":{"size":"large","name":"Anna","count":3,"urgent":true,"within":"90s","note":"7"}})")
          .value();
  EXPECT_EQ(order.name, "Anna");
  EXPECT_EQ(order.count, 3);
  EXPECT_TRUE(order.urgent);
  EXPECT_EQ(order.within, 90s);
  EXPECT_EQ(order.size, Size::large);
  EXPECT_EQ(order.note, 7u);
}

TEST(JsonMembers, HaveTheirDefaultsWhereTheyAreMissing) {
  const Order order = read_order(R"({"order":{}})").value();
  EXPECT_EQ(order.name, "nobody");
  EXPECT_EQ(order.count, 1);
  EXPECT_EQ(order.within, std::nullopt);
}

TEST(JsonMembers, ASpanMayBeANumberOfSeconds) {
  EXPECT_EQ(read_order(R"({"order":{"within":90}})").value().within, 90s);
  EXPECT_EQ(read_order(R"({"order":{"within":1.5}})").value().within, 1500ms);
}

TEST(JsonMembers, SayWhatIsWrongWithTheWayToIt) {
  EXPECT_EQ(error_of(R"("name":5)"), R"(order.name "5": a string)");
  EXPECT_EQ(error_of(R"("count":0)"), R"(order.count "0": a whole number, 1 to 9)");
  EXPECT_EQ(error_of(R"("count":1.0)"), R"(order.count "1.0": a whole number, 1 to 9)");
  EXPECT_EQ(error_of(R"("urgent":null)"), R"(order.urgent "null": true or false)");
  EXPECT_EQ(error_of(R"("size":"huge")"), R"(order.size "huge": small, large)");
  EXPECT_EQ(error_of(R"("size":1)"), R"(order.size "1": a string)");
  EXPECT_EQ(error_of(R"("within":true)"), R"(order.within "true": a string)");
  EXPECT_EQ(error_of(R"("within":"soon")"), "order.within: " + parse_duration("soon").error().message);
  EXPECT_EQ(error_of(R"("naem":"Anna")"), R"(order: member "naem": an order has none)");
}

TEST(JsonMembers, AnErrorThatNamesItsMemberNamesItOnce) {
  EXPECT_EQ(error_of(R"("note":"8")"), R"(order.note "8": 7)");
  EXPECT_EQ(read_order(R"({"order":{"note":"8"}})").error().code, Errc::not_found);
}

TEST(JsonMembers, ANameThatIsThereTwiceIsRefused) {
  EXPECT_EQ(error_of(R"("count":1,"name":"a","count":2)"), R"(order: member "count" is there twice)");
  std::string many = R"("count":1)";
  for (int i = 0; i < 40; ++i) many += R"(,"count":1)";
  EXPECT_EQ(error_of(many), R"(order: member "count" is there twice)");
}

TEST(JsonMembers, ANameThatIsThereTwiceIsRefusedHoweverDeepButInWhatIsLeftAlone) {
  static constexpr JsonLeftAlone kLeftAlone[] = {{"", "payload"}, {"jobs", "payload"}};
  const auto error_of_whole = [](std::string_view json) {
    const auto text = JsonText::parse(json);
    JsonErrors errors;
    refuse_repeated_within(text->root(errors), kLeftAlone);
    return errors ? errors.error().message : std::string();
  };
  EXPECT_EQ(error_of_whole(R"({"a":[1,{"b":{"c":1,"d":2,"c":3}}]})"), R"(a[1].b: member "c" is there twice)");
  EXPECT_EQ(error_of_whole(R"({"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]})"), "");
  EXPECT_EQ(error_of_whole(R"({"payload":{"a":1,"a":2},"jobs":[{"payload":[{"a":1,"a":2}]}]})"), "");
  EXPECT_EQ(error_of_whole(R"({"job":{"payload":{"a":1,"a":2}}})"), R"(job.payload: member "a" is there twice)");
  EXPECT_EQ(error_of_whole(R"({"payload":1,"payload":2})"), R"(member "payload" is there twice)");
}

}  // namespace
}  // namespace argiope
