// How scripts are confined: what hostile ones can reach and use up, by real processes. As root and as a plain user the
// same.
#include "project/process/internal/sandbox.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/stream.hpp"
#include "support/processes.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Confined {
  int status = 0;
  std::string out, err;
};

Coro<Confined> run_in_sandbox(SandboxedCommand command, std::string input) {
  SubprocessOptions how{.in = Stdio::pipe, .out = Stdio::pipe, .err = Stdio::pipe};
  how.environment = command.environment;
  how.working_directory = command.working_directory;
  how.supervised = true;
  Process process = create_subprocess_exec(command.args, how);
  const ProcessOutput output = co_await wait_for(process.communicate(std::move(input)), kPatience);
  co_return Confined{co_await process.wait(), output.out, output.err};
}

Confined run_confined(const std::vector<std::string>& command, const std::string& directory,
                      const SandboxOptions& options) {
  const Result<SandboxedCommand> confined = confine(command, directory, options);
  if (!confined) return {-1, {}, confined.error().message};
  return run(run_in_sandbox(*confined, {}));
}

// Why the machine has no strict sandbox; empty: it has.
const std::string& why_no_strict_sandbox() {
  static const std::string why = [] {
    const Confined tried = run_confined({"true"}, "/", {.kind = SandboxKind::strict});
    return tried.status == 0 ? std::string() : "no strict sandbox on this machine: " + tried.err;
  }();
  return why;
}

class SandboxTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::permissions(folder_.file(""), std::filesystem::perms(0755)); }
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder_.file(name)).parent_path());
    std::ofstream(folder_.file(name)) << text;
    return folder_.file(name);
  }
  // What /usr/bin/python3 prints and says.
  Confined python(const SandboxOptions& options, const std::string& text) const {
    write("script.py", "import os, sys, errno, socket, time\n" + text);
    return run_confined({"python3", "script.py"}, folder_.file(""), options);
  }
  // Python expressions by name, each with the name of its error, or its value.
  std::map<std::string, std::string> attempts(const SandboxOptions& options,
                                              const std::vector<std::pair<std::string, std::string>>& named) const {
    std::string text =
        "def attempt(name, function):\n"
        "  try: print(name, function(), flush=True)\n"
        "  except MemoryError: print(name, 'MemoryError', flush=True)\n"
        "  except OSError as error: print(name, errno.errorcode.get(error.errno, error), flush=True)\n"
        "import ctypes\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "def call(result):\n"
        "  if result < 0: raise OSError(ctypes.get_errno(), '')\n"
        "  return result\n";
    for (const auto& [name, expression] : named) text += "attempt('" + name + "', lambda: " + expression + ")\n";
    const Confined confined = python(options, text);
    EXPECT_EQ(confined.status, 0) << confined.err;
    std::map<std::string, std::string> found;
    std::istringstream lines(confined.out);
    for (std::string name, value; lines >> name && std::getline(lines, value);) found[name] = value.substr(1);
    return found;
  }

  TemporaryFolder folder_;
};

class StrictSandboxTest : public SandboxTest {
 protected:
  void SetUp() override {
    if (!why_no_strict_sandbox().empty()) GTEST_SKIP() << why_no_strict_sandbox();
    SandboxTest::SetUp();
  }
  const SandboxOptions strict_{.kind = SandboxKind::strict};
};

