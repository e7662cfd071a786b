#include "crawl/save/mirror_builder.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <exception>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "crawl/save/mirror_pages.hpp"
#include "crawl/save/mirror_plan.hpp"

namespace argiope {
namespace {

// Another number when pages are made otherwise: then all are made anew.
constexpr unsigned kMirrorFormat = 1;
constexpr unsigned kMostBuilders = 4;
constexpr std::size_t kFilesAtOnce = 32;  // that a thread takes
constexpr const char* kPlacedFile = "placed";
constexpr const char* kBuiltFile = "built";

template <class Visit>
Result<void> for_each_placed(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) {
      if (auto visited = visit(text.substr(0, end)); !visited) return visited;
    }
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return {};
}

// Another after each start of the machine.
std::string boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id.empty() ? "?" : id;
}

class MirrorBuilder {
 public:
  MirrorBuilder(const MirrorFolder& folder, MirrorLog& log, bool sync, MirrorMoment moment)
      : folder_(folder), log_(log), sync_(sync), moment_(moment) {}

  Result<MirrorTotals> run() {
    if (auto read = read_index(); !read) return std::unexpected(std::move(read.error()));
    plan_.emplace(*index_);
    auto done = read_state();
    if (done) done = clear_the_way();
    totals_.files = plan_->files().size();
    if (done) done = make_files();
    if (done) done = write_state();
    if (!done) return std::unexpected(std::move(done.error()));
    return totals_;
  }

 private:
  // The log's own index is for its one thread, until it has ended.
  Result<void> read_index() {
    if (moment_ == MirrorMoment::running) {
      auto index = log_.read_now();
      if (!index) return std::unexpected(std::move(index.error()));
      own_index_ = std::move(*index);
      index_ = own_index_.get();
      return {};
    }
    auto index = log_.read_again();
    if (!index) return std::unexpected(std::move(index.error()));
    index_ = *index;
    return {};
  }

  Result<void> read_state() {
    auto placed = folder_.read_own(kPlacedFile);
    if (!placed) return std::unexpected(std::move(placed.error()));
    placed_ = placed->value_or("");
    is_new_ = placed_.empty();
    auto built = folder_.read_own(kBuiltFile);
    if (!built) return std::unexpected(std::move(built.error()));
    // Up to where the pages are right as they are.
    const std::string_view text = *built ? std::string_view(**built) : std::string_view{};
    const std::string front = built_front(), back = built_back(plan_->digest());
    if (text.starts_with(front) && text.ends_with(back)) {
      std::from_chars(text.data() + front.size(), text.data() + text.size(), right_up_to_);
    }
    return {};
  }

  // The state that the files were made of, when they were last all in their places. After another start of the machine
  // that counts for nothing, as the system may not have brought them to the disk: all are compared.
  std::string built_front() const { return fmt::format("{} {} {} ", kMirrorFormat, boot_id_, index_->pages_name()); }
  static std::string built_back(std::uint64_t plan) { return fmt::format(" {:016x}\n", plan); }
  std::string built_text(std::uint64_t index_end, std::uint64_t plan) const {
    return fmt::format("{}{}{}", built_front(), index_end, built_back(plan));
  }

  // Takes away what is gone, and makes sure that all places are free or ours.
  Result<void> clear_the_way() {
    std::vector<std::uint64_t> ours, wanted;
    (void)for_each_placed(placed_, [&](std::string_view path) -> Result<void> {
      ours.push_back(fingerprint(path));
      return {};
    });
    std::ranges::sort(ours);
    std::string all = placed_;
    MirrorFiles files(folder_, 0);
    const auto bare = folder_.is_bare();
    if (!bare) return std::unexpected(bare.error());
    for (const MirrorPlan::File& file : plan_->files()) {
      const std::string_view path = plan_->path_of(file);
      wanted.push_back(fingerprint(folded_path(path)));
      if (std::ranges::binary_search(ours, fingerprint(path))) continue;
      is_placed_changed_ = true;
      const auto taken = *bare ? Result<bool>(false) : files.exists(path);
      if (!taken) return std::unexpected(taken.error());
      if (*taken) {
        return fail(Errc::wrong_format,
                    fmt::format("{}: in the way: it is not of this mirror; move it elsewhere", folder_.name_of(path)));
      }
      all.append(path) += '\n';
    }
    std::ranges::sort(wanted);
    if (is_placed_changed_) {
      if (auto written = folder_.write_own(kPlacedFile, all, sync_); !written) return written;
    }
    return for_each_placed(placed_, [&](std::string_view path) -> Result<void> {
      if (std::ranges::binary_search(wanted, fingerprint(folded_path(path)))) return {};
      is_placed_changed_ = true;
      ++totals_.removed;
      return files.remove(path);
    });
  }

  Result<void> make_files() {
    // In the order of the log, which is then read from front to back.
    std::vector<const MirrorPlan::File*> files;
    for (const MirrorPlan::File& file : plan_->files()) files.push_back(&file);
    std::ranges::sort(files, {}, [](const MirrorPlan::File* file) { return file->place; });
    const auto processors = std::clamp(std::thread::hardware_concurrency(), 1u, kMostBuilders);
    const auto builders = static_cast<unsigned>(std::min<std::size_t>(processors, files.size() / kFilesAtOnce + 1));
    {
      std::vector<std::jthread> threads;
      for (unsigned i = 1; i < builders; ++i) {
        threads.emplace_back([this, i, &files] { make_some(i, files); });
      }
      make_some(0, files);
    }
    if (failure_) return std::unexpected(*failure_);
    return {};
  }

