#include "web/text/internal/content_decoder.hpp"

#include <gtest/gtest.h>
#include <zstd.h>

#include "argiope/base/random.hpp"
#include "support/deflate.hpp"

namespace argiope {
namespace {

constexpr std::size_t kLimit = 10 * 1024 * 1024;

std::string zstd(std::string_view text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}
// "hello hello hello hello" by the brotli command.
const std::string kBrotliHello(
    "\x0b\x0b\x80\x68\x65\x6c\x6c\x6f\x20\x68\x65\x6c\x6c\x6f\x20\x68\x65\x6c\x6c\x6f\x20\x68\x65\x6c\x6c\x6f\x03", 27);

std::string sample() {
  Random random(4);
  std::string text;
  while (text.size() < 200'000) text += static_cast<char>('a' + random.below(8));
  return text;
}

Result<std::string> decode(std::string_view codings, std::string_view bytes, std::size_t piece = 1000,
                           std::size_t limit = kLimit) {
  ContentDecoder decoder;
  if (auto started = decoder.start(codings, limit); !started) return std::unexpected(started.error());
  std::string out;
  while (!bytes.empty()) {
    if (auto fed = decoder.feed(bytes.substr(0, piece), out); !fed) return std::unexpected(fed.error());
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  if (auto finished = decoder.finish(); !finished) return std::unexpected(finished.error());
  return out;
}

TEST(ContentDecoder, UndoesEachCodingInPiecesOfAnySize) {
  const std::string text = sample();
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, std::size_t{1} << 20}) {
    EXPECT_EQ(decode("gzip", gzip(text), piece), text);
    EXPECT_EQ(decode("X-GZip", gzip(text), piece), text);
    EXPECT_EQ(decode("deflate", deflated(text, 15), piece), text);
    EXPECT_EQ(decode("zstd", zstd(text), piece), text);
    EXPECT_EQ(decode("identity", text, piece), text);
  }
}

TEST(ContentDecoder, ReadsBareDeflateAsBrowsersDo) {
  const std::string text = sample();
  EXPECT_EQ(decode("deflate", deflated(text, -15)), text);
}

TEST(ContentDecoder, ReadsBrotli) { EXPECT_EQ(decode("br", kBrotliHello, 3), "hello hello hello hello"); }

TEST(ContentDecoder, UndoesAStackFromTheOutside) {
  const std::string text = sample();
  EXPECT_EQ(decode("zstd, gzip", gzip(zstd(text))), text);
  EXPECT_EQ(decode("gzip,identity, gzip ,zstd", zstd(gzip(gzip(text)))), text);
}

TEST(ContentDecoder, ReadsSeveralGzipMembersAndIgnoresWhatFollows) {
  for (const std::size_t piece : {1, 2, 3, 5, 24, 1000}) {
    EXPECT_EQ(decode("gzip", gzip("one ") + gzip("two ") + gzip("three"), piece), "one two three") << piece;
    EXPECT_EQ(decode("zstd", zstd("one ") + zstd("two ") + zstd("three"), piece), "one two three") << piece;
    for (const char* rest : {"rubbish", "\x1f", "\x1f\x8b", "\x1f\x8brubbish", "\x28\xb5", "\x28\xb5\x2frubbish"}) {
      EXPECT_EQ(decode("gzip", gzip("one") + rest, piece), "one") << piece;
      EXPECT_EQ(decode("zstd", zstd("one") + rest, piece), "one") << piece;
      EXPECT_EQ(decode("deflate", deflated("one", 15) + rest, piece), "one") << piece;
      EXPECT_EQ(decode("br", kBrotliHello + rest, piece), "hello hello hello hello") << piece;
    }
    EXPECT_EQ(decode("zstd", zstd("one ") + std::string("\x53\x2a\x4d\x18\x02\0\0\0xx", 10) + zstd("two"), piece),
              "one two")
        << "behind a frame to be skipped, in pieces of " << piece;
  }
}

// What follows the magic number of the second frame looks like a frame of its own.
TEST(ContentDecoder, DecodesFramesToTheSameInPiecesOfAnySize) {
  std::string frames(
      "\x50\x2a\x4d\x18\0\0\0\0"                   // to be skipped, empty
      "\x28\xb5\x2f\xfd\x50\x2a\x4d\x18\x01\0\0",  // empty, though it says 6,477 bytes
      19);
  frames += zstd("and one more");
  for (const std::size_t piece : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 19, 20, 1000}) {
    EXPECT_EQ(decode("zstd", frames, piece), "and one more") << piece;
  }
}

TEST(ContentDecoder, SaysWhatItDoesNotKnow) {
  EXPECT_EQ(decode("lzma", "x").error().code, Errc::unsupported);
  EXPECT_EQ(decode("gzip,gzip,gzip,gzip", "x").error().code, Errc::unsupported);
}

TEST(ContentDecoder, SaysThatDataIsDamagedOrCutOff) {
  std::string packed = gzip(sample());
  EXPECT_EQ(decode("gzip", packed.substr(0, packed.size() / 2)).error().code, Errc::protocol);
  packed[packed.size() / 2] ^= 0x55;
  EXPECT_EQ(decode("gzip", packed).error().code, Errc::protocol);
  EXPECT_EQ(decode("zstd", "this is not zstd").error().code, Errc::protocol);
  EXPECT_EQ(decode("br", std::string(50, '\xff')).error().code, Errc::protocol);
}

TEST(ContentDecoder, TakesAnEmptyBodyForNoData) { EXPECT_EQ(decode("gzip", ""), ""); }

TEST(ContentDecoder, StopsAtTheLimit) {
  ContentDecoder decoder;
  ASSERT_TRUE(decoder.start("gzip", 1000));
  std::string out;
  ASSERT_TRUE(decoder.feed(gzip(sample()), out));
  EXPECT_TRUE(decoder.truncated());
  EXPECT_EQ(out.size(), 1000u);
  EXPECT_TRUE(decoder.finish());
}

TEST(ContentDecoder, RefusesABomb) {
  const std::string bomb = gzip(std::string(50'000'000, ' '));
  EXPECT_EQ(decode("gzip", bomb, 1 << 20, 1 << 30).error().code, Errc::too_large);
  const std::string twice = gzip(gzip(std::string(200'000'000, ' ')));
  EXPECT_EQ(decode("gzip, gzip", twice, 1 << 20, 1 << 30).error().code, Errc::too_large);
  const std::string hidden = gzip(gzip("x") + std::string(50'000'000, ' '));
  EXPECT_EQ(decode("gzip, gzip", hidden, 1 << 20, 1 << 30).error().code, Errc::too_large);
}

TEST(ContentDecoder, CanBeUsedAgainAfterAnything) {
  ContentDecoder decoder;
  std::string out;
  ASSERT_TRUE(decoder.start("gzip", kLimit));
  EXPECT_FALSE(decoder.feed("nonsense nonsense", out));
  for (int i = 0; i < 3; ++i) {
    out.clear();
    ASSERT_TRUE(decoder.start("gzip", kLimit));
    ASSERT_TRUE(decoder.feed(gzip("again"), out));
    ASSERT_TRUE(decoder.finish());
    EXPECT_EQ(out, "again");
  }
}

}  // namespace
}  // namespace argiope
