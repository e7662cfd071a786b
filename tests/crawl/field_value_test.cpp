// Numbers, dates and truth as pages write them.
#include "crawl/extract/field_value.hpp"

#include <gtest/gtest.h>

namespace argiope {
namespace {

std::string number_of_text(std::string_view text, char decimal = '\0') {
  return number_in(text, decimal).value_or("none");
}
std::string date_of_text(std::string_view text, std::optional<bool> day_first = {}) {
  const auto date = date_in(text, day_first);
  return date ? *date : date.error().message;
}

TEST(FieldNumber, IsToldByItsLastSeparator) {
  EXPECT_EQ(number_of_text("1,234.56"), "1234.56");
  EXPECT_EQ(number_of_text("1.234,56"), "1234.56");
  EXPECT_EQ(number_of_text("1.234.567,8"), "1234567.8");
  EXPECT_EQ(number_of_text("1,234,567"), "1234567");
  EXPECT_EQ(number_of_text("1.234.567"), "1234567");
  EXPECT_EQ(number_of_text("12,5"), "12.5");
  EXPECT_EQ(number_of_text("0,125"), "0.125");
  EXPECT_EQ(number_of_text("1,234"), "1234");
  EXPECT_EQ(number_of_text("1.234"), "1.234");
  EXPECT_EQ(number_of_text("12,34,567.8"), "1234567.8");
}

TEST(FieldNumber, IsNotMadeOfTheDigitsOfSeveral) {
  for (const char* text :
       {"31.12.2027",      "2026.11.28", "192.168.10.1", "10.0.0.1:8080",     "36,37,38",     "1.2.3",
        "2,5,10,20",       "1,234,56",   "1.234.56",     "1.234,567.89",      "1 234.567,89", "030 123 456",
        "+1 555 123 4567", "0.123.456",  ".5.6",         "1.000,2.000,3.000", "1'234'56",     "128 256 512",
        "800 600 400",     "1.5M",       "1,5 Mio",      "3 million",         "20k",          "2.5 Mrd."}) {
    EXPECT_EQ(number_of_text(text), "none") << text;
    EXPECT_FALSE(integer_in(text)) << text;
  }
  for (const char* text : {"1,5 Mio", "1,5\xc2\xa0Mio", "1,5 tys. zł", "15 тыс. руб.", "2,3 млн", "2 milhões", "5 mila",
                           "3億", "1.5万円", "1½", "1 ½"}) {
    EXPECT_EQ(number_of_text(text), "none") << text << " is another number";
  }
  EXPECT_EQ(number_of_text("1.234.567", '.'), "none") << "a point is no thousands' separator there";
  EXPECT_EQ(number_of_text("12.5", ','), "none");
  EXPECT_EQ(number_of_text("36, 37, 38"), "36") << "a space ends a number";
  EXPECT_EQ(number_of_text("31/12/2027"), "31");
  EXPECT_EQ(number_of_text("12,34,567.00"), "1234567.00");
  EXPECT_EQ(number_of_text("1,23,45,678"), "12345678");
}

TEST(FieldNumber, TakesSpacesAndApostrophesForThousands) {
  EXPECT_EQ(number_of_text("1 234 567,89 €"), "1234567.89");
  EXPECT_EQ(number_of_text("1\xc2\xa0"
                           "234,5"),
            "1234.5");
  EXPECT_EQ(number_of_text("1\xe2\x80\xaf"
                           "234"),
            "1234");
  EXPECT_EQ(number_of_text("1'234.50"), "1234.50");
  EXPECT_EQ(number_of_text("1\xe2\x80\x99"
                           "234"),
            "1234");
  EXPECT_EQ(number_of_text("3 of 5"), "3");
  EXPECT_EQ(number_of_text("2 10"), "2");
}

TEST(FieldNumber, IsReadInTheDigitsOfItsScript) {
  for (const char* text : {"١٬٢٣٤٫٥٦ ر.س", "۱٬۲۳۴٫۵۶", "۱،۲۳۴٫۵۶", "१,२३४.५६", "১,২৩৪.৫৬", "๑,๒๓๔.๕๖",
                           "￥１，２３４．５６", "\u200f1,234.56\u200e", "1\u200b,234.56"}) {
    EXPECT_EQ(number_of_text(text), "1234.56") << text;
  }
  EXPECT_EQ(number_of_text("१२,३४,५६७.८९"), "1234567.89");
  EXPECT_EQ(number_of_text("۱۲٬۵۰۰ تومان"), "12500");
  EXPECT_EQ(number_of_text("٤٫٩٩", ','), "4.99") << "the sign is a decimal one whatever that of the page is";
  EXPECT_EQ(number_of_text("\u200e−٥"), "-5");
  EXPECT_EQ(number_of_text("１２３４円"), "1234");
  EXPECT_EQ(integer_in("۱۲۳"), "123");
  for (const char* text : {"۳ میلیون تومان", "٣ مليون", "३ लाख", "١٢٫٣٫٤", "۱۲.۳.۴"})
    EXPECT_EQ(number_of_text(text), "none") << text;
}

TEST(FieldNumber, IsTheFirstInItsText) {
  EXPECT_EQ(number_of_text("from $ 9.99 to $ 19.99"), "9.99");
  EXPECT_EQ(number_of_text("EUR 5,- each"), "5");
  EXPECT_EQ(number_of_text("1.299,-"), "1299");
  EXPECT_EQ(number_of_text("1.299,\xe2\x80\x93 €"), "1299");
  EXPECT_EQ(number_of_text("12.299.000,-"), "12299000");
  EXPECT_EQ(number_of_text("1.29,-"), "1.29");
  EXPECT_EQ(number_of_text("4.5/5"), "4.5");
  EXPECT_EQ(number_of_text("(12)."), "12");
  EXPECT_EQ(number_of_text("free"), "none");
  EXPECT_EQ(number_of_text(""), "none");
}

TEST(FieldNumber, HasItsSignAndExponent) {
  EXPECT_EQ(number_of_text("-5 %"), "-5");
  EXPECT_EQ(number_of_text("\xe2\x88\x92"
                           "5"),
            "-5");
  EXPECT_EQ(number_of_text("- 5"), "-5");
  EXPECT_EQ(number_of_text("-$5"), "-5");
  EXPECT_EQ(number_of_text("3-5 days"), "3");
  EXPECT_EQ(number_of_text("A4-5"), "4");
  EXPECT_EQ(number_of_text("1.5e3"), "1.5e3");
  EXPECT_EQ(number_of_text("2E-7 m"), "2E-7");
  EXPECT_EQ(number_of_text("3em"), "3");
  EXPECT_EQ(number_of_text(".5"), "0.5");
  EXPECT_EQ(number_of_text("nur ,99 €"), "0.99");
  EXPECT_EQ(number_of_text("a,99"), "99");
  EXPECT_EQ(number_of_text("007"), "7");
  EXPECT_EQ(number_of_text("000"), "0");
}

TEST(FieldNumber, HasTheSeparatorThatItIsTold) {
  EXPECT_EQ(number_of_text("1.234", ','), "1234");
  EXPECT_EQ(number_of_text("1,234", ','), "1.234");
  EXPECT_EQ(number_of_text("1,234", '.'), "1234");
  EXPECT_EQ(number_of_text("1.234,5", ','), "1234.5");
}

TEST(FieldNumber, IsSeparatedByWhateverTypesettersAndKeyboardsHave) {
  for (const char* text : {"1’234.50", "1‘234.50", "1´234.50", "1`234.50", "1ʼ234.50", "1\u200a234.50", "1\u2006234,50",
                           "1\u2008234,50", "1\u2005234,50"}) {
    EXPECT_EQ(number_of_text(text), "1234.50") << text;
  }
  EXPECT_EQ(number_of_text("12·50"), "12.50");
  EXPECT_EQ(number_of_text("1.299:-"), "1299");
  EXPECT_EQ(number_of_text("1.299.–"), "1299");
  EXPECT_EQ(number_of_text("12.- CHF"), "12");
  EXPECT_EQ(number_of_text("S/.12.50"), "12.50") << "the point is of the currency's sign";
  EXPECT_EQ(number_of_text("𝟏𝟐.𝟓"), "12.5");
}

TEST(FieldNumber, BehindAnyMinusIsNegative) {
  for (const char* text : {"-€5", "- € 5", "−£5", "-US$ 5", "-USD 5", "-CHF 5", "–5", "–€5",
                           "\u2011"
                           "5",
                           "﹣5", "－5", "Discount -5%", "Balance: - 5", "€ -5"}) {
    EXPECT_EQ(number_of_text(text), "-5") << text;
  }
  for (const char* text : {"5.00-", "5,00- EUR", "5.00−", "(5.00)", "($5.00)", "(5,00 €)", "(EUR 5.00)"})
    EXPECT_EQ(number_of_text(text), "-5.00") << text;
  EXPECT_EQ(number_of_text("Chair - 5 €"), "5") << "a dash behind a word";
  EXPECT_EQ(number_of_text("– 5"), "5") << "the mark of a list";
  EXPECT_EQ(number_of_text("(4.5)"), "4.5");
  EXPECT_EQ(number_of_text("(5.00 €/kg)"), "5.00");
  EXPECT_EQ(number_of_text("5.00-6.00"), "5.00");
  EXPECT_EQ(number_of_text("5-"), "5");
}

TEST(FieldNumber, OfAnotherSizeIsNone) {
  for (const char* text :
       {"12 K followers", "5 k€", "1,5 M€", "£5m", "$1.5 B", "$2t", "3百円", "2 dozen", "5 ล้าน", "1,5 млрд",
        "2 milhões", "10²", "10^6", "6.02×10^23", "6.02 × 10²³", "6 x 10**3", "0x1F", "1⅖"}) {
    EXPECT_EQ(number_of_text(text), "none") << text;
  }
  for (const char* text : {"5 m", "5 Mäuse", "5 Kilo", "5 B", "5 × 10 cm", "5m²", "€5 Münze"})
    EXPECT_EQ(number_of_text(text), "5") << text;
  EXPECT_EQ(number_of_text("85 m²"), "85");
}

TEST(FieldNumber, HasItsCentsRaised) {
  EXPECT_EQ(number_of_text("$12^99"), "12.99");
  EXPECT_EQ(number_of_text("1.299.000^50 €"), "1299000.50");
  EXPECT_EQ(number_of_text("12^99"), "none") << "a power";
  EXPECT_EQ(number_of_text("$12^999"), "none");
}

TEST(FieldNumber, ThatIsEndlessIsNone) { EXPECT_EQ(number_of_text(std::string(41, '1')), "none"); }

TEST(FieldInteger, IsWholeAndFitsSixtyFourBits) {
  EXPECT_EQ(integer_in("1.234.567 views"), "1234567");
  EXPECT_EQ(integer_in("12,00"), "12");
  EXPECT_EQ(integer_in("-3"), "-3");
  EXPECT_FALSE(integer_in("12.5"));
  EXPECT_FALSE(integer_in("99999999999999999999"));
  EXPECT_FALSE(integer_in("none"));
}

TEST(FieldTruth, IsYesOrNo) {
  EXPECT_EQ(truth_in(" TRUE "), true);
  EXPECT_EQ(truth_in("on"), true);
  EXPECT_EQ(truth_in("No"), false);
  EXPECT_EQ(truth_in("0"), false);
  EXPECT_FALSE(truth_in("maybe"));
  EXPECT_FALSE(truth_in(""));
}

TEST(FieldDate, IsReadWithTheSignsOfChineseJapaneseAndKorean) {
  for (const char* text : {"2026年1月5日", "2026年01月05日(月)", "2026年1月5日 月曜日", "2026年1月5日星期一",
                           "２０２６年１月５日", "2026년 1월 5일"}) {
    EXPECT_EQ(date_of_text(text), "2026-01-05") << text;
  }
  EXPECT_EQ(date_of_text("2026年11月"), "2026-11");
  EXPECT_EQ(date_of_text("2026年11月28日 10时20分30秒"), "2026-11-28T10:20:30");
  EXPECT_EQ(date_of_text("2026년 11월 28일 10:20:30"), "2026-11-28T10:20:30");
  for (const char* text : {"2026年13月1日", "2026年", "年", "令和8年11月28日", "2026年(11月", "(年"})
    EXPECT_FALSE(date_in(text)) << text;
}

TEST(FieldDate, IsReadFromIsoAndRfc3339) {
  EXPECT_EQ(date_of_text("2026-03-12"), "2026-03-12");
  EXPECT_EQ(date_of_text("2026-03-12T14:30:05Z"), "2026-03-12T14:30:05Z");
  EXPECT_EQ(date_of_text("2026-03-12t14:30:05.250+01:00"), "2026-03-12T14:30:05.250+01:00");
  EXPECT_EQ(date_of_text("2026-03-12 14:30:05 +01:00"), "2026-03-12T14:30:05+01:00");
  EXPECT_EQ(date_of_text("2026-03-12 14:30:05 -0530"), "2026-03-12T14:30:05-05:30");
  EXPECT_EQ(date_of_text("2026-03-12 14:30"), "2026-03-12T14:30:00");
  EXPECT_EQ(date_of_text("2026-03-12T14:30-0530"), "2026-03-12T14:30:00-05:30");
  EXPECT_EQ(date_of_text("20260312"), "2026-03-12");
  EXPECT_EQ(date_of_text("20260312T143005Z"), "2026-03-12T14:30:05Z");
  EXPECT_EQ(date_of_text("2026-03"), "2026-03");
  EXPECT_EQ(date_of_text("2026/3/2"), "2026-03-02");
}

TEST(FieldDate, IsReadFromMailAndHttp) {
  EXPECT_EQ(date_of_text("Thu, 12 Mar 2026 14:30:00 +0100"), "2026-03-12T14:30:00+01:00");
  EXPECT_EQ(date_of_text("12 Mar 26 14:30 EST"), "2026-03-12T14:30:00-05:00");
  EXPECT_EQ(date_of_text("Thu, 12 Mar 2026 14:30:00 GMT (UTC)"), "2026-03-12T14:30:00Z");
  EXPECT_EQ(date_of_text("Thursday, 12-Mar-26 14:30:00 GMT"), "2026-03-12T14:30:00Z");
  EXPECT_EQ(date_of_text("Thu Mar 12 14:30:00 2026"), "2026-03-12T14:30:00");
  EXPECT_EQ(date_of_text("Thu Mar 12 14:30:00 UTC+0100 2026"), "2026-03-12T14:30:00+01:00");
}

TEST(FieldDate, IsReadFromWhatProgramsPrint) {
  EXPECT_EQ(date_of_text("Sat Nov 28 2026 10:20:30 GMT+0100 (CET)"), "2026-11-28T10:20:30+01:00");
  EXPECT_EQ(date_of_text("Sat Nov 28 2026 10:20:30 GMT+0100 (Central European Standard Time)"),
            "2026-11-28T10:20:30+01:00");
  EXPECT_EQ(date_of_text("Sat Nov 28 2026 10:20:30 GMT+0100 (heure normale d\xe2\x80\x99"
                         "Europe centrale)"),
            "2026-11-28T10:20:30+01:00");
  EXPECT_EQ(date_of_text("Sat Nov 28 2026 10:20:30 GMT+0000 (Coordinated Universal Time)"), "2026-11-28T10:20:30Z");
  EXPECT_EQ(date_of_text("Sat Nov 28 2026"), "2026-11-28");
  EXPECT_EQ(date_of_text("11/28/2026, 10:20:30\xe2\x80\xaf"
                         "PM"),
            "2026-11-28T22:20:30");
  EXPECT_EQ(date_of_text("\xe2\x80\x8e"
                         "28.11.2026 10:20"),
            "2026-11-28T10:20:00");
  EXPECT_EQ(date_of_text("2026-11-28T10:20:30+01:00[Europe/Berlin]"), "2026-11-28T10:20:30+01:00");
  EXPECT_EQ(date_of_text("2026-11-28 10:20:30 +0100 CET"), "2026-11-28T10:20:30+01:00");
}

TEST(FieldDate, IsReadFromMoreOfWhatProgramsPrint) {
  EXPECT_EQ(date_of_text("2026. 11. 28. 오후 3:05:00"), "2026-11-28T15:05:00");
  EXPECT_EQ(date_of_text("2026年11月28日 下午3:05"), "2026-11-28T15:05:00");
  EXPECT_EQ(date_of_text("2026/11/28(土) 10:58"), "2026-11-28T10:58:00");
  EXPECT_EQ(date_of_text("2026/11/28（土）"), "2026-11-28");
  EXPECT_EQ(date_of_text("٢٠٢٦/١١/٢٨"), "2026-11-28");
  EXPECT_EQ(date_of_text("2026-11-28T10:58:00\u221205:00"), "2026-11-28T10:58:00-05:00");
  EXPECT_EQ(date_of_text("2026\u201111\u201128"), "2026-11-28");
  EXPECT_EQ(date_of_text("/Date(1764327480000+0100)/"), "2025-11-28T10:58:00Z");
  EXPECT_EQ(date_of_text("1764327480.25"), "2025-11-28T10:58:00Z");
  EXPECT_EQ(date_of_text("20261128105800"), "2026-11-28T10:58:00");
  EXPECT_EQ(date_of_text("28/Nov/2026:10:58:00 +0000"), "2026-11-28T10:58:00Z");
  EXPECT_EQ(date_of_text("2026-11-28T10:58:00 Europe/Berlin"), "2026-11-28T10:58:00")
      << "the offset depends on the day";
  EXPECT_EQ(date_of_text("Nov. 28, 2026, 8:49 a.m. ET"), "2026-11-28T08:49:00");
  EXPECT_EQ(date_of_text("Sat, 28 Nov 2026 10:58:00 BST"), "2026-11-28T10:58:00+01:00");
  for (const char* text : {"-0001-11-30T00:00:00+00:00", "20261128105860000", "/Date(x)/", "2026-11-28 10:58 IST"})
    EXPECT_FALSE(date_in(text)) << text;
}

TEST(FieldDate, IsReadInMoreLanguagesWithTheirDaysAndTimes) {
  for (const char* text :
       {"Sonntag, den 6. November 1994 um 8:49 Uhr", "dim. 6 nov. 1994 à 8h49", "le dimanche 6 novembre 1994 à 08 h 49",
        "6 ноября 1994 г., 08:49", "6 листопада 1994 р. 08:49", "söndag den 6 november 1994 kl. 08:49",
        "6. marraskuuta 1994 klo 8.49", "6.11.1994 | 08:49", "6.11.1994 · 8.49 Uhr", "Updated: November 6, 1994, 8:49",
        "6 November 1994 (Sunday) 08:49", "neděle 6. listopadu 1994 08:49", "6 Kasım 1994 Pazar 08:49",
        "1994. november 6. 08:49", "6 Νοεμβρίου 1994 08:49", "٦ نوفمبر ١٩٩٤ ٠٨:٤٩"}) {
    EXPECT_EQ(date_of_text(text), "1994-11-06T08:49:00") << text;
  }
  EXPECT_EQ(date_of_text("25 AOÛT 2026"), "2026-08-25");
  EXPECT_EQ(date_of_text("3. MÄRZ 2026"), "2026-03-03");
  EXPECT_EQ(date_of_text("3 МАЯ 2026"), "2026-05-03");
  EXPECT_EQ(date_of_text("terça-feira, 24 de novembro de 2026"), "2026-11-24");
  for (const char* text : {"6 listopada 1994", "Updated: 2026-11-28, Published: 2026-11-20", "28.–30.11.2026"})
    EXPECT_FALSE(date_in(text)) << text;
}

TEST(FieldDate, IsReadFromWords) {
  EXPECT_EQ(date_of_text("March 12th, 2026"), "2026-03-12");
  EXPECT_EQ(date_of_text("Mar. 12, 2026 at 2:30 p.m."), "2026-03-12T14:30:00");
  EXPECT_EQ(date_of_text("12:05 AM, 1 January 2026"), "2026-01-01T00:05:00");
  EXPECT_EQ(date_of_text("12. März 2026, 14:30 Uhr"), "2026-03-12T14:30:00");
  EXPECT_EQ(date_of_text("le 1er août 2026 à 09:00"), "2026-08-01T09:00:00");
  EXPECT_EQ(date_of_text("mar. 10 mars 2026"), "2026-03-10");
  EXPECT_EQ(date_of_text("mar. 5 mai 2026"), "2026-05-05");
  EXPECT_EQ(date_of_text("12 de diciembre de 2026"), "2026-12-12");
  EXPECT_EQ(date_of_text("3 maart 2026"), "2026-03-03");
  EXPECT_EQ(date_of_text("March 2026"), "2026-03");
}

TEST(FieldDate, InNumbersHasItsDayFirstWithPointsOrWhereItMust) {
  EXPECT_EQ(date_of_text("12.03.2026"), "2026-03-12");
  EXPECT_EQ(date_of_text("1.2.26"), "2026-02-01");
  EXPECT_EQ(date_of_text("31/12/2026"), "2026-12-31");
  EXPECT_EQ(date_of_text("12/31/2026 11:59 PM"), "2026-12-31T23:59:00");
  EXPECT_EQ(date_of_text("3/3/2026"), "2026-03-03");
  EXPECT_EQ(date_of_text("03/12/2026"), "\"03/12/2026\": day or month first? Set day_first");
  EXPECT_EQ(date_of_text("03/12/2026", true), "2026-12-03");
  EXPECT_EQ(date_of_text("03-12-2026", false), "2026-03-12");
}

TEST(FieldDate, IsReadFromSecondsSince1970) {
  EXPECT_EQ(date_of_text("1773325800"), "2026-03-12T14:30:00Z");
  EXPECT_EQ(date_of_text("1773325800123"), "2026-03-12T14:30:00Z");
}

TEST(FieldDate, ThatIsNoneIsAnError) {
  EXPECT_EQ(date_of_text("yesterday"), "\"yesterday\": this is no date");
  EXPECT_EQ(date_of_text("2026-02-30"), "\"2026-02-30\": there is no such date");
  EXPECT_EQ(date_of_text("2026-13-01"), "\"2026-13-01\": there is no such date");
  EXPECT_EQ(date_of_text("10000-01-01"), "\"10000-01-01\": this is no date");
  EXPECT_EQ(date_of_text("2026-01-10000"), "\"2026-01-10000\": this is no date");
  EXPECT_EQ(date_of_text("2026-001-01"), "\"2026-001-01\": this is no date");
  EXPECT_EQ(date_of_text("2026-03-12T25:00"), "\"2026-03-12T25:00\": there is no such date");
  EXPECT_EQ(date_of_text("00.03.2026"), "\"00.03.2026\": there is no such date");
  EXPECT_EQ(date_of_text("12 March"), "\"12 March\": a date without a year");
  EXPECT_EQ(date_of_text("13:00 PM 1.1.2026"), "\"13:00 PM 1.1.2026\": this is no date");
  EXPECT_EQ(date_of_text(""), "\"\": this is no date");
  EXPECT_EQ(date_of_text("12"), "\"12\": this is no date");
  EXPECT_EQ(date_of_text("1 2 3 4"), "\"1 2 3 4\": this is no date");
  EXPECT_EQ(date_of_text("Marketing 12 2026"), "\"Marketing 12 2026\": this is no date");
  EXPECT_TRUE(date_of_text(std::string(200, '1')).ends_with(": this is no date"));
}

TEST(FieldNumber, WithSpacesIsOneUnlessItsGroupsAreAList) {
  for (const char* text : {"1 000 000", "100 000 000", "12 345 678",
                           "1\xe2\x80\xaf"
                           "234\xe2\x80\xaf"
                           "567"})
    EXPECT_NE(number_of_text(text), "none") << text;
  EXPECT_EQ(number_of_text("128\xc2\xa0"
                           "256\xc2\xa0"
                           "512"),
            "128256512")
      << "who typesets it means one";
  EXPECT_EQ(number_of_text("5 kg"), "5");
  EXPECT_EQ(number_of_text("5 Megabytes"), "5");
}

TEST(FieldInteger, MayHaveAnExponent) {
  EXPECT_EQ(integer_in("1e3"), "1000");
  EXPECT_EQ(integer_in("-1.25E+2"), "-125");
  EXPECT_EQ(integer_in("1500e-2"), "15");
  EXPECT_EQ(integer_in("1.5e0"), std::nullopt);
  EXPECT_EQ(integer_in("15e-3"), std::nullopt);
  EXPECT_EQ(integer_in("1e30"), std::nullopt);
  EXPECT_EQ(integer_in("0e5"), "0");
}

}  // namespace
}  // namespace argiope
