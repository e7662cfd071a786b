// How the process of a project's script is confined: "Sandbox" in docs/processors.md. A command becomes a longer
// command, which confines itself and then runs the first: by Debian's own tools (bubblewrap, util-linux), each of which
// gives up and says why where it cannot do its part. Nothing is run here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/error.hpp"

namespace argiope {

enum class SandboxKind : std::uint8_t {
  none,    // as Argiope itself
  basic,   // bounds (rlimits), no new privileges, an environment of its own
  strict,  // and: no network, the system read-only, a /tmp of its own, no other processes, few system calls
};
std::string_view to_string(SandboxKind kind) noexcept;
// Errors: invalid_input.
Result<SandboxKind> parse_sandbox_kind(std::string_view text);

// A secret that a script gets in its environment.
struct SandboxSecret {
  std::string name;  // of the variable
  std::string file;  // what holds the value, but for a line's end; empty: our own environment's variable of that name
};

// Its value, without the ends of lines behind it. The file is one that others may not read (chmod o=).
// Errors: not_found, io; refused for a file that others may read; too_large; invalid_input for one of less than 8
//         bytes, which no log could be kept free of (SecretMask).
Result<std::string> read_secret(const SandboxSecret& secret);

struct SandboxOptions {
  SandboxKind kind = SandboxKind::strict;
  std::uint64_t memory_bytes = 1024 * 1024 * 1024;  // address space, of each process
  std::uint32_t processes = 64;                     // threads count as well; of one child
  std::uint64_t tmp_bytes = 64 * 1024 * 1024;       // of /tmp, and again of /dev/shm: strict only
  std::uint64_t file_bytes = 64 * 1024 * 1024;      // of a file that it writes
  std::uint32_t open_files = 256;                   // of each process
  // For strict: absolute paths that it may read besides the system and its script's folder.
  std::vector<std::string> readable;
  // For strict: absolute paths that it must not see, such as that of the pages, with what SQLite keeps beside each. A
  // folder that holds one is not shown to it, nor is one of them, whatever its command names.
  std::vector<std::string> hidden;
  // For strict: what its command names is shown from the working directory alone. Of one whose author may not read this
  // machine's files, who could name any.
  bool shows_own_folder_alone = false;
  // It gets the processor where nobody else wants it: in all kinds.
  bool is_low = false;
  std::string python_path;  // where Python finds Argiope's helper; empty: not given
  std::vector<SandboxSecret> secrets;
  std::vector<std::pair<std::string, std::string>> environment;  // beside and before the usual variables
};

struct SandboxedCommand {
  std::vector<std::string> args;
  std::optional<std::vector<std::string>> environment;  // as SubprocessOptions'
  std::string working_directory;                        // as SubprocessOptions'
  std::vector<std::string> notes;                       // what a script's owner should know, as sentences
  std::vector<std::string> secrets;                     // the values that are in its environment
};

// The command that runs `command` confined. Relative names count from `directory` (empty: ours), which is the script's
// working directory. `command[1]` and those behind it that name files that exist are the script and what belongs to it:
// in strict it sees the folder of the first, read-only, and of the others the files alone.
//
// Started by root, a confined script runs as a user of its own without rights (of 61184 to 65519, systemd's for the
// same purpose), for no bound of processes holds for root.
//
// Errors: unsupported, where this machine cannot confine it so, and never a weaker confinement instead; not_found for
//         the program, a secret or a `readable`; refused for a file or folder that the script must not see.
// Threads: any. Cost: some looks at files; basic as a plain user reads /proc.
Result<SandboxedCommand> confine(const std::vector<std::string>& command, const std::string& directory,
                                 const SandboxOptions& options);

// Those of `command` that are files: absolute, in order. A change of the script is seen by them.
std::vector<std::string> files_of_command(const std::vector<std::string>& command, const std::string& directory);
// Those of `command` that must name files and name none, as they are written: a program with a slash, arguments that
// end as scripts do (`shop.py`). Not what may be an option, a module or a file that is yet to be made.
std::vector<std::string> missing_scripts(const std::vector<std::string>& command, const std::string& directory);

}  // namespace argiope
