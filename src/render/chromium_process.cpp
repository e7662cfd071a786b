// Chromium as a child of ours: its command line, its folder, and its end.
#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "argiope/async/detail/future.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/stream.hpp"
#include "argiope/render/page_renderer.hpp"
#include "base/internal/printable.hpp"
#include "document/internal/css_selector.hpp"
#include "render/browser_process.hpp"

namespace argiope {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBrowserNames[] = {"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"};
constexpr std::string_view kFolderPrefix = "argiope-browser-";
constexpr const char* kFolderLock = "lock";
constexpr std::size_t kMostLastWords = 4096;
// Everything that we send is taken before the next is written, but for small messages.
constexpr std::size_t kMostUnsent = std::size_t{256} << 20;

// The protocol's pipes are descriptors 3 and 4 of the browser. Where the system lets us, it gets a network of its own,
// which has no interfaces, so that what the options below forget cannot leave it either. One process alone gets no more
// memory than $1
// KiB: the page that wants more crashes, and no other.
constexpr const char* kStartScript =
    "exec 3<&0 4>&1 </dev/null >/dev/null\n"
    "ulimit -d $1; shift\n"
    "if unshare $0 true 2>/dev/null; then exec unshare $0 -- \"$@\"; fi\n"
    "exec \"$@\"\n";

// A process's writable memory, in KiB: memory that it only keeps in reserve is counted too, some 700 MiB of a page.
std::string data_limit(std::uint64_t memory_limit) {
  constexpr std::uint64_t kReserve = std::uint64_t{1} << 30;
  return std::to_string((memory_limit + kReserve) / 1024);
}

const char* unshare_options() { return ::geteuid() == 0 ? "-n" : "-cn"; }

// A temporary folder that goes with its owner. A lock in it tells it from those of processes that were killed.
class BrowserFolder {
 public:
  BrowserFolder() {
    const fs::path base = fs::temp_directory_path();
    remove_leftovers(base);
    std::string name = (base / (std::string(kFolderPrefix) + "XXXXXX")).string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(),
                              fmt::format("no folder for the browser in {}", base.string()));
    }
    path_ = name;
    lock_ = ::open((path_ / kFolderLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock_ >= 0) ::flock(lock_, LOCK_EX | LOCK_NB);
  }
  BrowserFolder(const BrowserFolder&) = delete;
  BrowserFolder& operator=(const BrowserFolder&) = delete;
  ~BrowserFolder() { remove(); }

  std::string file(const char* name) const { return (path_ / name).string(); }
  const std::string path() const { return path_.string(); }
  void remove() noexcept {
    if (path_.empty()) return;
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    path_.clear();
    if (lock_ >= 0) ::close(lock_);
    lock_ = -1;
  }

