// Which links a crawl that has logged in keeps away from.
#include "crawl/scope/logout_links.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace argiope {
namespace {

TEST(LogoutLinks, AreToldByASegmentOfTheirPath) {
  for (const char* path :
       {"/logout", "/Logout/", "/log-out", "/log_out", "/signout", "/users/sign_out", "/logoff.aspx", "/logout.php",
        "/a/logout.do;jsessionid=1", "/wiki/Special:UserLogout", "/wiki/Special%3AUserLogout", "/oauth2/sign_out",
        "/account/do-logout", "/connect/endsession", "/fr/deconnexion", "/logout?next=/", "/logout#top"}) {
    EXPECT_TRUE(reads_as_logout(std::string("https://example.org") + path)) << path;
  }
}

TEST(LogoutLinks, AreToldByANameOrAValueOfTheirQuery) {
  for (const char* query :
       {"?logout", "?logout=true", "?action=logout", "?a=1&mode=logout", "?option=com_users&task=user.logout",
        "?title=Special:UserLogout&returnto=Main", "?logout#x"}) {
    EXPECT_TRUE(reads_as_logout(std::string("https://example.org/index.php") + query)) << query;
  }
  EXPECT_TRUE(reads_as_logout("https://example.org?logout"));
}

TEST(LogoutLinks, ArePagesThatOnlySpeakOfItNot) {
  for (const char* path : {"/",
                           "/login",
                           "/how-to-log-out-of-windows",
                           "/help/signing-out",
                           "/blog/logout-and-privacy",
                           "/layout",
                           "/blogout",
                           "/signoffs/2026",
                           "/login?next=/logout",
                           "/login?next=%2Flogout",
                           "/?q=how+to+logout",
                           "/#logout",
                           "/img/logout.png",
                           "/logout.svg",
                           "/js/logout.js",
                           "/out",
                           "/users",
                           "/a.b.c",
                           "/.",
                           "/%",
                           "/%2",
                           "/?",
                           "/?=&&="}) {
    EXPECT_FALSE(reads_as_logout(std::string("https://example.org") + path)) << path;
  }
  EXPECT_FALSE(reads_as_logout("https://logout.example.org/"));
  EXPECT_FALSE(reads_as_logout("https://example.org"));
  EXPECT_FALSE(reads_as_logout(""));
  EXPECT_FALSE(reads_as_logout("https://example.org/" + std::string(100'000, 'x') + "logout"));
}

TEST(LogoutGuard, LetsThroughWhatAPatternNames) {
  const LogoutGuard all({"/**", "https://example.org/members/**"});
  EXPECT_TRUE(all.bars("https://example.org/members/logout"));
  const LogoutGuard named({"/**", "/members/log-out"});
  EXPECT_FALSE(named.bars("https://example.org/members/log-out"));
  EXPECT_TRUE(named.bars("https://example.org/logout"));
  EXPECT_FALSE(LogoutGuard({"re:/logout$"}).bars("https://example.org/logout"));
  EXPECT_FALSE(LogoutGuard({}).bars("https://example.org/members/1"));
  EXPECT_THROW(LogoutGuard({"re:(logout"}), std::invalid_argument);
}

}  // namespace
}  // namespace argiope
