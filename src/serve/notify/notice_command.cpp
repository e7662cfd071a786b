#include "serve/notify/notice_command.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/internal/printable.hpp"
#include "serve/base/internal/usual_daemon.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::string_view kPlainInShells = "_-./:@+";

// One word of a shell's. Empty: it could be taken for an option, or no message can repeat it as it is.
std::string shell_word(std::string_view name) {
  if (name.empty() || name.starts_with('-') || printable(name) != name) return {};
  const bool is_plain =
      std::ranges::all_of(name, [](char c) { return is_alnum(c) || kPlainInShells.find(c) != std::string_view::npos; });
  if (is_plain) return std::string(name);
  std::string word = "'";
  for (const char c : name) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

// `words` of the subject's name. Empty where the name is no word.
std::string on_subject(std::string_view words, const Notice& notice) {
  const std::string name = shell_word(notice.subject);
  return name.empty() ? std::string() : fmt::format("{} {}", words, name);
}

std::string on_jobs(const Notice& notice) {
  return notice.jobs.empty() ? std::string() : fmt::format("argiope job show {}", notice.jobs.front());
}

std::string command_of(const Notice& notice) {
  switch (notice.trouble) {
    case Trouble::buried: {
      const std::string listed =
          notice.count == 1 ? std::string() : on_subject("argiope job list --state buried", notice);
      return listed.empty() ? on_jobs(notice) : listed;
    }
    case Trouble::expired: return on_jobs(notice);
    case Trouble::missed: return on_subject("argiope schedule history", notice);
    case Trouble::failed: {
      const bool is_of_run = notice.run != 0 || !notice.jobs.empty();
      return on_subject(is_of_run || notice.is_over ? "argiope schedule history" : "argiope schedule explain", notice);
    }
    case Trouble::findings: return notice.run == 0 ? on_jobs(notice) : on_subject("argiope schedule history", notice);
    case Trouble::depth:
    case Trouble::age: return on_subject("argiope job stats --queue", notice);
    case Trouble::alarm:
    case Trouble::paused: return on_subject("argiope project status", notice);
    case Trouble::daemon: return {};
  }
  return {};
}

// Projects are looked for in a file, unless a daemon is named.
bool is_of_project(Trouble trouble) { return trouble == Trouble::alarm || trouble == Trouble::paused; }

}  // namespace

std::string command_for(const Notice& notice, std::string_view daemon) {
  if (notice.is_over && notice.text == kGone) return {};
  std::string command = command_of(notice);
  const bool is_found = daemon == kUsualDaemon && !is_of_project(notice.trouble);
  if (!command.empty() && !daemon.empty() && !is_found) command += fmt::format(" --store {}", daemon);
  return command;
}

}  // namespace argiope
