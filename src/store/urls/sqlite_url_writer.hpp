// SqliteUrlWriter: the connection that writes a SQLite file of URLs, as one thread sees it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "argiope/store/detail/url_store.hpp"
#include "store/sqlite/internal/sqlite_owner.hpp"

namespace argiope {

class SqliteUrlWriter final : public SqliteOwner {
 public:
  // Opens or creates the file, and keeps other writers from it. Errors: as open_url_store.
  static Result<std::unique_ptr<SqliteUrlWriter>> open(const std::string& path, const UrlStoreOptions& options);

  void commit() override;

  // In a transaction.
  void write(const UrlBatch& batch);

 private:
  SqliteUrlWriter(const std::string& path, const UrlStoreOptions& options);

  Result<void> prepare_all();
  void insert(const NewUrl& found);
  void update(const UrlOutcome& outcome);
  void store_depth(const UrlDepth& nearer);
  void store_links(const UrlLinks& links);
  void store_move(const UrlMove& move);
  void store_note(const UrlNote& note);
  void store_kept(const KeptLinks& page);
  void store_run(const UrlRun& run);
  void store_change(const UrlChange& change);
  void store_facts(const PageFacts& facts);

  const std::function<Result<std::vector<UrlNote>>()> before_commit_;
  SqliteStatement insert_, insert_excluded_, update_, touch_, move_, nearer_, put_links_;
  SqliteStatement forget_kept_, put_kept_, put_facts_, note_linked_, note_part_, put_note_, forget_note_, take_given_;
  SqliteStatement put_run_, put_change_;
  std::string bytes_;  // of the links or anchors being stored
};

}  // namespace argiope
