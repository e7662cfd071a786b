// A doubly linked list whose links live in the items: waiting costs no allocation, and whoever
// stops waiting unlinks itself in O(1) without knowing which list it is in.
#pragma once

#include <cassert>
#include <cstddef>

namespace argiope {

// The base of an item. An item is in at most one list, and leaves it when destroyed.
struct ListHook {
  ListHook() = default;
  // Moves what is in no list, as an awaitable is before it is awaited.
  ListHook([[maybe_unused]] ListHook&& other) noexcept { assert(!other.linked()); }
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;
  ~ListHook() { unlink(); }

  bool linked() const noexcept { return next != this; }
  void unlink() noexcept {
    prev->next = next;
    next->prev = prev;
    prev = next = this;
  }

  ListHook* prev = this;
  ListHook* next = this;
};

// First in, first out. Does not own its items; one that is destroyed with items in it lets them go unlinked.
// T derives from ListHook.
template <class T>
class IntrusiveList {
 public:
  IntrusiveList() = default;
  ~IntrusiveList() {
    while (!empty()) root_.next->unlink();
  }

  bool empty() const noexcept { return !root_.linked(); }
  T& front() noexcept { return static_cast<T&>(*root_.next); }
  T& back() noexcept { return static_cast<T&>(*root_.prev); }

  void push_back(T& item) noexcept {
    ListHook& hook = item;
    hook.prev = root_.prev;
    hook.next = &root_;
    root_.prev->next = &hook;
    root_.prev = &hook;
  }
  T& pop_front() noexcept {
    T& item = front();
    static_cast<ListHook&>(item).unlink();
    return item;
  }
  // Moves every item of `other` behind this list's own.
  void splice_back(IntrusiveList& other) noexcept {
    if (other.empty()) return;
    ListHook* first = other.root_.next;
    ListHook* last = other.root_.prev;
    other.root_.next = other.root_.prev = &other.root_;
    first->prev = root_.prev;
    root_.prev->next = first;
    last->next = &root_;
    root_.prev = last;
  }

  // Visits in order; `visit` must not unlink other items than the one it is given.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (ListHook* hook = root_.next; hook != &root_;) {
      ListHook* after = hook->next;
      visit(static_cast<T&>(*hook));
      hook = after;
    }
  }

 private:
  ListHook root_;
};

// The same in 8 bytes instead of 16, for lists that are many and mostly empty. Its items must not unlink themselves,
// nor be destroyed in it: remove() takes them out. The only item of a ring says that it is not linked.
template <class T>
class IntrusiveRing {
 public:
  bool empty() const noexcept { return first_ == nullptr; }

  // `item` is in no list.
  void push_back(T& item) noexcept {
    ListHook& hook = item;
    if (first_ == nullptr) {
      first_ = &hook;
      return;
    }
    hook.prev = first_->prev;
    hook.next = first_;
    first_->prev->next = &hook;
    first_->prev = &hook;
  }
  T& pop_front() noexcept {
    T& item = static_cast<T&>(*first_);
    remove(item);
    return item;
  }
  // Does nothing to an item that is in no list.
  void remove(T& item) noexcept {
    ListHook& hook = item;
    if (first_ == &hook) first_ = hook.next == &hook ? nullptr : hook.next;
    hook.unlink();
  }

 private:
  ListHook* first_ = nullptr;
};

}  // namespace argiope
