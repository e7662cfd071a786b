#include "project/rules/internal/project_definition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "argiope/base/clock.hpp"
#include "argiope/jobs/job.hpp"
#include "base/internal/field_error.hpp"
#include "base/internal/json_members.hpp"
#include "base/internal/json_texts.hpp"
#include "base/internal/nearest.hpp"
#include "base/internal/printable.hpp"
#include "crawl/extract/internal/extraction_json.hpp"
#include "crawl/options/internal/host_rules.hpp"
#include "crawl/scope/internal/revisit_bounds.hpp"
#include "jobs/internal/schedule_json.hpp"
#include "project/rules/internal/project_map.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/url/internal/url_patterns.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostProjectNameBytes = 64;  // pyspider's
constexpr std::size_t kMostRuleNameBytes = 200;
constexpr std::int64_t kMostPauseAfter = 1'000'000;
constexpr std::size_t kMostReadable = 100;
constexpr std::size_t kMostPathBytes = 4096;
constexpr std::string_view kStatusNames[] = {"TODO", "STOP", "CHECKING", "DEBUG", "RUNNING"};
constexpr std::string_view kSinkKinds[] = {"file", "webhook", "command", "queue", "postgresql"};
constexpr std::string_view kSinkFormats[] = {"jsonl", "csv"};
constexpr std::size_t kMostSinkNameBytes = 200;
constexpr Duration kLongestSinkTime = std::chrono::hours{24};
// Of pages that are visited again without an age or bounds of their own.
constexpr RevisitBounds kUsualBounds{std::chrono::hours{1}, std::chrono::days{30}};
// A form is right or wrong whenever it is read: whether a schedule has times is asked from here.
constexpr WallTime kSearchedFrom = std::chrono::sys_days{std::chrono::year{2026} / 1 / 1};

const std::vector<std::string> kProjectMembers = {
    "name",  "group",  "status",  "start",     "scope",   "every",    "schedule", "rate",
    "burst", "weight", "version", "processor", "secrets", "readable", "request",  "pause_after"};
const std::vector<std::string> kWebhookMembers = {"webhook", "secret_file", "secret_env"};
const std::vector<std::string> kRuleMembers = {"name",    "match",       "each",    "part",         "fields",
                                               "follow",  "age",         "revisit", "auto_recrawl", "priority",
                                               "retries", "retry_delay", "tag",     "call",         "request"};
const std::vector<std::string> kAlarmMembers = {"coverage", "least_results", "most_failures"};
const std::vector<std::string> kSinkMembers = {"file",        "webhook",    "command", "queue",       "postgresql",
                                               "name",        "rules",      "format",  "rotate_size", "rotate_every",
                                               "secret_file", "secret_env", "table",   "time_limit"};
const std::vector<std::string> kWholeMembers = {"project", "rule", "alarm", "sink"};

// Misspelt members are told before the ones that then seem to be missing.
bool has_only(const JsonValue& form, std::string_view whose, const std::vector<std::string>& members) {
  form.for_each_member([&](std::string_view name, const JsonValue& value) {
    if (std::ranges::find(members, name) != members.end()) return;
    value.refuse_member(fmt::format("member {}: {} has none{}", in_quotes(name), whose, did_you_mean(name, members)));
  });
  return !form.errors();
}

// A name that something else has to have.
void refuse_unknown(const JsonValue& value, std::string_view name, std::string_view what,
                    const std::vector<std::string>& known) {
  value.refuse(fmt::format("{}: no {} has that name{}", in_quotes(name), what, did_you_mean(name, known)));
}

Result<Duration> parse_age(const std::string& text) {
  if (text == "never" || text == "-1") return kNeverOld;
  const auto age = parse_span(text);
  if (age) return *age;
  return detail::bad_field("age", text, "a time such as 90s or 10d, a number of seconds, or never");
}

