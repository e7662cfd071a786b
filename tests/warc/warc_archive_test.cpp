// Archives that grow: what is written, what a death leaves behind, and what another run makes of it.
#include "warc/internal/warc_archive.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "support/temporary_folder.hpp"
#include "warc/internal/cdxj.hpp"
#include "warc/internal/warc_reader.hpp"

namespace argiope {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

std::string page_text(int number, std::size_t size = 2000) {
  std::string text = "<html>page " + std::to_string(number) + ' ';
  Random random{static_cast<std::uint64_t>(number) + 1};
  while (text.size() < size) text += static_cast<char>(random.between('a', 'z'));
  return text;
}

class WarcArchiveTest : public testing::Test {
 protected:
  std::unique_ptr<WarcArchive> open(WarcArchiveOptions options = {}) {
    if (options.path.empty()) options.path = path_;
    auto archive = WarcArchive::open(std::move(options), clock_, Random{++seed_});
    EXPECT_TRUE(archive) << (archive ? "" : archive.error().message);
    return archive ? std::move(*archive) : nullptr;
  }
  Error refusal(WarcArchiveOptions options = {}) {
    if (options.path.empty()) options.path = path_;
    auto archive = WarcArchive::open(std::move(options), clock_, Random{1});
    EXPECT_FALSE(archive);
    return archive ? Error{} : archive.error();
  }

  WarcExchange exchange(const std::string& url, const std::string& body, int status = 200) {
    HttpRequest request;
    request.url = *Url::parse(url);
    HttpResponse response;
    response.status = status;
    response.headers.content_type = "text/html; charset=utf-8";
    response.body = body;
    response.remote = *IpAddress::parse("192.0.2.7");
    response.wire.request = "GET " + std::string(request.url.path_and_query()) + " HTTP/1.1\r\nHost: a.test\r\n\r\n";
    response.wire.head =
        "HTTP/1.1 " + std::to_string(status) + " Some\r\nContent-Type: text/html; charset=utf-8\r\n\r\n";
    WarcExchange exchange;
    exchange.assign(request, response, clock_.wall_now());
    clock_.advance(std::chrono::milliseconds{1500});
    return exchange;
  }
  void add_page(WarcArchive& archive, int number) {
    const auto added = archive.add(exchange("http://a.test/" + std::to_string(number), page_text(number)));
    ASSERT_TRUE(added) << added.error().message;
  }

  static std::vector<WarcRecord> records_of(const std::string& file) {
    auto bytes = open_warc_bytes(file);
    EXPECT_TRUE(bytes);
    WarcReader reader(*bytes, file);
    std::vector<WarcRecord> records;
    for (WarcRecord record;;) {
      const auto read = reader.next(record);
      EXPECT_TRUE(read) << (read ? "" : read.error().message);
      if (!read || !*read) return records;
      records.push_back(record);
    }
  }
  static std::vector<std::string> types_of(const std::string& file) {
    std::vector<std::string> types;
    for (const WarcRecord& record : records_of(file)) types.emplace_back(to_string(record.head.type()));
    return types;
  }
  std::vector<CdxjLine> index() const {
    std::vector<CdxjLine> lines;
    std::ifstream in(path_ + ".cdxj");
    for (std::string line; std::getline(in, line);) {
      const auto parsed = parse_cdxj(line);
      EXPECT_TRUE(parsed) << line;
      if (parsed) lines.push_back(*parsed);
    }
    return lines;
  }
  // Each line names a record that is there.
  void expect_index_fits(std::size_t lines) const {
    const auto all = index();
    EXPECT_EQ(all.size(), lines);
    std::set<std::pair<std::string, std::uint64_t>> places;
    for (const CdxjLine& line : all) {
      EXPECT_TRUE(places.emplace(line.filename, line.offset).second) << "twice";
      const std::string file = (std::filesystem::path(path_).parent_path() / line.filename).string();
      WarcReader reader(*open_warc_bytes(file), file);
      WarcRecord record;
      reader.seek(line.offset);
      const auto read = reader.next(record);
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_EQ(record.size, line.length);
      EXPECT_EQ(record.head.field("WARC-Target-URI"), line.url);
      EXPECT_EQ(record.head.field("WARC-Payload-Digest"), "sha1:" + line.digest);
    }
  }
  static std::string read(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(const std::string& file, std::string_view text) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
  }

