// From words, files and the environment to who a crawl is to servers.
#include "cli/crawl/session_arguments.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "cli/crawl/crawl_arguments.hpp"
#include "support/temporary_folder.hpp"
#include "support/typed_words.hpp"

namespace argiope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const WallTime kNow{std::chrono::seconds{1'800'000'000}};

class SessionArgumentsTest : public ::testing::Test {
 protected:
  Result<CrawlOptions> options_of(std::vector<std::string> words) {
    CrawlArguments arguments;
    type_into(arguments, words);
    auto options = arguments.options();
    if (!options) return options;
    const auto variable = [&](const char* name) -> std::optional<std::string> {
      const auto found = environment.find(name);
      return found == environment.end() ? std::nullopt : std::optional(found->second);
    };
    if (auto applied = arguments.session.apply(*options, variable, kNow, remarks); !applied) {
      return std::unexpected(applied.error());
    }
    return options;
  }
  CrawlOptions taken(std::vector<std::string> words) { return accepted(options_of(std::move(words))); }
  std::string refusal(std::vector<std::string> words) { return refused(options_of(std::move(words))); }
  std::vector<std::string> users(std::vector<std::string> words) {
    std::vector<std::string> said;
    for (const HttpCredentials& one : taken(std::move(words)).credentials) {
      said.push_back(one.where + " " + one.name + " " + one.password + (one.goes_as_basic ? " sent" : ""));
    }
    return said;
  }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder.file(name)) << text;
    return folder.file(name);
  }

  TemporaryFolder folder;
  std::map<std::string, std::string> environment;
  std::vector<std::string> remarks;
};

TEST_F(SessionArgumentsTest, CookiesAreOnUnlessTheyAreNot) {
  EXPECT_TRUE(taken({"a.test"}).cookies);
  EXPECT_FALSE(taken({"a.test", "--no-cookies"}).cookies);
  for (const std::vector<std::string>& other :
       {std::vector<std::string>{"--load-cookies", "x"}, {"--save-cookies", "x"}, {"--login", "a.test"}}) {
    std::vector<std::string> words{"a.test", "--no-cookies"};
    words.insert(words.end(), other.begin(), other.end());
    EXPECT_THROW((void)options_of(words), CLI::ParseError) << other.front();
  }
}

TEST_F(SessionArgumentsTest, CookiesOfAFileAreThereFromTheStart) {
  const std::string path = file("cookies.txt",
                                "# Netscape HTTP Cookie File\n"
                                "a.test\tFALSE\t/\tFALSE\t0\tsession\tone\n"
                                ".b.test\tTRUE\t/\tTRUE\t1700000000\told\ttwo\n");
  const CrawlOptions options = taken({"a.test", "--load-cookies", path});
  ASSERT_EQ(options.given_cookies.size(), 1u);
  EXPECT_EQ(options.given_cookies[0].value, "one");
  EXPECT_THAT(remarks, IsEmpty());
  taken({"a.test", "--load-cookies", file("old.txt", "a.test\tFALSE\t/\tFALSE\t1700000000\ta\tb\n")});
  EXPECT_THAT(remarks, ElementsAre("--load-cookies " + folder.file("old.txt") + ": all its cookies have expired"));
}

TEST_F(SessionArgumentsTest, AFileThatIsNoneIsRefusedByNameAndWithoutWhatIsInIt) {
  EXPECT_EQ(refusal({"a.test", "--load-cookies", folder.file("none")}),
            "--load-cookies " + folder.file("none") + ": No such file or directory");
  EXPECT_THAT(refusal({"a.test", "--load-cookies", folder.file("")}), HasSubstr("Is a directory"));
  const std::string bad = refusal({"a.test", "--load-cookies", file("bad.txt", "a.test secret\n")});
  EXPECT_THAT(bad, HasSubstr("--load-cookies " + folder.file("bad.txt") + ": line 1: "));
  EXPECT_THAT(bad, Not(HasSubstr("secret")));
  EXPECT_THAT(refusal({"a.test", "--load-cookies", file("c.json", "[{}]")}), HasSubstr("this is JSON"));
  EXPECT_THAT(refusal({"a.test", "--save-cookies", "-"}), HasSubstr("--save-cookies -: "));
}