std::vector<std::string> read_words(const JsonValue& value, std::string_view example) {
  std::vector<std::string> words;
  if (value.is_list()) words = read_texts(value);
  if (words.empty() && !value.errors()) value.complain(fmt::format("a program and its arguments, as in {}", example));
  if (!words.empty() && words[0].empty()) value.refuse("the program is empty");
  return words;
}

std::optional<double> read_share(const JsonValue& value) {
  const auto share = value.if_number();
  if (share && *share >= 0 && *share <= 1) return share;
  value.complain("a share from 0 to 1");
  return std::nullopt;
}

// --- [[rule]]

void read_follow(const JsonValue& value, ProjectRule& rule) {
  if (const auto flag = value.if_flag()) {
    rule.follow = *flag;
  } else if (value.if_text() || value.is_list()) {
    rule.follow_only = read_texts(value, parse_url_pattern);
    if (rule.follow_only.empty() && !value.errors()) value.refuse("no pattern is there; false follows nothing");
  } else {
    value.complain("true, false, or patterns of the links that are followed");
  }
}

void read_revisit(const JsonValue& value, ProjectRule& rule) {
  const auto text = value.if_text();
  if (!text) return value.complain("\"adaptive\", or bounds as in \"10m..7d\"");
  if (*text == "adaptive") {
    rule.terms.adaptive = kUsualBounds;
  } else if (const auto bounds = parse_revisit_bounds(*text)) {
    rule.terms.adaptive = *bounds;
  } else {
    return value.refuse(fmt::format("{}; or \"adaptive\"", bounds.error().message));
  }
  rule.terms.auto_recrawl = true;
}

void read_retry_delay(const JsonValue& value, RetryPolicy& policy) {
  policy.table.clear();
  const auto take = [&](const JsonValue& entry) {
    if (!entry.if_text() && !entry.if_number()) return entry.complain("a time such as \"30s\", or a number of seconds");
    const auto span = parse_span(entry.shown());
    if (!span) return entry.refuse(span.error());
    policy.table.push_back(*span);
  };
  if (value.is_list()) {
    value.for_each(take);
  } else {
    take(value);
  }
  if (policy.table.empty() && !value.errors()) value.refuse("no time is there");
}

// As scripts say it. Vain members, which scripts may send, are errors here: the author of a file is there to mend them.
RequestSettings read_request(const JsonValue& value) {
  if (!has_only(value, "a request", request_member_names())) return {};
  JsonMembers in(value);
  const JsonValue* const render = in.find("render");
  if (render != nullptr && !has_only(*render, "render", render_member_names())) return {};
  PageSettings settings;
  (void)read_setting(settings, "request", value);
  if (value.errors()) return {};
  if (const auto vain = take_out_clients_headers(settings.request); !vain.empty()) {
    in.find("headers")->for_each_member([&](std::string_view name, const JsonValue& given) {
      if (std::ranges::find(vain, name) != vain.end()) given.refuse_name("only Argiope can say it");
    });
  }
  return std::move(settings.request);
}

// As processors write it (docs/processors.md).
void read_rule_name(JsonMembers& in) {
  const JsonValue* const name = in.find("name");
  if (name == nullptr) return in.object().refuse("a rule needs a name");
  const auto is_refused = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == '\x7f' || c == '"' || c == '\\';
  };
  if (std::ranges::any_of(name->text(1, kMostRuleNameBytes), is_refused)) {
    name->complain("quotes, backslashes and control characters are not allowed");
  }
}

void read_part(const JsonValue& value, ProjectRule& rule) {
  rule.part = value.text(1, kMostRuleNameBytes);
  if (value.errors()) return;
  if (rule.extraction.each.empty()) return value.refuse("it tells records of one page apart, and there is no each");
  std::vector<std::string> names;
  for (const FieldRule& field : rule.extraction.fields) {
    names.push_back(field.name);
    if (field.name == rule.part && field.all) return value.complain("the field is a list; a part is one value");
  }
  if (std::ranges::find(names, rule.part) == names.end()) refuse_unknown(value, rule.part, "field of the rule", names);
}

