#include "crawl/save/mirror_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "argiope/base/random.hpp"
#include "argiope/web/url.hpp"

namespace argiope {
namespace {

std::uint64_t folded_mirror_name(std::string_view path) { return fingerprint(folded_path(path)); }

// The mirror's own folder is nobody's.
std::string mirror_path(const MirrorRecord& record) {
  const auto url = Url::parse(record.url);
  if (!url) return {};
  std::string path = file_path(*url, record.type);
  if (folded_path(path).starts_with(MirrorFolder::kOwn)) path.insert(0, 1, '_');
  return path;
}

}  // namespace

MirrorPlan::MirrorPlan(const MirrorIndex& index) : index_(index) {
  name_all();
  std::ranges::sort(names_, {}, &Name::folded);
  for (std::size_t first = 0; first < names_.size();) {
    std::size_t last = first + 1;
    while (last < names_.size() && names_[last].folded == names_[first].folded) ++last;
    const bool is_folder = taken_.contains(names_[first].folded);
    if (last - first > 1 || is_folder) settle(std::span(names_).subspan(first, last - first), is_folder);
    first = last;
  }
  names_ = {};
  taken_.clear();
  digest_ = digest_of_all();
}

void MirrorPlan::name_all() {
  std::string last_folder;
  for (const MirrorIndex::Entry& entry : index_.entries()) {
    const MirrorRecord record = index_.at(entry.place);
    if (!record.is_file()) continue;
    const std::string path = mirror_path(record);
    if (path.empty()) continue;
    names_.push_back({folded_mirror_name(path), static_cast<std::uint32_t>(files_.size())});
    files_.push_back({entry.url, entry.place, paths_.size(), static_cast<std::uint32_t>(path.size())});
    paths_ += path;
    const std::string_view folder = std::string_view(path).substr(0, path.rfind('/'));
    if (folder == last_folder) continue;
    last_folder = folder;
    for (std::size_t end = folder.size(); end != std::string_view::npos; end = folder.rfind('/', end - 1)) {
      if (!taken_.insert(folded_mirror_name(folder.substr(0, end)))) break;
    }
  }
}

// Files of one path: one has it, unless a folder does.
void MirrorPlan::settle(std::span<Name> rivals, bool is_folder) {
  std::ranges::sort(rivals, [this](const Name& a, const Name& b) {
    const std::string_view left = url_of(files_[a.file]), right = url_of(files_[b.file]);
    return left.size() != right.size() ? left.size() < right.size() : left < right;
  });
  for (const Name& name : is_folder ? rivals : rivals.subspan(1)) {
    File& file = files_[name.file];
    const std::string path = free_path(file);
    taken_.insert(folded_mirror_name(path));
    file.path = paths_.size();
    file.path_size = static_cast<std::uint32_t>(path.size());
    paths_ += path;
  }
}

std::string MirrorPlan::free_path(const File& file) const {
  const std::string mark = content_digest(url_of(file));
  std::string path;
  for (std::size_t digits = 8; digits <= mark.size(); digits += 8) {
    path = marked_path(path_of(file), std::string_view(mark).substr(0, digits));
    const std::uint64_t folded = folded_mirror_name(path);
    const bool is_free = !taken_.contains(folded) && !std::ranges::binary_search(names_, folded, {}, &Name::folded);
    if (is_free) break;
  }
  return path;
}

const MirrorPlan::File* MirrorPlan::find(std::uint64_t url) const noexcept {
  const auto found = std::ranges::lower_bound(files_, url, {}, &File::url);
  return found != files_.end() && found->url == url ? &*found : nullptr;
}

std::uint64_t MirrorPlan::digest_of_all() const {
  std::uint64_t digest = 0;
  for (const File& file : files_) digest += mix64(fingerprint(path_of(file), file.url));
  for (const MirrorIndex::Entry& entry : index_.entries()) {
    const MirrorRecord record = index_.at(entry.place);
    if (record.what == MirrorRecord::What::redirect) digest += mix64(fingerprint(record.location, entry.url));
  }
  return digest;
}

}  // namespace argiope
