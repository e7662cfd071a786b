// The reference UrlStore: what it does is right by definition, and the other stores are held to it.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "argiope/store/detail/url_store.hpp"
#include "jobs/internal/stored_time.hpp"

namespace argiope {

class MemoryUrlStore final : public UrlStore {
 public:
  void submit(UrlBatch batch) override;
  Result<void> flush() override { return {}; }
  std::uint64_t begin_flush() override { return 0; }
  bool flushed(std::uint64_t) const override { return true; }
  std::size_t backlog() const override { return 0; }
  std::optional<Error> failure() const override { return std::nullopt; }
  Result<void> scan(std::int64_t from, const Visitor& visit, Fields fields = Fields::all) override;
  Result<void> scan_known(const KnownQuestion& question, const KnownVisitor& visit) override;
  Result<void> scan_broken(const Visitor& visit) override;
  Result<void> scan_redirects(const Visitor& visit) override;
  Result<void> read_shelf(const ShelfRead& read, const ShelfSites& sites, const Visitor& visit) override;
  Result<void> scan_links(const std::function<bool(const UrlLinks&)>& visit) override;
  Result<void> scan_kept_links(const LinkVisitor& visit) override;
  Result<void> scan_kept_links(std::int64_t url_id, const LinkVisitor& visit) override;
  Result<void> scan_notes(std::string_view prefix, const std::function<bool(const UrlNote&)>& visit) override;
  Result<void> scan_facts(const std::function<bool(const PageFacts&)>& visit) override;
  Result<std::optional<PageFacts>> facts(std::int64_t url_id) override;
  Result<std::vector<GivenUrl>> read_given(std::size_t) override { return std::vector<GivenUrl>{}; }
  Result<void> scan_runs(const std::function<bool(const UrlRun&)>& visit) override;
  Result<void> scan_changes(WallTime from, const std::function<bool(const UrlChange&)>& visit) override;
  Result<std::optional<UrlRecord>> get(std::int64_t url_id) override;
  std::int64_t next_id() override;
  Result<void> close() override { return {}; }

 private:
  // A record's place on its shelf; on none, nowhere.
  struct Place {
    std::optional<Shelf> shelf;
    std::uint64_t site;  // set_aside alone
    std::int64_t order;  // -priority, or the milliseconds of `due`
    std::int64_t url_id;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  static Place place_of(const UrlRecord& record) noexcept;
  void put_on_shelf(const UrlRecord& record);
  void take_from_shelf(const UrlRecord& record);
  void keep(UrlBatch& batch);
  void keep_history(UrlBatch& batch);
  void note_linked(std::int64_t url_id);
  void note_part(const UrlPart& part);

  std::mutex mutex_;
  std::set<Place> shelves_;
  std::map<std::int64_t, UrlRecord> records_;
  std::map<std::int64_t, UrlLinks> links_;
  std::map<std::int64_t, std::vector<KeptLink>> kept_links_;  // none are empty
  std::map<std::int64_t, PageFacts> facts_;
  std::map<std::string, std::string, std::less<>> notes_;
  std::map<std::int64_t, UrlRun> runs_;
  std::vector<UrlChange> changes_;
};

}  // namespace argiope
