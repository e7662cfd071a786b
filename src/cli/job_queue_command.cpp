// `argiope job queue`: the policy of a queue.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "argiope/base/json_writer.hpp"
#include "argiope/base/utf8.hpp"
#include "cli/job_command.hpp"

namespace argiope {
namespace {

// An option that sets one member of a queue's configuration.
struct Setting {
  const char* option;
  const char* member;
  double scale;  // 1000: given in seconds, kept in milliseconds; 0: a word
  const char* description;
};
constexpr Setting kSettings[] = {
    {"--rate", "rate", 1, "Starts a second, or unlimited"},
    {"--burst", "burst", 1, "Starts at once after a rest"},
    {"--concurrency", "concurrency", 1, "Jobs that run at once, or unlimited"},
    {"--key-rate", "key_rate", 1, "The same for each key: starts a second"},
    {"--key-burst", "key_burst", 1, "starts at once"},
    {"--key-concurrency", "key_concurrency", 1, "jobs that run at once"},
    {"--key-delay", "key_delay_ms", 1000, "Seconds from the end of a key's job to the start of its next"},
    {"--max-attempts", "max_attempts", 1, "Runs of a job before it is buried"},
    {"--retry-first", "retry_first_ms", 1000, "Seconds before the second attempt; each wait is --retry-factor longer"},
    {"--retry-factor", "retry_factor", 1, "How much longer"},
    {"--retry-longest", "retry_longest_ms", 1000, "Seconds it is at most"},
    {"--lease", "lease_time_ms", 1000, "Seconds after which a job of a silent worker is given to another"},
    {"--max-expiries", "max_lease_expiries", 1, "Leases of one job that may run out before it is buried"},
    {"--capacity", "capacity", 1, "Jobs that have not ended, at most, or unlimited"},
    {"--at-capacity", "at_capacity", 0, "What a put then does: wait, or refuse"},
    {"--max-payload", "max_payload_bytes", 1, "Bytes of a payload"},
    {"--keep-done", "keep_done_ms", 1000, "Seconds that done jobs are kept, or unlimited"},
    {"--keep-cancelled", "keep_cancelled_ms", 1000, "... cancelled ones"},
    {"--keep-buried", "keep_buried_ms", 1000, "... buried ones"},
    {"--ageing", "ageing_ms", 1000, "A job's priority rises by one for each such span it waits, in seconds; 0: never"},
    {"--weight", "weight", 1, "Its share among the queues of one worker"},
};

struct QueueArguments {
  JobStoreArguments store;
  std::string name;
  std::string config;
  bool pause = false;
  bool resume = false;
  std::string values[std::size(kSettings)];
};

// As a member's value: a number, scaled, or a JSON string, which the configuration's own parser may refuse.
std::string spelled(const std::string& text, double scale) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const bool is_number = !text.empty() && end == text.c_str() + text.size() && number == number && number - number == 0;
  if (scale != 0 && is_number) {
    if (scale == 1 && text.find_first_not_of("0123456789") == std::string::npos) return text;
    const double scaled = number * scale;
    const bool small = scaled < 1e15 && scaled > -1e15;
    return small && scaled == static_cast<double>(static_cast<std::int64_t>(scaled))
               ? fmt::format("{}", static_cast<std::int64_t>(scaled))
               : fmt::format("{}", scaled);
  }
  std::string out;
  append_json_string(out, text);
  return out;
}

Result<QueueConfig> changed(const QueueArguments& arguments, QueueConfig config) {
  if (!arguments.config.empty()) {
    auto parsed = parse_queue_config(arguments.config, config);
    if (!parsed) return fail(Errc::invalid_input, "--config: " + parsed.error().message);
    config = std::move(*parsed);
  }
  for (std::size_t i = 0; i < std::size(kSettings); ++i) {
    if (arguments.values[i].empty()) continue;
    const Setting& setting = kSettings[i];
    auto parsed = parse_queue_config(
        fmt::format("{{\"{}\":{}}}", setting.member, spelled(arguments.values[i], setting.scale)), config);
    if (!parsed) {
      return fail(Errc::invalid_input, fmt::format("{} {}: {}", setting.option, arguments.values[i], parsed.error().message));
    }
    config = std::move(*parsed);
  }
  if (arguments.pause) config.limits.paused = true;
  if (arguments.resume) config.limits.paused = false;
  return config;
}

// A JSON value as people write it: 5, not 5E0; unlimited, without quotes.
std::string plain(const std::string& value) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (value.find('E') != std::string::npos && end == value.c_str() + value.size()) return fmt::format("{}", number);
  return value.starts_with('"') ? value.substr(1, value.size() - 2) : value;
}

