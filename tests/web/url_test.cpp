#include "argiope/web/url.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cctype>
#include <fstream>
#include <sstream>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

namespace json = boost::json;

std::string resolve(std::string_view input, std::string_view base) {
  const auto parsed_base = Url::parse(base);
  const auto url = Url::parse(input, &*parsed_base);
  return url ? url->href() : "failure";
}

// The suite writes unpaired surrogates, which UTF-8 (and so this parser's input) cannot hold; the standard converts
// such strings to scalar values first, which makes each U+FFFD. The same is done here to the file's text.
std::string replace_lone_surrogates(std::string text) {
  const auto unit_at = [&](std::size_t i) -> long {
    if (i + 6 > text.size() || text[i] != '\\' || text[i + 1] != 'u') return -1;
    return std::strtol(text.substr(i + 2, 4).c_str(), nullptr, 16);
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] != 'u') {
      ++i;
      continue;
    }
    const long unit = unit_at(i);
    if (unit < 0xd800 || unit > 0xdfff) continue;
    const long next = unit_at(i + 6);
    if (unit < 0xdc00 && next >= 0xdc00 && next <= 0xdfff) {
      i += 11;
    } else {
      text.replace(i, 6, "\\ufffd");
    }
  }
  return text;
}

std::string text_of(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string{};
}

std::string with_colon(std::string_view scheme) { return std::string(scheme) + ":"; }

// The scheme a text begins with, in lower case, or nothing: the standard's scheme states, read once more so that the
// parser under test has no say in which cases count.
std::string scheme_of(std::string_view text) {
  std::string scheme;
  for (const char c : text) {
    const bool leading = scheme.empty() && static_cast<unsigned char>(c) <= ' ';
    if (leading || c == '\t' || c == '\n' || c == '\r') continue;
    if (c == ':') return scheme;
    const bool letter = std::isalpha(static_cast<unsigned char>(c)) != 0;
    if (!letter && (scheme.empty() || std::string_view{"0123456789+-."}.find(c) == std::string_view::npos)) break;
    scheme += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return {};
}

bool is_special(std::string_view scheme) {
  constexpr std::string_view kSpecial[] = {"http", "https", "ws", "wss", "ftp", "file"};
  return std::ranges::find(kSpecial, scheme) != std::end(kSpecial);
}

bool has_parts(const Url& url, const json::object& test) {
  return url.href() == text_of(test, "href") && with_colon(url.scheme()) == text_of(test, "protocol") &&
         url.username() == text_of(test, "username") && url.password() == text_of(test, "password") &&
         url.host_and_port() == text_of(test, "host") && url.host() == text_of(test, "hostname") &&
         url.port() == text_of(test, "port") && url.pathname() == text_of(test, "pathname") &&
         url.search() == text_of(test, "search") && url.hash() == text_of(test, "hash");
}

// The conformance data of the URL Standard. A case is left out when the scheme that decides how its input is read is
// there and is not special: the input's own or, if it has none, the base's. Of those it is asked only that the parser
// calls them unsupported and not wrong. Nothing else is left out.
TEST(UrlStandard, EveryCaseOfSpecialSchemesPasses) {
  const std::string path = ARGIOPE_SOURCE_DIR "/../shared/data/urltestdata.json";
  std::ifstream file(path);
  if (!file) GTEST_SKIP() << "conformance data not found: " << path;
  std::stringstream buffer;
  buffer << file.rdbuf();
  const json::value document = json::parse(replace_lone_surrogates(buffer.str()));
  const auto total = std::ranges::count_if(document.as_array(), [](const json::value& v) { return v.is_object(); });

  int passed = 0, left_out = 0, failed = 0;
  for (const json::value& entry : document.as_array()) {
    if (!entry.is_object()) continue;  // a comment
    const json::object& test = entry.as_object();
    const std::string input = text_of(test, "input");
    const std::string base_text = text_of(test, "base");
    const Result<Url> base = Url::parse(base_text);
    Url url;
    const UrlStatus status = parse_into(url, input, base ? &*base : nullptr);
    const std::string told = "\"" + input + "\" against \"" + base_text + "\"";

    const std::string own = scheme_of(input);
    const std::string deciding = own.empty() ? scheme_of(base_text) : own;
    if (!deciding.empty() && !is_special(deciding)) {
      ++left_out;
      EXPECT_TRUE(own.empty() ? base.error().code == Errc::unsupported : status == UrlStatus::unsupported) << told;
      continue;
    }
    const bool right = test.contains("failure") ? status != UrlStatus::ok && status != UrlStatus::unsupported
                                                : status == UrlStatus::ok && has_parts(url, test);
    ++(right ? passed : failed);
    EXPECT_TRUE(right) << told << "\n  got      " << url.href() << " (" << to_string(status) << ")\n  expected "
                       << (test.contains("failure") ? "failure" : text_of(test, "href"));
  }
  std::printf("urltestdata.json: %d passed, %d failed, %d left out (schemes that are not special)\n", passed, failed,
              left_out);
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(passed + left_out, total);
  EXPECT_GT(passed, 600);
}

TEST(Url, NamesItsParts) {
  const auto url = Url::parse("https://me:secret@Example.ORG:8443/a/b.html?q=1#top");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->scheme(), "https");
  EXPECT_EQ(url->username(), "me");
  EXPECT_EQ(url->password(), "secret");
  EXPECT_EQ(url->host(), "example.org");
  EXPECT_EQ(url->port(), "8443");
  EXPECT_EQ(url->effective_port(), 8443);
  EXPECT_EQ(url->path_and_query(), "/a/b.html?q=1");
  EXPECT_EQ(url->hash(), "#top");
  EXPECT_EQ(url->site_key(), "https://example.org:8443");
  EXPECT_EQ(url->without_fragment(), "https://me:secret@example.org:8443/a/b.html?q=1");
}

