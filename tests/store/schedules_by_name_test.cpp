// The table of names against std::map, through growth, replacement and the holes that erasing leaves.
#include "store/jobs/schedules_by_name.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

struct Named {
  std::string text;
  std::string_view name() const { return text; }
};

class SchedulesByNameTest : public ::testing::Test {
 protected:
  Named* found(const std::string& name) const { return table_.find(name, table_.hash(name)); }
  void add(const std::string& name) {
    if (!table_.has_room(1)) {
      auto larger = SchedulesByName<Named>::for_as_many_as(table_.size() + 1);
      for (const auto& [known, named] : known_) larger.insert(named.get(), larger.hash(known));
      table_ = std::move(larger);
    }
    auto& named = known_[name] = std::make_unique<Named>(name);
    table_.insert(named.get(), table_.hash(name));
  }
  void replace(const std::string& name) {
    auto now = std::make_unique<Named>(name);
    table_.replace(known_.at(name).get(), now.get());
    known_.at(name) = std::move(now);
  }
  void erase(const std::string& name) {
    table_.erase(known_.at(name).get());
    known_.erase(name);
  }
  void expect_all() const {
    ASSERT_EQ(table_.size(), known_.size());
    for (const auto& [name, named] : known_) ASSERT_EQ(found(name), named.get()) << name;
  }

  SchedulesByName<Named> table_;
  std::map<std::string, std::unique_ptr<Named>> known_;
};

TEST_F(SchedulesByNameTest, AnEmptyTableHasNothingAndNoRoom) {
  EXPECT_EQ(found("a"), nullptr);
  EXPECT_EQ(table_.size(), 0u);
  EXPECT_FALSE(table_.has_room(1));
  table_.prefetch(table_.hash("a"));
}

TEST_F(SchedulesByNameTest, HasRoomForAsManyAsItIsMadeFor) {
  for (std::size_t count = 1; count < 2000; ++count) {
    ASSERT_TRUE(SchedulesByName<Named>::for_as_many_as(count).has_room(count)) << count;
  }
}

TEST_F(SchedulesByNameTest, AgreesWithAMapWhateverComesAndGoes) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    // Few names, so that the table stays full and its chains run around its end.
    const std::uint64_t names = 1 + random.below(300);
    table_ = {};
    known_.clear();
    for (int step = 0; step < 3000; ++step) {
      const std::string name = std::to_string(random.below(names));
      if (!known_.contains(name)) {
        ASSERT_EQ(found(name), nullptr) << "seed " << seed;
        add(name);
      } else if (random.chance(0.3)) {
        replace(name);
      } else {
        erase(name);
        ASSERT_EQ(found(name), nullptr) << "seed " << seed;
      }
      if (step % 100 == 0) expect_all();
    }
    expect_all();
  }
}

}  // namespace
}  // namespace argiope