  // Gives it the time of a change after that of the index.
  void change_after_index(const std::string& file) const {
    std::filesystem::last_write_time(file, std::filesystem::last_write_time(path_ + ".cdxj") + std::chrono::seconds{1});
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.file("site");
  const std::string file_ = path_ + ".warc.gz";
  ManualClock clock_;
  std::uint64_t seed_ = 0;
};

TEST_F(WarcArchiveTest, HasARecordForEachAnswerAndOneForItsRequest) {
  for (const std::string ending : {".warc.gz", ".warc"}) {
    const std::string file = path_ + ending;
    auto archive = open({.path = file, .info = {{"software", "spider/1\r\nX: y"}}});
    ASSERT_TRUE(archive->add(exchange("http://a.test/x?y", "<html>hello")));
    ASSERT_TRUE(archive->close());
    const auto records = records_of(file);
    ASSERT_EQ(records.size(), 3u);
    EXPECT_EQ(records[0].head.type(), WarcType::warcinfo);
    EXPECT_THAT(records[0].block, testing::StartsWith("software: spider/1  X: y\r\nformat: WARC File Format 1.1\r\n"));
    EXPECT_EQ(records[0].head.field("WARC-Filename"), "site" + ending);
    const WarcHead& response = records[1].head;
    EXPECT_EQ(response.type(), WarcType::response);
    EXPECT_EQ(response.field("WARC-Target-URI"), "http://a.test/x?y");
    EXPECT_EQ(response.field("WARC-Date").substr(0, 11), "2026-01-01T");
    EXPECT_EQ(response.field("WARC-IP-Address"), "192.0.2.7");
    EXPECT_EQ(response.field("Content-Type"), "application/http; msgtype=response");
    EXPECT_EQ(response.field("WARC-Payload-Digest"), "sha1:NIAJKCMWDJ5RCN63XKFACYJWCKP5IFLH");
    // Of a packed one the payload's alone; whoever reads the other knows by no other means whether its head is as it
    // was.
    EXPECT_EQ(response.field("WARC-Block-Digest").empty(), ending == ".warc.gz");
    EXPECT_EQ(records[1].block, "HTTP/1.1 200 Some\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<html>hello");
    const WarcHead& request = records[2].head;
    EXPECT_EQ(request.type(), WarcType::request);
    EXPECT_EQ(request.field("WARC-Concurrent-To"), response.field("WARC-Record-ID"));
    EXPECT_EQ(request.field("WARC-Date"), response.field("WARC-Date"));
    EXPECT_THAT(request.field("WARC-Block-Digest"), testing::StartsWith("sha1:"));
    EXPECT_EQ(records[2].block, "GET /x?y HTTP/1.1\r\nHost: a.test\r\n\r\n");
    expect_index_fits(1);
    std::filesystem::remove(path_ + ".cdxj");
  }
}

TEST_F(WarcArchiveTest, StoresAPayloadOnceAndRefersToItFromThenOn) {
  auto archive = open();
  ASSERT_TRUE(archive->add(exchange("http://a.test/1", page_text(1))));
  ASSERT_TRUE(archive->add(exchange("http://b.test/2", page_text(1))));
  ASSERT_TRUE(archive->add(exchange("http://a.test/3", page_text(3))));
  ASSERT_TRUE(archive->close());
  archive = open();  // and in another run
  ASSERT_TRUE(archive->add(exchange("http://a.test/3", page_text(3))));
  ASSERT_TRUE(archive->close());
  EXPECT_EQ(archive->totals().revisits, 1u);
  const auto records = records_of(file_);
  std::map<std::string, WarcRecord> by_id;
  std::vector<WarcRecord> revisits;
  for (const WarcRecord& record : records) {
    by_id[std::string(record.head.field("WARC-Record-ID"))] = record;
    if (record.head.type() == WarcType::revisit) revisits.push_back(record);
  }
  ASSERT_EQ(revisits.size(), 2u);
  const std::string urls[] = {"http://a.test/1", "http://a.test/3"};
  for (int i = 0; i < 2; ++i) {
    const WarcHead& revisit = revisits[static_cast<std::size_t>(i)].head;
    EXPECT_EQ(revisit.field("WARC-Profile"), kSamePayload);
    EXPECT_EQ(revisit.field("WARC-Refers-To-Target-URI"), urls[i]);
    const WarcRecord& original = by_id[std::string(revisit.field("WARC-Refers-To"))];
    EXPECT_EQ(original.head.type(), WarcType::response);
    EXPECT_EQ(original.head.field("WARC-Date"), revisit.field("WARC-Refers-To-Date"));
    EXPECT_EQ(original.head.field("WARC-Payload-Digest"), revisit.field("WARC-Payload-Digest"));
    EXPECT_EQ(revisits[static_cast<std::size_t>(i)].block,
              "HTTP/1.1 200 Some\r\nContent-Type: text/html; charset=utf-8\r\n\r\n");
  }
  expect_index_fits(4);
}

TEST_F(WarcArchiveTest, StoresAgainWhatIsSmallCutOffOrRefersToWhatIsGone) {
  auto archive = open();
  ASSERT_TRUE(archive->add(exchange("http://a.test/1", "small")));
  ASSERT_TRUE(archive->add(exchange("http://a.test/2", "small")));
  HttpRequest request;
  request.url = *Url::parse("http://a.test/cut");
  HttpResponse cut;
  cut.status = 200;
  cut.body = page_text(1);
  cut.truncated = true;
  WarcExchange cut_off;
  cut_off.assign(request, cut, clock_.wall_now());
  ASSERT_TRUE(archive->add(cut_off));
  ASSERT_TRUE(archive->add(cut_off));
  ASSERT_TRUE(archive->add(exchange("http://a.test/1", page_text(1))));
  ASSERT_TRUE(archive->close());
  EXPECT_EQ(archive->totals().revisits, 0u);
  EXPECT_EQ(archive->totals().responses, 5u);
  int truncated = 0;
  for (const WarcRecord& record : records_of(file_))
    truncated += record.head.field("WARC-Truncated") == "length" ? 1 : 0;
  EXPECT_EQ(truncated, 2);
  // The index knows a payload in a file that somebody has taken away.
  std::filesystem::rename(file_, folder_.file("elsewhere"));
  archive = open();
  ASSERT_TRUE(archive->add(exchange("http://a.test/1", page_text(1))));
  ASSERT_TRUE(archive->close());
  EXPECT_EQ(archive->totals().revisits, 0u);
}

TEST_F(WarcArchiveTest, WhatHasNotChangedIsARevisitThatNoIndexHas) {
  auto archive = open();
  ASSERT_TRUE(archive->add(exchange("http://a.test/1", "", 304)));
  ASSERT_TRUE(archive->close());
  const auto records = records_of(file_);
  EXPECT_EQ(records.at(1).head.type(), WarcType::revisit);
  EXPECT_EQ(records.at(1).head.field("WARC-Profile"), kNotModified);
  EXPECT_EQ(records.at(1).head.field("WARC-Refers-To-Target-URI"), "http://a.test/1");
  EXPECT_FALSE(std::filesystem::exists(path_ + ".cdxj"));
}

TEST_F(WarcArchiveTest, GoesOnInAnotherFileWhenOneIsFull) {
  for (int run = 0; run < 2; ++run) {
    auto archive = open({.most_bytes = 5000});
    for (int i = 0; i < 10; ++i) add_page(*archive, 10 * run + i);
    ASSERT_TRUE(archive->close());
  }
  std::size_t files = 0;
  for (int number = 1;; ++number, ++files) {
    char name[32];
    std::snprintf(name, sizeof name, "-%05d.warc.gz", number);
    if (!std::filesystem::exists(path_ + name)) break;
    EXPECT_EQ(types_of(path_ + name).at(0), "warcinfo") << name;
    EXPECT_LE(std::filesystem::file_size(path_ + name), 9000u);
  }
  EXPECT_GE(files, 5u);
  EXPECT_FALSE(std::filesystem::exists(file_));
  expect_index_fits(20);
}

TEST_F(WarcArchiveTest, HasItsIndexInOrderAtTheEnd) {
  auto archive = open();
  for (const int i : {5, 3, 9, 1}) add_page(*archive, i);
  ASSERT_TRUE(archive->close());
  std::vector<std::string> urls;
  for (const CdxjLine& line : index()) urls.push_back(line.url);
  EXPECT_THAT(urls, ElementsAre("http://a.test/1", "http://a.test/3", "http://a.test/5", "http://a.test/9"));
}

TEST_F(WarcArchiveTest, PutsTheIndexOfWhatDiedInOrderThoughNothingMoreComes) {
  auto archive = open();
  for (const int i : {5, 3, 9, 1}) add_page(*archive, i);
  ASSERT_TRUE(archive->write_out());
  archive.reset();
  archive = open();
  ASSERT_NE(archive, nullptr);
  ASSERT_TRUE(archive->close());
  std::vector<std::string> urls;
  for (const CdxjLine& line : index()) urls.push_back(line.url);
  EXPECT_THAT(urls, ElementsAre("http://a.test/1", "http://a.test/3", "http://a.test/5", "http://a.test/9"));
}

TEST_F(WarcArchiveTest, OfWhichNothingCameLeavesNoFile) {
  auto archive = open();
  ASSERT_TRUE(archive->close());
  EXPECT_FALSE(std::filesystem::exists(file_));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".cdxj"));
}

