#include "cli/file_kind.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "base/internal/printable.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostSniffedBytes = 64 * 1024;
constexpr std::string_view kFileBlanks = " \t\r\n";
constexpr std::string_view kMinutes = "0123456789*/,-";
constexpr std::string_view kOtherFields = "0123456789*/,-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view kOfNames = "0123456789_-.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

// --- what it is

std::string beginning_of(const std::string& path) {
  // Not blocking: between stat() and here it may have become a pipe.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) return {};
  std::string text(kMostSniffedBytes, '\0');
  const ssize_t count = ::read(descriptor, text.data(), text.size());
  ::close(descriptor);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

std::string_view past_blanks(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text.substr(std::min(text.find_first_not_of(kFileBlanks), text.size()));
}

// each(line), without blanks around it, until it returns true: of those that are neither empty nor a comment.
template <class Each>
void until_told(std::string_view text, Each each) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    line = past_blanks(line);
    if (!line.empty() && line.front() != '#' && each(line.substr(0, line.find_last_not_of(kFileBlanks) + 1))) return;
  }
}

std::string_view first_line(std::string_view text) {
  std::string_view first;
  until_told(text, [&](std::string_view line) { return first = line, true; });
  return first;
}

bool is_script(const std::string& path, std::string_view text) {
  constexpr std::array<std::string_view, 6> kEndings{".py", ".js", ".mjs", ".cjs", ".ts", ".sh"};
  return text.starts_with("#!") ||
         std::ranges::find(kEndings, std::filesystem::path(path).extension().native()) != kEndings.end();
}

bool is_html(std::string_view text) {
  constexpr std::array<std::string_view, 4> kBeginnings{"<!doctype html", "<html", "<head", "<body"};
  return std::ranges::any_of(kBeginnings,
                             [&](std::string_view beginning) { return starts_with_lower(text, beginning); });
}

bool is_archive(const std::string& path, std::string_view text) {
  return starts_with_lower(text, "warc/") || (text.starts_with("\x1f\x8b") && path.ends_with(".warc.gz"));
}

// A list in TOML's brackets is the head of a table: a list in JSON is told by the object in it.
bool is_json(std::string_view text) {
  if (text.starts_with('{')) return true;
  return text.starts_with('[') && past_blanks(text.substr(1)).starts_with('{');
}

bool is_urls(std::string_view text) {
  const std::string_view line = first_line(text);
  return (starts_with_lower(line, "http://") || starts_with_lower(line, "https://")) &&
         line.find(' ') == std::string_view::npos;
}

// "30 3 * * mon-fri command" or "@daily command".
bool is_entry_of_cron(std::string_view line) {
  constexpr std::array<std::string_view, 8> kNames{"@reboot ", "@yearly ", "@annually ", "@monthly ",
                                                   "@weekly ", "@daily ",  "@midnight ", "@hourly "};
  if (std::ranges::any_of(kNames, [&](std::string_view name) { return line.starts_with(name); })) return true;
  for (int field = 0; field < 5; ++field) {
    const std::size_t end = line.find_first_of(" \t");
    if (end == std::string_view::npos) return false;
    if (line.substr(0, end).find_first_not_of(field == 0 ? kMinutes : kOtherFields) != std::string_view::npos)
      return false;
    line = past_blanks(line.substr(end));
  }
  return !line.empty();
}

bool is_crontab(std::string_view text) {
  bool is_one = false;
  until_told(text, [&](std::string_view line) {
    is_one = is_entry_of_cron(line);
    const std::size_t sign = line.find('=');  // MAILTO=ann@example.org
    const bool is_variable =
        sign != std::string_view::npos && line.find_first_of(kFileBlanks) > sign && line.front() != '[';
    return is_one || !is_variable;
  });
  return is_one;
}

// By the tables that only one of our formats has.
FileKind kind_of_toml(std::string_view text) {
  constexpr std::array<std::string_view, 6> kConfiguration{"[serve]",    "[[queue]]",   "[[schedule]]",
                                                           "[[notify]]", "[[project]]", "[projects]"};
  FileKind kind = FileKind::unknown;
  until_told(text, [&](std::string_view line) {
    const std::string_view head = line.substr(0, line.find_last_of(']') + 1);
    if (head == "[project]") kind = FileKind::project;
    if (std::ranges::find(kConfiguration, head) != kConfiguration.end()) kind = FileKind::configuration;
    if (kind == FileKind::unknown && (head == "[crawl]" || head == "[[host]]")) kind = FileKind::crawl_settings;
    if (kind == FileKind::unknown && head == "[[rule]]") kind = FileKind::rules;
    return kind == FileKind::project || kind == FileKind::configuration;
  });
  return kind;
}

