#include "config/internal/configuration.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <numbers>
#include <set>
#include <sstream>
#include <utility>

#include "argiope/async/stream.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/calls/calls.hpp"
#include "argiope/time/time_zone.hpp"
#include "argiope/web/detail/ip_address.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/utf8.hpp"
#include "calls/internal/call_functions.hpp"
#include "config/toml_json.hpp"
#include "config/toml_nesting.hpp"
#include "jobs/internal/queue_config_json.hpp"
#include "jobs/internal/schedule_json.hpp"
#include "serve/base/internal/own_queues.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostNameBytes = 512;
constexpr std::size_t kMostShown = 60;
constexpr std::size_t kMostListed = 100'000;
// A file is right or wrong whenever it is read: whether a trigger's times can be found is asked from here.
constexpr WallTime kSearchedFrom = std::chrono::sys_days{std::chrono::year{2026} / 1 / 1};

std::string text_of(const toml::node& node) {
  if (node.is_string()) return in_quotes(node.as_string()->get(), kMostShown);
  if (node.is_floating_point()) return fmt::to_string(node.as_floating_point()->get());
  const toml::node* none = nullptr;
  std::string json;
  JsonWriter out(json, JsonEscapes::letters);
  write_json(out, node, none);
  return printable(json, kMostShown);
}

class ConfigurationReader {
 public:
  explicit ConfigurationReader(std::string_view file) : file_(file) {}

  Result<Configuration> read(std::string_view text) {
    if (text.size() > kMostConfigurationBytes) {
      return fail(Errc::too_large,
                  fmt::format("{}: a configuration of more than {} bytes", file_, kMostConfigurationBytes));
    }
    if (const auto line = too_deep_in_toml(text)) {
      return fail(Errc::invalid_input,
                  printable(fmt::format("{}:{}: nested deeper than {} levels", file_, *line, kMostTomlNesting)));
    }
    toml::table root;
    try {
      root = toml::parse(text, file_);
    } catch (const toml::parse_error& error) {
      complain(error.source(), error.description());
      return std::unexpected(*error_);
    }
    each_member(root, "a configuration", {"serve", "queue", "schedule", "notify", "project", "projects", "simulate"});
    one_table(root, "serve", [&](const toml::table& table) { read_serve(table); });
    each_table(root, "queue", [&](const toml::table& table) { read_queue(table); });
    each_table(root, "schedule", [&](const toml::table& table) { read_schedule(table); });
    each_table(root, "notify", [&](const toml::table& table) { read_notify(table); });
    each_table(root, "project", [&](const toml::table& table) { read_project_entry(table); });
    one_table(root, "projects", [&](const toml::table& table) { read_visits(table); });
    one_table(root, "simulate", [&](const toml::table& table) {
      out_.simulates = true;
      read_simulation(table);
    });
    if (error_) return std::unexpected(*error_);
    return std::move(out_);
  }

 private:
  // --- errors; the first one counts
  void complain(const toml::source_region& where, std::string_view what) {
    if (error_) return;
    const std::string line = where.begin.line == 0 ? "" : fmt::format(":{}", where.begin.line);
    error_ = Error{Errc::invalid_input, printable(fmt::format("{}{}: {}{}", file_, line, about_, what))};
  }
  void wrong(const toml::node& node, std::string_view name, std::string_view wanted) {
    complain(node.source(), fmt::format("{} {}: {}", name, text_of(node), wanted));
  }

  // --- tables
  void each_member(const toml::table& table, std::string_view what, std::initializer_list<std::string_view> known) {
    for (const auto& [key, value] : table) {
      if (std::ranges::find(known, key.str()) != known.end()) continue;
      complain(key.source(), fmt::format("member {}: {} has none", in_quotes(key.str(), kMostShown), what));
    }
  }
  template <class Read>
  void each_table(const toml::table& parent, std::string_view name, Read read) {
    const toml::node* node = parent.get(name);
    if (node == nullptr) return;
    const toml::array* array = node->as_array();
    if (array == nullptr) return complain(node->source(), fmt::format("{0}: tables, each under [[{0}]]", name));
    for (const toml::node& entry : *array) {
      if (error_) return;
      if (const toml::table* table = entry.as_table()) {
        read(*table);
      } else {
        complain(entry.source(), fmt::format("{0}: tables, each under [[{0}]]", name));
      }
      about_.clear();
    }
  }