 private:
  // Of processes of ours that were killed before they could remove them.
  static void remove_leftovers(const fs::path& base) {
    std::error_code ignored;
    for (fs::directory_iterator entry(base, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
      if (!entry->path().filename().string().starts_with(kFolderPrefix) || !entry->is_directory(ignored)) continue;
      const int lock = ::open((entry->path() / kFolderLock).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
      if (lock < 0) continue;  // another user's, or it is just being made
      if (::flock(lock, LOCK_EX | LOCK_NB) == 0) fs::remove_all(entry->path(), ignored);
      ::close(lock);
      ignored.clear();
    }
  }

  fs::path path_;
  int lock_ = -1;
};

// Nothing of our own environment reaches scripts' neighbour but where programs lie.
std::vector<std::string> environment_in(const BrowserFolder& folder) {
  const char* const path = ::getenv("PATH");
  std::vector<std::string> environment{fmt::format("PATH={}", path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin"),
                                       "LANG=C.UTF-8",
                                       "DBUS_SESSION_BUS_ADDRESS=disabled:", "DBUS_SYSTEM_BUS_ADDRESS=disabled:"};
  for (const char* const name : {"HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"}) {
    environment.push_back(fmt::format("{}={}", name, folder.path()));
  }
  return environment;
}

class ChromiumProcess final : public detail::BrowserProcess {
 public:
  explicit ChromiumProcess(const ChromiumOptions& options) {
    SubprocessOptions child;
    child.in = child.out = child.err = Stdio::pipe;
    child.supervised = true;
    child.working_directory = folder_.path();
    child.environment = environment_in(folder_);
    child.stream.write_limit = kMostUnsent;
    std::vector<std::string> line{
        "/bin/sh", "-c", kStartScript, unshare_options(), data_limit(options.memory_limit), options.program};
    for (std::string& argument : detail::chromium_arguments(options, folder_.path()))
      line.push_back(std::move(argument));
    process_.emplace(create_subprocess_exec(line, child));
    listener_ = EventLoop::current().create_task(listen(process_->err(), words_), "browser's words");
  }
  ~ChromiumProcess() override {
    if (listener_ && !listener_.done()) listener_.cancel();
    process_.reset();
  }

  Stream& to() override { return process_->in(); }
  Stream& from() override { return process_->out(); }
  std::string last_words() const override { return *words_; }

  Coro<void> end() override {
    if (!process_->returncode()) process_->kill();
    co_await process_->wait();
    if (listener_ && !listener_.done()) listener_.cancel();
    folder_.remove();
  }

 private:
  // Its output is read whether or not anybody wants to know, for it would wait else.
  static Coro<void> listen(Stream& from, std::shared_ptr<std::string> words) {
    try {
      while (co_await from.read_onto(*words, kMostLastWords)) {
        if (words->size() > kMostLastWords) words->erase(0, words->size() - kMostLastWords);
      }
    } catch (const std::system_error&) {
      // It has ended.
    }
  }

  BrowserFolder folder_;  // removed last
  std::shared_ptr<std::string> words_ = std::make_shared<std::string>();
  std::optional<Process> process_;
  Task<void> listener_;
};

}  // namespace

std::vector<std::string> detail::chromium_arguments(const ChromiumOptions& options, const std::string& folder) {
  std::vector<std::string> line{
      "--headless", "--remote-debugging-pipe", "--user-data-dir=" + folder, "--user-agent=" + options.user_agent,
      // No way out: names are not resolved, proxies are dead, and what goes around both is off.
      "--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=http://127.0.0.1:9", "--proxy-bypass-list=<-loopback>",
      "--webrtc-ip-handling-policy=disable_non_proxied_udp", "--disable-quic", "--disable-background-networking",
      "--disable-component-update", "--disable-sync", "--disable-domain-reliability", "--disable-breakpad",
      "--disable-client-side-phishing-detection", "--no-pings", "--dns-prefetch-disable",
      // No windows, sounds, devices, keys, dialogs.
      "--block-new-web-contents", "--disable-gpu", "--disable-extensions", "--disable-default-apps",
      "--disable-notifications", "--mute-audio", "--hide-scrollbars", "--no-first-run", "--no-default-browser-check",
      "--password-store=basic", "--use-mock-keychain", "--metrics-recording-only", "--disable-dev-shm-usage",
      "--deny-permission-prompts",
      // Pages in the background are no slower.
      "--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows",
      "--disable-renderer-backgrounding",
      // All frames of a page are one process, whose requests we see.
      "--disable-site-isolation-trials", "--js-flags=--max-old-space-size=512",
      "--disable-features=IsolateOrigins,site-per-process,Translate,MediaRouter,OptimizationHints,"
      "DialMediaRouteProvider,"
      "AutofillServerCommunication,CertificateTransparencyComponentUpdater,NetworkPrediction,"
      "SpareRendererForSitePerProcess,"
      "Prerender2,WebTransport,FedCm,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable"};
  if (!options.sandbox) line.emplace_back("--no-sandbox");
  line.emplace_back("about:blank");
  return line;
}

std::unique_ptr<detail::BrowserProcess> detail::start_chromium(const ChromiumOptions& options) {
  return std::make_unique<ChromiumProcess>(options);
}

Result<std::string> find_chromium(const std::string& name) {
  if (!name.empty()) {
    auto found = find_program(name);
    if (!found) found.error().message.replace(0, std::string_view("command").size(), "browser");
    if (!found || found->starts_with('/')) return found;
    return fs::absolute(*found).string();
  }
  for (const std::string_view known : kBrowserNames) {
    if (auto found = find_program(std::string(known))) return fs::absolute(*found).string();
  }
  return fail(Errc::not_found, fmt::format("there is no browser in PATH: none of {}. Debian's package is `chromium`",
                                           fmt::join(kBrowserNames, ", ")));
}

Result<void> check(const ChromiumOptions& options) {
  if (options.pages == 0 || options.pages_per_browser == 0) return fail(Errc::invalid_input, "a browser for 0 pages");
  if (!options.until.empty()) {
    if (auto selector = parse_css_selector(options.until); !selector)
      return std::unexpected(std::move(selector.error()));
  }
  if (options.sandbox && ::geteuid() == 0) {
    return fail(Errc::unsupported,
                "the browser's sandbox, which keeps scripts of pages from this machine, does not work for root");
  }
  return {};
}

}  // namespace argiope
