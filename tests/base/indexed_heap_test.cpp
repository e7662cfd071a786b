#include "argiope/base/detail/indexed_heap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

TEST(IndexedHeap, AgreesWithAnOrderedSetUnderRandomChanges) {
  Random random(11);
  IndexedHeap<std::uint64_t> heap;
  std::vector<std::uint32_t> places(500, IndexedHeap<std::uint64_t>::kNowhere);
  std::map<std::uint32_t, std::uint64_t> model;
  auto place = [&](std::uint32_t handle) -> std::uint32_t& { return places[handle]; };
  for (int step = 0; step < 200'000; ++step) {
    const auto handle = static_cast<std::uint32_t>(random.below(places.size()));
    const std::uint64_t rank = random.below(1'000'000) << 10 | handle;  // no ties
    if (!model.contains(handle)) {
      heap.push(rank, handle, place);
      model[handle] = rank;
    } else if (random.chance(0.5)) {
      heap.update(places[handle], rank, place);
      model[handle] = rank;
    } else {
      heap.erase(places[handle], place);
      model.erase(handle);
      ASSERT_EQ(places[handle], IndexedHeap<std::uint64_t>::kNowhere);
    }
    ASSERT_EQ(heap.size(), model.size());
    if (!model.empty()) {
      const auto least = std::ranges::min_element(model, {}, [](const auto& entry) { return entry.second; });
      ASSERT_EQ(heap.top().handle, least->first);
    }
  }
}

}  // namespace
}  // namespace argiope
