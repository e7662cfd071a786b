#include "cli/command_files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/internal/output_file.hpp"
#include "base/internal/output_place.hpp"
#include "base/internal/printable.hpp"
#include "cli/error_advice.hpp"
#include "cli/kept_file.hpp"
#include "crawl/save/internal/mirror_place.hpp"
#include "warc/internal/warc_names.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBesideDatabase[] = {"-wal", "-shm", "-journal"};

bool is_no_file(const std::string& path) { return path.empty() || path == ":memory:"; }

bool is_plain_descriptor(int descriptor) {
  struct stat found {};
  return ::fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode);
}

// Whether a file system may take two names for one: their bytes say it, but for case and for what is not ASCII.
bool may_be_one_name(std::string_view one, std::string_view other) {
  const auto is_ascii = [](unsigned char c) { return c < 0x80; };
  if (!std::ranges::all_of(one, is_ascii) || !std::ranges::all_of(other, is_ascii)) return true;
  return equals_ignoring_case(one, other);
}

// A folder says it of a file that is made for this question.
bool folder_takes_for_one(const std::string& one, const std::string& other) {
  const std::string ending = fmt::format(".try-{}", ::getpid());
  std::string made;
  std::FILE* const file = open_beside(one, ending, 0600, made);
  if (file == nullptr) return false;
  const bool is_first = made == one + ending;
  const bool is_one = is_first && file_number_of(other + ending) == file_number_of(::fileno(file));
  std::fclose(file);
  std::remove(made.c_str());
  return is_one;
}

// How many folders deep in `folder` a file is, from 1 on; 0: it is not in it.
int depth_in(const FileNumber& folder, const std::string& path) {
  std::error_code failed;
  fs::path place = fs::weakly_canonical(fs::absolute(path, failed), failed).parent_path();
  for (int depth = 1; !failed && !place.empty(); ++depth) {
    if (file_number_of(place.string()) == folder) return depth;
    if (place == place.root_path()) return 0;
    place = place.parent_path();
  }
  return 0;
}

}  // namespace

std::string CommandFiles::Entry::shown() const {
  return path.empty() ? option : fmt::format("{} {}", option, printable(path));
}

// Only plain files have one use alone.
void CommandFiles::find(Entry& entry) const {
  const auto place = find_output_place(entry.path);
  if (!place) return;
  const int descriptor = entry.path == "-" && entry.use == Use::read ? STDIN_FILENO : place->descriptor;
  entry.place = place->path;
  if (descriptor >= 0) {
    entry.by_descriptor = true;
    if (is_plain_descriptor(descriptor)) entry.file = file_number_of(descriptor);
  } else if (place->kind == OutputPlace::Kind::fresh || place->is_file) {
    if (place->is_file) entry.file = file_number_of(place->path);
    entry.folder = file_number_of(folder_holding(place->path));
    entry.name = fs::path(place->path).filename().string();
  }
}

CommandFiles::Entry& CommandFiles::add(std::string option, const std::string& path, Use use) {
  Entry& entry = entries_.emplace_back();
  entry.option = std::move(option);
  entry.path = path;
  entry.use = use;
  find(entry);
  return entry;
}

// Of what `option` names; `file` is one of those beside it.
void CommandFiles::add_beside(const std::string& option, const std::string& path, const std::string& file, Use use) {
  Entry& entry = add(option, file, use);
  entry.is_named = false;
  entry.path = path;
}

void CommandFiles::reads(std::string option, const std::string& path, std::string renewed_by) {
  if (is_no_file(path)) return;
  add(std::move(option), path, Use::read).renewed_by = std::move(renewed_by);
}

void CommandFiles::keeps(std::string option, const std::string& path) {
  if (!is_no_file(path)) add(std::move(option), path, Use::written);
}

void CommandFiles::add_database(std::string option, const std::string& path, Use use) {
  if (is_no_file(path)) return;
  const std::string place = add(option, path, use).place;
  for (const char* const ending : kBesideDatabase)
    add_beside(option, path, (place.empty() ? path : place) + ending, use);
}

void CommandFiles::reads_database(std::string option, const std::string& path) {
  add_database(std::move(option), path, Use::read);
}
void CommandFiles::keeps_database(std::string option, const std::string& path) {
  databases_.emplace_back(option, path);
  add_database(std::move(option), path, Use::written);
}