  template <class Read>
  void one_table(const toml::table& parent, std::string_view name, Read read) {
    const toml::node* node = parent.get(name);
    if (node == nullptr) return;
    if (const toml::table* table = node->as_table()) {
      read(*table);
    } else {
      complain(node->source(), fmt::format("{0}: a table, [{0}]", name));
    }
    about_.clear();
  }

  // --- tables as JSON, for what is read from both. Mistakes are told with the line where they stand.
  // read(const JsonValue&)
  template <class Read>
  void read_as_json(const toml::node& node, Read read) {
    const toml::node* trouble = nullptr;
    std::string json;
    JsonWriter out(json);
    write_json(out, node, trouble);
    if (trouble != nullptr) return complain(trouble->source(), "a number must be finite");
    const auto form = JsonText::parse(json);
    if (!form) return complain(node.source(), form.error().message);
    JsonErrors errors;
    read(form->root(errors));
    if (errors) complain(source_of(node, errors.where()), errors.error().message);
  }

  // --- values
  std::optional<std::string> name_of(const toml::table& table, std::string_view what) {
    const toml::node* node = table.get("name");
    if (node == nullptr) {
      complain(table.source(), fmt::format("a {} needs a name", what));
      return std::nullopt;
    }
    const auto* text = node->as_string();
    if (text == nullptr || text->get().empty() || text->get().size() > kMostNameBytes) {
      wrong(*node, "name", fmt::format("a string of 1 to {} bytes", kMostNameBytes));
      return std::nullopt;
    }
    return text->get();
  }
  void once(std::map<std::string, std::uint32_t>& seen, const toml::table& table, const std::string& name) {
    const std::uint32_t line = table.get("name")->source().begin.line;
    const auto [found, is_new] = seen.emplace(name, line);
    if (!is_new)
      complain(table.get("name")->source(), fmt::format("there is one of that name in line {}", found->second));
  }
  template <class Number>
  void whole(const toml::table& table, std::string_view name, Number& out, std::int64_t most) {
    const toml::node* node = table.get(name);
    if (node == nullptr) return;
    const auto* number = node->as_integer();
    if (number != nullptr && number->get() >= 0 && number->get() <= most) {
      out = static_cast<Number>(number->get());
    } else {
      wrong(*node, name, fmt::format("a whole number, 0 to {}", most));
    }
  }
  Duration span(const toml::node& node, std::string_view name) {
    const auto seconds = node.value_exact<double>();
    const auto whole_seconds = node.value_exact<std::int64_t>();
    const auto* text = node.as_string();
    if (text == nullptr && !seconds && !whole_seconds) {
      wrong(node, name, "a string such as \"90s\" or \"1h30m\", or a number of seconds");
      return {};
    }
    const auto parsed = parse_span(text != nullptr ? text->get()
                                   : whole_seconds ? fmt::to_string(*whole_seconds)
                                                   : fmt::to_string(*seconds));
    if (!parsed) complain(node.source(), fmt::format("{}: {}", name, parsed.error().message));
    return parsed.value_or(Duration{});
  }

  // --- [serve]
  void read_serve(const toml::table& table) {
    about_ = "serve: ";
    read_as_json(table, [&](const JsonValue& form) { read_serve_options(form, out_.serve); });
  }

