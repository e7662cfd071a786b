#include "support/faulty_vfs.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace argiope {
namespace {

constexpr std::uint64_t kSector = 512;
constexpr std::size_t kMostInOneCall = 0x1ffff;  // as SQLite's own

}  // namespace

struct FaultyDisk::Handle {
  FaultyDisk& disk;
  std::shared_ptr<File> file;
  std::string name;  // empty: deleted on closing
  bool syncs_folder = false;
  int failed_syncs = 0;  // of the file, that it has been told of
  int level = SQLITE_LOCK_NONE;
  bool uses_shm = false;
  std::uint32_t shm_shared = 0;
  std::uint32_t shm_exclusive = 0;
};

// --- what SQLite calls -----------------------------------------------------------------------------------------------

struct FaultyDisk::Calls {
  struct SqliteFile {
    sqlite3_file base;
    Handle* handle;
  };
  static Handle& of(sqlite3_file* file) { return *reinterpret_cast<SqliteFile*>(file)->handle; }
  static FaultyDisk& of(sqlite3_vfs* vfs) { return *static_cast<FaultyDisk*>(vfs->pAppData); }
  static std::unique_lock<std::mutex> lock(Handle& handle) { return std::unique_lock(handle.disk.mutex_); }

  static int close(sqlite3_file* file) {
    Handle* handle = &of(file);
    {
      const auto held = lock(*handle);
      release(*handle, SQLITE_LOCK_NONE);
      leave_shm(*handle);
      --handle->disk.open_;
    }
    delete handle;
    return SQLITE_OK;
  }
  static int read(sqlite3_file* file, void* out, int size, sqlite3_int64 offset) {
    Handle& handle = of(file);
    const auto held = lock(handle);
    FaultyDisk& disk = handle.disk;
    if (static_cast<std::size_t>(size) > kMostInOneCall) return disk.failed(SQLITE_IOERR_READ, EINVAL);
    if (disk.dead_ || disk.meets(Operation::read) != Fault::none) return disk.failed(SQLITE_IOERR_READ, EIO);
    const std::string& content = handle.file->now;
    const auto from = std::min(static_cast<std::size_t>(offset), content.size());
    const auto there = std::min(static_cast<std::size_t>(size), content.size() - from);
    std::memcpy(out, content.data() + from, there);
    if (there == static_cast<std::size_t>(size)) return SQLITE_OK;
    std::memset(static_cast<char*>(out) + there, 0, static_cast<std::size_t>(size) - there);
    return SQLITE_IOERR_SHORT_READ;
  }
  static int write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
    Handle& handle = of(file);
    const auto held = lock(handle);
    return handle.disk.write(*handle.file, {static_cast<const char*>(bytes), static_cast<std::size_t>(size)},
                             static_cast<std::uint64_t>(offset));
  }
  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    Handle& handle = of(file);
    const auto held = lock(handle);
    return handle.disk.truncate(*handle.file, static_cast<std::uint64_t>(size));
  }
  static int sync(sqlite3_file* file, int) {
    Handle& handle = of(file);
    const auto held = lock(handle);
    return handle.disk.sync(handle);
  }
  static int file_size(sqlite3_file* file, sqlite3_int64* size) {
    Handle& handle = of(file);
    const auto held = lock(handle);
    if (handle.disk.dead_) return handle.disk.failed(SQLITE_IOERR_FSTAT, EIO);
    *size = static_cast<sqlite3_int64>(handle.file->now.size());
    return SQLITE_OK;
  }

  // --- locks
  static int take(sqlite3_file* sqlite_file, int level) {
    Handle& handle = of(sqlite_file);
    const auto held = lock(handle);
    File& file = *handle.file;
    if (level <= handle.level) return SQLITE_OK;
    if (file.exclusive != nullptr && file.exclusive != &handle) return SQLITE_BUSY;
    if (handle.level == SQLITE_LOCK_NONE) {
      ++file.shared;
      handle.level = SQLITE_LOCK_SHARED;
    }
    if (level == SQLITE_LOCK_SHARED) return SQLITE_OK;
    if (file.reserved != nullptr && file.reserved != &handle) return SQLITE_BUSY;
    file.reserved = &handle;
    handle.level = SQLITE_LOCK_RESERVED;
    if (level == SQLITE_LOCK_RESERVED) return SQLITE_OK;
    file.exclusive = &handle;
    handle.level = SQLITE_LOCK_PENDING;
    if (file.shared > 1) return SQLITE_BUSY;
    handle.level = level;
    return SQLITE_OK;
  }
  static void release(Handle& handle, int level) {
    File& file = *handle.file;
    if (handle.level <= level) return;
    if (file.reserved == &handle) file.reserved = nullptr;
    if (file.exclusive == &handle) file.exclusive = nullptr;
    if (level == SQLITE_LOCK_NONE) --file.shared;
    handle.level = level;
  }
  static int unlock(sqlite3_file* file, int level) {
    Handle& handle = of(file);
    const auto held = lock(handle);
    release(handle, level);
    return SQLITE_OK;
  }
  static int is_reserved(sqlite3_file* file, int* out) {
    Handle& handle = of(file);
    const auto held = lock(handle);
    *out = handle.file->reserved != nullptr;
    return SQLITE_OK;
  }
  static int control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
  static int sector_size(sqlite3_file*) { return 4096; }
  // As SQLite's own: a write that is cut short harms nothing beside it.
  static int characteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

  // --- the log's index, which is memory that connections share
  static int shm_map(sqlite3_file* sqlite_file, int region, int size, int extend, void volatile** out) {
    Handle& handle = of(sqlite_file);
    const auto held = lock(handle);
    File& file = *handle.file;
    if (!handle.uses_shm) {
      handle.uses_shm = true;
      ++file.shm_users;
    }
    *out = nullptr;
    while (file.shm.size() <= static_cast<std::size_t>(region)) {
      if (extend == 0) return SQLITE_OK;
      if (handle.disk.dead_) return handle.disk.failed(SQLITE_IOERR_SHMSIZE, EIO);
      if (handle.disk.full_) return handle.disk.failed(SQLITE_IOERR_SHMSIZE, ENOSPC);
      file.shm.push_back(std::make_unique<char[]>(static_cast<std::size_t>(size)));
    }
    *out = file.shm[static_cast<std::size_t>(region)].get();
    return SQLITE_OK;
  }
  static int shm_lock(sqlite3_file* sqlite_file, int first, int count, int flags) {
    Handle& handle = of(sqlite_file);
    const auto held = lock(handle);
    File& file = *handle.file;
    const bool exclusive = flags & SQLITE_SHM_EXCLUSIVE;
    const auto holds = [&](int i) { return (handle.shm_shared >> i & 1) != 0; };
    if (flags & SQLITE_SHM_LOCK) {
      for (int i = first; i < first + count; ++i) {
        if (file.shm_exclusive[i] != nullptr && file.shm_exclusive[i] != &handle) return SQLITE_BUSY;
        if (exclusive && file.shm_shared[i] > (holds(i) ? 1 : 0)) return SQLITE_BUSY;
      }
    }
    for (int i = first; i < first + count; ++i) {
      if (exclusive) {
        file.shm_exclusive[i] = flags & SQLITE_SHM_LOCK ? &handle : nullptr;
      } else if (((flags & SQLITE_SHM_LOCK) != 0) != holds(i)) {
        file.shm_shared[i] += flags & SQLITE_SHM_LOCK ? 1 : -1;
        handle.shm_shared ^= 1u << i;
      }
    }
    return SQLITE_OK;
  }
  static void shm_barrier(sqlite3_file* file) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const auto held = lock(of(file));
  }
  static void leave_shm(Handle& handle) {
    if (!std::exchange(handle.uses_shm, false)) return;
    File& file = *handle.file;
    for (int i = 0; i < SQLITE_SHM_NLOCK; ++i) {
      if (file.shm_exclusive[i] == &handle) file.shm_exclusive[i] = nullptr;
      if (handle.shm_shared >> i & 1) --file.shm_shared[i];
    }
    handle.shm_shared = 0;
    if (--file.shm_users == 0) file.shm.clear();
  }
  static int shm_unmap(sqlite3_file* file, int) {
    Handle& handle = of(file);
    const auto held = lock(handle);
    leave_shm(handle);
    return SQLITE_OK;
  }

  // --- the folder
  static int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* flags_out) {
    static constexpr sqlite3_io_methods kMethods{
        .iVersion = 2,
        .xClose = close,
        .xRead = read,
        .xWrite = write,
        .xTruncate = truncate,
        .xSync = sync,
        .xFileSize = file_size,
        .xLock = take,
        .xUnlock = unlock,
        .xCheckReservedLock = is_reserved,
        .xFileControl = control,
        .xSectorSize = sector_size,
        .xDeviceCharacteristics = characteristics,
        .xShmMap = shm_map,
        .xShmLock = shm_lock,
        .xShmBarrier = shm_barrier,
        .xShmUnmap = shm_unmap,
        .xFetch = nullptr,
        .xUnfetch = nullptr,
    };
    FaultyDisk& disk = of(vfs);
    const std::lock_guard held(disk.mutex_);
    file->pMethods = nullptr;
    if (disk.dead_) return disk.failed(SQLITE_CANTOPEN, EIO);
    std::shared_ptr<File> found;
    const bool keeps = name != nullptr && (flags & SQLITE_OPEN_DELETEONCLOSE) == 0;
    if (keeps) {
      if (const auto at = disk.now_.find(name); at != disk.now_.end()) found = at->second;
      // A real file by that name is one that somebody has made in order to lock it.
      if (found == nullptr && (flags & SQLITE_OPEN_CREATE) == 0 && ::access(name, F_OK) != 0) {
        return disk.failed(SQLITE_CANTOPEN, ENOENT);
      }
    }
    if (found == nullptr) {
      found = std::make_shared<File>();
      if (keeps) disk.now_[name] = found;
    }
    // As SQLite's own: the folder is synced with the first sync of a journal or log, new or not.
    constexpr int kJournals = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL;
    auto* handle = new Handle{disk, found, keeps ? name : ""};
    handle->failed_syncs = found->failed_syncs;
    handle->syncs_folder = keeps && (flags & SQLITE_OPEN_CREATE) != 0 && (flags & kJournals) != 0;
    ++disk.open_;
    reinterpret_cast<SqliteFile*>(file)->handle = handle;
    file->pMethods = &kMethods;
    if (flags_out != nullptr) *flags_out = flags;
    return SQLITE_OK;
  }
  static int remove(sqlite3_vfs* vfs, const char* name, int sync_folder) {
    FaultyDisk& disk = of(vfs);
    const std::lock_guard held(disk.mutex_);
    return disk.remove(name, sync_folder != 0);
  }
  static int access(sqlite3_vfs* vfs, const char* name, int, int* out) {
    FaultyDisk& disk = of(vfs);
    const std::lock_guard held(disk.mutex_);
    if (disk.dead_) return disk.failed(SQLITE_IOERR_ACCESS, EIO);
    const auto found = disk.now_.find(std::string_view(name));
    *out = found != disk.now_.end() && !found->second->now.empty();  // as SQLite's own
    return SQLITE_OK;
  }
  static int full_path(sqlite3_vfs*, const char* name, int size, char* out) {
    std::snprintf(out, static_cast<std::size_t>(size), "%s", name);
    return SQLITE_OK;
  }
  static int randomness(sqlite3_vfs* vfs, int size, char* out) {
    FaultyDisk& disk = of(vfs);
    const std::lock_guard held(disk.mutex_);
    for (int i = 0; i < size; ++i) out[i] = static_cast<char>(disk.chance_.next());
    return size;
  }
  static int sleep(sqlite3_vfs*, int microseconds) {
    ::usleep(static_cast<useconds_t>(microseconds));
    return microseconds;
  }
  static int julian_milliseconds(sqlite3_vfs*, sqlite3_int64* out) {
    *out = 212'000'000'000'000;
    return SQLITE_OK;
  }
  static int julian_days(sqlite3_vfs*, double* out) {
    *out = 2'453'703.7;
    return SQLITE_OK;
  }
  static int last_error(sqlite3_vfs* vfs, int, char*) {
    FaultyDisk& disk = of(vfs);
    const std::lock_guard held(disk.mutex_);
    return disk.last_error_;
  }
};