  void make_some(unsigned number, const std::vector<const MirrorPlan::File*>& files) {
    Maker maker(*this, number);
    MirrorTotals totals;
    Result<void> done;
    try {
      while (done && !is_stopped_.load(std::memory_order_relaxed)) {
        const std::size_t first = next_.fetch_add(kFilesAtOnce);
        if (first >= files.size()) break;
        for (std::size_t i = first; done && i < std::min(files.size(), first + kFilesAtOnce); ++i) {
          done = maker.make(*files[i], totals);
        }
      }
    } catch (const std::exception& error) {
      done = fail(Errc::internal, fmt::format("{}: {}", folder_.path(), error.what()));
    }
    std::lock_guard lock(mutex_);
    totals_.pages += totals.pages;
    totals_.written += totals.written;
    if (done) return;
    is_stopped_ = true;
    if (!failure_) failure_ = std::move(done.error());
  }

  // The tools that one thread needs.
  class Maker {
   public:
    Maker(MirrorBuilder& builder, unsigned number)
        : builder_(builder), files_(builder.folder_, number), pages_(*builder.index_, *builder.plan_) {}

    Result<void> make(const MirrorPlan::File& file, MirrorTotals& totals) {
      const MirrorRecord record = builder_.index_->at(file.place);
      const std::string_view path = builder_.plan_->path_of(file);
      totals.pages += record.type.kind == FileKind::html || record.type.kind == FileKind::xhtml ? 1 : 0;
      if (record.what == MirrorRecord::What::blob) {
        const auto changed = files_.place_blob(path, record.digest);
        if (!changed) return std::unexpected(changed.error());
        totals.written += *changed ? 1 : 0;
        return {};
      }
      if (file.place < builder_.right_up_to_) {
        const auto there = files_.exists(path);
        if (!there) return std::unexpected(there.error());
        if (*there) return {};
      }
      if (auto read = builder_.log_.read_text(record, reader_, text_); !read) return read;
      if (record.is_rewritten()) {
        pages_.render(record, path, text_, reader_.references(), page_);
      } else {
        page_.swap(text_);
      }
      if (builder_.is_new_) return write(path, totals);
      const auto same = files_.holds(path, page_);
      if (!same) return std::unexpected(same.error());
      return *same ? Result<void>{} : write(path, totals);
    }

   private:
    Result<void> write(std::string_view path, MirrorTotals& totals) {
      ++totals.written;
      return files_.write(path, page_);
    }

    MirrorBuilder& builder_;
    MirrorFiles files_;
    MirrorPages pages_;
    MirrorLog::Reader reader_;
    std::string text_, page_;
  };

  // All is in its place: only now that is what the mirror has.
  Result<void> write_state() {
    const bool is_same =
        totals_.written == 0 && totals_.removed == 0 && !is_placed_changed_ && right_up_to_ == index_->end();
    if (is_same && moment_ == MirrorMoment::running) return {};
    if (is_placed_changed_) {
      std::string all;
      for (const MirrorPlan::File& file : plan_->files()) all.append(plan_->path_of(file)) += '\n';
      if (auto written = folder_.write_own(kPlacedFile, all, false); !written) return written;
    }
    const std::uint64_t plan = plan_->digest();
    if (moment_ == MirrorMoment::end) {
      remove_dead_blobs();
      plan_.reset();
      if (auto compacted = log_.compact(sync_); !compacted) return compacted;
      index_ = &log_.index();
    }
    return folder_.write_own(kBuiltFile, built_text(index_->end(), plan), false);
  }

  void remove_dead_blobs() const {
    std::vector<std::uint64_t> live;
    for (const MirrorPlan::File& file : plan_->files()) {
      const MirrorRecord record = index_->at(file.place);
      if (record.what == MirrorRecord::What::blob) live.push_back(fingerprint(record.digest));
    }
    std::ranges::sort(live);
    const int own = ::dup(folder_.blobs());
    DIR* const list = own < 0 ? nullptr : ::fdopendir(own);
    if (list == nullptr) return;
    ::rewinddir(list);
    std::vector<std::string> dead;
    while (const dirent* const entry = ::readdir(list)) {
      const std::string_view name(entry->d_name);
      if (name.starts_with('.') || std::ranges::binary_search(live, fingerprint(name))) continue;
      dead.emplace_back(name);
    }
    ::closedir(list);
    for (const std::string& name : dead) ::unlinkat(folder_.blobs(), name.c_str(), 0);
  }

  const MirrorFolder& folder_;
  MirrorLog& log_;
  const bool sync_;
  const MirrorMoment moment_;
  const std::string boot_id_ = boot_id();
  std::unique_ptr<MirrorIndex> own_index_;
  const MirrorIndex* index_ = nullptr;
  std::optional<MirrorPlan> plan_;
  std::string placed_;  // what may be ours, a line each
  bool is_placed_changed_ = false;
  bool is_new_ = false;            // there is no file yet
  std::uint64_t right_up_to_ = 0;  // records before this are in their files as they should be

  std::atomic<std::size_t> next_{0};
  std::atomic<bool> is_stopped_{false};
  std::mutex mutex_;
  MirrorTotals totals_;
  std::optional<Error> failure_;
};

}  // namespace

Result<MirrorTotals> build_mirror(const MirrorFolder& folder, MirrorLog& log, bool sync, MirrorMoment moment) {
  return MirrorBuilder(folder, log, sync, moment).run();
}

}  // namespace argiope
