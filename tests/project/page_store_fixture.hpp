// What the tests of the store of pages share: pages to put into it, and what it then has, as text.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "project/store/internal/page_store.hpp"

namespace argiope {

inline constexpr WallTime kStoreNoon =
    std::chrono::sys_days{std::chrono::year{2026} / 11 / 23} + std::chrono::hours{12};

inline std::unique_ptr<PageStore> open_pages(const std::string& path, const PageStoreOptions& options = {
                                                                          .linger = std::chrono::milliseconds{1}}) {
  auto store = open_page_store(path, options);
  EXPECT_TRUE(store) << store.error().message;
  return store ? std::move(*store) : nullptr;
}

inline PageId page_at(std::int64_t number, ProjectId project = 1) { return first_page_id(project) + number - 1; }

inline PageRecord some_page(PageId id) {
  PageRecord page;
  page.id = id;
  page.name = fmt::format("http://h/{}", number_of(id));
  page.fingerprint = page_fingerprint(page.name);
  page.host_id = 1;
  page.rule = "item";
  return page;
}

// All members are something.
inline PageRecord full_page(PageId id) {
  PageRecord page = some_page(id);
  page.url = "http://h/elsewhere";
  page.settings = R"({"priority":3})";
  page.context = R"({"a":"ü"})";
  page.save = "[1]";
  page.known = {.state = PageState::failed,
                .wait = PageWait::recrawl,
                .again = true,
                .priority = -7,
                .due = kStoreNoon + std::chrono::milliseconds{5},
                .succeeded_at = kStoreNoon - std::chrono::hours{1},
                .ended_at = kStoreNoon,
                .interval = std::chrono::seconds{90},
                .retried = 2,
                .tag = page_tag("version 1"),
                .own = {.priority = -7, .age = kNeverOld, .retries = 0, .auto_recrawl = false}};
  page.status_code = 503;
  page.crashes = 1;
  page.etag = "\"e\"";
  page.last_modified = "yesterday";
  page.digest = ~std::uint64_t{5};
  page.error = "it's \"bad\"";
  page.round = 4;
  page.from = page_at(1, project_of(id));
  return page;
}

inline ProjectRecord some_project(ProjectId id) {
  return {.id = id,
          .name = fmt::format("project{}", id),
          .version = 1,
          .status = "RUNNING",
          .made_at = kStoreNoon,
          .changed_at = kStoreNoon};
}

inline ResultChange result(PageId page, std::string part, std::optional<std::string> value) {
  return {page, std::move(part), std::move(value)};
}

inline void put(PageStore& store, PageBatch batch) {
  if (batch.at == WallTime{}) batch.at = kStoreNoon;
  store.submit(std::move(batch));
  const auto flushed = store.flush();
  ASSERT_TRUE(flushed) << flushed.error().message;
}

inline std::vector<PageRecord> all_pages(PageStore& store, ProjectId project = 1, PageId after = 0) {
  std::vector<PageRecord> pages;
  EXPECT_TRUE(store.scan_pages(project, after, [&](const PageRecord& page) {
    pages.push_back(page);
    return true;
  }));
  return pages;
}

inline std::vector<PageId> known_ids(PageStore& store, ProjectId project = 1) {
  std::vector<PageId> ids;
  EXPECT_TRUE(store.scan_known(project, [&](const PageStore::KnownRow& row) {
    ids.push_back(row.id);
    return true;
  }));
  return ids;
}

inline std::vector<std::string> all_results(PageStore& store, ProjectId project = 1,
                                            const std::optional<PageStore::ResultPlace>& after = {}) {
  std::vector<std::string> results;
  EXPECT_TRUE(store.scan_results(project, after, [&](const ResultRow& row) {
    results.push_back(fmt::format("{}/{}={}", number_of(row.page), row.part, row.value));
    return true;
  }));
  return results;
}

inline std::vector<std::string> feed_of(PageStore& store, ProjectId project = 1, std::int64_t after = 0) {
  std::vector<std::string> news;
  const auto rows = store.read_feed(project, after, 1'000'000);
  EXPECT_TRUE(rows) << rows.error().message;
  if (!rows) return news;
  for (const FeedRow& row : *rows) {
    EXPECT_GT(row.number, after);
    after = row.number;
    news.push_back(fmt::format("{} {}/{}={}", to_string(row.news), number_of(row.page), row.part, row.value));
  }
  return news;
}

inline PageBatch whole_project(ProjectId project, std::int64_t pages) {
  PageBatch batch{.projects = {some_project(project)},
                  .versions = {},
                  .rounds = {{.project = project, .number = 1, .began = kStoreNoon, .cause = "start"}},
                  .sinks = {{project, "sink", 1, "", ""}},
                  .at = kStoreNoon};
  for (std::int64_t number = 1; number <= 50; ++number)
    batch.versions.push_back({.project = project, .number = number, .text = "{}"});
  for (std::int64_t number = 1; number <= pages; ++number) {
    batch.added.push_back(some_page(page_at(number, project)));
    batch.results.push_back(result(page_at(number, project), "a", "1"));
  }
  return batch;
}

// Rows of all tables that belong to the project.
inline std::int64_t rows_in_file(const std::string& path, ProjectId project) {
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  sqlite3_busy_timeout(database, 5000);
  std::int64_t rows = 0;
  for (const char* counted : {"projects WHERE project_id", "versions WHERE project_id", "rules WHERE project_id",
                              "feed WHERE project_id", "rounds WHERE project_id", "sinks WHERE project_id",
                              "tallies WHERE project_id", "pages WHERE page_id >> 40", "results WHERE page_id >> 40"}) {
    sqlite3_stmt* query = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(database, fmt::format("SELECT count(*) FROM {} = {}", counted, project).c_str(), -1,
                                 &query, nullptr),
              SQLITE_OK);
    EXPECT_EQ(sqlite3_step(query), SQLITE_ROW) << counted;
    rows += sqlite3_column_int64(query, 0);
    sqlite3_finalize(query);
  }
  sqlite3_close(database);
  return rows;
}

inline void expect_nothing_of(PageStore& store, ProjectId project) {
  EXPECT_THAT(known_ids(store, project), testing::IsEmpty());
  EXPECT_THAT(all_pages(store, project), testing::IsEmpty());
  EXPECT_THAT(all_results(store, project), testing::IsEmpty());
  EXPECT_THAT(feed_of(store, project), testing::IsEmpty());
  EXPECT_EQ(*store.count_results(project), 0u);
  EXPECT_TRUE(store.rounds(project, 10)->empty());
  EXPECT_TRUE(store.sinks(project)->empty());
  EXPECT_TRUE(store.versions(project, 10)->empty());
  EXPECT_EQ(*store.version(project, 1), std::nullopt);
  EXPECT_EQ(*store.find_page(project, "http://h/1"), std::nullopt);
  const PageId id = page_at(1, project);
  EXPECT_TRUE(store.pages({&id, 1})->empty());
  EXPECT_EQ(std::ranges::count(*store.projects(), project, &ProjectRecord::id), 0);
}

}  // namespace argiope
