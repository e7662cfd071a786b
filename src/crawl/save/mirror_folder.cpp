#include "crawl/save/mirror_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace argiope {
namespace {

constexpr std::string_view kMirrorTemporary = "tmp-";
constexpr std::size_t kMostOpenFolders = 32;  // folders, from the deepest up
constexpr std::size_t kCopyStep = 1 << 20;
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// Calls `visit` with each name in a folder but "." and ".."; ends when it returns false.
template <class Visit>
Result<void> for_each_name(int folder, const std::string& path, Visit visit) {
  const int own = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const list = own < 0 ? nullptr : ::fdopendir(own);
  if (list == nullptr) {
    auto trouble = file_trouble(path, "read");
    if (own >= 0) ::close(own);
    return trouble;
  }
  while (const dirent* const entry = ::readdir(list)) {
    const std::string_view name(entry->d_name);
    if (name != "." && name != ".." && !visit(name)) break;
  }
  ::closedir(list);
  return {};
}

// The folder whose making failed, of those that a path goes through.
std::string first_missing(const std::string& path) {
  std::filesystem::path whole;
  for (const std::filesystem::path& part : std::filesystem::path(path)) {
    whole /= part;
    std::error_code failed;
    if (!std::filesystem::exists(whole, failed)) break;
  }
  return whole.string();
}

std::string_view mirror_leaf(std::string_view path) noexcept { return path.substr(path.rfind('/') + 1); }

}  // namespace

Descriptor::~Descriptor() {
  if (value_ >= 0) ::close(value_);
}

// --- the mirror's folder ---------------------------------------------------------------------------------------------

Result<std::unique_ptr<MirrorFolder>> MirrorFolder::open(const std::string& path) {
  std::unique_ptr<MirrorFolder> folder(new MirrorFolder(path.empty() ? "." : path));
  if (auto opened = folder->open_all(); !opened) return std::unexpected(std::move(opened.error()));
  return folder;
}

std::string MirrorFolder::name_of(std::string_view name) const {
  return fmt::format("{}{}{}", path_, path_.ends_with('/') ? "" : "/", name);
}

Result<void> MirrorFolder::open_all() {
  std::error_code made;
  std::filesystem::create_directories(path_, made);
  root_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root_) {
    if (errno == ENOTDIR) return fail(Errc::wrong_format, fmt::format("{}: not a folder", path_));
    if (!made) return file_trouble(path_, "opened");
    const std::string missing = first_missing(path_);
    errno = made.value();
    return file_trouble(missing, "made");
  }
  const std::string own(kOwn), blobs(kBlobs);
  own_ = Descriptor(::openat(root(), own.c_str(), kFolderFlags));
  if (!own_) {
    if (errno != ENOENT) return file_trouble(name_of(kOwn), "opened");
    if (auto empty = check_empty(); !empty) return empty;
    if (::mkdirat(root(), own.c_str(), 0777) != 0 && errno != EEXIST) return file_trouble(name_of(kOwn), "made");
    own_ = Descriptor(::openat(root(), own.c_str(), kFolderFlags));
    if (!own_) return file_trouble(name_of(kOwn), "opened");
  }
  index_ = Descriptor(::openat(this->own(), "index", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!index_) return file_trouble(name_of(kOwn), "written to");
  if (::flock(index(), LOCK_EX | LOCK_NB) != 0) {
    return fail(Errc::busy, fmt::format("{}: another argiope writes this mirror", path_));
  }
  if (::mkdirat(this->own(), blobs.c_str(), 0777) != 0 && errno != EEXIST)
    return file_trouble(name_of(kOwn), "written to");
  blobs_ = Descriptor(::openat(this->own(), blobs.c_str(), kFolderFlags));
  if (!blobs_) return file_trouble(name_of(kOwn), "opened");
  remove_leavings();
  return {};
}

// Empty: there is none.
Result<std::string> MirrorFolder::first_other_name() const {
  std::string found;
  auto read = for_each_name(root(), path_, [&](std::string_view name) {
    if (name != kOwn) found = name;
    return found.empty();
  });
  if (!read) return std::unexpected(std::move(read.error()));
  return found;
}

Result<void> MirrorFolder::check_empty() const {
  const auto found = first_other_name();
  if (!found) return std::unexpected(found.error());
  if (found->empty()) return {};
  return fail(Errc::wrong_format,
              fmt::format("{}: has files, {} for one, and is no mirror of argiope's; give a new or an empty folder",
                          path_, *found));
}

Result<bool> MirrorFolder::is_bare() const {
  auto found = first_other_name();
  if (!found) return std::unexpected(std::move(found.error()));
  return found->empty();
}

