#include "crawl/save/file_names.hpp"

#include <fmt/format.h>
#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/ustring.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/internal/fingerprint.hpp"
#include "base/internal/utf8.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/content_type.hpp"
#include "web/text/internal/lower_case.hpp"

namespace argiope {
namespace {

constexpr std::size_t kLongestPart = 196;     // less what an escape adds
constexpr std::size_t kLongestPath = 700;     // longer ones lose their inner folders
constexpr std::size_t kLongestFolders = 300;  // then
constexpr std::size_t kLongestExtension = 10;
constexpr std::string_view kSavedOrigin = "http://saved.invalid/";

// --- kinds

struct KnownExtension {
  std::string_view extension;
  FileKind kind;
};
constexpr KnownExtension kExtensions[] = {
    {"html", FileKind::html},        {"htm", FileKind::html},     {"xhtml", FileKind::xhtml},
    {"xht", FileKind::xhtml},        {"css", FileKind::css},      {"js", FileKind::script},
    {"mjs", FileKind::script},       {"cjs", FileKind::script},   {"svg", FileKind::svg},
    {"png", FileKind::picture},      {"jpg", FileKind::picture},  {"jpeg", FileKind::picture},
    {"gif", FileKind::picture},      {"webp", FileKind::picture}, {"avif", FileKind::picture},
    {"ico", FileKind::picture},      {"bmp", FileKind::picture},  {"apng", FileKind::picture},
    {"tif", FileKind::picture},      {"tiff", FileKind::picture}, {"jxl", FileKind::picture},
    {"jpe", FileKind::picture},      {"jfif", FileKind::picture}, {"cur", FileKind::picture},
    {"mp3", FileKind::media},        {"mp4", FileKind::media},    {"m4a", FileKind::media},
    {"m4v", FileKind::media},        {"ogg", FileKind::media},    {"oga", FileKind::media},
    {"ogv", FileKind::media},        {"opus", FileKind::media},   {"webm", FileKind::media},
    {"wav", FileKind::media},        {"flac", FileKind::media},   {"aac", FileKind::media},
    {"mov", FileKind::media},        {"avi", FileKind::media},    {"mkv", FileKind::media},
    {"mpg", FileKind::media},        {"mpeg", FileKind::media},   {"woff", FileKind::font},
    {"woff2", FileKind::font},       {"ttf", FileKind::font},     {"otf", FileKind::font},
    {"eot", FileKind::font},         {"pdf", FileKind::data},     {"txt", FileKind::data},
    {"xml", FileKind::data},         {"json", FileKind::data},    {"rss", FileKind::data},
    {"atom", FileKind::data},        {"zip", FileKind::data},     {"gz", FileKind::data},
    {"tgz", FileKind::data},         {"bz2", FileKind::data},     {"xz", FileKind::data},
    {"zst", FileKind::data},         {"7z", FileKind::data},      {"rar", FileKind::data},
    {"tar", FileKind::data},         {"iso", FileKind::data},     {"exe", FileKind::data},
    {"msi", FileKind::data},         {"dmg", FileKind::data},     {"deb", FileKind::data},
    {"rpm", FileKind::data},         {"apk", FileKind::data},     {"jar", FileKind::data},
    {"bin", FileKind::data},         {"doc", FileKind::data},     {"docx", FileKind::data},
    {"xls", FileKind::data},         {"xlsx", FileKind::data},    {"ppt", FileKind::data},
    {"pptx", FileKind::data},        {"odt", FileKind::data},     {"ods", FileKind::data},
    {"odp", FileKind::data},         {"rtf", FileKind::data},     {"csv", FileKind::data},
    {"tsv", FileKind::data},         {"epub", FileKind::data},    {"mobi", FileKind::data},
    {"ps", FileKind::data},          {"eps", FileKind::data},     {"tex", FileKind::data},
    {"md", FileKind::data},          {"rst", FileKind::data},     {"py", FileKind::data},
    {"c", FileKind::data},           {"h", FileKind::data},       {"cpp", FileKind::data},
    {"hpp", FileKind::data},         {"java", FileKind::data},    {"sh", FileKind::data},
    {"diff", FileKind::data},        {"patch", FileKind::data},   {"log", FileKind::data},
    {"sql", FileKind::data},         {"yaml", FileKind::data},    {"yml", FileKind::data},
    {"toml", FileKind::data},        {"ics", FileKind::data},     {"wasm", FileKind::data},
    {"map", FileKind::data},         {"vtt", FileKind::data},     {"swf", FileKind::data},
    {"asc", FileKind::data},         {"sig", FileKind::data},     {"inv", FileKind::data},
    {"webmanifest", FileKind::data},
};

std::optional<FileKind> kind_of_extension(std::string_view extension) noexcept {
  const auto found = std::ranges::find_if(
      kExtensions, [extension](const KnownExtension& known) { return equals_lower(extension, known.extension); });
  return found == std::end(kExtensions) ? std::nullopt : std::optional(found->kind);
}

struct KnownType {
  std::string_view type;  // with a '/' at its end: all of them
  FileType is;
};
// The first that fits counts.
constexpr KnownType kTypes[] = {
    {"text/html", {FileKind::html, "html"}},
    {"application/xhtml+xml", {FileKind::xhtml, "xhtml"}},
    {"text/css", {FileKind::css, "css"}},
    {"text/javascript", {FileKind::script, "js"}},
    {"application/javascript", {FileKind::script, "js"}},
    {"application/x-javascript", {FileKind::script, "js"}},
    {"text/ecmascript", {FileKind::script, "js"}},
    {"application/ecmascript", {FileKind::script, "js"}},
    {"image/svg+xml", {FileKind::svg, "svg"}},
    {"image/png", {FileKind::picture, "png"}},
    {"image/jpeg", {FileKind::picture, "jpg"}},
    {"image/gif", {FileKind::picture, "gif"}},
    {"image/webp", {FileKind::picture, "webp"}},
    {"image/avif", {FileKind::picture, "avif"}},
    {"image/x-icon", {FileKind::picture, "ico"}},
    {"image/vnd.microsoft.icon", {FileKind::picture, "ico"}},
    {"image/", {FileKind::picture, "img"}},
    {"audio/mpeg", {FileKind::media, "mp3"}},
    {"audio/ogg", {FileKind::media, "ogg"}},
    {"audio/wav", {FileKind::media, "wav"}},
    {"video/mp4", {FileKind::media, "mp4"}},
    {"video/webm", {FileKind::media, "webm"}},
    {"audio/", {FileKind::media, "audio"}},
    {"video/", {FileKind::media, "video"}},
    {"font/woff2", {FileKind::font, "woff2"}},
    {"font/woff", {FileKind::font, "woff"}},
    {"font/ttf", {FileKind::font, "ttf"}},
    {"font/", {FileKind::font, "font"}},
    {"application/font-woff", {FileKind::font, "woff"}},
    {"application/pdf", {FileKind::data, "pdf"}},
    {"application/json", {FileKind::data, "json"}},
    {"text/plain", {FileKind::data, "txt"}},
    {"text/xml", {FileKind::data, "xml"}},
    {"application/xml", {FileKind::data, "xml"}},
};

FileType default_type(FileKind kind) noexcept {
  switch (kind) {
    case FileKind::html: return {kind, "html"};
    case FileKind::xhtml: return {kind, "xhtml"};
    case FileKind::css: return {kind, "css"};
    case FileKind::script: return {kind, "js"};
    case FileKind::svg: return {kind, "svg"};
    default: return {kind, {}};
  }
}

std::string_view last_part(std::string_view path) noexcept { return path.substr(path.rfind('/') + 1); }

// Behind the last dot, if it looks like one; empty otherwise.
std::string_view extension_of(std::string_view name) noexcept {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return {};
  const std::string_view extension = name.substr(dot + 1);
  const bool looks_like_one =
      !extension.empty() && extension.size() <= kLongestExtension && std::ranges::all_of(extension, is_alnum);
  return looks_like_one ? extension : std::string_view{};
}

// Whether a file that is called so is taken for what it is.
bool extension_fits(std::string_view extension, const FileType& type) noexcept {
  const auto kind = extension.empty() ? std::nullopt : kind_of_extension(extension);
  switch (type.kind) {
    case FileKind::picture:
    case FileKind::media:
    case FileKind::font: return kind == type.kind || (type.extension.empty() && !kind) || extension == type.extension;
    // Anything but what a browser would show as a page.
    case FileKind::data:
      if (extension.empty()) return type.extension.empty();
      return kind != FileKind::html && kind != FileKind::xhtml && kind != FileKind::svg;
    default: return kind == type.kind;
  }
}

// --- names

// Beside letters and digits. No sign that Windows refuses, none that has a meaning in a URL's path or in a list of
// URLs.
constexpr std::string_view kSafeSigns = "-._~!$+=@&'(),; ";

void append_escaped(std::string_view bytes, std::string& out) {
  for (const char c : bytes) out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
}

// Letters, digits, marks, signs: what can be seen, and says the same wherever it stands.
bool is_visible(std::string_view character) noexcept {
  UChar32 c = 0;
  std::int32_t at = 0;
  U8_NEXT(character.data(), at, static_cast<std::int32_t>(character.size()), c);
  if (c < 0) return false;
  constexpr std::uint32_t kHidden = U_GC_C_MASK | U_GC_Z_MASK;
  return (U_MASK(u_charType(c)) & kHidden) == 0;
}

// Percent-encoded text of a URL, as a part of a file name. Escapes of what is safe are undone.
std::string as_name(std::string_view encoded) {
  const std::string bytes = percent_decode(encoded);
  std::string name;
  name.reserve(bytes.size());
  for (std::string_view rest = bytes; !rest.empty();) {
    const std::size_t length = std::max<std::size_t>(utf8_length(rest), 1);
    const std::string_view character = rest.substr(0, length);
    const char c = character.front();
    const bool safe = length > 1 ? is_visible(character) : is_alnum(c) || kSafeSigns.contains(c);
    if (safe) {
      name += character;
    } else {
      append_escaped(character, name);
    }
    rest.remove_prefix(length);
  }
  return name;
}

// Names that Windows gives to devices, whatever the extension.
bool is_device(std::string_view name) noexcept {
  std::string_view stem = name.substr(0, name.find('.'));
  while (stem.ends_with(' ')) stem.remove_suffix(1);
  for (const std::string_view device : {"con", "prn", "aux", "nul", "conin$", "conout$"}) {
    if (equals_lower(stem, device)) return true;
  }
  if (!starts_with_lower(stem, "com") && !starts_with_lower(stem, "lpt")) return false;
  stem.remove_prefix(3);
  return (stem.size() == 1 && is_digit(stem.front())) || stem == "\xc2\xb9" || stem == "\xc2\xb2" || stem == "\xc2\xb3";
}

std::string hash_of(std::string_view text) { return fmt::format("~{:016x}", fingerprint(text)); }

// At most kLongestPart bytes with what is `behind`; a hash takes the place of what is cut.
std::string cut_part(std::string_view name, std::string_view behind) {
  if (name.size() + behind.size() <= kLongestPart) return fmt::format("{}{}", name, behind);
  const std::string hash = hash_of(name);
  const std::size_t room = kLongestPart - hash.size() - std::min(behind.size(), kLongestExtension + 1);
  std::string_view kept = cut_between_characters(name, room);
  // Not through the middle of a %XX.
  if (const std::size_t escape = kept.rfind('%'); escape != std::string_view::npos && escape + 3 > kept.size()) {
    kept = kept.substr(0, escape);
  }
  return fmt::format("{}{}{}", kept, hash, behind);
}

// A name that no file system refuses, and no program takes for something else.
std::string sound_part(std::string name) {
  if (name.empty()) return "_";
  const auto escape_at = [&name](std::size_t at) {
    std::string escaped;
    append_escaped(name.substr(at, 1), escaped);
    name.replace(at, 1, escaped);
  };
  if (name.back() == '.' || name.back() == ' ') escape_at(name.size() - 1);
  if (name.front() == ' ' || name == "." || name == ".." || is_device(name)) escape_at(0);
  return name;
}

std::string folder_name(std::string_view encoded) { return sound_part(cut_part(as_name(encoded), "")); }

std::string leaf_name(const Url& url, const FileType& type) {
  const std::string_view encoded = last_part(url.pathname());
  std::string name = encoded.empty() ? "index" : as_name(encoded);
  const std::string query = url.search().empty() ? std::string{} : "@" + as_name(url.search().substr(1));
  std::string extension;
  if (const std::string_view own = extension_of(name); !own.empty() && extension_fits(own, type)) {
    extension = fmt::format(".{}", own);
    name.resize(name.size() - extension.size());
  } else if (!type.extension.empty()) {
    extension = fmt::format(".{}", type.extension);
  } else if (!extension_fits(extension_of(name + query), type)) {
    extension = ".bin";
  }
  return sound_part(cut_part(name + query, extension));
}

std::string folders_of(const Url& url) {
  std::string folders = as_name(url.host());
  if (!url.port().empty()) folders += fmt::format("+{}", url.port());
  folders = sound_part(cut_part(folders, ""));
  std::string_view path = url.pathname();
  path = path.substr(0, path.rfind('/') + 1);
  for (path.remove_prefix(std::min<std::size_t>(1, path.size())); !path.empty();) {
    const std::size_t slash = path.find('/');
    folders += "/" + folder_name(path.substr(0, slash));
    path.remove_prefix(slash + 1);
  }
  return folders;
}

// The folders that are kept of too many: the first ones, and a hash that stands for all.
std::string shortened_folders(const std::string& folders) {
  std::size_t end = 0;
  for (std::size_t slash = 0; (slash = folders.find('/', slash)) != std::string::npos && slash <= kLongestFolders;
       ++slash) {
    end = slash;
  }
  if (end == 0) end = folders.find('/');
  return folders.substr(0, end) + "/" + hash_of(folders);
}

const UNormalizer2* folding() {
  static const UNormalizer2* const normalizer = [] {
    UErrorCode status = U_ZERO_ERROR;
    return unorm2_getNFKCCasefoldInstance(&status);
  }();
  return normalizer;
}

std::string in_path_of_url(std::string_view path) {
  // As they may stand in a path, in an attribute, in CSS and in a list of candidates.
  constexpr std::string_view kPlainSigns = "-._~!$+=@/";
  std::string out;
  out.reserve(path.size());
  for (std::size_t at = 0; at < path.size(); ++at) {
    const char c = path[at];
    if (is_alnum(c) || kPlainSigns.contains(c)) {
      out += c;
    } else {
      append_escaped(path.substr(at, 1), out);
    }
  }
  return out;
}

}  // namespace

FileType type_of_answer(const Url& url, std::string_view content_type, std::string_view body) {
  const std::string_view type = parse_content_type(content_type).type;
  if (type.empty()) {
    if (sniff_is_html(body)) return default_type(FileKind::html);
    const auto kind = kind_of_extension(extension_of(last_part(url.pathname())));
    return default_type(kind && *kind != FileKind::html && *kind != FileKind::xhtml ? *kind : FileKind::data);
  }
  const auto found = std::ranges::find_if(kTypes, [type](const KnownType& known) {
    return known.type.ends_with('/') ? starts_with_lower(type, known.type) : equals_lower(type, known.type);
  });
  return found == std::end(kTypes) ? FileType{} : found->is;
}

std::optional<FileType> guess_type(const Url& url, ReferenceRole role) {
  if (const auto kind = kind_of_extension(extension_of(last_part(url.pathname())))) return default_type(*kind);
  if (role == ReferenceRole::stylesheet) return default_type(FileKind::css);
  if (role == ReferenceRole::script) return default_type(FileKind::script);
  if (is_asset(role)) return std::nullopt;
  return default_type(FileKind::html);
}

std::string file_path(const Url& url, const FileType& type) {
  std::string folders = folders_of(url);
  const std::string leaf = leaf_name(url, type);
  if (folders.size() + leaf.size() > kLongestPath) folders = shortened_folders(folders);
  return folders + "/" + leaf;
}

bool name_fits(std::string_view path, const FileType& type) noexcept {
  return extension_fits(extension_of(last_part(path)), type);
}

std::string marked_path(std::string_view path, std::string_view mark, std::optional<std::size_t> folder) {
  if (!folder) {
    const std::string_view name = last_part(path);
    const std::string_view extension = extension_of(name);
    const std::size_t at = path.size() - (extension.empty() ? 0 : extension.size() + 1);
    return fmt::format("{}~{}{}", path.substr(0, at), mark, path.substr(at));
  }
  std::size_t slash = path.find('/');
  for (std::size_t i = 0; i < *folder; ++i) slash = path.find('/', slash + 1);
  return fmt::format("{}~{}{}", path.substr(0, slash), mark, path.substr(slash));
}

std::string folded_path(std::string_view path) {
  if (std::ranges::all_of(path, [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    return in_lower_case(path);
  std::string folded(path);
  const UNormalizer2* const normalizer = folding();
  std::u16string wide(path.size(), u'\0');
  std::int32_t length = 0;
  UErrorCode status = U_ZERO_ERROR;
  u_strFromUTF8WithSub(wide.data(), static_cast<std::int32_t>(wide.size()), &length, path.data(),
                       static_cast<std::int32_t>(path.size()), 0xFFFD, nullptr, &status);
  if (U_FAILURE(status) || normalizer == nullptr) return folded;
  // A character becomes up to 18 units.
  std::u16string normal(static_cast<std::size_t>(length) * 18 + 1, u'\0');
  const std::int32_t normal_length = unorm2_normalize(normalizer, wide.data(), length, normal.data(),
                                                      static_cast<std::int32_t>(normal.size()), &status);
  if (U_FAILURE(status)) return folded;
  folded.resize(static_cast<std::size_t>(normal_length) * 3);
  std::int32_t bytes = 0;
  u_strToUTF8(folded.data(), static_cast<std::int32_t>(folded.size()), &bytes, normal.data(), normal_length, &status);
  folded.resize(static_cast<std::size_t>(bytes));
  return folded;
}

std::string relative_reference(std::string_view from, std::string_view to) {
  // The folders they share.
  std::size_t shared = 0;
  for (std::size_t i = 0; i < std::min(from.size(), to.size()) && from[i] == to[i]; ++i) {
    if (from[i] == '/') shared = i + 1;
  }
  std::string reference;
  for (const char c : from.substr(shared)) {
    if (c == '/') reference += "../";
  }
  return reference + in_path_of_url(to.substr(shared));
}

bool is_same_reference(std::string_view written, std::string_view reference) {
  if (written == reference) return true;
  if (written.find_first_of("?#\\:") != std::string_view::npos) return false;
  return percent_decode(written) == percent_decode(reference);
}

std::string saved_url(std::string_view path) { return std::string(kSavedOrigin) + in_path_of_url(path); }

std::optional<std::string> saved_path(const Url& url) {
  if (!url.href().starts_with(kSavedOrigin)) return std::nullopt;
  return percent_decode(url.pathname().substr(1));
}

}  // namespace argiope