TEST_F(SessionArgumentsTest, CookiesAreSavedForNobodyElseToRead) {
  SessionArguments arguments;
  arguments.save_cookies = file("cookies.txt", "before");
  ::chmod(arguments.save_cookies.c_str(), 0644);
  ASSERT_TRUE(arguments.save({{.name = "a", .value = "1", .domain = "a.test"}}));
  std::ostringstream text;
  text << std::ifstream(arguments.save_cookies).rdbuf();
  EXPECT_EQ(text.str(), "# Netscape HTTP Cookie File\na.test\tFALSE\t/\tFALSE\t0\ta\t1\n");
  struct stat facts {};
  ASSERT_EQ(::stat(arguments.save_cookies.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777u, 0600u);
  arguments.save_cookies = folder.file("no/such/folder.txt");
  const auto failed = arguments.save({});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("--save-cookies " + arguments.save_cookies));
}

TEST_F(SessionArgumentsTest, ANameIsForTheUrlsHostsAndMayGoOverTls) {
  EXPECT_THAT(users({"http://a.test/x", "https://b.test:8443", "--user", "ann:silk & dew:x"}),
              ElementsAre("http://a.test ann silk & dew:x", "https://a.test ann silk & dew:x",
                          "https://b.test:8443 ann silk & dew:x"));
  EXPECT_THAT(users({"https://a.test", "--user", "ann:"}), ElementsAre("https://a.test ann "));
}

TEST_F(SessionArgumentsTest, ANameForAnotherHostGoesOverTlsUnlessSaidOtherwise) {
  EXPECT_THAT(users({"http://a.test:8080", "--user", "a.test=ann:x"}),
              ElementsAre("https://a.test ann x", "http://a.test:8080 ann x"));
  EXPECT_THAT(users({"http://a.test:8080", "--user", "a.test:8080=ann:x"}),
              ElementsAre("https://a.test:8080 ann x", "http://a.test:8080 ann x"));
  EXPECT_THAT(users({"http://a.test", "--user", "B.test=ann:x"}), ElementsAre("https://b.test ann x"));
  EXPECT_THAT(users({"http://a.test", "--user", "http://b.test:81=ann:x"}), ElementsAre("http://b.test:81 ann x"));
  EXPECT_THAT(users({"http://[::1]:8080", "--user", "[::1]:8080=ann:x"}),
              ElementsAre("https://[::1]:8080 ann x", "http://[::1]:8080 ann x"));
}

TEST_F(SessionArgumentsTest, WhatNamesItsHostCountsMoreAndWhatIsInTheUrlMost) {
  EXPECT_THAT(users({"http://bob:y@a.test:1", "--user", "ann:x", "--user", "a.test=eve:z"}),
              ElementsAre("http://a.test:1 bob y sent", "https://a.test eve z", "http://a.test:1 eve z",
                          "http://a.test:1 ann x"));
  EXPECT_THAT(refusal({"a.test", "--user", "ann:x", "--user", "bob:y"}),
              HasSubstr("--user: two names for the same hosts"));
}

TEST_F(SessionArgumentsTest, AnEqualsSignInAPasswordNamesNoHost) {
  EXPECT_THAT(users({"https://a.test", "--user", "ann:x=y"}), ElementsAre("https://a.test ann x=y"));
  EXPECT_THAT(users({"https://a.test", "--user", "ann:1=y:z"}), ElementsAre("https://a.test ann 1=y:z"));
  EXPECT_THAT(users({"https://a.test", "--user", "ann@b.test:1=y:z"}), ElementsAre("https://a.test ann@b.test 1=y:z"));
  EXPECT_THAT(users({"https://a.test", "--user", "b.test:1=y"}), ElementsAre("https://a.test b.test 1=y"));
}

TEST_F(SessionArgumentsTest, PasswordsAreReadFromFilesAndVariables) {
  environment["PW"] = "of the environment";
  EXPECT_THAT(users({"https://a.test", "--user", "ann:@env:PW"}), ElementsAre("https://a.test ann of the environment"));
  EXPECT_THAT(users({"https://a.test", "--user", "ann:@" + file("pw", "of a file\r\nand more")}),
              ElementsAre("https://a.test ann of a file"));
  EXPECT_THAT(users({"https://a.test", "--user", "ann:@@home"}), ElementsAre("https://a.test ann @home"));
  EXPECT_EQ(refusal({"a.test", "--user", "ann:@env:NONE"}), "--user: there is no variable \"NONE\" in the environment");
  EXPECT_THAT(refusal({"a.test", "--user", "ann:@/no/where"}),
              HasSubstr("--user /no/where: No such file or directory; what begins with @"));
  EXPECT_THAT(refusal({"a.test", "--user", "ann:@" + file("empty", "\n")}), HasSubstr("its first line is empty"));
}

