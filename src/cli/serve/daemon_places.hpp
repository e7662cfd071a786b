// Where a daemon keeps what it keeps, and where it listens on the disk: looked at before anything is opened, for its
// start and for `--check` alike.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"
#include "cli/command_files.hpp"
#include "cli/project/run_projects.hpp"
#include "serve/internal/serve_options.hpp"

namespace argiope {

// The name of each place, for errors: "--store", or "argiope.toml: serve.store".
struct PlaceNames {
  std::string file;  // of the configuration; empty: there is none
  std::string store, pages, tokens, certificate, key, audit, listen, beanstalkd;
};

// Whether each has its own file, and whether a start could open it: its folder is there and can be written to, it is a
// plain file that can be written, a database is one of SQLite, no other file is in the place of a socket, and
// an address is one of this machine. That another process has it open is no trouble:
// who checks may do so beside the daemon that runs.
// Errors: invalid_input, io, wrong_format and refused, beginning with what names the place.
Result<void> check_places(const ServeOptions& options, const std::vector<RunProject>& projects,
                          const PlaceNames& names);
// The addresses that this process could not listen at now, each with its name and why: the daemon that runs has it, or
// somebody else, or it takes another user.
std::vector<std::string> addresses_not_free(const ServeOptions& options, const PlaceNames& names);

}  // namespace argiope
