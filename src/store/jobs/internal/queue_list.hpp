// QueueList: the queues of a store by number and by name, as its driver has them in memory.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/jobs/detail/requests.hpp"

namespace argiope {

// One that is erased leaves its number behind, with no name; made again, it gets it back.
// Threads: one at a time.
class QueueList {
 public:
  // By id, from 1; those erased have no name.
  const std::vector<StoredQueue>& all() const noexcept { return all_; }
  // 0: there is none of that name.
  QueueId find(std::string_view name) const { return id_in(ids_, name); }
  // The number of one that has been erased; 0: there was none.
  QueueId find_erased(std::string_view name) const { return id_in(erased_, name); }

  QueueId add(const std::string& name, const QueueConfig& config) {
    QueueId id = find_erased(name);
    if (id == 0) {
      id = static_cast<QueueId>(all_.size() + 1);
      all_.emplace_back();
    } else {
      erased_.erase(name);
      made_again_.push_back(id);
    }
    all_[id - 1] = {id, name, config};
    ids_[name] = id;
    return id;
  }
  void configure(QueueId id, const QueueConfig& config) { all_[id - 1].config = config; }
  void erase(QueueId id) {
    std::string name = std::exchange(all_[id - 1].name, {});
    ids_.erase(name);
    erased_[std::move(name)] = id;
  }
  void clear() { *this = {}; }

  // Queues added from here on can be taken back.
  void mark() {
    marked_ = all_.size();
    made_again_.clear();
  }
  void take_back() {
    for (const QueueId id : std::exchange(made_again_, {})) erase(id);
    for (; all_.size() > marked_; all_.pop_back()) ids_.erase(all_.back().name);
  }

 private:
  using Ids = std::map<std::string, QueueId, std::less<>>;
  static QueueId id_in(const Ids& ids, std::string_view name) {
    const auto found = ids.find(name);
    return found == ids.end() ? 0 : found->second;
  }

  std::vector<StoredQueue> all_;
  Ids ids_;
  Ids erased_;
  std::size_t marked_ = 0;
  std::vector<QueueId> made_again_;
};

}  // namespace argiope
