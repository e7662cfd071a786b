// PageStoreReads: what is read of pages.db, whichever process writes it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "project/store/internal/page_store.hpp"
#include "project/store/page_store_known.hpp"
#include "store/sqlite/internal/sqlite.hpp"

namespace argiope {

// The connection that reads, and what it is asked. Of a database in memory it is the writer's own, under the writer's
// lock.
class PageReader {
 public:
  // Of a file, with SQLITE_OPEN_… in `flags`. A reader that may not write finds the file as it is, or an error.
  static Result<std::unique_ptr<PageReader>> open(const std::string& path, int flags);
  static Result<std::unique_ptr<PageReader>> beside_writer(SqliteDatabase& database, std::mutex& in_use);

  std::unique_lock<std::mutex> lock() { return std::unique_lock(*in_use_); }
  // Another connection that reads the known of a project; of a database in memory the same one.
  Result<std::unique_ptr<KnownStretchReader>> open_known(ProjectId project);
  bool in_memory() const noexcept { return in_use_ != &own_in_use_; }

  // The rest while it is locked.
  SqliteDatabase& database() noexcept { return *database_; }
  // Calls `each(row)` until it returns false.
  template <class Each>
  Result<void> for_rows(SqliteStatement& statement, const Each& each) {
    int code = SQLITE_ROW;
    while ((code = statement.step()) == SQLITE_ROW && each(std::as_const(statement))) {
    }
    return end_of(statement, code);
  }
  // Of a query whose last step gave `code`.
  Result<void> end_of(SqliteStatement& statement, int code);
  // Whether the project is being forgotten, so that there is nothing of it.
  Result<bool> is_forgotten(ProjectId project);
  // Lives as long as this. Names never change, and no id is given out twice.
  std::string_view rule_name(std::int64_t rule_id);

  SqliteStatement projects, versions, version, hosts, last_page, page, scan_pages, find_page, scan_results,
      count_results, feed, feed_back, rounds, sinks, last_project;

 private:
  PageReader() = default;
  Result<void> prepare();

  std::string path_;
  int flags_ = 0;
  std::mutex own_in_use_;
  SqliteDatabase own_database_;
  std::mutex* in_use_ = &own_in_use_;
  SqliteDatabase* database_ = &own_database_;
  SqliteStatement forgotten_, more_rules_;
  std::unordered_map<std::int64_t, std::string> rules_;
  std::int64_t last_rule_ = 0;  // those up to it have been read
};

class PageStoreReads : public PageStore {
 public:
  Result<std::vector<ProjectRecord>> projects() override;
  Result<std::vector<ProjectVersion>> versions(ProjectId project, std::size_t most) override;
  Result<std::optional<ProjectVersion>> version(ProjectId project, std::int64_t number) override;
  Result<std::vector<HostRow>> hosts() override;
  Result<void> scan_known(ProjectId project, const std::function<bool(const KnownRow&)>& visit) override;
  Result<std::vector<PageRecord>> pages(std::span<const PageId> ids) override;
  Result<void> scan_pages(ProjectId project, PageId after,
                          const std::function<bool(const PageRecord&)>& visit) override;
  Result<std::optional<PageRecord>> find_page(ProjectId project, std::string_view name) override;
  Result<void> scan_results(ProjectId project, const std::optional<ResultPlace>& after,
                            const std::function<bool(const ResultRow&)>& visit) override;
  Result<std::uint64_t> count_results(ProjectId project) override;
  Result<std::vector<FeedRow>> read_feed(ProjectId project, std::int64_t after, std::size_t most) override;
  Result<std::vector<FeedRow>> read_feed_back(ProjectId project, std::int64_t before, std::size_t most,
                                              std::size_t most_bytes) override;
  Result<std::vector<RoundRecord>> rounds(ProjectId project, std::size_t most) override;
  Result<std::vector<SinkRow>> sinks(ProjectId project) override;

 protected:
  explicit PageStoreReads(std::unique_ptr<PageReader> reader) : reader_(std::move(reader)) {}
  bool is_open() const noexcept { return reader_ != nullptr; }
  void close_reader() noexcept { reader_.reset(); }
  // As it was committed.
  Result<ProjectId> last_project();

 private:
  template <class Row>
  Result<std::vector<Row>> rows_of(SqliteStatement& statement, void (*read)(const SqliteStatement&, Row&));
  template <class Row>
  Result<std::vector<Row>> rows_of_project(SqliteStatement& statement, ProjectId project, std::size_t most,
                                           void (*read)(const SqliteStatement&, Row&));
  // Shows what `query` gives until `visit` says no, a bounded stretch at a time: none is held locked while it is shown.
  // `bind_behind` binds the query to what is behind the last row of the stretch before (null: at first); `read` says
  // how many bytes a row's texts have.
  template <class Row, class Bind, class Read>
  Result<void> visit_by_stretches(ProjectId project, SqliteStatement& query, const Bind& bind_behind, const Read& read,
                                  const std::function<bool(const Row&)>& visit);
  Result<std::vector<FeedRow>> news_of(SqliteStatement& query, ProjectId project, std::int64_t bound, std::size_t most,
                                       std::size_t most_bytes);
  void read_page_whole(const SqliteStatement& row, PageRecord& page);

  std::unique_ptr<PageReader> reader_;
};

}  // namespace argiope
