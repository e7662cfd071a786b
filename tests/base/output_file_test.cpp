// A file that is there whole or not at all, whatever fails on the way.
#include "base/internal/output_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

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
  std::filesystem::create_symlink("/dev/full", path);
  OutputFile full("export to", path);
  full.write(std::string(600'000, 'x'));
  const auto done = full.finish();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::disk_full);
  EXPECT_TRUE(std::filesystem::is_symlink(path));
}

// --- what a path may name

void write_output(const std::string& path, const std::string& text,
                  OutputFile::Readers readers = OutputFile::Readers::all) {
  EXPECT_TRUE(OutputFile::check("export to", path));
  OutputFile file("export to", path, readers);
  file.write(text);
  const auto done = file.finish();
  EXPECT_TRUE(done) << done.error().message;
}

struct stat status_of_file(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status;
}

TEST(OutputFile, LeavesADeviceADevice) {
  TemporaryFolder folder;
  const std::string path = folder.file("null"), link = folder.file("link");
  if (::mknod(path.c_str(), S_IFCHR | 0666, status_of_file("/dev/null").st_rdev) != 0)
    GTEST_SKIP() << "only root makes devices";
  const struct stat made = status_of_file(path);
  std::filesystem::create_symlink("null", link);
  for (const std::string& name : {path, link}) {
    EXPECT_FALSE(OutputFile::is_plain(name));
    write_output(name, "x");
    write_output(name, "x", OutputFile::Readers::owner);
  }
  EXPECT_EQ(status_of_file(path).st_mode, made.st_mode);
  EXPECT_EQ(status_of_file(path).st_rdev, made.st_rdev);
}

TEST(OutputFile, IsReadAtTheOtherEndOfAPipe) {
  TemporaryFolder folder;
  const std::string path = folder.file("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::string got;
  std::jthread reader([&] { got = contents_of(path); });
  write_output(path, std::string(600'000, 'x'));
  reader.join();
  EXPECT_EQ(got, std::string(600'000, 'x'));
  EXPECT_TRUE(S_ISFIFO(status_of_file(path).st_mode));
}

TEST(OutputFile, GoesWhereALinkLeadsWhetherThereIsAFileOrNot) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder.file("other"));
  std::filesystem::create_symlink("other/second", folder.file("first"));
  std::filesystem::create_symlink(folder.file("real"), folder.file("other/second"));
  for (const char* const text : {"new", "again"}) {
    write_output(folder.file("first"), text);
    EXPECT_EQ(contents_of(folder.file("real")), text);
  }
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("first")));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("other/second")));
  std::filesystem::create_symlink("loop", folder.file("loop"));
  EXPECT_EQ(OutputFile::check("export to", folder.file("loop")).error().message,
            "export to " + folder.file("loop") + ": Too many levels of symbolic links");
}

TEST(OutputFile, KeepsOwnerAndModeOfWhatIsThere) {
  TemporaryFolder folder;
  const std::string path = folder.file("out");
  std::ofstream(path) << "old and longer";
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    ASSERT_EQ(::chown(path.c_str(), 12, 34), 0);
  }
  write_output(path, "new");
  EXPECT_EQ(contents_of(path), "new");
  EXPECT_EQ(status_of_file(path).st_mode & 07777, 0640u);
  if (is_root) {
    EXPECT_EQ(status_of_file(path).st_uid, 12u);
    EXPECT_EQ(status_of_file(path).st_gid, 34u);
  }
  write_output(path, "secret", OutputFile::Readers::owner);
  EXPECT_EQ(status_of_file(path).st_mode & 07777, 0600u);
}

