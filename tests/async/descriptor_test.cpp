// Readers and writers on descriptors: asyncio's add_reader and friends, and readable() and writable() for tasks.
#include <poll.h>
#include <stdlib.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/stream.hpp"
#include "argiope/async/sync.hpp"
#include "support/descriptors.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

using detail::UniqueFd;

class DescriptorTest : public InSomeWorld {
 public:
  DescriptorPair pipe = make_pipe();
  int in() const { return pipe.first.get(); }
  int out() const { return pipe.second.get(); }
};
INSTANTIATE_TEST_SUITE_P(RealWorlds, DescriptorTest, kRealWorlds, world_name);

// --- tasks -------------------------------------------------------------------------------------------------------

TEST_P(DescriptorTest, ATaskWaitsUntilThereIsSomethingToRead) {
  this->run([&]() -> Coro<void> {
    auto reader = this->spawn([&]() -> Coro<std::string> {
      co_await readable(this->in());
      co_return take_bytes(this->pipe.first);
    });
    for (int i = 0; i < 3; ++i) co_await sleep(1ms);
    EXPECT_FALSE(reader.done());
    put_bytes(this->pipe.second, "hello");
    EXPECT_EQ(co_await reader, "hello");
  });
}

TEST_P(DescriptorTest, WhatIsReadyAlreadyEndsTheWait) {
  put_bytes(this->pipe.second, "x");
  this->run([&]() -> Coro<void> {
    co_await readable(this->in());
    co_await readable(this->in());  // nobody has read it: it still is
    co_await writable(this->out());
  });
}

TEST_P(DescriptorTest, WritableWaitsUntilThereIsRoom) {
  fill_up(this->pipe.second);
  this->run([&]() -> Coro<void> {
    auto writer = this->spawn([&]() -> Coro<void> { co_await writable(this->out()); });
    for (int i = 0; i < 3; ++i) co_await sleep(1ms);
    EXPECT_FALSE(writer.done());
    while (!writer.done()) {
      take_bytes(this->pipe.first);
      co_await yield_now();
    }
  });
}

TEST_P(DescriptorTest, BothDirectionsOfOneDescriptorAreWaitedForAtOnce) {
  auto [ours, theirs] = make_socket_pair();
  fill_up(ours);
  this->run([&]() -> Coro<void> {
    auto reader = this->spawn([&]() -> Coro<void> { co_await readable(ours.get()); });
    auto writer = this->spawn([&]() -> Coro<void> { co_await writable(ours.get()); });
    co_await sleep(1ms);
    put_bytes(theirs, "x");
    co_await reader;
    EXPECT_FALSE(writer.done());
    while (!writer.done()) {
      take_bytes(theirs);
      co_await yield_now();
    }
  });
}

TEST_P(DescriptorTest, TheEndOfTheInputCountsAsReadable) {
  this->pipe.second.reset();
  this->run([&]() -> Coro<void> { co_await readable(this->in()); });
}

TEST_P(DescriptorTest, AReaderThatHasGoneMakesAFullPipeWritable) {
  fill_up(this->pipe.second);
  this->pipe.first.reset();
  this->run([&]() -> Coro<void> { co_await writable(this->out()); });
}

TEST_P(DescriptorTest, AFileIsAlwaysReady) {
  char name[] = "/tmp/argiope_descriptor_XXXXXX";
  const UniqueFd file(::mkstemp(name));
  ::unlink(name);
  this->run([&]() -> Coro<void> {
    co_await readable(file.get());
    co_await writable(file.get());
  });
}

TEST_P(DescriptorTest, TheDescriptorStaysTheCallersAndAsItWas) {
  put_bytes(this->pipe.second, "x");
  this->run([&]() -> Coro<void> { co_await readable(this->in()); });
  EXPECT_TRUE(is_open(this->in()));
  EXPECT_TRUE(is_blocking(this->pipe.first));
  EXPECT_EQ(take_bytes(this->pipe.first), "x");
}

TEST_P(DescriptorTest, CancellingEndsTheWaitAndLosesNothing) {
  this->run([&]() -> Coro<void> {
    auto reader = this->spawn([&]() -> Coro<void> { co_await readable(this->in()); });
    co_await sleep(1ms);
    reader.cancel("no more");
    std::string caught;
    try {
      co_await reader;
    } catch (const CancelledError& error) {
      caught = error.what();
    }
    EXPECT_EQ(caught, "no more");
    put_bytes(this->pipe.second, "still there");
    co_await readable(this->in());
    EXPECT_EQ(take_bytes(this->pipe.first), "still there");
  });
}

