#include "warc/internal/warc_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace argiope {
namespace {

constexpr std::string_view kPackedSuffix = ".warc.gz", kPlainSuffix = ".warc";
constexpr std::size_t kNumberDigits = 5;

}  // namespace

WarcNames::WarcNames(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash != std::string_view::npos) folder_ = path.substr(0, slash + 1);
  std::string_view name = path.substr(folder_.size());
  is_packed_ = !name.ends_with(kPlainSuffix);
  suffix_ = is_packed_ ? kPackedSuffix : kPlainSuffix;
  if (name.ends_with(suffix_)) name.remove_suffix(suffix_.size());
  stem_ = name;
}

std::string WarcNames::numbered(std::uint32_t number) const {
  return fmt::format("{}-{:0{}}{}", stem_, number, kNumberDigits, suffix_);
}

std::uint32_t WarcNames::number_of(std::string_view file) const noexcept {
  if (!file.starts_with(stem_) || !file.ends_with(suffix_) ||
      file.size() < stem_.size() + 1 + kNumberDigits + suffix_.size()) {
    return 0;
  }
  const std::string_view digits = file.substr(stem_.size() + 1, file.size() - stem_.size() - 1 - suffix_.size());
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_one = file[stem_.size()] == '-' && error == std::errc{} && end == digits.data() + digits.size();
  return is_one ? number : 0;
}

Result<std::vector<std::string>> WarcNames::there() const {
  std::vector<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder_.empty() ? "." : folder_, error), end; !error && it != end;
       it.increment(error)) {
    std::string name = it->path().filename().string();
    std::error_code trouble;
    if (it->is_symlink(trouble) && !it->exists(trouble)) continue;  // a link to nothing: what is written makes the file
    if (name == single() || number_of(name) > 0) found.push_back(std::move(name));
  }
  if (error) return fail(Errc::io, fmt::format("folder {}: {}", folder_.empty() ? "." : folder_, error.message()));
  std::ranges::sort(found, {}, [&](const std::string& name) { return number_of(name); });
  return found;
}

}  // namespace argiope
