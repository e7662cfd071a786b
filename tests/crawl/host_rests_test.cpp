// What a database says of hosts that rest is believed as far as it can be meant.
#include "crawl/hosts/host_rests.hpp"

#include <gtest/gtest.h>

namespace argiope {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kRestNow{std::chrono::hours{24 * 365 * 50}};
constexpr const char* kRestingSite = "http://a.test:8080";

std::unique_ptr<UrlStore> store_with(const UrlNote& note) {
  auto store = *open_url_store(":memory:");
  UrlBatch batch;
  batch.notes.push_back(note);
  store->submit(std::move(batch));
  EXPECT_TRUE(store->flush());
  return store;
}

std::size_t notes_in(UrlStore& store) {
  std::size_t count = 0;
  EXPECT_TRUE(store.flush());
  EXPECT_TRUE(store.scan_notes("hosts/", [&](const UrlNote&) { return ++count > 0; }));
  return count;
}

TEST(HostRestNotes, AreReadAsTheyWereWritten) {
  for (const RestReason why : {RestReason::pace, RestReason::crawl_delay, RestReason::retry_after, RestReason::trouble,
                               RestReason::elsewhere}) {
    const HostRest rest{kRestNow + 90s, why};
    const auto store = store_with(HostRests::note_of(kRestingSite, rest));
    HostRests rests;
    ASSERT_TRUE(rests.load(*store, kRestNow));
    ASSERT_NE(rests.of(kRestingSite), nullptr) << to_string(why);
    EXPECT_EQ(*rests.of(kRestingSite), rest);
    EXPECT_EQ(rests.of("http://a.test"), nullptr);
    EXPECT_EQ(*HostRests::find(*store, kRestingSite), rest);
    EXPECT_FALSE(*HostRests::find(*store, "http://a.test:80"));
    EXPECT_EQ(notes_in(*store), 1u);
  }
}

TEST(HostRestNotes, AreNeverEarlierThanTheRest) {
  const auto store = store_with(HostRests::note_of(kRestingSite, {kRestNow + 1ns, RestReason::pace}));
  EXPECT_EQ((*HostRests::find(*store, kRestingSite))->until, kRestNow + 1ms);
}

TEST(HostRestNotes, ThatAreOverOrSayNothingOrTooMuchAreForgotten) {
  const auto text_of = [](Duration rest, RestReason why) {
    return HostRests::note_of(kRestingSite, {kRestNow + rest, why}).text;
  };
  for (const std::string& text :
       {text_of(0s, RestReason::pace), text_of(-1h, RestReason::retry_after), text_of(49h, RestReason::retry_after),
        text_of(24h * 365, RestReason::crawl_delay), std::string("soon"), std::string("5"), std::string("-5 pace"),
        std::string("99999999999999999999 pace"), std::string("9223372036854775807 pace"),
        std::string("3000000000000 elsewhen"), std::string("3000000000000pace")}) {
    const auto store = store_with({std::string("hosts/") + kRestingSite, text});
    HostRests rests;
    ASSERT_TRUE(rests.load(*store, kRestNow));
    EXPECT_EQ(rests.of(kRestingSite), nullptr) << text;
    EXPECT_EQ(notes_in(*store), 0u) << text;
  }
}

TEST(HostRestNotes, OfTheCrawlsOwnPaceMayBeAnyLength) {
  const auto store = store_with(HostRests::note_of(kRestingSite, {kRestNow + 24h * 365, RestReason::pace}));
  HostRests rests;
  ASSERT_TRUE(rests.load(*store, kRestNow));
  EXPECT_NE(rests.of(kRestingSite), nullptr);
}

}  // namespace
}  // namespace argiope