  // --- [[queue]]
  // For errors that show up later.
  std::string place_of(const toml::node& node) const {
    const std::string_view about = std::string_view(about_).substr(0, about_.rfind(": "));
    return printable(fmt::format("{}:{}: {}", file_, node.source().begin.line, about));
  }
  // Of a table that has a name.
  std::string line_of(const toml::table& table) const {
    return printable(fmt::format("{}:{}", file_, table.get("name")->source().begin.line));
  }
  // `command`: its arguments, or a table of docs/configuration.md. `push`: an address, or a table.
  void read_target(const toml::table& table, ConfiguredQueue& queue) {
    if (const toml::node* node = table.get("command")) {
      queue.target_text = read_call(*node, "command", "args", parse_command_call, queue.command);
      queue.target_place = place_of(*node);
      if (queue.command) {
        queue.command->is_from_job = false;
        const toml::table* form = node->as_table();
        if (form == nullptr || !form->contains("input")) queue.command->input.reset();  // the payload
      }
    }
    const toml::node* node = table.get("push");
    if (node == nullptr) return;
    if (queue.command) return complain(node->source(), "push: it has a command already");
    queue.target_text = read_call(*node, "push", "url", parse_http_push, queue.push);
    queue.target_place = place_of(*node);
  }
  // A value that is no table stands for its most important member. Its JSON.
  template <class Call, class Parse>
  std::string read_call(const toml::node& node, std::string_view name, std::string_view main, Parse parse,
                        std::optional<Call>& out) {
    const toml::node* trouble = nullptr;
    std::string json;
    JsonWriter writer(json);
    if (node.is_table()) {
      write_json(writer, node, trouble);
    } else {
      writer.object([&] {
        writer.key(main);
        write_json(writer, node, trouble);
      });
    }
    if (trouble != nullptr) complain(trouble->source(), fmt::format("{}: a number must be finite", name));
    auto call = parse(json);
    if (!call) {
      complain(node.source(), fmt::format("{}: {}", name, call.error().message));
      return {};
    }
    out = *std::move(call);
    return json;
  }
  void read_queue(const toml::table& table) {
    const auto name = name_of(table, "queue");
    if (!name) return;
    about_ = fmt::format("queue {}: ", in_quotes(*name, kMostShown));
    once(queue_lines_, table, *name);
    ConfiguredQueue queue{.name = *name, .line = line_of(table)};
    // A policy for it is good.
    for (const char* const member : {"workers", "command", "push"}) {
      const toml::node* node = is_own_queue(*name) ? table.get(member) : nullptr;
      if (node != nullptr)
        return complain(node->source(), fmt::format("{}: the daemon alone works off its own queues", member));
    }
    whole(table, "workers", queue.workers, ConfiguredQueue::kMostWorkers);
    queue.says_workers = table.contains("workers");
    read_target(table, queue);
    const toml::node* trouble = nullptr;
    std::string_view troubled;
    const std::string config = json_object([&](JsonWriter& out) {
      for (const auto& [key, value] : table) {
        if (key == "name" || key == "workers" || key == "command" || key == "push") continue;
        out.key(key.str());
        write_json(out, value, trouble);
        if (trouble != nullptr && troubled.empty()) troubled = key.str();
      }
    });
    if (trouble != nullptr) return wrong(*trouble, troubled, "a finite number");
    JsonErrors errors;
    auto read = detail::read_queue_config(config, queue.config, errors);
    if (!read) return complain(source_of(table, errors.where()), read.error().message);
    queue.config = std::move(*read);
    out_.queues.push_back(std::move(queue));
  }

  // --- [[schedule]]
  void read_schedule(const toml::table& table) {
    const auto name = name_of(table, "schedule");
    if (!name) return;
    about_ = fmt::format("schedule {}: ", in_quotes(*name, kMostShown));
    once(schedule_lines_, table, *name);
    const toml::node* trigger = table.get("trigger");
    if (trigger != nullptr && !trigger->is_table() && !trigger->is_string()) {
      return wrong(*trigger, "trigger", "a table or a string");
    }
    std::optional<Schedule> read;
    read_as_json(table, [&](const JsonValue& form) {
      if (auto schedule = detail::read_schedule(form)) read = *std::move(schedule);
    });
    if (!read) return;
    if (is_own_queue(read->job.queue)) {
      return complain(source_of(table, {{std::string("job")}, {std::string("queue")}}),
                      fmt::format("job.queue {}: the daemon alone puts jobs into its own queues",
                                  in_quotes(read->job.queue, kMostShown)));
    }
    if (auto found = check(*read, kSearchedFrom); !found) {
      return complain(source_of(table, {{std::string("trigger")}}), found.error().message);
    }
    out_.schedules.push_back(*std::move(read));
    out_.schedule_lines.push_back(line_of(table));
    const toml::node* const job = table.get("job");
    out_.schedule_places.push_back(place_of(job != nullptr ? *job : table));
  }

