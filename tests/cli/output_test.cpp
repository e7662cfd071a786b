// What people read: amounts, columns, lines, and the line that is rewritten in place.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "cli/cron_arguments.hpp"
#include "cli/error_advice.hpp"
#include "cli/human.hpp"
#include "cli/live_line.hpp"
#include "cli/table.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

TEST(Human, BytesAreCountedInThousandsAndWholeBelow) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1'000), "1.0 kB");
  EXPECT_EQ(human_bytes(12'345'678), "12.3 MB");
  EXPECT_EQ(human_bytes(5e15), "5000.0 TB") << "there is no larger unit";
}

TEST(Human, DurationsHaveTenthsBelowAMinuteAndTwoUnitsAbove) {
  EXPECT_EQ(human_duration(0), "0.0s");
  EXPECT_EQ(human_duration(4.24), "4.2s");
  EXPECT_EQ(human_duration(60), "1m");
  EXPECT_EQ(human_duration(3'725), "1h2m");
}

TEST(Human, ATimeIsSoFarAheadOrAgo) {
  EXPECT_EQ(distance(0s), "now");
  EXPECT_EQ(distance(400ms), "now");
  EXPECT_EQ(distance(-400ms), "now");
  EXPECT_EQ(distance(12min), "in 12m");
  EXPECT_EQ(distance(76h), "in 3d4h");
  EXPECT_EQ(distance(-5s), "5s ago");
}

TEST(Table, ColumnsAreAsWideAsWhatIsInThemAndNumbersGoToTheRight) {
  Table table({"NAME", "JOBS", "STATE"});
  table.add({"mail", "7", "ready"});
  table.add({"reports", "1234", ""});
  EXPECT_EQ(table.text(),
            "NAME     JOBS  STATE\n"
            "mail        7  ready\n"
            "reports  1234\n");
}

TEST(Table, TheLastColumnIsWholeOrCutAtTheWidth) {
  Table table({"ID", "REMARK"});
  const std::string remark = "3 errors, 1 new; the first new one: https://example.org/";
  table.add({"7", remark});
  EXPECT_EQ(table.text(), "ID  REMARK\n 7  " + remark + '\n');
  EXPECT_EQ(table.text(4 + remark.size()), table.text());
  EXPECT_EQ(table.text(30), "ID  REMARK\n 7  3 errors, 1 new; the firs…\n");
  EXPECT_EQ(table.text(5), "ID  REMARK\n 7  3 errors, 1 new; th…\n") << "some of it is shown in any case";
  EXPECT_EQ(one_line("a\nb" + remark, std::string::npos), "a b" + remark);
}

TEST(Table, AColumnWithOneWordIsNoColumnOfNumbers) {
  Table table({"N"});
  table.add({"12"});
  table.add({"none"});
  EXPECT_EQ(table.text(), "N\n12\nnone\n");
}

TEST(Table, CharactersAreCountedAndNotBytes) {
  Table table({"HOST", "N"});
  table.add(
      {"b\xc3\xbc"
       "cher",
       "1"});
  table.add({"abcdef", "2"});
  EXPECT_EQ(table.text(),
            "HOST    N\nb\xc3\xbc"
            "cher  1\nabcdef  2\n");
}

TEST(Table, ALoneHeadingIsALine) { EXPECT_EQ(Table({"NAME", "N"}).text(), "NAME  N\n"); }

TEST(OneLine, IsOneWhateverTheTextWas) {
  EXPECT_EQ(one_line("a\nb\tc\r\nd", 100), "a b c  d");
  EXPECT_EQ(one_line("\x1b[31mred", 100), "\\x1b[31mred");
  EXPECT_EQ(one_line("\xff", 100), "\\xff");
}

TEST(OneLine, IsCutAfterSoManyCharacters) {
  EXPECT_EQ(one_line("abcdef", 6), "abcdef");
  EXPECT_EQ(one_line("abcdefg", 6), "abcdef\xe2\x80\xa6");
  std::string text;
  for (int i = 0; i < 50; ++i) text += "\xc3\xa4";
  EXPECT_EQ(one_line(text, 3), "\xc3\xa4\xc3\xa4\xc3\xa4\xe2\x80\xa6");
}

TEST(ErrorAdvice, NamesTheOptionThatIsTheWayOutAndOnlyWhereThereIsOne) {
  EXPECT_EQ(with_store_option({Errc::wrong_format, "database a: not made by argiope for this"}).message,
            "database a: not made by argiope for this; --store names another file");
  EXPECT_EQ(with_store_option({Errc::io, "disk"}).message, "disk");
  EXPECT_EQ(with_store_option({Errc::invalid_input, "store \"x\": no kind"}).message, "--store \"x\": no kind");
  EXPECT_EQ(with_database_option({Errc::wrong_format, "a"}, "none.db").message, "a; --db names another file");
  EXPECT_EQ(with_queue_option({Errc::too_large, "too large"}, "mail").message,
            "too large; argiope job queue mail --max-payload BYTES changes that");
  EXPECT_EQ(with_queue_option({Errc::io, "disk"}, "mail").message, "disk");
}

// --- the line that is rewritten in place ----------------------------------------------------------------------------

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

// A terminal of so many columns, and what it has been sent.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) : other_end_(::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK)) {
    ::grantpt(other_end_);
    ::unlockpt(other_end_);
    const int end = ::open(::ptsname(other_end_), O_RDWR | O_NOCTTY);
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ::ioctl(end, TIOCSWINSZ, &size);
    out.reset(::fdopen(end, "w"));
  }
  ~Terminal() { ::close(other_end_); }
  std::string sent() {
    char buffer[1000];
    const ssize_t count = ::read(other_end_, buffer, sizeof buffer);
    return count <= 0 ? std::string{} : std::string(buffer, static_cast<std::size_t>(count));
  }
  File out;

 private:
  int other_end_;
};

TEST(LiveLine, IsRewrittenInPlaceOnATerminalAndTakenAwayAtTheEnd) {
  Terminal terminal(80);
  {
    LiveLine line(terminal.out.get());
    EXPECT_LT(line.interval(), 1s);
    line.show("one");
    EXPECT_EQ(terminal.sent(), "\r\x1b[2Kone");
    line.show("two");
    EXPECT_EQ(terminal.sent(), "\r\x1b[2Ktwo");
    line.clear();
    EXPECT_EQ(terminal.sent(), "\r\x1b[2K");
    line.clear();
    EXPECT_EQ(terminal.sent(), "") << "there is nothing left to take away";
    line.show("three");
    terminal.sent();
  }
  EXPECT_EQ(terminal.sent(), "\r\x1b[2K");
}

TEST(LiveLine, IsNoLongerThanTheTerminalIsWideAndEndsInNoHalfCharacter) {
  Terminal terminal(10);
  LiveLine line(terminal.out.get());
  line.show("0123456789abc");
  EXPECT_EQ(terminal.sent(), "\r\x1b[2K0123456789");
  line.show("012345678\xc3\xa4");
  EXPECT_EQ(terminal.sent(), "\r\x1b[2K012345678");
}

TEST(LiveLine, ElsewhereIsALineOfTheLogNowAndThen) {
  const File file(std::tmpfile());
  ASSERT_NE(file, nullptr);
  LiveLine line(file.get());
  EXPECT_GE(line.interval(), 5s);
  line.show("one");
  line.clear();
  EXPECT_EQ(std::ftell(file.get()), 0) << "the log has it";
}

}  // namespace
}  // namespace argiope
