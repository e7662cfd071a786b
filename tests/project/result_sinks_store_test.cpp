// Sinks behind the real store of pages.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>

#include "argiope/async/event_loop.hpp"
#include "project/page_store_fixture.hpp"
#include "project/results/internal/result_sinks.hpp"
#include "support/loop_fixture.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

std::string whole_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ResultSinksStoreTest : public testing::Test {
 protected:
  ResultSinksStoreTest() {
    definition.name = "shop";
    definition.sinks = {{.kind = ProjectSink::Kind::file, .name = "it", .target = "a.jsonl"}};
    means.folder = std::filesystem::path(folder.file("x")).parent_path().string();
  }
  // Has the sinks begin with an open store, calls `body`, waits until they have all, and closes the store.
  template <class Body>
  void with_store(Body body) {
    const auto store = open_pages(folder.file("pages.db"));
    ASSERT_NE(store, nullptr);
    RealTime world;
    EventLoop loop(world.backend);
    world.run(loop, keeping([&]() -> Coro<void> {
                ResultSinks sinks(
                    loop, *store, [&](SinkRow row) { store->submit({.sinks = {std::move(row)}}); }, 1, definition,
                    means);
                EXPECT_TRUE(sinks.start());
                // The writer may tell of news until the end: what comes later finds no sinks.
                const auto wake = std::make_shared<std::function<void()>>([&] { sinks.wake(); });
                store->on_feed([&loop, told = std::weak_ptr(wake)] {
                  loop.call_soon_threadsafe([told] {
                    if (const auto sinks_wake = told.lock()) (*sinks_wake)();
                  });
                });
                co_await sleep(5ms);
                body(*store);
                const std::int64_t last = value_or_throw(store->read_feed(1, 0, 1000)).back().number;
                while (sinks.rows()[0].cursor < last) co_await sleep(1ms);
                store->on_feed(nullptr);
                co_await sinks.stop();
              }));
    EXPECT_TRUE(store->close());
  }

  TemporaryFolder folder;
  ProjectDefinition definition;
  SinkMeans means;
};

TEST_F(ResultSinksStoreTest, AreToldOfTheFeedAndGoOnAfterARestart) {
  with_store([](PageStore& store) {
    put(store, {.projects = {some_project(1)},
                .hosts = {{1, "http://h"}},
                .added = {some_page(page_at(1)), some_page(page_at(2))}});
    put(store, {.results = {result(page_at(1), "", "{\"a\":1}"), result(page_at(2), "b", "2")}});
  });
  with_store([](PageStore& store) {
    put(store, {.results = {result(page_at(1), "", "{\"a\":3}")}});
    put(store, {.results = {result(page_at(2), "b", std::nullopt)}});
  });
  const auto line = [](int number, int page, std::string_view part, std::string_view news, std::string_view value) {
    return fmt::format(
        "{{\"number\":{},\"project\":\"shop\",\"page\":\"http://h/"
        "{}\",\"part\":\"{}\",\"rule\":\"item\",\"news\":\"{}\","
        "\"at\":\"2026-11-23T12:00:00.000Z\",\"value\":{}}}\n",
        number, page, part, news, value);
  };
  EXPECT_EQ(whole_text(folder.file("a.jsonl")), line(1, 1, "", "added", "{\"a\":1}") + line(2, 2, "b", "added", "2") +
                                                    line(3, 1, "", "changed", "{\"a\":3}") +
                                                    line(4, 2, "b", "gone", "2"));
}

}  // namespace
}  // namespace argiope
