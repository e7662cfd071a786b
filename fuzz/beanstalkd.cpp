// One connection's bytes as the beanstalkd server reads them: whole, and in pieces, which must give the same commands.
// The first byte says how large the pieces are.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "fuzz/require.hpp"
#include "serve/beanstalkd/beanstalkd_parser.hpp"

namespace {

using namespace argiope;

constexpr std::size_t kMostJobBytes = 300;

void hold_to_its_contract(const BeanstalkdCommand& command) {
  if (command.refusal != BeanstalkdRefusal::none) return;
  require(command.verb != BeanstalkdVerb::unknown && command.counts);
  require(command.body.size() <= kMostJobBytes);
  require(command.tube.empty() || is_tube_name(command.tube));
}

// The commands that were read.
std::string story_of(std::string_view bytes, std::size_t piece) {
  BeanstalkdParser parser(kMostJobBytes);
  std::string story;
  bool is_over = false;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    parser.drop_used();
    require(parser.input().size() <= kMostJobBytes + 2);
    parser.input() += bytes.substr(0, piece);
    while (const BeanstalkdCommand* command = parser.next()) {
      hold_to_its_contract(*command);
      require(!std::exchange(is_over, command->is_foreign));
      story.append(to_string(command->refusal)).append(1, static_cast<char>('A' + static_cast<int>(command->verb)));
      for (const std::uint64_t number : {command->id, std::uint64_t{command->priority}, std::uint64_t{command->delay},
                                         std::uint64_t{command->ttr}, std::uint64_t{command->bound}}) {
        story.append(std::to_string(number)).append(" ");
      }
      story.append(std::to_string(command->timeout)).append(command->counts ? "+" : "-");
      if (command->refusal == BeanstalkdRefusal::none) story.append(command->tube).append("|").append(command->body);
      story.append("\n");
    }
  }
  return story;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  require_same_in_pieces(data, size, story_of);
  return 0;
}
