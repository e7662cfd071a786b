// Who changed what: kept in order, beyond the end of the process, within bounds, and without secrets.
#include "serve/gate/audit_log.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "argiope/async/group.hpp"
#include "serve/api_fixture.hpp"
#include "serve/base/plain_file.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return (std::ostringstream() << file.rdbuf()).str();
}

class AuditLogs : public ApiTest {
 protected:
  std::unique_ptr<AuditLog> opened(AuditOptions options = {}) {
    options.file = file_;
    auto log = std::make_unique<AuditLog>(std::move(options));
    const auto done = log->open();
    EXPECT_TRUE(done) << done.error().message;
    return log;
  }
  void add(AuditLog& log, std::string path, WallTime at = kNow) {
    run([&]() -> Coro<void> {
      log.add({.at = at, .who = "ann", .method = "PUT", .path = path, .status = 200});
      co_await log.written();
    });
  }
  static Coro<void> add_after(AuditLog& log, int number) {
    co_await sleep(std::chrono::milliseconds{number % 7});
    log.add({.at = kNow, .path = fmt::format("/{}", number), .status = 200});
    co_await log.written();
  }
  static std::vector<std::uint64_t> numbers(const AuditLog& log) {
    std::vector<std::uint64_t> out;
    for (const auto& entry : log.entries()) out.push_back(entry.number);
    return out;
  }

