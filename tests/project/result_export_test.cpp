// Results of a project as JSON Lines, CSV and JSON.
#include "project/results/internal/result_export.hpp"

#include <gmock/gmock.h>
#include <malloc.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/internal/json_reader.hpp"
#include "project/page_store_fixture.hpp"

namespace argiope {
namespace {

using testing::HasSubstr;

constexpr WallTime kExportTime = std::chrono::sys_days{std::chrono::year{2026} / 11 / 23};

// Rows by their numbers, as a store gives them.
class RowsOnly {
 public:
  using MakeRow = std::function<ResultRow(std::size_t place)>;
  RowsOnly(std::size_t count, MakeRow make) : count_(count), make_(std::move(make)) {}

  std::size_t scans = 0;
  std::optional<Error> trouble;

  operator ScanResults() {
    return [this](const auto& after, const auto& visit) { return scan(after, visit); };
  }

 private:
  Result<void> scan(const std::optional<PageStore::ResultPlace>& after,
                    const std::function<bool(const ResultRow&)>& visit) {
    ++scans;
    if (trouble && scans > 1) return std::unexpected(*trouble);
    for (std::size_t i = after ? number_of(after->page) : 0; i < count_; ++i) {
      ResultRow row = make_(i);
      row.project = 7;
      row.page = first_page_id(7) + static_cast<PageId>(i);
      row.added_at = row.changed_at = kExportTime;
      if (!visit(row)) break;
    }
    return {};
  }

  std::size_t count_;
  MakeRow make_;
};

RowsOnly rows_of(std::vector<ResultRow> rows) {
  return RowsOnly(rows.size(), [rows](std::size_t place) { return rows[place]; });
}
ResultRow item_row(std::string value, std::string part = "") {
  return {
      .page_name = "http://a.test/1", .url = "", .rule = "item", .part = std::move(part), .value = std::move(value)};
}

std::string exported(const ScanResults& scan, const ResultExportOptions& options,
                     ResultExportReport* report = nullptr) {
  std::string all;
  const auto done = export_results(scan, options, [&](std::string_view bytes) {
    all += bytes;
    return true;
  });
  EXPECT_TRUE(done) << done.error().message;
  if (report != nullptr && done) *report = *done;
  return all;
}

TEST(ResultExportTest, AsJsonLinesHasEachResultWithItsPage) {
  RowsOnly store =
      rows_of({item_row(R"({"title":"A"})"),
               {.page_name = "n\"1", .url = "http://a.test/2", .rule = "list", .part = "0", .value = "[1,2]"}});
  ResultExportReport report;
  EXPECT_EQ(
      exported(store, {}, &report),
      R"({"page":"http://a.test/1","url":"http://a.test/1","rule":"item","part":"","added_at":"2026-11-23T00:00:00Z","changed_at":"2026-11-23T00:00:00Z","value":{"title":"A"}})"
      "\n"
      R"({"page":"n\"1","url":"http://a.test/2","rule":"list","part":"0","added_at":"2026-11-23T00:00:00Z","changed_at":"2026-11-23T00:00:00Z","value":[1,2]})"
      "\n");
  EXPECT_EQ(report.results, 2u);
}

TEST(ResultExportTest, AsJsonIsOneArray) {
  RowsOnly some = rows_of({item_row("1"), item_row("null")});
  const std::string text = exported(some, {.format = ExportFormat::json});
  const auto json = JsonText::parse(text);
  ASSERT_TRUE(json) << text;
  JsonErrors errors;
  EXPECT_EQ(json->root(errors).size(), 2u);
  RowsOnly none = rows_of({});
  EXPECT_EQ(exported(none, {.format = ExportFormat::json}), "[]\n");
  EXPECT_EQ(exported(none, {}), "");
  EXPECT_EQ(exported(none, {.format = ExportFormat::csv, .columns = {"a"}}), "url,part,a\r\n");
}

