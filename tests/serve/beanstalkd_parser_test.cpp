#include "serve/beanstalkd/beanstalkd_parser.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace argiope {
namespace {

constexpr std::size_t kMostJobBytes = 65'535;

// One line a command: what was understood, or the refusal.
std::string say(const BeanstalkdCommand& command) {
  if (command.refusal != BeanstalkdRefusal::none) return std::string(to_string(command.refusal));
  std::string text = std::to_string(static_cast<int>(command.verb));
  for (const std::uint64_t number :
       {command.id, std::uint64_t{command.priority}, std::uint64_t{command.delay}, std::uint64_t{command.ttr},
        std::uint64_t{command.bound}, static_cast<std::uint64_t>(command.timeout)}) {
    text += " " + std::to_string(number);
  }
  return text.append(" ").append(command.tube).append("|").append(command.body);
}

// Fed in pieces of `piece` bytes.
std::vector<std::string> parse(std::string_view bytes, std::size_t piece = std::string_view::npos,
                               std::size_t most = kMostJobBytes) {
  BeanstalkdParser parser(most);
  std::vector<std::string> said;
  while (!bytes.empty()) {
    parser.drop_used();
    parser.input() += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
    while (const BeanstalkdCommand* command = parser.next()) said.push_back(say(*command));
  }
  return said;
}

BeanstalkdCommand one(std::string_view line) {
  BeanstalkdParser parser(kMostJobBytes);
  parser.input() = line;
  const BeanstalkdCommand* command = parser.next();
  EXPECT_NE(command, nullptr) << line;
  BeanstalkdCommand copy = command == nullptr ? BeanstalkdCommand{} : *command;
  copy.tube = copy.body = {};
  EXPECT_EQ(parser.next(), nullptr) << line;
  return copy;
}
BeanstalkdRefusal refusal_of(std::string_view line) { return one(line).refusal; }
BeanstalkdVerb verb_of(std::string_view line) { return one(line).verb; }

using enum BeanstalkdRefusal;
using Verb = BeanstalkdVerb;

TEST(BeanstalkdParser, KnowsEveryCommand) {
  EXPECT_EQ(verb_of("put 1 2 3 0\r\n\r\n"), Verb::put);
  EXPECT_EQ(verb_of("peek 1\r\n"), Verb::peek);
  EXPECT_EQ(verb_of("peek-ready\r\n"), Verb::peek_ready);
  EXPECT_EQ(verb_of("peek-delayed\r\n"), Verb::peek_delayed);
  EXPECT_EQ(verb_of("peek-buried\r\n"), Verb::peek_buried);
  EXPECT_EQ(verb_of("reserve\r\n"), Verb::reserve);
  EXPECT_EQ(verb_of("reserve-with-timeout 3\r\n"), Verb::reserve_with_timeout);
  EXPECT_EQ(verb_of("reserve-job 3\r\n"), Verb::reserve_job);
  EXPECT_EQ(verb_of("delete 3\r\n"), Verb::delete_job);
  EXPECT_EQ(verb_of("release 3 4 5\r\n"), Verb::release);
  EXPECT_EQ(verb_of("bury 3 4\r\n"), Verb::bury);
  EXPECT_EQ(verb_of("kick 3\r\n"), Verb::kick);
  EXPECT_EQ(verb_of("kick-job 3\r\n"), Verb::kick_job);
  EXPECT_EQ(verb_of("touch 3\r\n"), Verb::touch);
  EXPECT_EQ(verb_of("stats\r\n"), Verb::stats);
  EXPECT_EQ(verb_of("stats-job 3\r\n"), Verb::stats_job);
  EXPECT_EQ(verb_of("stats-tube a\r\n"), Verb::stats_tube);
  EXPECT_EQ(verb_of("use a\r\n"), Verb::use);
  EXPECT_EQ(verb_of("watch a\r\n"), Verb::watch);
  EXPECT_EQ(verb_of("ignore a\r\n"), Verb::ignore);
  EXPECT_EQ(verb_of("list-tubes\r\n"), Verb::list_tubes);
  EXPECT_EQ(verb_of("list-tube-used\r\n"), Verb::list_tube_used);
  EXPECT_EQ(verb_of("list-tubes-watched\r\n"), Verb::list_tubes_watched);
  EXPECT_EQ(verb_of("quit\r\n"), Verb::quit);
  EXPECT_EQ(verb_of("pause-tube a 3\r\n"), Verb::pause_tube);
}

TEST(BeanstalkdParser, ReadsWhatTheWordsSay) {
  const BeanstalkdCommand put = one("put 4294967295 2 3 0\r\n\r\n");
  EXPECT_EQ(put.priority, 4294967295u);
  EXPECT_EQ(put.delay, 2u);
  EXPECT_EQ(put.ttr, 3u);
  const BeanstalkdCommand release = one("release 18446744073709551615 4 5\r\n");
  EXPECT_EQ(release.id, 18446744073709551615u);
  EXPECT_EQ(release.priority, 4u);
  EXPECT_EQ(release.delay, 5u);
  EXPECT_EQ(parse("pause-tube a_b 7\r\nuse $(x)\r\n"),
            (std::vector<std::string>{say({.verb = Verb::pause_tube, .counts = true, .delay = 7, .tube = "a_b"}),
                                      say({.verb = Verb::use, .tube = "$(x)"})}));
}

TEST(BeanstalkdParser, AnswersUnknownWords) {
  for (const char* line : {"\r\n", "nont10knowncommand\r\n", "put\r\n", "PUT 0 0 0 0\r\n", "delete\r\n", " stats\r\n",
                           "peek\r\n", "use\r\n", "kick\r\n", "touch\r\n", "list-tub\r\n", "qui\r\n"}) {
    EXPECT_EQ(refusal_of(line), unknown_command) << line;
  }
}

TEST(BeanstalkdParser, RefusesWhatItsWordCannotRead) {
  for (const char* line : {"put -1 0 0 0\r\n",
                           "put 4294967296 0 0 0\r\n",
                           "put pri 0 0 0\r\n",
                           "put 0 -1 100 0\r\n",
                           "put 0 0 0\r\n",
                           "put 0 0 10 18446744073709551616\r\n",
                           "put 0 0 10 4294967296\r\n",
                           "put 10 0 0 0 x\r\n",
                           "put 10 0 0 10b\r\n",
                           "peek a1\r\n",
                           "peek 1a\r\n",
                           "peek -1\r\n",
                           "peek \r\n",
                           "peek-ready \r\n",
                           "peek-readyx\r\n",
                           "delete 18446744073709551616\r\n",
                           "delete 1 \r\n",
                           "release 1 -1 1\r\n",
                           "release 1 1\r\n",
                           "release 1 1 -1\r\n",
                           "release 1 4294967296 1\r\n",
                           "bury 1\r\n",
                           "bury 1 2x\r\n",
                           "kick a\r\n",
                           "kick \r\n",
                           "kick 18446744073709551616\r\n",
                           "touch a\r\n",
                           "stats x\r\n",
                           "stats-tube\r\n",
                           "stats-tube -a\r\n",
                           "stats-job\r\n",
                           "use  a\r\n",
                           "use a b\r\n",
                           "use -a\r\n",
                           "watch *\r\n",
                           "ignore \r\n",
                           "list-tubesx\r\n",
                           "list-tube-used \r\n",
                           "reservex\r\n",
                           "reserve \r\n",
                           "reserve-job a\r\n",
                           "reserve-with-timeout\r\n",
                           "reserve-with-timeout 9223372036854775808\r\n",
                           "pause-tube\r\n",
                           "pause-tube a\r\n",
                           "pause-tube a x\r\n",
                           "pause-tube -a 1\r\n",
                           "pause-tube a 4294967296\r\n"}) {
    EXPECT_EQ(refusal_of(line), bad_format) << line;
  }
  EXPECT_EQ(refusal_of({"stats\0\r\n", 8}), bad_format);
}

TEST(BeanstalkdParser, AllowsWhatBeanstalkdAllows) {
  EXPECT_EQ(one("put   1  2 3   0\r\n\r\n").priority, 1u);
  EXPECT_EQ(one("kick -1\r\n").bound, 4294967295u);
  EXPECT_EQ(one("kick \t 5 jobs\r\n").bound, 5u);
  EXPECT_EQ(one("quit now\r\n").verb, Verb::quit);
  EXPECT_EQ(one("delete  007\r\n").id, 7u);
  EXPECT_EQ(one("reserve-with-timeout soon\r\n").timeout, 0);
  EXPECT_EQ(one("reserve-with-timeout -7\r\n").timeout, -7);
  EXPECT_EQ(one("reserve-with-timeout 4294967297\r\n").timeout, 1);
  EXPECT_EQ(one("reserve\r\n").timeout, -1);
  EXPECT_EQ(one("pause-tubea 3\r\n").delay, 3u);
}

TEST(BeanstalkdParser, KnowsNamesOfTubes) {
  EXPECT_TRUE(is_tube_name("default"));
  EXPECT_TRUE(is_tube_name("a-+/;.$_()Z9"));
  EXPECT_TRUE(is_tube_name(std::string(200, 'x')));
  EXPECT_FALSE(is_tube_name(std::string(201, 'x')));
  for (const char* name : {"", "-a", "a b", "a*", "\xc3\xa9", "a:b"}) EXPECT_FALSE(is_tube_name(name)) << name;
}

TEST(BeanstalkdParser, TakesABodyWhateverItsBytes) {
  std::string body("a\r\nquit\r\n\0\xff", 11);
  const auto said = parse("put 0 0 1 11\r\n" + body + "\r\nstats\r\n");
  ASSERT_EQ(said.size(), 2u);
  EXPECT_TRUE(said[0].ends_with("|" + body));
}

TEST(BeanstalkdParser, AsksForTheEndOfABody) {
  EXPECT_EQ(parse("put 0 0 1 3\r\nabcdestats\r\n"),
            (std::vector<std::string>{"EXPECTED_CRLF", say({.verb = Verb::stats})}));
}

TEST(BeanstalkdParser, DropsABodyThatIsTooBig) {
  const std::string put = "put 0 0 1 11 and more\r\nhello world\r\nstats\r\n";
  const std::vector<std::string> expected{"JOB_TOO_BIG", say({.verb = Verb::stats})};
  for (std::size_t piece = 1; piece < put.size(); ++piece) EXPECT_EQ(parse(put, piece, 10), expected) << piece;
  EXPECT_TRUE(parse("put 0 0 1 11\r\nhello world\r", 5, 10).empty()) << "not before all of it came";
}

TEST(BeanstalkdParser, KeepsNothingOfWhatItDrops) {
  BeanstalkdParser parser(10);
  parser.input() = "put 0 0 1 4294967295\r\n";
  EXPECT_EQ(parser.next(), nullptr);
  for (int i = 0; i < 1000; ++i) {
    parser.drop_used();
    EXPECT_TRUE(parser.input().empty());
    parser.input().append(1000, 'x');
    EXPECT_EQ(parser.next(), nullptr);
  }
}

TEST(BeanstalkdParser, RefusesALineThatIsTooLongAndGoesOnBehindIt) {
  const std::string longest = "use " + std::string(218, 'x') + "\r\n";
  ASSERT_EQ(longest.size(), kMostBeanstalkdLine);
  const std::string stats = say({.verb = Verb::stats});
  const std::vector<std::string> expected{"BAD_FORMAT", stats};
  EXPECT_EQ(parse(longest + "stats\r\n"), expected) << "the name";
  for (const std::size_t more : {1u, 2u, 500u, 100'000u}) {
    const std::string line = "stats\r\nstats" + std::string(kMostBeanstalkdLine - 7 + more, 'x') + "\r\nstats\r\n";
    const std::vector<std::string> all{stats, "BAD_FORMAT", stats};
    EXPECT_EQ(parse(line), all) << more;
    EXPECT_EQ(parse(line, 7), all) << more;
  }
}

TEST(BeanstalkdParser, UnderstandsTheSameInPieces) {
  const std::string bytes =
      "put 1 2 3 5\r\nhello\r\nuse a\r\nreserve-with-timeout 5\r\nnonsense\r\nput 0 0 0 2\r\nabxystats\r\nput 0 0 0 "
      "0\r\n\r\n";
  const auto whole = parse(bytes);
  EXPECT_EQ(whole.size(), 7u);
  for (std::size_t piece = 1; piece < 20; ++piece) EXPECT_EQ(parse(bytes, piece), whole) << piece;
}

// Each is what some program sends first, with commands behind it that others have chosen.
TEST(BeanstalkdParser, ReadsNothingBehindALineOfAnotherProtocol) {
  const std::string commands = "use cmd\r\nput 0 0 60 5\r\nhello\r\nquit\r\n";
  const std::string_view others[] = {
      "POST / HTTP/1.1\r\nHost: 127.0.0.1:11300\r\n\r\n",
      "GET / HTTP/1.0\r\n",
      "GET /\r\n",
      "GET /use%20cmd HTTP/1.1\n\n\r\n",
      "OPTIONS * HTTP/1.1\r\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "CONNECT 127.0.0.1:11300 HTTP/1.1\r\n",
      // A page may name the method of a request to its own origin, which its name server can make this address.
      "reserve-with-timeout / HTTP/1.1\r\n",
      "kick 1 HTTP/1.1\r\n",
      "quit / HTTP/1.1\r\n",
      "put / HTTP/1.1\r\n",
      "\r\n",
      "\n\r\n",
      " use cmd\r\n",
      "PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n",
      std::string_view("\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c", 16),
      std::string_view("\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\r\n", 13),
      std::string_view("\0\x01\0\x08\x21\x12\xa4\x42\r\n", 10),
      "CLIENT libcurl 8.0\r\n",
      "EHLO example.org\r\n",
      "*1\r\n$4\r\nPING\r\n",
      "OPTIONS rtsp://127.0.0.1/ RTSP/1.0\r\n",
  };
  for (const std::string_view other : others) {
    for (const std::size_t piece : {std::string_view::npos, std::size_t{1}, std::size_t{7}}) {
      const auto said = parse(std::string(other) + commands, piece);
      EXPECT_EQ(said.size(), 1u) << other << piece;
      EXPECT_TRUE(!said.empty() && (said[0] == "BAD_FORMAT" || said[0] == "UNKNOWN_COMMAND")) << other << piece;
    }
  }
  const std::string endless(kMostBeanstalkdLine, '\x16');
  EXPECT_EQ(parse(endless + "\r\n" + commands), std::vector<std::string>{"BAD_FORMAT"}) << "a line without an end";
  EXPECT_EQ(parse("stats\r\nPOST / HTTP/1.1\r\n" + commands).size(), 2u) << "HTTP ends it wherever it stands";
  EXPECT_EQ(parse("stats\r\nnonsense\r\nuse cmd\r\n").size(), 3u) << "a mistake of a client does not";
  EXPECT_EQ(parse("put 0 0\r\nuse cmd\r\n").size(), 2u) << "nor does one in its first command";
}

TEST(BeanstalkdParser, CountsAsBeanstalkdDoes) {
  EXPECT_TRUE(one("put 0 0 0 1\r\nabc").counts) << "EXPECTED_CRLF";
  EXPECT_TRUE(one("put 0 0 0 0 x\r\n").counts);
  EXPECT_FALSE(one("put 0 0 0 x\r\n").counts);
  EXPECT_TRUE(one("pause-tube -a 1\r\n").counts);
  EXPECT_FALSE(one("pause-tube a x\r\n").counts);
  EXPECT_FALSE(one("use -a\r\n").counts);
  EXPECT_TRUE(one("stats\r\n").counts);
}

}  // namespace
}  // namespace argiope
