#include "argiope/web/url.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>
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

// The conformance data of the URL Standard. Left out are cases of schemes that are not special: the input has one, or it
// is relative to a base that has one. Nothing else is.
TEST(UrlStandard, EveryCaseOfSpecialSchemesPasses) {
  const std::string path = ARGIOPE_SOURCE_DIR "/../shared/data/urltestdata.json";
  std::ifstream file(path);
  if (!file) GTEST_SKIP() << "conformance data not found: " << path;
  std::stringstream buffer;
  buffer << file.rdbuf();
  const json::value document = json::parse(replace_lone_surrogates(buffer.str()));

  int passed = 0, left_out = 0, failed = 0;
  for (const json::value& entry : document.as_array()) {
    if (!entry.is_object()) continue;  // a comment
    const json::object& test = entry.as_object();
    const std::string input = text_of(test, "input");
    const std::string base_text = text_of(test, "base");
    const Result<Url> base = base_text.empty() ? Result<Url>{} : Url::parse(base_text);
    const bool special_base = base && !base_text.empty();
    Url parsed;
    const UrlStatus status = parse_into(parsed, input, special_base ? &*base : nullptr);
    const bool base_not_special = !base && base.error().code == Errc::unsupported;
    if (status == UrlStatus::unsupported || (status == UrlStatus::no_base && base_not_special)) {
      ++left_out;
      continue;
    }
    const Url* url = status == UrlStatus::ok ? &parsed : nullptr;
    if (test.contains("failure")) {
      ++(url ? failed : passed);
      EXPECT_FALSE(url) << "\"" << input << "\" against \"" << base_text << "\" gave " << url->href();
      continue;
    }
    const bool same = url && url->href() == text_of(test, "href") &&
                      with_colon(url->scheme()) == text_of(test, "protocol") &&
                      url->username() == text_of(test, "username") && url->password() == text_of(test, "password") &&
                      url->host_and_port() == text_of(test, "host") && url->host() == text_of(test, "hostname") &&
                      url->port() == text_of(test, "port") && url->pathname() == text_of(test, "pathname") &&
                      url->search() == text_of(test, "search") && url->hash() == text_of(test, "hash");
    ++(same ? passed : failed);
    EXPECT_TRUE(same) << "\"" << input << "\" against \"" << base_text << "\"\n  got      "
                      << (url ? std::string_view{url->href()} : to_string(status)) << "\n  expected " << text_of(test, "href");
  }
  std::printf("urltestdata.json: %d passed, %d failed, %d left out (schemes that are not special)\n", passed, failed,
              left_out);
  EXPECT_EQ(failed, 0);
  EXPECT_GT(passed, 500);
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

// RFC 3986, 5.4, where the URL Standard agrees.
TEST(Url, ResolvesReferences) {
  constexpr std::string_view base = "http://a/b/c/d;p?q";
  EXPECT_EQ(resolve("g", base), "http://a/b/c/g");
  EXPECT_EQ(resolve("./g", base), "http://a/b/c/g");
  EXPECT_EQ(resolve("g/", base), "http://a/b/c/g/");
  EXPECT_EQ(resolve("/g", base), "http://a/g");
  EXPECT_EQ(resolve("//g", base), "http://g/");
  EXPECT_EQ(resolve("?y", base), "http://a/b/c/d;p?y");
  EXPECT_EQ(resolve("g?y", base), "http://a/b/c/g?y");
  EXPECT_EQ(resolve("#s", base), "http://a/b/c/d;p?q#s");
  EXPECT_EQ(resolve("", base), "http://a/b/c/d;p?q");
  EXPECT_EQ(resolve(".", base), "http://a/b/c/");
  EXPECT_EQ(resolve("..", base), "http://a/b/");
  EXPECT_EQ(resolve("../g", base), "http://a/b/g");
  EXPECT_EQ(resolve("../../../g", base), "http://a/g");
  EXPECT_EQ(resolve("g;x=1/../y", base), "http://a/b/c/y");
}

TEST(Url, SaysWhatIsWrong) {
  EXPECT_EQ(Url::parse("mailto:me@example.org").error().code, Errc::unsupported);
  EXPECT_EQ(Url::parse("example.org/x").error().code, Errc::invalid_input);
  EXPECT_NE(Url::parse("http://a:99999/").error().message.find("port"), std::string::npos);
  EXPECT_NE(Url::parse("http:///?").error().message.find("host"), std::string::npos);
  EXPECT_EQ(Url::parse("http://a/" + std::string(kMaxUrlLength, 'x')).error().code, Errc::too_large);
}

TEST(Url, WritesTheQueryInTheDocumentsEncoding) {
  const auto base = Url::parse("http://a/");
  const QueryEncoder latin1 = [](std::string_view, std::string& out) { out += "q=\xfc"; };
  Url url;
  ASSERT_EQ(parse_into(url, "/s?q=ü", &*base, &latin1), UrlStatus::ok);
  EXPECT_EQ(url.href(), "http://a/s?q=%FC");
}

TEST(Url, ParsesItsOwnSerialisationToItself) {
  Random random(20260101);
  const std::string alphabet = "ab.:/\\?#@[]%2eE0xX~ü \t|-_C";
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

}  // namespace
}  // namespace argiope