TEST(ResultExportTest, AsCsvHasTheColumnsOfTheRulesAndThenWhatElseThereIs) {
  RowsOnly store = rows_of({item_row(R"({"title":"A","sku":7,"tags":["x","y"]})"),
                            item_row(R"({"price":3.5,"new":true,"title":null})", "b")});
  EXPECT_EQ(exported(store, {.format = ExportFormat::csv, .columns = {"price", "title"}}),
            "url,part,price,title,sku,tags,new\r\n"
            "http://a.test/1,,,A,7,\"[\"\"x\"\",\"\"y\"\"]\",\r\n"
            "http://a.test/1,b,3.5,,,,true\r\n");
}

TEST(ResultExportTest, AsCsvKeepsApartWhatHasTheNamesOfItsOwnColumns) {
  RowsOnly store = rows_of(
      {item_row(R"({"url":"x","part":1})", "p"), item_row("\"text\""), item_row("[1]"), item_row(R"({"value":2})")});
  EXPECT_EQ(exported(store, {.format = ExportFormat::csv}),
            "url,part,value.url,value.part,value\r\n"
            "http://a.test/1,p,x,1,\r\nhttp://a.test/1,,,,text\r\nhttp://a.test/1,,,,[1]\r\nhttp://a.test/1,,,,2\r\n");
}

TEST(ResultExportTest, AsCsvHasNoFormulas) {
  RowsOnly store = rows_of({item_row(
      R"json({"a":"=1+1","b":"+49 1","c":"-5","d":"@x","e":"\tx","f":-5,"g":"=HYPERLINK(\"http://x\",\"y\")","=h":1})json",
      "=p")});
  EXPECT_EQ(exported(store, {.format = ExportFormat::csv}),
            "url,part,a,b,c,d,e,f,g,'=h\r\n"
            "http://a.test/1,'=p,'=1+1,'+49 1,'-5,'@x,'\tx,-5,\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\",1\r\n");
}

