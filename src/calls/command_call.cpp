// Jobs whose payload is a command line.
#include <fmt/format.h>

#include <algorithm>

#include "argiope/base/clock.hpp"
#include "argiope/calls/calls.hpp"
#include "argiope/engine/engine.hpp"
#include "argiope/time/time_zone.hpp"
#include "base/internal/json_members.hpp"
#include "calls/internal/call_functions.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostArguments = 10'000;
constexpr int kMostStatus = 255;

void read_args(JsonMembers& in, CommandOptions& call) {
  const JsonValue* args = in.find("args");
  if (args == nullptr || !args->is_list() || args->size() == 0 || args->size() > kMostArguments) {
    return in.object().refuse("args: a list of a program and its arguments");
  }
  args->for_each([&](const JsonValue& arg) {
    const auto text = arg.if_text();
    text ? void(call.args.emplace_back(*text)) : arg.complain("a string");
  });
}

void read_environment(JsonMembers& in, CommandOptions& call) {
  const JsonValue* environment = in.find("environment");
  if (environment == nullptr) return;
  if (!environment->is_object()) return environment->complain("an object of names and values");
  environment->for_each_name([&](std::string_view name, const JsonValue& value) {
    if (name.empty() || name.contains('=')) return value.refuse_name("no name of a variable");
    const auto text = value.if_text();
    text ? void(call.environment.push_back(fmt::format("{}={}", name, *text))) : value.complain("a string");
  });
}

void read_ok_status(JsonMembers& in, CommandOptions& call) {
  const JsonValue* statuses = in.find("ok_status");
  if (statuses == nullptr) return;
  if (!statuses->is_list() || statuses->size() == 0 || statuses->size() > kMostStatus + 1) {
    return statuses->complain("a list of exit statuses, such as [0, 1]");
  }
  statuses->for_each(
      [&](const JsonValue& status) { call.ok_status.push_back(static_cast<int>(status.whole(0, kMostStatus))); });
}

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
  const auto text = JsonText::parse_object("command", payload, kMostCallBytes);
  if (!text) return std::unexpected(text.error());
  JsonErrors errors;
  const JsonValue form = text->root(errors);
  JsonMembers in(form);
  CommandOptions call;
  read_args(in, call);
  call.input = in.text("input");
  read_environment(in, call);
  in.parsed("timeout", call.timeout, parse_duration);
  read_ok_status(in, call);
  call.directory = in.text("directory");
  if (!call.directory.empty() && (!call.directory.starts_with('/') || call.directory.contains('\0'))) {
    in.find("directory")->complain("an absolute path");
  }
  in.finish("a command has none");
  if (errors) return std::unexpected(errors.error());
  call.is_from_job = true;
  return call;
}

JobFunction as_command_call(Scheduler& scheduler, Duration grace) {
  return [&scheduler, grace](JobContext& context) { return run_call(scheduler, grace, context); };
}

}  // namespace argiope
