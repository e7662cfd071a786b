// Errors as values: what parsers and stores return instead of throwing.
//
// Exceptions are kept for two things: cancellation, and a caller's mistake
// (std::invalid_argument, std::logic_error). Bad input is neither. Programs that would rather have exceptions turn
// an error into one with value_or_throw(); coroutines that return a Result pass it on with or_return() (async).
#pragma once

#include <cstdint>
#include <expected>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace argiope {

// The kind of thing that went wrong; the message says which thing and what to do.
enum class Errc : std::uint8_t {
  invalid_input,  // the bytes or the option do not follow their grammar
  too_large,      // a documented limit was exceeded
  not_found,
  refused,        // a rule forbids it (robots, address guard, read-only)
  wrong_format,   // a file that is not ours
  newer_version,  // a file of ours, made by a newer Argiope
  older_version,  // a file of ours, made by an older Argiope: opened to write, it is brought up to date
  busy,           // held by another process
  io,             // the operating system said no
  disk_full,
  corrupt,
  timeout,
  network,  // connect, reset, early close
  tls,
  dns,
  protocol,  // the peer does not speak the protocol
  cancelled,
  unsupported,
  internal,
  conflict,  // what has that id or name is another's
};

// The name as written in code, e.g. "disk_full". Stable: it appears in reports and databases.
std::string_view to_string(Errc code) noexcept;

struct Error {
  Errc code = Errc::internal;
  // One sentence without a final full stop, naming the input: `port "99999": at most 65535`.
  std::string message;
};

template <class T>
using Result = std::expected<T, Error>;

// `return fail(Errc::io, "…")` from a function that returns Result<anything>.
inline std::unexpected<Error> fail(Errc code, std::string message) {
  return std::unexpected<Error>(Error{code, std::move(message)});
}

// An Error as an exception; what() is its message.
class Failure : public std::runtime_error {
 public:
  explicit Failure(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
  const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};

// The value of `result`, moved out of it.
// Errors: throws Failure with its error when it has none.
template <class T>
T value_or_throw(Result<T> result) {
  if (!result) [[unlikely]]
    throw Failure(std::move(result.error()));
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace argiope