  // --- [[notify]]
  void read_notify(const toml::table& table) {
    const auto name = name_of(table, "notify");
    if (!name) return;
    about_ = fmt::format("notify {}: ", in_quotes(*name, kMostShown));
    once(notify_lines_, table, *name);
    read_as_json(table, [&](const JsonValue& form) { out_.notify.push_back(read_notify_rule(form)); });
    const toml::node* const command = table.get("command");
    const toml::node* const push = table.get("push");
    out_.notify_places.push_back(place_of(command != nullptr ? *command : push != nullptr ? *push : table));
  }

  // --- [[project]]
  void read_project_entry(const toml::table& table) {
    about_ = "project: ";
    each_member(table, "[[project]]", {"file"});
    const toml::node* node = table.get("file");
    if (node == nullptr) return complain(table.source(), "a project needs a file");
    const auto* text = node->as_string();
    if (text == nullptr || text->get().empty()) return wrong(*node, "file", "the name of a project's file");
    if (std::ranges::find(out_.projects, text->get(), &ConfiguredProject::file) != out_.projects.end()) {
      return wrong(*node, "file", "it is there already");
    }
    out_.projects.push_back({.file = text->get(), .text = {}});
  }

  // --- [projects]
  void read_visits(const toml::table& table) {
    about_ = "projects: ";
    ConfiguredVisits& visits = out_.visits;
    read_as_json(table, [&](const JsonValue& form) {
      read_options_and_hosts(form, visits.options, visits.hosts);
      visits.text = form.json();
    });
    for (CrawlFileOption& option : visits.options) option.line = source_of(table, {{option.name}}).begin.line;
  }

