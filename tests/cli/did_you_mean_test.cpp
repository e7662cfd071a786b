// Errors of usage: what was meant, and in which command.
#include "cli/did_you_mean.hpp"

#include <gtest/gtest.h>

#include "argiope/base/clock.hpp"
#include "cli/flag_option.hpp"
#include "cli/number_option.hpp"
#include "cli/span_option.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

class UsageTest : public testing::Test {
 protected:
  UsageTest() {
    app_.require_subcommand(1);
    CLI::App* job = app_.add_subcommand("job", "");
    app_.add_subcommand("explain", "");
    job->require_subcommand(1);
    CLI::App* work = job->add_subcommand("work", "");
    work->add_option("QUEUE", name_)->required();
    CLI::App* queue = job->add_subcommand("queue", "");
    queue->add_option("NAME", name_);
    add_span(*queue, "--retry-first", first_, "");
    add_span(*queue, "--retry-longest", longest_, "", {1s, 1h});
    queue->add_option("-r,--rate", rate_)->check(any_number(0.01, 1e6));
    queue->add_flag("--pause", pause_);
  }
  // What is said of the words; "" when nothing is wrong with them.
  std::string said_of(const std::vector<std::string>& words) {
    if (const std::string wrong = wrong_command(app_, words); !wrong.empty()) return wrong;
    try {
      app_.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (const CLI::ParseError& error) {
      return sentence_of(error, app_, words);
    }
    return {};
  }

  CLI::App app_{"", "argiope"};
  std::string name_;
  Duration first_{};
  std::optional<Duration> longest_;
  double rate_ = 0;
  bool pause_ = false;
};

TEST(Nearest, IsASlipOfTheFingersAway) {
  const std::vector<std::string> names = {"mail", "report", "reports-daily", "x"};
  EXPECT_EQ(nearest("mial", names), "mail");
  EXPECT_EQ(nearest("Mail", names), "mail");
  EXPECT_EQ(nearest("reprot", names), "report");
  EXPECT_EQ(nearest("reports-dayly", names), "reports-daily");
  EXPECT_EQ(nearest("reports-", names), "reports-daily");
  EXPECT_EQ(nearest("something-else", names), "");
  EXPECT_EQ(nearest("y", names), "");
  EXPECT_EQ(nearest("", names), "");
}

TEST(Nearest, SaysNothingWhereSeveralAreAsNear) {
  EXPECT_EQ(nearest("cat", {"bat", "rat"}), "");
  EXPECT_EQ(nearest("--retry", {"--retry-first", "--retry-longest"}), "");
  EXPECT_EQ(nearest("--ret", {"--retry-first", "--rate"}), "--retry-first");
  EXPECT_EQ(nearest("--form", {"--for", "--from"}), "--from");
}

TEST_F(UsageTest, AMisspeltCommandIsNamedWithTheOneThatWasMeant) {
  EXPECT_EQ(said_of({"jbo"}), "argiope: there is no command \"jbo\"; did you mean \"job\"? argiope --help lists them");
  EXPECT_EQ(said_of({"job", "wrok", "mail"}),
            "argiope job: there is no command \"wrok\"; did you mean \"work\"? argiope job --help lists them");
  EXPECT_EQ(said_of({"nonsense"}), "argiope: there is no command \"nonsense\"; argiope --help lists them");
}

TEST_F(UsageTest, AMisspeltOptionIsNamedAndNotItsValue) {
  EXPECT_EQ(said_of({"job", "queue", "mail", "--retry-frist", "2"}),
            "argiope job queue has no option --retry-frist; did you mean --retry-first?; "
            "argiope job queue --help lists what there is");
  EXPECT_EQ(said_of({"job", "queue", "--puase", "mail"})
                .find("argiope job queue has no option --puase; did you mean --pause?"),
            0u);
  EXPECT_EQ(
      said_of({"job", "queue", "mail", "--retry-frist=2"}).find("argiope job queue has no option --retry-frist; did"),
      0u);
  EXPECT_EQ(said_of({"job", "queue", "mail", "--colour"}),
            "argiope job queue has no option --colour; "
            "argiope job queue --help lists what there is");
}

TEST_F(UsageTest, AnOptionOfAnotherProgramIsAnsweredWithOurs) {
  CLI::App* const crawl = app_.add_subcommand("crawl", "");
  int depth = 0;
  crawl->add_option("--max-depth", depth);
  EXPECT_EQ(said_of({"crawl", "--depth", "3"}),
            "argiope crawl has no option --depth; did you mean --max-depth?; argiope crawl --help lists what there is");
  EXPECT_EQ(said_of({"crawl", "--resume"}),
            "argiope crawl has no option --resume; the same command goes on where the last run stopped; argiope crawl "
            "--help lists what there is");
  EXPECT_EQ(said_of({"crawl", "--wait"}),
            "argiope crawl has no option --wait; argiope crawl --help lists what there is");
}

TEST_F(UsageTest, WithoutACommandThoseThatThereAreAreListed) {
  EXPECT_EQ(said_of({}),
            "  job      \n  explain  \n\nargiope: name one of these commands; argiope COMMAND --help says more");
  EXPECT_EQ(said_of({"job"}).find("  work   \n  queue  \n\nargiope job: name one of these commands"), 0u);
}

TEST_F(UsageTest, OfACommandTheFirstSentenceIsListed) {
  app_.get_subcommand("job")->description("Durable jobs, v1.0: put them,\nrun them. They are kept in\na file.");
  app_.get_subcommand("explain")->description("Why does it wait, and\nuntil when?");
  EXPECT_EQ(said_of({}).find("  job      Durable jobs, v1.0: put them, run them\n"
                             "  explain  Why does it wait, and until when?\n"),
            0u);
}

TEST_F(UsageTest, AFlagTakesNoValueButYesOrNo) {
  refuse_values_of_flags(app_);
  EXPECT_EQ(
      said_of({"job", "queue", "mail", "--pause=5"}),
      "argiope job queue: --pause: \"5\": it takes no value; write --pause alone, or --pause=false; argiope job queue "
      "--help says more");
  EXPECT_EQ(said_of({"job", "queue", "mail", "--pause=false"}), "");
  EXPECT_EQ(said_of({"job", "queue", "mail", "--pause"}), "");
}

TEST_F(UsageTest, AWordTooManyIsNamed) {
  EXPECT_EQ(said_of({"job", "queue", "mail", "report", "again"})
                .find("argiope job queue: \"report\" is one argument too many"),
            0u);
}

TEST_F(UsageTest, ACommandStandsBehindDashes) {
  EXPECT_EQ(
      said_of({"job", "work", "mail", "./send", "--all"}),
      "argiope job work: \"./send\" is one argument too many; write a command after --, as in: argiope job work … -- "
      "./send --all; argiope job work --help lists what there is");
}

TEST_F(UsageTest, OtherErrorsNameTheCommand) {
  EXPECT_EQ(said_of({"job", "work"}), "argiope job work: QUEUE is required; argiope job work --help says more");
}

TEST_F(UsageTest, SpansAreReadInOneNotation) {
  EXPECT_EQ(said_of({"job", "queue", "--retry-first", "100ms", "--retry-longest", "90"}), "");
  EXPECT_EQ(first_, Duration{100ms});
  EXPECT_EQ(longest_, Duration{90s});
  for (const char* text : {"nan", "inf", "-1", "-1s", "1x", ""}) {
    EXPECT_NE(said_of({"job", "queue", "--retry-first", text}).find("--retry-first"), std::string::npos) << text;
  }
  EXPECT_NE(said_of({"job", "queue", "--retry-longest", "2h"}).find("--retry-longest: 2h: from 1s to 1h"),
            std::string::npos);
}

TEST_F(UsageTest, NumbersAreFiniteAndInTheirRange) {
  EXPECT_EQ(said_of({"job", "queue", "--rate", "0.5"}), "");
  for (const char* text : {"0", "-1", "nan", "inf", "fast"}) {
    EXPECT_NE(said_of({"job", "queue", "--rate", text}), "") << text;
  }
}

}  // namespace
}  // namespace argiope