// --- after a death

TEST_F(WarcArchiveTest, CutsOffARecordThatIsNotWholeAtEveryByteOfIt) {
  for (const std::string ending : {".warc.gz", ".warc"}) {
    const std::string file = path_ + ending;
    auto archive = open({.path = file});
    add_page(*archive, 1);
    ASSERT_TRUE(archive->write_out());
    const std::string one = read(file), index_of_one = read(path_ + ".cdxj");
    ASSERT_TRUE(archive->add(exchange("http://a.test/2", page_text(2, 300))));
    ASSERT_TRUE(archive->write_out());
    archive.reset();
    const std::string two = read(file);
    const std::size_t response_ends = records_of(file).at(3).offset + records_of(file).at(3).size;
    for (std::size_t size = one.size() + 1; size < two.size(); ++size) {
      write(file, std::string_view(two).substr(0, size));
      write(path_ + ".cdxj", index_of_one);
      archive = open({.path = file});
      ASSERT_NE(archive, nullptr) << size;
      const bool has_response = size >= response_ends;
      const std::size_t left = has_response ? response_ends : one.size();
      if (size == left) {
        EXPECT_TRUE(archive->repairs().empty()) << size;
      } else {
        ASSERT_EQ(archive->repairs().size(), 1u) << size;
        EXPECT_EQ(archive->repairs()[0].cut_bytes, size - left) << size;
      }
      EXPECT_EQ(std::filesystem::file_size(file), left) << size;
      ASSERT_TRUE(archive->close());
      EXPECT_EQ(index().size(), has_response ? 2u : 1u) << size;
      archive.reset();
    }
    std::filesystem::remove(path_ + ".cdxj");
  }
}

