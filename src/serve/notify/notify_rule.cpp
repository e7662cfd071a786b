#include "serve/notify/internal/notify_rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "argiope/base/clock.hpp"
#include "base/internal/json_members.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"

namespace argiope {

namespace {

constexpr std::size_t kMostNotifyName = 64;
constexpr std::size_t kMostBeginnings = 100;
constexpr std::size_t kMostMailAddress = 500;
constexpr std::uint32_t bit(Trouble trouble) noexcept { return 1u << static_cast<int>(trouble); }
constexpr std::uint32_t kUsually = bit(Trouble::buried) | bit(Trouble::missed) | bit(Trouble::failed) |
                                   bit(Trouble::daemon) | bit(Trouble::alarm) | bit(Trouble::paused) |
                                   bit(Trouble::findings);

void read_troubles(const JsonValue& given, NotifyRule& rule) {
  if (!given.is_list() || given.size() == 0) return given.complain("a list of troubles");
  rule.on = 0;
  given.for_each([&](const JsonValue& entry) {
    const auto found = std::ranges::find(kTroubleNames, entry.if_text().value_or(""));
    if (found == kTroubleNames.end()) return entry.complain(fmt::format("{}", fmt::join(kTroubleNames, ", ")));
    rule.on |= 1u << (found - kTroubleNames.begin());
  });
}

void read_beginnings(const JsonValue& given, NotifyRule& rule) {
  if (!given.is_list() || given.size() > kMostBeginnings) {
    return given.complain(fmt::format("a list of up to {} beginnings of names", kMostBeginnings));
  }
  given.for_each([&](const JsonValue& entry) { rule.only.push_back(entry.text(1, kMostNameBytes)); });
}

// An address in a header of a mail: one line, in ASCII.
void read_address(JsonMembers& in, std::string_view name, std::string& out) {
  const JsonValue* given = in.find(name);
  if (given == nullptr) return;
  out = given->text(1, kMostMailAddress);
  const bool is_plain = std::ranges::all_of(out, [](char c) { return c >= 0x20 && c < 0x7f; });
  if (!is_plain) given->complain("one line of ASCII");
}

// A value that is no object stands for its most important member.
std::string as_object(const JsonValue& given, std::string_view main) {
  if (given.is_object()) return given.json();
  return json_object([&](JsonWriter& json) {
    json.key(main);
    json.raw(given.json());
  });
}

template <class Target, class Parse>
void read_target(JsonMembers& in, std::string_view name, std::string_view main, Parse parse, std::optional<Target>& out,
                 std::string& text) {
  const JsonValue* given = in.find(name);
  if (given == nullptr) return;
  text = as_object(*given, main);
  auto target = parse(text);
  if (!target) return given->refuse(fmt::format("{}", target.error().message));
  out = *std::move(target);
}

void read_targets(JsonMembers& in, NotifyRule& rule) {
  read_target(in, "command", "args", parse_command_call, rule.command, rule.target_text);
  read_target(in, "push", "url", parse_http_push, rule.push, rule.target_text);
  if (rule.command) {
    rule.command->is_from_job = false;
    rule.command->input.reset();  // the message
  }
  const bool allow_private = in.flag("allow_private", false);
  if (!rule.push) return;
  if (allow_private && !std::exchange(rule.push->allow_private, true)) rule.target_text += " allow_private";
  auto& headers = rule.push->call.request.headers;
  const bool says_type = std::ranges::any_of(headers, [](const auto& field) { return field.first == "Content-Type"; });
  if (!says_type) headers.emplace_back("Content-Type", "application/json");
}

void check_targets(const JsonValue& table, NotifyRule& rule) {
  const bool is_mail = rule.format == NotifyFormat::mail;
  if (rule.command && rule.push) return table.refuse("it has a command and a push: one of them");
  if (is_mail && rule.push) return table.refuse("mail goes to a command, and not to a push");
  if (is_mail && rule.to.empty()) return table.refuse("mail needs a `to`");
  if (!rule.command && !rule.push && is_mail) {
    rule.command = CommandOptions{.args = {"/usr/sbin/sendmail", "-t", "-i"}};
    rule.target_text = "sendmail";
  }
  if (!rule.command && !rule.push) table.refuse("it needs a `push` or a `command`");
}

}  // namespace

bool NotifyRule::wants(Trouble trouble, std::string_view subject) const noexcept {
  if ((on & bit(trouble)) == 0) return false;
  if (only.empty() || trouble == Trouble::daemon) return true;
  return std::ranges::any_of(only, [&](const std::string& beginning) { return subject.starts_with(beginning); });
}

NotifyRule read_notify_rule(const JsonValue& table) {
  NotifyRule rule{.on = kUsually};
  JsonMembers in(table);
  if (const JsonValue* given = in.find("name")) rule.name = given->text(1, kMostNotifyName);
  rule.depth = static_cast<std::uint64_t>(in.whole("depth", std::numeric_limits<std::int64_t>::max()));
  in.parsed("age", rule.age, parse_span);
  const bool has_depth = in.has("depth"), has_age = in.has("age");
  if (has_depth) rule.on |= bit(Trouble::depth);
  if (has_age) rule.on |= bit(Trouble::age);
  if (const JsonValue* given = in.find("on")) read_troubles(*given, rule);
  if ((rule.on & bit(Trouble::depth)) != 0 && !has_depth) table.refuse("on \"depth\": say beyond which `depth`");
  if ((rule.on & bit(Trouble::age)) != 0 && !has_age) table.refuse("on \"age\": say beyond which `age`");
  if (const JsonValue* given = in.find("only")) read_beginnings(*given, rule);
  in.choice("format", rule.format, kNotifyFormats);
  read_address(in, "from", rule.from);
  read_address(in, "to", rule.to);
  in.parsed("wait", rule.wait, parse_span);
  in.parsed("interval", rule.interval, parse_span);
  rule.resolved = in.flag("resolved", rule.resolved);
  read_targets(in, rule);
  in.finish("a notify has none");
  check_targets(table, rule);
  return rule;
}

}  // namespace argiope
