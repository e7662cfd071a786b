#include "web/text/internal/media_type_names.hpp"

#include <algorithm>
#include <iterator>

#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::size_t kLongestMediaExtension = 8;

struct NamedType {
  std::string_view extension, type;
};
// In order of the extensions. The types are those of Debian's /etc/mime.types, of what sites have.
constexpr NamedType kNamedTypes[] = {
    {"7z", "application/x-7z-compressed"},
    {"apk", "application/vnd.android.package-archive"},
    {"avi", "video/x-msvideo"},
    {"avif", "image/avif"},
    {"bin", "application/octet-stream"},
    {"bmp", "image/bmp"},
    {"bz2", "application/x-bzip2"},
    {"css", "text/css"},
    {"csv", "text/csv"},
    {"deb", "application/vnd.debian.binary-package"},
    {"dmg", "application/x-apple-diskimage"},
    {"doc", "application/msword"},
    {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {"eot", "application/vnd.ms-fontobject"},
    {"epub", "application/epub+zip"},
    {"exe", "application/x-msdownload"},
    {"flac", "audio/flac"},
    {"gif", "image/gif"},
    {"gz", "application/gzip"},
    {"ico", "image/vnd.microsoft.icon"},
    {"iso", "application/x-iso9660-image"},
    {"jar", "application/java-archive"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript"},
    {"json", "application/json"},
    {"m4a", "audio/mp4"},
    {"m4v", "video/x-m4v"},
    {"mjs", "text/javascript"},
    {"mkv", "video/x-matroska"},
    {"mov", "video/quicktime"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"mpeg", "video/mpeg"},
    {"mpg", "video/mpeg"},
    {"msi", "application/x-msi"},
    {"odp", "application/vnd.oasis.opendocument.presentation"},
    {"ods", "application/vnd.oasis.opendocument.spreadsheet"},
    {"odt", "application/vnd.oasis.opendocument.text"},
    {"ogg", "audio/ogg"},
    {"ogv", "video/ogg"},
    {"otf", "font/otf"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"ppt", "application/vnd.ms-powerpoint"},
    {"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
    {"ps", "application/postscript"},
    {"rar", "application/vnd.rar"},
    {"rpm", "application/x-redhat-package-manager"},
    {"rtf", "application/rtf"},
    {"svg", "image/svg+xml"},
    {"tar", "application/x-tar"},
    {"tgz", "application/x-gtar-compressed"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"ttf", "font/ttf"},
    {"wav", "audio/x-wav"},
    {"webm", "video/webm"},
    {"webp", "image/webp"},
    {"wmv", "video/x-ms-wmv"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"xls", "application/vnd.ms-excel"},
    {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    {"xz", "application/x-xz"},
    {"zip", "application/zip"},
    {"zst", "application/zstd"},
};
static_assert(std::ranges::is_sorted(kNamedTypes, {}, &NamedType::extension));

}  // namespace

std::string_view extension_of(std::string_view name) noexcept {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return {};
  const std::string_view extension = name.substr(dot + 1);
  const bool is_one = extension.size() <= kLongestMediaExtension && std::ranges::all_of(extension, is_alnum) &&
                      std::ranges::any_of(extension, is_alpha);
  return is_one ? extension : std::string_view{};
}

std::string_view media_type_of_extension(std::string_view extension) noexcept {
  char lower[kLongestMediaExtension];
  if (extension.empty() || extension.size() > sizeof lower) return {};
  const std::string_view wanted(
      lower, static_cast<std::size_t>(std::ranges::transform(extension, lower, to_lower).out - lower));
  const auto found = std::ranges::lower_bound(kNamedTypes, wanted, {}, &NamedType::extension);
  return found != std::end(kNamedTypes) && found->extension == wanted ? found->type : std::string_view{};
}

}  // namespace argiope
