// How what a URL leads to is called as a file: the path below a folder of its own, safe on Linux, Windows and macOS,
// and readable; and how one such file names another.
//
// The functions here are pure and know one URL at a time. That no two URLs get one path is the care of who keeps many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/web/url.hpp"
#include "web/html/internal/page_references.hpp"

namespace argiope {

// The kind of a file, as far as its name has to say so: a browser that opens a file has no Content-Type.
enum class FileKind : std::uint8_t { html, xhtml, css, script, svg, picture, media, font, data };

struct FileType {
  FileKind kind = FileKind::data;
  // Put behind a name whose own extension says something else; without the dot, and valid for ever. Empty: none is
  // needed.
  std::string_view extension{};
};

// By the Content-Type of an answer; without one by the first bytes, then by the URL.
FileType type_of_answer(const Url& url, std::string_view content_type, std::string_view body);
// The type that is likely at a URL that has not been asked: by its extension, or by what it is wanted for. None where
// neither says anything. A link without an extension is a page.
std::optional<FileType> guess_type(const Url& url, ReferenceRole role);

// "host/folder/name.html": where what is at `url` belongs if it is of that type. Of parts of letters, digits and a few
// signs, and of letters of other alphabets; the rest is as %XX. A query stands behind an '@', in front of the
// extension.
//
// Never empty, never absolute, without "." and ".." and empty parts; no part is longer than 200 bytes, and the whole no
// longer than a thousand: what is cut is replaced by a hash of it. Equal arguments give equal paths.
std::string file_path(const Url& url, const FileType& type);
// Whether a browser takes the file for what it is.
bool name_fits(std::string_view path, const FileType& type) noexcept;
// The path with `mark` in the name of the file, or of its folder number `folder` from 0: "a/b.html" is "a/b~mark.html".
// As long as the mark is short, no part becomes longer than the 255 bytes that file systems take.
std::string marked_path(std::string_view path, std::string_view mark, std::optional<std::size_t> folder = std::nullopt);

// Equal for paths that name one file where case or the way to write an accent counts for nothing.
std::string folded_path(std::string_view path);

// A relative URL that leads from the file `from` to the file `to`, both as file_path() gives them.
std::string relative_reference(std::string_view from, std::string_view to);
// The same place for a browser, whatever else of it is as %XX.
bool is_same_reference(std::string_view written, std::string_view reference);

// A URL that stands for the folder; what is relative in the file `path` is resolved against saved_url(path).
std::string saved_url(std::string_view path);
// The path of the file that a URL so resolved leads to; nullopt: it leads out of the folder.
std::optional<std::string> saved_path(const Url& url);

}  // namespace argiope
