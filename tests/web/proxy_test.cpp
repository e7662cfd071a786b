// What a proxy is, when it is used, whose turn it is, and what is said with it, without sockets.
#include "argiope/web/detail/proxy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "argiope/web/url.hpp"
#include "web/http/proxy_handshake.hpp"
#include "web/net/proxy_turns.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

std::string name_of_proxy(std::string_view text) {
  const auto proxy = Proxy::parse(text);
  return proxy ? proxy->name() : proxy.error().message;
}

TEST(Proxy, HasASchemeAHostAndAPortThatCurlWouldTake) {
  EXPECT_EQ(name_of_proxy("http://proxy.example:3128"), "http://proxy.example:3128");
  EXPECT_EQ(name_of_proxy("proxy.example:3128/"), "http://proxy.example:3128");
  EXPECT_EQ(name_of_proxy("proxy.example"), "http://proxy.example:1080");
  EXPECT_EQ(name_of_proxy("http://proxy.example:80"), "http://proxy.example:80");
  EXPECT_EQ(name_of_proxy("http://proxy.example:443"), "http://proxy.example:443");
  EXPECT_EQ(name_of_proxy("HTTPS://Proxy.Example"), "https://proxy.example:443");
  EXPECT_EQ(name_of_proxy("socks5://10.0.0.1"), "socks5://10.0.0.1:1080");
  EXPECT_EQ(name_of_proxy("socks5h://[::1]:9050"), "socks5h://[::1]:9050");
}

TEST(Proxy, HasCredentialsThatNoNameAndNoErrorTells) {
  const auto proxy = Proxy::parse("http://ann:s%3Acret@proxy.example:3128");
  ASSERT_TRUE(proxy);
  EXPECT_EQ(proxy->username, "ann");
  EXPECT_EQ(proxy->password, "s:cret");
  EXPECT_EQ(proxy->authorization(), "Basic YW5uOnM6Y3JldA==");
  EXPECT_EQ(proxy->name(), "http://proxy.example:3128");
  EXPECT_EQ(Proxy::parse("http://proxy.example")->authorization(), "");
  for (const char* bad :
       {"ftp://ann:secret@p", "ann:secret@p/path", "socks5://ann:secret@p:99999", "http://a%3A:secret@p"}) {
    EXPECT_THAT(name_of_proxy(bad), Not(HasSubstr("secret"))) << bad;
    EXPECT_THAT(name_of_proxy(bad), HasSubstr("proxy \""));
  }
}

TEST(Proxy, IsRefusedWithAReasonWhenItIsNone) {
  EXPECT_EQ(name_of_proxy("socks4://p"),
            "proxy \"socks4://p\": scheme \"socks4\" is not known; use http, https, socks5 or socks5h");
  EXPECT_THAT(name_of_proxy("http://p/path"), HasSubstr("has no path"));
  EXPECT_THAT(name_of_proxy("http://"), HasSubstr("proxy \"http://\": "));
  EXPECT_THAT(name_of_proxy("socks5://" + std::string(300, 'a') + ":b@p"), HasSubstr("255 bytes"));
}

