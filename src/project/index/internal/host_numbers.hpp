// HostNumbers: which hosts a project has pages at, by the hosts' numbers.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace argiope {

// Numbers are best dense: a host takes a bit, and its block of 1,024 numbers some 170 bytes.
// Threads: one at a time. Cost: O(1); of what comes in blocks less.
class HostNumbers {
 public:
  static constexpr std::uint32_t kBlock = 1024;
  using Block = std::bitset<kBlock>;

  HostNumbers() = default;
  HostNumbers(const HostNumbers&) = delete;
  HostNumbers& operator=(const HostNumbers&) = delete;

  void add(std::uint32_t host) {
    const std::uint32_t number = host / kBlock;
    if (last_ == nullptr || number != last_number_) {
      last_ = &blocks_[number];
      last_number_ = number;
    }
    last_->set(host % kBlock);
  }
  bool has(std::uint32_t host) const noexcept {
    const Block* const block = this->block(host / kBlock);
    return block != nullptr && block->test(host % kBlock);
  }
  // Hosts from number · kBlock on; null: none of them.
  const Block* block(std::uint32_t number) const noexcept {
    const auto found = blocks_.find(number);
    return found == blocks_.end() ? nullptr : &found->second;
  }
  std::size_t memory_bytes() const noexcept {
    return blocks_.size() * (sizeof(Block) + 4 * sizeof(void*)) + blocks_.bucket_count() * sizeof(void*);
  }

 private:
  std::unordered_map<std::uint32_t, Block> blocks_;
  Block* last_ = nullptr;
  std::uint32_t last_number_ = 0;
};

}  // namespace argiope