TEST_P(DescriptorTest, ACancellationThatIsPendingIsThrownBeforeTheWaitBegins) {
  this->run([&]() -> Coro<void> {
    Task<void> task;
    task = this->spawn([&]() -> Coro<void> {
      task.cancel();
      co_await readable(this->in());
    });
    while (!task.done()) co_await yield_now();
    EXPECT_TRUE(task.cancelled());
    put_bytes(this->pipe.second, "x");
    co_await readable(this->in());
  });
}

TEST_P(DescriptorTest, ACancellationBetweenBeingReadyAndRunningIsThrown) {
  this->run([&]() -> Coro<void> {
    auto reader = this->spawn([&]() -> Coro<void> { co_await readable(this->in()); });
    co_await let_others_run();
    put_bytes(this->pipe.second, "x");
    this->world.backend.poll();  // from here on it stands in the ready ring
    reader.cancel();
    while (!reader.done()) co_await yield_now();
    EXPECT_TRUE(reader.cancelled());
    EXPECT_EQ(take_bytes(this->pipe.first), "x");
  });
}

TEST_P(DescriptorTest, ATimeoutEndsTheWait) {
  this->run([&]() -> Coro<void> {
    bool timed_out = false;
    try {
      co_await wait_for(keeping([&]() -> Coro<void> { co_await readable(this->in()); }), 1ms);
    } catch (const TimeoutError&) {
      timed_out = true;
    }
    EXPECT_TRUE(timed_out);
  });
}

TEST_P(DescriptorTest, OneTaskAtATimeWaits) {
  this->run([&]() -> Coro<void> {
    auto first = this->spawn([&]() -> Coro<void> { co_await readable(this->in()); });
    co_await let_others_run();
    std::string what;
    try {
      co_await readable(this->in());
    } catch (const std::logic_error& error) {
      what = error.what();
    }
    EXPECT_NE(what.find("a task that waits"), std::string::npos) << what;
    EXPECT_THROW(this->loop.add_reader(this->in(), [] {}), std::logic_error);
    put_bytes(this->pipe.second, "x");
    co_await first;
  });
}

