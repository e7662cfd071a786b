// A file that is there whole or not at all, whatever fails on the way.
#include "base/internal/output_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/internal/csv.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

std::string contents_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(OutputFile, IsThereWhenItIsFinishedAndTakesTheOldOnesPlace) {
  TemporaryFolder folder;
  const std::string path = folder.file("out");
  std::ofstream(path) << "old";
  const std::string large(600'000, 'x');
  {
    OutputFile file("export to", path);
    file.write("new ");
    file.write(large);
    EXPECT_EQ(contents_of(path), "old");
    EXPECT_TRUE(file.finish());
  }
  EXPECT_EQ(contents_of(path), "new " + large);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(std::filesystem::path(path).parent_path()), {}), 1);
}

TEST(OutputFile, ThatIsNotFinishedLeavesNothing) {
  TemporaryFolder folder;
  const std::string path = folder.file("out");
  { OutputFile("export to", path).write("half"); }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
}

TEST(OutputFile, NamesItselfWhereItCannotBeWritten) {
  OutputFile file("export to", "/nowhere/out");
  EXPECT_FALSE(file.ok());
  file.write("x");
  const auto done = file.finish();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::io);
  EXPECT_EQ(done.error().message, "export to /nowhere/out: No such file or directory");
}

TEST(OutputFile, IsTriedBeforeThereIsAnythingToWriteAndNothingIsTouched) {
  TemporaryFolder folder;
  const std::string path = folder.file("out");
  std::ofstream(path) << "before";
  EXPECT_TRUE(OutputFile::check("export to", path));
  EXPECT_TRUE(OutputFile::check("export to", "-"));
  EXPECT_EQ(std::filesystem::file_size(path), 6u);
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
  OutputFile other("export to", path);  // of another process
  other.write("half");
  EXPECT_TRUE(OutputFile::check("export to", path));
  EXPECT_TRUE(std::filesystem::exists(path + ".part"));
  EXPECT_FALSE(std::filesystem::exists(path + ".try"));
  EXPECT_TRUE(other.finish());
  EXPECT_EQ(OutputFile::check("export to", path + "/x").error().message, "export to " + path + "/x: Not a directory");
  EXPECT_EQ(OutputFile::check("export to", folder.file(".")).error().message,
            "export to " + folder.file(".") + ": Is a directory");
}

TEST(OutputFile, ThatMeetsAFullDiskSaysSo) {
  TemporaryFolder folder;
  const std::string path = folder.file("out");
  std::filesystem::create_symlink("/dev/full", path + ".part");
  OutputFile full("export to", path);
  full.write(std::string(600'000, 'x'));
  const auto done = full.finish();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::disk_full);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Csv, QuotesWhatNeedsIt) {
  std::string line;
  for (const char* field : {"plain", "a,b", "say \"x\"", "two\nlines", ""}) append_csv_field(line, field);
  end_csv_line(line);
  EXPECT_EQ(line, "plain,\"a,b\",\"say \"\"x\"\"\",\"two\nlines\",\r\n");
}

}  // namespace
}  // namespace argiope
