// Records of WARC files: heads, blocks, and what is wrong where.
#include "warc/internal/warc_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "support/deflate.hpp"
#include "warc/internal/gzip_packer.hpp"
#include "warc/internal/sha1.hpp"
#include "warc/internal/warc_capture.hpp"

namespace argiope {
namespace {

using ::testing::HasSubstr;

std::string plain_record(std::string_view type, std::string_view block, std::string_view more_fields = {}) {
  return "WARC/1.1\r\nWARC-Type: " + std::string(type) + "\r\n" + std::string(more_fields) +
         "Content-Length: " + std::to_string(block.size()) + "\r\n\r\n" + std::string(block) + "\r\n\r\n";
}

struct ReadWarc {
  std::vector<WarcRecord> records;
  std::string error;
  Errc code = Errc::internal;
  std::uint64_t position = 0;
  bool ends_early = false;

  explicit ReadWarc(std::string_view file, WarcReaderLimits limits = {}) {
    WarcReader reader(warc_bytes_of(file), "test.warc", limits);
    WarcRecord record;
    for (;;) {
      const auto read = reader.next(record);
      position = reader.position();
      ends_early = reader.ends_early();
      if (read && *read) {
        records.push_back(record);
        continue;
      }
      if (!read) {
        error = read.error().message;
        code = read.error().code;
      }
      return;
    }
  }
};

TEST(WarcReader, ReadsPlainAndPackedFilesAlikeWithThePlaceOfEachRecord) {
  const std::string first = plain_record("response", "HTTP/1.1 200 OK\r\n\r\nhello", "WARC-Target-URI: http://a/\r\n");
  const std::string second = plain_record("request", "GET / HTTP/1.1\r\n\r\n");
  for (const bool packed : {false, true}) {
    const std::string parts[] = {packed ? gzip(first) : first, packed ? gzip(second) : second};
    const ReadWarc read(parts[0] + parts[1]);
    EXPECT_EQ(read.error, "");
    ASSERT_EQ(read.records.size(), 2u);
    EXPECT_EQ(read.records[0].offset, 0u);
    EXPECT_EQ(read.records[0].size, parts[0].size());
    EXPECT_EQ(read.records[1].offset, parts[0].size());
    EXPECT_EQ(read.records[1].size, parts[1].size());
    EXPECT_EQ(read.records[0].head.type(), WarcType::response);
    EXPECT_EQ(read.records[0].head.field("warc-target-uri"), "http://a/");
    EXPECT_EQ(read.records[0].block, "HTTP/1.1 200 OK\r\n\r\nhello");
    EXPECT_EQ(read.records[1].head.type(), WarcType::request);
  }
}

TEST(WarcReader, KeepsNoMoreOfABlockThanItIsTold) {
  const std::string large(1'000'000, 'x');
  for (const std::string& file : {plain_record("resource", large), gzip(plain_record("resource", large))}) {
    const ReadWarc read(file + plain_record("metadata", "m"), {.block_bytes = 100});
    ASSERT_EQ(read.records.size(), 2u) << read.error;
    EXPECT_EQ(read.records[0].block.size(), 100u);
    EXPECT_EQ(read.records[0].head.content_length(), large.size());
    EXPECT_EQ(read.records[1].block, "m");
  }
}

TEST(WarcReader, TellsAFileThatEndsWithinARecordFromADamagedOneAtEveryByte) {
  const std::string first = plain_record("response", "HTTP/1.1 200 OK\r\n\r\nhello");
  const std::string last = plain_record("response", "HTTP/1.1 200 OK\r\n\r\n" + std::string(300, 'x') + "end");
  for (const bool packed : {false, true}) {
    const std::string front = packed ? gzip(first) : first, back = packed ? gzip(last) : last;
    for (std::size_t size = 1; size < back.size(); ++size) {
      const ReadWarc read(front + back.substr(0, size));
      ASSERT_EQ(read.records.size(), 1u) << size;
      EXPECT_EQ(read.code, Errc::corrupt) << size;
      EXPECT_TRUE(read.ends_early) << size << ": " << read.error;
      EXPECT_EQ(read.position, front.size()) << size;
      EXPECT_EQ(read.error, "test.warc: byte " + std::to_string(front.size()) + ": the file ends within this record");
    }
  }
}

TEST(WarcReader, ReadsVersionsOfEarlyWriters) {
  for (const std::string version : {"WARC/0.9", "WARC/0.17", "WARC/0.18", "WARC/1.0", "warc/0.17", "Warc/1.0"}) {
    std::string record = plain_record("metadata", "m");
    record.replace(0, record.find('\r'), version);
    EXPECT_EQ(ReadWarc(record + record).records.size(), 2u) << version;
    EXPECT_EQ(ReadWarc(gzip(record) + gzip(record)).records.size(), 2u) << version;
  }
}

TEST(WarcReader, SaysWhatIsWrongAndAtWhichByte) {
  const std::string good = plain_record("metadata", "m");
  const struct {
    std::string bad, why;
    Errc code = Errc::corrupt;
  } cases[] = {
      {"HTTP/1.1 200 OK\r\n\r\n", "no record begins here"},
      {"WARC/2.0\r\n\r\n", "a record of the version \"WARC/2.0\""},
      {"WARC/1.1\r\nContent-Length: 1\r\n\r\nx\r\n\r\n", "without WARC-Type"},
      {"WARC/1.1\r\nWARC-Type: request\r\n\r\n", "without Content-Length"},
      {"WARC/1.1\r\nWARC-Type: request\r\nContent-Length: -1\r\n\r\n", "\"-1\" is no number"},
      {"WARC/1.1\r\nWARC-Type: request\r\nContent-Length: 99999999999999999999\r\n\r\n", "is no number"},
      {"WARC/1.1\r\nnonsense\r\n\r\n", "\"nonsense\" is no field"},
      {"WARC/1.1\r\nWARC-Type: request\r\nContent-Length: 1\r\n\r\nxyz\r\n\r\n",
       "longer or shorter than its Content-Length"},
      {"WARC/1.1\r\nX: " + std::string(70'000, 'x'), "a head of more than 65536 bytes", Errc::too_large},
      {"WARC/1.1\r\nWARC-Type: request\r\nContent-Length: 9999999999999\r\n\r\n", "a block of 9999999999999 bytes",
       Errc::too_large},
      {gzip(good + good), "more than one record"},
      {gzip("WARC/1.1\r\nWARC-Type: request\r\nContent-Length: 5\r\n\r\nx"), "shorter than the record"},
      {gzip("WARC/1.1\r\n"), "without a whole record head"},
      {gzip("something else"), "no record begins here"},
      {std::string("\x1f\x8b\x08\x00garbage that is no deflate", 30), "its gzip member is damaged"},
  };
  for (const auto& one : cases) {
    const ReadWarc read(good + one.bad);
    ASSERT_EQ(read.records.size(), 1u) << one.why;
    EXPECT_THAT(read.error, HasSubstr("test.warc: byte " + std::to_string(good.size()) + ": "));
    EXPECT_THAT(read.error, HasSubstr(one.why));
    EXPECT_EQ(read.code, one.code) << one.why;
    EXPECT_FALSE(read.ends_early) << one.why;
  }
}

TEST(WarcReader, NoticesADamagedByteOfAPackedRecord) {
  const std::string packed = gzip(plain_record("response", "HTTP/1.1 200 OK\r\n\r\n" + std::string(100, 'x')));
  // Behind the name, time and flags of gzip's own header, which say nothing of the data.
  for (std::size_t at = 10; at < packed.size(); ++at) {
    std::string damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_NE(ReadWarc(damaged).error, "") << at;
  }
}

TEST(WarcReader, ReadsOnFromAnyRecordAndLooksAtHeadsAlone) {
  std::string file;
  std::vector<std::uint64_t> offsets;
  for (int i = 0; i < 5; ++i) {
    offsets.push_back(file.size());
    file += gzip(
        plain_record("response", std::string(200'000, static_cast<char>('a' + i)), "X: " + std::to_string(i) + "\r\n"));
  }
  WarcReader reader(warc_bytes_of(file), "test.warc");
  for (const int i : {3, 0, 4, 4, 1}) {
    const auto head = reader.head_at(offsets[static_cast<std::size_t>(i)]);
    ASSERT_TRUE(head) << head.error().message;
    EXPECT_EQ(head->field("X"), std::to_string(i));
  }
  reader.seek(offsets[2]);
  WarcRecord record;
  for (int i = 2; i < 5; ++i) {
    ASSERT_TRUE(*reader.next(record));
    EXPECT_EQ(record.offset, offsets[static_cast<std::size_t>(i)]);
    EXPECT_EQ(record.block[0], 'a' + i);
  }
  EXPECT_FALSE(*reader.next(record));
  EXPECT_FALSE(reader.head_at(file.size()));
}

TEST(WarcReader, FindsRecordsBehindADamagedOneAndNoneInGarbage) {
  const std::string good = plain_record("metadata", "m");
  const struct {
    std::string behind;
    bool more;
  } cases[] = {{std::string(1000, '\0'), false},
               {std::string(500'000, 'x') + gzip(good), true},
               {"\n" + good, true},
               {"WARC/ in the middle of a line, and \nWARC/ again", false},
               {std::string("\x1f\x8b\x08", 3), false}};
  for (const auto& one : cases) {
    const std::string file = good + "damaged" + one.behind;
    WarcReader reader(warc_bytes_of(file), "test.warc");
    WarcRecord record;
    ASSERT_TRUE(*reader.next(record));
    ASSERT_FALSE(reader.next(record));
    EXPECT_EQ(reader.next_behind()->has_value(), one.more) << one.behind.size();
  }
}

TEST(WarcHead, TakesLineFeedsFoldedLinesAndUrisInBrackets) {
  const auto head = WarcHead::parse(
      "WARC/1.0\nwarc-type: RESPONSE\nWARC-Target-URI: <http://a/>\nX-Long: one\n two\nContent-Length: 7\n\n");
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(head->type(), WarcType::response);
  EXPECT_EQ(head->field("WARC-Target-URI"), "http://a/");
  EXPECT_EQ(head->field("x-long"), "one two");
  EXPECT_EQ(head->content_length(), 7u);
  EXPECT_EQ(head->field("absent"), "");
}

TEST(WarcHead, IsWrittenSoThatNoValueBeginsALineOfItsOwn) {
  WarcHeadWriter writer;
  writer.begin(WarcType::request, "<urn:uuid:1>", WallTime{std::chrono::milliseconds{1'500}});
  writer.add("WARC-Target-URI", "http://a/\r\nX-Evil: 1");
  writer.add("WARC-IP-Address", "");
  EXPECT_EQ(writer.end(12),
            "WARC/1.1\r\nWARC-Type: request\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: 1970-01-01T00:00:01.500Z\r\n"
            "WARC-Target-URI: http://a/  X-Evil: 1\r\nContent-Length: 12\r\n\r\n");
}

TEST(WarcHead, GivesEachRecordAnIdOfItsOwn) {
  Random random{7};
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = new_record_id(random);
    EXPECT_THAT(
        id, ::testing::MatchesRegex("<urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}>"));
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 1000u);
}

TEST(WarcCapture, IsAResponseOrARevisitWithThePayloadOfAnother) {
  const std::string fields =
      "WARC-Target-URI: http://a/\r\nWARC-Date: 2026-01-02T03:04:05.678Z\r\nWARC-Payload-Digest: sha1:ABC\r\n";
  const std::string answer = "HTTP/1.1 404 Not Found\r\nX: y\r\nContent-Type: text/html; charset=utf-8\r\n\r\ngone";
  const auto capture = [](const std::string& file) {
    const ReadWarc read(file);
    return read.records.size() == 1 ? capture_of(read.records[0], "f.warc") : std::nullopt;
  };
  const auto response = capture(plain_record("response", answer, fields));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->url, "http://a/");
  EXPECT_EQ(response->timestamp, "20260102030405");
  EXPECT_EQ(response->status, 404);
  EXPECT_EQ(response->mime, "text/html");
  EXPECT_EQ(response->digest, "ABC");
  EXPECT_EQ(response->filename, "f.warc");
  const auto revisit =
      capture(plain_record("revisit", answer, fields + "WARC-Profile: " + std::string(kSamePayload) + "\r\n"));
  ASSERT_TRUE(revisit);
  EXPECT_TRUE(is_revisit(*revisit));
  EXPECT_FALSE(
      capture(plain_record("revisit", answer, fields + "WARC-Profile: " + std::string(kNotModified) + "\r\n")));
  EXPECT_FALSE(capture(plain_record("request", answer, fields)));
  EXPECT_FALSE(
      capture(plain_record("response", answer, "WARC-Target-URI: dns:a\r\nWARC-Date: 2026-01-02T03:04:05Z\r\n")));
}

TEST(GzipPacker, PacksAnythingSoThatZlibUnpacksIt) {
  Random random{3};
  GzipPacker packer;
  std::string noise(3'000'000, '\0');
  for (char& c : noise) c = static_cast<char>(random.next());
  for (const std::size_t size : {0, 1, 2, 100, 4096, 65536, 262143, 262144, 262145, 1'000'000, 3'000'000}) {
    for (const std::string& text : {noise.substr(0, size), std::string(size, 'a')}) {
      std::string file = "before";
      packer.append_member(file, {"WARC/1.1\r\nWARC-Type: resource\r\nContent-Length: ", std::to_string(text.size()),
                                  "\r\n\r\n", text, "\r\n\r\n"});
      const ReadWarc read(std::string_view(file).substr(6), {.block_bytes = 4'000'000});
      ASSERT_EQ(read.records.size(), 1u) << size << ": " << read.error;
      EXPECT_TRUE(read.records[0].block == text) << size;
    }
  }
}

TEST(Sha1, NamesBytesAsArchivesDo) {
  Sha1 sha1;
  // FIPS 180-4's example, and that of RFC 4648's letters on nothing.
  EXPECT_EQ(digest_name(sha1.of({"abc"})), "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5");
  EXPECT_EQ(digest_name(sha1.of({"a", "", "bc"})), "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5");
  EXPECT_EQ(digest_name(sha1.of({})), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
}

}  // namespace
}  // namespace argiope
