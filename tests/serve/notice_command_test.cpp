// The commands that notices name: of each kind, safe to paste, and where the daemon is found.
#include "serve/notify/notice_command.hpp"

#include <gtest/gtest.h>

namespace argiope {
namespace {

constexpr std::string_view kHere = "http://127.0.0.1:7733";

std::string command_of_trouble(Trouble trouble, std::string subject, std::vector<JobId> jobs = {},
                               std::uint64_t run = 0) {
  const std::uint64_t count = std::max<std::size_t>(jobs.size(), 1);
  return command_for({.trouble = trouble,
                      .subject = std::move(subject),
                      .count = count,
                      .run = run,
                      .text = {},
                      .jobs = std::move(jobs)},
                     kHere);
}

TEST(NoticeCommands, ShowTheMatterOfEachKind) {
  EXPECT_EQ(command_of_trouble(Trouble::buried, "mail", {17}), "argiope job show 17");
  EXPECT_EQ(command_of_trouble(Trouble::buried, "mail", {17, 18}), "argiope job list --state buried mail");
  EXPECT_EQ(command_of_trouble(Trouble::expired, "mail", {17, 18}), "argiope job show 17");
  EXPECT_EQ(command_of_trouble(Trouble::missed, "links", {}, 4), "argiope schedule history links");
  EXPECT_EQ(command_of_trouble(Trouble::failed, "links", {17}, 4), "argiope schedule history links");
  EXPECT_EQ(command_of_trouble(Trouble::failed, "links"), "argiope schedule explain links") << "it cannot run";
  EXPECT_EQ(command_of_trouble(Trouble::findings, "links", {17}, 4), "argiope schedule history links");
  EXPECT_EQ(command_of_trouble(Trouble::findings, "mail", {17}), "argiope job show 17");
  EXPECT_EQ(command_of_trouble(Trouble::depth, "mail"), "argiope job stats --queue mail");
  EXPECT_EQ(command_of_trouble(Trouble::age, "mail"), "argiope job stats --queue mail");
  EXPECT_EQ(command_of_trouble(Trouble::alarm, "shop"), "argiope project status shop --store http://127.0.0.1:7733");
  EXPECT_EQ(command_of_trouble(Trouble::daemon, "the daemon"), "");
}

TEST(NoticeCommands, NameADaemonThatCommandsDoNotFindThemselves) {
  const Notice notice{.trouble = Trouble::missed, .subject = "links", .text = {}, .jobs = {}};
  EXPECT_EQ(command_for(notice, "https://127.0.0.1:8443"),
            "argiope schedule history links --store https://127.0.0.1:8443");
  EXPECT_EQ(command_for(notice, ""), "argiope schedule history links");
}

TEST(NoticeCommands, QuoteWhatAShellWouldObey) {
  EXPECT_EQ(command_of_trouble(Trouble::missed, "every night"), "argiope schedule history 'every night'");
  EXPECT_EQ(command_of_trouble(Trouble::missed, "$(rm -r ~)"), "argiope schedule history '$(rm -r ~)'");
  EXPECT_EQ(command_of_trouble(Trouble::missed, "it's; true"), R"(argiope schedule history 'it'\''s; true')");
  EXPECT_EQ(command_of_trouble(Trouble::missed, "-x"), "");
  EXPECT_EQ(command_of_trouble(Trouble::missed, "a\nb"), "");
  EXPECT_EQ(command_of_trouble(Trouble::buried, "a\nb", {17, 18}), "argiope job show 17");
}

TEST(NoticeCommands, ShowNothingOfWhatIsGone) {
  Notice notice{
      .trouble = Trouble::failed, .subject = "links", .is_over = true, .text = std::string(kGone), .jobs = {}};
  EXPECT_EQ(command_for(notice, kHere), "");
  notice.text.clear();
  EXPECT_EQ(command_for(notice, kHere), "argiope schedule history links");
}

}  // namespace
}  // namespace argiope