  static constexpr WallTime kNow{std::chrono::days{20'000}};
  TemporaryFolder folder_;
  const std::string file_ = folder_.file("audit.jsonl");
};

TEST_F(AuditLogs, OutliveTheProcessAndCountOn) {
  add(*opened(), "/a");
  auto log = opened();
  EXPECT_THAT(numbers(*log), ElementsAre(1));
  add(*log, "/b");
  EXPECT_THAT(text_of(file_), HasSubstr(R"("path":"/b")")) << "before the log is closed";
  log.reset();
  log = opened();
  EXPECT_THAT(numbers(*log), ElementsAre(1, 2));
  EXPECT_EQ(log->entries()[1].at, kNow);
  EXPECT_THAT(log->entries()[1].json, HasSubstr(R"("who":"ann")"));
}

TEST_F(AuditLogs, HaveWhatIsNoRequestOfTheApiInTheSameWords) {
  auto log = opened();
  run([&]() -> Coro<void> {
    log->add({.at = kNow,
              .who = "operator",
              .from = "this machine",
              .method = "SIGHUP",
              .path = "/v1/config",
              .request = audited_text(R"({"queues":{"changed":["mail"]},"tokens":{"removed":["ann"]}})"),
              .status = 200});
    co_return;
  });
  EXPECT_THAT(log->entries().front().json,
              HasSubstr(R"("request":"{\"queues\":{\"changed\":[\"mail\"]},\"tokens\":{\"removed\":[\"ann\"]}}")"));
}

TEST_F(AuditLogs, AreForTheirOwnerToRead) {
  add(*opened(), "/a");
  struct ::stat status {};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(AuditLogs, LoseNoEntryToOneThatACrashHasCutOff) {
  add(*opened(), "/a");
  std::ofstream(file_, std::ios::app) << "\n{\"number\":7,\"at\":\nnot json\n{\"number\":2,\"at\":\"2026-01-0";
  auto log = opened();
  EXPECT_THAT(numbers(*log), ElementsAre(1));
  add(*log, "/b");
  log.reset();
  EXPECT_THAT(numbers(*opened()), ElementsAre(1, 2));
}

TEST_F(AuditLogs, LeaveAFileOfAnotherProgramAsItIs) {
  for (const std::string notes : {"my notes without an end", "my notes\nmore\n", " ", "\n"}) {
    std::ofstream(file_) << notes;
    AuditLog log({.file = file_});
    const auto done = log.open();
    ASSERT_FALSE(done) << notes;
    EXPECT_EQ(done.error().code, Errc::wrong_format);
    EXPECT_THAT(done.error().message, HasSubstr("audit.jsonl: another program has written it"));
    EXPECT_EQ(text_of(file_), notes);
  }
}

TEST(PlainFiles, AreReplacedAndNothingElse) {
  const TemporaryFolder folder;
  const std::string pipe = folder.file("pipe"), file = folder.file("file"), link = folder.file("link");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto refused = replace_file(pipe, "x");  // and nobody waits for who reads it
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::refused);
  std::filesystem::create_symlink("file", link);
  EXPECT_TRUE(replace_file(link, "one"));
  EXPECT_TRUE(replace_file(link, "two"));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(text_of(file), "two");
}

TEST_F(AuditLogs, AreKeptInMemoryAloneWhereTheirFileIsTheNullDevice) {
  if (::mknod(file_.c_str(), S_IFCHR | 0666, ::makedev(1, 3)) != 0) GTEST_SKIP() << "only root makes devices";
  for (int start = 0; start < 2; ++start) {
    auto log = opened();
    EXPECT_THAT(numbers(*log), ElementsAre());
    add(*log, "/a");
    EXPECT_THAT(numbers(*log), ElementsAre(1));
  }
  struct ::stat status {};
  ASSERT_EQ(::lstat(file_.c_str(), &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode)) << "it is left as it is";
}

TEST_F(AuditLogs, KeepTheLastOnesAndWriteTheFileAnewNowAndThen) {
  auto log = opened({.most_entries = 10});
  run([&]() -> Coro<void> {
    for (int i = 0; i < 1'500; ++i) log->add({.at = kNow, .path = fmt::format("/{}", i), .status = 200});
    co_await log->written();
  });
  EXPECT_EQ(log->entries().size(), 10u);
  add(*log, "/last");
  add(*log, "/really");
  EXPECT_LT(std::filesystem::file_size(file_), 10'000u);
  log.reset();
  log = opened({.most_entries = 10});
  EXPECT_EQ(log->entries().size(), 10u);
  EXPECT_EQ(log->entries().back().number, 1'502u);
}

TEST_F(AuditLogs, KeepNoMoreBytesThanTheyMay) {
  auto log = opened({.most_bytes = 1'000});
  run([&]() -> Coro<void> {
    for (int i = 0; i < 20; ++i) log->add({.at = kNow, .request = std::string(300, 'x'), .status = 200});
    co_await log->written();
  });
  EXPECT_EQ(log->entries().size(), 2u);
}

TEST_F(AuditLogs, ForgetWhatIsTooOld) {
  auto log = opened({.keep = 24h});
  add(*log, "/old", kNow - 25h);
  add(*log, "/new", kNow - 23h);
  EXPECT_EQ(log->prune(kNow), 1u);
  EXPECT_THAT(numbers(*log), ElementsAre(2));
}

TEST_F(AuditLogs, KeepWhatCannotBeWrittenAndWriteItLater) {
  auto lost = std::make_unique<AuditLog>(AuditOptions{.file = folder_.file("nowhere/audit.jsonl")});
  EXPECT_FALSE(lost->open());
  run([&]() -> Coro<void> {
    lost->add({.at = kNow, .path = "/b", .status = 200});
    co_await lost->written();
  });
  EXPECT_EQ(lost->entries().size(), 1u);
  std::filesystem::create_directory(folder_.file("nowhere"));
  add(*lost, "/c");
  EXPECT_THAT(text_of(folder_.file("nowhere/audit.jsonl")), HasSubstr(R"("path":"/b")"));
}

TEST_F(AuditLogs, GoOnInAnotherFileWhenTheirsIsMovedAway) {
  auto log = opened();
  add(*log, "/a");
  std::filesystem::rename(file_, file_ + ".1");
  add(*log, "/b");
  add(*log, "/c");
  EXPECT_THAT(text_of(file_ + ".1"), HasSubstr(R"("path":"/a")"));
  EXPECT_THAT(text_of(file_), ::testing::AllOf(HasSubstr(R"("path":"/b")"), HasSubstr(R"("path":"/c")")));
}

TEST_F(AuditLogs, AreInOrderHoweverManyWriteAtOnce) {
  auto log = opened();
  run([&]() -> Coro<void> {
    co_await TaskGroup::run([&](TaskGroup& group) {
      for (int i = 0; i < 50; ++i) group.create_task(add_after(*log, i));
    });
  });
  log.reset();
  EXPECT_EQ(opened()->entries().size(), 50u);
}

TEST(AuditedText, HasNeitherPayloadsNorSecrets) {
  EXPECT_EQ(audited_text(R"({"name":"s","job":{"queue":"q","payload":"secret"},"list":[{"headers":{"A":"b"}},2]})"),
            R"({"name":"s","job":{"queue":"q","payload":"…"},"list":[{"headers":"…"},2]})");
  EXPECT_EQ(
      audited_text(
          R"({"source":"[project]","note":"n","rule":[{"request":{"cookies":{"a":"b"},"body":"c","body_base64":"d","proxy":"e","method":"PUT"}}]})"),
      R"({"source":"…","note":"n","rule":[{"request":{"cookies":"…","body":"…","body_base64":"…","proxy":"…","method":"PUT"}}]})");
  EXPECT_EQ(
      audited_text(
          R"({"project":{"processor":{"webhook":"https://a.test/b"}},"sink":[{"webhook":"https://u:p@a.test:8443/b?c"},{"webhook":"https://a.test/"},{"webhook":1},{"postgresql":"d"}]})"),
      R"({"project":{"processor":{"webhook":"https://a.test/…"}},"sink":[{"webhook":"https://a.test:8443/…"},{"webhook":"https://a.test/"},{"webhook":"…"},{"postgresql":"…"}]})");
  EXPECT_EQ(audited_text(
                R"({"rule":[{"request":{"render":{"script":"a","width":5}}}],"render":{"script":"b"},"script":"c"})"),
            R"({"rule":[{"request":{"render":{"script":"…","width":5}}}],"render":{"script":"…"},"script":"…"})");
  EXPECT_EQ(
      audited_text(
          R"({"project":{"start":["https://u:p@a.test/b","https://a.test/"],"note":["x"]},"trigger":{"start":"2026-01-01T00:00:00Z"}})"),
      R"({"project":{"start":["https://…@a.test/b","https://a.test/"],"note":["x"]},"trigger":{"start":"2026-01-01T00:00:00Z"}})");
  EXPECT_EQ(audited_text("password=1234"), "");
  EXPECT_EQ(audited_text(""), "");
  const std::string longer = audited_text(fmt::format(R"({{"why":"{}"}})", std::string(5'000, 'x')));
  EXPECT_LT(longer.size(), 1'100u);
  EXPECT_TRUE(longer.ends_with("…"));
}

TEST_F(AuditLogs, TellOfChangesWhenTheAnswerComes) {
  open({.audit = {.file = file_}});
  ASSERT_TRUE(api_->open());
  put("/v1/queues/mail", R"({"rate":1})");
  EXPECT_THAT(text_of(file_), HasSubstr(R"("path":"/v1/queues/mail","request":"{\"rate\":1}","status":200)"));
  post("/v1/schedules", R"({"name":"s","trigger":"@every 1h","job":{"payload":"hush"}})");
  EXPECT_THAT(text_of(file_), Not(HasSubstr("hush")));
  EXPECT_EQ(get("/v1/audit?after=1").text("/entries/0/path"), "/v1/schedules");
}

}  // namespace
}  // namespace argiope
