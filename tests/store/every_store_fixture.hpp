// What the tests share that hold every Store to its promises: a store of each kind, without waiting for the disk.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>

#include "argiope/store/store.hpp"
#include "store/directory_driver.hpp"
#include "store/reference_store.hpp"
#include "support/loop_fixture.hpp"
#include "support/postgres_server.hpp"
#include "support/redis_server.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {

// The parameter is the kind: one of kEveryStore.
class EveryStoreTest : public OnVirtualLoop, public testing::WithParamInterface<const char*> {
 protected:
  static constexpr WallTime kNow{1'800'000'000s};

  EveryStoreTest() {
    const std::string kind = GetParam();
    if (kind == "reference") {
      store_ = std::make_unique<ReferenceStore>();
      return;
    }
    if (kind == "directory") {
      store_ = open_directory(folder_.file("jobs"));
      return;
    }
    PostgresServer* const server = kind == "postgresql" ? PostgresServer::shared() : nullptr;
    RedisServer* const redis = kind == "redis" ? RedisServer::shared() : nullptr;
    if ((kind == "postgresql" && server == nullptr) || (kind == "redis" && redis == nullptr)) return;
    auto opened = open_store(kind == "memory"       ? "memory:"
                             : kind == "postgresql" ? server->new_store()
                             : kind == "redis"      ? redis->new_store()
                                                    : "sqlite:" + folder_.file("jobs.db"),
                             {.sync = SyncMode::off});
    if (!opened) throw std::runtime_error(opened.error().message);
    store_ = std::move(*opened);
  }
  ~EveryStoreTest() override {
    if (store_ != nullptr) EXPECT_TRUE(store_->close());
  }
  void SetUp() override {
    if (store_ == nullptr)
      GTEST_SKIP() << "the server of this store is not there: apt-get install postgresql redis-server";
  }

  template <class T>
  Result<T> tried(Coro<Result<T>> call) {
    return loop_.run_until_complete(std::move(call));
  }
  template <class T>
  T must(Coro<Result<T>> call) {
    auto result = tried(std::move(call));
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    if constexpr (!std::is_void_v<T>) return result ? std::move(*result) : T{};
  }
  template <class T>
  Errc error_of(Coro<Result<T>> call) {
    const auto result = tried(std::move(call));
    EXPECT_FALSE(result);
    return result ? Errc::internal : result.error().code;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
  std::uint64_t token_ = 0;  // of the last lease
};

inline const auto kEveryStore = testing::Values("memory", "sqlite", "reference", "directory", "postgresql", "redis");
inline std::string name_of_store(const testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace argiope