TEST_F(SessionArgumentsTest, WhatIsNoNameAndPasswordIsRefusedWithoutBeingTold) {
  const std::string refused = refusal({"a.test", "--user", "secret"});
  EXPECT_THAT(refused, HasSubstr("--user: write NAME:PASSWORD or HOST=NAME:PASSWORD"));
  EXPECT_THAT(refused, Not(HasSubstr("secret")));
  EXPECT_THAT(refusal({"a.test", "--user", "http://b.test/x=ann:secret"}), HasSubstr("in front of = is a host"));
  EXPECT_THAT(refusal({"a.test", "--user", "http://b.test/x=ann:secret"}), Not(HasSubstr("secret")));
}

TEST_F(SessionArgumentsTest, NetrcIsReadForItsMachinesAndItsDefaultForTheUrls) {
  const std::string path =
      file(".netrc",
           "machine a.test login ann password x\nmachine c.test login cid password z\ndefault login bob password y\n");
  EXPECT_THAT(
      users({"http://a.test", "http://b.test:81", "--netrc-file", path}),
      ElementsAre("https://a.test ann x", "http://a.test ann x", "https://c.test cid z", "http://b.test:81 bob y"));
  environment["HOME"] = folder.file("");
  EXPECT_THAT(users({"https://a.test", "--netrc"}), ElementsAre("https://a.test ann x", "https://c.test cid z"));
  environment.clear();
  EXPECT_THAT(refusal({"a.test", "--netrc"}), HasSubstr("--netrc: HOME does not say"));
  EXPECT_THAT(refusal({"a.test", "--netrc-file", folder.file("none")}),
              HasSubstr("--netrc-file " + folder.file("none")));
  EXPECT_THAT(refusal({"a.test", "--netrc-file", file("bad", "machine a.test pass secret")}),
              HasSubstr("bad: line 1: "));
  EXPECT_THROW((void)options_of({"a.test", "--netrc", "--netrc-file", path}), CLI::ParseError);
}

TEST_F(SessionArgumentsTest, ALoginIsAPageItsFieldsAndHowToTell) {
  environment["PW"] = "secret";
  const CrawlOptions options =
      taken({"a.test", "--login", "a.test/login?next=1", "--login-field", "user=ann", "--login-field",
             "password=@env:PW", "--login-check", "Welcome", "--login-check", "cookie:sid"});
  ASSERT_TRUE(options.login);
  EXPECT_EQ(options.login->page.href(), "https://a.test/login?next=1");
  EXPECT_EQ(options.login->fields,
            (std::vector<std::pair<std::string, std::string>>{{"user", "ann"}, {"password", "secret"}}));
  EXPECT_EQ(options.login->expected_text, "Welcome");
  EXPECT_EQ(options.login->expected_cookie, "sid");
}

TEST_F(SessionArgumentsTest, ALoginThatCannotBeIsRefusedByName) {
  EXPECT_THAT(refusal({"a.test", "--login", "a.test"}),
              HasSubstr("--login: nothing is filled in; --login-field NAME=VALUE"));
  EXPECT_EQ(refusal({"a.test", "--login", "ftp://a.test/", "--login-field", "a=b"}),
            "--login \"ftp://a.test/\": scheme \"ftp\" cannot be crawled; use http or https");
  EXPECT_THAT(refusal({"a.test", "--login", "https://ann:secret@a.test", "--login-field", "a=b"}),
              HasSubstr("have no place in this URL"));
  const std::vector<std::string> login{"a.test", "--login", "a.test"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), login.begin(), login.end());
    return refusal(more);
  };
  EXPECT_EQ(with({"--login-field", "secret"}),
            "--login-field: write it as NAME=VALUE, by the name that the form has for the field");
  EXPECT_EQ(with({"--login-field", "a=secret", "--login-field", "a=other"}), "--login-field a: given twice");
  EXPECT_EQ(with({"--login-field", "a=@env:NO"}), "--login-field a: there is no variable \"NO\" in the environment");
  EXPECT_THAT(with({"--login-field", "a=b", "--login-check", "x", "--login-check", "y"}),
              HasSubstr("--login-check: two texts"));
  EXPECT_THAT(with({"--login-field", "a=b", "--login-check", "cookie:"}),
              HasSubstr("--login-check: a text of the page"));
  EXPECT_THROW((void)options_of({"a.test", "--login-field", "a=b"}), CLI::ParseError) << "without --login";
}

}  // namespace
}  // namespace argiope
