// The shared part of all commands on a store of jobs: which store, how it is opened, how errors end.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "argiope/async/coro.hpp"
#include "argiope/engine/book.hpp"
#include "argiope/store/store.hpp"
#include "cli/commands.hpp"

namespace argiope {

// --store and --json.
struct JobStoreArguments {
  std::string store;
  bool json = false;
  void add_to(CLI::App& command);
  // As open_store() takes it, or a daemon; usual_store() where none was named. Errors: invalid_input.
  Result<std::string> where() const;
  // FILE of sqlite:FILE; empty: the store is no file. No daemon is asked.
  std::string file() const;
};

// The policy of queues that these commands make: what is done can be asked about for a day, what was cancelled for a
// week.
QueueConfig default_queue_policy();

// Long lists are read from the store, and changed, by so many.
inline constexpr std::size_t kListPage = 1000;

// Says what went wrong on standard error; the exit status for it: 2 for what was asked, 3 for the store.
int complain(const Error& error);
int complain(std::string_view message, int status);

enum class IfMissing : std::uint8_t { make, complain };

// Opens a book on the store, runs `act` on a loop of its own, and closes the store. The value of `act` is the exit
// status, an error is said.
using BookAction = std::function<Coro<Result<int>>(Book& book)>;
int run_on_book(const JobStoreArguments& arguments, StoreAccess access, IfMissing if_missing, const BookAction& act);
// For a command that makes a store whose file is not there: does `act` on an empty store in memory first, so that one
// who is refused leaves no file. Does nothing where the file is there, and for a daemon, which is asked itself. `act`
// prints nothing.
// Errors: those of `act`.
Result<void> rehearse(const JobStoreArguments& arguments, const BookAction& act);
// The same as run_on_book(), only to look at what is there.
inline int look_at_book(const JobStoreArguments& arguments, const BookAction& act) {
  return run_on_book(arguments, StoreAccess::read, IfMissing::complain, act);
}

}  // namespace argiope