ProjectRule read_rule(const JsonValue& form) {
  ProjectRule rule;
  if (!form.is_object()) {
    form.complain("a table, under [[rule]]");
    return rule;
  }
  if (!has_only(form, "a rule", kRuleMembers)) return rule;
  JsonMembers in(form);
  read_rule_name(in);
  if (const JsonValue* const match = in.find("match")) (void)read_texts(*match, parse_url_pattern);
  read_extraction_rule(in, rule.extraction);
  if (const JsonValue* const part = in.find("part")) read_part(*part, rule);
  if (const JsonValue* const follow = in.find("follow")) read_follow(*follow, rule);
  in.parsed("age", rule.terms.age, parse_age);
  rule.terms.auto_recrawl = in.flag("auto_recrawl", false);
  if (const JsonValue* const revisit = in.find("revisit")) read_revisit(*revisit, rule);
  rule.terms.priority = static_cast<std::int32_t>(in.whole("priority", 1'000'000'000, -1'000'000'000));
  rule.terms.retries = static_cast<std::uint32_t>(in.whole("retries", 1000, 0, rule.terms.retries));
  if (const JsonValue* const delay = in.find("retry_delay")) read_retry_delay(*delay, rule.terms.retry_delay);
  if (const JsonValue* const tag = in.find("tag")) rule.terms.tag = page_tag(tag->shown());
  rule.call = in.flag("call", true);
  if (const JsonValue* const request = in.find("request")) rule.request = read_request(*request);
  if (form.errors()) return rule;
  if (rule.terms.auto_recrawl && !rule.terms.adaptive && rule.terms.age <= Duration::zero()) {
    form.refuse("auto_recrawl needs an age above 0: when its pages are due again");
  }
  if (!rule.extraction.each.empty() && rule.extraction.fields.empty())
    form.refuse("each is for records, and there are no fields");
  return rule;
}

void read_rules(const JsonValue& list, std::vector<ProjectRule>& rules) {
  if (!list.is_list()) return list.complain("a list: each rule is under [[rule]]");
  if (list.size() > ProjectDefinition::kMostRules)
    return list.refuse(fmt::format("more than {}", ProjectDefinition::kMostRules));
  std::set<std::string> names;
  list.for_each([&](const JsonValue& entry) {
    rules.push_back(read_rule(entry));
    if (entry.errors() || names.insert(rules.back().name()).second) return;
    entry.refuse(fmt::format("there is a rule {} already", in_quotes(rules.back().name())));
  });
}

std::vector<std::string> names_of(const std::vector<ProjectRule>& rules) {
  std::vector<std::string> names;
  for (const ProjectRule& rule : rules) names.push_back(rule.name());
  return names;
}

// --- [project]

void read_project_name(JsonMembers& in, ProjectDefinition& project) {
  const JsonValue* const name = in.find("name");
  if (name == nullptr) return in.object().refuse("a project needs a name");
  project.name = name->text(1, kMostProjectNameBytes);
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  // Programs that ask for a URL take the last two for steps in its path.
  if (!std::ranges::all_of(project.name, is_allowed) || project.name == "." || project.name == "..") {
    name->complain("letters, digits, _, - and . alone, and not . or .. as a whole");
  }
}

bool has_credentials(const Url& url) { return !url.username().empty() || !url.password().empty(); }

Result<Url> parse_start(std::string_view text) {
  auto url = Url::parse(text);
  if (!url) return fail(Errc::invalid_input, fmt::format("{}: {}", in_quotes(text), url.error().message));
  if (url->scheme() != "http" && url->scheme() != "https") {
    return fail(Errc::invalid_input, fmt::format("{}: neither http nor https", in_quotes(text)));
  }
  url->strip_fragment();
  return url;
}