// --- the disk --------------------------------------------------------------------------------------------------------

FaultyDisk::FaultyDisk(std::uint64_t seed) : chance_(seed) {
  vfs_.iVersion = 2;
  vfs_.szOsFile = sizeof(Calls::SqliteFile);
  vfs_.mxPathname = 512;
  vfs_.zName = "faulty";
  vfs_.pAppData = this;
  vfs_.xOpen = Calls::open;
  vfs_.xDelete = Calls::remove;
  vfs_.xAccess = Calls::access;
  vfs_.xFullPathname = Calls::full_path;
  vfs_.xRandomness = Calls::randomness;
  vfs_.xSleep = Calls::sleep;
  vfs_.xCurrentTime = Calls::julian_days;
  vfs_.xGetLastError = Calls::last_error;
  vfs_.xCurrentTimeInt64 = Calls::julian_milliseconds;
  if (sqlite3_vfs_register(&vfs_, 1) != SQLITE_OK) std::abort();
}

FaultyDisk::~FaultyDisk() {
  if (open_ != 0) std::abort();
  sqlite3_vfs_unregister(&vfs_);
  sqlite3_vfs_register(sqlite3_vfs_find("unix"), 1);
}

void FaultyDisk::plan(Fault fault, std::uint64_t n) {
  const std::lock_guard held(mutex_);
  planned_ = fault;
  planned_at_ = n;
  operations_ = 0;
  has_failed_ = false;
}