TEST_P(DescriptorTest, WhatIsNotOpenIsAnError) {
  this->run([&]() -> Coro<void> {
    for (const int fd : {-1, 987'654}) {
      std::error_code code;
      try {
        co_await readable(fd);
      } catch (const std::system_error& error) {
        code = error.code();
      }
      EXPECT_EQ(code, std::errc::bad_file_descriptor);
    }
  });
}

TEST_P(DescriptorTest, ALoopMayBeDestroyedWithTasksWaitingAndFunctionsWatching) {
  const auto witness = std::make_shared<int>();
  auto [ours, theirs] = make_socket_pair();
  {
    EventLoop doomed(this->world.backend);
    static_cast<void>(doomed.create_task(keeping([&, witness]() -> Coro<void> { co_await readable(this->in()); })));
    doomed.add_reader(ours.get(), [witness] {});
    doomed.add_writer(ours.get(), [witness] {});
    doomed.run_once(TimePoint::min());
    doomed.run_once(TimePoint::min());
  }
  EXPECT_EQ(witness.use_count(), 1);
  put_bytes(this->pipe.second, "x");
  this->run([&]() -> Coro<void> { co_await readable(this->in()); });
}

// --- functions ---------------------------------------------------------------------------------------------------

TEST_P(DescriptorTest, AReaderIsCalledForAsLongAsThereIsSomethingToRead) {
  int calls = 0;
  this->run([&]() -> Coro<void> {
    Event enough;
    this->loop.add_reader(this->in(), [&] {
      if (++calls == 3) {
        EXPECT_EQ(take_bytes(this->pipe.first), "x");
        enough.set();
      }
    });
    co_await sleep(1ms);
    EXPECT_EQ(calls, 0);
    put_bytes(this->pipe.second, "x");
    co_await enough.wait();
    co_await sleep(1ms);
    EXPECT_EQ(calls, 3);
    EXPECT_TRUE(this->loop.remove_reader(this->in()));
  });
}

TEST_P(DescriptorTest, AWriterIsCalledForAsLongAsThereIsRoom) {
  this->run([&]() -> Coro<void> {
    int calls = 0;
    Event enough;
    this->loop.add_writer(this->out(), [&] {
      if (++calls == 3) enough.set();
    });
    co_await enough.wait();
    fill_up(this->pipe.second);
    co_await sleep(1ms);
    const int calls_when_full = calls;
    co_await sleep(1ms);
    EXPECT_EQ(calls, calls_when_full);
    EXPECT_TRUE(this->loop.remove_writer(this->out()));
  });
}

TEST_P(DescriptorTest, RemovingStopsTheCallsAndFreesTheFunction) {
  const auto witness = std::make_shared<int>();
  put_bytes(this->pipe.second, "x");
  this->loop.add_reader(this->in(), [witness] { ADD_FAILURE() << "was removed before the loop ran"; });
  EXPECT_TRUE(this->loop.remove_reader(this->in()));
  EXPECT_EQ(witness.use_count(), 1);
  EXPECT_FALSE(this->loop.remove_reader(this->in()));
  EXPECT_FALSE(this->loop.remove_writer(this->in()));
  EXPECT_FALSE(this->loop.remove_reader(-1));
  this->settle();
  EXPECT_TRUE(is_blocking(this->pipe.first));
}

TEST_P(DescriptorTest, AFunctionFoundReadyButRemovedBeforeItsTurnDoesNotRun) {
  auto [ours, theirs] = make_socket_pair();
  put_bytes(theirs, "x");
  put_bytes(this->pipe.second, "x");
  int calls = 0;
  const auto remove_both = [&] {
    ++calls;
    this->loop.remove_reader(this->in());
    this->loop.remove_reader(ours.get());
  };
  this->loop.add_reader(this->in(), remove_both);
  this->loop.add_reader(ours.get(), remove_both);
  this->settle();
  EXPECT_EQ(calls, 1);
}

TEST_P(DescriptorTest, AFunctionMayRemoveItself) {
  put_bytes(this->pipe.second, "x");
  const auto witness = std::make_shared<int>();
  int calls = 0;
  this->loop.add_reader(this->in(), [&calls, witness, this] {
    ++calls;
    EXPECT_TRUE(this->loop.remove_reader(this->in()));
    EXPECT_GT(witness.use_count(), 1) << "what runs is alive";
  });
  this->settle();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(witness.use_count(), 1);
}

TEST_P(DescriptorTest, ALaterFunctionReplacesAnEarlierOneEvenFromInside) {
  put_bytes(this->pipe.second, "x");
  std::vector<int> calls;
  this->loop.add_reader(this->in(), [&] { calls.push_back(0); });
  this->loop.add_reader(this->in(), [&] {
    calls.push_back(1);
    this->loop.add_reader(this->in(), [&] {
      calls.push_back(2);
      this->loop.remove_reader(this->in());
    });
  });
  this->settle();
  EXPECT_EQ(calls, (std::vector{1, 2}));
}

TEST_P(DescriptorTest, ReaderAndWriterOfOneDescriptorAreApart) {
  auto [ours, theirs] = make_socket_pair();
  int reads = 0;
  int writes = 0;
  this->loop.add_reader(ours.get(), [&] { ++reads; });
  this->loop.add_writer(ours.get(), [&] { ++writes; });
  this->settle();
  EXPECT_EQ(reads, 0);
  EXPECT_GT(writes, 1);
  EXPECT_TRUE(this->loop.remove_writer(ours.get()));
  const int writes_before = writes;
  put_bytes(theirs, "x");
  this->settle();
  EXPECT_GT(reads, 1);
  EXPECT_EQ(writes, writes_before);
}

TEST_P(DescriptorTest, AnExceptionGoesToTheHandlerAndTheFunctionStays) {
  Reports reports(this->loop);
  put_bytes(this->pipe.second, "x");
  int calls = 0;
  this->loop.add_reader(this->in(), [&] {
    if (++calls == 2) this->loop.remove_reader(this->in());
    throw std::runtime_error("no luck");
  });
  this->settle();
  EXPECT_EQ(calls, 2);
  ASSERT_EQ(reports.lines().size(), 2u);
  EXPECT_NE(reports.lines()[0].find("no luck"), std::string::npos);
}

TEST_P(DescriptorTest, ATaskCannotWaitWhereAFunctionDoesButMayForTheOtherDirection) {
  auto [ours, theirs] = make_socket_pair();
  this->loop.add_reader(ours.get(), [] {});
  this->run([&]() -> Coro<void> {
    bool refused = false;
    try {
      co_await readable(ours.get());
    } catch (const std::logic_error&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
    co_await writable(ours.get());
  });
  EXPECT_TRUE(this->loop.remove_reader(ours.get())) << "the task's end has left it in place";
}

TEST_P(DescriptorTest, AnotherLoopOnTheSameBackendCannotWatchWhatIsWatched) {
  EventLoop other(this->world.backend);
  this->loop.add_reader(this->in(), [] {});
  EXPECT_THROW(other.add_reader(this->in(), [] {}), std::system_error);
  EXPECT_FALSE(other.remove_reader(this->in()));
  this->loop.remove_reader(this->in());
  other.add_reader(this->in(), [] {});
}

TEST_P(DescriptorTest, AReaderNeedsAFunctionAndAnOpenDescriptor) {
  EXPECT_THROW(this->loop.add_reader(this->in(), nullptr), std::invalid_argument);
  EXPECT_THROW(this->loop.add_writer(-1, [] {}), std::system_error);
  EXPECT_FALSE(this->loop.remove_writer(-1));
}

TEST_P(DescriptorTest, ManyDescriptorsAreToldApart) {
  constexpr int kPipes = 100;
  std::vector<DescriptorPair> pipes;
  std::vector<int> seen;
  Event all;
  for (int i = 0; i < kPipes; ++i) {
    pipes.push_back(make_pipe());
    this->loop.add_reader(pipes.back().first.get(), [&, i] {
      seen.push_back(std::stoi(take_bytes(pipes[static_cast<std::size_t>(i)].first)));
      if (seen.size() == kPipes) all.set();
    });
  }
  for (int i = kPipes - 1; i >= 0; --i) put_bytes(pipes[static_cast<std::size_t>(i)].second, std::to_string(i));
  this->run([&]() -> Coro<void> { co_await all.wait(); });
  std::ranges::sort(seen);
  for (int i = 0; i < kPipes; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

// --- backends ----------------------------------------------------------------------------------------------------

TEST_F(OnVirtualLoop, VirtualTimeRefusesDescriptorsAndSaysWhatToDo) {
  const DescriptorPair pipe = make_pipe();
  const auto expect_advice = [](const std::logic_error& error) {
    EXPECT_NE(std::string(error.what()).find("AsioBackend"), std::string::npos) << error.what();
  };
  try {
    loop_.add_reader(pipe.first.get(), [] {});
    ADD_FAILURE();
  } catch (const std::logic_error& error) {
    expect_advice(error);
  }
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    try {
      co_await writable(pipe.second.get());
      ADD_FAILURE();
    } catch (const std::logic_error& error) {
      expect_advice(error);
    }
  }));
}

class WakeUpDescriptorTest : public LoopTest<RealTime> {
 public:
  bool woken() {
    pollfd entry{world.backend.wake_up_descriptor(), POLLIN, 0};
    return ::poll(&entry, 1, 0) == 1;
  }
};

TEST_F(WakeUpDescriptorTest, ItIsQuietWhileThereIsNothingToDo) {
  settle();
  EXPECT_FALSE(woken());
  EXPECT_FALSE(woken());
}

TEST_F(WakeUpDescriptorTest, AnotherThreadMakesItReadableUntilTheLoopHasRun) {
  settle();
  bool ran = false;
  loop.call_soon_threadsafe([&] { ran = true; });
  EXPECT_TRUE(woken());
  EXPECT_TRUE(woken());
  settle();
  EXPECT_TRUE(ran);
  EXPECT_FALSE(woken());
}

TEST_F(WakeUpDescriptorTest, ADescriptorThatIsWaitedForMakesItReadable) {
  const DescriptorPair pipe = make_pipe();
  loop.add_reader(pipe.first.get(), [&] { take_bytes(pipe.first); });
  settle();
  EXPECT_FALSE(woken());
  put_bytes(pipe.second, "x");
  EXPECT_TRUE(woken());
  settle();
  EXPECT_FALSE(woken());
}

// What an operation completed at once is told by no descriptor, so the turn that began it must leave it ready.
TEST_F(WakeUpDescriptorTest, WhatEndsAtOnceIsInTheNextDeadline) {
  bool ended = false;
  auto task = spawn([&]() -> Coro<void> {
    co_await asio_op<>(
        [&](auto handler) { boost::asio::post(world.backend.context(), [h = std::move(handler)] { h({}); }); }, [] {});
    ended = true;
  });
  while (loop.next_deadline() != kNever) loop.run_once(TimePoint::min());
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace argiope
