// A double-ended queue in one block of memory: the loop's ready ring and the queues' store of items.
#pragma once

#include <bit>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace argiope {

// Grows by doubling, never shrinks by itself; push and pop at both ends are O(1) (amortised).
//
// Errors:  growing may throw std::bad_alloc, and then nothing has changed.
// Threads: one at a time.
template <class T>
class RingBuffer {
  static_assert(std::is_nothrow_move_constructible_v<T>, "growing must not fail half-way");

 public:
  RingBuffer() = default;
  RingBuffer(RingBuffer&& other) noexcept { swap(other); }
  RingBuffer& operator=(RingBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~RingBuffer() {
    clear();
    release(slots_, capacity_);
  }

  bool empty() const noexcept { return head_ == tail_; }
  std::size_t size() const noexcept { return tail_ - head_; }
  std::size_t capacity() const noexcept { return capacity_; }

  T& front() noexcept { return slots_[head_ & mask()]; }
  T& back() noexcept { return slots_[(tail_ - 1) & mask()]; }
  // The i-th from the front; i < size().
  T& operator[](std::size_t i) noexcept { return slots_[(head_ + i) & mask()]; }

  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size() == capacity_) [[unlikely]]
      grow();
    T* slot = std::construct_at(slots_ + (tail_ & mask()), std::forward<Args>(args)...);
    ++tail_;
    return *slot;
  }
  void push_back(T value) { emplace_back(std::move(value)); }

  template <class... Args>
  T& emplace_front(Args&&... args) {
    if (size() == capacity_) [[unlikely]]
      grow();
    T* slot = std::construct_at(slots_ + ((head_ - 1) & mask()), std::forward<Args>(args)...);
    --head_;
    return *slot;
  }

  T pop_front() noexcept {
    T* slot = slots_ + (head_ & mask());
    T value = std::move(*slot);
    std::destroy_at(slot);
    ++head_;
    return value;
  }
  T pop_back() noexcept {
    --tail_;
    T* slot = slots_ + (tail_ & mask());
    T value = std::move(*slot);
    std::destroy_at(slot);
    return value;
  }

  void clear() noexcept {
    while (!empty()) pop_front();
  }
  // Makes room for `count` items in all.
  void reserve(std::size_t count) {
    while (capacity_ < count) grow();
  }
  void swap(RingBuffer& other) noexcept {
    std::swap(slots_, other.slots_);
    std::swap(capacity_, other.capacity_);
    std::swap(head_, other.head_);
    std::swap(tail_, other.tail_);
  }

 private:
  std::size_t mask() const noexcept { return capacity_ - 1; }

  static void release(T* slots, std::size_t capacity) noexcept {
    if (slots != nullptr) std::allocator<T>{}.deallocate(slots, capacity);
  }

  void grow() {
    const std::size_t bigger = capacity_ == 0 ? 16 : capacity_ * 2;
    T* slots = std::allocator<T>{}.allocate(bigger);
    const std::size_t count = size();
    for (std::size_t i = 0; i < count; ++i) {
      T& old = (*this)[i];
      std::construct_at(slots + i, std::move(old));
      std::destroy_at(&old);
    }
    release(slots_, capacity_);
    slots_ = slots;
    capacity_ = bigger;
    head_ = 0;
    tail_ = count;
  }

  // head_ and tail_ only ever count up or wrap as unsigned numbers; the mask places them.
  T* slots_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
};

}  // namespace argiope
