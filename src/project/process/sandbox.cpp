#include "project/process/internal/sandbox.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "argiope/async/stream.hpp"
#include "base/internal/file_reading.hpp"
#include "base/internal/printable.hpp"
#include "project/process/internal/system_call_filter.hpp"

extern char** environ;

namespace argiope {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kSandboxKinds{"none", "basic", "strict"};
constexpr std::array<const char*, 3> kProgramFolders{"/usr/local/bin", "/usr/bin", "/bin"};
// The shell opens what it is given first for what follows, which takes its place: a child has its three descriptors
// alone otherwise.
constexpr const char* kOpenAsThree = "exec 3<\"$0\" && exec \"$@\"";
constexpr const char* kOpenedAsThree = "/proc/self/fd/3";
// The kernel takes ten such changes a second from all without rights; where it has no such groups there is nothing to
// be done.
constexpr const char* kLowSession =
    "for i in 1 2 3 4 5; do [ -w /proc/self/autogroup ] || break; { echo 10 >/proc/self/autogroup; } 2>/dev/null && "
    "break; sleep 0.1; done; "
    "exec \"$0\" \"$@\"";
constexpr const char* kProgramPath = "PATH=/usr/local/bin:/usr/bin:/bin";
constexpr std::size_t kMostSecretBytes = 64 * 1024;
constexpr std::size_t kLeastSecretBytes = 8;
constexpr uid_t kFirstOwnUser = 61'184;  // systemd's DynamicUser= takes of these
constexpr uid_t kOwnUsers = 4'336;
constexpr uid_t kBetweenPrograms = 2'681;  // about the golden section of them, and coprime

// Of the system, what programs need to run. In many systems the short ones are links into /usr.
constexpr const char* kSystemFolders[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};
constexpr const char* kSystemFiles[] = {"/etc/alternatives", "/etc/ld.so.cache",    "/etc/ld.so.conf",
                                        "/etc/ld.so.conf.d", "/etc/localtime",      "/etc/timezone",
                                        "/etc/mime.types",   "/etc/ssl/openssl.cnf"};

using Words = std::vector<std::string>;

void add(Words& to, const Words& words) { to.insert(to.end(), words.begin(), words.end()); }

// `inner` is `outer`, or in it. Both absolute and without "..".
bool lies_in(const std::string& inner, const std::string& outer) {
  return inner == outer || outer == "/" || (inner.starts_with(outer) && inner[outer.size()] == '/');
}

// As the kernel will find it; as it is written, where it is not there.
std::string resolved(const fs::path& path) {
  std::error_code ignored;
  const fs::path found = fs::weakly_canonical(path, ignored);
  std::string text = (ignored ? path.lexically_normal() : found).string();
  if (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

std::string absolute_folder(const std::string& directory) {
  std::error_code ignored;
  return resolved(directory.empty() ? fs::current_path(ignored) : fs::absolute(directory, ignored));
}

bool is_root() { return ::geteuid() == 0; }

// Whether any user gets as far as to `folder`, which an absolute path names.
bool all_may_reach(const std::string& folder) {
  for (fs::path above = fs::path(folder).parent_path();; above = above.parent_path()) {
    struct stat status {};
    if (::stat(above.c_str(), &status) != 0 || (status.st_mode & S_IXOTH) == 0) return false;
    if (above == above.root_path()) return true;
  }
}

// Root's home is closed to the users that root's scripts run as. Files there are opened before rights are given up.
bool opens_helper(const SandboxOptions& options) {
  return options.kind == SandboxKind::basic && is_root() && options.python_path.starts_with('/') &&
         fs::is_directory(options.python_path) && !all_may_reach(options.python_path);
}

// A home directory, or a folder that many share.
bool is_broad(const std::string& folder) {
  if (std::ranges::count(folder, '/') < 2 || folder == "/var/tmp" || folder == "/dev/shm") return true;
  if (fs::path(folder).parent_path() == "/home") return true;
  if (const char* const home = std::getenv("HOME"); home != nullptr && *home == '/' && lies_in(resolved(home), folder))
    return true;
  const passwd* const we = ::getpwuid(::geteuid());
  return we != nullptr && we->pw_dir != nullptr && *we->pw_dir == '/' && lies_in(resolved(we->pw_dir), folder);
}

// --- environment

void set_variable(Words& environment, std::string_view name, std::string_view value) {
  std::erase_if(environment, [&](std::string_view entry) { return entry.substr(0, entry.find('=')) == name; });
  environment.push_back(fmt::format("{}={}", name, value));
}

Result<Words> environment_of_script(const SandboxOptions& options, std::vector<std::string>& secrets) {
  Words environment;
  if (options.kind == SandboxKind::none) {
    for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  } else {
    environment = {kProgramPath, "LANG=C.UTF-8", "HOME=/tmp", "TMPDIR=/tmp", "PYTHONSAFEPATH=1"};
  }
  set_variable(environment, "PYTHONUNBUFFERED", "1");
  if (!options.python_path.empty())
    set_variable(environment, "PYTHONPATH", opens_helper(options) ? kOpenedAsThree : options.python_path);
  for (const auto& [name, value] : options.environment) set_variable(environment, name, value);
  for (const SandboxSecret& secret : options.secrets) {
    Result<std::string> value = read_secret(secret);
    if (!value) return std::unexpected(value.error());
    set_variable(environment, secret.name, *value);
    secrets.push_back(std::move(*value));
  }
  return environment;
}

// --- bounds

// Processes and threads of our user, which the kernel counts together.
std::uint64_t threads_of_our_user() {
  std::uint64_t count = 0;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    struct stat status {};
    if (::stat(entry.path().c_str(), &status) != 0 || status.st_uid != ::geteuid()) continue;
    std::ifstream file(entry.path() / "status");
    for (std::string word; file >> word;) {
      if (word != "Threads:") continue;
      std::uint64_t threads = 0;
      if (file >> threads) count += threads;
      break;
    }
  }
  return count;
}

// Debian's util-linux: prlimit, setpriv, choom; its coreutils: nice.
Result<std::string> tool(const char* name, SandboxKind kind) {
  Result<std::string> found = find_program(name);
  if (found) return found;
  const std::string_view program = name;
  const std::string_view package = program == "bwrap" ? "bubblewrap" : program == "nice" ? "coreutils" : "util-linux";
  return fail(Errc::unsupported, fmt::format("the sandbox \"{}\" needs {} ({}): install it, or choose another sandbox",
                                             to_string(kind), package, found.error().message));
}

// Another Argiope's may be taken at the same time, whose processes would count with ours: those of programs that were
// started one after the other begin far from each other.
uid_t next_own_user() {
  static std::atomic<uid_t> count = static_cast<uid_t>(::getpid()) * kBetweenPrograms % kOwnUsers;
  return kFirstOwnUser + count++ % kOwnUsers;
}

// A user of its own where we are root, and no way back to rights.
Result<Words> without_rights(SandboxKind kind) {
  const Result<std::string> setpriv = tool("setpriv", kind);
  if (!setpriv) return std::unexpected(setpriv.error());
  Words words{*setpriv, "--no-new-privs"};
  if (is_root()) {
    const std::string user = std::to_string(next_own_user());
    add(words, {"--reuid", user, "--regid", user, "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"});
  }
  return words;
}

// Others' programs go first; beside one that wants a whole processor it still gets a tenth of it, so that it can get
// well.
Result<Words> priority(const SandboxOptions& options) {
  if (!options.is_low) return Words{};
  const Result<std::string> nice = tool("nice", options.kind);
  if (!nice) return std::unexpected(nice.error());
  Words words;
  // A session of its own, as strict has, is what the kernel may share time among first; without it the others' programs
  // gain nothing.
  if (options.kind == SandboxKind::strict) add(words, {"/bin/sh", "-c", kLowSession});
  add(words, {*nice, "-n", "10", "--"});
  return words;
}

// The kernel ends a script before others when memory runs out.
Result<Words> bounds(const SandboxOptions& options, std::uint64_t processes) {
  const Result<std::string> choom = tool("choom", options.kind);
  if (!choom) return std::unexpected(choom.error());
  const Result<std::string> prlimit = tool("prlimit", options.kind);
  if (!prlimit) return std::unexpected(prlimit.error());
  Result<Words> words = priority(options);
  if (!words) return words;
  add(*words, {*choom, "-n", "1000", "--", *prlimit, fmt::format("--as={}", options.memory_bytes),
               fmt::format("--nproc={}", processes), fmt::format("--fsize={}", options.file_bytes),
               fmt::format("--nofile={}", options.open_files), "--core=0", "--memlock=65536", "--msgqueue=0", "--"});
  return words;
}

// --- basic

Result<Words> confine_basically(const Words& command, const SandboxOptions& options) {
  Words words;
  if (opens_helper(options)) add(words, {"/bin/sh", "-c", kOpenAsThree, options.python_path});
  const Result<Words> rights = without_rights(options.kind);
  if (!rights) return rights;
  add(words, *rights);
  const Result<Words> bounded = bounds(options, options.processes + (is_root() ? 0 : threads_of_our_user()));
  if (!bounded) return bounded;
  add(words, *bounded);
  add(words, command);
  return words;
}

// --- strict

// The part of our files that a script sees.
class SandboxView {
 public:
  explicit SandboxView(const SandboxOptions& options) {
    for (const char* const folder : {"/etc", "/etc/ssl"}) add(words_, {"--dir", folder});
    for (const std::string& path : options.hidden) {
      for (const char* const beside : {"", "-wal", "-shm", "-journal"}) hidden_.push_back(resolved(path + beside));
    }
    for (const char* const folder : kSystemFolders) show_system_folder(folder);
    for (const char* const file : kSystemFiles) add(words_, {"--ro-bind-try", file, file});
  }

  // A path that was asked for by name.
  Result<void> show(const std::string& asked) {
    if (!asked.starts_with('/'))
      return fail(Errc::invalid_input, fmt::format("readable {}: not an absolute path", in_quotes(asked)));
    const std::string path = resolved(asked);
    if (::access(path.c_str(), F_OK) != 0)
      return fail(Errc::not_found, fmt::format("readable {}: {}", in_quotes(asked), std::strerror(errno)));
    if (const std::string* const held = hidden_in(path)) {
      return fail(Errc::refused,
                  fmt::format("readable {}: it holds {}, which no script must see", in_quotes(asked), *held));
    }
    bind(path, asked);
    return {};
  }
  // The script: with its folder where that can be.
  Result<void> show_script(const std::string& script, Words& notes) {
    const std::string folder = fs::path(script).parent_path();
    const std::string* const held = hidden_in(folder);
    if (held == nullptr && !is_broad(folder)) {
      bind(folder, folder);
      return {};
    }
    if (auto shown = show_file(script); !shown) return shown;
    notes.push_back(
        fmt::format("the script sees no other files of {}, {}: put it into a folder of its own if it needs some",
                    folder, held != nullptr ? "where Argiope keeps its pages" : "which holds more than the script's"));
    return {};
  }
  Result<void> show_file(const std::string& file) {
    if (hidden_in(file) != nullptr)
      return fail(Errc::refused, fmt::format("the command names {}, which no script must see", in_quotes(file)));
    bind(file, file);
    return {};
  }
  bool shows(const std::string& path) const {
    return std::ranges::any_of(shown_, [&](const std::string& shown) { return lies_in(path, shown); });
  }
  const Words& words() const noexcept { return words_; }

 private:
  void show_system_folder(const char* folder) {
    std::error_code ignored;
    if (fs::is_symlink(folder, ignored)) {
      add(words_, {"--symlink", fs::read_symlink(folder, ignored).string(), folder});
    } else if (fs::is_directory(folder, ignored)) {
      add(words_, {"--ro-bind", folder, folder});
      shown_.push_back(folder);
    }
  }
  // Folders on the way that bubblewrap made for a file would be closed to a user of its own.
  void bind(const std::string& path, const std::string& as) {
    add(words_, {"--dir", fs::path(as).parent_path().string(), "--ro-bind", path, as});
    shown_.push_back(path);
    if (as != path) shown_.push_back(as);
  }
  const std::string* hidden_in(const std::string& path) const {
    const auto found = std::ranges::find_if(
        hidden_, [&](const std::string& hidden) { return lies_in(hidden, path) || lies_in(path, hidden); });
    return found == hidden_.end() ? nullptr : &*found;
  }

  Words hidden_;
  Words words_;
  Words shown_;
};

// As root the script's user is neither its owner nor of its group.
Result<void> check_others_may_read(const std::string& script) {
  struct stat status {};
  const std::string folder = fs::path(script).parent_path();
  const auto lacks = [&](const std::string& path, mode_t needed) {
    return ::stat(path.c_str(), &status) == 0 && (status.st_mode & needed) != needed;
  };
  if (lacks(script, S_IROTH)) {
    return fail(
        Errc::refused,
        fmt::format("{}: only its owner may read it, and the scripts of a root run as users of their own: chmod o+r",
                    script));
  }
  if (lacks(folder, S_IXOTH)) {
    return fail(
        Errc::refused,
        fmt::format("{}: only its owner may enter it, and the scripts of a root run as users of their own: chmod o+rx",
                    folder));
  }
  return {};
}

Result<void> find_in_sandbox(const std::string& program, const SandboxView& view, const std::string& directory) {
  if (program.contains('/')) {
    const fs::path path = program.starts_with('/') ? fs::path(program) : fs::path(directory) / program;
    if (::access(path.c_str(), X_OK) != 0)
      return fail(Errc::not_found, fmt::format("command {}: {}", in_quotes(program), std::strerror(errno)));
    // The target of a link may be shown where the link is not, as in a virtual environment.
    const fs::path place = fs::path(resolved(path.parent_path())) / path.filename();
    if (view.shows(path.lexically_normal()) || view.shows(place)) return {};
    return fail(Errc::not_found, fmt::format("command {}: the sandbox \"strict\" does not show it to the script; name "
                                             "its folder in `readable` of [project]",
                                             in_quotes(program)));
  }
  for (const char* const folder : kProgramFolders) {
    if (::access((fs::path(folder) / program).c_str(), X_OK) == 0) return {};
  }
  return fail(Errc::not_found, fmt::format("command {}: there is no such program in /usr/local/bin, /usr/bin and /bin, "
                                           "where the sandbox \"strict\" looks",
                                           in_quotes(program)));
}

// Tells the obstacles that are known before trying; bubblewrap tells the rest.
Result<void> check_namespaces() {
  if (is_root()) return {};
  for (const char* const path : {"/proc/sys/user/max_user_namespaces", "/proc/sys/kernel/unprivileged_userns_clone"}) {
    std::uint64_t most = 0;
    if (std::ifstream(path) >> most && most == 0) {
      return fail(Errc::unsupported,
                  fmt::format("the sandbox \"strict\" needs user namespaces, and {} is 0 on this machine", path));
    }
  }
  return {};
}

Result<SandboxView> view_of(const Words& command, const std::string& directory, const SandboxOptions& options,
                            Words& notes) {
  SandboxView view(options);
  for (const std::string& path : options.readable) {
    if (const Result<void> shown = view.show(path); !shown) return std::unexpected(shown.error());
  }
  if (!options.python_path.empty()) {
    if (const Result<void> shown = view.show(options.python_path); !shown) return std::unexpected(shown.error());
  }
  bool is_script = true;
  for (const std::string& file : files_of_command(command, directory)) {
    if (view.shows(file)) continue;
    // As if it were not there: even that would be told.
    if (options.shows_own_folder_alone && !lies_in(file, directory)) continue;
    if (is_root()) {
      if (const Result<void> readable = check_others_may_read(file); !readable)
        return std::unexpected(readable.error());
    }
    if (const Result<void> shown = is_script ? view.show_script(file, notes) : view.show_file(file); !shown)
      return std::unexpected(shown.error());
    is_script = false;
  }
  if (const Result<void> found = find_in_sandbox(command[0], view, directory); !found)
    return std::unexpected(found.error());
  return view;
}

Words private_folder(const char* path, std::uint64_t bytes) {
  return {"--perms", "1777", "--size", std::to_string(bytes), "--tmpfs", path};
}

Words bubblewrap(const std::string& program, const SandboxView& view, const std::string& directory,
                 const SandboxOptions& options) {
  Words words{
      program,      "--unshare-pid", "--unshare-net",     "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
      "--hostname", "argiope",       "--die-with-parent", "--new-session", "--proc",        "/proc",
      "--dev",      "/dev"};
  // Root changes to a user of the script's own, who has no rights in any namespace; others get one namespace, and no
  // further ones.
  if (is_root()) {
    add(words, {"--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"});
  } else {
    add(words, {"--unshare-user", "--disable-userns"});
  }
  add(words, private_folder("/dev/shm", options.tmp_bytes));
  add(words, private_folder("/tmp", options.tmp_bytes));
  add(words, view.words());
  if (!view.shows(directory)) add(words, {"--dir", directory});
  add(words, {"--remount-ro", "/dev", "--remount-ro", "/", "--chdir", directory, "--seccomp", "3", "--"});
  return words;
}

Result<Words> confine_strictly(const Words& command, const std::string& directory, const SandboxOptions& options,
                               Words& notes) {
  if (const Result<void> allowed = check_namespaces(); !allowed) return std::unexpected(allowed.error());
  const Result<std::string> bwrap = tool("bwrap", options.kind);
  if (!bwrap) return std::unexpected(bwrap.error());
  const Result<std::string> filter = system_call_filter();
  if (!filter) return std::unexpected(filter.error());
  const Result<SandboxView> view = view_of(command, directory, options, notes);
  if (!view) return std::unexpected(view.error());
  const Result<Words> rights = without_rights(options.kind);
  if (!rights) return rights;
  const Result<Words> bounded = bounds(options, options.processes);
  if (!bounded) return bounded;
  Words words{"/bin/sh", "-c", kOpenAsThree, *filter};
  add(words, bubblewrap(*bwrap, *view, directory, options));
  add(words, *rights);
  add(words, *bounded);
  add(words, command);
  return words;
}

}  // namespace

std::string_view to_string(SandboxKind kind) noexcept { return kSandboxKinds[static_cast<std::size_t>(kind)]; }

Result<SandboxKind> parse_sandbox_kind(std::string_view text) {
  const auto found = std::ranges::find(kSandboxKinds, text);
  if (found != kSandboxKinds.end()) return static_cast<SandboxKind>(found - kSandboxKinds.begin());
  return fail(Errc::invalid_input,
              fmt::format("sandbox {}: one of \"none\", \"basic\" and \"strict\"", in_quotes(text)));
}

std::vector<std::string> files_of_command(const std::vector<std::string>& command, const std::string& directory) {
  const fs::path folder = absolute_folder(directory);
  std::vector<std::string> files;
  for (std::size_t i = 0; i < command.size(); ++i) {
    // A program without a slash is looked for in PATH.
    if (command[i].empty() || (i == 0 && !command[i].contains('/'))) continue;
    std::error_code ignored;
    const fs::path path = folder / command[i];
    if (fs::is_regular_file(path, ignored)) files.push_back(resolved(path));
  }
  return files;
}

std::vector<std::string> missing_scripts(const std::vector<std::string>& command, const std::string& directory) {
  constexpr std::string_view kScriptEndings[] = {".py", ".js", ".mjs", ".cjs", ".ts",
                                                 ".sh", ".rb", ".pl",  ".php", ".lua"};
  const fs::path folder = absolute_folder(directory);
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i];
    const bool is_program = i == 0 && word.contains('/');
    const bool is_script =
        i > 0 && !word.starts_with('-') &&
        std::ranges::find(kScriptEndings, fs::path(word).extension().string()) != std::end(kScriptEndings);
    std::error_code ignored;
    if ((is_program || is_script) && !fs::exists(folder / word, ignored)) missing.push_back(word);
  }
  return missing;
}