void read_when(JsonMembers& in, ProjectDefinition& project) {
  if (in.has("every")) {
    Duration every{};
    in.parsed("every", every, [](const std::string& text) { return parse_duration(text); });
    project.every = every;
  }
  const JsonValue* const schedule = in.find("schedule");
  if (schedule == nullptr) return;
  if (project.every) return schedule->refuse("it has `every` already");
  auto trigger = detail::read_any_trigger(*schedule);
  if (!trigger) {
    if (!schedule->errors()) schedule->refuse(trigger.error());
    return;
  }
  if (const auto first = trigger->search(kSearchedFrom); first.decided && !first.time)
    schedule->refuse("it has no time from 2026 on");
  project.schedule = *std::move(trigger);
}

void read_rate(JsonMembers& in, ProjectDefinition& project) {
  if (const JsonValue* const rate = in.find("rate")) {
    const auto number = rate->if_number();
    if (!number || !(*number > 0) || !std::isfinite(*number))
      return rate->complain("a number above 0: visits a second");
    project.rate = *number;
  }
  project.burst = static_cast<std::uint32_t>(in.whole("burst", 1'000'000, 1, 1));
  project.weight = static_cast<std::uint32_t>(in.whole("weight", ProjectDefinition::kMostWeight, 1, 1));
}

// Where the secret of requests is: a file or a variable.
void read_signing_secret(JsonMembers& in, std::string& secret_file, std::string& secret_variable) {
  if (const JsonValue* const file = in.find("secret_file")) secret_file = file->text(1, 4096);
  const JsonValue* const variable = in.find("secret_env");
  if (variable == nullptr) return;
  secret_variable = variable->text(1, 200);
  if (!secret_file.empty()) variable->refuse("it has secret_file already");
  if (secret_variable.find_first_of(std::string_view("=\0", 2)) != std::string::npos)
    variable->complain("no name of a variable");
}

// --- who reads pages

bool is_variable_name(std::string_view name) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= 200 && !(name[0] >= '0' && name[0] <= '9') &&
         std::ranges::all_of(name, is_word);
}

void read_processor(const JsonValue& value, ProjectProcessor& processor) {
  if (!value.is_object()) {
    processor.command =
        read_words(value, "processor = [\"python3\", \"shop.py\"]; or a table, as in { webhook = \"https://…\" }");
    return;
  }
  if (!has_only(value, "a processor over HTTP", kWebhookMembers)) return;
  JsonMembers in(value);
  const JsonValue* const webhook = in.find("webhook");
  if (webhook == nullptr) return value.refuse("as a table it needs webhook: the URL that pages are posted to");
  const std::string text = webhook->text(1, 4096);
  if (webhook->errors()) return;
  const auto url = parse_start(text);
  if (!url) return webhook->refuse(url.error().message);
  if (has_credentials(*url)) {
    return webhook->refuse(
        "it has a name or password, which all would see who may see the project; secret_file or secret_env signs "
        "requests");
  }
  processor.webhook = url->href();
  read_signing_secret(in, processor.secret_file, processor.secret_variable);
  const JsonValue* const variable = in.find("secret_env");
  if (variable != nullptr && !value.errors() && !is_variable_name(processor.secret_variable))
    variable->complain("a variable's name has letters, digits and _");
}

// Names of variables, or a table of names and files.
void read_secrets(const JsonValue& value, ProjectProcessor& processor) {
  const auto add = [&](const JsonValue& entry, std::string_view name, std::string file) {
    if (!is_variable_name(name))
      return entry.refuse_member(fmt::format("{}: a variable's name has letters, digits and _", in_quotes(name)));
    if (file.contains('\0')) return entry.refuse("it has a null byte");
    if (std::ranges::find(processor.secrets, name, &ProjectSecret::name) != processor.secrets.end()) {
      return entry.refuse(fmt::format("{} is there already", in_quotes(name)));
    }
    processor.secrets.push_back({std::string(name), std::move(file)});
  };
  if (value.size() > ProjectProcessor::kMostSecrets)
    return value.refuse(fmt::format("more than {}", ProjectProcessor::kMostSecrets));
  if (value.is_list()) {
    value.for_each([&](const JsonValue& entry) { add(entry, entry.text(1, 200), {}); });
  } else if (value.is_object()) {
    value.for_each_member([&](std::string_view name, const JsonValue& file) { add(file, name, file.text(1, 4096)); });
  } else {
    return value.complain("names of variables, as in [\"SHOP_TOKEN\"], or a table of names and files");
  }
  if (!processor.secrets.empty() && processor.command.empty())
    value.refuse("they are for a script: processor names no program");
}