void CommandFiles::keeps_archive(std::string option, const std::string& path) {
  if (is_no_file(path)) return;
  const WarcNames names(path);
  std::vector<std::string> files = names.there().value_or(std::vector<std::string>{});
  if (std::ranges::find(files, names.single()) == files.end()) files.push_back(names.single());
  for (const std::string& file : files) add_beside(option, path, names.folder() + file, Use::written);
  entries_.back().has = [names](const std::string& name) { return names.number_of(name) > 0; };
  add_beside(option, path, names.index(), Use::written);
}

void CommandFiles::keeps_mirror(std::string option, const std::string& folder) {
  if (folder.empty()) return;
  std::error_code ignored;
  for (const fs::directory_entry& file : fs::directory_iterator(fs::path(folder) / kMirrorOwnFolder, ignored)) {
    if (file.is_regular_file(ignored)) add_beside(option, folder, file.path().string(), Use::written);
  }
  mirrors_.emplace_back(std::move(option), folder);
}

void CommandFiles::add_at_the_end(std::string option, const std::string& path, OutputFile::Readers readers) {
  if (is_no_file(path)) return;
  at_the_end_.push_back({option, path, readers});
  add(std::move(option), path, Use::written);
}

void CommandFiles::writes(std::string option, const std::string& path) {
  add_at_the_end(std::move(option), path, OutputFile::Readers::all);
}

void CommandFiles::writes_secret(std::string option, const std::string& path) {
  add_at_the_end(std::move(option), path, OutputFile::Readers::owner);
}

void CommandFiles::writes_parts(std::string option, const std::string& path,
                                std::function<bool(const std::string& name)> is_part) {
  writes(std::move(option), path);
  if (!is_no_file(path)) entries_.back().has = std::move(is_part);
}

bool CommandFiles::may_share(const Entry& one, const Entry& other) {
  if (one.by_descriptor && other.by_descriptor && one.use == other.use) return true;
  if (one.use == Use::read && other.use == Use::read) return true;
  return one.renewed_by == other.option || other.renewed_by == one.option;
}

bool CommandFiles::are_same(const Entry& one, const Entry& other) {
  if (one.file && one.file == other.file) return true;
  if (!one.folder || one.folder != other.folder) return false;
  if ((one.has && one.has(other.name)) || (other.has && other.has(one.name))) return true;
  if (one.file || other.file) return false;
  if (one.name == other.name) return true;
  return may_be_one_name(one.name, other.name) && folder_takes_for_one(one.place, other.place);
}

Result<void> CommandFiles::check_mirrors() const {
  for (const auto& [option, folder] : mirrors_) {
    const auto number = file_number_of(folder);
    if (!number) continue;
    for (const Entry& entry : entries_) {
      if (entry.use == Use::read || entry.by_descriptor || entry.option == option || depth_in(*number, entry.place) < 2)
        continue;
      return fail(Errc::invalid_input,
                  fmt::format("{}: the folders in {} {} are the mirror's own; name a file beside them", entry.shown(),
                              option, printable(folder)));
    }
  }
  return {};
}

Result<void> CommandFiles::check() const {
  std::vector<Entry> all = entries_;
  for (const auto& [number, name] : {std::pair{STDOUT_FILENO, "standard output"}, {STDERR_FILENO, "standard error"}}) {
    if (!is_plain_descriptor(number)) continue;
    Entry& stream = all.emplace_back();
    stream.option = name;
    stream.use = Use::written;
    stream.by_descriptor = true;
    stream.file = file_number_of(number);
  }
  for (auto other = all.begin(); other != all.end(); ++other) {
    for (auto one = all.begin(); one != other; ++one) {
      const bool is_one_option =
          one->option == other->option && one->path == other->path && !(one->is_named && other->is_named);
      if (is_one_option || may_share(*one, *other) || !are_same(*one, *other)) continue;
      const bool first_is_named = one->is_named && !one->path.empty() && (!other->is_named || other->path.empty());
      const Entry& named = first_is_named ? *one : *other;
      const Entry& owner = first_is_named ? *other : *one;
      return fail(Errc::invalid_input,
                  owner.is_named ? fmt::format("{}: {} names the same file", named.shown(), owner.option)
                                 : fmt::format("{}: {} has this file for its own", named.shown(), owner.shown()));
    }
  }
  if (auto good = check_mirrors(); !good) return good;
  for (const auto& [option, file] : databases_) {
    auto good = check_kept_database(option, file);
    if (!good) return option == "--db" ? std::unexpected(with_database_option(std::move(good.error()), file)) : good;
  }
  for (const auto& [option, file, readers] : at_the_end_) {
    if (auto good = OutputFile::check(option, file, readers); !good) return good;
  }
  return {};
}

}  // namespace argiope
