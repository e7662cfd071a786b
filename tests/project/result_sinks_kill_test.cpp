// A process that gives results to a file and is killed with SIGKILL at any moment, fifty times: the file has each event
// once, in order.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "base/internal/json_members.hpp"
#include "base/internal/json_writer.hpp"
#include "project/feed_store.hpp"
#include "project/results/internal/result_sinks.hpp"
#include "support/environment.hpp"
#include "support/loop_fixture.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

constexpr std::int64_t kNoEnd = 100'000'000;

// Keeps the rows of sinks in a file, each commit whole or not at all, and gives a feed without an end.
class KilledStore final : public FeedStore {
 public:
  KilledStore(std::string path, std::int64_t end) : path_(std::move(path)), end_(end) {
    std::ifstream file(path_);
    const std::string stored{std::istreambuf_iterator<char>(file), {}};
    const auto text = JsonText::parse(stored);
    if (!text) return;
    JsonErrors errors;
    JsonMembers in(text->root(errors));
    rows["it"] = {.project = 1, .name = "it", .cursor = in.whole("cursor", kNoEnd), .place = in.text("place")};
  }
  std::int64_t cursor() const { return rows.contains("it") ? rows.at("it").cursor : 0; }

  // As a store does, later: whoever is killed before has lost it.
  void submit(PageBatch batch) override {
    for (SinkRow& row : batch.sinks) waiting_.push_back(std::move(row));
  }
  void commit() {
    for (SinkRow& row : waiting_) {
      const std::string text = json_object([&](JsonWriter& json) {
        json.member("cursor", row.cursor);
        json.member("place", row.place);
      });
      std::ofstream(path_ + ".new") << text;
      std::filesystem::rename(path_ + ".new", path_);
      rows["it"] = std::move(row);
    }
    waiting_.clear();
  }
  bool flushed(std::uint64_t) const override { return waiting_.empty(); }
  Result<std::vector<FeedRow>> read_feed(ProjectId, std::int64_t after, std::size_t most) override {
    std::vector<FeedRow> found;
    for (std::int64_t number = after + 1; number <= std::min(end_, told) && found.size() < most; ++number) {
      found.push_back(event(number, "{\"a\":" + std::to_string(number * 7) + "}"));
    }
    return found;
  }

  std::int64_t told = 0;  // up to here it has come

 private:
  const std::string path_;
  const std::int64_t end_;
  std::vector<SinkRow> waiting_;
};

// Until all up to `end` is there; a process that is to be killed gets no end.
void write_events(const std::string& folder, std::int64_t end, std::uint64_t seed) {
  Random random(seed);
  KilledStore store(folder + "/row", end);
  RealTime world;
  EventLoop loop(world.backend);
  ProjectDefinition definition{.name = "shop"};
  definition.sinks = {{.kind = ProjectSink::Kind::file, .name = "it", .target = "a.jsonl", .rotate_bytes = 20'000}};
  world.run(loop, keeping([&]() -> Coro<void> {
              ResultSinks sinks(loop, store, [&](SinkRow row) { store.submit({.sinks = {std::move(row)}}); }, 1,
                                definition, {.folder = folder});
              if (!sinks.start()) co_return;
              store.told = store.cursor();
              while (store.cursor() < end) {
                store.told += static_cast<std::int64_t>(random.below(40));
                sinks.wake();
                co_await sleep(std::chrono::microseconds{random.below(1500)});
                if (random.below(3) == 0) store.commit();
              }
              co_await sinks.stop();
            }));
}

TEST(ResultSinksKillTest, FilesHaveEachEventOnceAndInOrder) {
  const TemporaryFolder folder;
  const std::string path = std::filesystem::path(folder.file("x")).parent_path().string();
  const std::uint64_t kills = from_environment("ARGIOPE_SINK_KILLS", 50);
  Random random(from_environment("ARGIOPE_SINK_SEED", 7));
  for (std::uint64_t kill = 0; kill < kills; ++kill) {
    const std::uint64_t seed = random.next();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      write_events(path, kNoEnd, seed);
      ::_exit(1);
    }
    // However slow the machine is, it gets so far, and a little further.
    const std::int64_t far = KilledStore(path + "/row", 0).cursor() + static_cast<std::int64_t>(random.below(100));
    while (KilledStore(path + "/row", 0).cursor() < far && ::waitpid(child, nullptr, WNOHANG) == 0) ::usleep(200);
    ::usleep(static_cast<useconds_t>(random.below(5'000)));
    ASSERT_EQ(::kill(child, SIGKILL), 0) << "it has ended by itself";
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it has ended by itself";
  }
  const std::int64_t end = KilledStore(path + "/row", 0).cursor() + 100;
  write_events(path, end, 1);

  std::vector<std::string> files;
  for (int number = 1; std::filesystem::exists(folder.file("a." + std::to_string(number) + ".jsonl")); ++number) {
    files.push_back(folder.file("a." + std::to_string(number) + ".jsonl"));
  }
  EXPECT_GT(files.size(), 3u) << "too few rotations to prove anything";
  files.push_back(folder.file("a.jsonl"));
  std::int64_t expected = 1;
  for (const std::string& file : files) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line); ++expected) {
      const auto text = JsonText::parse(line);
      ASSERT_TRUE(text) << file << ": " << line;
      JsonErrors errors;
      ASSERT_EQ(JsonMembers(text->root(errors)).whole("number", kNoEnd), expected) << file;
    }
  }
  EXPECT_EQ(expected, end + 1);
  EXPECT_GT(expected, 1'000) << "too few events to prove anything";
}

}  // namespace
}  // namespace argiope
