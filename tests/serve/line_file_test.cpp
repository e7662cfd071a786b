// Lines beside the store: whole ones go on, and what is no file of ours does no harm.
#include "serve/base/line_file.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string bytes_in(const std::string& path) {
  std::ifstream file(path);
  return (std::ostringstream() << file.rdbuf()).str();
}

std::vector<std::string> kept_lines_of(LineFile& file) {
  std::vector<std::string> lines;
  const auto opened = file.open([&](std::string_view line) { lines.emplace_back(line); });
  EXPECT_TRUE(opened) << opened.error().message;
  return lines;
}
std::vector<std::string> kept_lines_of(const std::string& path) {
  LineFile file(path);
  return kept_lines_of(file);
}

TEST(LineFiles, GoOnBehindTheLastWholeLine) {
  const TemporaryFolder folder;
  const std::string path = folder.file("lines");
  std::ofstream(path) << "{1}\n{2}\n{hal";
  LineFile file(path);
  EXPECT_THAT(kept_lines_of(file), ElementsAre("{1}", "{2}"));
  EXPECT_TRUE(file.append("{3}\n"));
  EXPECT_EQ(bytes_in(path), "{1}\n{2}\n{3}\n");
}

TEST(LineFiles, CountALineThatIsTooLongAmongThoseThatNoneCanRead) {
  const TemporaryFolder folder;
  const std::string path = folder.file("lines");
  std::ofstream(path) << "{1}\n" << std::string(11, 'x') << "\n" << std::string(10, 'y') << "\n";
  LineFile file(path, 10);
  EXPECT_THAT(kept_lines_of(file), ElementsAre("{1}", "", std::string(10, 'y')));
  EXPECT_TRUE(file.append("{2}\n"));
  EXPECT_THAT(kept_lines_of(path), ElementsAre("{1}", std::string(11, 'x'), std::string(10, 'y'), "{2}"))
      << "nothing was cut off";
}

TEST(LineFiles, OfTheNullDeviceHaveNoLinesAndLeaveItADevice) {
  const TemporaryFolder folder;
  const std::string path = folder.file("null"), link = folder.file("link");
  if (::mknod(path.c_str(), S_IFCHR | 0666, ::makedev(1, 3)) != 0) GTEST_SKIP() << "only root makes devices";
  std::filesystem::create_symlink("null", link);
  for (const std::string& name : {path, link}) {
    LineFile file(name);
    EXPECT_THAT(kept_lines_of(file), IsEmpty());
    EXPECT_TRUE(file.append("one\n"));
    EXPECT_TRUE(file.replace("two\n"));
    EXPECT_TRUE(file.append("three\n"));
    EXPECT_THAT(kept_lines_of(name), IsEmpty());
  }
  struct ::stat status {};
  ASSERT_EQ(::lstat(path.c_str(), &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  EXPECT_EQ(status.st_rdev, ::makedev(1, 3));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
}

TEST(LineFiles, AreNoPipes) {
  const TemporaryFolder folder;
  const std::string path = folder.file("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(LineFile(path).open([](std::string_view) { FAIL(); }).error().code, Errc::refused);
}

}  // namespace
}  // namespace argiope