void FaultyDisk::die(Fault kill_or_power_cut) {
  const std::lock_guard held(mutex_);
  dead_ = true;
  if (kill_or_power_cut == Fault::power_cut) cut_power();
}

std::uint64_t FaultyDisk::operations() const {
  const std::lock_guard held(mutex_);
  return operations_;
}

bool FaultyDisk::has_failed() const {
  const std::lock_guard held(mutex_);
  return has_failed_;
}

void FaultyDisk::restart() {
  const std::lock_guard held(mutex_);
  if (open_ != 0) std::abort();
  planned_ = Fault::none;
  has_failed_ = full_ = dead_ = false;
}

bool FaultyDisk::befalls(Operation operation) const noexcept {
  switch (planned_) {
    case Fault::none: return false;
    case Fault::read: return operation == Operation::read;
    case Fault::write: return operation == Operation::write || operation == Operation::remove;
    case Fault::torn_write:
    case Fault::full: return operation == Operation::write;
    case Fault::sync: return operation == Operation::sync;
    case Fault::kill:
    case Fault::power_cut: return operation != Operation::read;
  }
  return false;
}

Fault FaultyDisk::meets(Operation operation) noexcept {
  if (!befalls(operation)) return Fault::none;
  return operations_++ == planned_at_ ? planned_ : Fault::none;
}

