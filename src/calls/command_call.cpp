// Jobs whose payload is a command line.
#include <fmt/format.h>

#include <algorithm>

#include "argiope/calls/command.hpp"
#include "argiope/engine/scheduler.hpp"
#include "argiope/time/timestamp.hpp"
#include "base/internal/json_form.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostCallBytes = 1024 * 1024;
constexpr std::size_t kMostArguments = 10'000;

Coro<void> run_call(Scheduler& scheduler, Duration grace, JobContext& context) {
  auto call = parse_command_call(context.payload());
  if (!call) throw BuryJob(call.error().message);
  call->grace = grace;
  const bool knows_its_run = std::ranges::any_of(
      call->environment, [](const std::string& entry) { return entry.starts_with("ARGIOPE_SCHEDULE_RUN="); });
  std::optional<ScheduledRun> run;
  if (!knows_its_run) {
    auto found = co_await scheduler.run_of(context.job().id);
    if (!found) throw std::runtime_error(found.error().message);
    run = std::move(*found);
  }
  if (run) {
    call->environment.push_back("ARGIOPE_SCHEDULE_NAME=" + run->name);
    call->environment.push_back("ARGIOPE_SCHEDULE_PLANNED_AT=" + format_timestamp(run->planned));
    call->environment.push_back(fmt::format("ARGIOPE_SCHEDULE_RUN={}", run->run));
  }
  const JobFunction command = as_command(std::move(*call));
  co_await command(context);
}

}  // namespace

Result<CommandOptions> parse_command_call(std::string_view payload) {
  const auto form = detail::read_object("command", payload, kMostCallBytes);
  if (!form) return std::unexpected(form.error());
  detail::Reader in(*form);
  CommandOptions call;
  const boost::json::value* args = in.find("args");
  if (args == nullptr || !args->is_array() || args->as_array().empty() || args->as_array().size() > kMostArguments) {
    return fail(Errc::invalid_input, "args: a list of a program and its arguments");
  }
  for (const boost::json::value& arg : args->as_array()) {
    if (!arg.is_string()) return detail::bad_field("args", boost::json::serialize(arg), "strings");
    call.args.emplace_back(arg.as_string());
  }
  call.input = in.text("input");
  if (const boost::json::value* environment = in.find("environment")) {
    if (!environment->is_object()) {
      return detail::bad_field("environment", boost::json::serialize(*environment), "an object of names and values");
    }
    for (const auto& member : environment->as_object()) {
      const std::string_view name = member.key();
      if (name.empty() || name.contains('=')) return detail::bad_field("environment", name, "no name of a variable");
      if (!member.value().is_string()) {
        return detail::bad_field("environment", boost::json::serialize(member.value()), "strings");
      }
      call.environment.push_back(fmt::format("{}={}", name, std::string_view(member.value().as_string())));
    }
  }
  in.parsed("timeout", call.timeout, parse_duration);
  call.directory = in.text("directory");
  if (!call.directory.empty() && (!call.directory.starts_with('/') || call.directory.contains('\0'))) {
    return detail::bad_field("directory", call.directory, "an absolute path");
  }
  call.is_from_job = true;
  if (auto error = in.finish("a command has none")) return std::unexpected(std::move(*error));
  return call;
}

JobFunction as_command_call(Scheduler& scheduler, Duration grace) {
  return [&scheduler, grace](JobContext& context) { return run_call(scheduler, grace, context); };
}

}  // namespace argiope
