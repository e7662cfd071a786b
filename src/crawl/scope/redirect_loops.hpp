// Which redirects end nowhere: those that lead into a circle. Found once all of them are known, because no single
// answer shows it: each URL of the circle may have been met on its own.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace argiope {

// Memory: some 50 bytes a redirect. Cost: linear. Threads: one at a time.
class RedirectLoops {
 public:
  // The URL of that id redirects to `target`.
  void add(std::int64_t url_id, std::string_view url, std::string_view target);
  // The ids of those that are part of a circle, or lead into one; ascending.
  std::vector<std::int64_t> find();

 private:
  enum class Verdict : std::uint8_t { unknown, on_the_way, ends, loops };
  struct Redirect {
    std::int64_t url_id = 0;
    std::uint64_t target = 0;
    Verdict verdict = Verdict::unknown;
  };
  Verdict follow(std::uint64_t from);

  std::unordered_map<std::uint64_t, Redirect> redirects_;  // by the URL's fingerprint
};

}  // namespace argiope