// Paths that the script sees besides its own folder.
void read_readable(const JsonValue& value, ProjectProcessor& processor) {
  if (value.size() > kMostReadable) return value.refuse(fmt::format("more than {}", kMostReadable));
  if (!value.is_list()) return value.complain("folders and files, as in [\"/opt/venv\"]");
  value.for_each([&](const JsonValue& entry) {
    std::string path = entry.text(1, kMostPathBytes);
    if (path.contains('\0')) return entry.refuse("it has a null byte");
    processor.readable.push_back(std::move(path));
  });
  if (!processor.readable.empty() && processor.command.empty())
    value.refuse("they are for a script: processor names no program");
}

void read_project_table(const JsonValue& form, ProjectDefinition& project) {
  if (!form.is_object()) return form.complain("a table: [project]");
  if (!has_only(form, "[project]", kProjectMembers)) return;
  JsonMembers in(form);
  read_project_name(in, project);
  project.group = in.text("group");
  in.choice("status", project.status, kStatusNames);
  if (const JsonValue* const start = in.find("start")) {
    if (start->size() > ProjectDefinition::kMostStarts) {
      return start->refuse(fmt::format("more than {}", ProjectDefinition::kMostStarts));
    }
    project.start = read_texts(*start, parse_start);
  }
  if (const JsonValue* const scope = in.find("scope")) project.scope = read_texts(*scope, parse_host_place);
  read_when(in, project);
  read_rate(in, project);
  if (in.has("pause_after")) project.pause_after = static_cast<std::uint32_t>(in.whole("pause_after", kMostPauseAfter));
  if (const JsonValue* const version = in.find("version")) project.version = version->shown();
  if (const JsonValue* const request = in.find("request")) project.request = read_request(*request);
  if (const JsonValue* const processor = in.find("processor")) read_processor(*processor, project.processor);
  if (const JsonValue* const secrets = in.find("secrets")) read_secrets(*secrets, project.processor);
  if (const JsonValue* const readable = in.find("readable")) read_readable(*readable, project.processor);
}

// --- [alarm], [[sink]]

void read_alarm(const JsonValue& form, const std::vector<ProjectRule>& rules, ProjectAlarm& alarm) {
  if (!form.is_object()) return form.complain("a table: [alarm]");
  if (!has_only(form, "[alarm]", kAlarmMembers)) return;
  std::vector<std::string> fields;
  for (const ProjectRule& rule : rules) {
    for (const FieldRule& field : rule.extraction.fields) fields.push_back(field.name);
  }
  JsonMembers in(form);
  if (const JsonValue* const coverage = in.find("coverage")) {
    coverage->for_each_member([&](std::string_view name, const JsonValue& least) {
      if (std::ranges::find(fields, name) == fields.end()) return refuse_unknown(least, name, "field", fields);
      if (const auto share = read_share(least)) alarm.coverage.push_back({std::string(name), *share});
    });
    if (!coverage->is_object()) {
      if (const auto share = read_share(*coverage)) alarm.coverage.push_back({"", *share});
    }
  }
  alarm.least_results = static_cast<std::uint64_t>(in.whole("least_results", std::int64_t{1} << 53));
  if (const JsonValue* const failures = in.find("most_failures")) alarm.most_failures = read_share(*failures);
}

