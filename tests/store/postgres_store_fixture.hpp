// Shared by the tests of a store in PostgreSQL: a store of its own on a server.
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "argiope/store/store.hpp"
#include "store/socket_proxy.hpp"
#include "support/loop_fixture.hpp"
#include "support/postgres_server.hpp"

namespace argiope {

class PostgresStoreTest : public OnVirtualLoop {
 protected:
  static constexpr WallTime kNow{1'800'000'000s};

  void SetUp() override {
    if (server_ == nullptr) GTEST_SKIP() << PostgresServer::kNotThere;
    where_ = server_->new_store();
    schema_ = where_.substr(where_.rfind('=') + 1);
  }
  std::unique_ptr<Store> open(StoreAccess access = StoreAccess::own) { return open_at(where_, access); }
  static std::unique_ptr<Store> open_at(const std::string& where, StoreAccess access = StoreAccess::own) {
    auto opened = open_store(where, {.access = access});
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    return opened ? std::move(*opened) : nullptr;
  }
  // One that waits for its server for seconds only, which must do for what it is answered.
  static std::unique_ptr<Store> open_hasty(const std::string& where, StoreAccess access = StoreAccess::own) {
    const auto usual = open_at(where, StoreAccess::share);  // which makes the tables
    auto store = open_at(where + "&store_timeout=5", access);
    if (store == nullptr) throw std::runtime_error("the server takes seconds");
    return store;
  }
  static Error refusal(const std::string& where, StoreAccess access = StoreAccess::own) {
    auto opened = open_store(where, {.access = access});
    EXPECT_FALSE(opened);
    return opened ? Error{} : opened.error();
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
  std::string count(const std::string& table) {
    return server_->query("select count(*) from " + schema_ + "." + table);
  }
  void cut_connections() {
    server_->query("select pg_terminate_backend(pid, 60000) from pg_stat_activity where application_name = 'argiope'");
  }

  PostgresServer* const server_ = PostgresServer::shared();
  std::string where_, schema_;
};

}  // namespace argiope
