// Mirrors without a crawl: which file each URL gets, what links become, what may lie in the folder, and what a process
// that was killed leaves behind.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "argiope/base/random.hpp"
#include "argiope/crawl/sinks.hpp"
#include "crawl/save/mirror_folder.hpp"
#include "crawl/save/mirror_log.hpp"
#include "support/temporary_folder.hpp"
#include "web/html/internal/page_references.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Tree = std::map<std::string, std::string>;

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void put_file(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

// Each file of a mirror and what is in it, without what it keeps for itself.
Tree tree_of(const std::string& folder) {
  Tree tree;
  for (auto entry = std::filesystem::recursive_directory_iterator(folder); entry != std::filesystem::end(entry);
       ++entry) {
    if (entry->path().filename() == MirrorFolder::kOwn) {
      entry.disable_recursion_pending();
    } else if (!entry->is_directory()) {
      tree[std::filesystem::relative(entry->path(), folder).string()] = bytes_of(entry->path());
    }
  }
  return tree;
}

// So large that it is kept in a file of its own.
std::string picture(char first) { return first + std::string(70'000, 'p'); }

class SaveSinkTest : public testing::Test {
 protected:
  struct Answer {
    std::string url, body, type = "text/html";
    int status = 200;
    std::string location{};
  };

  std::shared_ptr<SaveSink> open(std::vector<Url> seeds = {}) {
    auto sink = SaveSink::open({.path = path_, .sync = sync_, .seeds = std::move(seeds)}, Random{++chance_});
    EXPECT_TRUE(sink) << (sink ? "" : sink.error().message);
    return sink ? *sink : nullptr;
  }
  Error open_error(std::vector<Url> seeds = {}) {
    const auto sink = SaveSink::open({.path = path_, .seeds = std::move(seeds)}, Random{++chance_});
    EXPECT_FALSE(sink);
    return sink ? Error{} : sink.error();
  }
  static Result<void> show(CrawlSink& sink, const Answer& answer, ExchangeKind kind = ExchangeKind::page,
                           const PageReferences* references = nullptr) {
    HttpRequest request;
    request.url = *Url::parse(answer.url);
    HttpResponse response;
    response.status = answer.status;
    response.body = answer.body;
    response.headers.content_type = answer.type;
    response.headers.location = answer.location;
    return sink.take(
        {.kind = kind, .request = request, .response = response, .began = WallTime{1h}, .references = references});
  }
  // A run that is shown these, and ends.
  SaveSink::Totals run(const std::vector<Answer>& answers) {
    const auto sink = open();
    if (!sink) return {};
    for (const Answer& answer : answers) EXPECT_TRUE(show(*sink, answer)) << answer.url;
    const auto finished = sink->finish();
    EXPECT_TRUE(finished) << (finished ? "" : finished.error().message);
    return sink->totals();
  }
  Tree tree() const { return tree_of(path_); }
  std::string own(const std::string& name) const { return fmt::format("{}/{}/{}", path_, MirrorFolder::kOwn, name); }

  TemporaryFolder folder_;
  std::string path_ = folder_.file("mirror");
  bool sync_ = false;
  std::uint64_t chance_ = 0;
};

TEST_F(SaveSinkTest, LinksToWhatIsSavedLeadToItsFileAndOthersToTheWeb) {
  const auto totals =
      run({{"http://a.test/", "<a href=/b?x=1#top>b</a><a href=/gone>g</a><a href='http://c.test/'>c</a><img src=i>"},
           {"http://a.test/b?x=1", "<a href='/'>up</a><a href=#here>h</a><a href=mailto:x@y.test>m</a>"},
           {"http://a.test/gone", "", "text/html", 404},
           {"http://a.test/i", "PNG", "image/png"}});
  EXPECT_EQ(totals.files, 3u);
  EXPECT_EQ(totals.pages, 2u);
  EXPECT_EQ(totals.written, 3u);
  EXPECT_EQ(tree(),
            (Tree{{"a.test/index.html",
                   "<a href=\"b@x=1.html#top\">b</a><a href=\"http://a.test/gone\">g</a><a href='http://c.test/'>c</a>"
                   "<img src=\"i.png\">"},
                  {"a.test/b@x=1.html", "<a href='index.html'>up</a><a href=#here>h</a><a href=mailto:x@y.test>m</a>"},
                  {"a.test/i.png", "PNG"}}));
}

TEST_F(SaveSinkTest, LinksGoStraightToWhereRedirectsEnd) {
  run({{"http://a.test/", "<a href=/old>o</a><a href=/old#mine>m</a><a href=/out>x</a><a href=/round>r</a>"},
       {"http://a.test/old", "", "", 301, "/older"},
       {"http://a.test/older", "", "", 302, "new/#part"},
       {"http://a.test/new/", "there"},
       {"http://a.test/out", "", "", 301, "http://c.test/"},
       {"http://a.test/round", "", "", 301, "/round"}});
  EXPECT_EQ(tree()["a.test/index.html"],
            "<a href=\"new/index.html#part\">o</a><a href=\"new/index.html#mine\">m</a>"
            "<a href=\"http://a.test/out\">x</a><a href=\"http://a.test/round\">r</a>");
}

TEST_F(SaveSinkTest, StyleSheetsAreRewrittenToo) {
  run({{"http://a.test/",
        "<link rel=stylesheet href=/css/a.css integrity=sha256-x crossorigin><style>p{background:url(/p.png)}</style>"
        "<p style=\"background:url('/p.png')\"><img srcset='/p.png 1x, /q.png 2x'>"},
       {"http://a.test/css/a.css",
        "@import '/css/b.css'; p { background: url( ../p.png ) } q { background: url(/q.png) }", "text/css"},
       {"http://a.test/css/b.css", "p { color: red }", "text/css"},
       {"http://a.test/p.png", "P", "image/png"}});
  EXPECT_EQ(tree()["a.test/index.html"],
            "<link rel=stylesheet href=\"css/a.css\"  ><style>p{background:url(p.png)}</style>"
            "<p style=\"background:url('p.png')\"><img srcset='p.png 1x, http://a.test/q.png 2x'>");
  EXPECT_EQ(tree()["a.test/css/a.css"],
            "@import 'b.css'; p { background: url( ../p.png ) } q { background: url(http://a.test/q.png) }");
}

TEST_F(SaveSinkTest, APageIsReadFromDiskInTheCharsetThatItsServerHasSaid) {
  run({{"http://a.test/", "<html><head><title>\xe9</title></head>", "text/html; charset=iso-8859-1"},
       {"http://a.test/u", std::string("\xff\xfe<\0p\0>\0\xe9\0", 10), "text/html"},
       {"http://a.test/a", "<p>ascii", "text/html; charset=koi8-r"}});
  EXPECT_EQ(tree()["a.test/index.html"], "<html><head><meta charset=\"windows-1252\"><title>\xe9</title></head>");
  EXPECT_EQ(tree()["a.test/u.html"], "<meta charset=\"UTF-8\"><p>\xc3\xa9");
  EXPECT_EQ(tree()["a.test/a.html"], "<p>ascii");
}

// Names that differ in case alone, http beside https, a page and a folder of the same name.
TEST_F(SaveSinkTest, NoTwoPagesAreInOneFileInWhateverOrderTheyCome) {
  std::vector<Answer> answers{{"http://a.test/Page", "1"},
                              {"http://a.test/page", "2"},
                              {"https://a.test/page", "3"},
                              {"http://a.test/dir", "4", "application/zip"},
                              {"http://a.test/dir/x", "5"},
                              {"http://a.test/", "6"},
                              {"http://a.test/index.html", "7"},
                              {"http://a.test/?", "8"},
                              {"http://a.test/s", "<a href=page></a><a href=Page></a>"}};
  std::optional<Tree> first;
  for (int i = 0; i < 4; ++i) {
    path_ = folder_.file(fmt::format("mirror-{}", i));
    EXPECT_EQ(run(answers).files, answers.size());
    const Tree found = tree();
    EXPECT_EQ(found.size(), answers.size());
    if (!first) first = found;
    EXPECT_EQ(found, *first) << "the order of coming matters";
    Random random{static_cast<std::uint64_t>(i)};
    std::ranges::shuffle(answers, random);
  }
  std::set<std::string> folded, bodies;
  for (const auto& [path, body] : *first) {
    std::string lower = path;
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    EXPECT_TRUE(folded.insert(lower).second) << path;
    bodies.insert(body);
  }
  EXPECT_EQ(bodies.size(), answers.size());
  EXPECT_EQ(first->at("a.test/index.html"), "6") << "the shortest URL has the plain name";
}

TEST_F(SaveSinkTest, HostileNamesStayInTheFolder) {
  const std::string many(3000, 'x');
  std::string deep = "http://a.test/";
  for (int i = 0; i < 400; ++i) deep += "d/";
  std::vector<Answer> answers;
  for (const std::string& url :
       {std::string("http://a.test/%2e%2e/%2e%2e/etc/passwd"), std::string("http://a.test/..%2f..%2fetc"),
        std::string("http://a.test/a%00b"), std::string("http://a.test/con/nul.html"),
        std::string("http://a.test/a%0ab"), std::string("http://a.test/a\\..\\b"), "http://a.test/" + many,
        "http://a.test/?" + many, deep, std::string("http://.argiope-mirror/index"),
        std::string("http://a.test/%ff%fe"), std::string("http://a.test//x"), std::string("http://a.test/x%20"),
        std::string("http://a.test/~tmp-0"), std::string("http://[::1]:8080/x")}) {
    answers.push_back({url, url});
  }
  EXPECT_EQ(run(answers).files, answers.size());
  const Tree found = tree();
  EXPECT_EQ(found.size(), answers.size());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.file("")), {}), 1)
      << "something lies beside the mirror";
  for (const auto& [path, body] : found) {
    EXPECT_LE(path.size(), 1000u);
    for (const auto& part : std::filesystem::path(path)) EXPECT_NE(part, "..") << path;
  }
}