TEST_F(WarcArchiveTest, FillsTheIndexUpAtEveryByteOfIt) {
  auto archive = open();
  for (int i = 0; i < 3; ++i) add_page(*archive, i);
  ASSERT_TRUE(archive->write_out());
  archive.reset();
  const std::string whole = read(path_ + ".cdxj");
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    write(path_ + ".cdxj", std::string_view(whole).substr(0, size));
    archive = open();
    ASSERT_NE(archive, nullptr) << size;
    // It knows all payloads.
    for (int i = 0; i < 3; ++i) add_page(*archive, i);
    EXPECT_EQ(archive->totals().revisits, 3u) << size;
    archive.reset();
    EXPECT_EQ(read(path_ + ".cdxj"), whole) << size;
  }
  write(path_ + ".cdxj", whole + std::string(100, '\0'));  // as after a power cut
  archive = open();
  ASSERT_NE(archive, nullptr);
  ASSERT_TRUE(archive->close());
  expect_index_fits(3);
}

// What a power cut leaves of an index: blocks that were never written are zeros, whatever is behind them.
TEST_F(WarcArchiveTest, FillsUpAnIndexThatIsTornInItsMidst) {
  for (const bool in_order : {false, true}) {
    auto archive = open();
    for (int i = 0; i < 6; ++i) add_page(*archive, i);
    ASSERT_TRUE(in_order ? archive->close() : archive->write_out());
    archive.reset();
    const std::string whole = read(path_ + ".cdxj");
    std::string torn = whole;
    const std::size_t second = whole.find('\n') + 1, third = whole.find('\n', second) + 1,
                      fourth = whole.find('\n', third) + 1;
    // Of two lines a part each, and the end of line between them.
    for (std::size_t i = second + 10; i < third + 20; ++i) torn[i] = '\0';
    torn.erase(fourth + 5, 30);
    write(path_ + ".cdxj", torn);
    archive = open();
    ASSERT_NE(archive, nullptr) << in_order;
    ASSERT_EQ(archive->repairs().size(), 1u);
    EXPECT_EQ(archive->repairs()[0].file, path_ + ".cdxj");
    EXPECT_EQ(archive->repairs()[0].odd_lines, 2u);
    for (int i = 0; i < 6; ++i) add_page(*archive, i);
    EXPECT_EQ(archive->totals().revisits, 6u) << "it knows all payloads";
    archive.reset();  // as if it was killed
    archive = open();
    ASSERT_NE(archive, nullptr);
    EXPECT_EQ(archive->repairs().size(), 1u);
    for (int i = 0; i < 6; ++i) add_page(*archive, i);
    ASSERT_TRUE(archive->close());
    expect_index_fits(12);
    archive = open();
    EXPECT_TRUE(archive->repairs().empty());
    archive.reset();
    for (const char* name : {".cdxj", ".warc.gz"}) std::filesystem::remove(path_ + name);
  }
}