  // --- [simulate]
  void read_simulation(const toml::table& table) {
    about_ = "simulate: ";
    each_member(table, "[simulate]", {"seed", "duration", "failures", "job"});
    whole(table, "seed", out_.simulation.seed, std::numeric_limits<std::int64_t>::max());
    read_behaviour(table, out_.simulation.others);
    out_.simulation.others_given = table.contains("duration");
    about_ = "simulate.job: ";
    for (const Schedule& schedule : out_.schedules) {
      known_queues_.insert(schedule.job.queue);
      known_functions_.insert(schedule.job.function);
    }
    for (const ConfiguredQueue& queue : out_.queues) known_queues_.insert(queue.name);
    each_table(table, "job", [&](const toml::table& job) {
      about_ = "simulate.job: ";
      read_jobs(job);
    });
  }
  void read_jobs(const toml::table& table) {
    each_member(table, "[[simulate.job]]", {"schedule", "queue", "function", "duration", "failures"});
    SimulatedJobs jobs;
    const auto which = [&](std::string_view member, std::optional<std::string>& out, const auto& known) {
      const toml::node* node = table.get(member);
      if (node == nullptr) return;
      const auto* text = node->as_string();
      if (text == nullptr) return wrong(*node, member, "a string");
      if (!known.contains(text->get()))
        return wrong(*node, member,
                     fmt::format("no schedule here has that {}", member == "schedule" ? "name" : member));
      out = text->get();
    };
    which("schedule", jobs.schedule, schedule_lines_);
    which("queue", jobs.queue, known_queues_);
    which("function", jobs.function, known_functions_);
    read_behaviour(table, jobs);
    out_.simulation.jobs.push_back(std::move(jobs));
  }
  void read_behaviour(const toml::table& table, SimulatedJobs& out) {
    if (const toml::node* node = table.get("duration")) read_duration(*node, out.duration);
    const toml::node* node = table.get("failures");
    if (node == nullptr) return;
    if (const toml::array* array = node->as_array()) {
      std::int64_t last = 0;
      for (const toml::node& entry : *array) {
        const auto* number = entry.as_integer();
        if (number == nullptr || number->get() <= last) {
          return wrong(entry, "failures", "numbers of attempts, from 1 and ascending");
        }
        out.failing.push_back(static_cast<std::uint64_t>(last = number->get()));
      }
      return;
    }
    const auto share = node->is_number() ? node->value<double>() : std::nullopt;
    if (share && *share >= 0 && *share <= 1) {
      out.failures = *share;
    } else {
      wrong(*node, "failures", "a number from 0 to 1, or a list of attempts");
    }
  }
  void read_duration(const toml::node& node, SimulatedDuration& out) {
    using enum SimulatedDuration::Kind;
    if (const toml::array* array = node.as_array()) {
      if (array->empty() || array->size() > kMostListed) {
        return wrong(node, "duration", fmt::format("1 to {} of them", kMostListed));
      }
      out.values.clear();
      for (const toml::node& entry : *array) out.values.push_back(span(entry, "duration"));
      return;
    }
    const toml::table* table = node.as_table();
    if (table == nullptr) {
      out.values = {span(node, "duration")};
      return;
    }
    struct Form {
      std::string_view name;
      SimulatedDuration::Kind kind;
      std::string_view low, high;
    };
    static constexpr Form kForms[] = {{"constant", listed, "value", ""},
                                      {"uniform", uniform, "from", "to"},
                                      {"normal", normal, "mean", "deviation"},
                                      {"exponential", exponential, "mean", ""}};
    const auto given = table->get_as<std::string>("distribution");
    const auto form = std::ranges::find(kForms, given == nullptr ? std::string_view{} : given->get(), &Form::name);
    if (form == std::end(kForms)) {
      const toml::node* wrong_one = table->get("distribution");
      return wrong(wrong_one == nullptr ? node : *wrong_one, "distribution",
                   "constant, uniform, normal or exponential");
    }
    const auto member = [&](std::string_view name) {
      if (name.empty()) return Duration{};
      if (const toml::node* value = table->get(name)) return span(*value, name);
      complain(node.source(), fmt::format("duration: a {} distribution needs {}", form->name, in_quotes(name)));
      return Duration{};
    };
    each_member(*table, fmt::format("a {} distribution", form->name),
                {"distribution", form->low, form->high.empty() ? form->low : form->high});
    out.kind = form->kind;
    out.low = member(form->low);
    out.high = member(form->high);
    if (form->kind == uniform && out.low > out.high) {
      complain(node.source(), "duration: \"from\" must not be more than \"to\"");
    }
    if (form->kind == listed) out.values = {out.low};
  }

  const std::string_view file_;
  std::string about_;  // what is being read, for errors
  std::optional<Error> error_;
  Configuration out_;
  std::map<std::string, std::uint32_t> queue_lines_, schedule_lines_, notify_lines_;
  std::set<std::string> known_queues_, known_functions_;
};

}  // namespace

Duration SimulatedDuration::draw(std::uint64_t number, Random& random) const {
  const auto rounded = [](double nanoseconds) {
    return Duration{static_cast<Duration::rep>(std::clamp(nanoseconds, 0.0, 9e18))};
  };
  const auto low_ns = static_cast<double>(low.count());
  const auto high_ns = static_cast<double>(high.count());
  switch (kind) {
    case Kind::listed: return values[number % values.size()];
    case Kind::uniform: return Duration{random.between(low.count(), high.count())};
    case Kind::normal: {
      // Box and Muller; 1 - unit() is never 0.
      const double radius = std::sqrt(-2 * std::log(1 - random.unit()));
      return rounded(low_ns + high_ns * radius * std::cos(2 * std::numbers::pi * random.unit()));
    }
    case Kind::exponential: return rounded(-low_ns * std::log(1 - random.unit()));
  }
  return {};
}

