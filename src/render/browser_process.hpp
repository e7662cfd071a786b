// A browser that runs, as the renderer knows it: two streams, and what it said last. Chromium's is in
// chromium_process.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/async/stream.hpp"

namespace argiope {

struct ChromiumOptions;

namespace detail {

// Lifetime: destroying it ends the browser.
class BrowserProcess {
 public:
  virtual ~BrowserProcess() = default;
  virtual Stream& to() = 0;
  virtual Stream& from() = 0;
  // The last lines of its standard error, for people; may be empty.
  virtual std::string last_words() const = 0;
  // Ends it, and waits until it has gone.
  virtual Coro<void> end() = 0;
};

// Errors: throws what create_subprocess_exec does, and std::system_error where there is no room for its folder.
std::unique_ptr<BrowserProcess> start_chromium(const ChromiumOptions& options);
// Its command line, but for the program, with its profile in that folder.
std::vector<std::string> chromium_arguments(const ChromiumOptions& options, const std::string& folder);

}  // namespace detail
}  // namespace argiope