TEST_F(WarcArchiveTest, FillsUpAnIndexThatHasLostLinesOfAnEarlierFile) {
  auto archive = open({.most_bytes = 3000});
  for (int i = 0; i < 6; ++i) add_page(*archive, i);
  ASSERT_TRUE(archive->close());
  archive.reset();
  std::string torn = read(path_ + ".cdxj");
  const std::size_t second = torn.find('\n') + 1;
  for (std::size_t i = second; torn[i] != '\n'; ++i) torn[i] = '\0';
  write(path_ + ".cdxj", torn);
  archive = open({.most_bytes = 3000});
  ASSERT_NE(archive, nullptr);
  for (int i = 0; i < 6; ++i) add_page(*archive, i);
  EXPECT_EQ(archive->totals().revisits, 6u);
  ASSERT_TRUE(archive->close());
  expect_index_fits(12);
}

TEST_F(WarcArchiveTest, IndexesFilesOfAnArchiveWhoseIndexIsGone) {
  auto archive = open({.most_bytes = 3000});
  for (int i = 0; i < 6; ++i) add_page(*archive, i);
  ASSERT_TRUE(archive->close());
  const std::string index = read(path_ + ".cdxj");
  std::filesystem::remove(path_ + ".cdxj");
  archive = open({.most_bytes = 3000});
  for (int i = 0; i < 6; ++i) add_page(*archive, i);
  EXPECT_EQ(archive->totals().revisits, 6u);
  ASSERT_TRUE(archive->close());
  expect_index_fits(12);
}