namespace {

// each(place, command, push): of the targets that a daemon starts.
template <class Each>
void for_each_target(const Configuration& configuration, Each each) {
  for (const ConfiguredQueue& queue : configuration.queues) {
    if (queue.workers > 0) each(queue.target_place, queue.command, queue.push);
  }
  for (std::size_t i = 0; i < configuration.notify.size(); ++i) {
    each(configuration.notify_places[i], configuration.notify[i].command, configuration.notify[i].push);
  }
}

}  // namespace

Result<void> check_targets(const Configuration& configuration) {
  Result<void> good;
  for_each_target(
      configuration, [&](const std::string& place, const std::optional<CommandOptions>& command, const auto&) {
        if (!good || !command) return;
        if (const auto program = find_program(command->args.front(), command->directory); !program) {
          good = fail(Errc::invalid_input, printable(fmt::format("{}: {}", place, program.error().message)));
        }
      });
  return good;
}

Result<void> check_calls(const Configuration& configuration,
                         const std::function<bool(std::string_view queue)>& executes) {
  for (std::size_t i = 0; i < configuration.schedules.size(); ++i) {
    const JobTemplate& job = configuration.schedules[i].job;
    if (!executes(job.queue)) continue;
    if (const auto good = check_call(job.function, job.payload); !good) {
      return fail(Errc::invalid_input, printable(fmt::format("{}: job.payload: {}", configuration.schedule_places[i],
                                                             good.error().message)));
    }
  }
  return {};
}

std::vector<std::string> calls_without_workers(const Configuration& configuration,
                                               const std::function<bool(std::string_view queue)>& executes) {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < configuration.schedules.size(); ++i) {
    const JobTemplate& job = configuration.schedules[i].job;
    if ((job.function != kCommandFunction && job.function != kHttpFunction) || executes(job.queue)) continue;
    const auto queue = std::ranges::find(configuration.queues, job.queue, &ConfiguredQueue::name);
    if (queue != configuration.queues.end() && (queue->says_workers || queue->command || queue->push)) continue;
    const std::string name = in_quotes(job.queue);
    found.push_back(
        fmt::format("{}: the daemon does not run its {}, for the queue {} has no workers: [[queue]] name = {}, workers "
                    "= 1 has it run; workers = 0 says that others do",
                    printable(configuration.schedule_places[i]),
                    job.function == kCommandFunction ? "command" : "request", name, name));
  }
  return found;
}

std::vector<std::string> private_pushes(const Configuration& configuration) {
  std::vector<std::string> found;
  if (configuration.serve.allow_private) return found;
  const AddressGuard guard(false);
  for_each_target(configuration, [&](const std::string& place, const auto&, const std::optional<HttpPush>& push) {
    if (!push || push->allow_private) return;
    if (const auto good = guard.check_name(push->call.request.url.host()); !good) {
      found.push_back(fmt::format("{}: push: {}", place, good.error().message));
    }
  });
  return found;
}

std::vector<std::string> private_calls(const Configuration& configuration) {
  std::vector<std::string> found;
  if (configuration.serve.allow_private) return found;
  const AddressGuard guard(false);
  for (std::size_t i = 0; i < configuration.schedules.size(); ++i) {
    const JobTemplate& job = configuration.schedules[i].job;
    const auto call = job.function == kHttpFunction ? parse_http_call(job.payload) : fail(Errc::not_found, "no call");
    if (!call) continue;
    if (const auto good = guard.check_name(call->request.url.host()); !good) {
      found.push_back(fmt::format("{}: {}", configuration.schedule_places[i], good.error().message));
    }
  }
  return found;
}

Result<Configuration> parse_configuration(std::string_view text, std::string_view name) {
  return ConfigurationReader(name).read(text);
}

Result<Configuration> read_configuration(const std::string& path, FileReading reading) {
  const auto text = read_file_text(path, kMostConfigurationBytes, reading);
  if (!text) return fail(text.error().code, fmt::format("{}: {}", printable(path), text.error().message));
  return parse_configuration(*text, path);
}

}  // namespace argiope
