#include "config/internal/settings_changes.hpp"

#include <fmt/format.h>

#include <map>
#include <string_view>

#include "argiope/jobs/job_queue.hpp"
#include "argiope/jobs/schedule.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope {
namespace {

// By its name, a text that says all of each.
using TextsByName = std::map<std::string, std::string>;

TextsByName texts_of(const std::vector<ConfiguredQueue>& queues) {
  TextsByName texts;
  for (const ConfiguredQueue& queue : queues) {
    texts[queue.name] =
        fmt::format("{} {} {} {}", to_json(queue.config), queue.workers, queue.says_workers, queue.target_text);
  }
  return texts;
}

TextsByName texts_of(const std::vector<Schedule>& schedules) {
  TextsByName texts;
  for (const Schedule& schedule : schedules) texts[schedule.name] = to_json(schedule);
  return texts;
}

TextsByName texts_of(const std::vector<NotifyRule>& rules) {
  TextsByName texts;
  for (const NotifyRule& rule : rules) {
    texts[rule.name] = json_object([&](JsonWriter& json) {
      json.member("on", rule.on);
      json.list("only", rule.only);
      json.member("depth", rule.depth);
      json.member("age", rule.age.count());
      json.member("format", static_cast<int>(rule.format));
      json.member("from", rule.from);
      json.member("to", rule.to);
      json.member("wait", rule.wait.count());
      json.member("interval", rule.interval.count());
      json.member("resolved", rule.resolved);
      json.member("target", rule.target_text);
    });
  }
  return texts;
}

TextsByName texts_of(const std::vector<ConfiguredProject>& projects) {
  TextsByName texts;
  for (const ConfiguredProject& project : projects) texts[project.file] = project.text;
  return texts;
}

TextsByName texts_of(const std::vector<Token>& tokens) {
  TextsByName texts;
  for (const Token& token : tokens) {
    texts[token.name] = json_object([&](JsonWriter& json) {
      json.member("digest", token.digest);
      json.member("scope", static_cast<int>(token.scope));
      json.list("prefixes", token.prefixes);
      json.member("expires_at", token.expires_at);
    });
  }
  return texts;
}

void write_names(JsonWriter& json, std::string_view member, const std::vector<std::string>& names) {
  if (!names.empty()) json.list(member, names);
}

void write_difference(JsonWriter& json, std::string_view kind, const TextsByName& before, const TextsByName& after) {
  if (before == after) return;
  std::vector<std::string> added, changed, removed;
  for (const auto& [name, text] : after) {
    const auto old = before.find(name);
    if (old == before.end()) added.push_back(name);
    if (old != before.end() && old->second != text) changed.push_back(name);
  }
  for (const auto& [name, text] : before) {
    if (!after.contains(name)) removed.push_back(name);
  }
  json.object(kind, [&] {
    write_names(json, "added", added);
    write_names(json, "changed", changed);
    write_names(json, "removed", removed);
  });
}

}  // namespace

std::string changes_between(const SettingsInForce& before, const SettingsInForce& after) {
  const Configuration& old = before.configuration;
  const Configuration& now = after.configuration;
  return json_object([&](JsonWriter& json) {
    write_difference(json, "queues", texts_of(old.queues), texts_of(now.queues));
    write_difference(json, "schedules", texts_of(old.schedules), texts_of(now.schedules));
    write_difference(json, "notify", texts_of(old.notify), texts_of(now.notify));
    write_difference(json, "projects", texts_of(old.projects), texts_of(now.projects));
    write_difference(json, "tokens", texts_of(before.tokens), texts_of(after.tokens));
    if (before.hosts != after.hosts) json.list("hosts", after.hosts);
    if (before.certificate_expires_at != after.certificate_expires_at) {
      json.member("certificate_expires_at", after.certificate_expires_at);
    }
  });
}

}  // namespace argiope