Result<std::string> read_secret(const SandboxSecret& secret) {
  if (secret.name.empty() || secret.name.find_first_of(std::string_view("=\0", 2)) != std::string::npos) {
    return fail(Errc::invalid_input, fmt::format("secret {}: not a variable's name", in_quotes(secret.name)));
  }
  const auto checked = [&](std::string value, const std::string& where) -> Result<std::string> {
    if (value.size() >= kLeastSecretBytes) return value;
    return fail(Errc::invalid_input,
                fmt::format("secret {}: {} has less than {} bytes: no log could be kept free of it",
                            in_quotes(secret.name), where, kLeastSecretBytes));
  };
  if (secret.file.empty()) {
    const char* const value = std::getenv(secret.name.c_str());
    if (value != nullptr) return checked(value, "Argiope's variable");
    return fail(Errc::not_found,
                fmt::format("secret {}: there is no such variable in Argiope's environment", in_quotes(secret.name)));
  }
  const auto told = [&](const Error& error) {
    return fail(error.code, fmt::format("secret {}: {}: {}", in_quotes(secret.name), secret.file, error.message));
  };
  const auto file = InputFile::open(secret.file, FileReading::again);
  if (!file) return told(file.error());
  struct stat status {};
  if (::fstat(file->descriptor(), &status) == 0 && (status.st_mode & (S_IROTH | S_IWOTH)) != 0) {
    return fail(Errc::refused, fmt::format("secret {}: {}: others may read it; chmod o= {} ends that",
                                           in_quotes(secret.name), secret.file, secret.file));
  }
  const auto text = file->read_text(kMostSecretBytes);
  if (!text) return told(text.error());
  std::string value = *text;
  while (value.ends_with('\n') || value.ends_with('\r')) value.pop_back();
  if (value.contains('\0'))
    return fail(Errc::invalid_input, fmt::format("secret {}: {} has a null byte", in_quotes(secret.name), secret.file));
  return checked(std::move(value), secret.file);
}

Result<SandboxedCommand> confine(const std::vector<std::string>& command, const std::string& directory,
                                 const SandboxOptions& options) {
  if (command.empty() || command[0].empty()) return fail(Errc::invalid_input, "a processor without a command");
  SandboxedCommand confined;
  Result<Words> environment = environment_of_script(options, confined.secrets);
  if (!environment) return std::unexpected(environment.error());
  confined.environment = std::move(*environment);
  confined.working_directory = absolute_folder(directory);
  Result<Words> args;
  if (options.kind == SandboxKind::none) {
    args = priority(options);
    if (args) add(*args, command);
  }
  if (options.kind == SandboxKind::basic) args = confine_basically(command, options);
  if (options.kind == SandboxKind::strict)
    args = confine_strictly(command, confined.working_directory, options, confined.notes);
  if (!args) return std::unexpected(args.error());
  confined.args = std::move(*args);
  // A null byte ends a text early for the kernel.
  for (const Words* words : {&confined.args, &*confined.environment}) {
    for (const std::string& word : *words) {
      if (word.contains('\0'))
        return fail(Errc::invalid_input, fmt::format("the command {} has a null byte", in_quotes(command[0])));
    }
  }
  return confined;
}

}  // namespace argiope