int FaultyDisk::failed(int code, int os_error) noexcept {
  has_failed_ = true;
  last_error_ = os_error;
  return code;
}

void FaultyDisk::put(std::string& content, const Pending& change) {
  if (change.truncates) {
    content.resize(change.offset);
    return;
  }
  content.resize(std::max(content.size(), static_cast<std::size_t>(change.offset) + change.bytes.size()));
  content.replace(change.offset, change.bytes.size(), change.bytes);
}

void FaultyDisk::apply(File& file, Pending change) {
  put(file.now, change);
  file.pending.push_back(std::move(change));
}

// Sector by sector, and now and then a part of one.
void FaultyDisk::reach_disk_by_chance(File& file) {
  constexpr double kWrittenShares[] = {0.0, 0.3, 0.7, 0.95, 1.0};
  const double share = kWrittenShares[chance_.below(std::size(kWrittenShares))];
  for (const Pending& change : file.pending) {
    if (change.truncates) {
      if (chance_.chance(share)) put(file.durable, change);
      continue;
    }
    for (std::uint64_t at = 0; at < change.bytes.size();) {
      const std::uint64_t to_sector_end = kSector - (change.offset + at) % kSector;
      const std::uint64_t whole = std::min<std::uint64_t>(to_sector_end, change.bytes.size() - at);
      if (chance_.chance(share)) {
        const std::uint64_t part = chance_.chance(0.05) ? chance_.below(whole) : whole;
        put(file.durable, {change.offset + at, change.bytes.substr(at, part)});
      }
      at += whole;
    }
  }
  file.pending.clear();
}

