// Threads whose log lines nobody is to see: what a simulation logs is of times that are not now.
#pragma once

namespace argiope {

// Has the program's log leave out what such threads say. Once, before there are others.
void let_threads_be_muted();

// While it lives, the thread it was made on.
class MutedThread {
 public:
  MutedThread() noexcept;
  ~MutedThread();
  MutedThread(const MutedThread&) = delete;
};

}  // namespace argiope