// The values of a variable for a scope.
class WithVariable {
 public:
  WithVariable(const char* name, const char* value) : name_(name) {
    if (const char* const before = ::getenv(name)) before_ = before;
    ::setenv(name, value, 1);
  }
  ~WithVariable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

// --- words and errors

TEST(SandboxKindTest, HasThreeNames) {
  for (const SandboxKind kind : {SandboxKind::none, SandboxKind::basic, SandboxKind::strict})
    EXPECT_EQ(parse_sandbox_kind(to_string(kind)).value(), kind);
  EXPECT_THAT(parse_sandbox_kind("tight").error().message, HasSubstr("\"strict\""));
}

TEST_F(SandboxTest, FilesOfACommandAreThoseThatExist) {
  const std::string script = write("shop.py", ""), other = write("data/list.txt", "");
  const std::vector<std::string> command{
      "python3", "-m", "argiope.processor", "shop.py", "data/list.txt", "https://shop.example/", "", "data"};
  EXPECT_EQ(files_of_command(command, folder_.file("")), (std::vector<std::string>{script, other}));
  EXPECT_EQ(files_of_command({"shop.py"}, folder_.file("")), std::vector<std::string>{})
      << "a program's name is looked for in PATH";
  EXPECT_EQ(files_of_command({"./shop.py"}, folder_.file("")), std::vector<std::string>{script});
}

TEST_F(SandboxTest, ScriptsOfACommandThatAreMissing) {
  using Words = std::vector<std::string>;
  write("shop.py", "");
  const std::string folder = folder_.file("");
  EXPECT_EQ(missing_scripts({"python3", "-m", "argiope.processor", "shop.py"}, folder), Words{});
  EXPECT_EQ(missing_scripts({"python3", "-m", "argiope.processor", "scripts/shop.py"}, folder),
            Words{"scripts/shop.py"});
  EXPECT_EQ(missing_scripts({"./shop.py"}, folder), Words{});
  EXPECT_EQ(missing_scripts({"./shop.sh", "titles.mjs"}, folder), (Words{"./shop.sh", "titles.mjs"}));
  EXPECT_EQ(missing_scripts({"prices.py", "--log=out.py", "out/new.csv", "my.module", ""}, folder), Words{});
  EXPECT_EQ(missing_scripts({}, folder), Words{});
}

TEST_F(SandboxTest, WithoutBubblewrapThereIsNoStrictSandboxAndNoWeakerOne) {
  write("script.py", "");
  const WithVariable path("PATH", "/nonexistent");
  const auto strict = confine({"python3", "script.py"}, folder_.file(""), {.kind = SandboxKind::strict});
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().code, Errc::unsupported);
  EXPECT_THAT(strict.error().message, HasSubstr("needs bubblewrap"));
  const auto basic = confine({"python3", "script.py"}, folder_.file(""), {.kind = SandboxKind::basic});
  ASSERT_FALSE(basic);
  EXPECT_THAT(basic.error().message, HasSubstr("needs util-linux"));
  EXPECT_TRUE(confine({"python3", "script.py"}, folder_.file(""), {.kind = SandboxKind::none}));
}

TEST_F(SandboxTest, OneOfLowPriorityIsStartedByNiceWhateverItsKind) {
  write("script.py", "");
  const std::string nice = find_program("nice").value();
  const auto words = [&](SandboxKind kind, bool is_low) {
    const auto confined = confine({"python3", "script.py"}, folder_.file(""), {.kind = kind, .is_low = is_low});
    return confined ? confined->args : std::vector<std::string>{confined.error().message};
  };
  EXPECT_EQ(words(SandboxKind::none, true), (std::vector<std::string>{nice, "-n", "10", "--", "python3", "script.py"}));
  EXPECT_EQ(words(SandboxKind::none, false), (std::vector<std::string>{"python3", "script.py"}));
  for (const SandboxKind kind : {SandboxKind::basic, SandboxKind::strict}) {
    if (kind == SandboxKind::strict && !why_no_strict_sandbox().empty()) continue;
    const auto low = words(kind, true);
    const auto at = std::ranges::find(low, nice);
    ASSERT_NE(at, low.end()) << to_string(kind);
    EXPECT_THAT(std::vector(at, at + 5), ElementsAre(nice, "-n", "10", "--", find_program("choom").value()));
    EXPECT_THAT(words(kind, false), Not(Contains(nice)));
  }
  const WithVariable path("PATH", "/nonexistent");
  EXPECT_THAT(words(SandboxKind::none, true).front(), HasSubstr("needs coreutils"));
}