TEST_F(SaveSinkTest, ALaterRunWritesWhatHasChangedAndRemovesWhatIsGone) {
  run({{"http://a.test/", "<a href=b>b</a><a href=c/d>d</a>"},
       {"http://a.test/b", "one"},
       {"http://a.test/c/d", "d"},
       {"http://a.test/p.png", picture('P'), "image/png"}});
  EXPECT_EQ(tree()["a.test/index.html"], "<a href=\"b.html\">b</a><a href=\"c/d.html\">d</a>");
  // Nothing, and what has not changed: nothing is touched.
  EXPECT_EQ(run({}).written, 0u);
  EXPECT_EQ(run({{"http://a.test/b", "one"}, {"http://a.test/p.png", picture('P'), "image/png"}}).written, 0u);
  const auto changed = run({{"http://a.test/b", "two"}, {"http://a.test/p.png", picture('Q'), "image/png"}});
  EXPECT_EQ(changed.written, 2u);
  const auto gone = run({{"http://a.test/c/d", "", "", 410}});
  EXPECT_EQ(gone.removed, 1u);
  EXPECT_EQ(gone.written, 1u);
  EXPECT_EQ(tree(), (Tree{{"a.test/index.html", "<a href=\"b.html\">b</a><a href=\"http://a.test/c/d\">d</a>"},
                          {"a.test/b.html", "two"},
                          {"a.test/p.png", picture('Q')}}));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/a.test/c")) << "an empty folder is left";
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(own("files")), {}), 1) << "what is dead is kept";
  // Errors that may pass take nothing away.
  EXPECT_EQ(run({{"http://a.test/b", "", "", 503}, {"http://a.test/", "", "", 500}}).files, 3u);
}

