// A system that refuses threads.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace argiope {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ARGIOPE_SANITIZED 1
#endif
#endif

inline constexpr std::size_t kStack = std::size_t{1} << 30;

// Room for `threads` more of them, whose stacks take 1 GiB of addresses each.
class FewThreads {
 public:
  explicit FewThreads(rlim_t threads) {
    pthread_attr_init(&stacks_);
    pthread_getattr_default_np(&stacks_);
    pthread_attr_t large;
    pthread_attr_init(&large);
    pthread_attr_setstacksize(&large, kStack);
    EXPECT_EQ(pthread_setattr_default_np(&large), 0);
    pthread_attr_destroy(&large);
    ::getrlimit(RLIMIT_AS, &addresses_);
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit few{pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + threads * kStack + kStack / 2,
                     addresses_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_AS, &few), 0);
  }
  ~FewThreads() {
    ::setrlimit(RLIMIT_AS, &addresses_);
    pthread_setattr_default_np(&stacks_);
    pthread_attr_destroy(&stacks_);
  }

 private:
  pthread_attr_t stacks_;
  rlimit addresses_{};
};

}  // namespace argiope
