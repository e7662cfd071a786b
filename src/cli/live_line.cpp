#include "cli/live_line.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <utility>

#include "base/internal/utf8.hpp"

namespace argiope {
LiveLine::LiveLine(std::FILE* out) : out_(out), terminal_(::isatty(::fileno(out)) == 1) {}

Duration LiveLine::interval() const noexcept { return terminal_ ? kLiveInterval : kPlainInterval; }

void LiveLine::clear() {
  if (!std::exchange(shown_, false)) return;
  std::fputs("\r\x1b[2K", out_);
  std::fflush(out_);
}

void LiveLine::show(std::string line) {
  if (!terminal_) return spdlog::info("{}", line);
  // A line longer than the terminal would not be rewritten but scroll.
  winsize size{};
  const bool known = ::ioctl(::fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  fmt::print(out_, "\r\x1b[2K{}", cut_between_characters(line, known ? size.ws_col : 80));
  std::fflush(out_);
  shown_ = true;
}

}  // namespace argiope