// Bytes as people write them: 500, "64KB", "1.5 MB", "2GiB".
std::optional<std::uint64_t> parse_size(std::string_view text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {{"", 1},          {"b", 1},
                                                                   {"kb", 1e3},      {"k", 1e3},
                                                                   {"mb", 1e6},      {"m", 1e6},
                                                                   {"gb", 1e9},      {"g", 1e9},
                                                                   {"tb", 1e12},     {"t", 1e12},
                                                                   {"kib", 1 << 10}, {"mib", 1 << 20},
                                                                   {"gib", 1 << 30}, {"tib", 1024.0 * (1 << 30)}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || !(number >= 0)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  for (const auto& [unit, bytes] : kUnits) {
    if (equals_lower(text, unit) && number * bytes < 1e18) return static_cast<std::uint64_t>(number * bytes);
  }
  return std::nullopt;
}

void read_rotate_size(const JsonValue& value, ProjectSink& sink) {
  const auto size = value.if_text() || value.if_number() ? parse_size(value.shown()) : std::nullopt;
  if (!size) return value.complain("bytes, as in \"100MB\" or \"1GiB\"");
  if (*size < ProjectSink::kLeastRotateBytes) {
    return value.complain(fmt::format("at least {} bytes", ProjectSink::kLeastRotateBytes));
  }
  sink.rotate_bytes = *size;
}

// Names that need no quotes in SQL, one or two with a dot.
bool is_table_name(std::string_view text) {
  const auto is_name = [](std::string_view name) {
    constexpr std::size_t kMostBytes = 63;  // PostgreSQL's
    const auto is_word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
    return !name.empty() && name.size() <= kMostBytes && !(name[0] >= '0' && name[0] <= '9') &&
           std::ranges::all_of(name, is_word);
  };
  const std::size_t dot = text.find('.');
  return dot == std::string_view::npos ? is_name(text) : is_name(text.substr(0, dot)) && is_name(text.substr(dot + 1));
}

void read_sink_target(const JsonValue& value, ProjectSink& sink) {
  if (sink.kind == ProjectSink::Kind::command) {
    sink.command = read_words(value, "command = [\"./import.sh\"]");
    return;
  }
  sink.target = value.text(1, sink.kind == ProjectSink::Kind::queue ? kMostNameBytes : 4096);
  if (sink.target.contains('\0')) value.refuse("it has a null byte");
  if (sink.kind != ProjectSink::Kind::webhook || value.errors()) return;
  if (const auto url = parse_start(sink.target); !url) value.refuse(url.error().message);
}

// The other members that a sink may have depend on its kind.
void refuse_strange_options(JsonMembers& in, ProjectSink::Kind kind) {
  using enum ProjectSink::Kind;
  struct Option {
    std::string_view name;
    std::vector<ProjectSink::Kind> of;
  };
  static const std::vector<Option> kOptions = {{"format", {file}},
                                               {"rotate_size", {file}},
                                               {"rotate_every", {file}},
                                               {"secret_file", {webhook, postgresql}},
                                               {"secret_env", {webhook, postgresql}},
                                               {"table", {postgresql}},
                                               {"time_limit", {webhook, command, postgresql}}};
  for (const Option& option : kOptions) {
    const JsonValue* const value = in.find(option.name);
    if (value == nullptr || std::ranges::find(option.of, kind) != option.of.end()) continue;
    std::string kinds;
    for (const ProjectSink::Kind each : option.of) {
      kinds += fmt::format("{}{}", kinds.empty() ? "" : " or ", kSinkKinds[static_cast<std::size_t>(each)]);
    }
    return value->refuse(fmt::format("only a sink with {} has it", kinds));
  }
}

void read_sink_options(JsonMembers& in, ProjectSink& sink) {
  refuse_strange_options(in, sink.kind);
  if (sink.kind == ProjectSink::Kind::file && sink.target.ends_with(".csv")) sink.format = ProjectSink::Format::csv;
  in.choice("format", sink.format, kSinkFormats);
  if (const JsonValue* const size = in.find("rotate_size")) read_rotate_size(*size, sink);
  if (const JsonValue* const every = in.find("rotate_every")) {
    Duration span{};
    in.parsed("rotate_every", span, [](const std::string& text) { return parse_duration(text); });
    if (span < ProjectSink::kLeastRotateSpan) every->complain("at least a minute");
    sink.rotate_span = span;
  }
  read_signing_secret(in, sink.secret_file, sink.secret_variable);
  if (const JsonValue* const table = in.find("table")) {
    sink.table = table->text(1, 200);
    if (!is_table_name(sink.table))
      table->complain("small letters, digits and _, with a schema's name before a dot or without");
  } else if (sink.kind == ProjectSink::Kind::postgresql) {
    in.object().refuse("a sink with postgresql needs a table");
  }
  if (const JsonValue* const limit = in.find("time_limit")) {
    Duration span{};
    in.parsed("time_limit", span, [](const std::string& text) { return parse_duration(text); });
    if (span > kLongestSinkTime) limit->complain("at most a day");
    sink.time_limit = span;
  }
}

// Stable: it names the sink's place in the feed, and so has all of a webhook's URL but passwords: shown_sink_name() is
// for others.
std::string usual_sink_name(const ProjectSink& sink) {
  std::string target = sink.target;
  if (sink.kind == ProjectSink::Kind::webhook) {
    Url url = *parse_start(target);
    url.strip_credentials();
    target = url.href();
  }
  for (const std::string& word : sink.command) target += target.empty() ? word : ' ' + word;
  if (sink.kind == ProjectSink::Kind::postgresql) target = sink.table;
  return fmt::format("{} {}", kSinkKinds[static_cast<std::size_t>(sink.kind)], printable(target, kMostSinkNameBytes));
}

// `rules`: the names there are; null: a script may name others.
ProjectSink read_sink(const JsonValue& form, const std::vector<std::string>* rules) {
  ProjectSink sink;
  if (!form.is_object()) {
    form.complain("a table, under [[sink]]");
    return sink;
  }
  if (!has_only(form, "a sink", kSinkMembers)) return sink;
  JsonMembers in(form);
  std::size_t targets = 0;
  for (std::size_t i = 0; i < std::size(kSinkKinds); ++i) {
    const JsonValue* const target = in.find(kSinkKinds[i]);
    if (target == nullptr) continue;
    ++targets;
    sink.kind = static_cast<ProjectSink::Kind>(i);
    read_sink_target(*target, sink);
  }
  if (targets != 1 && !form.errors()) form.refuse("a sink has one of file, webhook, command, queue and postgresql");
  if (form.errors()) return sink;
  read_sink_options(in, sink);
  sink.name = usual_sink_name(sink);
  if (const JsonValue* const name = in.find("name")) {
    sink.name = name->text(1, kMostSinkNameBytes);
    if (printable(sink.name) != sink.name) name->complain("no control characters, and UTF-8");
  }
  if (const JsonValue* const only = in.find("rules")) {
    sink.rules = read_texts(*only);
    for (const std::string& name : sink.rules) {
      if (rules != nullptr && std::ranges::find(*rules, name) == rules->end())
        refuse_unknown(*only, name, "rule", *rules);
    }
  }
  return sink;
}

void read_sinks(const JsonValue& list, const std::vector<std::string>* rules, std::vector<ProjectSink>& sinks) {
  if (!list.is_list()) return list.complain("a list: each sink is under [[sink]]");
  if (list.size() > ProjectDefinition::kMostSinks)
    return list.refuse(fmt::format("more than {}", ProjectDefinition::kMostSinks));
  std::set<std::string> names, files;
  list.for_each([&](const JsonValue& entry) {
    const ProjectSink& sink = sinks.emplace_back(read_sink(entry, rules));
    if (entry.errors()) return;
    if (sink.kind == ProjectSink::Kind::file && !files.insert(sink.target).second) {
      return entry.refuse(fmt::format("there is a sink with file {} already", in_quotes(sink.target)));
    }
    if (names.insert(sink.name).second) return;
    entry.refuse(fmt::format("there is a sink {} already: give it a name of its own", in_quotes(sink.name)));
  });
}

// --- the whole

// Without a processor a page has the first rule that matches it, and nothing else is done with it.
void check_rules_alone(const JsonValue& form, const JsonValue* list, const std::vector<ProjectRule>& rules) {
  if (rules.empty()) return form.refuse("a project needs a [[rule]], or a processor");
  const ProjectRule* all = nullptr;
  std::size_t i = 0;
  list->for_each([&](const JsonValue& entry) {
    const ProjectRule& rule = rules[i++];
    if (JsonMembers(entry).has("call")) return entry.refuse("it has call, and the project has no processor");
    if (all != nullptr) {
      return entry.refuse(
          fmt::format("no page gets it: rule {} before it has no match, and takes all", in_quotes(all->name())));
    }
    if (rule.extraction.match.empty()) all = &rule;
  });
}

// Without a processor the starts are all that can begin anything.
void check_starts(const JsonValue& form, const ProjectDefinition& project) {
  if (!project.processor.empty()) return;
  if (project.start.empty()) return form.refuse("a project needs start: URLs with which it begins; or a processor");
  const auto map = ProjectMap::make(project);
  if (!map) return form.refuse(map.error());
  JsonMembers in(form);
  const JsonValue* const start = in.find("start");
  const auto check_start = [&](const JsonValue& entry, const Url& url) {
    const auto place = map->find(url.href()).place;
    if (place == ProjectMap::Place::no_rule) entry.complain("no rule matches it");
    if (place != ProjectMap::Place::off_scope) return;
    if (!has_credentials(url)) return entry.complain("it is out of the project's scope");
    entry.refuse(
        "it has a name or password, which would be part of its name and no other page's; a header sends them for all "
        "pages: [project.request] headers = { Authorization = \"Basic …\" }");
  };
  if (!start->is_list()) return check_start(*start, project.start.front());
  std::size_t i = 0;
  start->for_each([&](const JsonValue& entry) { check_start(entry, project.start[i++]); });
}

}  // namespace