// --- what is said of it

struct KindInWords {
  FileKind kind;
  std::string_view is, taken_by;
};

constexpr KindInWords kKinds[] = {
    {FileKind::folder, "a folder", "name a file in it"},
    {FileKind::database, "a database of SQLite",
     "argiope crawl status -d FILE takes that of a crawl, argiope project status -d FILE that of projects, argiope job "
     "list --store sqlite:FILE that of jobs"},
    {FileKind::archive, "a WARC archive", "argiope crawl replay FILE takes it"},
    {FileKind::html, "a page of HTML", "argiope crawl URL reads pages from where they are served"},
    {FileKind::json, "JSON", "argiope schedule import FILE takes schedules, argiope job put --file FILE jobs"},
    {FileKind::script, "a script", "the file of a project names it (docs/projects.md)"},
    {FileKind::crontab, "a crontab", "docs/from-cron.md says how its lines become schedules"},
    {FileKind::urls, "a list of URLs", "argiope crawl --input-file FILE takes it"},
    {FileKind::project, "a project", "argiope project run FILE takes it"},
    {FileKind::configuration, "a configuration", "argiope serve FILE takes it"},
    {FileKind::rules, "a file of rules", "argiope crawl URL --extract FILE takes it"},
    {FileKind::crawl_settings, "a file of settings", "argiope crawl URL --config FILE takes it"},
};

const KindInWords& in_words(FileKind kind) { return *std::ranges::find(kKinds, kind, &KindInWords::kind); }

// The project that runs the script.
std::string project_of_script(const std::string& path) {
  const std::filesystem::path file(path);
  const std::string ending = file.extension();
  const bool is_javascript = ending == ".js" || ending == ".mjs" || ending == ".cjs";
  const std::string_view runner = ending == ".py" ? R"("python3", "-m", "argiope.processor", )"
                                  : is_javascript ? R"("node", )"
                                                  : "";
  const std::string own = runner.empty() && !file.has_parent_path() ? "./" + path : path;
  std::string name = file.stem();
  std::ranges::replace_if(
      name, [](char one) { return kOfNames.find(one) == std::string_view::npos; }, '-');
  return fmt::format("[project]\nname = {}\nprocessor = [{}{}]", in_quotes(name), runner, in_quotes(own));
}

Error is_other(FileKind kind, const std::string& path, FileKind wanted) {
  if (kind == FileKind::script && wanted == FileKind::project) {
    return {Errc::invalid_input, fmt::format("{}: this is a script; a project is a TOML file that names it:\n{}",
                                             printable(path), project_of_script(path))};
  }
  const KindInWords& words = in_words(kind);
  return {Errc::invalid_input, fmt::format("{}: this is {}, and not {}; {}", printable(path), words.is,
                                           in_words(wanted).is, words.taken_by)};
}

}  // namespace

FileKind kind_of_file(const std::string& path) {
  struct ::stat status {};
  if (::stat(path.c_str(), &status) != 0) return FileKind::unknown;
  if (S_ISDIR(status.st_mode)) return FileKind::folder;
  if (!S_ISREG(status.st_mode)) return FileKind::unknown;
  const std::string text = beginning_of(path);
  const std::string_view told = past_blanks(text);
  if (text.starts_with(std::string_view("SQLite format 3\0", 16))) return FileKind::database;
  if (is_archive(path, text)) return FileKind::archive;
  if (is_script(path, text)) return FileKind::script;
  if (is_html(told)) return FileKind::html;
  if (is_json(told)) return FileKind::json;
  if (is_urls(told)) return FileKind::urls;
  return is_crontab(told) ? FileKind::crontab : kind_of_toml(told);
}

std::optional<Error> other_kind(const std::string& path, FileKind wanted) {
  const FileKind kind = kind_of_file(path);
  if (kind == wanted || kind == FileKind::unknown) return std::nullopt;
  return is_other(kind, path, wanted);
}

Error with_file_kind(Error error, const std::string& path, FileKind wanted) {
  const FileKind kind = kind_of_file(path);
  if (kind == wanted || kind == FileKind::unknown) return error;
  if (kind < FileKind::project) return is_other(kind, path, wanted);
  error.message += fmt::format("; it looks like {}: {}", in_words(kind).is, in_words(kind).taken_by);
  return error;
}

}  // namespace argiope
