// PageStoreWriter: the connection that writes pages.db, as one thread sees it: what becomes of a batch in a
// transaction, and the steps in which a project is forgotten.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "project/store/internal/page_store.hpp"
#include "store/sqlite/internal/sqlite_owner.hpp"

namespace argiope {

class PageStoreWriter final : public SqliteOwner {
 public:
  // Opens or creates the file, and keeps other writers from it. Errors: as open_page_store.
  static Result<std::unique_ptr<PageStoreWriter>> open(const std::string& path, const PageStoreOptions& options);

  // A database in memory is read by its writer's connection, when this is held; null: of a file, which others read by
  // their own.
  std::mutex* shared() noexcept { return in_memory_ ? &shared_ : nullptr; }
  using SqliteOwner::database;
  // Whether the owner before has left a project that is being forgotten.
  bool has_to_forget() const noexcept { return has_to_forget_; }
  // The largest id of a project that was ever committed.
  ProjectId last_project() const noexcept { return static_cast<ProjectId>(committed_.project); }

  void begin(bool to_write) override;
  void commit() override;
  void roll_back() noexcept override;

  // In a transaction. Whether something was put into the feed.
  bool write(const PageBatch& batch);
  // In a transaction: removes some rows of projects that are being forgotten. Whether there are more.
  bool forget_some();

 private:
  PageStoreWriter(const std::string& path, const PageStoreOptions& options);
  Result<void> prepare_all();
  Result<void> begin_anew();

  void add(const PageRecord& page);
  void change(const PageChange& change);
  void change_texts(const PageChange& change);
  void replace_results(const ResultsReplaced& visit, WallTime at);
  void store_result(const ResultChange& change, WallTime at);
  void tell(PageId page, std::string_view part, ResultNews news, std::string_view value, WallTime at);
  void remove_result(PageId page, std::string_view part);
  void prune(const FeedPrune& prune);
  void put_project(const ProjectRecord& project);
  void put_rounds();
  void set_mark(std::string_view name, std::int64_t number);
  std::int64_t rule_id(ProjectId project, std::string_view name);
  // Steps and ends the statement's run with `each` row. Throws DatabaseFailed.
  template <class Each>
  void for_rows(SqliteStatement& statement, const Each& each);

  const bool in_memory_;
  bool has_to_forget_ = false;
  std::mutex shared_;
  std::unique_lock<std::mutex> in_use_;  // in a transaction of a database in memory

  // The last numbers of the database: of the last commit, and now.
  struct Numbers {
    std::int64_t feed = 0;  // the last one given out
    std::int64_t project = 0;
  };
  Numbers committed_, numbers_;
  std::map<ProjectId, std::int64_t> more_results_;  // in this transaction
  // Each visit changes its round: only what it is at the end of the transaction is written.
  std::map<std::pair<ProjectId, std::int64_t>, RoundRecord> rounds_;
  // By project and name. Emptied when it is large, since a script may name as many as it likes.
  std::unordered_map<std::string, std::int64_t> rule_ids_;
  std::string own_, key_;  // kept for their room

  SqliteStatement put_project_, put_version_, put_host_, add_page_, change_page_, end_visit_, change_texts_;
  SqliteStatement find_rule_, add_rule_, find_result_, list_parts_, add_result_, change_result_, remove_result_;
  SqliteStatement tell_, put_round_, put_sink_, drop_sinks_, set_mark_, count_results_;
  SqliteStatement oldest_news_, prune_news_, begin_to_forget_, find_forgotten_;
  std::vector<std::pair<SqliteStatement, std::int64_t>> forget_;  // in this order; so many rows in a step, 0: all
};

}  // namespace argiope
