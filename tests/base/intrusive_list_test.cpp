#include "argiope/base/detail/intrusive_list.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace argiope {
namespace {

struct Item : ListHook {
  explicit Item(int number) : value(number) {}
  int value;
};

std::vector<int> values(IntrusiveList<Item>& list) {
  std::vector<int> result;
  list.for_each([&](Item& item) { result.push_back(item.value); });
  return result;
}

TEST(IntrusiveList, IsFirstInFirstOut) {
  Item one(1), two(2), three(3);
  IntrusiveList<Item> list;
  EXPECT_TRUE(list.empty());
  for (Item* item : {&one, &two, &three}) list.push_back(*item);
  EXPECT_EQ(list.front().value, 1);
  EXPECT_EQ(list.back().value, 3);
  EXPECT_EQ(list.pop_front().value, 1);
  EXPECT_FALSE(one.linked());
  EXPECT_EQ(values(list), (std::vector{2, 3}));
}

TEST(IntrusiveList, ItemsUnlinkThemselvesWithoutTheList) {
  Item one(1), two(2), three(3);
  IntrusiveList<Item> list;
  for (Item* item : {&one, &two, &three}) list.push_back(*item);
  two.unlink();
  two.unlink();
  EXPECT_EQ(values(list), (std::vector{1, 3}));
  one.unlink();
  three.unlink();
  EXPECT_TRUE(list.empty());
}

TEST(IntrusiveList, AnItemThatIsDestroyedLeaves) {
  IntrusiveList<Item> list;
  Item one(1);
  list.push_back(one);
  auto two = std::make_unique<Item>(2);
  list.push_back(*two);
  two.reset();
  EXPECT_EQ(values(list), (std::vector{1}));
}

TEST(IntrusiveList, AListThatIsDestroyedLetsItsItemsGo) {
  Item one(1), two(2);
  {
    IntrusiveList<Item> list;
    list.push_back(one);
    list.push_back(two);
  }
  EXPECT_FALSE(one.linked());
  EXPECT_FALSE(two.linked());
}

TEST(IntrusiveList, AVisitorMayUnlinkWhatItIsGiven) {
  std::vector<std::unique_ptr<Item>> items;
  IntrusiveList<Item> list;
  for (int i = 0; i < 10; ++i) list.push_back(*items.emplace_back(std::make_unique<Item>(i)));
  list.for_each([](Item& item) {
    if (item.value % 2 == 0) item.unlink();
  });
  EXPECT_EQ(values(list), (std::vector{1, 3, 5, 7, 9}));
}

std::vector<int> take_all(IntrusiveRing<Item>& ring) {
  std::vector<int> taken;
  while (!ring.empty()) taken.push_back(ring.pop_front().value);
  return taken;
}

TEST(IntrusiveRing, GivesItsItemsFirstInFirstOut) {
  IntrusiveRing<Item> ring;
  EXPECT_TRUE(ring.empty());
  Item one(1), two(2), three(3);
  for (Item* item : {&one, &two, &three}) ring.push_back(*item);
  EXPECT_EQ(take_all(ring), (std::vector{1, 2, 3}));
  for (Item* item : {&three, &one}) ring.push_back(*item);
  EXPECT_EQ(take_all(ring), (std::vector{3, 1})) << "items that have left may come again";
}

TEST(IntrusiveRing, AnyItemMayBeTakenOut) {
  Item one(1), two(2), three(3);
  const std::vector<Item*> items{&one, &two, &three};
  for (Item* out : items) {
    IntrusiveRing<Item> ring;
    for (Item* item : items) ring.push_back(*item);
    ring.remove(*out);
    ring.remove(*out);
    std::vector<int> others;
    for (const Item* item : items) {
      if (item != out) others.push_back(item->value);
    }
    EXPECT_EQ(take_all(ring), others);
  }
}

TEST(IntrusiveRing, IsEmptyWhenItsOnlyItemIsTakenOut) {
  IntrusiveRing<Item> ring;
  Item one(1), stranger(2);
  ring.push_back(one);
  ring.remove(stranger);
  EXPECT_FALSE(ring.empty());
  ring.remove(one);
  EXPECT_TRUE(ring.empty());
}

}  // namespace
}  // namespace argiope
