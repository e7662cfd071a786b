// Files of settings: whole, up to a bound, and while a program runs from plain files alone.
#include "base/internal/file_reading.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

class FileReadingTest : public ::testing::Test {
 public:
  std::string file(std::string_view text) const {
    std::ofstream(folder.file("a"), std::ios::binary) << text;
    return folder.file("a");
  }
  std::string pipe() const {
    EXPECT_EQ(::mkfifo(folder.file("p").c_str(), 0600), 0);
    return folder.file("p");
  }
  TemporaryFolder folder;
};

TEST_F(FileReadingTest, AFileIsReadWholeUpToItsBound) {
  const std::string text = std::string(40'000, 'x') + '\0' + "y";
  const std::string path = file(text);
  for (const FileReading reading : {FileReading::first, FileReading::again}) {
    EXPECT_EQ(read_file_text(path, text.size(), reading), text);
    EXPECT_EQ(read_file_text(path, text.size() - 1, reading).error().code, Errc::too_large);
    EXPECT_EQ(read_file_text(folder.file("nowhere"), 10, reading).error().code, Errc::not_found);
  }
  EXPECT_EQ(read_file_text(file(""), 0, FileReading::again), "");
}

// As of `<(generate)`.
TEST_F(FileReadingTest, APipeThatWasOpenedForTheProcessIsReadToItsEndAtFirst) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::jthread writer([&] {
    EXPECT_EQ(::write(ends[1], "[serve]\n", 8), 8);
    ::close(ends[1]);
  });
  EXPECT_EQ(read_file_text("/dev/fd/" + std::to_string(ends[0]), 100, FileReading::first), "[serve]\n");
  ::close(ends[0]);
}

TEST_F(FileReadingTest, ANamedPipeIsWaitedForWhereItIsAStream) {
  const std::string path = pipe();
  const std::jthread writer([&] { std::ofstream(path) << "a\nb\n"; });
  EXPECT_EQ(read_file_text(path, 100, FileReading::stream), "a\nb\n");
  EXPECT_EQ(read_file_text("/dev/zero", 100, FileReading::stream).error().code, Errc::refused);
}

TEST_F(FileReadingTest, AnOpenFileIsReadInPieces) {
  auto opened = InputFile::open(file("abcdef"), FileReading::again);
  ASSERT_TRUE(opened);
  InputFile moved = std::move(*opened);
  char two[2];
  EXPECT_EQ(moved.read(two), 2u);
  EXPECT_EQ(std::string_view(two, 2), "ab");
  EXPECT_EQ(moved.read_text(4), "cdef");
  EXPECT_EQ(moved.read(two), 0u);
}

TEST_F(FileReadingTest, WhatMayNeverEndIsNotOpened) {
  std::filesystem::create_symlink("/dev/zero", folder.file("link"));
  for (const std::string& path : {pipe(), std::string("/dev/zero"), folder.file("link")}) {
    const auto text = read_file_text(path, 100, FileReading::first);
    ASSERT_FALSE(text) << path;
    EXPECT_EQ(text.error().code, Errc::refused) << path;
    EXPECT_EQ(text.error().message, "is not a plain file, nor a pipe that was opened for this process");
    EXPECT_FALSE(expect_readable_file(path, FileReading::first)) << path;
  }
}

TEST_F(FileReadingTest, ASparseFileIsReadUpToItsBoundAlone) {
  std::filesystem::resize_file(file("x"), std::uintmax_t{10} << 30);
  EXPECT_EQ(read_file_text(folder.file("a"), 100, FileReading::first).error().code, Errc::too_large);
}

TEST_F(FileReadingTest, TheNullDeviceIsAnEmptyFile) {
  EXPECT_EQ(read_file_text("/dev/null", 0, FileReading::first), "");
}

TEST_F(FileReadingTest, WhatIsNoPlainFileIsNotWaitedForAgain) {
  for (const std::string& path : {pipe(), std::string("/dev/zero"), folder.file("")}) {
    const auto text = read_file_text(path, 100, FileReading::again);
    ASSERT_FALSE(text) << path;
    EXPECT_EQ(text.error().code, Errc::refused) << path;
    EXPECT_EQ(text.error().message, "is not a plain file: it cannot be read again");
  }
}

TEST_F(FileReadingTest, FoldersAreErrorsAtFirstToo) {
  EXPECT_EQ(read_file_text(folder.file(""), 100, FileReading::first).error().message, "Is a directory");
}

}  // namespace
}  // namespace argiope
