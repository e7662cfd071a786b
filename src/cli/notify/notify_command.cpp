// `argiope notify`: whom a daemon tells when something goes wrong, and whether a message gets there.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/web/url.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/json_told.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "cli/commands.hpp"
#include "cli/daemon_store.hpp"
#include "cli/error_advice.hpp"
#include "cli/job_store.hpp"
#include "cli/table.hpp"
#include "serve/base/internal/own_queues.hpp"
#include "serve/base/internal/usual_daemon.hpp"

namespace argiope {
namespace {

struct NotifyArguments {
  std::string store{kUsualDaemon};
  bool json = false;
  std::optional<std::string> name;
};

// One [[notify]] of the daemon's configuration, and what it has told since the daemon began.
struct ToldReceiver {
  std::string name;
  std::uint64_t messages = 0;
  std::uint64_t gathered = 0;
  std::uint64_t lasting = 0;
  std::optional<WallTime> last_at;
};

// Messages of one that the configuration has no more: nobody delivers them.
struct LeftMessages {
  std::string name;
  std::uint64_t messages = 0;
};

struct ToldReceivers {
  std::vector<ToldReceiver> receivers;
  std::vector<LeftMessages> left;
};

ToldReceiver read_told_receiver(const JsonValue& told) {
  ToldMembers in(told);
  ToldReceiver receiver;
  in.read("name", receiver.name);
  in.read("messages", receiver.messages);
  in.read("gathered", receiver.gathered);
  in.read("lasting", receiver.lasting);
  in.read("last_at", receiver.last_at);
  return receiver;
}

LeftMessages read_left_messages(const JsonValue& told) {
  ToldMembers in(told);
  LeftMessages left;
  in.read("name", left.name);
  in.read("messages", left.messages);
  return left;
}

Coro<Result<ToldReceivers>> ask_for_receivers(ApiClient& client) {
  const std::string body = co_await or_return(client.tell({.path = "/v1/notify"}));
  co_return read_answer(body, [](const JsonValue& told) {
    ToldReceivers all;
    ToldMembers in(told);
    in.for_each("notify", [&](const JsonValue& one) { all.receivers.push_back(read_told_receiver(one)); });
    in.for_each("left", [&](const JsonValue& one) { all.left.push_back(read_left_messages(one)); });
    return all;
  });
}

// --- list ------------------------------------------------------------------------------------------------------------

std::string receiver_json(const ToldReceiver& receiver) {
  return json_object([&](JsonWriter& json) {
    json.member("name", receiver.name);
    json.member("messages", receiver.messages);
    json.member("gathered", receiver.gathered);
    json.member("lasting", receiver.lasting);
    json.member("last_at", receiver.last_at);
  });
}

std::string left_json(const LeftMessages& left) {
  return json_object([&](JsonWriter& json) {
    json.member("name", left.name);
    json.member("left", left.messages);
  });
}

void print_receivers(const std::vector<ToldReceiver>& receivers) {
  if (receivers.empty()) {
    fmt::print("Nobody is told: there is no [[notify]] in the daemon's configuration.\n");
    return;
  }
  Table table({"NAME", "MESSAGES", "GATHERED", "LASTING", "LAST"});
  for (const ToldReceiver& receiver : receivers) {
    table.add({one_line(receiver.name, kMostOfName), fmt::to_string(receiver.messages),
               fmt::to_string(receiver.gathered), fmt::to_string(receiver.lasting),
               receiver.last_at ? to_rfc3339(*receiver.last_at) : ""});
  }
  table.print();
}

Coro<Result<int>> list_receivers(const NotifyArguments& arguments, ApiClient& client) {
  const auto [receivers, left] = co_await or_return(ask_for_receivers(client));
  if (arguments.json) {
    for (const ToldReceiver& receiver : receivers) fmt::print("{}\n", receiver_json(receiver));
    for (const LeftMessages& one : left) fmt::print("{}\n", left_json(one));
    co_return kExitFinished;
  }
  print_receivers(receivers);
  for (const auto& [name, messages] : left) {
    fmt::print("{}: there is no [[notify]] of that name any more, and nobody delivers {}; see argiope job list {}{}\n",
               one_line(name, kMostOfName), counted(messages, "message"), kNotifyQueues, one_line(name, kMostOfName));
  }
  co_return kExitFinished;
}

// --- test ------------------------------------------------------------------------------------------------------------

// All of them, where none is named.
Coro<Result<std::vector<std::string>>> names_to_test(const NotifyArguments& arguments, ApiClient& client) {
  std::vector<std::string> names;
  if (arguments.name) {
    names.push_back(*arguments.name);
    co_return names;
  }
  for (ToldReceiver& receiver : (co_await or_return(ask_for_receivers(client))).receivers) {
    names.push_back(std::move(receiver.name));
  }
  if (names.empty()) {
    co_return fail(Errc::not_found,
                   "there is nobody to test: add a [[notify]] to the daemon's configuration, and reload it (SIGHUP)");
  }
  co_return names;
}

// The id of the job that carries the message.
Coro<Result<JobId>> send_test(const std::string& name, ApiClient& client) {
  // Behind "=", so that every name can be said in a path.
  auto answered = co_await client.tell(
      {.method = HttpMethod::post, .path = fmt::format("/v1/notify/={}/test", percent_encode(name))});
  if (!answered) {
    Error error = std::move(answered.error());
    if (error.code == Errc::not_found) error.message += "; argiope notify list names who is told";
    co_return std::unexpected(std::move(error));
  }
  co_return read_answer(*answered, [](const JsonValue& told) {
    JobId job = 0;
    ToldMembers(told).read("job", job);
    return job;
  });
}

void print_test(const NotifyArguments& arguments, const std::string& name, JobId job) {
  if (arguments.json) {
    fmt::print("{}\n", json_object([&](JsonWriter& json) {
                 json.member("name", name);
                 json.member("job", job);
               }));
    return;
  }
  fmt::print("{}\n", job);
  std::fflush(stdout);
  fmt::print(stderr, "{}: the message is on its way; argiope job show {} --store {} says what has become of it\n",
             one_line(name, kMostOfName), job, printable(arguments.store));
}

// One who cannot be told keeps no other back.
Coro<Result<int>> test_receivers(const NotifyArguments& arguments, ApiClient& client) {
  int status = kExitFinished;
  for (const std::string& name : co_await or_return(names_to_test(arguments, client))) {
    const auto job = co_await send_test(name, client);
    if (job) {
      print_test(arguments, name, *job);
      continue;
    }
    status = complain(with_store_option(job.error()));
    if (status != kExitUsage) co_return status;
  }
  co_return status;
}

// --- the commands ----------------------------------------------------------------------------------------------------

using NotifyAction = Coro<Result<int>> (*)(const NotifyArguments& arguments, ApiClient& client);

int run_notify(const NotifyArguments& arguments, NotifyAction act) {
  if (!is_daemon(arguments.store)) {
    return complain(fmt::format("--store {}: only a daemon tells of trouble; give its address, --store http://HOST:{}",
                                in_quotes(arguments.store), kHttpPort),
                    kExitUsage);
  }
  return run_on_daemon(arguments.store, [&](ApiClient& client) { return act(arguments, client); });
}

using NotifyPointer = std::shared_ptr<NotifyArguments>;

NotifyPointer add_common_options(CLI::App& command) {
  auto arguments = std::make_shared<NotifyArguments>();
  command.add_option("--store", arguments->store, "The daemon, http://HOST:7733 (its token in ARGIOPE_TOKEN)")
      ->envname("ARGIOPE_STORE")
      ->type_name("STORE")
      ->capture_default_str();
  command.add_flag("--json", arguments->json, "One JSON object a line instead of text for people");
  return arguments;
}

}  // namespace

std::function<int()> add_notify_command(CLI::App& app) {
  CLI::App* notify =
      app.add_subcommand("notify", "Whom a daemon tells when something goes wrong: list them, and test them.");
  notify->require_subcommand(1);
  notify->footer(
      "Each [[notify]] of the daemon's configuration says who is told of what.\n"
      "Try:\n"
      "  argiope notify list\n"
      "  argiope notify test\n"
      "Exit status: 0 done, 2 bad usage or a refusal, 3 the daemon cannot be reached.");
  CLI::App* list = notify->add_subcommand("list", "List who is told, and how often that was done");
  const NotifyPointer listed = add_common_options(*list);
  list->footer(
      "MESSAGES are counted since the daemon began. GATHERED troubles wait for the next one; LASTING ones were told,\n"
      "and are not over. Messages of a name that the configuration has no more come behind: nobody delivers them.");
  CLI::App* test = notify->add_subcommand("test", "Send a message that says that it is a test");
  const NotifyPointer tested = add_common_options(*test);
  test->add_option("NAME", tested->name, "To whom; to all, where none is named")->type_name("");
  test->footer(
      "Prints the id of each message's job, which is done when the message has got there, and has an error when it\n"
      "has not. A daemon with tokens asks for one with the scope admin.\n"
      "Example: argiope notify test ops");
  return [list, listed, tested] {
    return list->parsed() ? run_notify(*listed, list_receivers) : run_notify(*tested, test_receivers);
  };
}

}  // namespace argiope