std::string shown_sink_name(std::string_view name) {
  constexpr std::string_view kBegin = "webhook ";
  const auto url =
      name.starts_with(kBegin) ? Url::parse(name.substr(kBegin.size())) : fail(Errc::invalid_input, "no webhook's");
  return url ? fmt::format("{}{}", kBegin, url->site_key()) : std::string(name);
}

ProjectDefinition read_project(const JsonValue& form) {
  ProjectDefinition project;
  if (!has_only(form, "a project's file", kWholeMembers)) return project;
  JsonMembers in(form);
  const JsonValue* const table = in.find("project");
  if (table == nullptr) form.refuse("a project needs a table [project]");
  if (const JsonValue* const rules = in.find("rule")) read_rules(*rules, project.rules);
  if (form.errors()) return project;
  read_project_table(*table, project);
  if (form.errors()) return project;
  for (ProjectRule& rule : project.rules) {
    if (rule.terms.tag == 0) rule.terms.tag = page_tag(project.version);
  }
  if (project.processor.empty()) check_rules_alone(form, in.find("rule"), project.rules);
  if (const JsonValue* const alarm = in.find("alarm")) read_alarm(*alarm, project.rules, project.alarm);
  if (const JsonValue* const sinks = in.find("sink")) {
    const std::vector<std::string> names = names_of(project.rules);
    read_sinks(*sinks, project.processor.empty() ? &names : nullptr, project.sinks);
  }
  if (!form.errors()) check_starts(*table, project);
  return project;
}

Result<ProjectDefinition> parse_project_json(std::string_view json) {
  const auto text = JsonText::parse(json);
  if (!text) return std::unexpected(text.error());
  JsonErrors errors;
  ProjectDefinition project = read_project(text->root(errors));
  if (errors) return std::unexpected(errors.error());
  return project;
}

std::string_view to_string(ProjectStatus status) noexcept { return kStatusNames[static_cast<std::size_t>(status)]; }

}  // namespace argiope
