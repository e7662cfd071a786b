// SecretMask: keeps what a script was given in confidence out of all that is shown of it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "project/process/internal/processor.hpp"

namespace argiope {

// "***" in the place of each secret, of each of its lines, and of both as URLs and JSON have them.
//
// Threads: the loop's own.
class SecretMask {
 public:
  static constexpr std::size_t kLeastBytes = 8;  // what is shorter could be anything, and is left

  // Those before it stay: what was read may be shown long after.
  void add(std::string_view secret);
  bool is_empty() const noexcept { return terms_.empty(); }

  std::string masked(std::string text) const;
  // The same of text that may be a piece of a longer one: what is left of a secret at its beginning, its end or before
  // its last "…" goes as well, from kLeastBytes on.
  std::string masked_piece(std::string text) const;
  // The same in the texts of a JSON document, which stays one; numbers are left as they are.
  std::string masked_json(std::string json) const;

 private:
  void add_term(std::string term);

  std::vector<std::string> terms_;  // the longest first
};

// A processor whose logs, failures and results have none of them, and neither has what its watch is told. Its pages,
// messages and `save` are for the script itself, and stay as they are.
std::unique_ptr<Processor> masked_processor(std::unique_ptr<Processor> processor,
                                            std::shared_ptr<const SecretMask> mask);
ProcessorWatch masked_watch(ProcessorWatch watch, std::shared_ptr<const SecretMask> mask);

}  // namespace argiope