TEST(DirectHosts, AreNamesWithTheirSubdomainsAddressesAndRanges) {
  const auto hosts = DirectHosts::parse("Example.org, .b.test *.c.test,10.0.0.0/8 192.168.1.7,[fd00::]/16,::1");
  ASSERT_TRUE(hosts);
  for (const char* host : {"example.org", "www.example.org", "example.org.", "b.test", "a.b.test", "x.c.test",
                           "10.255.0.1", "192.168.1.7", "[fd00:1::2]", "[::1]"}) {
    EXPECT_TRUE(hosts->contains(host)) << host;
  }
  for (const char* host : {"notexample.org", "org", "11.0.0.1", "192.168.1.8", "[fd01::]", "[::2]", "b.test.example"}) {
    EXPECT_FALSE(hosts->contains(host)) << host;
  }
  EXPECT_TRUE(DirectHosts::parse("a *")->contains("whatever"));
  EXPECT_FALSE(DirectHosts::parse("")->contains("whatever"));
  EXPECT_TRUE(DirectHosts::parse("0.0.0.0/0")->contains("9.9.9.9"));
  for (const char* bad : {"10.0.0.0/33", "a/b", "a.test:80", "10.0.0.0/x", "a@b", "a*"}) {
    const auto parsed = DirectHosts::parse(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_THAT(parsed.error().message, HasSubstr(bad));
  }
}

ProxySettings from(std::map<std::string, std::string> variables) {
  return ProxySettings::from_environment([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}
std::string names(const std::vector<Proxy>& proxies) {
  std::string text;
  for (const Proxy& proxy : proxies) text += proxy.name() + " ";
  return text;
}

TEST(ProxyEnvironment, MayHaveSpaceAroundItsValues) {
  EXPECT_EQ(names(from({{"http_proxy", " http://a:1\n"}}).for_http),
            names(from({{"http_proxy", "http://a:1"}}).for_http));
  EXPECT_TRUE(from({{"http_proxy", "  "}}).empty());
}

TEST(ProxyEnvironment, IsReadAsCurlReadsIt) {
  EXPECT_TRUE(from({}).empty());
  EXPECT_TRUE(from({{"HTTP_PROXY", "http://cgi:1"}}).empty()) << "a CGI program has it from its clients";
  const auto both = from({{"http_proxy", "a:1"}, {"https_proxy", "b:2"}, {"HTTPS_PROXY", "c:3"}, {"all_proxy", "d:4"}});
  EXPECT_EQ(names(both.for_http), "http://a:1 ");
  EXPECT_EQ(names(both.for_https), "http://b:2 ") << "lower case comes first";
  const auto all = from({{"http_proxy", ""}, {"HTTPS_PROXY", "c:3"}, {"ALL_PROXY", "socks5://d:4"}});
  EXPECT_EQ(names(all.for_http), "socks5://d:4 ") << "what is empty is not set";
  EXPECT_EQ(names(all.for_https), "http://c:3 ");
  EXPECT_TRUE(from({{"all_proxy", "a:1"}, {"no_proxy", "x.test"}, {"NO_PROXY", "y.test"}}).direct.contains("x.test"));
  EXPECT_FALSE(from({{"all_proxy", "a:1"}, {"no_proxy", "x.test"}, {"NO_PROXY", "y.test"}}).direct.contains("y.test"));
  EXPECT_TRUE(from({{"all_proxy", "nonsense://"}, {"NO_PROXY", "*"}}).empty());
  EXPECT_TRUE(from({{"all_proxy", "a:1"}, {"no_proxy", "x:80,y.test"}}).direct.contains("y.test"))
      << "odd ones are passed over";
}

TEST(ProxyEnvironment, LeavesLoopbackAloneAndNamesAVariableThatIsNoProxy) {
  EXPECT_TRUE(from({{"all_proxy", "a:1"}}).direct.contains("127.0.0.1"));
  EXPECT_TRUE(from({{"all_proxy", "a:1"}}).direct.contains("localhost"));
  const auto bad = from({{"https_proxy", "gopher://p"}});
  EXPECT_TRUE(bad.for_https.empty());
  EXPECT_THAT(bad.trouble_for_https, HasSubstr("https_proxy: proxy \"gopher://p\""));
  EXPECT_EQ(bad.trouble_for_http, "") << "URLs by http need no proxy";
  EXPECT_FALSE(bad.looks_up_here("a.test")) << "the name is for a proxy's ears alone";
  const auto gnome = from({{"ALL_PROXY", "socks://127.0.0.1:9/"}});
  EXPECT_THAT(gnome.trouble_for_http,
              HasSubstr("ALL_PROXY: proxy \"socks://127.0.0.1:9/\": scheme \"socks\" is not known"));
  EXPECT_EQ(gnome.trouble_for_https, gnome.trouble_for_http);
}

TEST(ProxySettings, KnowWhichNamesAProxyLooksUp) {
  ProxySettings settings;
  EXPECT_TRUE(settings.looks_up_here("a.test"));
  settings.for_http = {*Proxy::parse("socks5://p")};
  EXPECT_TRUE(settings.looks_up_here("a.test"));
  settings.for_https = {*Proxy::parse("socks5h://p")};
  settings.direct = *DirectHosts::parse("b.test");
  EXPECT_FALSE(settings.looks_up_here("a.test"));
  EXPECT_TRUE(settings.looks_up_here("b.test"));
}

TEST(AddressGuardNames, RefusesWhatIsPrivateWhereverItIsLookedUp) {
  AddressGuard guard(false, "do otherwise");
  for (const char* host : {"127.0.0.1", "[::1]", "10.1.2.3", "169.254.169.254", "localhost", "a.localhost", "intranet",
                           "printer.local", "metadata.google.internal", "router.home.arpa", "localhost."}) {
    const auto checked = guard.check_name(host);
    ASSERT_FALSE(checked) << host;
    EXPECT_EQ(checked.error().code, Errc::refused);
    EXPECT_THAT(checked.error().message, HasSubstr("do otherwise"));
  }
  for (const char* host : {"example.org", "9.9.9.9", "local.example.org",
                           "duckduckgogg42xjoc72x3sjasowoarfbgcmvfimaftt6twagswzczad.onion"}) {
    EXPECT_TRUE(guard.check_name(host)) << host;
  }
  guard.permit_name("intranet");
  EXPECT_TRUE(guard.check_name("intranet"));
  EXPECT_FALSE(guard.check_name("extranet"));
  guard.permit_loopback();
  EXPECT_TRUE(guard.check_name("localhost"));
  EXPECT_TRUE(AddressGuard(true).check_name("printer.local"));
}

// --- turns

class ProxyTurnsTest : public ::testing::Test {
 protected:
  ProxyTurns turns{{*Proxy::parse("a:1"), *Proxy::parse("b:1"), *Proxy::parse("c:1")}};
  TimePoint now{1h};

  std::string choose(std::string_view host) { return turns.choose(host, now).host; }
  void fail_choice(std::string_view host) { turns.failed(turns.choose(host, now), now); }
};

TEST_F(ProxyTurnsTest, HostsTakeThemInTurnAndKeepTheirs) {
  EXPECT_EQ(choose("1"), "a");
  EXPECT_EQ(choose("2"), "b");
  EXPECT_EQ(choose("3"), "c");
  EXPECT_EQ(choose("4"), "a");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(choose("2"), "b");
}

TEST_F(ProxyTurnsTest, OneThatFailsRestsAndItsHostsMoveForGood) {
  EXPECT_EQ(choose("1"), "a");
  fail_choice("1");
  const std::string other = choose("1");
  EXPECT_NE(other, "a");
  for (int i = 0; i < 10; ++i) EXPECT_NE(choose(std::to_string(i + 10)), "a");
  now += 31s;
  EXPECT_EQ(choose("1"), other);
  bool is_back = false;
  for (int i = 0; i < 10; ++i) is_back = is_back || choose(std::to_string(i + 100)) == "a";
  EXPECT_TRUE(is_back);
}

TEST_F(ProxyTurnsTest, RestsGrowToABoundAndEndWithASuccess) {
  const Proxy& a = turns.choose("1", now);
  for (const Duration rest : {30s, 60s, 120s, 240s, 480s, 600s, 600s}) {
    turns.failed(a, now);
    turns.failed(a, now);  // of the same trouble
    EXPECT_NE(&turns.choose("1", now + rest - 1s), &a);
    now += rest;
  }
  turns.worked(a);
  turns.failed(a, now);
  now += 30s;
  bool is_back = false;
  for (int i = 0; i < 10; ++i) is_back = is_back || &turns.choose(std::to_string(i), now) == &a;
  EXPECT_TRUE(is_back);
}

TEST_F(ProxyTurnsTest, WhenAllRestTheFirstToComeBackIsAskedAndNobodyMoves) {
  EXPECT_EQ(choose("1"), "a");
  EXPECT_EQ(choose("2"), "b");
  EXPECT_EQ(choose("3"), "c");
  for (const char* host : {"1", "2", "3"}) {
    turns.failed(turns.choose(host, TimePoint{}), now);
    now += 1s;
  }
  EXPECT_EQ(choose("3"), "a");
  now += 1min;
  EXPECT_EQ(choose("3"), "c");
}

TEST_F(ProxyTurnsTest, RemembersABoundedNumberOfHostsAndTheOthersKeepTheirsAllTheSame) {
  for (std::size_t i = 0; i < ProxyTurns::kRemembered; ++i) choose(std::to_string(i));
  std::map<std::string, int> counts;
  for (int i = 0; i < 3000; ++i) {
    const std::string host = "late" + std::to_string(i);
    const std::string proxy = choose(host);
    EXPECT_EQ(choose(host), proxy);
    ++counts[proxy];
  }
  for (const char* proxy : {"a", "b", "c"}) EXPECT_GT(counts[proxy], 700);
}

TEST(ProxyTurns, OfOneAlwaysGivesThatOne) {
  ProxyTurns turns({*Proxy::parse("a:1")});
  turns.failed(turns.choose("1", TimePoint{}), TimePoint{});
  EXPECT_EQ(turns.choose("1", TimePoint{}).host, "a");
}

// --- SOCKS5

const Proxy kPlain = *Proxy::parse("socks5h://p:1080");
const Proxy kWithLogin = *Proxy::parse("socks5h://ann:secret@p:1080");
constexpr std::string_view kConnected("\5\0\0\1\1\2\3\4\0\1", 10);

// Gives the proxy's answers in the portions that are asked for; what was said, or the error.
struct Conversation {
  std::string said;
  Opened<void> verdict;
  std::size_t used = 0;

  Conversation(const Proxy& proxy, ProxyTarget target, std::string_view answers) {
    Socks5Handshake handshake(proxy, std::move(target), 443);
    while (handshake.wants() > 0 && verdict) {
      said += handshake.take_output();
      if (answers.size() - used < handshake.wants()) break;
      const std::string_view portion = answers.substr(used, handshake.wants());
      used += portion.size();
      verdict = handshake.take(portion);
    }
    said += handshake.take_output();
  }
  std::string trouble() const { return verdict ? "" : verdict.error().error.message; }
};

TEST(Socks5, AsksForANameOrAnAddressAsRfc1928Says) {
  const Conversation named(kPlain, "a.test", std::string("\5\0", 2) + std::string(kConnected));
  EXPECT_EQ(named.trouble(), "");
  EXPECT_EQ(named.said, std::string("\5\1\0\5\1\0\3\6a.test\1\xbb", 16));
  EXPECT_EQ(named.used, 12u) << "not a byte more: what follows is the server's";
  const Conversation v4(kPlain, *IpAddress::parse("9.8.7.6"), std::string("\5\0", 2) + std::string(kConnected));
  EXPECT_EQ(v4.said, std::string("\5\1\0\5\1\0\1\x09\x08\x07\x06\1\xbb", 13));
  const Conversation v6(kPlain, *IpAddress::parse("::1"), std::string("\5\0", 2) + std::string(kConnected));
  EXPECT_EQ(v6.said.size(), 3u + 4 + 16 + 2);
}

TEST(Socks5, ReadsEveryKindOfBoundAddressToItsEnd) {
  for (const std::string& reply : {std::string("\5\0\0\4", 4) + std::string(18, 'x'),
                                   std::string("\5\0\0\3\4name\0\1", 11), std::string("\5\0\0\3\0\0\1", 7)}) {
    const Conversation talk(kPlain, "a.test", std::string("\5\0", 2) + reply + "surplus");
    EXPECT_EQ(talk.trouble(), "");
    EXPECT_EQ(talk.used, 2 + reply.size());
  }
}

TEST(Socks5, LogsInByRfc1929WhereItIsAsked) {
  const Conversation talk(kWithLogin, "a.test", std::string("\5\2\1\0", 4) + std::string(kConnected));
  EXPECT_EQ(talk.trouble(), "");
  EXPECT_TRUE(talk.said.starts_with(std::string("\5\2\0\2\1\3ann\6secret", 16)));
  const Conversation free(kWithLogin, "a.test", std::string("\5\0", 2) + std::string(kConnected));
  EXPECT_THAT(free.said, Not(HasSubstr("secret"))) << "a proxy that wants no login gets none";
}

TEST(Socks5, SaysWhatIsWrongAndWhoseTroubleItIs) {
  struct Case {
    const Proxy& proxy;
    std::string answers;
    const char* text;
    bool is_of_proxy;
  };
  const auto replied = [](char code) { return std::string("\5\0\5", 3) + code + std::string("\0\1\0\0\0\0\0\0", 8); };
  const Case cases[] = {{kPlain, "HTTP/1.1 400", "does not speak SOCKS5", true},
                        {kPlain, "\5\xff", "wants a name and a password; give them as", true},
                        {kWithLogin, "\5\xff", "another login", true},
                        {kPlain, "\5\2", "another login", true},
                        {kPlain, "\5\1", "another login", true},
                        {kWithLogin, "\5\2\1\1", "refuses the name and the password", true},
                        {kPlain, replied(1), "cannot connect there", false},
                        {kPlain, replied(2), "rules do not allow", false},
                        {kPlain, replied(5), "refused the connection", false},
                        {kPlain, replied(6), "no answer from there", false},
                        {kPlain, replied(7), "opens no connections", true},
                        {kPlain, replied(9), "a reason of its own (9)", false},
                        {kPlain, std::string("\5\0\5\0\0\7\0", 7), "address of an unknown kind", true},
                        {kPlain, std::string("\5\0\4\0\0\1\0", 7), "does not speak SOCKS5", true}};
  for (const Case& one : cases) {
    const Conversation talk(one.proxy, "a.test", one.answers);
    EXPECT_THAT(talk.trouble(), HasSubstr(one.text));
    EXPECT_THAT(talk.trouble(), HasSubstr("proxy socks5h://p:1080: "));
    EXPECT_THAT(talk.trouble(), Not(HasSubstr("secret")));
    ASSERT_FALSE(talk.verdict) << one.text;
    EXPECT_EQ(talk.verdict.error().is_of_proxy, one.is_of_proxy) << one.text;
  }
}

// --- CONNECT

const Proxy kHttp = *Proxy::parse("http://ann:secret@p:3128");

Opened<bool> answered(std::string_view answer, std::size_t piece = std::string_view::npos) {
  ConnectAnswer reading(kHttp);
  Opened<bool> verdict = false;
  while (verdict && !*verdict && !answer.empty()) {
    verdict = reading.feed(answer.substr(0, piece));
    answer.remove_prefix(std::min(piece, answer.size()));
  }
  return verdict;
}

TEST(Connect, IsAskedWithThePortAndTheLogin) {
  const std::string request = connect_request(*Url::parse("https://[::1]/x"), kHttp, "spider/1");
  EXPECT_EQ(request,
            "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\nProxy-Authorization: Basic YW5uOnNlY3JldA==\r\n"
            "User-Agent: spider/1\r\n\r\n");
  EXPECT_EQ(connect_request(*Url::parse("https://a.test:81/"), *Proxy::parse("p"), ""),
            "CONNECT a.test:81 HTTP/1.1\r\nHost: a.test:81\r\n\r\n");
}

TEST(Connect, IsDoneByAnySuccessWhateverBodyItClaims) {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::string_view::npos}) {
    for (const char* answer :
         {"HTTP/1.0 200 Connection established\r\n\r\n", "HTTP/1.1 299 \r\nContent-Length: 99\r\n\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
          "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"}) {
      const auto verdict = answered(answer, piece);
      ASSERT_TRUE(verdict) << verdict.error().error.message;
      EXPECT_TRUE(*verdict) << answer;
    }
  }
}

TEST(Connect, SaysWhatIsWrongAndWhoseTroubleItIs) {
  struct Case {
    std::string answer;
    Errc code;
    const char* text;
    bool is_of_proxy;
  };
  std::string endless;
  for (int i = 0; i < 20; ++i) endless += "HTTP/1.1 102 Wait\r\n\r\n";
  const Case cases[] = {
      {"HTTP/1.1 407 No\r\n\r\n", Errc::refused,
       "wants a name and a password (407); those that were given are not right", true},
      {"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", Errc::refused, "HTTP 403 instead of a connection", false},
      {"HTTP/1.1 502 No\r\n\r\n", Errc::network, "HTTP 502", false},
      {"HTTP/1.1 504 No\r\n\r\n", Errc::timeout, "HTTP 504", false},
      {"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK", Errc::protocol, "more than its answer", true},
      {"\5\0", Errc::protocol, "bad HTTP response", true},
      {"HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'a'), Errc::too_large, "larger than", true},
      {endless, Errc::protocol, "too many interim", true}};
  for (const Case& one : cases) {
    const auto verdict = answered(one.answer);
    ASSERT_FALSE(verdict) << one.text;
    EXPECT_EQ(verdict.error().error.code, one.code) << one.text;
    EXPECT_THAT(verdict.error().error.message, HasSubstr(one.text));
    EXPECT_THAT(verdict.error().error.message, HasSubstr("proxy http://p:3128"));
    EXPECT_THAT(verdict.error().error.message, Not(HasSubstr("secret")));
    EXPECT_EQ(verdict.error().is_of_proxy, one.is_of_proxy) << one.text;
  }
}

}  // namespace
}  // namespace argiope
