// The reads of PageStore::scan_known(): stretches of the narrow columns, by scan_stretches().
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "project/store/page_store_rows.hpp"

namespace argiope {

struct KnownStretch {
  std::vector<page_rows::NarrowRow> rows;
  std::int64_t next = 0;  // as scan_stretches() wants it

  bool is_empty() const noexcept { return rows.empty(); }
};

// One connection that reads them.
class KnownStretchReader {
 public:
  // Of a file, on a connection of its own, with SQLITE_OPEN_… in `flags`; of one project.
  static Result<std::unique_ptr<KnownStretchReader>> open(const std::string& path, int flags, ProjectId project);
  // By a connection that others use, too, while `in_use` is held.
  static Result<std::unique_ptr<KnownStretchReader>> beside(SqliteDatabase& database, std::mutex& in_use,
                                                            ProjectId project);

  Result<void> read(std::uint64_t first, std::uint64_t last, KnownStretch& stretch);

 private:
  explicit KnownStretchReader(ProjectId project) : project_(project) {}
  Result<void> prepare();

  const ProjectId project_;
  SqliteDatabase own_database_;
  SqliteDatabase* database_ = &own_database_;
  std::mutex* in_use_ = nullptr;
  SqliteStatement stretch_, behind_;
};

}  // namespace argiope