TEST(Url, LosesItsFragmentAndNothingElse) {
  auto url = Url::parse("http://a/b?c#d");
  url->strip_fragment();
  EXPECT_EQ(url->href(), "http://a/b?c");
  url->strip_fragment();
  EXPECT_EQ(url->href(), "http://a/b?c");
}

TEST(Url, FillsInTheDefaultPortAndDropsItFromTheText) {
  EXPECT_EQ(Url::parse("http://a:80/")->href(), "http://a/");
  EXPECT_EQ(Url::parse("http://a/")->effective_port(), 80);
  EXPECT_EQ(Url::parse("https://a/")->effective_port(), 443);
  EXPECT_EQ(Url::parse("https://a:80/")->href(), "https://a:80/");
}

// RFC 3986, 5.4, normal and abnormal examples. Left out is "g:h", a scheme that is not special.
TEST(Url, ResolvesTheExamplesOfRfc3986) {
  constexpr std::string_view base = "http://a/b/c/d;p?q";
  constexpr std::pair<std::string_view, std::string_view> kExamples[] = {
      {"g", "http://a/b/c/g"},
      {"./g", "http://a/b/c/g"},
      {"g/", "http://a/b/c/g/"},
      {"/g", "http://a/g"},
      {"//g", "http://g/"},  // the standard writes an empty path "/"
      {"?y", "http://a/b/c/d;p?y"},
      {"g?y", "http://a/b/c/g?y"},
      {"#s", "http://a/b/c/d;p?q#s"},
      {"g#s", "http://a/b/c/g#s"},
      {"g?y#s", "http://a/b/c/g?y#s"},
      {";x", "http://a/b/c/;x"},
      {"g;x", "http://a/b/c/g;x"},
      {"g;x?y#s", "http://a/b/c/g;x?y#s"},
      {"", "http://a/b/c/d;p?q"},
      {".", "http://a/b/c/"},
      {"./", "http://a/b/c/"},
      {"..", "http://a/b/"},
      {"../", "http://a/b/"},
      {"../g", "http://a/b/g"},
      {"../..", "http://a/"},
      {"../../", "http://a/"},
      {"../../g", "http://a/g"},
      {"../../../g", "http://a/g"},
      {"../../../../g", "http://a/g"},
      {"/./g", "http://a/g"},
      {"/../g", "http://a/g"},
      {"g.", "http://a/b/c/g."},
      {".g", "http://a/b/c/.g"},
      {"g..", "http://a/b/c/g.."},
      {"..g", "http://a/b/c/..g"},
      {"./../g", "http://a/b/g"},
      {"./g/.", "http://a/b/c/g/"},
      {"g/./h", "http://a/b/c/g/h"},
      {"g/../h", "http://a/b/c/h"},
      {"g;x=1/./y", "http://a/b/c/g;x=1/y"},
      {"g;x=1/../y", "http://a/b/c/y"},
      {"g?y/./x", "http://a/b/c/g?y/./x"},
      {"g#s/../x", "http://a/b/c/g#s/../x"},
      {"http:g", "http://a/b/c/g"},  // the RFC's backward-compatible reading
  };
  for (const auto& [reference, expected] : kExamples) EXPECT_EQ(resolve(reference, base), expected) << reference;
}