TEST(ResultExportTest, CountsWhatHasNoColumn) {
  RowsOnly store(3, [](std::size_t place) {
    std::string value = "{\"a\":1";
    for (std::size_t i = 0; i < 1'000; ++i) value += ",\"m" + std::to_string(place * 1'000 + i) + "\":1";
    return item_row(value + ",\"" + std::string(2'000, 'x') + "\":1}");
  });
  ResultExportReport report;
  const std::string csv = exported(store, {.format = ExportFormat::csv}, &report);
  EXPECT_EQ(report.left_out, 1'004u)
      << "one of the second, a thousand of the third but for its first, and three long names";
  const std::string first = csv.substr(0, csv.find("\r\n"));
  EXPECT_EQ(std::ranges::count(first, ','), 2'001);
  RowsOnly broken = rows_of({item_row("{\"a\":"), item_row(R"({"a":1})")});
  EXPECT_EQ(exported(broken, {.format = ExportFormat::csv}, &report),
            "url,part,a\r\nhttp://a.test/1,,\r\nhttp://a.test/1,,1\r\n");
  EXPECT_EQ(report.left_out, 1u);
}

TEST(ResultExportTest, TakesOnlyTheRulesThatAreAskedFor) {
  RowsOnly store(5'000, [](std::size_t place) {
    ResultRow row = item_row("{\"n\":" + std::to_string(place) + "}");
    row.rule = place == 4'500 ? "rare" : "item";
    return row;
  });
  EXPECT_EQ(exported(store, {.format = ExportFormat::csv, .rules = {"rare"}}),
            "url,part,n\r\nhttp://a.test/1,,4500\r\n");
}

TEST(ResultExportTest, ComesInSteps) {
  RowsOnly store(10'000, [](std::size_t place) { return item_row("{\"n\":" + std::to_string(place) + "}"); });
  ResultExport steps(store, {});
  std::size_t all = 0;
  std::string bytes;
  for (bool more = true; more;) {
    bytes.clear();
    const auto step = steps.step(bytes);
    ASSERT_TRUE(step);
    more = *step;
    all += static_cast<std::size_t>(std::ranges::count(bytes, '\n'));
    EXPECT_LE(bytes.size(), ResultExport::kStepBytes + 1'000);
  }
  EXPECT_EQ(all, 10'000u);
  EXPECT_EQ(steps.results(), 10'000u);
  EXPECT_GT(store.scans, 5u);
}

TEST(ResultExportTest, EndsWhenNobodyTakesMore) {
  RowsOnly store(1'000'000, [](std::size_t) { return item_row("1"); });
  std::size_t taken = 0;
  const auto done = export_results(store, {}, [&](std::string_view) { return ++taken < 2; });
  ASSERT_TRUE(done);
  EXPECT_EQ(taken, 2u);
  EXPECT_LT(done->results, 10'000u);
}

TEST(ResultExportTest, TellsTheStoresTrouble) {
  RowsOnly store(10'000, [](std::size_t) { return item_row("1"); });
  store.trouble = Error{Errc::io, "pages.db: cannot be read"};
  const auto done = export_results(store, {}, [](std::string_view) { return true; });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "pages.db: cannot be read");
}

TEST(ResultExportTest, HoldsNoMoreThanAStepHoweverManyResultsThereAre) {
  RowsOnly store(50'000, [](std::size_t place) {
    return item_row("{\"title\":\"" + std::string(200, 'x') + "\",\"c" + std::to_string(place % 300) +
                    "\":" + std::to_string(place) + "}");
  });
  const auto in_use = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  for (const auto format : {ExportFormat::jsonl, ExportFormat::csv}) {
    const std::size_t before = in_use();
    std::size_t most = 0, bytes = 0;
    const auto done = export_results(store, {.format = format}, [&](std::string_view part) {
      bytes += part.size();
      most = std::max<std::size_t>(most, in_use());
      return true;
    });
    ASSERT_TRUE(done);
    EXPECT_EQ(done->results, 50'000u);
    EXPECT_GT(bytes, 12'000'000u);
    EXPECT_LT(most - std::min(before, most), 8u * 1024 * 1024);
  }
}

TEST(ResultExportTest, IntoAFileIsThereWholeOrNotAtAll) {
  const std::string path = testing::TempDir() + "result_export_" + std::to_string(getpid()) + ".csv";
  RowsOnly store = rows_of({item_row(R"({"a":1})")});
  const auto done = export_results(store, {.format = ExportFormat::csv}, path);
  ASSERT_TRUE(done) << done.error().message;
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "url,part,a\r\nhttp://a.test/1,,1\r\n");
  std::filesystem::remove(path);
  store.trouble = Error{Errc::io, "trouble"};
  EXPECT_FALSE(export_results(store, {.format = ExportFormat::csv}, path));
  EXPECT_FALSE(std::filesystem::exists(path));
  const auto nowhere = export_results(store, {}, "/nowhere/at/all.jsonl");
  ASSERT_FALSE(nowhere);
}

TEST(ResultExportTest, ReadsAStore) {
  const auto store = open_pages(":memory:");
  PageBatch batch{.projects = {some_project(1)}, .hosts = {{1, "http://h"}}};
  for (int page = 1; page <= 3'000; ++page) {
    batch.added.push_back(some_page(page_at(page)));
    batch.results.push_back(result(page_at(page), "b", R"({"n":2})"));
    batch.results.push_back(result(page_at(page), "a", R"({"n":1})"));
  }
  put(*store, std::move(batch));
  const std::string csv = exported(results_of(*store, 1), {.format = ExportFormat::csv});
  EXPECT_EQ(std::ranges::count(csv, '\n'), 6'001);
  EXPECT_TRUE(csv.starts_with("url,part,n\r\nhttp://h/1,a,1\r\nhttp://h/1,b,2\r\nhttp://h/2,a,1\r\n"));
  EXPECT_TRUE(csv.ends_with("http://h/3000,a,1\r\nhttp://h/3000,b,2\r\n"));
}

TEST(ResultExportTest, KnowsItsFormatsByName) {
  for (const auto format : {ExportFormat::jsonl, ExportFormat::csv, ExportFormat::json})
    EXPECT_EQ(export_format_named(to_string(format)), format);
  EXPECT_EQ(export_format_named("xml"), std::nullopt);
  ProjectDefinition project;
  project.rules.resize(2);
  project.rules[0].extraction.fields = {{.name = "b"}, {.name = "a"}};
  project.rules[1].extraction.fields = {{.name = "a"}, {.name = "c"}};
  EXPECT_EQ(columns_of(project), (std::vector<std::string>{"b", "a", "c"}));
}

}  // namespace
}  // namespace argiope
