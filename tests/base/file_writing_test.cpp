// Whether a file that is written for long is still what was written.
#include "base/internal/file_writing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

class FileInUse : public testing::Test {
 protected:
  FileInUse() : descriptor_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    EXPECT_TRUE(write_all(descriptor_, "0123456789", 0, path_));
  }
  ~FileInUse() override { ::close(descriptor_); }
  std::string trouble() const {
    const auto in_place = expect_in_place(descriptor_, path_, "out", 10);
    return in_place ? "" : in_place.error().message;
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.file("out");
  const int descriptor_;
};

TEST_F(FileInUse, IsInPlaceAsLongAsNobodyTouchesIt) { EXPECT_EQ(trouble(), ""); }

TEST_F(FileInUse, MayGrow) {
  std::filesystem::resize_file(path_, 11);
  EXPECT_EQ(trouble(), "");
}

TEST_F(FileInUse, IsNotInPlaceWhenAnotherProgramHasCutIt) {
  std::filesystem::resize_file(path_, 9);
  EXPECT_EQ(trouble(), "out: another program cut it while it was in use: 9 of 10 bytes are left");
  EXPECT_TRUE(expect_in_place(descriptor_, path_, "out"));
}

TEST_F(FileInUse, IsNotInPlaceWhenItIsDeleted) {
  std::filesystem::remove(path_);
  EXPECT_NE(trouble().find("out: it was deleted"), std::string::npos);
}

}  // namespace
}  // namespace argiope
