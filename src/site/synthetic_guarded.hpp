// The pages of a synthetic web that are shown to who sends a cookie back, has logged in, or says a name and password.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "site/internal/synthetic_web.hpp"
#include "site/synthetic_layout.hpp"

namespace argiope {

// Threads: any.
class SyntheticGuarded {
 public:
  // Fills in the answer; false when there is no such place.
  bool answer(const SyntheticLayout& layout, const SyntheticRequest& request, SyntheticReply& reply);

 private:
  bool cookies(const SyntheticRequest& request, SyntheticReply& reply) const;
  bool members(const SyntheticLayout& layout, const SyntheticRequest& request, SyntheticReply& reply) const;
  bool digest(const SyntheticRequest& request, std::uint32_t number, SyntheticReply& reply);

  // Of a host's digest: which of its nonces is valid, and how often it was used.
  struct Nonce {
    std::uint32_t number = 1;
    std::uint64_t count = 0;
  };
  std::mutex mutex_;
  std::map<std::uint32_t, Nonce> nonces_;
};

}  // namespace argiope
