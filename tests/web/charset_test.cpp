// Charset detection against the clauses of the HTML and Encoding Standards.
#include "argiope/web/detail/charset.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace argiope {
namespace {

using namespace std::string_literals;
using Source = CharsetDecision::Source;

// The encoding that a page without header gets when a declaration in it says so; "" when it declares nothing.
std::string declared(std::string_view html) {
  const CharsetDecision decision = detect_charset(html, "");
  return decision.source == Source::meta ? std::string(decision.name) : "";
}

std::string text(std::string_view bytes, std::string_view encoding) {
  const Result<std::string> utf8 = to_utf8(bytes, encoding);
  return utf8 ? *utf8 : "error: " + utf8.error().message;
}

std::string query(std::string_view utf8, std::string_view encoding) {
  std::string out = "?";
  encode_query(utf8, encoding, out);
  return out;
}

// ---- The order of evidence

TEST(Charset, AByteOrderMarkBeatsAllElse) {
  const CharsetDecision utf8 = detect_charset("\xEF\xBB\xBF<meta charset=koi8-r>", "text/html; charset=big5");
  EXPECT_EQ(utf8.name, "UTF-8");
  EXPECT_EQ(utf8.source, Source::bom);
  EXPECT_EQ(utf8.bom_length, 3u);
  EXPECT_TRUE(utf8.ascii_compatible);
  const CharsetDecision little = detect_charset("\xFF\xFE<\0"s, "text/html; charset=utf-8");
  EXPECT_EQ(little.name, "UTF-16LE");
  EXPECT_EQ(little.bom_length, 2u);
  EXPECT_FALSE(little.ascii_compatible);
  EXPECT_EQ(detect_charset("\xFE\xFF\0<"s, "").name, "UTF-16BE");
}

TEST(Charset, TheHeaderBeatsTheMetaElement) {
  const CharsetDecision decision = detect_charset("<meta charset=koi8-r>", "text/html; charset=Latin1");
  EXPECT_EQ(decision.name, "windows-1252");
  EXPECT_EQ(decision.source, Source::header);
  EXPECT_EQ(decision.bom_length, 0u);
}

TEST(Charset, AnUnknownNameInTheHeaderSaysNothing) {
  EXPECT_EQ(detect_charset("<meta charset=koi8-r>", "text/html; charset=klingon").source, Source::meta);
  EXPECT_EQ(detect_charset("<meta charset=koi8-r>", "text/html; charset=").source, Source::meta);
  EXPECT_EQ(detect_charset("<meta charset=koi8-r>", "text/html").name, "KOI8-R");
}

TEST(Charset, TheHeaderMaySayUtf16) {
  EXPECT_EQ(detect_charset("<\0p\0>\0"s, "text/html; charset=utf-16").name, "UTF-16LE");
}

TEST(Charset, UndeclaredUtf8IsRecognised) {
  for (const std::string html :
       {"", "<p>plain", "<p>gr\xC3\xBC\xC3\x9F", "\xF0\x9F\x98\x80", "<p>cut \xE2\x82", "\xF0\x9F\x98"}) {
    const CharsetDecision decision = detect_charset(html, "");
    EXPECT_EQ(decision.name, "UTF-8") << html;
    EXPECT_EQ(decision.source, Source::guess) << html;
  }
}

TEST(Charset, OtherUndeclaredBytesAreGuessedFromWhatTheyLookLike) {
  // "The weather is fine today" and more, in Russian and in Japanese.
  std::string russian = "<html><body>";
  std::string japanese = "<html><body>";
  for (int i = 0; i < 20; ++i) {
    russian +=
        "\xD1\xE5\xE3\xEE\xE4\xED\xFF \xF5\xEE\xF0\xEE\xF8\xE0\xFF \xEF\xEE\xE3\xEE\xE4\xE0, \xEC\xFB "
        "\xE8\xE4\xB8\xEC ";
    japanese += "\x8D\xA1\x93\xFA\x82\xCD\x93\x56\x8B\x43\x82\xAA\x82\xA2\x82\xA2\x82\xC5\x82\xB7\x81\x42 ";
  }
  EXPECT_EQ(detect_charset(russian, "").name, "windows-1251");
  EXPECT_EQ(detect_charset(japanese, "").name, "Shift_JIS");
  EXPECT_EQ(detect_charset(std::string(100'000, ' ') + russian, "").name, "windows-1251") << "behind much ASCII";
}

TEST(Charset, FallsBackToWindows1252) {
  const CharsetDecision decision = detect_charset("\x81\xFE\xFF\x00\x9D"s, "");
  EXPECT_EQ(decision.name, "windows-1252");
  EXPECT_TRUE(decision.ascii_compatible);
}

TEST(Charset, OnlyUtf16AndIso2022JpAreNotAsciiForAsciiBytes) {
  for (const char* name : {"utf-8", "shift_jis", "gb18030", "big5", "euc-kr", "euc-jp", "koi8-r", "x-user-defined"}) {
    EXPECT_TRUE(detect_charset("", "text/html;charset="s + name).ascii_compatible) << name;
  }
  for (const char* name : {"utf-16", "utf-16be", "iso-2022-jp", "hz-gb-2312"}) {
    EXPECT_FALSE(detect_charset("", "text/html;charset="s + name).ascii_compatible) << name;
  }
}

// ---- Declarations in the page (13.2.3.2, "prescan")

TEST(CharsetPrescan, ReadsTheCharsetAttribute) {
  EXPECT_EQ(declared("<!doctype html><html><head><meta charset=\"koi8-r\">"), "KOI8-R");
  EXPECT_EQ(declared("<META/CHARSET = ' Koi8 '>"), "KOI8-R");
  EXPECT_EQ(declared("<meta name=x charset=koi8-r/>"), "") << "the slash is part of the value";
  EXPECT_EQ(declared("<meta charset=klingon><meta charset=koi8-r>"), "KOI8-R");
  EXPECT_EQ(declared("<metacharset=koi8-r>"), "");
  EXPECT_EQ(declared("<meta charset=koi8-r charset=big5>"), "KOI8-R");
}

TEST(CharsetPrescan, ReadsTheContentAttributeWithItsPragma) {
  EXPECT_EQ(declared("<meta http-equiv=Content-Type content='text/html; charset=koi8-r'>"), "KOI8-R");
  EXPECT_EQ(declared("<meta content='text/html; charset=koi8-r' http-equiv='content-type'>"), "KOI8-R");
  EXPECT_EQ(declared("<meta content='text/html; charset=koi8-r'>"), "");
  EXPECT_EQ(declared("<meta http-equiv=refresh content='text/html; charset=koi8-r'>"), "");
  EXPECT_EQ(declared("<meta http-equiv=content-type content='charset=koi8-r' charset=big5>"), "Big5");
  EXPECT_EQ(declared("<meta http-equiv=content-type content='charset=koi8-r' charset=klingon>"), "");
  EXPECT_EQ(declared("<meta charset=klingon http-equiv=content-type content='charset=koi8-r'>"), "");
}

TEST(CharsetPrescan, ExtractsTheCharsetFromContentByTheStandardsAlgorithm) {
  const auto content = [](std::string_view value) {
    return declared("<meta http-equiv=content-type content=\"" + std::string(value) + "\">");
  };
  EXPECT_EQ(content("charset charset = koi8-r;x"), "KOI8-R");
  EXPECT_EQ(content("charset='koi8-r'x"), "KOI8-R");
  EXPECT_EQ(content("charset='koi8-r"), "");
  EXPECT_EQ(content("xCHARSET=koi8-r x"), "KOI8-R");
  EXPECT_EQ(content("charset="), "");
  EXPECT_EQ(content("charset"), "");
}

TEST(CharsetPrescan, WhatIsDeclaredInAsciiIsNotUtf16) {
  EXPECT_EQ(declared("<meta charset=utf-16>"), "UTF-8");
  EXPECT_EQ(declared("<meta charset=utf-16be>"), "UTF-8");
  EXPECT_EQ(declared("<meta charset=x-user-defined>"), "windows-1252");
}

TEST(CharsetPrescan, PassesOverCommentsAndOtherTags) {
  EXPECT_EQ(declared("<!-- <meta charset=big5> --><meta charset=koi8-r>"), "KOI8-R");
  EXPECT_EQ(declared("<!--><meta charset=koi8-r>"), "KOI8-R");
  EXPECT_EQ(declared("<a title='<meta charset=big5>'></a title=\"<meta charset=big5>\"><meta charset=koi8-r>"),
            "KOI8-R");
  EXPECT_EQ(declared("<?x <meta charset=big5><!y <meta charset=big5></1 <meta charset=big5><meta charset=koi8-r>"),
            "KOI8-R");
  EXPECT_EQ(declared("<title><meta charset=koi8-r>"), "KOI8-R") << "text is not told from markup";
  EXPECT_EQ(declared("< <meta charset=koi8-r>"), "KOI8-R");
}

TEST(CharsetPrescan, StopsAt1024Bytes) {
  const std::string meta = "<meta charset=koi8-r>";
  EXPECT_EQ(declared(std::string(1024 - meta.size(), ' ') + meta), "KOI8-R");
  EXPECT_EQ(declared(std::string(1025 - meta.size(), ' ') + meta), "");
  EXPECT_EQ(declared("<meta charset=koi8-r"), "");
  EXPECT_EQ(declared("<meta charset='koi8-r"), "");
  EXPECT_EQ(declared("<!-- <meta charset=koi8-r>"), "");
}

TEST(CharsetPrescan, ReadsTheXmlDeclarationLast) {
  EXPECT_EQ(declared("<?xml version='1.0' encoding = \"koi8-r\"?><html>"), "KOI8-R");
  EXPECT_EQ(declared("<?xml encoding='koi8-r'?><meta charset=big5>"), "Big5");
  EXPECT_EQ(declared("<?xml encoding='utf-16'?>"), "UTF-8");
  EXPECT_EQ(declared("<?xml encoding='koi8 r'?>"), "");
  EXPECT_EQ(declared(" <?xml encoding='koi8-r'?>"), "");
  EXPECT_EQ(declared("<?xml version='1.0'?> encoding='koi8-r'"), "");
  EXPECT_EQ(declared("<\0?\0x\0m\0l\0"s), "UTF-16LE");
  EXPECT_EQ(declared("\0<\0?\0x\0m\0l"s), "UTF-16BE");
}

TEST(CharsetPrescan, EveryPrefixOfAPageIsRead) {
  const std::string html =
      "<?xml encoding='big5'?><!-- c --><a b = \"c\" d='e' f=g/></a h></1><meta http-equiv=content-type x "
      "content=\"charset='koi8-r'\">";
  for (std::size_t length = 0; length < html.size(); ++length) {
    const std::string prefix(html, 0, length);
    EXPECT_NE(declared(prefix), "KOI8-R");
  }
  EXPECT_EQ(declared(html), "KOI8-R");
}

// ---- Labels

TEST(CharsetLabels, StandForTheStandardsEncodings) {
  EXPECT_EQ(encoding_of_label("utf-8"), "UTF-8");
  EXPECT_EQ(encoding_of_label("\t UTF8\n"), "UTF-8");
  EXPECT_EQ(encoding_of_label("ISO-8859-1"), "windows-1252");
  EXPECT_EQ(encoding_of_label("us-ascii"), "windows-1252");
  EXPECT_EQ(encoding_of_label("gb2312"), "GBK");
  EXPECT_EQ(encoding_of_label("ks_c_5601-1987"), "EUC-KR");
  EXPECT_EQ(encoding_of_label("x-sjis"), "Shift_JIS");
  EXPECT_EQ(encoding_of_label("cseucpkdfmtjapanese"), "EUC-JP") << "the longest";
  EXPECT_EQ(encoding_of_label("l2"), "ISO-8859-2");
  EXPECT_EQ(encoding_of_label("unicode"), "UTF-16LE");
  for (const char* unknown : {"", " ", "utf-7", "utf-32", "cp437", "utf 8", "cseucpkdfmtjapanesex", "\xC5\xBF"}) {
    EXPECT_EQ(encoding_of_label(unknown), "") << unknown;
  }
}

constexpr const char* kAllNames[] = {
    "UTF-8",          "IBM866",       "ISO-8859-2",   "ISO-8859-3",   "ISO-8859-4",    "ISO-8859-5",   "ISO-8859-6",
    "ISO-8859-7",     "ISO-8859-8",   "ISO-8859-8-I", "ISO-8859-10",  "ISO-8859-13",   "ISO-8859-14",  "ISO-8859-15",
    "ISO-8859-16",    "KOI8-R",       "KOI8-U",       "macintosh",    "windows-874",   "windows-1250", "windows-1251",
    "windows-1252",   "windows-1253", "windows-1254", "windows-1255", "windows-1256",  "windows-1257", "windows-1258",
    "x-mac-cyrillic", "GBK",          "gb18030",      "Big5",         "EUC-JP",        "ISO-2022-JP",  "Shift_JIS",
    "EUC-KR",         "replacement",  "UTF-16BE",     "UTF-16LE",     "x-user-defined"};

TEST(CharsetLabels, EveryEncodingOfTheStandardHasAConverter) {
  for (const char* name : kAllNames) {
    EXPECT_EQ(encoding_of_label(name), name);
    EXPECT_TRUE(to_utf8("abcd", name).has_value()) << name;
    if (!std::string_view(name).starts_with("UTF-16") && std::string_view(name) != "replacement") {
      EXPECT_EQ(text("abcd<&'\">", name), "abcd<&'\">") << name;
    }
    EXPECT_EQ(query("abcd", name), "?abcd") << name;
  }
}

// ---- Converting

TEST(Transcode, ReadsWhatTheStandardMeansByAName) {
  EXPECT_EQ(text("\x80 \x93\x81\xE9", "iso-8859-1"), "\u20AC \u201C\u0081\u00E9") << "windows-1252";
  EXPECT_EQ(text("\xC4\xE3\xBA\xC3\x81\x30\x89\x37", "gb2312"), "\u4F60\u597D\u00DE") << "gb18030";
  EXPECT_EQ(text("\x87\x40\x82\xA0", "shift_jis"), "\u2460\u3042") << "windows-31j, with its additions";
  EXPECT_EQ(text("\x81\x41\xB0\xA1", "euc-kr"), "\uAC02\uAC00") << "windows-949, with its additions";
  EXPECT_EQ(text("\xA4\xA4\x87\x40", "big5"), "\u4E2D\u43F0") << "with the Hong Kong characters";
  EXPECT_EQ(text("\xA4\xA2\x8E\xB1\x8F\xB0\xA1", "euc-jp"), "\u3042\uFF71\u4E02");
  EXPECT_EQ(text("a\x1B$B$\"\x1B(Bb", "iso-2022-jp"), "a\u3042b");
  EXPECT_EQ(text("\xCF\xD2", "koi8-r"), "\u043E\u0440");
  EXPECT_EQ(text("\xA4\xAA\xFF", "iso-8859-16"), "\u20AC\u0218\u00FF");
  EXPECT_EQ(text("\x80\xFF", "x-user-defined"), "\uF780\uF7FF");
  EXPECT_EQ(text("\xE9", "iso-8859-8-i"), "\u05D9");
  EXPECT_EQ(text("anything", "iso-2022-kr"), "\uFFFD") << "the replacement encoding";
}

TEST(Transcode, ReadsUtf16OfBothOrders) {
  EXPECT_EQ(text("<\0\xE9\0\x3D\xD8\x00\xDE"s, "utf-16"), "<\u00E9\U0001F600");
  EXPECT_EQ(text("\0<\0\xE9\xD8\x3D\xDE\x00"s, "utf-16be"), "<\u00E9\U0001F600");
  EXPECT_EQ(text("\x3D\xD8<\0"s, "utf-16"), "\uFFFD<") << "half a pair";
  EXPECT_EQ(text("<\0>"s, "utf-16"), "<\uFFFD") << "half a unit";
}

TEST(Transcode, ReplacesWhatCannotBeReadAndLosesNoMarkup) {
  EXPECT_EQ(text("a\xFF<b>", "utf-8"), "a\uFFFD<b>");
  EXPECT_EQ(text("\xE2\x82<b>\xF0\x9F", "utf-8"), "\uFFFD<b>\uFFFD");
  EXPECT_EQ(text("\x81<b>\x81", "shift_jis"), "\uFFFD<b>\uFFFD");
  EXPECT_EQ(text("\xB0<b>\xB0", "euc-kr"), "\uFFFD<b>\uFFFD");
  EXPECT_EQ(text("\x81<b>", "gbk"), "\uFFFD<b>");
  EXPECT_EQ(text("\x81<b>", "big5"), "\uFFFD<b>");
  EXPECT_EQ(text("\xFF<b>", "euc-jp"), "\uFFFD<b>");
  EXPECT_EQ(text("\xA5", "iso-8859-7"), "\u20AF");
  EXPECT_EQ(text("\xAE<", "iso-8859-7"), "\uFFFD<");
}

TEST(Transcode, AnyBytesInAnyEncodingGiveUtf8OfBoundedLength) {
  std::string bytes;
  for (int i = 0; i < 20'000; ++i) bytes += static_cast<char>((i * 7919 + i / 251) & 0xFF);
  for (const char* name : kAllNames) {
    const Result<std::string> utf8 = to_utf8(bytes, name);
    ASSERT_TRUE(utf8.has_value()) << name;
    EXPECT_TRUE(is_valid_utf8(*utf8)) << name;
    EXPECT_LE(utf8->size(), 3 * bytes.size()) << name;
  }
}

TEST(Transcode, RefusesAnEncodingThatIsNone) {
  const Result<std::string> utf8 = to_utf8("x", "klingon");
  ASSERT_FALSE(utf8.has_value());
  EXPECT_EQ(utf8.error().code, Errc::unsupported);
  EXPECT_EQ(text("", "gbk"), "");
}

// ---- Queries of links

TEST(EncodeQuery, WritesTheDocumentsEncoding) {
  EXPECT_EQ(query("q=\u00E9&x", "windows-1252"), "?q=\xE9&x");
  EXPECT_EQ(query("\u4F60", "gbk"), "?\xC4\xE3");
  EXPECT_EQ(query("\u3042", "shift_jis"), "?\x82\xA0");
  EXPECT_EQ(query("\uAC02", "euc-kr"), "?\x81\x41");
  EXPECT_EQ(query("\u0218", "iso-8859-16"), "?\xAA");
  EXPECT_EQ(query("\uF7FF", "x-user-defined"), "?\xFF");
  EXPECT_EQ(query("a\u3042b", "iso-2022-jp"), "?a\x1B$B$\"\x1B(Bb");
}

TEST(EncodeQuery, WritesACharacterThatTheEncodingLacksAsAReference) {
  EXPECT_EQ(query("a\u2603b", "windows-1252"), "?a%26%239731%3Bb");
  EXPECT_EQ(query("\U0001F600", "shift_jis"), "?%26%23128512%3B");
  EXPECT_EQ(query("\U0001F600", "iso-8859-16"), "?%26%23128512%3B");
  EXPECT_EQ(query("\u3042\U0001F600", "iso-2022-jp"), "?\x1B$B$\"\x1B(B%26%23128512%3B");
}

TEST(EncodeQuery, WritesUtf8ForUtf16AndTheUnknown) {
  for (const char* encoding : {"utf-8", "utf-16", "utf-16be", "replacement", "klingon"}) {
    EXPECT_EQ(query("\u00E9", encoding), "?\u00E9") << encoding;
  }
}

// ---- Validity

TEST(Utf8Validity, AsciiIsToldFromTheRest) {
  for (std::size_t length = 0; length < 100; ++length) {
    std::string bytes(length, 'x');
    EXPECT_TRUE(is_ascii(bytes));
    EXPECT_TRUE(is_valid_utf8(bytes));
    for (char& c : bytes) {
      c = '\x80';
      EXPECT_FALSE(is_ascii(bytes));
      EXPECT_FALSE(is_valid_utf8(bytes));
      c = 'x';
    }
  }
}

TEST(Utf8Validity, FollowsTheStandardsTable) {
  for (const char* valid : {"\u0080\u07FF\u0800\uFFFF", "\U00010000\U0010FFFF", "\uD7FF\uE000", "\uFEFF"}) {
    EXPECT_TRUE(is_valid_utf8(valid)) << valid;
  }
  for (const char* invalid : {"\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                              "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3", "\xE2\x82", "\xC3(", "a\x80"}) {
    EXPECT_FALSE(is_valid_utf8(invalid)) << invalid;
  }
}

}  // namespace
}  // namespace argiope