TEST(OutputFile, IsWrittenIntoWhatADescriptorHas) {
  TemporaryFolder folder;
  const std::string path = folder.file("out");
  std::ofstream(path) << "before ";
  const int given = ::open(path.c_str(), O_WRONLY | O_APPEND);  // as a shell gives it
  ASSERT_GE(given, 0);
  for (const std::string& name : {"/dev/fd/" + std::to_string(given), "/proc/self/fd/" + std::to_string(given)})
    write_output(name, "x");
  std::filesystem::create_symlink("/dev/fd/" + std::to_string(given), folder.file("link"));
  write_output(folder.file("link"), "y");
  EXPECT_EQ(contents_of(path), "before xxy");
  EXPECT_EQ(::fcntl(given, F_SETFD, FD_CLOEXEC), 0);
  EXPECT_EQ(OutputFile::check("export to", folder.file("link")).error().message,
            "export to " + folder.file("link") + ": Bad file descriptor")
      << "one of ours";
  ::close(given);
}

TEST(OutputFile, TouchesNoFileOfASimilarName) {
  TemporaryFolder folder;
  const std::string path = folder.file("out");
  std::ofstream(path + ".part") << "a download of mine";
  std::ofstream(path + ".try") << "mine";
  std::filesystem::create_symlink(path + ".try", path + ".part-2");
  write_output(path, "new");
  EXPECT_EQ(contents_of(path), "new");
  EXPECT_EQ(contents_of(path + ".part"), "a download of mine");
  EXPECT_EQ(contents_of(path + ".try"), "mine");
  EXPECT_TRUE(std::filesystem::is_symlink(path + ".part-2"));
}

TEST(OutputFile, MayHaveANameOfAnyLength) {
  TemporaryFolder folder;
  const std::string path = folder.file(std::string(255, 'n'));
  for (const char* const text : {"new", "again"}) {
    write_output(path, text);
    EXPECT_EQ(contents_of(path), text);
  }
}

TEST(OutputFile, ThatMayNotBeReplacedIsWrittenInto) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another";
  TemporaryFolder folder;
  const std::string path = folder.file("out");
  std::ofstream(path) << "old and longer";
  ASSERT_EQ(::chmod(folder.file("").c_str(), 0755), 0);
  ASSERT_EQ(::chown(path.c_str(), 12, 34), 0);
  ASSERT_EQ(::seteuid(12), 0);
  const auto forbidden = OutputFile::check("export to", path + "2");
  write_output(path, "new");
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_FALSE(forbidden);
  EXPECT_EQ(contents_of(path), "new");
  EXPECT_EQ(status_of_file(path).st_uid, 12u);
}

TEST(OutputFile, OfAnotherThatMayBeNeitherReplacedNorWrittenIsRefusedWhenItIsTried) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another";
  TemporaryFolder folder;
  const std::string path = folder.file("out");
  std::ofstream(path) << "old";
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  ASSERT_EQ(::chmod(folder.file("").c_str(), 0777), 0);
  ASSERT_EQ(::seteuid(12), 0);
  const auto refused = OutputFile::check("export to", path);
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_FALSE(refused) << "the new file cannot be given to the owner of the old one";
  EXPECT_EQ(refused.error().message, "export to " + path + ": Permission denied");
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  ASSERT_EQ(::seteuid(12), 0);
  const auto written_into = OutputFile::check("export to", path);
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_TRUE(written_into);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(std::filesystem::path(path).parent_path()), {}), 1);
}

TEST(OutputFile, IsNoSocketWhichIsFoundOutWhenItIsTried) {
  TemporaryFolder folder;
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = folder.file("s");
  ASSERT_LT(path.size(), sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  const int made = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(made, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(made);
  EXPECT_EQ(OutputFile::check("export to", path).error().message, "export to " + path + ": No such device or address");
}

TEST(Csv, QuotesWhatNeedsIt) {
  std::string line;
  for (const char* field : {"plain", "a,b", "say \"x\"", "two\nlines", ""}) append_csv_field(line, field);
  end_csv_line(line);
  EXPECT_EQ(line, "plain,\"a,b\",\"say \"\"x\"\"\",\"two\nlines\",\r\n");
}

}  // namespace
}  // namespace argiope
