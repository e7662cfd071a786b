// A disk in memory below SQLite that fails when told to, and forgets what a real one may forget in a power cut.
//
// What is written is pending until it is synced. A power cut keeps what was synced and, of what was pending, whichever
// sectors chance chooses, the last of them perhaps in part. A sync that fails leaves its writes where Linux leaves
// them: readers still see them, some have reached the disk, and no later sync writes the rest. Who had the file open
// then is told once each, at his next sync.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "argiope/base/random.hpp"
#include "support/environment.hpp"

namespace argiope {

enum class Fault : std::uint8_t {
  none,
  read,        // one read fails
  write,       // one write, truncation or deletion fails and does nothing
  torn_write,  // one write does the first part of its work and fails
  full,        // from one write on no file grows, until restart()
  sync,        // one sync fails
  kill,        // the process dies: what was written is there
  power_cut,
};

// How many seeds a sweep over the faults of a disk is to try.
inline std::uint64_t fault_seeds() { return from_environment("ARGIOPE_FAULT_SEEDS", 1); }

// A sweep meets every fault_stride()-th operation: ARGIOPE_FAULT_STRIDE, or else a sample that takes minutes, fewer
// where each takes a sanitizer's time. An odd number, because writes come in pairs.
inline std::uint64_t fault_stride() {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return from_environment("ARGIOPE_FAULT_STRIDE", 41);
#endif
#endif
  return from_environment("ARGIOPE_FAULT_STRIDE", 3);
}

// Is SQLite's default VFS from its construction to its destruction; one at a time, and no connection may be open when
// it comes or goes. Files are known by their paths and are not on the real disk.
//
// Threads: any.
class FaultyDisk {
 public:
  explicit FaultyDisk(std::uint64_t seed);
  ~FaultyDisk();
  FaultyDisk(const FaultyDisk&) = delete;
  FaultyDisk& operator=(const FaultyDisk&) = delete;

  // The operation number `n`, from 0, of those that `fault` may befall from now on meets it.
  void plan(Fault fault, std::uint64_t n);
  // Now. After a death every operation fails until restart().
  void die(Fault kill_or_power_cut);
  // Operations since plan() that its fault may befall.
  std::uint64_t operations() const;
  // Whether SQLite has been told of a failure since the last plan() or restart().
  bool has_failed() const;
  // The faults are over and the disk is as they have left it. No connection may be open.
  void restart();

 private:
  struct Pending {
    std::uint64_t offset;
    std::string bytes;
    bool truncates = false;  // to `offset`
  };
  struct File {
    std::string now;      // as processes see it
    std::string durable;  // as it is on the disk
    std::vector<Pending> pending;
    int failed_syncs = 0;
    // Who holds which lock; see sqlite.org/lockingv3.html and sqlite.org/walformat.html.
    int shared = 0;
    const void* reserved = nullptr;
    const void* exclusive = nullptr;
    std::vector<std::unique_ptr<char[]>> shm;
    int shm_users = 0;
    int shm_shared[SQLITE_SHM_NLOCK] = {};
    const void* shm_exclusive[SQLITE_SHM_NLOCK] = {};
  };
  using Folder = std::map<std::string, std::shared_ptr<File>, std::less<>>;
  struct Handle;
  struct Calls;
  enum class Operation : std::uint8_t { read, write, remove, sync };

  bool befalls(Operation operation) const noexcept;
  Fault meets(Operation operation) noexcept;
  int failed(int code, int os_error) noexcept;
  void cut_power();
  void reach_disk_by_chance(File& file);
  int write(File& file, std::string_view bytes, std::uint64_t offset);
  int truncate(File& file, std::uint64_t size);
  int sync(Handle& handle);
  int remove(const std::string& name, bool sync_folder);
  static void put(std::string& content, const Pending& change);
  static void apply(File& file, Pending change);

  mutable std::mutex mutex_;
  sqlite3_vfs vfs_{};
  Random chance_;
  Fault planned_ = Fault::none;
  std::uint64_t planned_at_ = 0, operations_ = 0;
  bool has_failed_ = false, full_ = false, dead_ = false;
  int last_error_ = 0;
  int open_ = 0;
  Folder now_, durable_;
};

}  // namespace argiope
