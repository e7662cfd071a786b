// One file has one use in a command, whatever names and links lead to it.
#include "cli/command_files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

class CommandFilesTest : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return folder_.file(name); }
  std::string made(const std::string& name) const {
    std::ofstream(file(name)) << name;
    return file(name);
  }
  std::string why() const {
    const auto good = files_.check();
    return good ? std::string() : good.error().message;
  }

  const TemporaryFolder folder_;
  CommandFiles files_;
};

TEST_F(CommandFilesTest, EachHasItsOwn) {
  files_.reads("FILE", made("in"));
  files_.reads("--config", file("in"));
  files_.keeps_database("--db", file("c.db"));
  files_.keeps_archive("--warc", file("w"));
  files_.writes("--html", file("r.html"));
  files_.writes("--export", file("e.csv"));
  EXPECT_EQ(why(), "");
  EXPECT_FALSE(std::filesystem::exists(file("r.html"))) << "nothing is made";
}

TEST_F(CommandFilesTest, AnOutputIsNoInput) {
  files_.reads("FILE", made("in"));
  files_.writes("--html", file("in"));
  EXPECT_EQ(why(), "--html " + file("in") + ": FILE names the same file");
}

TEST_F(CommandFilesTest, LinksLeadToOneFile) {
  std::filesystem::create_hard_link(made("in"), file("hard"));
  std::filesystem::create_symlink("hard", file("soft"));
  files_.reads("FILE", file("in"));
  files_.writes("--html", file("soft"));
  EXPECT_EQ(why(), "--html " + file("soft") + ": FILE names the same file");
}

TEST_F(CommandFilesTest, WhatIsNotThereYetIsOneByFolderAndName) {
  std::filesystem::create_directory(file("sub"));
  std::filesystem::create_directory_symlink("sub", file("other"));
  files_.keeps("--output", file("sub/x"));
  files_.writes("--html", file("other/../sub/x"));
  EXPECT_EQ(why(), "--html " + file("other/../sub/x") + ": --output names the same file");
}

TEST_F(CommandFilesTest, CaseCountsAsTheFolderHasIt) {
  files_.keeps("--output", file("x"));
  files_.writes("--html", file("X"));
  std::ofstream(file("a"));
  EXPECT_EQ(why().empty(), !std::filesystem::exists(file("A")));
}

TEST_F(CommandFilesTest, ADatabaseHasFilesBesideIt) {
  for (const std::string ending : {"-wal", "-shm", "-journal"}) {
    CommandFiles files;
    files.reads_database("DB", file("c.db"));
    files.writes("--output", file("c.db" + ending));
    const auto good = files.check();
    ASSERT_FALSE(good);
    EXPECT_EQ(good.error().message,
              "--output " + file("c.db" + ending) + ": DB " + file("c.db") + " has this file for its own");
  }
}

TEST_F(CommandFilesTest, AnArchiveHasAnIndexAndGoesOnInOtherFiles) {
  for (const std::string name : {"w.warc.gz", "w.cdxj", "w-00001.warc.gz", "w-99999.warc.gz"}) {
    CommandFiles files;
    files.keeps_archive("--warc", file("w"));
    files.writes("--html", file(name));
    const auto good = files.check();
    EXPECT_FALSE(good) << name;
  }
  files_.keeps_archive("--warc", file("w"));
  files_.writes("--html", file("w-1.html"));
  EXPECT_EQ(why(), "");
}

TEST_F(CommandFilesTest, AMirrorHasItsFolders) {
  std::filesystem::create_directories(file("site/.argiope-mirror"));
  std::filesystem::create_directories(file("site/example.org"));
  std::filesystem::create_hard_link(made("site/.argiope-mirror/index"), file("log"));
  for (const std::string name : {"site/.argiope-mirror/index", "site/example.org/x", "log"}) {
    CommandFiles files;
    files.keeps_mirror("--save", file("site"));
    files.writes("--html", file(name));
    EXPECT_FALSE(files.check()) << name;
  }
  files_.keeps_mirror("--save", file("site"));
  files_.writes("--html", file("site/report.html"));
  EXPECT_EQ(why(), "");
}

TEST_F(CommandFilesTest, PipesHaveManyUses) {
  ASSERT_EQ(::mkfifo(file("pipe").c_str(), 0600), 0);
  files_.keeps("--output", file("pipe"));
  files_.writes("--html", file("pipe"));
  EXPECT_EQ(why(), "");
}

TEST_F(CommandFilesTest, AFileMayBeRenewedByItsOwnOption) {
  files_.reads("--load-cookies", made("jar"), "--save-cookies");
  files_.writes("--save-cookies", file("jar"));
  EXPECT_EQ(why(), "");
  files_.writes("--html", file("jar"));
  EXPECT_EQ(why(), "--html " + file("jar") + ": --load-cookies names the same file");
}

TEST_F(CommandFilesTest, WhatIsWrittenAtTheEndIsTriedBefore) {
  files_.writes("--html", file("none/x"));
  EXPECT_EQ(why(), "--html " + file("none/x") + ": No such file or directory");
}

}  // namespace
}  // namespace argiope