TEST_F(WarcArchiveTest, LosesNoRecordThatWasWrittenOutWhenItsProcessIsKilled) {
  const std::string told = folder_.file("told");
  const int rounds = 20;
  for (int round = 0; round < rounds; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(::pipe(pipe_ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto archive = WarcArchive::open({.path = path_}, clock_, Random{static_cast<std::uint64_t>(round)});
      if (!archive) ::_exit(1);
      for (int i = 0;; ++i) {
        const int number = 1000 * round + i;
        if (!(*archive)->add(exchange("http://a.test/" + std::to_string(number), page_text(number, 50'000))))
          ::_exit(1);
        if (i % 3 == 2 &&
            (!(*archive)->write_out() || ::write(pipe_ends[1], &number, sizeof number) != sizeof number)) {
          ::_exit(1);
        }
      }
    }
    ::close(pipe_ends[1]);
    // Killed while it works on, when it has told of some.
    int number = -1;
    for (int i = 0; i <= round % 4; ++i) ASSERT_EQ(::read(pipe_ends[0], &number, sizeof number), sizeof number);
    ::kill(child, SIGKILL);
    while (::read(pipe_ends[0], &number, sizeof number) == sizeof number) {
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ::close(pipe_ends[0]);
    auto archive = open();
    ASSERT_NE(archive, nullptr) << round;
    ASSERT_TRUE(archive->close());
    std::set<std::string> there;
    for (const CdxjLine& line : index()) there.insert(line.url);
    for (int i = 1000 * round; i <= number; ++i) {
      EXPECT_TRUE(there.contains("http://a.test/" + std::to_string(i))) << i;
    }
  }
  expect_index_fits(index().size());
  (void)records_of(file_);
}

// --- what it refuses

TEST_F(WarcArchiveTest, LeavesAloneWhatIsNoArchive) {
  for (const std::string& foreign :
       {std::string(1000, 'x'), std::string("\x1f\x8b\x08\x00 not really", 12) + std::string(1000, 'y')}) {
    write(file_, foreign);
    const Error error = refusal();
    EXPECT_EQ(error.code, Errc::wrong_format);
    EXPECT_THAT(error.message, HasSubstr("site.warc.gz: no WARC file; it is left as it is"));
    EXPECT_EQ(read(file_), foreign);
    EXPECT_FALSE(std::filesystem::exists(path_ + ".cdxj")) << "nothing is left beside it";
  }
  std::filesystem::remove(file_);
  write(path_ + ".cdxj", "notes of mine\n");
  EXPECT_EQ(refusal().code, Errc::wrong_format);
  EXPECT_EQ(read(path_ + ".cdxj"), "notes of mine\n");
  // Beside an archive, too; and without a line break, or with records that were torn.
  std::filesystem::remove(path_ + ".cdxj");
  auto archive = open();
  for (int i = 0; i < 3; ++i) add_page(*archive, i);
  ASSERT_TRUE(archive->close());
  const std::string torn = read(file_).substr(0, std::filesystem::file_size(file_) - 5);
  write(file_, torn);
  for (const std::string notes : {"notes of mine", "todo: 1", "org,example)/ my notes"}) {
    write(path_ + ".cdxj", notes);
    EXPECT_EQ(refusal().code, Errc::wrong_format);
    EXPECT_EQ(read(path_ + ".cdxj"), notes);
    EXPECT_EQ(read(file_), torn) << "nothing is cut off";
  }
  std::filesystem::remove(file_);
  for (const std::string& notes : {std::string("word"), std::string(1, '\0')}) {
    write(path_ + ".cdxj", notes);
    EXPECT_EQ(refusal().code, Errc::wrong_format) << "an index without a file";
    EXPECT_EQ(read(path_ + ".cdxj"), notes);
  }
}

TEST_F(WarcArchiveTest, HasItsIndexWhereALinkLeads) {
  std::filesystem::create_symlink("real.cdxj", path_ + ".cdxj");
  auto archive = open();
  for (const int i : {2, 0, 1}) add_page(*archive, i);
  ASSERT_TRUE(archive->close());
  EXPECT_TRUE(std::filesystem::is_symlink(path_ + ".cdxj"));
  expect_index_fits(3);
  std::filesystem::remove(path_ + ".cdxj");
  ASSERT_EQ(::mkfifo((path_ + ".cdxj").c_str(), 0600), 0);
  EXPECT_EQ(refusal().code, Errc::wrong_format);
}

TEST_F(WarcArchiveTest, IsWrittenWhereALinkToNothingLeads) {
  std::filesystem::create_symlink("real.warc.gz", path_ + ".warc.gz");
  auto archive = open();
  add_page(*archive, 0);
  ASSERT_TRUE(archive->close());
  EXPECT_TRUE(std::filesystem::is_symlink(path_ + ".warc.gz"));
  expect_index_fits(1);
}

TEST_F(WarcArchiveTest, AddsNothingToAFileThatIsDamagedInItsMiddle) {
  auto archive = open();
  for (int i = 0; i < 3; ++i) add_page(*archive, i);
  ASSERT_TRUE(archive->close());
  const auto records = records_of(file_);
  std::string damaged = read(file_);
  for (std::size_t i = 20; i < 60; ++i) damaged[records.at(3).offset + i] = '#';
  write(file_, damaged);
  std::filesystem::remove(path_ + ".cdxj");
  const Error error = refusal();
  EXPECT_EQ(error.code, Errc::corrupt);
  EXPECT_THAT(error.message, HasSubstr("byte " + std::to_string(records.at(3).offset)));
  EXPECT_THAT(error.message, EndsWith("give another name"));
  EXPECT_EQ(read(file_), damaged);
  // Zeros at the end are what a power cut leaves.
  write(file_, damaged.substr(0, records.at(3).offset) + std::string(5000, '\0'));
  archive = open();
  ASSERT_NE(archive, nullptr);
  EXPECT_EQ(archive->repairs().at(0).cut_bytes, 5000u);
}

// Behind its back: the index, which is older, names records on both sides of the damage.
TEST_F(WarcArchiveTest, AddsNothingToAFileThatWasDamagedAfterItsIndexWasWritten) {
  for (const std::string ending : {".warc.gz", ".warc"}) {
    const std::string file = path_ + ending;
    auto archive = open({.path = file});
    for (int i = 0; i < 5; ++i) add_page(*archive, i);
    ASSERT_TRUE(archive->close());
    const auto records = records_of(file);
    const std::string whole = read(file), index = read(path_ + ".cdxj");
    // The beginning of the second page's head, the rest of it, and the middle of its body.
    for (const std::uint64_t from : {records.at(3).offset, records.at(3).offset + 1, records.at(3).offset + 250,
                                     records.at(3).offset + records.at(3).size / 2}) {
      std::string damaged = whole;
      for (std::size_t i = 0; i < 40; ++i) damaged[from + i] = '\0';
      write(file, damaged);
      change_after_index(file);
      EXPECT_EQ(refusal({.path = file}).code, Errc::corrupt);
      EXPECT_THAT(refusal({.path = file}).message, EndsWith("nothing is added to a damaged file: give another name"));
      EXPECT_EQ(read(file), damaged);
      EXPECT_EQ(read(path_ + ".cdxj"), index);
    }
    // And where it was cut out.
    write(file, whole.substr(0, records.at(3).offset) + whole.substr(records.at(3).offset + records.at(3).size));
    change_after_index(file);
    EXPECT_THAT(refusal({.path = file}).message, HasSubstr("is of another file: remove it"));
    // One that was changed and is whole is added to, and need not be read whole a second time.
    write(file, whole);
    change_after_index(file);
    archive = open({.path = file});
    ASSERT_NE(archive, nullptr);
    add_page(*archive, 6);
    ASSERT_TRUE(archive->close());
    expect_index_fits(6);
    EXPECT_LE(std::filesystem::last_write_time(file), std::filesystem::last_write_time(path_ + ".cdxj"));
    std::filesystem::remove(path_ + ".cdxj");
  }
}

TEST_F(WarcArchiveTest, LeavesItsIndexYoungerThanItsFileWhateverWasWrittenLast) {
  auto archive = open();
  add_page(*archive, 1);
  ASSERT_TRUE(archive->write_out());
  change_after_index(file_);
  ASSERT_TRUE(archive->add(exchange("http://a.test/1", "", 304)));  // which has no line in the index
  ASSERT_TRUE(archive->write_out());
  EXPECT_LE(std::filesystem::last_write_time(file_), std::filesystem::last_write_time(path_ + ".cdxj"));
}

// --- a file that is gone, and its index that is not

TEST_F(WarcArchiveTest, ForgetsWhatItsIndexHasOfAFileThatIsGone) {
  auto archive = open({.most_bytes = 3000});
  for (int i = 0; i < 4; ++i) add_page(*archive, i);
  ASSERT_TRUE(archive->close());
  const std::size_t of_others = index().size();
  archive = open();
  for (int i = 10; i < 14; ++i) add_page(*archive, i);
  ASSERT_TRUE(archive->close());
  std::filesystem::remove(file_);
  archive = open();
  ASSERT_NE(archive, nullptr);
  ASSERT_EQ(archive->repairs().size(), 1u);
  EXPECT_EQ(archive->repairs()[0].file, file_);
  EXPECT_EQ(archive->repairs()[0].forgotten, 4u);
  EXPECT_EQ(refusal().code, Errc::busy) << "the index that took its place is locked, too";
  add_page(*archive, 12);
  EXPECT_EQ(archive->totals().revisits, 0u);
  ASSERT_TRUE(archive->close());
  expect_index_fits(of_others + 1);
}

TEST_F(WarcArchiveTest, GivesNoFileTheNumberOfOneThatItsIndexKnows) {
  auto archive = open({.most_bytes = 3000});
  for (int i = 0; i < 4; ++i) add_page(*archive, i);
  const std::string last = archive->file();
  ASSERT_TRUE(archive->close());
  archive.reset();
  std::filesystem::rename(last, folder_.file("kept elsewhere"));
  archive = open({.most_bytes = 3000});
  ASSERT_NE(archive, nullptr);
  EXPECT_GT(archive->file(), last);
  add_page(*archive, 5);
  ASSERT_TRUE(archive->close());
  std::filesystem::rename(folder_.file("kept elsewhere"), last);
  expect_index_fits(5);
}

TEST_F(WarcArchiveTest, SaysWhenTheIndexIsOfAnotherFile) {
  auto archive = open();
  for (int i = 0; i < 3; ++i) add_page(*archive, i);
  ASSERT_TRUE(archive->close());
  const std::string index = read(path_ + ".cdxj");
  constexpr std::string_view kOffset = "\"offset\": \"";
  // Of the last record, where reading begins; and of the first, beyond the end of the file.
  for (const std::size_t at : {index.rfind(kOffset), index.find(kOffset)}) {
    std::string of_another = index;
    of_another.insert(at + kOffset.size(), at == index.find(kOffset) ? "9999" : "");
    of_another[at + kOffset.size() + 1] ^= 1;
    write(path_ + ".cdxj", of_another);
    const Error error = refusal();
    EXPECT_EQ(error.code, Errc::corrupt);
    EXPECT_THAT(error.message, HasSubstr("remove it"));
    EXPECT_EQ(read(path_ + ".cdxj"), of_another);
  }
}

TEST_F(WarcArchiveTest, HasOneWriterAtATime) {
  const auto archive = open();
  EXPECT_EQ(refusal().code, Errc::busy);
}

TEST_F(WarcArchiveTest, SaysWhenItWasDeletedOrReplacedWhileItWasWritten) {
  for (const bool is_replaced : {false, true}) {
    for (const std::string& moved : {path_ + ".warc.gz", path_ + ".cdxj"}) {
      const auto archive = open();
      ASSERT_TRUE(archive->add(exchange("http://a.test/1", page_text(1))));
      ASSERT_TRUE(archive->write_out());
      std::filesystem::rename(moved, folder_.file("elsewhere"));
      if (is_replaced) write(moved, "");
      ASSERT_TRUE(archive->add(exchange("http://a.test/2", page_text(2))));
      const auto written = archive->write_out();
      ASSERT_FALSE(written) << moved;
      EXPECT_EQ(written.error().code, Errc::io);
      EXPECT_THAT(written.error().message,
                  testing::HasSubstr(moved + (is_replaced ? ": it was replaced by another file"
                                                          : ": it was deleted while it was in use")));
      EXPECT_FALSE(archive->close());
      for (const char* const ending : {".warc.gz", ".cdxj"}) std::filesystem::remove(path_ + ending);
    }
  }
}

TEST_F(WarcArchiveTest, ThatCannotBeWrittenSaysSoAndStaysWhole) {
  EXPECT_EQ(refusal({.path = folder_.file("no/such/folder/site")}).code, Errc::io);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // A disk that is full after 40,000 bytes.
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{40'000, 40'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto archive = WarcArchive::open({.path = path_}, clock_, Random{1});
    if (!archive) ::_exit(1);
    for (int i = 0; i < 1000; ++i) {
      auto added = (*archive)->add(exchange("http://a.test/" + std::to_string(i), page_text(i)));
      if (added) added = (*archive)->write_out();
      if (added) continue;
      const bool is_told = added.error().code == Errc::disk_full && added.error().message.contains("site.warc.gz") &&
                           added.error().message.contains("what was archived before is whole");
      const bool stays = !(*archive)->add(exchange("http://a.test/x", "x")) && !(*archive)->close();
      ::_exit(is_told && stays && i > 3 ? 0 : 2);
    }
    ::_exit(3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  const auto archive = open();
  ASSERT_NE(archive, nullptr);
  EXPECT_TRUE(archive->repairs().empty()) << "what could not be written whole was cut off at once";
}

}  // namespace
}  // namespace argiope
