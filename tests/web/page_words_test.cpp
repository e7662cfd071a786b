// What a page says, in numbers: which words it has, what does not count, and that nearly equal pages have nearly equal
// numbers.
#include "web/html/internal/page_words.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace argiope {
namespace {

PageWords page_words(std::string_view html) { return PageWordReader().read(html); }

// The page has the same words as this text.
void expect_words(std::string_view html, std::string_view text) {
  const PageWords found = page_words(html), expected = page_words(text);
  EXPECT_EQ(found.count, expected.count) << html;
  EXPECT_EQ(found.digest, expected.digest) << html;
  EXPECT_EQ(found.simhash, expected.simhash) << html;
}

TEST(PageWords, AreTheTextWithoutMarkup) {
  expect_words("<!doctype html><title>A page</title><p class='x y'>Of <b>FEW</b> words.</p>", "a page of few words");
  expect_words("one<br>two<!-- not this --> three", "one two three");
  expect_words("1 < 2 and <3", "1 2 and 3");
  expect_words("a<?php echo?>b</div >c<!bogus>d", "a b c d");
  EXPECT_EQ(page_words("It's 4,000: yes-no").count, 6u);
  EXPECT_EQ(page_words("").count, 0u);
  EXPECT_EQ(page_words("<p></p> .,;").count, 0u);
}

TEST(PageWords, AreNotWhatNoReaderSees) {
  expect_words("a<script>if (x<b) {'</p>'}</script>b<style>p{color:red}</style>c", "a b c");
  expect_words("a<SCRIPT>x</script >b<noframes>x</noframes>c<xmp>x</xmp>d", "a b c d");
  expect_words("<svg><style/><title>a</title></svg>b", "a b");
  expect_words("<textarea>a</textarea><a href='/x?y=z' title='t'>b</a>", "a b");
  expect_words("a<p title='>'>b</p><script>no end", "a b");
}

TEST(PageWords, OfScriptsWithoutSpacesAreTheirCharacters) {
  EXPECT_EQ(page_words("日本語。です").count, 5u);
  EXPECT_EQ(page_words("ภาษา").count, 4u);
  EXPECT_EQ(page_words("größe naïve Ελλάδα привет").count, 4u);
  EXPECT_EQ(page_words("a\xc2\xa0z b\xe2\x80\x94y \xe2\x80\x9cquoted\xe2\x80\x9d").count, 5u);
  EXPECT_EQ(page_words("\xff\xfe broken \xe3\x81").count, 3u) << "bytes that are no text are letters";
}

TEST(PageWords, TellPicturesApartByTheirSources) {
  EXPECT_EQ(page_words("<img src=a>x").digest, page_words("<p><img alt=y src='a'>x").digest);
  EXPECT_NE(page_words("<img src=a>x").digest, page_words("<img src=b>x").digest);
  EXPECT_NE(page_words("<img src=a>x").digest, page_words("x").digest);
  EXPECT_EQ(page_words("<iframe src=a>no</iframe>x").digest, page_words("<img src=a>x").digest);
  EXPECT_EQ(page_words("<a href=/x?session=1>x</a>").digest, page_words("<a href=/x?session=2>x</a>").digest);
}

TEST(PageWords, TellTheOrderOfWords) {
  EXPECT_NE(page_words("a b c d").digest, page_words("a c b d").digest);
  EXPECT_NE(page_words("ab c").digest, page_words("a bc").digest);
}

}  // namespace
}  // namespace argiope
