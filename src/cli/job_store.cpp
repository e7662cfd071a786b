#include "cli/job_store.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "base/internal/printable.hpp"
#include "cli/daemon_store.hpp"
#include "cli/error_advice.hpp"
#include "cli/standard_output.hpp"
#include "remote/internal/http_book.hpp"
#include "serve/internal/serve_options.hpp"

namespace argiope {
namespace {

constexpr std::string_view kSqliteStore = "sqlite:";
constexpr std::string_view kMemoryStore = "memory:";

}  // namespace

void JobStoreArguments::add_to(CLI::App& command) {
  command
      .add_option("--store", store,
                  "Where the jobs are: sqlite:FILE, or just FILE; postgresql://USER@HOST/DATABASE; redis://HOST/DB;\n"
                  "or a daemon, http://HOST:7733 (its token in ARGIOPE_TOKEN).\n"
                  "Without it: argiope-jobs.db of this folder, or the daemon at http://127.0.0.1:7733")
      ->envname("ARGIOPE_STORE")
      ->type_name("STORE");
  command.add_flag("--json", json, "One JSON object a line instead of text for people");
}

Result<std::string> JobStoreArguments::where() const {
  if (store.empty()) return usual_store();
  if (store == kMemoryStore || store == ":memory:") {
    return fail(Errc::invalid_input,
                fmt::format("--store {}: keeps nothing between two commands; name a file", in_quotes(store)));
  }
  if (store.starts_with(kSqliteStore) || store.find("://") != std::string::npos) return store;
  return std::string(kSqliteStore) + store;
}

std::string JobStoreArguments::file() const {
  if (store.empty()) return usual_store_file();
  const auto place = where();
  return place && place->starts_with(kSqliteStore) ? place->substr(kSqliteStore.size()) : std::string();
}

QueueConfig default_queue_policy() { return default_new_queue(); }

int complain(std::string_view message, int status) {
  say(fmt::format("argiope: {}\n", printable_lines(message)));
  return status;
}

int complain(const Error& error) {
  switch (error.code) {
    case Errc::invalid_input:
    case Errc::too_large:
    case Errc::not_found:
    case Errc::conflict:
    case Errc::refused: return complain(error.message, kExitUsage);
    default: return complain(error.message, kExitNothing);
  }
}

namespace {

// Opening to share does it.
Result<void> bring_up_to_date(const std::string& where) {
  auto store = open_store(where, {.access = StoreAccess::share});
  if (!store) return std::unexpected(std::move(store.error()));
  return (*store)->close();
}

Coro<Result<Book>> open_book(std::string where, StoreAccess access) {
  const BookOptions options{.new_queue = default_queue_policy(), .access = access};
  auto book = co_await Book::open(where, options);
  if (book || book.error().code != Errc::older_version) co_return book;
  // A file that an older argiope has made cannot be read before it is brought up to date, which needs a moment of
  // writing.
  if (const auto done = bring_up_to_date(where); done) {
    book = co_await Book::open(where, options);
  } else if (done.error().code == Errc::busy) {
    book = std::unexpected(done.error());  // it says of whom
  }
  co_return book;
}

Coro<Result<int>> act_by(ApiClient& client, const BookAction& act) {
  Book book = Book::of_remote(std::make_shared<HttpBook>(client));
  co_return co_await act(book);
}

}  // namespace

Result<void> rehearse(const JobStoreArguments& arguments, const BookAction& act) {
  const std::string file = arguments.file();
  if (file.empty() || ::access(file.c_str(), F_OK) == 0) return {};
  SystemClock clock;
  AsioBackend backend(clock);
  EventLoop loop(backend);
  return loop.run_until_complete([](const BookAction& action) -> Coro<Result<void>> {
    auto book = co_await or_return(
        Book::open(std::string(kMemoryStore), {.new_queue = default_queue_policy(), .access = StoreAccess::share}));
    const auto done = co_await action(book);
    const auto closed = book.close();
    if (!done) co_return std::unexpected(done.error());
    co_return closed;
  }(act));
}

int run_on_book(const JobStoreArguments& arguments, StoreAccess access, IfMissing if_missing, const BookAction& act) {
  const auto where = arguments.where();
  if (!where) return complain(where.error());
  if (is_daemon(*where)) return run_on_daemon(*where, [&](ApiClient& client) { return act_by(client, act); });
  const std::string file = where->substr(where->find(':') + 1);
  if (if_missing == IfMissing::complain && where->starts_with(kSqliteStore) && ::access(file.c_str(), F_OK) != 0) {
    return complain(fmt::format("--store {}: {}", file, std::strerror(errno)), kExitNothing);
  }
  SystemClock clock;
  AsioBackend backend(clock);
  EventLoop loop(backend);
  return loop.run_until_complete([](std::string name, StoreAccess asked, const BookAction& action) -> Coro<int> {
    auto book = co_await open_book(std::move(name), asked);
    if (!book) co_return complain(with_store_option(std::move(book.error())));
    const auto done = co_await action(*book);
    const int status = done ? *done : complain(done.error());
    const auto closed = book->close();
    co_return closed || status != kExitFinished ? status : complain(closed.error());
  }(*where, access, act));
}

}  // namespace argiope
