// A command's help as facts, and what is made of them: manual pages and completions. The shells and the readers of
// manual pages themselves are asked by tests/packaging/help_files_test.sh.
#include "cli/help/command_help.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/help/completion.hpp"
#include "cli/help/man_page.hpp"

namespace argiope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class CommandHelpTest : public testing::Test {
 protected:
  CommandHelpTest() {
    app_.require_subcommand(1);
    app_.add_option("--hidden", text_)->group("");
    CLI::App* job = app_.add_subcommand("job", "Do jobs.");
    CLI::App* work = job->add_subcommand("work", "Run a command\nfor each job");
    work->add_option("QUEUE", texts_, "Whose jobs")->required()->type_name("");
    work->add_option("-c,--concurrency", number_, "Jobs that run at once")
        ->check(CLI::Range(1, 256))
        ->type_name("N")
        ->default_str("1")
        ->group("How fast");
    work->add_option("--order", text_, "What \"first\" means: a [b] 'c'")
        ->check(CLI::IsMember({"old", "new"}))
        ->type_name("WHICH");
    work->add_option("--log", text_, "A file")->type_name("FILE")->envname("LOG");
    work->add_option("--listen", texts_, "Where")->type_name("ADDRESS")->expected(0, 1);
    CLI::Option* quiet = work->add_flag("--quiet", flag_, "Say `nothing`");
    work->add_flag("--loud", flag_, "Say all")->excludes(quiet);
    work->footer("It works,\nand works.\n\nOn and on. Examples:\n  job work 'a-b'\nMore. Example: job work c");
  }
  CommandHelp program() const { return help_of(app_); }
  CommandHelp work() const { return program().commands.at(0).commands.at(0); }
  OptionHelp option(std::string_view name) const {
    for (const OptionHelp& one : work().options) {
      if (one.names.back() == name) return one;
    }
    throw std::out_of_range("no such option");
  }
  std::string page() const {
    return man_page(program().commands.at(0), program(), {.date = "2026-11-22", .source = "tool 1"});
  }

  std::string text_;
  std::vector<std::string> texts_;
  int number_ = 0;
  bool flag_ = false;
  CLI::App app_{"A tool.", "tool"};
};

TEST_F(CommandHelpTest, ACommandHasItsFullNameAndItsUsage) {
  EXPECT_EQ(work().full_name(), "tool job work");
  EXPECT_EQ(work().full_name("-"), "tool-job-work");
  EXPECT_EQ(work().usage(), "tool job work [OPTIONS] QUEUE...");
  EXPECT_EQ(program().usage(), "tool [OPTIONS] COMMAND");
  EXPECT_EQ(work().description, "Run a command for each job");
}

TEST_F(CommandHelpTest, OptionsHaveTheirValuesChoicesAndRanges) {
  EXPECT_THAT(option("--concurrency").names, ElementsAre("-c", "--concurrency"));
  EXPECT_EQ(option("--concurrency").value, "N");
  EXPECT_EQ(option("--concurrency").range, "1 - 256");
  EXPECT_EQ(option("--concurrency").usual, "1");
  EXPECT_EQ(option("--concurrency").group, "How fast");
  EXPECT_EQ(option("--order").kind, ValueKind::choice);
  EXPECT_THAT(option("--order").choices, ElementsAre("old", "new"));
  EXPECT_EQ(option("--log").kind, ValueKind::file);
  EXPECT_EQ(option("--log").environment, "LOG");
  EXPECT_TRUE(option("--listen").value_is_optional);
  EXPECT_EQ(option("--quiet").kind, ValueKind::none);
  EXPECT_THAT(option("--loud").excludes, ElementsAre("--quiet"));
}

TEST_F(CommandHelpTest, HiddenOptionsAreLeftOut) {
  for (const OptionHelp& one : program().options) EXPECT_NE(one.names.back(), "--hidden");
}

TEST_F(CommandHelpTest, AFooterIsProseAndExamples) {
  EXPECT_THAT(work().prose, ElementsAre("It works, and works.", "On and on. More."));
  EXPECT_THAT(work().examples, ElementsAre("job work 'a-b'", "job work c"));
}

TEST_F(CommandHelpTest, APageOfAFamilyHasItsCommands) {
  EXPECT_THAT(page(), HasSubstr(".TH \"TOOL-JOB\" 1 \"2026-11-22\" \"tool 1\""));
  EXPECT_THAT(page(), HasSubstr("tool\\-job \\- Do jobs\n"));
  EXPECT_THAT(page(), HasSubstr(".SS \"tool job work [OPTIONS] QUEUE...\""));
  EXPECT_THAT(page(), HasSubstr("In the range 1 \\- 256. Default: 1."));
  EXPECT_THAT(page(), HasSubstr("Say \\fBnothing\\fR\\&."));
  EXPECT_THAT(page(), HasSubstr("\njob work \\(aqa\\-b\\(aq\n"));
}

TEST_F(CommandHelpTest, WhatIsRoffInTextStandsForItself) {
  EXPECT_EQ(roff_text(".SH x"), "\\&.SH x");
  EXPECT_EQ(roff_text("a\\b-c'd`e^f~g"), "a\\eb\\-c\\(aqd\\(gae\\(haf\\(tig");
}

TEST_F(CommandHelpTest, CompletionsKnowWhatComesAfterAnOption) {
  const std::string bash = bash_completion(program());
  EXPECT_THAT(bash, HasSubstr("'tool job work --order') mapfile -t COMPREPLY < <(compgen -W 'old new'"));
  EXPECT_THAT(bash, HasSubstr("'tool job work -c'|'tool job work --concurrency') return ;;"));
  EXPECT_THAT(bash, Not(HasSubstr("'tool job work --listen')")));
  EXPECT_THAT(zsh_completion(program()),
              HasSubstr("--order=[What \"first\" means\\: a \\[b\\] '\\''c'\\'']:WHICH:(old new)"));
  EXPECT_THAT(fish_completion(program()),
              HasSubstr("-l order -x -a 'old new' -d 'What \"first\" means: a [b] \\'c\\''"));
}

}  // namespace
}  // namespace argiope