TEST_F(SaveSinkTest, CanBeBrowsedWhileTheCrawlGoesOn) {
  const auto sink = open();
  ASSERT_TRUE(show(*sink, {"http://a.test/", "<a href=b>b</a>"}));
  ASSERT_TRUE(sink->build());
  EXPECT_EQ(tree(), (Tree{{"a.test/index.html", "<a href=\"http://a.test/b\">b</a>"}}));
  ASSERT_TRUE(sink->build()) << "nothing has come meanwhile";
  ASSERT_TRUE(show(*sink, {"http://a.test/b", "one"}));
  ASSERT_TRUE(show(*sink, {"http://a.test/p.png", picture('P'), "image/png"}));
  ASSERT_TRUE(sink->build());
  const Tree both{
      {"a.test/index.html", "<a href=\"b.html\">b</a>"}, {"a.test/b.html", "one"}, {"a.test/p.png", picture('P')}};
  EXPECT_EQ(tree(), both);
  // A later answer, and the one before again: what was there at the opening is not what is known.
  ASSERT_TRUE(show(*sink, {"http://a.test/b", "", "", 404}));
  ASSERT_TRUE(show(*sink, {"http://a.test/p.png", picture('Q'), "image/png"}));
  ASSERT_TRUE(sink->build());
  EXPECT_EQ(tree(), (Tree{{"a.test/index.html", "<a href=\"http://a.test/b\">b</a>"}, {"a.test/p.png", picture('Q')}}));
  ASSERT_TRUE(show(*sink, {"http://a.test/b", "one"}));
  ASSERT_TRUE(show(*sink, {"http://a.test/p.png", picture('P'), "image/png"}));
  ASSERT_TRUE(sink->finish());
  EXPECT_EQ(tree(), both);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(own("files")), {}), 1) << "what is dead is kept";
  EXPECT_TRUE(sink->build()) << "it has finished";
  EXPECT_EQ(sink->totals().files, 3u);
}