// Removes the files that a killed process had not finished.
void MirrorFolder::remove_leavings() const {
  for (const int folder : {own(), blobs()}) {
    std::vector<std::string> left;
    (void)for_each_name(folder, path_, [&](std::string_view name) {
      if (name.starts_with(kMirrorTemporary)) left.emplace_back(name);
      return true;
    });
    for (const std::string& name : left) ::unlinkat(folder, name.c_str(), 0);
  }
}

Result<std::optional<std::string>> MirrorFolder::read_own(const std::string& name) const {
  const Descriptor file(::openat(own(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  const std::string shown = name_of(fmt::format("{}/{}", kOwn, name));
  if (!file) {
    if (errno == ENOENT) return std::optional<std::string>();
    return file_trouble(shown, "opened");
  }
  std::string bytes;
  constexpr std::size_t kStep = 1 << 16;
  while (true) {
    const std::size_t before = bytes.size();
    bytes.resize(before + kStep);
    const ssize_t count = ::read(file.get(), bytes.data() + before, kStep);
    if (count < 0 && errno != EINTR) return file_trouble(shown, "read");
    bytes.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) return std::optional(std::move(bytes));
  }
}

Result<void> MirrorFolder::write_own(const std::string& name, std::string_view bytes, bool sync) const {
  const std::string shown = name_of(fmt::format("{}/{}", kOwn, name));
  const std::string temporary = fmt::format("{}{}", kMirrorTemporary, name);
  {
    const Descriptor file(
        ::openat(own(), temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!file) return file_trouble(shown, "written");
    if (auto written = write_all(file.get(), bytes, 0, shown); !written) return written;
    if (sync && ::fsync(file.get()) != 0) return file_trouble(shown, "brought to the disk");
  }
  if (::renameat(own(), temporary.c_str(), own(), name.c_str()) != 0) return file_trouble(shown, "written");
  if (sync && ::fsync(own()) != 0) return file_trouble(shown, "brought to the disk");
  return {};
}

// --- its files -------------------------------------------------------------------------------------------------------

MirrorFiles::MirrorFiles(const MirrorFolder& folder, unsigned number)
    : folder_(folder), temporary_(fmt::format("{}{}", kMirrorTemporary, number)) {}

// How many of the folders at the front of `path` are open, from the root on.
std::size_t MirrorFiles::open_part(std::string_view path) const noexcept {
  std::size_t count = 0;
  for (std::size_t at = 0; count < open_.size(); ++count) {
    const std::string& name = open_[count].name;
    if (path.substr(at, name.size()) != name || path.substr(at + name.size(), 1) != "/") break;
    at += name.size() + 1;
  }
  return count > 0 && !open_[count - 1].descriptor ? 0 : count;
}

Result<int> MirrorFiles::folder_of(std::string_view path, bool make) {
  open_.resize(open_part(path));
  std::size_t at = 0;
  for (const OpenFolder& folder : open_) at += folder.name.size() + 1;
  for (std::size_t slash = 0; (slash = path.find('/', at)) != std::string_view::npos; at = slash + 1) {
    OpenFolder next{std::string(path.substr(at, slash - at)), Descriptor()};
    const std::string_view shown = path.substr(0, slash);
    const int above = last_open();
    const auto open_it = [&] { return Descriptor(::openat(above, next.name.c_str(), kFolderFlags)); };
    next.descriptor = open_it();
    if (!next.descriptor && errno == ENOENT && make) {
      if (::mkdirat(above, next.name.c_str(), 0777) != 0 && errno != EEXIST)
        return file_trouble(folder_.name_of(shown), "made");
      next.descriptor = open_it();
    }
    if (!next.descriptor) {
      if (!make && (errno == ENOENT || errno == ENOTDIR)) return -1;
      if (errno != ENOTDIR && errno != ELOOP) return file_trouble(folder_.name_of(shown), "opened");
      return fail(Errc::wrong_format,
                  fmt::format("{}: in the way: a file or a link, and no folder of this mirror; move it elsewhere",
                              folder_.name_of(shown)));
    }
    open_.push_back(std::move(next));
    if (open_.size() > kMostOpenFolders) open_[open_.size() - kMostOpenFolders - 1].descriptor = Descriptor();
  }
  return last_open();
}

Result<bool> MirrorFiles::exists(std::string_view path) {
  const auto folder = folder_of(path, false);
  if (!folder) return std::unexpected(folder.error());
  if (*folder < 0) return false;
  struct stat found {};
  const std::string leaf(mirror_leaf(path));
  if (::fstatat(*folder, leaf.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0) return true;
  if (errno == ENOENT) return false;
  return file_trouble(folder_.name_of(path), "looked at");
}

Result<bool> MirrorFiles::holds(std::string_view path, std::string_view bytes) {
  const auto folder = folder_of(path, false);
  if (!folder) return std::unexpected(folder.error());
  if (*folder < 0) return false;
  const std::string leaf(mirror_leaf(path));
  const Descriptor file(::openat(*folder, leaf.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat found {};
  if (!file || ::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) return false;
  if (static_cast<std::uint64_t>(found.st_size) != bytes.size()) return false;
  buffer_.resize(bytes.size());
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count = ::read(file.get(), buffer_.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return buffer_ == bytes;
}

Result<void> MirrorFiles::write(std::string_view path, std::string_view bytes) {
  const auto folder = folder_of(path, true);
  if (!folder) return std::unexpected(folder.error());
  {
    const Descriptor file(
        ::openat(folder_.own(), temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!file) return file_trouble(folder_.name_of(path), "written");
    if (auto written = write_all(file.get(), bytes, 0, folder_.name_of(path)); !written) return written;
  }
  const std::string leaf(mirror_leaf(path));
  if (::renameat(folder_.own(), temporary_.c_str(), *folder, leaf.c_str()) != 0) {
    return file_trouble(folder_.name_of(path), "written");
  }
  return {};
}

Result<bool> MirrorFiles::place_blob(std::string_view path, std::string_view digest) {
  const auto folder = folder_of(path, true);
  if (!folder) return std::unexpected(folder.error());
  const std::string leaf(mirror_leaf(path));
  const std::string blob(digest);
  struct stat kept {
  }, placed{};
  if (::fstatat(folder_.blobs(), blob.c_str(), &kept, AT_SYMLINK_NOFOLLOW) != 0) {
    return file_trouble(folder_.name_of(path), "made of what was kept for it");
  }
  const bool is_there = ::fstatat(*folder, leaf.c_str(), &placed, AT_SYMLINK_NOFOLLOW) == 0;
  if (is_there && placed.st_ino == kept.st_ino && placed.st_dev == kept.st_dev) return false;
  ::unlinkat(folder_.own(), temporary_.c_str(), 0);
  if (::linkat(folder_.blobs(), blob.c_str(), folder_.own(), temporary_.c_str(), 0) != 0) {
    if (is_there && is_copy_of(*folder, leaf, blob)) return false;
    if (auto copied = copy_blob(blob); !copied) return std::unexpected(std::move(copied.error()));
  }
  if (::renameat(folder_.own(), temporary_.c_str(), *folder, leaf.c_str()) != 0) {
    return file_trouble(folder_.name_of(path), "written");
  }
  return true;
}

bool MirrorFiles::is_copy_of(int folder, const std::string& leaf, const std::string& digest) const {
  const Descriptor files[] = {
      Descriptor(::openat(folder_.blobs(), digest.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)),
      Descriptor(::openat(folder, leaf.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC))};
  std::string steps[2];
  for (std::uint64_t at = 0;;) {
    for (std::size_t i = 0; i < 2; ++i) {
      steps[i].resize(kCopyStep);
      const ssize_t count = ::pread(files[i].get(), steps[i].data(), kCopyStep, static_cast<off_t>(at));
      if (count < 0) return false;
      steps[i].resize(static_cast<std::size_t>(count));
    }
    if (steps[0] != steps[1]) return false;
    if (steps[0].empty()) return true;
    at += steps[0].size();
  }
}

// To the temporary name.
Result<void> MirrorFiles::copy_blob(const std::string& digest) {
  const std::string shown = folder_.name_of(fmt::format("{}/{}/{}", MirrorFolder::kOwn, MirrorFolder::kBlobs, digest));
  const Descriptor from(::openat(folder_.blobs(), digest.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  const Descriptor to(
      ::openat(folder_.own(), temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!from || !to) return file_trouble(shown, "copied");
  std::string step(kCopyStep, '\0');
  for (std::uint64_t done = 0;;) {
    const ssize_t count = ::read(from.get(), step.data(), step.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_trouble(shown, "copied");
    if (count == 0) return {};
    const std::string_view bytes(step.data(), static_cast<std::size_t>(count));
    if (auto written = write_all(to.get(), bytes, done, shown); !written) return written;
    done += bytes.size();
  }
}

Result<void> MirrorFiles::remove(std::string_view path) {
  auto folder = folder_of(path, false);
  if (!folder) return std::unexpected(folder.error());
  if (*folder < 0) return {};
  const std::string leaf(mirror_leaf(path));
  if (::unlinkat(*folder, leaf.c_str(), 0) != 0 && errno != ENOENT && errno != EISDIR) {
    return file_trouble(folder_.name_of(path), "removed");
  }
  while (!open_.empty()) {
    const std::string name = std::move(open_.back().name);
    open_.pop_back();
    const int above = last_open();
    if (::unlinkat(above, name.c_str(), AT_REMOVEDIR) != 0) break;
  }
  return {};
}

}  // namespace argiope
