// The reference UrlStore: what it does is right by definition, and the other stores are held to it.
#pragma once

#include <map>
#include <mutex>

#include "argiope/store/url_store.hpp"

namespace argiope {

class MemoryUrlStore final : public UrlStore {
 public:
  void submit(UrlBatch batch) override;
  Result<void> flush() override { return {}; }
  std::size_t backlog() const override { return 0; }
  std::optional<Error> failure() const override { return std::nullopt; }
  Result<void> scan(std::int64_t from, const Visitor& visit) override;
  Result<void> scan_broken(const Visitor& visit) override;
  Result<std::optional<UrlRecord>> get(std::int64_t url_id) override;
  std::int64_t next_id() override;
  Result<void> close() override { return {}; }

 private:
  std::mutex mutex_;
  std::map<std::int64_t, UrlRecord> records_;
};

}  // namespace argiope