void FaultyDisk::cut_power() {
  Folder left = durable_;
  for (const auto& [name, file] : now_) {
    const auto known = left.find(name);
    if (known != left.end() && known->second == file) continue;
    if (chance_.chance(0.5)) left[name] = file;
  }
  std::erase_if(left, [&](const auto& entry) { return !now_.contains(entry.first) && chance_.chance(0.5); });
  for (const auto& [name, file] : left) {
    reach_disk_by_chance(*file);
    file->now = file->durable;
  }
  now_ = durable_ = left;
}

int FaultyDisk::write(File& file, std::string_view bytes, std::uint64_t offset) {
  if (dead_) return failed(SQLITE_IOERR_WRITE, EIO);
  if (bytes.size() > kMostInOneCall) return failed(SQLITE_FULL, EINVAL);
  const auto prefix = [&] { return std::string(bytes.substr(0, chance_.below(bytes.size()))); };
  switch (meets(Operation::write)) {
    case Fault::write: return failed(SQLITE_IOERR_WRITE, EIO);
    case Fault::torn_write: apply(file, {offset, prefix()}); return failed(SQLITE_IOERR_WRITE, EIO);
    case Fault::full: full_ = true; break;
    case Fault::kill: dead_ = true; return failed(SQLITE_IOERR_WRITE, EIO);
    case Fault::power_cut:
      dead_ = true;
      apply(file, {offset, std::string(bytes)});
      cut_power();
      return failed(SQLITE_IOERR_WRITE, EIO);
    default: break;
  }
  if (full_ && offset + bytes.size() > file.now.size()) {
    apply(file, {offset, prefix()});
    return failed(SQLITE_FULL, ENOSPC);
  }
  apply(file, {offset, std::string(bytes)});
  return SQLITE_OK;
}

int FaultyDisk::truncate(File& file, std::uint64_t size) {
  if (dead_) return failed(SQLITE_IOERR_TRUNCATE, EIO);
  const Fault fault = meets(Operation::write);
  if (fault == Fault::power_cut) apply(file, {size, {}, true});
  if (fault == Fault::power_cut || fault == Fault::kill) dead_ = true;
  if (fault == Fault::power_cut) cut_power();
  if (fault == Fault::full) full_ = true;
  if (fault != Fault::none && fault != Fault::full) return failed(SQLITE_IOERR_TRUNCATE, EIO);
  if (size < file.now.size()) apply(file, {size, {}, true});
  return SQLITE_OK;
}

int FaultyDisk::sync(Handle& handle) {
  if (dead_) return failed(SQLITE_IOERR_FSYNC, EIO);
  File& file = *handle.file;
  switch (meets(Operation::sync)) {
    case Fault::sync:
      reach_disk_by_chance(file);
      ++file.failed_syncs;
      break;
    case Fault::kill: dead_ = true; return failed(SQLITE_IOERR_FSYNC, EIO);
    case Fault::power_cut:
      dead_ = true;
      cut_power();
      return failed(SQLITE_IOERR_FSYNC, EIO);
    default: break;
  }
  for (const Pending& change : file.pending) put(file.durable, change);
  file.pending.clear();
  if (std::exchange(handle.failed_syncs, file.failed_syncs) != file.failed_syncs) {
    return failed(SQLITE_IOERR_FSYNC, EIO);
  }
  if (std::exchange(handle.syncs_folder, false)) durable_ = now_;
  return SQLITE_OK;
}

int FaultyDisk::remove(const std::string& name, bool sync_folder) {
  if (dead_) return failed(SQLITE_IOERR_DELETE, EIO);
  const Fault fault = meets(Operation::remove);
  if (fault == Fault::power_cut) now_.erase(name);
  if (fault == Fault::power_cut || fault == Fault::kill) dead_ = true;
  if (fault == Fault::power_cut) cut_power();
  if (fault != Fault::none) return failed(SQLITE_IOERR_DELETE, EIO);
  if (now_.erase(name) == 0) return SQLITE_IOERR_DELETE_NOENT;
  if (sync_folder) durable_ = now_;
  return SQLITE_OK;
}

}  // namespace argiope