TEST_F(SaveSinkTest, WhatWasMadeWhileTheCrawlWentOnIsGoneOnFromAfterAKill) {
  {
    const auto sink = open();
    ASSERT_TRUE(show(*sink, {"http://a.test/", "<a href=b>b</a>"}));
    ASSERT_TRUE(sink->build());
  }
  EXPECT_EQ(run({{"http://a.test/b", "b"}}).written, 2u);
  EXPECT_EQ(tree()["a.test/index.html"], "<a href=\"b.html\">b</a>");
}

TEST_F(SaveSinkTest, MakesFilesWhileAnotherThreadShowsMore) {
  const auto sink = open();
  std::jthread other([&] {
    for (int i = 0; i < 2'000; ++i) EXPECT_TRUE(show(*sink, {fmt::format("http://a.test/{}", i), "<a href=7>7</a>"}));
  });
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(sink->build());
  other.join();
  ASSERT_TRUE(sink->finish());
  EXPECT_EQ(sink->totals().files, 2'000u);
  EXPECT_EQ(tree()["a.test/1999.html"], "<a href=\"7.html\">7</a>");
}

TEST_F(SaveSinkTest, WhatWasTakenAwayOrHarmedByHandComesBack) {
  const std::vector<Answer> answers{{"http://a.test/", "<a href=b>b</a>"},
                                    {"http://a.test/b", "b"},
                                    {"http://a.test/s", "S", "image/png"},
                                    {"http://a.test/p", picture('P'), "image/png"}};
  run(answers);
  const Tree whole = tree();
  std::filesystem::remove(path_ + "/a.test/b.html");
  std::filesystem::remove(path_ + "/a.test/p.png");
  EXPECT_EQ(run({}).written, 2u);
  EXPECT_EQ(tree(), whole);
}

TEST_F(SaveSinkTest, WhatItLacksIsToBeFetchedAgain) {
  auto sink = open();
  EXPECT_TRUE(sink->lacks("http://a.test/"));
  ASSERT_TRUE(show(*sink, {"http://a.test/", "x"}));
  ASSERT_TRUE(show(*sink, {"http://a.test/p", picture('P'), "image/png"}));
  ASSERT_TRUE(sink->finish());
  sink = nullptr;
  sink = open();
  EXPECT_FALSE(sink->lacks("http://a.test/"));
  EXPECT_FALSE(sink->lacks("http://a.test/p"));
  EXPECT_TRUE(sink->lacks("http://a.test/other"));
  std::filesystem::remove_all(own("files"));
  std::filesystem::create_directory(own("files"));
  EXPECT_TRUE(sink->lacks("http://a.test/p"));
}

TEST_F(SaveSinkTest, WhatIsNotWholeIsNotSaved) {
  const auto sink = open();
  HttpRequest request;
  request.url = *Url::parse("http://a.test/big");
  HttpResponse response;
  response.status = 200;
  response.body = "half";
  response.truncated = true;
  ASSERT_TRUE(sink->take({ExchangeKind::page, request, response, WallTime{1h}}));
  response.truncated = false;
  response.damage = "the connection was closed";
  request.url = *Url::parse("http://a.test/torn");
  ASSERT_TRUE(sink->take({ExchangeKind::requisite, request, response, WallTime{1h}}));
  ASSERT_TRUE(show(*sink, {"http://a.test/", "<a href=big>b</a><img src=torn>"}));
  ASSERT_TRUE(show(*sink, {"http://a.test/robots.txt", "x"}, ExchangeKind::robots));
  ASSERT_TRUE(show(*sink, {"http://a.test/checked", "x"}, ExchangeKind::check));
  ASSERT_TRUE(sink->finish());
  EXPECT_EQ(sink->totals().cut_short, 2u);
  EXPECT_EQ(tree(),
            (Tree{{"a.test/index.html", "<a href=\"http://a.test/big\">b</a><img src=\"http://a.test/torn\">"}}));
  EXPECT_EQ(sink->file_of(*Url::parse("http://a.test/#x")), path_ + "/a.test/index.html");
  EXPECT_EQ(sink->file_of(*Url::parse("http://a.test/big")), std::nullopt);
}

// --- what lies in the folder

TEST_F(SaveSinkTest, AFolderWithOtherFilesIsNotTakenForAMirror) {
  put_file(path_ + "/thesis.txt", "precious");
  EXPECT_EQ(open_error().code, Errc::wrong_format);
  EXPECT_THAT(open_error().message, HasSubstr("thesis.txt"));
  EXPECT_EQ(tree(), (Tree{{"thesis.txt", "precious"}}));
  path_ += "/thesis.txt";
  EXPECT_EQ(open_error().code, Errc::wrong_format);
}

TEST_F(SaveSinkTest, AnotherCrawlsMirrorIsNotTakenForThisOnes) {
  ASSERT_TRUE(open({*Url::parse("http://a.test/")}));
  EXPECT_TRUE(open({*Url::parse("https://www.a.test/docs/"), *Url::parse("http://c.test/")}));
  EXPECT_TRUE(open({*Url::parse("http://c.test/x")}));
  const Error error = open_error({*Url::parse("http://b.test/")});
  EXPECT_EQ(error.code, Errc::wrong_format);
  EXPECT_THAT(error.message, HasSubstr("http://a.test/"));
  EXPECT_THAT(error.message, HasSubstr("http://b.test/"));
}

TEST_F(SaveSinkTest, WhatIsTakenAwayWhileItIsWrittenEndsTheCrawl) {
  for (const std::string& gone : {path_, own("index"), own("pages-1")}) {
    const auto sink = open();
    ASSERT_TRUE(show(*sink, {"http://a.test/", "x"}));
    ASSERT_TRUE(sink->keep());
    std::filesystem::rename(gone, folder_.file("elsewhere"));
    ASSERT_TRUE(show(*sink, {"http://a.test/b", "x"}));
    const auto kept = sink->keep();
    ASSERT_FALSE(kept) << gone;
    EXPECT_THAT(kept.error().message, HasSubstr("deleted while it was in use"));
    EXPECT_FALSE(sink->finish());
    std::filesystem::remove_all(folder_.file("elsewhere"));
    std::filesystem::remove_all(path_);
  }
}

TEST_F(SaveSinkTest, IsForOneProcessAtATime) {
  const auto sink = open();
  EXPECT_EQ(open_error().code, Errc::busy);
}

TEST_F(SaveSinkTest, FilesOfOthersInTheMirrorAreNotOverwritten) {
  run({{"http://a.test/", "1"}});
  put_file(path_ + "/a.test/mine.html", "mine");
  put_file(path_ + "/notes.txt", "notes");
  {
    const auto sink = open();
    ASSERT_TRUE(show(*sink, {"http://a.test/mine", "theirs"}));
    const auto finished = sink->finish();
    ASSERT_FALSE(finished);
    EXPECT_EQ(finished.error().code, Errc::wrong_format);
    EXPECT_THAT(finished.error().message, HasSubstr("a.test/mine.html: in the way"));
  }
  EXPECT_EQ(bytes_of(path_ + "/a.test/mine.html"), "mine");
  std::filesystem::remove(path_ + "/a.test/mine.html");
  EXPECT_EQ(run({}).files, 2u) << "it goes on once the way is free";
  EXPECT_EQ(bytes_of(path_ + "/a.test/mine.html"), "theirs");
  EXPECT_EQ(bytes_of(path_ + "/notes.txt"), "notes");
}

TEST_F(SaveSinkTest, LinksInTheFolderLeadNowhere) {
  const std::string outside = folder_.file("outside");
  std::filesystem::create_directory(outside);
  put_file(outside + "/secret.html", "secret");
  ASSERT_TRUE(open());
  std::filesystem::create_directory_symlink(outside, path_ + "/a.test");
  {
    const auto sink = open();
    ASSERT_TRUE(show(*sink, {"http://a.test/secret", "overwritten"}));
    const auto finished = sink->finish();
    ASSERT_FALSE(finished);
    EXPECT_EQ(finished.error().code, Errc::wrong_format);
  }
  EXPECT_EQ(tree_of(outside), (Tree{{"secret.html", "secret"}}));
  // A link in place of one of its files is replaced, and what it leads to stays as it is.
  std::filesystem::remove(path_ + "/a.test");
  run({});
  std::filesystem::remove(path_ + "/a.test/secret.html");
  std::filesystem::create_symlink(outside + "/secret.html", path_ + "/a.test/secret.html");
  run({{"http://a.test/secret", "changed"}});
  EXPECT_EQ(tree_of(outside), (Tree{{"secret.html", "secret"}}));
  EXPECT_FALSE(std::filesystem::is_symlink(path_ + "/a.test/secret.html"));
}

// --- what was killed

// Whatever of the last records a crash leaves, the mirror opens, and what is lost is what it lacks.
TEST_F(SaveSinkTest, OpensWhateverACrashHasLeftOfItsLog) {
  const std::vector<Answer> answers{
      {"http://a.test/", "<a href=b>b</a>"}, {"http://a.test/b", "bb"}, {"http://a.test/c", "ccc"}};
  run(answers);
  const Tree whole = tree();
  const std::string index = bytes_of(own("index")), pages = bytes_of(own("pages-1"));
  const auto level = spdlog::get_level();
  spdlog::set_level(spdlog::level::err);
  for (std::size_t size = 0; size <= index.size(); ++size) {
    put_file(own("index"), index.substr(0, size));
    put_file(own("pages-1"), pages);
    const auto sink = open();
    ASSERT_TRUE(sink) << size;
    for (const Answer& answer : answers) {
      if (sink->lacks(answer.url)) ASSERT_TRUE(show(*sink, answer));
    }
    ASSERT_TRUE(sink->finish()) << size;
    EXPECT_EQ(tree(), whole) << size;
  }
  // After a power cut the bytes may be missing that a record names, or be others.
  for (std::size_t size = 0; size <= pages.size(); ++size) {
    for (const bool is_overwritten : {false, true}) {
      put_file(own("index"), index);
      put_file(own("pages-1"), pages.substr(0, size) + std::string(is_overwritten ? pages.size() - size : 0, '\0'));
      const auto sink = open();
      ASSERT_TRUE(sink) << size;
      for (const Answer& answer : answers) {
        if (sink->lacks(answer.url)) ASSERT_TRUE(show(*sink, answer));
      }
      ASSERT_TRUE(sink->finish()) << size;
      EXPECT_EQ(tree(), whole) << size;
    }
  }
  spdlog::set_level(level);
}

// Where the crawl has looked for references, the mirror does not look again; what it makes of them is the same.
TEST_F(SaveSinkTest, TakesTheReferencesThatTheCrawlHasFound) {
  const std::string filling(5'000, ' ');
  const std::vector<Answer> answers{{"http://a.test/", "<base href=/d/><a href=e>e</a>" + filling + "<img src=../i>"},
                                    {"http://a.test/d/e", "<style>a{b:url(/i)}</style><a href='/#f'>a</a>"},
                                    {"http://a.test/i", "PNG", "image/png"}};
  run(answers);
  const Tree whole = tree();
  path_ += "-of-references";
  auto sink = open();
  std::vector<PageReferences> references(answers.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    scan_references(answers[i].body, references[i]);
    ASSERT_TRUE(show(*sink, answers[i], ExchangeKind::page, i < 2 ? &references[i] : nullptr));
  }
  ASSERT_TRUE(sink->finish());
  EXPECT_EQ(tree(), whole);
  // It is they that count, or nothing would have been gained.
  path_ += "-of-none";
  sink = open();
  const PageReferences none;
  ASSERT_TRUE(show(*sink, answers[0], ExchangeKind::page, &none));
  ASSERT_TRUE(sink->finish());
  EXPECT_EQ(tree().at("a.test/index.html"), answers[0].body);
}

// As the version before this one has written it: texts by zstd, and an index of version 1.
TEST_F(SaveSinkTest, GoesOnWithAMirrorOfVersionOne) {
  using namespace std::string_literals;
  run({});
  const std::string packed = "\xb5/\xfd\0H\xf5\0\0\xb8<a href=b>old page </a>\x01\0Q\xa4J\x18"s;
  std::string old_page = "<a href=b>";
  for (int i = 0; i < 20; ++i) old_page += "old page ";
  old_page += "</a>";
  const std::string plain = "<a href=/>a</a>";
  const std::string first = "(" + packed;
  const std::string of_page = content_digest(old_page), of_plain = content_digest(plain);
  MirrorRecord record{
      .what = MirrorRecord::What::logged, .packing = MirrorRecord::Packing::zstd, .type = {FileKind::html, "html"}};
  std::string index = "argiope-mirror 1 0000000000000007 pages-1\n";
  record.url = "http://a.test/";
  record.content_type = "text/html";
  record.digest = of_page;
  record.packed = first.size();
  record.size = old_page.size();
  append_record(record, index);
  record.url = "http://a.test/b";
  record.digest = of_plain;
  record.offset = first.size();
  record.packed = record.size = plain.size();
  append_record(record, index);
  put_file(own("index"), index);
  put_file(own("pages-1"), first + plain);

  auto sink = open();
  ASSERT_TRUE(sink);
  EXPECT_FALSE(sink->lacks("http://a.test/"));
  ASSERT_TRUE(show(*sink, {"http://a.test/c", "<a href=b>b</a>" + std::string(2'000, ' ')}));
  ASSERT_TRUE(sink->finish());
  std::string made = old_page;
  made.replace(made.find("=b"), 2, "=\"b.html\"");
  EXPECT_EQ(tree(), (Tree{{"a.test/index.html", made},
                          {"a.test/b.html", "<a href=\"index.html\">a</a>"},
                          {"a.test/c.html", "<a href=\"b.html\">b</a>" + std::string(2'000, ' ')}}));
  // A program that knows version 1 alone refuses it from now on.
  EXPECT_THAT(bytes_of(own("index")), testing::StartsWith("argiope-mirror 2 0000000000000007 pages-1\n"));
  sink.reset();
  EXPECT_EQ(run({}).written, 0u);
  EXPECT_EQ(tree().size(), 3u);
}

TEST_F(SaveSinkTest, MakesTheSameFilesWhereverItWasKilledWhileMakingThem) {
  std::vector<Answer> answers;
  for (int i = 0; i < 100; ++i) {
    answers.push_back({fmt::format("http://a.test/{}", i),
                       fmt::format("<a href={}>x</a><a href={}>y</a><img src=i{}>", i + 1, i * 7, i)});
    answers.push_back({fmt::format("http://a.test/i{}", i), fmt::format("P{}", i % 5), "image/png"});
  }
  run(answers);
  const Tree whole = tree();
  const std::string placed = bytes_of(own("placed"));
  Random random{5};
  for (int round = 0; round < 20; ++round) {
    // As if it had died before the end: some files are there, some are old, and nothing says that all are.
    std::filesystem::remove(own("built"));
    for (const auto& [path, bytes] : whole) {
      if (random.chance(0.3)) {
        std::filesystem::remove(path_ + "/" + path);
      } else if (random.chance(0.3)) {
        put_file(path_ + "/" + path, "old");
      }
    }
    put_file(own("tmp-1"), "half a fi");
    put_file(own("files/tmp-abc"), "half a fi");
    run({});
    EXPECT_EQ(tree(), whole) << round;
    EXPECT_FALSE(std::filesystem::exists(own("tmp-1")));
    EXPECT_FALSE(std::filesystem::exists(own("files/tmp-abc")));
  }
}

TEST_F(SaveSinkTest, WhatIsNoIndexIsNotTouched) {
  run({{"http://a.test/", "x"}});
  put_file(own("index"), "something else that is long enough to be no beginning of an index of ours");
  EXPECT_EQ(open_error().code, Errc::wrong_format);
  put_file(own("index"), "argiope-mirror 3 0000000000000001 pages-1\n");
  EXPECT_EQ(open_error().code, Errc::newer_version);
}

TEST_F(SaveSinkTest, TheLogGrowsNoFartherThanTwiceWhatCounts) {
  std::string page(1'000'000, 'x');
  Random random{1};
  for (char& c : page) c = static_cast<char>('a' + random.below(26));
  std::vector<Answer> answers;
  for (int round = 0; round < 8; ++round) {
    answers.clear();
    for (int i = 0; i < 6; ++i)
      answers.push_back({fmt::format("http://a.test/{}", i), fmt::format("{}{}", round, page)});
    run(answers);
    EXPECT_EQ(tree().at("a.test/3.html"), answers[3].body);
  }
  std::uintmax_t size = 0;
  for (const auto& entry : std::filesystem::directory_iterator(own(""))) {
    if (entry.path().filename().string().starts_with("pages-")) size += entry.file_size();
  }
  EXPECT_LT(size, 25'000'000u);
  EXPECT_EQ(run({}).written, 0u);
  EXPECT_EQ(tree().size(), 6u);
}

TEST_F(SaveSinkTest, KeepsWithSyncToo) {
  sync_ = true;
  const auto sink = open();
  ASSERT_TRUE(show(*sink, {"http://a.test/", "x"}));
  ASSERT_TRUE(sink->keep());
  ASSERT_TRUE(show(*sink, {"http://a.test/p", picture('P'), "image/png"}, ExchangeKind::requisite));
  ASSERT_TRUE(sink->keep());
  EXPECT_EQ(sink->backlog(), 0u);
  EXPECT_EQ(bytes_of(own("pages-1")), "x");
  ASSERT_TRUE(sink->finish());
  EXPECT_EQ(tree().size(), 2u);
}

}  // namespace
}  // namespace argiope
