// A command that is given a file of the wrong kind says which kind it is, and which command takes it.
#include "cli/file_kind.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

class FileKindTest : public testing::Test {
 protected:
  std::string with(const std::string& name, std::string_view text) const {
    std::ofstream(folder_.file(name), std::ios::binary) << text;
    return folder_.file(name);
  }
  FileKind kind(const std::string& name, std::string_view text) const { return kind_of_file(with(name, text)); }

  const TemporaryFolder folder_;
};

TEST_F(FileKindTest, IsToldByNameAndBeginning) {
  using enum FileKind;
  EXPECT_EQ(kind("shop.py", "import os\n"), script);
  EXPECT_EQ(kind("run", "#!/bin/sh\necho\n"), script);
  EXPECT_EQ(kind("a.html", "\n <!DOCTYPE html><title>x"), html);
  EXPECT_EQ(kind("jobs.jsonl", "{\"queue\":\"mail\"}\n{\"queue\":\"mail\"}\n"), json);
  EXPECT_EQ(kind("list.json", "[\n  {\"a\": 1}]"), json);
  EXPECT_EQ(kind("a.warc", "WARC/1.1\r\n"), archive);
  EXPECT_EQ(kind("a.warc.gz", "\x1f\x8b\x08"), archive);
  EXPECT_EQ(kind("pages.gz", "\x1f\x8b\x08"), unknown);
  EXPECT_EQ(kind("a.db", std::string_view("SQLite format 3\0\x10", 17)), database);
  EXPECT_EQ(kind("urls.txt", "# seeds\nhttps://example.org/\n"), urls);
  EXPECT_EQ(kind("crontab", "# mine\nMAILTO=ann@example.org\n30 3 * * mon-fri  ./backup --all\n"), crontab);
  EXPECT_EQ(kind("cron2", "@daily ./backup\n"), crontab);
  EXPECT_EQ(kind_of_file(std::filesystem::path(folder_.file("x")).parent_path()), folder);
  EXPECT_EQ(kind_of_file(folder_.file("none")), unknown);
  EXPECT_EQ(kind("empty", ""), unknown);
}

TEST_F(FileKindTest, OfTomlIsToldByItsTables) {
  using enum FileKind;
  EXPECT_EQ(kind("a", "[project]\nname = \"a\"\n[[rule]]\nname = \"b\"\n"), project);
  EXPECT_EQ(kind("b", "\xef\xbb\xbf[[rule]]\nname = \"b\"\n"), rules);
  EXPECT_EQ(kind("c", "# ours\n[[schedule]]   # nightly\nname = \"a\"\n"), configuration);
  EXPECT_EQ(kind("d", "[[project]]\nfile = \"a.toml\"\n"), configuration);
  EXPECT_EQ(kind("e", "[crawl]\nrate = 5\n"), crawl_settings);
  EXPECT_EQ(kind("f", "[misspelt]\nname = 1\n"), unknown);
  EXPECT_EQ(kind("g", "name = \"a\"\n30 = 3\n"), unknown);
}

TEST_F(FileKindTest, APipeIsNotRead) {
  const std::string pipe = folder_.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(kind_of_file(pipe), FileKind::unknown);
}

TEST_F(FileKindTest, OfAScriptInThePlaceOfAProjectTheProjectIsShown) {
  const std::string path = with("my shop.py", "import os\n");
  EXPECT_EQ(with_file_kind({Errc::invalid_input, "syntax"}, path, FileKind::project).message,
            path +
                ": this is a script; a project is a TOML file that names it:\n[project]\nname = \"my-shop\"\n"
                "processor = [\"python3\", \"-m\", \"argiope.processor\", \"" +
                path + "\"]");
  const std::string program = with("shop.mjs", "");
  EXPECT_TRUE(other_kind(program, FileKind::project)->message.ends_with("[\"node\", \"" + program + "\"]"));
}

TEST_F(FileKindTest, OfOtherFilesTheCommandIsNamedThatTakesThem) {
  const std::string archive = with("a.warc", "WARC/1.1\r\n");
  EXPECT_EQ(with_file_kind({Errc::invalid_input, "syntax"}, archive, FileKind::rules).message,
            archive + ": this is a WARC archive, and not a file of rules; argiope crawl replay FILE takes it");
  EXPECT_FALSE(other_kind(archive, FileKind::archive));
  EXPECT_FALSE(other_kind(folder_.file("none"), FileKind::archive));
}

TEST_F(FileKindTest, AnErrorInTomlKeepsItsLine) {
  const std::string project = with("a.toml", "[project]\nname = \"a\"\n");
  EXPECT_EQ(with_file_kind({Errc::invalid_input, "a.toml:1: tables"}, project, FileKind::configuration).message,
            "a.toml:1: tables; it looks like a project: argiope project run FILE takes it");
  EXPECT_EQ(with_file_kind({Errc::invalid_input, "a.toml:1: tables"}, project, FileKind::project).message,
            "a.toml:1: tables");
}

}  // namespace
}  // namespace argiope
