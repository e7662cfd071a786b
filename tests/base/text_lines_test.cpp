// Lines of files: numbered, bounded, and the same in whatever pieces they come.
#include "base/internal/text_lines.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

struct Told {
  std::uint64_t number;
  std::string text;
  std::uint64_t size;
  bool is_too_long, has_end;
  bool operator==(const Told&) const = default;
};
Told told(const TextLine& line) {
  return {line.number, std::string(line.text), line.size, line.is_too_long, line.has_end};
}

std::vector<Told> lines_of(std::string_view text, std::size_t piece, std::size_t most) {
  std::vector<Told> lines;
  const auto take = [&](const TextLine& line) {
    lines.push_back(told(line));
    return true;
  };
  LineSplitter splitter(most);
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size())))
    EXPECT_TRUE(splitter.take(text.substr(0, piece), take));
  EXPECT_TRUE(splitter.end(take));
  return lines;
}

TEST(LineSplitter, GivesTheSameLinesInWhateverPiecesTheyCome) {
  const std::vector<Told> expected{{1, "ab", 6, false, true},    {2, "", 1, false, true},
                                   {3, "12345", 6, false, true}, {4, "12345", 7, true, true},
                                   {5, "c\r", 3, false, true},   {6, "d", 1, false, false}};
  for (std::size_t piece = 1; piece < 30; ++piece) {
    EXPECT_EQ(lines_of("\xef\xbb\xbf"
                       "ab\n\n12345\n123456\nc\r\nd",
                       piece, 5),
              expected)
        << piece;
  }
}

TEST(LineSplitter, AFileOfNothingHasNoLineAndAMarkAloneAnEmptyOne) {
  EXPECT_TRUE(lines_of("", 1, 5).empty());
  EXPECT_EQ(lines_of("\xef\xbb\xbf", 1, 5), (std::vector<Told>{{1, "", 3, false, false}}));
  EXPECT_EQ(lines_of("a\n", 1, 5).size(), 1u);
}

TEST(LineSplitter, EndsWhereItIsTold) {
  int told = 0;
  LineSplitter splitter(10);
  EXPECT_FALSE(splitter.take("a\nb\nc\n", [&](const TextLine&) { return ++told < 2; }));
  EXPECT_EQ(told, 2);
}

TEST(ReadLines, ReadsAPlainFileAndTellsWhatItCannotRead) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  std::ofstream(path) << "x\n" << std::string(200'000, 'y') << "\nz";
  std::vector<Told> lines;
  ASSERT_TRUE(read_lines(path, 100, FileReading::again, [&](const TextLine& line) {
    lines.push_back(told(line));
    return true;
  }));
  EXPECT_EQ(lines,
            (std::vector<Told>{
                {1, "x", 2, false, true}, {2, std::string(100, 'y'), 200'001, true, true}, {3, "z", 1, false, false}}));
  const auto none = [](const TextLine&) { return true; };
  EXPECT_EQ(read_lines(folder.file("none"), 100, FileReading::again, none).error().code, Errc::not_found);
  EXPECT_EQ(read_lines("/dev/zero", 100, FileReading::stream, none).error().code, Errc::refused);
  EXPECT_EQ(place_of_line("a\nb", 7), R"(a\nb:7)");
}

}  // namespace
}  // namespace argiope
