// The tubes of a Beanstalkd as its connections see them: which there are, who uses and watches them, and what
// beanstalkd counts of each. Jobs are the engine's: a tube that nobody refers to is there as long as it holds some.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argiope/base/clock.hpp"

namespace argiope {

struct BeanstalkdTube {
  std::string name;
  std::uint32_t using_it = 0, watching = 0, waiting = 0;  // connections
  // Since it was last made.
  std::uint64_t puts = 0, deletes = 0, pauses = 0;
  Duration pause{};  // of the last pause-tube
  TimePoint unpause_at{};

  bool stays = false;      // whoever refers to it
  bool has_queue = false;  // the engine was seen to have one of its name
  std::size_t place = 0;   // in the list

  bool is_referred_to() const noexcept { return stays || using_it > 0 || watching > 0; }
};

// Listed as beanstalkd does: as they were made, but the last one takes the place of one that goes.
//
// Lifetime: a tube stays where it is while a connection refers to it.
// Threads:  one at a time.
class BeanstalkdTubes {
 public:
  // null: there is none.
  BeanstalkdTube* find(std::string_view name) const;
  BeanstalkdTube& find_or_make(std::string_view name);
  void drop(const BeanstalkdTube& tube) noexcept;
  // Lets those go that nobody refers to and `holds_jobs` is false of.
  void drop_unless(const std::function<bool(const BeanstalkdTube&)>& holds_jobs);

  std::size_t size() const noexcept { return all_.size(); }
  auto begin() const noexcept { return all_.begin(); }
  auto end() const noexcept { return all_.end(); }

 private:
  std::vector<std::unique_ptr<BeanstalkdTube>> all_;
  std::unordered_map<std::string_view, BeanstalkdTube*> by_name_;
};

}  // namespace argiope
