#include "serve/beanstalkd/beanstalkd_tubes.hpp"

#include <utility>

namespace argiope {

BeanstalkdTube* BeanstalkdTubes::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

BeanstalkdTube& BeanstalkdTubes::find_or_make(std::string_view name) {
  if (BeanstalkdTube* found = find(name)) return *found;
  all_.push_back(std::make_unique<BeanstalkdTube>(BeanstalkdTube{.name = std::string(name), .place = all_.size()}));
  BeanstalkdTube& made = *all_.back();
  by_name_.emplace(made.name, &made);
  return made;
}

void BeanstalkdTubes::drop(const BeanstalkdTube& tube) noexcept {
  const std::size_t place = tube.place;
  by_name_.erase(tube.name);
  std::swap(all_[place], all_.back());
  all_[place]->place = place;
  all_.pop_back();
}

void BeanstalkdTubes::drop_unless(const std::function<bool(const BeanstalkdTube&)>& holds_jobs) {
  for (std::size_t i = 0; i < all_.size();) {
    if (all_[i]->is_referred_to() || holds_jobs(*all_[i])) {
      ++i;
    } else {
      drop(*all_[i]);
    }
  }
}

}  // namespace argiope