TEST(Url, ReadsWhatPeopleWriteInLinks) {
  constexpr std::string_view base = "https://docs.example/en/cpp/index.html?v=1#top";
  EXPECT_EQ(resolve("  vector.html\n", base), "https://docs.example/en/cpp/vector.html");
  EXPECT_EQ(resolve("vec\n\ttor.html", base), "https://docs.example/en/cpp/vector.html");
  EXPECT_EQ(resolve("ht\ntps://a/", base), "https://a/");
  EXPECT_EQ(resolve("..\\c\\x.html", base), "https://docs.example/en/c/x.html");
  EXPECT_EQ(resolve("\\\\other.example\\x", base), "https://other.example/x");
  EXPECT_EQ(resolve("a b.html?c d#e f", base), "https://docs.example/en/cpp/a%20b.html?c%20d#e%20f");
  EXPECT_EQ(resolve("ü?ü#ü", base), "https://docs.example/en/cpp/%C3%BC?%C3%BC#%C3%BC");
  EXPECT_EQ(resolve("%2e%2E/x/%2e/y", base), "https://docs.example/en/x/y");
  EXPECT_EQ(resolve("a%2fb%zz%", base), "https://docs.example/en/cpp/a%2fb%zz%");
  EXPECT_EQ(resolve("https:vector.html", base), "https://docs.example/en/cpp/vector.html");
  EXPECT_EQ(resolve("http:vector.html", base), "http://vector.html/");
  EXPECT_EQ(resolve("https:////a////b", base), "https://a////b");
  EXPECT_EQ(resolve("?", base), "https://docs.example/en/cpp/index.html?");
  EXPECT_EQ(resolve("#", base), "https://docs.example/en/cpp/index.html?v=1#");
}

TEST(Url, ReadsBytesThatAreNotUtf8AsReplacementCharacters) {
  EXPECT_EQ(resolve("caf\xe9.html?\xff#\xc3", "http://a/"), "http://a/caf%EF%BF%BD.html?%EF%BF%BD#%EF%BF%BD");
  EXPECT_EQ(resolve("http://caf\xe9/", "http://a/"), "failure");
}

TEST(Url, WritesHostsInOneForm) {
  const auto host = [](std::string_view text) {
    const auto url = Url::parse("http://" + std::string(text) + "/");
    return url ? std::string(url->host()) : "failure";
  };
  EXPECT_EQ(host("WWW.Example.ORG"), "www.example.org");
  EXPECT_EQ(host("example%2Eorg"), "example.org");
  EXPECT_EQ(host("Bücher.example"), "xn--bcher-kva.example");
  EXPECT_EQ(host("B%C3%BCcher.example"), "xn--bcher-kva.example");
  EXPECT_EQ(host("straße.example"), "xn--strae-oqa.example");
  EXPECT_EQ(host("例え。テスト"), "xn--r8jz45g.xn--zckzah");
  EXPECT_EQ(host("-a_b-.c"), "-a_b-.c");
  EXPECT_EQ(host("xn--a"), "xn--a");
  EXPECT_EQ(host("ü.xn--a"), "failure");
  EXPECT_EQ(host("a b"), "failure");
  EXPECT_EQ(host("a%00b"), "failure");
  EXPECT_EQ(host("\u00ad"), "failure");  // nothing is left of a soft hyphen
  EXPECT_EQ(host("127.1"), "127.0.0.1");
  EXPECT_EQ(host("0x7f.0.0.01."), "127.0.0.1");
  EXPECT_EQ(host("4294967295"), "255.255.255.255");
  EXPECT_EQ(host("4294967296"), "failure");
  EXPECT_EQ(host("1.2.3.4.5"), "failure");
  EXPECT_EQ(host("１.2.3.4"), "1.2.3.4");
  EXPECT_EQ(host("[1:0:0:2:0:0:0:3]"), "[1:0:0:2::3]");
  EXPECT_EQ(host("[::FFFF:1.2.3.4]"), "[::ffff:102:304]");
  EXPECT_EQ(host("[1::2::3]"), "failure");
  EXPECT_EQ(host("[::1"), "failure");
}

