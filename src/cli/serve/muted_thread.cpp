#include "cli/serve/muted_thread.hpp"

#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <utility>

namespace argiope {

namespace {

thread_local bool muted = false;

// A line is written by the thread that logs it.
class SinkOfOthers final : public spdlog::sinks::sink {
 public:
  explicit SinkOfOthers(spdlog::sink_ptr to) : to_(std::move(to)) {}
  void log(const spdlog::details::log_msg& message) override {
    if (!muted) to_->log(message);
  }
  void flush() override { to_->flush(); }
  void set_pattern(const std::string& pattern) override { to_->set_pattern(pattern); }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    to_->set_formatter(std::move(formatter));
  }

 private:
  const spdlog::sink_ptr to_;
};

}  // namespace

void let_threads_be_muted() {
  for (spdlog::sink_ptr& sink : spdlog::default_logger()->sinks()) sink = std::make_shared<SinkOfOthers>(sink);
}

MutedThread::MutedThread() noexcept { muted = true; }
MutedThread::~MutedThread() { muted = false; }

}  // namespace argiope
