// What only a file of pages can do: be somebody else's, be full, be looked at, be killed.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "argiope/base/random.hpp"
#include "project/page_store_fixture.hpp"
#include "store/sqlite/internal/sqlite_file.hpp"
#include "support/environment.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PageFileTest : public testing::Test {
 protected:
  void run_sql(const char* sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(file_.c_str(), &database), SQLITE_OK);
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, &message), SQLITE_OK) << message;
    sqlite3_close(database);
  }
  void expect_refused(Errc code, std::string_view words) {
    const auto opened = open_page_store(file_);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, code) << opened.error().message;
    EXPECT_THAT(opened.error().message, HasSubstr(file_));
    EXPECT_THAT(opened.error().message, HasSubstr(words));
  }
  std::string content() const {
    std::ifstream in(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  TemporaryFolder folder_;
  std::string file_ = folder_.file("pages.db");
};

TEST_F(PageFileTest, HasOneOwnerWhoGivesItBack) {
  auto store = open_pages(file_);
  expect_refused(Errc::busy, "another argiope is using it");
  ASSERT_TRUE(store->close());
  EXPECT_TRUE(store->close()) << "again";
  store = open_pages(file_);
  store = nullptr;
  EXPECT_NE(open_pages(file_), nullptr);
  EXPECT_FALSE(fs::exists(file_ + "-wal")) << "the log of the last owner";
}

TEST_F(PageFileTest, IsForItsOwnerAloneWhereItIsPrivate) {
  open_pages(file_);
  constexpr auto kOthers = fs::perms::group_all | fs::perms::others_all;
  fs::permissions(file_, fs::perms::owner_read | fs::perms::owner_write | fs::perms::others_read);
  const auto store = open_pages(file_, {.is_private = true});
  put(*store, {.added = {some_page(page_at(1))}});
  for (const char* const beside : {"", "-wal", "-shm"})
    EXPECT_EQ(fs::status(file_ + beside).permissions() & kOthers, fs::perms::none) << beside;
}

TEST_F(PageFileTest, LeavesAFileThatIsNotItsOwn) {
  std::ofstream(file_) << std::string(10'000, 'x');
  const std::string before = content();
  expect_refused(Errc::wrong_format, "no SQLite database");
  EXPECT_EQ(content(), before);
  EXPECT_FALSE(open_page_store_to_look(file_));
}

TEST_F(PageFileTest, LeavesADatabaseThatIsNotItsOwn) {
  run_sql("CREATE TABLE t (x); PRAGMA application_id = 7");
  const std::string before = content();
  expect_refused(Errc::wrong_format, "not made by argiope for this");
  EXPECT_EQ(content(), before);
}

TEST_F(PageFileTest, LeavesTheFileOfACrawl) {
  {
    const auto crawl = open_url_store(file_);
    ASSERT_TRUE(crawl);
  }
  expect_refused(Errc::wrong_format, "not made by argiope for this");
}

TEST_F(PageFileTest, LeavesAFileOfANewerVersion) {
  open_pages(file_);
  run_sql("PRAGMA user_version = 99");
  const std::string before = content();
  expect_refused(Errc::newer_version, "made by a newer argiope");
  EXPECT_EQ(content(), before);
  const auto look = open_page_store_to_look(file_);
  ASSERT_FALSE(look);
  EXPECT_EQ(look.error().code, Errc::newer_version);
}

// A file of the first version that there was, with one page.
class OlderPageFileTest : public PageFileTest {
 protected:
  void SetUp() override {
    put(*open_pages(file_), {.projects = {some_project(1)}, .added = {full_page(page_at(1))}});
    run_sql(
        "ALTER TABLE pages DROP COLUMN track; ALTER TABLE projects DROP COLUMN start_wanted; ALTER TABLE rounds DROP "
        "COLUMN coverage; "
        "ALTER TABLE rounds DROP COLUMN alarms; PRAGMA user_version = 1");
  }
  Error refusal_to_look() const {
    auto look = open_page_store_to_look(file_);
    return look ? Error{} : std::move(look.error());
  }
  // Root may write everything: as another user.
  void expect_refused_to_nobody(std::string_view words) const {
    constexpr uid_t kNobody = 65'534;
    const pid_t child = ::fork();
    if (child == 0) {
      if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(2);
      const Error refused = refusal_to_look();
      if (!refused.message.contains(words))
        (void)::write(STDERR_FILENO, refused.message.data(), refused.message.size());
      ::_exit(refused.code == Errc::io && refused.message.contains(words) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << words;
  }
};

TEST_F(OlderPageFileTest, ItsOwnerBringsItForward) {
  const auto store = open_pages(file_);
  put(*store, {.changes = {{.id = page_at(1),
                            .known = full_page(page_at(1)).known,
                            .outcome = PageChange::Outcome{.track = R"({"pages":1})"}}}});
  const auto pages = all_pages(*store);
  ASSERT_EQ(pages.size(), 1u);
  EXPECT_EQ(pages.front().name, full_page(page_at(1)).name);
  EXPECT_EQ(pages.front().track, R"({"pages":1})");
}

TEST_F(OlderPageFileTest, ALookBringsItForwardAndOwnsItNoLonger) {
  const fs::perms mode = fs::status(file_).permissions();
  const auto look = open_page_store_to_look(file_);
  ASSERT_TRUE(look) << look.error().message;
  PageRecord page = full_page(page_at(1));
  page.track.clear();
  EXPECT_THAT(all_pages(**look), ElementsAre(page));
  EXPECT_EQ(fs::status(file_).permissions(), mode);
  (*look)->submit({.added = {some_page(page_at(2))}});
  EXPECT_FALSE((*look)->flush()) << "it is a look all the same";
  EXPECT_TRUE(open_page_store_to_look(file_));
  EXPECT_NE(open_pages(file_), nullptr);
}

TEST_F(OlderPageFileTest, WhileAnotherProcessOwnsItALookSaysSo) {
  const auto owner = FileLock::take(file_);
  ASSERT_TRUE(owner);
  const std::string before = content();
  const Error refused = refusal_to_look();
  EXPECT_EQ(refused.code, Errc::busy);
  EXPECT_THAT(
      refused.message,
      HasSubstr(file_ + ": another argiope is using it; an older argiope made it: it is brought up to date once"));
  EXPECT_EQ(content(), before);
}

TEST_F(OlderPageFileTest, ALookBesideAnotherLookWaitsForIt) {
  std::atomic<int> looked = 0;
  {
    std::vector<std::jthread> lookers;
    for (int i = 0; i < 8; ++i) {
      lookers.emplace_back([&] {
        auto look = open_page_store_to_look(file_);
        // It waits for half a second, which eight of them may need longer for on a busy machine.
        while (!look && look.error().code == Errc::busy) look = open_page_store_to_look(file_);
        EXPECT_TRUE(look) << look.error().message;
        looked += look.has_value();
      });
    }
  }
  EXPECT_EQ(looked, 8);
}

TEST_F(OlderPageFileTest, WhereItMayNotBeWrittenALookSaysWhatToDo) {
  const std::string before = content();
  fs::permissions(file_, fs::perms(0444));
  fs::permissions(folder_.file(""), fs::perms(0555));
  expect_refused_to_nobody(
      "; its folder may not be written, and reading it makes files beside it: look as a user who may write there");
  fs::permissions(folder_.file(""), fs::perms(0777));
  expect_refused_to_nobody(
      "; an older argiope made it: a user who may write it and its folder brings it up to date by looking at it");
  fs::permissions(folder_.file(""), fs::perms(0700));
  EXPECT_EQ(content(), before);
}

TEST_F(PageFileTest, SaysWhereItCannotBe) {
  file_ = folder_.file("missing/pages.db");
  expect_refused(Errc::io, "cannot be opened for writing");
  const auto look = open_page_store_to_look(file_);
  ASSERT_FALSE(look);
  EXPECT_EQ(look.error().code, Errc::io) << look.error().message;
}

TEST_F(PageFileTest, ReadsWhatOtherProgramsHaveWritten) {
  put(*open_pages(file_), {.added = {some_page(page_at(1)), some_page(page_at(2))}});
  run_sql(
      "UPDATE pages SET state = 99, wait = -1, priority = 1 << 40, due = -5, interval = 9223372036854775807, retried = "
      "-1, rule_id = 77, "
      "own = 'age=9223372036854775807 what=1 priority=x  retries=99999999999 =', name = 7 WHERE page_id & 1");
  const auto store = open_pages(file_);
  const PageRecord page = all_pages(*store).at(0);
  EXPECT_EQ(page.known.state, PageState::cancelled);
  EXPECT_EQ(page.known.wait, PageWait::visit);
  EXPECT_EQ(page.known.priority, std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(page.known.due, WallTime{});
  EXPECT_EQ(page.known.retried, 0u);
  EXPECT_EQ(page.known.own.priority, std::nullopt);
  EXPECT_EQ(page.known.own.retries, std::numeric_limits<std::uint32_t>::max());
  EXPECT_GT(page.known.own.age, 24h * 365 * 200);
  EXPECT_EQ(page.rule, "");
  EXPECT_EQ(page.name, "7");
  EXPECT_EQ(all_pages(*store).at(1), some_page(page_at(2)));
}

TEST_F(PageFileTest, StopsWhenTheDiskIsFull) {
  auto store = open_pages(file_, {.linger = 1ms, .max_bytes = 400'000});
  std::int64_t kept = 0;
  std::optional<Error> failed;
  for (std::int64_t batch = 0; batch < 1'000 && !failed; ++batch) {
    PageBatch pages;
    for (std::int64_t i = 1; i <= 20; ++i) pages.added.push_back(full_page(page_at(batch * 20 + i)));
    store->submit(std::move(pages));
    if (const auto flushed = store->flush()) {
      kept += 20;
    } else {
      failed = flushed.error();
    }
  }
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->code, Errc::disk_full);
  EXPECT_THAT(failed->message, HasSubstr(file_));
  EXPECT_EQ(std::ssize(known_ids(*store)), kept) << "what was committed can still be read";
  EXPECT_FALSE(store->close());
  store = open_pages(file_);
  EXPECT_EQ(std::ssize(known_ids(*store)), kept);
  put(*store, {.added = {some_page(page_at(kept + 1))}});
}

TEST_F(PageFileTest, NoticesThatItWasDeleted) {
  const auto store = open_pages(file_);
  put(*store, {.added = {some_page(page_at(1))}});
  fs::remove(file_);
  store->submit({.added = {some_page(page_at(2))}});
  const auto flushed = store->flush();
  ASSERT_FALSE(flushed);
  EXPECT_THAT(flushed.error().message, HasSubstr("deleted while it was in use"));
}

TEST_F(PageFileTest, IsReadWhileItIsWritten) {
  const auto store = open_pages(file_);
  put(*store,
      {.projects = {some_project(1)}, .added = {full_page(page_at(1))}, .results = {result(page_at(1), "a", "1")}});
  auto looked = open_page_store_to_look(file_);
  ASSERT_TRUE(looked) << looked.error().message;
  PageStore& look = **looked;
  EXPECT_THAT(all_pages(look), ElementsAre(full_page(page_at(1))));
  EXPECT_EQ(look.next_project_id(), 2);
  put(*store,
      {.added = {some_page(page_at(2))}, .changes = {{.id = page_at(1), .known = {.state = PageState::visiting}}}});
  EXPECT_EQ(known_ids(look).size(), 2u);
  EXPECT_EQ(all_pages(look).at(0).known.state, PageState::visiting) << "as it is";
  EXPECT_THAT(all_results(look), ElementsAre("1/a=1"));
  EXPECT_EQ(*look.count_results(1), 1u);
  EXPECT_TRUE(look.flush());
  look.submit({.added = {some_page(page_at(3))}});
  const auto flushed = look.flush();
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, Errc::refused);
  EXPECT_THAT(flushed.error().message, HasSubstr(file_));
  EXPECT_TRUE(look.close());
  EXPECT_EQ(known_ids(*store).size(), 2u);
  EXPECT_TRUE(store->close());
}

TEST_F(PageFileTest, IsReadWithoutAnOwnerAndNotChanged) {
  put(*open_pages(file_),
      {.added = {some_page(page_at(1))}, .changes = {{.id = page_at(1), .known = {.state = PageState::visiting}}}});
  const std::string before = content();
  {
    const auto look = open_page_store_to_look(file_);
    ASSERT_TRUE(look);
    EXPECT_EQ(all_pages(**look).at(0).known.state, PageState::visiting);
  }
  EXPECT_EQ(content(), before);
  EXPECT_NE(open_pages(file_), nullptr) << "nobody owns it";
}

TEST_F(PageFileTest, WaitsAgainForVisitsThatWereCutShort) {
  {
    const auto store = open_pages(file_);
    PageRecord page = full_page(page_at(1));
    page.known.state = PageState::visiting;
    put(*store, {.added = {page, full_page(page_at(2))}});
    EXPECT_EQ(all_pages(*store).at(0), page) << "while its owner lives";
  }
  const auto store = open_pages(file_);
  PageRecord expected = full_page(page_at(1));
  expected.known.state = PageState::waiting;
  expected.known.wait = PageWait::visit;
  expected.known.again = false;
  expected.known.due = WallTime{};
  EXPECT_THAT(all_pages(*store), ElementsAre(expected, full_page(page_at(2))));
}

// --- killed ----------------------------------------------------------------------------------------------------------

// A writer whose batch number n visits page n, which gives a result and three pages more, and counts in its project's
// counters.
PageBatch ledger_batch(std::int64_t number) {
  PageBatch batch{.at = kStoreNoon + std::chrono::seconds{number}};
  if (number == 0) {
    batch.added.push_back(some_page(page_at(1)));
  } else {
    const PageId visited = page_at(number);
    batch.changes.push_back(
        {.id = visited, .known = {.state = PageState::done}, .outcome = PageChange::Outcome{.status_code = 200}});
    batch.results.push_back(result(visited, "a", fmt::format("{}", number)));
    if (number > 1) batch.results.push_back(result(page_at(number - 1), "a", std::nullopt));
    for (std::int64_t i = 2; i <= 4; ++i) batch.added.push_back(some_page(page_at((number - 1) * 3 + i)));
  }
  ProjectRecord project = some_project(1);
  project.counters = fmt::format("{}", number);
  batch.projects.push_back(project);
  return batch;
}

// What the file has is what a whole number of batches makes, at least `confirmed`.
void expect_ledger(PageStore& store, std::int64_t confirmed) {
  const auto projects = *store.projects();
  const std::int64_t last = projects.empty() ? -1 : std::stoll(projects[0].counters);
  EXPECT_GE(last, confirmed);
  const auto pages = all_pages(store);
  ASSERT_EQ(std::ssize(pages), last < 0 ? 0 : 1 + 3 * last);
  std::int64_t number = 0, right = 0;
  for (const PageRecord& page : pages) {
    const bool is_done = ++number <= last;
    right += page.id == page_at(number) && page.rule == "item" &&
             page.known.state == (is_done ? PageState::done : PageState::waiting) &&
             page.status_code == (is_done ? 200 : 0);
  }
  ASSERT_EQ(right, number);
  std::map<std::string, std::string> rows;  // what the feed makes of them
  for (const FeedRow& row : *store.read_feed(1, 0, 1'000'000)) {
    if (row.news == ResultNews::gone) {
      rows.erase(row.page_name);
    } else {
      rows[row.page_name] = row.value;
    }
  }
  EXPECT_EQ(rows.size(), last < 1 ? 0u : 1u);
  EXPECT_EQ(*store.count_results(1), rows.size());
  EXPECT_EQ(all_results(store).size(), rows.size());
  if (last >= 1) EXPECT_THAT(all_results(store), ElementsAre(fmt::format("{0}/a={0}", last)));
  EXPECT_EQ(std::ssize(*store.read_feed(1, 0, 1'000'000)), last < 1 ? 0 : 2 * last - 1);
}

// Runs `write(confirm)` in a process of its own and kills it behind so many confirmations, and a while. The last one
// that it has given.
template <class Write>
std::int64_t killed_after(std::int64_t confirmations, std::int64_t spins, const Write& write) {
  int pipe[2];
  if (::pipe(pipe) != 0) return -2;
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    write([&](std::int64_t number) { [[maybe_unused]] const auto n = ::write(pipe[1], &number, sizeof number); });
    ::_exit(0);
  }
  ::close(pipe[1]);
  std::int64_t confirmed = -1;
  for (std::int64_t i = 0; i < confirmations; ++i) {
    if (::read(pipe[0], &confirmed, sizeof confirmed) != sizeof confirmed) break;
  }
  for (std::int64_t i = 0; i < spins; ++i) std::this_thread::yield();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  while (::read(pipe[0], &confirmed, sizeof confirmed) == sizeof confirmed) {
  }
  ::close(pipe[0]);
  return confirmed;
}

TEST_F(PageFileTest, SurvivesBeingKilledAtAnyInstant) {
  const std::uint64_t seed = from_environment("ARGIOPE_SEED", 20'261'123);
  fmt::print("seed {}\n", seed);
  Random random(seed);
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(fmt::format("seed {}, round {}", seed, round));
    const std::string file = folder_.file(fmt::format("kill{}.db", round));
    std::int64_t confirmed = -1;
    for (int life = 0; life < 2; ++life) {
      const auto confirmations = static_cast<std::int64_t>(random.below(40));
      const auto spins = static_cast<std::int64_t>(random.below(200));
      const auto every = 1 + static_cast<std::int64_t>(random.below(9));
      const std::int64_t said = killed_after(confirmations, spins, [&](const auto& confirm) {
        const auto store = open_page_store(file, {.linger = 100us});
        if (!store) return;
        const auto projects = *(*store)->projects();
        const std::int64_t first = projects.empty() ? 0 : std::stoll(projects[0].counters) + 1;
        for (std::int64_t number = first; number < first + 1'000; ++number) {
          (*store)->submit(ledger_batch(number));
          if (number % every == 0 && (*store)->flush()) confirm(number);
        }
      });
      confirmed = std::max(confirmed, said);
    }
    const auto store = open_pages(file);
    ASSERT_NE(store, nullptr);
    expect_ledger(*store, confirmed);
    ASSERT_FALSE(HasFailure());
  }
}

TEST_F(PageFileTest, ForgetsOnAfterBeingKilled) {
  {
    const auto store = open_pages(file_);
    put(*store, whole_project(1, 100));
    put(*store, whole_project(2, 40'000));
  }
  for (int life = 0; life < 5; ++life) {
    killed_after(1, life * 50, [&](const auto& confirm) {
      const auto store = open_page_store(file_, {.linger = 1ms});
      if (!store) return;
      if (life == 0) (*store)->submit({.forgotten = {2}});
      if ((*store)->flush()) confirm(life);
      ::pause();
    });
    const auto look = open_page_store_to_look(file_);
    ASSERT_TRUE(look) << look.error().message;
    expect_nothing_of(**look, 2);
  }
  const auto store = open_pages(file_);
  EXPECT_EQ(store->next_project_id(), 3);
  for (int i = 0; i < 200 && rows_in_file(file_, 2) > 0; ++i) {
    put(*store, {.changes = {{.id = page_at(1), .known = {}}}});
  }
  EXPECT_EQ(rows_in_file(file_, 2), 0);
  expect_nothing_of(*store, 2);
  EXPECT_EQ(known_ids(*store, 1).size(), 100u);
  EXPECT_EQ(*store->count_results(1), 100u);
}

// --- how fast --------------------------------------------------------------------------------------------------------

class Stopwatch {
 public:
  double seconds() const { return to_seconds(clock_.now() - began_); }

 private:
  SystemClock clock_;
  TimePoint began_ = clock_.now();
};

// Printed, for ARGIOPE_PAGES pages, e.g. 1000000, in the new file ARGIOPE_PAGES_FILE: other tests are on a disk in
// memory.
TEST_F(PageFileTest, PrintsHowFastItIs) {
  if (const char* const elsewhere = std::getenv("ARGIOPE_PAGES_FILE"); elsewhere != nullptr) file_ = elsewhere;
  const auto most = static_cast<std::int64_t>(from_environment("ARGIOPE_PAGES", 20'000));
  auto store = open_pages(file_, {});
  constexpr std::int64_t kFound = 10;
  const Stopwatch writing;
  std::int64_t visits = 0;
  for (std::int64_t number = 0; number < most; number += kFound, ++visits) {
    PageBatch batch{.at = kStoreNoon};
    const PageId visited = page_at(visits + 1);
    if (visits > 0) {
      batch.changes.push_back(
          {.id = visited,
           .known = {.state = PageState::done, .succeeded_at = kStoreNoon, .ended_at = kStoreNoon, .tag = 7},
           .outcome =
               PageChange::Outcome{.status_code = 200, .etag = "\"33a64df551425fcc55e4\"", .digest = 12345678901}});
      batch.results.push_back(result(visited, "", R"({"title":"A title of some words","price":12.5})"));
      batch.replaced.push_back({visited, {""}});
    }
    for (std::int64_t i = 1; i <= kFound; ++i) {
      PageRecord page = some_page(page_at(number + i));
      page.name = fmt::format("https://www.example.org/shop/category-{}/item-{}.html", number % 97, number + i);
      page.fingerprint = page_fingerprint(page.name);
      page.known.tag = 7;
      page.from = visited;
      batch.added.push_back(std::move(page));
    }
    store->submit(std::move(batch));
    while (store->backlog() > 100'000) ASSERT_TRUE(store->flush());
  }
  ASSERT_TRUE(store->flush());
  fmt::print("{} visits, each with {} pages and a result: {:.0f} visits/s\n", visits, kFound,
             static_cast<double>(visits) / writing.seconds());
  ASSERT_TRUE(store->close());
  fmt::print("{:.0f} bytes a page with its share of results and feed\n",
             static_cast<double>(fs::file_size(file_)) / static_cast<double>(most));
  const Stopwatch opening;
  store = open_pages(file_);
  fmt::print("opened in {:.3f} s\n", opening.seconds());
  const Stopwatch scanning;
  EXPECT_EQ(std::ssize(known_ids(*store)), visits * kFound);
  fmt::print("scan_known: {:.0f} pages/s\n", static_cast<double>(most) / scanning.seconds());
  const Stopwatch finding;
  EXPECT_FALSE(*store->find_page(1, "https://www.example.org/not-there"));
  fmt::print("find_page: {:.0f} pages/s\n", static_cast<double>(most) / finding.seconds());
  const Stopwatch exporting;
  EXPECT_EQ(std::ssize(all_results(*store)), visits - 1);
  fmt::print("scan_results: {:.0f} rows/s\n", static_cast<double>(visits) / exporting.seconds());
}

}  // namespace
}  // namespace argiope
