#include "project/rules/internal/known_page.hpp"

namespace argiope {

std::string_view to_string(PageState state) noexcept {
  constexpr std::string_view kNames[] = {"waiting", "visiting", "done", "failed", "cancelled"};
  return kNames[static_cast<std::size_t>(state)];
}

std::string_view to_string(PageWait wait) noexcept {
  constexpr std::string_view kNames[] = {"visit", "retry", "recrawl"};
  return kNames[static_cast<std::size_t>(wait)];
}

}  // namespace argiope
