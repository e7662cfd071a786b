// Runs a test over each kind of event loop.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/virtual_backend.hpp"

namespace argiope {

// A loop over the backend named by the parameter.
class OnEachLoop : public testing::TestWithParam<const char*> {
 protected:
  OnEachLoop() {
    if (std::string_view{GetParam()} == "virtual") {
      backend_ = std::make_unique<VirtualBackend>();
    } else {
      backend_ = std::make_unique<AsioBackend>(clock_);
    }
    loop_ = std::make_unique<EventLoop>(*backend_);
  }

  SystemClock clock_;
  std::unique_ptr<IoBackend> backend_;
  std::unique_ptr<EventLoop> loop_;
};

// Tests over simulated time alone.
class OnVirtualLoop : public testing::Test {
 protected:
  VirtualBackend backend_;
  EventLoop loop_{backend_};
};

}  // namespace argiope