TEST_F(SandboxTest, WhatCannotBeGivenIsAnErrorThatNamesIt) {
  const auto why = [&](const std::vector<std::string>& command, const SandboxOptions& options) {
    const auto confined = confine(command, folder_.file(""), options);
    return confined ? std::string("no error") : confined.error().message;
  };
  EXPECT_THAT(why({}, {}), HasSubstr("without a command"));
  EXPECT_THAT(why({std::string("a\0b", 3)}, {.kind = SandboxKind::none}), HasSubstr("null byte"));
  SandboxOptions options{.kind = SandboxKind::basic};
  options.secrets = {{"ARGIOPE_TEST_NO_SUCH", ""}};
  EXPECT_THAT(why({"true"}, options), HasSubstr("\"ARGIOPE_TEST_NO_SUCH\""));
  options.secrets = {{"KEY", folder_.file("none")}};
  EXPECT_THAT(why({"true"}, options), HasSubstr("No such file"));
  const auto secret_file = [&](const std::string& name, const std::string& content) {
    const std::string path = write(name, content);
    std::filesystem::permissions(path, std::filesystem::perms(0640));
    return path;
  };
  options.secrets = {{"KEY", secret_file("big", std::string(100'000, 'x'))}};
  EXPECT_THAT(why({"true"}, options), HasSubstr("more than"));
  options.secrets = {{"KEY", secret_file("short", "1234567\n")}};
  EXPECT_THAT(why({"true"}, options), HasSubstr("less than 8 bytes"));
  options.secrets = {{"KEY", secret_file("open", "open sesame\n")}};
  EXPECT_EQ(why({"true"}, options), "no error");
  std::filesystem::permissions(folder_.file("open"), std::filesystem::perms(0644));
  EXPECT_THAT(why({"true"}, options), HasSubstr("others may read it"));
  ASSERT_EQ(::mkfifo(folder_.file("pipe").c_str(), 0600), 0);
  for (const std::string& place : {folder_.file("pipe"), std::string("/dev/zero")}) {
    options.secrets = {{"KEY", place}};
    EXPECT_THAT(why({"true"}, options), HasSubstr("is not a plain file")) << place;
  }
  options.secrets = {{"A=B", ""}};
  EXPECT_THAT(why({"true"}, options), HasSubstr("not a variable's name"));
}

TEST_F(StrictSandboxTest, WhatItDoesNotShowIsAnErrorThatSaysSo) {
  const auto why = [&](const std::vector<std::string>& command, const SandboxOptions& options) {
    const auto confined = confine(command, folder_.file(""), options);
    return confined ? std::string("no error") : confined.error().message;
  };
  EXPECT_THAT(why({"no-such-program"}, strict_), HasSubstr("no such program"));
  EXPECT_THAT(why({"/no/such/program"}, strict_), HasSubstr("No such file"));
  SandboxOptions options = strict_;
  options.readable = {"relative"};
  EXPECT_THAT(why({"true"}, options), HasSubstr("not an absolute path"));
  options.readable = {folder_.file("missing")};
  EXPECT_THAT(why({"true"}, options), HasSubstr("No such file"));
  write("store/pages.db", "");
  options.readable = {folder_.file("")};
  options.hidden = {folder_.file("store")};
  EXPECT_THAT(why({"true"}, options), HasSubstr("which no script must see"));
  if (::geteuid() == 0) {
    write("own.py", "");
    std::filesystem::permissions(folder_.file("own.py"), std::filesystem::perms(0600));
    EXPECT_THAT(why({"python3", "own.py"}, strict_), HasSubstr("chmod o+r"));
  }
}

// --- none

TEST_F(SandboxTest, NoneIsAsArgiopeItself) {
  const WithVariable variable("ARGIOPE_TEST_VARIABLE", "seen");
  const Confined confined =
      python({.kind = SandboxKind::none}, "print(os.environ['ARGIOPE_TEST_VARIABLE'], os.getuid(), os.getcwd())");
  EXPECT_EQ(confined.out,
            "seen " + std::to_string(::getuid()) + " " + std::filesystem::canonical(folder_.file("")).string() + "\n")
      << confined.err;
}

// --- basic

TEST_F(SandboxTest, BasicHasAnEnvironmentOfItsOwnAndNoWayToRights) {
  const WithVariable variable("ARGIOPE_TOKEN", "secret"), key("SHOP_KEY", "open sesame");
  SandboxOptions options{.kind = SandboxKind::basic};
  options.secrets = {{"SHOP_KEY", ""}, {"OTHER", write("other", "from a file\n")}};
  std::filesystem::permissions(folder_.file("other"), std::filesystem::perms(0600));
  options.environment = {{"LANG", "de_DE.UTF-8"}};
  options.python_path = "/opt/helper";
  const Confined confined =
      python(options, "print(sorted(os.environ.items()))\nprint(open('/proc/self/status').read())");
  EXPECT_THAT(confined.out, HasSubstr("('SHOP_KEY', 'open sesame')")) << confined.err;
  EXPECT_THAT(confined.out, HasSubstr("('OTHER', 'from a file')"));
  EXPECT_THAT(confined.out, HasSubstr("('LANG', 'de_DE.UTF-8')"));
  EXPECT_THAT(confined.out, HasSubstr("('PYTHONPATH', '/opt/helper')"));
  EXPECT_THAT(confined.out, HasSubstr("('HOME', '/tmp')"));
  EXPECT_THAT(confined.out, Not(HasSubstr("ARGIOPE_TOKEN")));
  EXPECT_THAT(confined.out, HasSubstr("NoNewPrivs:\t1"));
  EXPECT_THAT(confined.out, HasSubstr("CapEff:\t0000000000000000"));
}

// As where Argiope was built in root's home, which is closed to all others.
TEST_F(SandboxTest, TheHelperIsFoundWhereOthersMayNotGo) {
  write("home/helper/shop_helper.py", "word = 'helped'");
  std::filesystem::permissions(folder_.file("home"), std::filesystem::perms(0700));
  SandboxOptions options{.kind = SandboxKind::basic};
  options.python_path = folder_.file("home/helper");
  const std::string listed = "\nhome = os.path.dirname('" + options.python_path +
                             "')\ntry: print(os.listdir(home))\nexcept OSError as e: print(type(e).__name__)";
  const Confined confined = python(options, "import shop_helper; print(shop_helper.word)" + listed);
  EXPECT_THAT(confined.out, StartsWith("helped\n")) << confined.err;
  if (::geteuid() == 0) EXPECT_EQ(confined.out, "helped\nPermissionError\n");
}

TEST_F(SandboxTest, SecretsAreOnNoCommandLine) {
  const WithVariable key("SHOP_KEY", "open sesame");
  for (const SandboxKind kind : {SandboxKind::basic, SandboxKind::strict}) {
    if (kind == SandboxKind::strict && !why_no_strict_sandbox().empty()) continue;
    SandboxOptions options{.kind = kind};
    options.secrets = {{"SHOP_KEY", ""}};
    const auto confined = confine({"true"}, folder_.file(""), options);
    ASSERT_TRUE(confined) << confined.error().message;
    EXPECT_THAT(confined->args, Not(Contains(HasSubstr("sesame"))));
  }
}

// In either sandbox.
class BoundsOfSandboxTest : public SandboxTest, public ::testing::WithParamInterface<SandboxKind> {
 protected:
  void SetUp() override {
    if (GetParam() == SandboxKind::strict && !why_no_strict_sandbox().empty()) GTEST_SKIP() << why_no_strict_sandbox();
    SandboxTest::SetUp();
  }
  SandboxOptions options() const { return {.kind = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Sandboxes, BoundsOfSandboxTest, ::testing::Values(SandboxKind::basic, SandboxKind::strict),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

TEST_P(BoundsOfSandboxTest, MemoryOfAProcess) {
  const auto found = attempts(options(), {{"little", "len(bytearray(100 << 20))"},
                                          {"much", "len(bytearray(10 << 30))"},
                                          {"shared", "len(__import__('mmap').mmap(-1, 10 << 30))"}});
  EXPECT_EQ(found.at("little"), std::to_string(100 << 20));
  EXPECT_EQ(found.at("much"), "MemoryError");
  EXPECT_EQ(found.at("shared"), "ENOMEM");
}

TEST_P(BoundsOfSandboxTest, Processes) {
  SandboxOptions few = options();
  few.processes = 20;
  // Each child waits for the end of a pipe that only the parent holds open.
  const Confined confined = python(
      few,
      "read, write = os.pipe()\n"
      "count = 0\n"
      "try:\n"
      "  for i in range(1000):\n"
      "    if os.fork() == 0:\n"
      "      os.close(write); os.read(read, 1); os._exit(0)\n"
      "    count += 1\n"
      "except BlockingIOError: print('refused', 0 < count < (20 if os.getuid() == 0 or count < 20 else 1000))\n");
  EXPECT_THAT(confined.out, StartsWith("refused")) << confined.err;
}

TEST_P(BoundsOfSandboxTest, AForkBombEndsWithItsProcess) {
  SandboxOptions few = options();
  few.processes = 30;
  // The bomb goes on after the script's end until its tree is killed.
  write("bomb.py",
        "import os, sys\n"
        "print(os.getpid(), flush=True)\n"
        "while True:\n"
        "  try: os.fork()\n"
        "  except OSError: pass\n");
  const auto confined = confine({"python3", "bomb.py"}, folder_.file(""), few);
  ASSERT_TRUE(confined) << confined.error().message;
  run([](const SandboxedCommand& command) -> Coro<void> {
    SubprocessOptions how{.in = Stdio::devnull, .out = Stdio::pipe, .err = Stdio::devnull};
    how.environment = command.environment;
    how.working_directory = command.working_directory;
    how.supervised = true;
    Process process = create_subprocess_exec(command.args, how);
    const std::string said = co_await process.out().read_line();
    EXPECT_FALSE(said.empty());
    process.kill();
    const int status = co_await wait_for(process.wait(), kPatience);
    EXPECT_EQ(status, -SIGKILL);
    // Every one of them has gone: nobody holds the pipe open.
    while (!(co_await wait_for(process.out().read(65'536), kPatience)).empty()) {
    }
  }(*confined));
}

TEST_P(BoundsOfSandboxTest, SizeOfAFileCountOfFilesAndNoCores) {
  SandboxOptions small = options();
  small.file_bytes = 1024 * 1024;
  small.open_files = 32;
  const auto found = attempts(
      small, {{"signal", "__import__('signal').signal(25, 1)"},
              {"file", "os.truncate(os.open('/tmp/argiope-%d' % os.getpid(), os.O_CREAT | os.O_RDWR), 2 << 20)"},
              {"gone", "os.unlink('/tmp/argiope-%d' % os.getpid())"},
              {"cores", "__import__('resource').getrlimit(4)"},
              {"files", "[os.dup(0) for i in range(100)]"}});
  EXPECT_EQ(found.at("file"), "EFBIG");
  EXPECT_EQ(found.at("files"), "EMFILE");
  EXPECT_EQ(found.at("cores"), "(0, 0)");
}

TEST_P(BoundsOfSandboxTest, TheKernelEndsItFirstWhenMemoryRunsOut) {
  EXPECT_EQ(attempts(options(), {{"score", "open('/proc/self/oom_score_adj').read().strip()"}}).at("score"), "1000");
}

TEST_P(BoundsOfSandboxTest, OneOfLowPriorityStaysSo) {
  SandboxOptions low = options();
  low.is_low = true;
  const int ours = ::getpriority(PRIO_PROCESS, 0);
  const auto found = attempts(low, {{"niceness", "os.nice(0)"}, {"back", "os.nice(-10)"}});
  EXPECT_EQ(found.at("niceness"), std::to_string(std::min(ours + 10, 19)));
  EXPECT_THAT(found.at("back"), AnyOf("EPERM", "EACCES"));
  // Among sessions, where the kernel knows of them.
  if (GetParam() != SandboxKind::strict || !std::filesystem::exists("/proc/self/autogroup")) return;
  EXPECT_THAT(attempts(low, {{"group", "open('/proc/self/autogroup').read().strip()"}}).at("group"),
              EndsWith("nice 10"));
}

TEST_P(BoundsOfSandboxTest, RootsScriptsAreNobodysElse) {
  const auto found = attempts(options(), {{"user", "os.getuid()"},
                                          {"shadow", "open('/etc/shadow').read()"},
                                          {"groups", "os.getgroups()"},
                                          {"back", "os.setuid(0)"}});
  if (::geteuid() != 0) {
    EXPECT_EQ(found.at("user"), std::to_string(::geteuid()));
  } else {
    const int user = std::stoi(found.at("user"));
    EXPECT_TRUE(user >= 61'184 && user <= 65'519) << user;
    EXPECT_EQ(found.at("groups"), "[]");
  }
  EXPECT_THAT(found.at("back"), AnyOf("EPERM", "EINVAL"));
  EXPECT_THAT(found.at("shadow"), AnyOf("EACCES", "ENOENT"));
}

// --- strict

TEST_F(StrictSandboxTest, HasNoNetworkAndNoSockets) {
  // Somebody listens outside.
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(server, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(server, 1), 0);
  ASSERT_EQ(::getsockname(server, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  const std::string connect = "socket.create_connection(('127.0.0.1', " + port + "), 5)";
  EXPECT_THAT(attempts({.kind = SandboxKind::basic}, {{"connect", connect}}).at("connect"), HasSubstr("socket"))
      << "the server is there";
  const auto found =
      attempts(strict_, {{"connect", connect},
                         {"udp", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"},
                         {"six", "socket.socket(socket.AF_INET6)"},
                         {"unix", "socket.socket(socket.AF_UNIX)"},
                         {"netlink", "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)"},
                         {"packet", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)"},
                         {"vsock", "socket.socket(40)"},
                         {"pair", "len(socket.socketpair())"},
                         {"devices", "[line.split(':')[0].strip() for line in open('/proc/net/dev') if ':' in line]"}});
  for (const char* const name : {"connect", "udp", "six", "unix", "netlink", "packet", "vsock"})
    EXPECT_EQ(found.at(name), "EPERM") << name;
  EXPECT_EQ(found.at("pair"), "2") << "what event loops wake themselves with";
  EXPECT_EQ(found.at("devices"), "['lo']");
  ::close(server);
}

TEST_F(StrictSandboxTest, SeesTheSystemAndItsOwnFolderToReadOnly) {
  const TemporaryFolder other;
  std::filesystem::permissions(other.file(""), std::filesystem::perms(0755));
  std::ofstream(other.file("letter")) << "private";
  write("beside.txt", "beside");
  SandboxOptions options = strict_;
  const auto found = attempts(options, {{"beside", "open('beside.txt').read()"},
                                        {"here", "os.getcwd() == os.path.dirname(os.path.abspath(sys.argv[0]))"},
                                        {"own", "open('new.txt', 'w')"},
                                        {"usr", "open('/usr/new', 'w')"},
                                        {"root", "open('/new', 'w')"},
                                        {"dev", "open('/dev/new', 'w')"},
                                        {"home", "os.listdir('/home')"},
                                        {"letter", "open('" + other.file("letter") + "').read()"},
                                        {"shadow", "open('/etc/shadow').read()"},
                                        {"passwd", "open('/etc/passwd').read()"},
                                        {"var", "os.listdir('/var')"},
                                        {"tmp", "os.listdir('/tmp')"},
                                        {"written", "open('/tmp/mine', 'w').write('abc')"},
                                        {"remount", "call(libc.mount(b'none', b'/usr', b'none', 4096 | 32, None))"}});
  EXPECT_EQ(found.at("beside"), "beside");
  EXPECT_EQ(found.at("here"), "True");
  for (const char* const name : {"own", "usr", "root", "dev"})
    EXPECT_THAT(found.at(name), AnyOf("EROFS", "EACCES")) << name;
  for (const char* const name : {"home", "letter", "shadow", "passwd", "var"})
    EXPECT_EQ(found.at(name), "ENOENT") << name;
  EXPECT_EQ(found.at("tmp"), "[]");
  EXPECT_EQ(found.at("written"), "3");
  EXPECT_EQ(found.at("remount"), "EPERM");
  options.readable = {other.file("letter")};
  EXPECT_EQ(attempts(options, {{"letter", "open('" + other.file("letter") + "').read()"}}).at("letter"), "private");
}

TEST_F(StrictSandboxTest, AScriptBesideThePagesSeesNothingBesideItself) {
  write("pages.db", "everything");
  write("key.txt", "secret");
  SandboxOptions options = strict_;
  options.hidden = {folder_.file("pages.db")};
  const auto found = attempts(
      options, {{"pages", "open('pages.db').read()"}, {"key", "open('key.txt').read()"}, {"all", "os.listdir('.')"}});
  EXPECT_EQ(found.at("pages"), "ENOENT");
  EXPECT_EQ(found.at("key"), "ENOENT");
  EXPECT_EQ(found.at("all"), "['script.py']");
  const auto confined = confine({"python3", "script.py"}, folder_.file(""), options);
  ASSERT_TRUE(confined);
  EXPECT_THAT(confined->notes, Contains(HasSubstr("where Argiope keeps its pages")));
}

TEST_F(StrictSandboxTest, WhatItMustNotSeeNoCommandNames) {
  write("script.py", "");
  write("store/pages.db-wal", "cookies");
  SandboxOptions options = strict_;
  options.hidden = {folder_.file("store/pages.db")};
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"python3", "script.py", "store/pages.db-wal"}, {"python3", "store/pages.db-wal"}}) {
    const auto confined = confine(command, folder_.file(""), options);
    ASSERT_FALSE(confined);
    EXPECT_THAT(confined.error().message, HasSubstr("which no script must see"));
  }
}

TEST_F(StrictSandboxTest, OfAnUntrustedAuthorItSeesItsOwnFolderAlone) {
  const TemporaryFolder other;
  std::filesystem::permissions(other.file(""), std::filesystem::perms(0755));
  const std::string letter = other.file("letter");
  std::ofstream(letter) << "private";
  std::filesystem::create_symlink(letter, folder_.file("link"));
  write("script.py", "import os, sys\nfor name in sys.argv[1:]:\n    print(os.path.exists(name))\n");
  write("beside", "");
  SandboxOptions options = strict_;
  const std::vector<std::string> command{"python3", "script.py", letter, "link", "beside"};
  EXPECT_EQ(run_confined(command, folder_.file(""), options).out, "True\nTrue\nTrue\n");
  options.shows_own_folder_alone = true;
  EXPECT_EQ(run_confined(command, folder_.file(""), options).out, "False\nFalse\nTrue\n");
  // Nor does a file that stands before the script open its folder.
  const std::string look = "import os, sys; print([os.path.exists(name) for name in sys.argv[1:]])";
  EXPECT_EQ(run_confined({"python3", "-c", look, letter, other.file("")}, folder_.file(""), options).out,
            "[False, False]\n");
}

TEST_F(StrictSandboxTest, ItsTemporaryFilesAreBounded) {
  SandboxOptions options = strict_;
  options.tmp_bytes = 1024 * 1024;
  const auto found = attempts(
      options,
      {{"tmp", "open('/tmp/a', 'wb', 0).write(bytes(1 << 20)) + open('/tmp/b', 'wb', 0).write(bytes(1 << 20))"},
       {"shm", "open('/dev/shm/a', 'wb', 0).write(bytes(1 << 20)) + open('/dev/shm/b', 'wb', 0).write(bytes(1 << 20))"},
       {"memory", "os.memfd_create('x')"},
       {"segment", "call(libc.shmget(0, 1 << 20, 0o1600))"}});
  EXPECT_EQ(found.at("tmp"), "ENOSPC");
  EXPECT_EQ(found.at("shm"), "ENOSPC");
  EXPECT_EQ(found.at("memory"), "ENOSYS");
  EXPECT_EQ(found.at("segment"), "EPERM");
}

TEST_F(StrictSandboxTest, SeesAndReachesNoOtherProcess) {
  const auto found = attempts(strict_, {{"processes", "len([name for name in os.listdir('/proc') if name.isdigit()])"},
                                        {"us", "os.kill(" + std::to_string(::getpid()) + ", 0)"},
                                        {"parent", "os.kill(os.getppid(), 9) or os.getppid()"},
                                        {"trace", "call(libc.ptrace(16, os.getppid(), 0, 0))"},
                                        {"namespace", "call(libc.unshare(0x10000000))"},
                                        {"clone", "call(libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0))"},
                                        {"keys", "call(libc.syscall(250, 0, 0, 0, 0, 0))"},
                                        {"bpf", "call(libc.syscall(321, 0, 0, 0))"},
                                        {"perf", "call(libc.syscall(298, 0, 0, 0, 0, 0))"},
                                        {"ring", "call(libc.syscall(425, 1, 0))"},
                                        {"faults", "call(libc.syscall(323, 0))"},
                                        {"kernel", "open('/proc/kcore', 'rb').read(1)"},
                                        {"sysrq", "open('/proc/sysrq-trigger', 'w').write('c')"}});
  EXPECT_LE(std::stoi(found.at("processes")), 3);
  EXPECT_EQ(found.at("us"), "ESRCH");
  for (const char* const name : {"trace", "namespace"}) EXPECT_EQ(found.at(name), "EPERM") << name;
#ifdef __x86_64__
  for (const char* const name : {"clone", "keys", "bpf", "perf", "faults"}) EXPECT_EQ(found.at(name), "EPERM") << name;
  EXPECT_EQ(found.at("ring"), "ENOSYS");
#endif
  for (const char* const name : {"kernel", "sysrq"})
    EXPECT_THAT(found.at(name), AnyOf("EACCES", "EPERM", "ENOENT", "EROFS")) << name;
}

TEST_F(StrictSandboxTest, ThreadsAndProgramsOfItsOwnWork) {
  const Confined confined =
      python(strict_,
             "import threading, subprocess, asyncio, tempfile\n"
             "found = []\n"
             "thread = threading.Thread(target=lambda: found.append('thread')); thread.start(); thread.join()\n"
             "found.append(subprocess.run(['echo', 'program'], capture_output=True, text=True).stdout.strip())\n"
             "async def main(): await asyncio.sleep(0); found.append('loop')\n"
             "asyncio.run(main())\n"
             "with tempfile.NamedTemporaryFile() as file: found.append(file.name.split('/')[1])\n"
             "print(found)\n");
  EXPECT_EQ(confined.out, "['thread', 'program', 'loop', 'tmp']\n") << confined.err;
}

TEST_F(StrictSandboxTest, OtherLanguagesRunToo) {
  write("script.sh", "echo bash $((6 * 7)) $(ls)\n");
  EXPECT_EQ(run_confined({"bash", "script.sh"}, folder_.file(""), strict_).out, "bash 42 script.sh\n");
  if (::access("/usr/bin/node", X_OK) != 0) return;
  write("script.mjs", "import fs from 'node:fs'; console.log('node', fs.readdirSync('.').length)\n");
  const Confined node = run_confined({"node", "script.mjs"}, folder_.file(""), strict_);
  EXPECT_EQ(node.out, "node 2\n") << node.err;
}

TEST_F(StrictSandboxTest, EndsWithWhoAskedForIt) {
  write("script.py", "import time\nprint('here', flush=True)\nwhile True: pass\n");
  const auto confined = confine({"python3", "script.py"}, folder_.file(""), strict_);
  ASSERT_TRUE(confined);
  pid_t pid = 0;
  run([](const SandboxedCommand& command, pid_t& its) -> Coro<void> {
    SubprocessOptions how{.in = Stdio::devnull, .out = Stdio::pipe};
    how.environment = command.environment;
    how.working_directory = command.working_directory;
    how.supervised = true;
    Process process = create_subprocess_exec(command.args, how);
    const std::string said = co_await process.out().read_line();
    EXPECT_EQ(said, "here\n");
    its = process.pid();
  }(*confined, pid));
  EXPECT_TRUE(comes_true([&] { return !is_alive(pid); }));
}

}  // namespace
}  // namespace argiope