void print(const StoredQueue& queue, bool json) {
  std::string name;
  append_json_string(name, queue.name);
  const std::string config = to_json(queue.config);
  if (json) {
    fmt::print("{{\"queue\":{},\"config\":{}}}\n", name, config);
    return;
  }
  // One member a line; none holds a comma but the list of retries.
  fmt::print("queue {}\n", name);
  int depth = 0;
  std::string line;
  for (const char c : config.substr(1)) {
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if ((c == ',' && depth == 0) || c == '}') {
      const auto colon = line.find(':');
      fmt::print("  {:<20} {}\n", line.substr(1, colon - 2), plain(line.substr(colon + 1)));
      line.clear();
    } else {
      line += c;
    }
  }
}

Coro<Result<int>> look_or_change(const QueueArguments& arguments, bool changes, Guest& guest, Store& store) {
  if (arguments.name.empty()) {
    auto all = co_await store.queues();
    if (!all) co_return std::unexpected(std::move(all.error()));
    for (const StoredQueue& queue : *all) print(queue, arguments.store.json);
    if (all->empty() && !arguments.store.json) fmt::print("No queues yet.\n");
    co_return kExitFinished;
  }
  if (!changes) {
    auto queue = co_await guest.queue(arguments.name);
    if (!queue) co_return std::unexpected(std::move(queue.error()));
    print(*queue, arguments.store.json);
    co_return kExitFinished;
  }
  // Looked at before it is made, so that a mistake makes none.
  auto known = co_await guest.queue(arguments.name);
  if (!known && known.error().code != Errc::not_found) co_return std::unexpected(std::move(known.error()));
  auto config = changed(arguments, known ? known->config : default_queue_policy());
  if (!config) co_return std::unexpected(std::move(config.error()));
  auto queue = co_await store.open_queue(arguments.name, *config);
  if (!queue) co_return std::unexpected(std::move(queue.error()));
  if (auto done = co_await store.configure(queue->id, *config); !done) co_return std::unexpected(std::move(done.error()));
  queue->config = std::move(*config);
  print(*queue, arguments.store.json);
  co_return kExitFinished;
}

}  // namespace

std::function<int()> add_job_queue(CLI::App& job) {
  auto arguments = std::make_shared<QueueArguments>();
  CLI::App* command = job.add_subcommand("queue", "Show or change the policy of a queue");
  arguments->store.add_to(*command);
  command->add_option("NAME", arguments->name, "The queue; made if need be when something is changed")->type_name("");
  command->add_option("--config", arguments->config, "Set what this JSON object names")->type_name("JSON");
  command->add_flag("--pause", arguments->pause, "Start no jobs of it");
  command->add_flag("--resume", arguments->resume, "Start them again")->excludes("--pause");
  for (std::size_t i = 0; i < std::size(kSettings); ++i) {
    command->add_option(kSettings[i].option, arguments->values[i], kSettings[i].description)
        ->type_name(kSettings[i].scale == 1000 ? "SEC" : "N")
        ->group("Policy");
  }
  command->footer(
      "Without changes it shows the queue, without NAME all. A worker that runs hears of changes within a second.\n"
      "Examples: argiope job queue mail --rate 5 --key-concurrency 1\n"
      "          argiope job queue mail --pause");
  return [arguments] {
    bool changes = !arguments->config.empty() || arguments->pause || arguments->resume;
    for (const std::string& value : arguments->values) changes = changes || !value.empty();
    if (changes && arguments->name.empty()) return complain("which queue? Give its NAME", kExitUsage);
    return run_as_guest(arguments->store, changes ? StoreAccess::share : StoreAccess::read,
                        changes ? IfMissing::make : IfMissing::complain, [&](Guest& guest, Store& store) {
                          return look_or_change(*arguments, changes, guest, store);
                        });
  };
}

}  // namespace argiope