TEST(Url, TellsAddressesFromNames) {
  for (const char* address : {"http://127.1/", "http://0x7f000001/", "http://[::1]:80/", "http://１２７.0.0.1/"}) {
    EXPECT_TRUE(Url::parse(address)->is_ip_host()) << address;
  }
  for (const char* name : {"http://a/", "http://1.example/", "http://a.1b/", "http://1e2./", "file:///1"}) {
    EXPECT_FALSE(Url::parse(name)->is_ip_host()) << name;
  }
  EXPECT_FALSE(Url{}.is_ip_host());
}

TEST(Url, KeepsCredentialsOutOfTheSiteKey) {
  const auto url = Url::parse("http://me:p%40ss@a:81/x");
  EXPECT_EQ(url->password(), "p%40ss");
  EXPECT_EQ(url->site_key(), "http://a:81");
  EXPECT_EQ(Url::parse("http://user:@a/")->href(), "http://user@a/");
  EXPECT_EQ(Url::parse("http://:@a/")->href(), "http://a/");
  EXPECT_EQ(Url::parse("http://:p@a/")->password(), "p");
  EXPECT_EQ(Url::parse("http://a@b@c/")->username(), "a%40b");
}

TEST(Url, SaysWhatIsWrong) {
  const Error mail = Url::parse(" MAIL\tTO:me@example.org").error();
  EXPECT_EQ(mail.code, Errc::unsupported);
  EXPECT_NE(mail.message.find("\"MAILTO\""), std::string::npos) << mail.message;
  EXPECT_LT(Url::parse(std::string(60'000, 'x') + ":").error().message.size(), 200u);
  EXPECT_EQ(Url::parse("example.org/x").error().code, Errc::invalid_input);
  EXPECT_NE(Url::parse("http://a:99999/").error().message.find("port"), std::string::npos);
  EXPECT_NE(Url::parse("http:///?").error().message.find("host"), std::string::npos);
}

TEST(Url, HasNoPartsUntilItIsParsed) {
  const Url url;
  EXPECT_EQ(url.href(), "");
  for (const std::string_view part :
       {url.scheme(), url.username(), url.password(), url.host(), url.port(), url.host_and_port(), url.pathname(),
        url.search(), url.hash(), url.path_and_query(), url.without_fragment()}) {
    EXPECT_EQ(part, "");
  }
  EXPECT_EQ(url.effective_port(), 0);
  EXPECT_EQ(url.site_key(), "");
  Url out;
  EXPECT_EQ(parse_into(out, "x", &url), UrlStatus::no_base);
}

TEST(Url, IsNeverLongerThanTheLimit) {
  const std::string prefix = "http://a/";
  const std::string longest = prefix + std::string(kMaxUrlLength - prefix.size(), 'x');
  EXPECT_TRUE(Url::parse(longest));
  EXPECT_EQ(Url::parse(longest + "x").error().code, Errc::too_large);
  // Short enough as written, but not with every byte percent-encoded; and not when added to a long base.
  EXPECT_EQ(Url::parse(prefix + std::string(kMaxUrlLength / 2, '^')).error().code, Errc::too_large);
  const auto base = Url::parse(longest.substr(0, kMaxUrlLength - 1) + "/");
  ASSERT_TRUE(base);
  EXPECT_EQ(Url::parse("xy", &*base).error().code, Errc::too_large);
}

TEST(Url, RefusesEndlessInternationalHostsAndNoOthers) {
  // ICU refuses single labels of this length by itself, so they are short here.
  const auto host_of = [](std::size_t bytes) {
    std::string host = "ü";
    while (host.size() < bytes) host += host.size() % 50 == 0 ? '.' : 'a';
    return "http://" + host + "/";
  };
  EXPECT_TRUE(Url::parse(host_of(kMaxInternationalHostLength)));
  EXPECT_EQ(Url::parse(host_of(kMaxInternationalHostLength + 1)).error().code, Errc::invalid_input);
  EXPECT_TRUE(Url::parse("http://" + std::string(60'000, 'a') + "/"));
}

TEST(Url, IsParsedIntoMemoryThatIsThere) {
  Url url;
  ASSERT_EQ(parse_into(url, "http://a/" + std::string(500, 'x'), nullptr), UrlStatus::ok);
  const auto base = Url::parse("http://host.example/some/where/index.html");
  const char* const memory = url.href().data();
  EXPECT_EQ(parse_into(url, "../else.html", &*base), UrlStatus::ok);
  EXPECT_EQ(url.href(), "http://host.example/some/else.html");
  EXPECT_EQ(parse_into(url, "mailto:me@example.org", &*base), UrlStatus::unsupported);
  EXPECT_EQ(url, Url{});
  EXPECT_EQ(parse_into(url, "http://a:b/", &*base), UrlStatus::bad_port);
  EXPECT_EQ(url.host(), "");
  EXPECT_EQ(parse_into(url, "x.html", &*base), UrlStatus::ok);
  EXPECT_EQ(url.href().data(), memory);
}

TEST(Url, WritesTheQueryInTheDocumentsEncoding) {
  const auto base = Url::parse("http://a/");
  std::string asked;
  const QueryEncoder latin1 = [&](std::string_view utf8, std::string& out) {
    asked = utf8;
    out += "q=\xfc'%26%239731%3B";
  };
  const auto written = [&](std::string_view input) {
    Url url;
    return parse_into(url, input, &*base, &latin1) == UrlStatus::ok ? url.href() : "failure";
  };
  EXPECT_EQ(written("/ü?q=ü'☃#ü"), "http://a/%C3%BC?q=%FC%27%26%239731%3B#%C3%BC");
  EXPECT_EQ(asked, "q=ü'☃");
  EXPECT_EQ(written("/?\xff"), "http://a/?q=%FC%27%26%239731%3B");
  EXPECT_EQ(asked, "\xef\xbf\xbd");
  // Neither ASCII nor a WebSocket's query depends on it.
  EXPECT_EQ(written("/?q=1"), "http://a/?q=1");
  EXPECT_EQ(written("ws://a/?ü"), "ws://a/?%C3%BC");
}

TEST(Url, ParsesItsOwnSerialisationToItself) {
  Random random(20260101);
  const std::string alphabet = "ab.:/\\?#@[]%2eE0xX~ü \t|-_C\xe2'^";
  const auto base = Url::parse("http://user@h.example:81/x/y/z?q#f");
  int parsed = 0;
  for (int round = 0; round < 50'000; ++round) {
    std::string input = random.chance(0.5) ? "http://" : random.chance(0.3) ? "file:" : "";
    for (std::uint64_t i = random.below(20); i > 0; --i) input += alphabet[random.below(alphabet.size())];
    const auto url = Url::parse(input, &*base);
    if (!url) continue;
    ++parsed;
    const auto again = Url::parse(url->href());
    ASSERT_TRUE(again) << url->href();
    ASSERT_EQ(again->href(), url->href()) << input;
    ASSERT_EQ(again->host(), url->host()) << input;
    ASSERT_EQ(again->path_and_query(), url->path_and_query()) << input;
  }
  EXPECT_GT(parsed, 10'000);
}

TEST(Url, PercentDecodesWhatIsEncodedAndLeavesTheRest) {
  EXPECT_EQ(percent_decode("a%20b%2"), "a b%2");
  EXPECT_EQ(percent_decode("%41%zz%"), "A%zz%");
}

// What logs may keep of a webhook's address.
TEST(Url, IsShownWithoutPathAndCredentials) {
  EXPECT_EQ(without_path("https://a.org/hook?token=1"), "https://a.org/…");
  EXPECT_EQ(without_path("https://a.org:8443?token=1"), "https://a.org:8443/…");
  EXPECT_EQ(without_path("https://ann:secret@a.org/"), "https://a.org/…");
  EXPECT_EQ(without_path("http:ann:secret@a.org"), "http://a.org/…");
  EXPECT_EQ(without_path("https://a.org/"), "https://a.org/");
  EXPECT_EQ(without_path("https://a.org"), "https://a.org");
  EXPECT_EQ(without_path("http://ann:secret@a b/hook"), "http://…@a b/…");
  EXPECT_EQ(without_path("htps:a.org/secret"), "htps:a.org/…");
  EXPECT_EQ(without_path("nothing"), "nothing");
}

}  // namespace
}  // namespace argiope
