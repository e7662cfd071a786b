#include "project/run/row_desk.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace argiope {
namespace {

constexpr std::size_t kRowsReadAtOnce = 500;
constexpr std::size_t kMostRemembered = 20'000;
constexpr std::size_t kLargestRemembered = 4'000;
constexpr Duration kRememberedAhead = std::chrono::minutes{1};

}  // namespace

void RowDesk::remember(PageRecord record) {
  // Pages that are visited soon, and take little room.
  if (remembered_.size() >= kMostRemembered ||
      record.settings.size() + record.context.size() + record.save.size() > kLargestRemembered ||
      record.known.due > wall() + kRememberedAhead) {
    remembered_.erase(record.id);
    return;
  }
  record.track = {};
  const PageId id = record.id;
  remembered_.insert_or_assign(id, std::move(record));
}

std::optional<PageRecord> RowDesk::take_remembered(PageId id) {
  const auto found = remembered_.find(id);
  if (found == remembered_.end()) return std::nullopt;
  PageRecord record = std::move(found->second);
  remembered_.erase(found);
  return record;
}

void RowDesk::note_change(PageId id) {
  remembered_.erase(id);
  if (read_flush_) changed_since_.insert(id);
}

void RowDesk::forget_project(ProjectId project) {
  std::erase_if(remembered_, [&](const auto& entry) { return project_of(entry.first) == project; });
}

Result<std::optional<std::vector<RowDesk::Row>>> RowDesk::read() {
  if (to_read_.empty()) return std::nullopt;
  if (!read_flush_) {
    changed_since_.clear();
    read_count_ = std::min(to_read_.size(), kRowsReadAtOnce);
    read_flush_ = store_.begin_flush();
  }
  if (!store_.flushed(*read_flush_)) return std::nullopt;
  read_flush_.reset();
  const std::size_t count = std::min(to_read_.size(), read_count_);
  std::vector<Wanted> batch(std::make_move_iterator(to_read_.begin()),
                            std::make_move_iterator(to_read_.begin() + static_cast<std::ptrdiff_t>(count)));
  to_read_.erase(to_read_.begin(), to_read_.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<PageId> ids;
  ids.reserve(batch.size());
  for (const Wanted& one : batch) ids.push_back(one.project->id_of(one.ticket.page));
  auto found = store_.pages(ids);
  if (!found) return std::unexpected(std::move(found.error()));
  std::unordered_map<PageId, PageRecord*> by_id;
  for (PageRecord& row : *found) by_id.emplace(row.id, &row);
  std::vector<Row> rows;
  rows.reserve(batch.size());
  for (Wanted& one : batch) {
    const PageId id = one.project->id_of(one.ticket.page);
    if (!one.project->is_gone && changed_since_.contains(id)) {
      to_read_.push_back(std::move(one));
      continue;
    }
    const auto row = by_id.find(id);
    rows.push_back({std::move(one), row == by_id.end() ? std::nullopt : std::optional(std::move(*row->second))});
  }
  return rows;
}

}  // namespace argiope
