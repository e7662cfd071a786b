// PostgresKeys: requests to a store in PostgreSQL that came under a key.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/jobs/internal/store_driver.hpp"
#include "store/postgresql/postgres_work.hpp"

namespace argiope {

class PostgresKeys final : public KeyRows {
 public:
  explicit PostgresKeys(PostgresWork& work) noexcept : work_(work) {}

  void ask_for(const NeededRows& needed, std::vector<PostgresWork::Statement>& reads);
  void take_brought(const NeededRows& needed, PostgresWork::Answers& answers, std::size_t& at);

  std::optional<KeptRequest> find(const std::string& key) override;
  void write(const RequestKey& key, WallTime at, const std::string& reply) override;
  std::size_t prune(WallTime before, std::size_t most, std::size_t limit) override;

  void mark() { requests_.mark(); }
  void keep() noexcept { requests_.keep(); }
  void take_back() { requests_.take_back(); }
  void clear() noexcept { requests_.clear(); }

 private:
  PostgresWork& work_;
  PostgresOverlay<std::string, std::optional<KeptRequest>> requests_;
};

}  // namespace argiope
