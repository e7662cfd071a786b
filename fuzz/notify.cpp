// [[notify]] and the messages that it sends: any JSON as a rule, any text as what has gone wrong. A rule that is taken
// keeps to its bounds, and its target is read back as the same; no text of others becomes a header of a mail or a
// member of its JSON.
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "argiope/calls/calls.hpp"
#include "fuzz/require.hpp"
#include "serve/notify/internal/notify_rule.hpp"
#include "serve/notify/notice.hpp"

using namespace argiope;

namespace {

// One that is in order, with the format that a number says.
NotifyRule some_rule(unsigned number) {
  NotifyRule rule;
  rule.name = "ops";
  rule.format = static_cast<NotifyFormat>(number % std::size(kNotifyFormats));
  rule.from = "argiope@jobs.example";
  rule.to = "ann@example.org";
  return rule;
}

void check_rule(const NotifyRule& rule) {
  require(!rule.name.empty() && rule.name.size() <= 64 && rule.queue().size() <= 512);
  require(rule.on != 0 && rule.on < 1u << kTroubleNames.size());
  require(rule.only.size() <= 100);
  require(rule.command.has_value() != rule.push.has_value());
  require(rule.wait >= Duration::zero() && rule.interval >= Duration::zero() && rule.age >= Duration::zero());
  if (rule.format == NotifyFormat::mail) require(rule.command.has_value() && !rule.to.empty());
  for (const std::string* address : {&rule.from, &rule.to})
    require(address->find_first_of("\r\n") == std::string::npos);
  for (std::size_t i = 0; i < kTroubleNames.size(); ++i) {
    const bool is_on = (rule.on & 1u << i) != 0;
    const bool wants_all = rule.only.empty() || static_cast<Trouble>(i) == Trouble::daemon;
    require(rule.wants(static_cast<Trouble>(i), "some queue that nothing begins like \x01") == (is_on && wants_all) ||
            !rule.only.empty());
    if (!rule.only.empty()) require(rule.wants(static_cast<Trouble>(i), rule.only[0] + " more") == is_on);
  }
  if (rule.target_text == "sendmail") return;
  if (rule.command) {
    const auto again = parse_command_call(rule.target_text);
    require(again && again->args == rule.command->args && !rule.command->args.empty());
  } else {
    const auto again = parse_http_push(rule.target_text);
    require(again && again->call.request.url == rule.push->call.request.url);
  }
}

void read_rule(std::string_view input) {
  const auto text = JsonText::parse(input);
  if (!text) return;
  JsonErrors errors;
  const JsonValue root = text->root(errors);
  if (!root.is_object()) return;
  const NotifyRule rule = read_notify_rule(root);
  // What has no name is refused by the file, which asks for it.
  if (!errors && !rule.name.empty()) check_rule(rule);
}

void check_mail(std::string_view mail) {
  static const std::set<std::string_view> kFields{
      "From",          "To",           "Subject",      "Date",
      "Message-ID",    "MIME-Version", "Content-Type", "Content-Transfer-Encoding",
      "Auto-Submitted"};
  std::set<std::string_view> seen;
  while (true) {
    const std::size_t end = mail.find('\n');
    require(end != std::string_view::npos);
    std::string_view line = mail.substr(0, end);
    mail.remove_prefix(end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    require(line.find('\r') == std::string_view::npos && line.size() <= 998);
    if (line.empty()) break;
    if (line.starts_with(' ') || line.starts_with('\t')) continue;  // the field goes on
    const std::string_view name = line.substr(0, line.find(':'));
    require(kFields.contains(name) && seen.insert(name).second);
  }
  require(seen.contains("To") && seen.contains("Subject"));
}

void write_some(std::string_view input) {
  Notices notices;
  const unsigned number = static_cast<unsigned char>(input[0]);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t third = input.size() / 3;
    notices.add({.trouble = static_cast<Trouble>((number + i) % kTroubleNames.size()),
                 .subject = std::string(input.substr(i * third, third / 2)),
                 .is_over = i == 1,
                 .first_at = WallTime{std::chrono::seconds{1}},
                 .last_at = WallTime{std::chrono::seconds{2}},
                 .text = std::string(input.substr(i * third + third / 2)),
                 .jobs = {i}});
  }
  for (const auto& [key, notice] : notices) require(to_sentence(notice).find('\n') == std::string::npos);
  const NotifyRule rule = some_rule(number);
  const std::string message =
      write_message(rule, {.from = std::string(input.substr(0, 40)), .at = WallTime{}}, notices);
  if (rule.format == NotifyFormat::mail) return check_mail(message);
  const auto json = JsonText::parse(message);
  require(json.has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  read_rule(input);
  if (size > 0) write_some(input);
  return 0;
}
