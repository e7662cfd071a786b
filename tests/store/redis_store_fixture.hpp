// What the tests of a store on Redis share: a store of its own on a server.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "argiope/store/store.hpp"
#include "store/redis/redis_address.hpp"
#include "store/socket_proxy.hpp"
#include "support/loop_fixture.hpp"
#include "support/redis_server.hpp"

namespace argiope {

class RedisStoreTest : public OnVirtualLoop {
 protected:
  static constexpr WallTime kNow{1'800'000'000s};

  void SetUp() override {
    if (!RedisServer::is_installed()) GTEST_SKIP() << RedisServer::kNotThere;
    server_ = RedisServer::shared();
    where_ = server_->new_store();
    prefix_ = "{" + where_.substr(where_.rfind('=') + 1) + ":0}:";  // as new_store() has it
  }
  // One of its own, which keeps what it acknowledges.
  void use_own_server() {
    own_server_ = std::make_unique<RedisServer>("appendonly yes\nappendfsync always\n");
    server_ = own_server_.get();
    where_ = server_->url("prefix=p");
    prefix_ = "{p:0}:";
  }
  Result<std::unique_ptr<Store>> try_to_open(StoreAccess access = StoreAccess::own) {
    return open_store(where_, {.access = access});
  }
  std::unique_ptr<Store> open(StoreAccess access = StoreAccess::own) {
    auto opened = try_to_open(access);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    return opened ? std::move(*opened) : nullptr;
  }
  // One that waits for its server for an instant only. A server that is slow is asked to open it again.
  std::unique_ptr<Store> open_hasty(StoreAccess access = StoreAccess::own) {
    for (;;) {
      auto opened = open_store(where_ + "&store_timeout=0.3", {.access = access});
      if (opened) return std::move(*opened);
      const Errc code = opened.error().code;
      if (code != Errc::network && code != Errc::busy) throw std::runtime_error(opened.error().message);
    }
  }
  template <class T>
  Result<T> ask(Coro<Result<T>> call) {
    return loop_.run_until_complete(std::move(call));
  }
  Result<JobId> put(Store& store, NewJob job = {}) {
    if (job.queue.empty()) job.queue = "q";
    auto replies = ask(store.put({{.job = std::move(job)}}, kNow));
    if (!replies) return std::unexpected(replies.error());
    return replies->at(0)->id;
  }
  std::optional<JobRecord> lease(Store& store, JobId id, std::uint64_t token) {
    const auto leased = ask(store.lease({{id, token, kNow + 60s, "w"}}));
    EXPECT_TRUE(leased) << (leased ? "" : leased.error().message);
    return leased ? leased->at(0) : std::nullopt;
  }
  bool settle(Store& store, JobId id, std::uint64_t token) {
    const auto settled = ask(store.settle({{.id = id, .token = token, .at = kNow}}));
    EXPECT_TRUE(settled) << (settled ? "" : settled.error().message);
    return settled && settled->at(0).settled;
  }
  // Through that proxy, which stands before the server.
  void use(const SocketProxy& proxy) {
    where_ = RedisServer::url_at(proxy.folder(), where_.substr(where_.find('?') + 1));
  }
  std::size_t kept() { return std::stoul(server_->ask("HLEN", prefix_ + "jobs")); }
  void let_lease_run_out() { server_->ask("HSET", prefix_ + "meta", "until", "0"); }

  RedisServer* server_ = nullptr;
  std::unique_ptr<RedisServer> own_server_;
  std::string where_, prefix_;
};

}  // namespace argiope
