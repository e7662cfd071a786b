// The meaning of a script's lines. Whatever they hold, nothing of it is believed: everything has a bound, and mistakes
// are told with the place where they are.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>
#include <unordered_map>

#include "base/internal/json_reader.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "base/internal/utf8.hpp"
#include "project/process/internal/processor_messages.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

using std::chrono::milliseconds;
using Limits = ProcessorLimits;

// A century: what is longer is as good as for ever, and sums with it stay times.
constexpr std::int64_t kLongestDelayMs = std::int64_t{36'525} * 24 * 3'600'000;
// Of the lines of a log that tell of one line of an answer.
constexpr std::size_t kMostComplaints = 100;
constexpr std::size_t kMostRuleBytes = 200;
constexpr std::size_t kMostNameBytes = 1'000;
constexpr std::size_t kMostMessageUrlBytes = 64 * 1024;
constexpr std::size_t kMostRulesOfScript = 1'000;
constexpr std::size_t kMostTicks = 100;
constexpr std::int64_t kLongestTickMs = std::int64_t{366} * 24 * 3'600'000;
constexpr std::int64_t kMostConcurrency = 1'000;
constexpr std::uint32_t kMostFailures = 1'000;  // before one: more than `retries` allows
constexpr std::size_t kMostWithin = 10'000;
constexpr std::int64_t kMostMatches = 10'000;
constexpr std::size_t kMostTraceBytes = 64 * 1024;
constexpr std::size_t kMostFailureBytes = 4 * 1024;

constexpr std::string_view kAList = "a list";
constexpr std::string_view kAnObject = "an object";

// `pages/3/url: …`, `pages/3/retries 5000: …`. `seen_before`: entries of the list before those of this line.
std::string complaint_of(const JsonErrors& errors, std::size_t seen_before = 0) {
  std::string out;
  for (std::size_t i = 0; i < errors.where().size(); ++i) {
    const auto& step = errors.where()[i];
    if (i > 0) out += '/';
    if (const auto* place = std::get_if<std::size_t>(&step)) {
      out += fmt::to_string(*place + (i == 1 ? seen_before : 0));
    } else {
      out += printable(std::get<std::string>(step), 60);
    }
  }
  if (!errors.given().empty()) out.append(out.empty() ? "" : " ").append(errors.given());
  return out.append(out.empty() ? "" : ": ").append(errors.why());
}

Duration delay_of(const JsonValue& value, std::int64_t least,
                  std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  return milliseconds{std::min(value.whole(least, most), kLongestDelayMs)};
}

// The names that a page's line can say without escapes.
bool is_rule_name(std::string_view name) noexcept {
  const auto needs_escape = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == '\x7f' || c == '"' || c == '\\';
  };
  return !name.empty() && name.size() <= kMostRuleBytes && std::ranges::none_of(name, needs_escape);
}

std::string rule_name_of(const JsonValue& value) {
  const std::string_view name = value.if_text().value_or("");
  if (!is_rule_name(name)) {
    value.wrong(
        fmt::format("a rule's name: 1 to {} bytes without quotes, backslashes and control characters", kMostRuleBytes));
  }
  return std::string(name);
}

// JSON that is kept for others to read.
std::string kept_of(const JsonValue& value, std::size_t most) {
  std::string json = value.kept_json();
  if (json.size() > most) value.refuse(fmt::format("{} bytes as JSON: at most {}", json.size(), most));
  return json;
}

// Of a text that people read, the front.
std::string front_of(const JsonValue& value, std::size_t most) {
  const auto text = value.if_text();
  if (!text) value.wrong("a string");
  return std::string(cut_between_characters(text.value_or(""), most));
}

std::string_view level_of(std::string_view given) noexcept {
  for (const std::string_view level : {"debug", "warning", "error", "print"}) {
    if (given == level) return level;
  }
  return "info";
}

ProcessorFailure failure_of(const JsonValue& value) {
  ProcessorFailure failure;
  if (!value.is_object()) {
    value.wrong(kAnObject);
    return failure;
  }
  bool has_text = false;
  value.for_each_member([&](std::string_view name, const JsonValue& given) {
    if (given.is_null()) return;
    if (name == "text") failure.text = front_of(given, kMostFailureBytes), has_text = true;
    if (name == "kind") failure.kind = front_of(given, kMostNameBytes);
    if (name == "where") failure.where = front_of(given, kMostNameBytes);
    if (name == "trace") failure.trace = front_of(given, kMostTraceBytes);
    if (name == "delay_ms") failure.delay = delay_of(given, 0);
    if (name == "final") failure.is_final = given.flag();
  });
  if (!has_text && !value.errors()) value.refuse("its text is missing");
  return failure;
}

// Rules and defaults, too.
void note_headers(RequestSettings& request, std::string_view place, std::vector<std::string>& notes) {
  for (const std::string& name : take_out_clients_headers(request)) {
    notes.push_back(
        fmt::format("{}/request/headers/{}: only Argiope can say it: left out", place, printable(name, 60)));
  }
}

// --- URLs -----------------------------------------------------------------------------------------------------------

std::string_view trouble_of(UrlStatus status) noexcept {
  switch (status) {
    case UrlStatus::ok: return "";
    case UrlStatus::unsupported: return "has an unknown scheme";
    case UrlStatus::too_large: return "is too long";
    case UrlStatus::no_base: return "is relative, and the page has no address that it could be relative to";
    case UrlStatus::no_host: return "has no host";
    case UrlStatus::bad_host: return "has a host that is none";
    case UrlStatus::bad_port: return "has a port that is none";
  }
  return "is no URL";
}

// A `data:` URL as the URL Standard reads it: without spaces around it, tabs and line ends. nullopt: it is none.
std::optional<std::string> data_url_of(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= 0x20) text.remove_prefix(1);
  if (!starts_with_lower(text, "data:")) return std::nullopt;
  while (static_cast<unsigned char>(text.back()) <= 0x20) text.remove_suffix(1);
  std::string url = "data:" + std::string(text.substr(5));
  std::erase_if(url, [](char c) { return c == '\t' || c == '\n' || c == '\r'; });
  return url;
}

std::string absolute_url_of(const JsonValue& value, const Url* base) {
  const auto text = value.if_text();
  if (!text) {
    value.wrong("a URL");
    return {};
  }
  const auto refuse = [&](std::string_view why) {
    value.refuse(fmt::format("{} {}", in_quotes(without_credentials(*text)), why));
    return std::string();
  };
  if (auto url = data_url_of(*text))
    return url->contains(',') ? *url : refuse("has no comma, behind which its content would be");
  Url url;
  if (const UrlStatus status = parse_into(url, *text, base); status != UrlStatus::ok) return refuse(trouble_of(status));
  if (url.scheme() != "http" && url.scheme() != "https") return refuse(trouble_of(UrlStatus::unsupported));
  return url.href();
}

// --- answers --------------------------------------------------------------------------------------------------------

class AnswerReader {
 public:
  AnswerReader(const OpenVisit& visit, std::size_t line_bytes, AnswerPart& part)
      : visit_(visit), line_bytes_(line_bytes), part_(part) {}

  void read(const JsonValue& root) {
    JsonErrors types;
    const JsonValue answer = root.telling(types);
    answer.for_each_name([&](std::string_view name, const JsonValue& value) { read_member(name, value); });
    if (over_ > 0) note(fmt::format("{} more of its entries are wrong, and left out", over_));
    if (types) take_wrong_type(types);
  }

 private:
  void read_member(std::string_view name, const JsonValue& value) {
    VisitAnswer& answer = part_.answer;
    if (name == "save" && part_.is_last) return read_save(value);
    if (value.is_null()) return;
    if (name == "pages") {
      read_list(value, visit_.pages_seen(), Limits::kMostPages, part_.pages_seen,
                [&](const JsonValue& entry, std::size_t place) { read_page(entry, place); });
    } else if (name == "results") {
      auto& results = answer.results.emplace();
      read_list(value, visit_.results_seen(), Limits::kMostResults, part_.results_seen,
                [&](const JsonValue& entry, std::size_t) { read_result(entry, results); });
    } else if (name == "messages") {
      read_list(value, visit_.messages_seen(), Limits::kMostMessages, part_.messages_seen,
                [&](const JsonValue& entry, std::size_t) { read_message(entry); });
    } else if (name == "logs" && part_.is_last) {
      std::size_t seen = 0;
      read_list(value, 0, std::numeric_limits<std::size_t>::max(), seen,
                [&](const JsonValue& entry, std::size_t) { read_log(entry); });
    } else if (name == "error" && part_.is_last) {
      answer.failure = failure_of(value);
    }
  }

  // read(entry, place in the joined list). A mistake in an entry is noted, and goes no further.
  template <class Read>
  void read_list(const JsonValue& list, std::size_t seen_before, std::size_t most, std::size_t& seen, Read read) {
    if (!list.is_list()) return list.wrong(kAList);
    seen = 0;
    list.for_each([&](const JsonValue& entry) {
      const std::size_t place = seen_before + seen++;
      if (place >= most) return;
      JsonErrors errors;
      read(entry.telling(errors), place);
      if (errors) complain(complaint_of(errors, seen_before));
    });
  }

  void read_page(const JsonValue& entry, std::size_t place) {
    if (!entry.is_object()) return entry.wrong(kAnObject);
    // Without white space it is no longer than its line.
    if (line_bytes_ > Limits::kMostPageBytes) {
      const std::size_t bytes = entry.json().size();
      if (bytes > Limits::kMostPageBytes) {
        return entry.refuse(fmt::format("{} bytes as JSON: at most {}", bytes, Limits::kMostPageBytes));
      }
    }
    AskedPage page;
    page.rule = kUsualRule;
    bool has_url = false;
    entry.for_each_member([&](std::string_view name, const JsonValue& value) {
      if (read_setting(page.settings, name, value) || value.is_null()) return;
      if (name == "url") page.url = absolute_url_of(value, visit_.base()), has_url = true;
      if (name == "name") page.name = value.text(1, kMostNameBytes);
      if (name == "rule") page.rule = rule_name_of(value);
      if (name == "context") page.context_json = kept_of(value, Limits::kMostContextBytes);
      if (name == "due_at") page.due_at = time_of(value);
      if (name == "delay_ms") page.delay = delay_of(value, 0);
      if (name == "force") page.force = value.flag();
      if (name == "cancel") page.cancel = value.flag();
    });
    if (entry.errors()) return;
    if (!has_url) return entry.refuse("its url is missing");
    if (page.due_at && page.delay) return entry.refuse("due_at and delay_ms: one of both is wanted");
    std::vector<std::string> notes;
    note_headers(page.settings.request, fmt::format("pages/{}", place), notes);
    for (std::string& text : notes) complain(std::move(text));
    part_.answer.pages.push_back(std::move(page));
  }

  static WallTime time_of(const JsonValue& value) {
    const auto time = parse_rfc3339(value.if_text().value_or(""));
    if (!time) value.wrong("a time such as 2026-01-31T12:00:00Z");
    return time.value_or(WallTime{});
  }

  static void read_result(const JsonValue& entry, std::vector<PageResult>& results) {
    if (!entry.is_object()) return entry.wrong(kAnObject);
    PageResult result{.part = {}, .value_json = "null"};
    entry.for_each_member([&](std::string_view name, const JsonValue& value) {
      if (name == "part" && !value.is_null()) result.part = value.text(0, kMostNameBytes);
      if (name == "value") result.value_json = kept_of(value, Limits::kMostValueBytes);
    });
    if (!entry.errors()) results.push_back(std::move(result));
  }

  void read_message(const JsonValue& entry) {
    if (!entry.is_object()) return entry.wrong(kAnObject);
    PageMessage message{.project = {}, .message_json = "null"};
    entry.for_each_member([&](std::string_view name, const JsonValue& value) {
      if (name == "message") message.message_json = kept_of(value, Limits::kMostContextBytes);
      if (value.is_null()) return;
      if (name == "project") message.project = value.text(1, kMostRuleBytes);
      if (name == "url") message.url = value.text(1, kMostMessageUrlBytes);
    });
    if (entry.errors()) return;
    if (message.project.empty()) return entry.refuse("its project is missing");
    part_.answer.messages.push_back(std::move(message));
  }

  void read_log(const JsonValue& entry) {
    if (!entry.is_object()) return entry.wrong(kAnObject);
    PageLog log{.level = "info", .text = {}};
    entry.for_each_member([&](std::string_view name, const JsonValue& value) {
      if (name == "level") log.level = level_of(value.if_text().value_or(""));
      if (name == "text") log.text = value.shown();
    });
    // The visit cuts what is too much; what it would not keep at all need not come as far.
    const std::size_t bytes = std::max<std::size_t>(1, log.text.size());
    if (log_bytes_ >= visit_.limits().log_bytes) return void(part_.log_bytes_over += bytes);
    log_bytes_ += bytes;
    part_.answer.logs.push_back(std::move(log));
  }

  void read_save(const JsonValue& value) {
    std::string save = value.kept_json();
    if (save.size() <= Limits::kMostValueBytes) {
      part_.answer.save_json = std::move(save);
      return;
    }
    note(fmt::format("save: {} bytes as JSON: at most {}; the one before stays", save.size(), Limits::kMostValueBytes));
  }

  void complain(std::string text) {
    if (++complaints_ > kMostComplaints) return void(++over_);
    note(std::move(text));
  }
  void note(std::string text) { part_.answer.logs.push_back({.level = "warning", .text = std::move(text)}); }

  void take_wrong_type(const JsonErrors& types) {
    VisitAnswer& answer = part_.answer;
    const std::vector<PageLog> logs = std::move(answer.logs);
    answer = {};
    answer.logs = logs;
    answer.failure = ProcessorFailure{.text = "its answer is wrong: " + complaint_of(types), .kind = "protocol"};
    part_.has_wrong_type = true;
  }

  const OpenVisit& visit_;
  const std::size_t line_bytes_;
  AnswerPart& part_;
  std::size_t complaints_ = 0, over_ = 0;
  std::size_t log_bytes_ = 0;
};

// --- described ------------------------------------------------------------------------------------------------------

class DescriptionReader {
 public:
  explicit DescriptionReader(DescribedMessage& out) : out_(out), script_(out.description) {}

  void read(const JsonValue& root) {
    bool has_protocol = false;
    root.for_each_name([&](std::string_view name, const JsonValue& value) {
      if (value.is_null()) return;
      if (name == "error") out_.failure = failure_of(value);
      if (name == "protocol") read_protocol(value), has_protocol = true;
      if (name == "concurrency") script_.concurrency = static_cast<std::uint32_t>(value.whole(1, kMostConcurrency));
      if (name == "on") read_events(value);
      if (name == "ticks") read_ticks(value);
      if (name == "rules") read_rules(value);
      if (name == "defaults") read_defaults(value);
      if (name == "retry_delay_ms") read_delays(value);
    });
    if (!has_protocol && !out_.failure && !root.errors()) {
      root.refuse(fmt::format("its protocol is missing: this Argiope speaks {}", kProcessorProtocol));
    }
  }

 private:
  void read_protocol(const JsonValue& value) {
    if (value.if_whole() == kProcessorProtocol) return;
    value.wrong(fmt::format("this Argiope speaks {}", kProcessorProtocol));
  }

  void read_events(const JsonValue& value) {
    if (!value.is_object()) return value.wrong(kAnObject);
    value.for_each_name([&](std::string_view name, const JsonValue& rule) {
      if (rule.is_null()) return;
      if (name == "start") script_.on_start = rule_name_of(rule);
      if (name == "message") script_.on_message = rule_name_of(rule);
      if (name == "finished") script_.on_finished = rule_name_of(rule);
    });
  }

  void read_ticks(const JsonValue& value) {
    if (!value.is_list()) return value.wrong(kAList);
    if (value.size() > kMostTicks) return value.refuse(fmt::format("{} ticks: at most {}", value.size(), kMostTicks));
    value.for_each([&](const JsonValue& entry) {
      if (!entry.is_object()) return entry.wrong(kAnObject);
      ProcessorDescription::Tick tick;
      entry.for_each_member([&](std::string_view name, const JsonValue& given) {
        if (name == "rule") tick.rule = rule_name_of(given);
        if (name == "every_ms") tick.every = delay_of(given, 1'000, kLongestTickMs);
      });
      if (!entry.errors() && tick.rule.empty()) entry.refuse("its rule is missing");
      if (!entry.errors() && tick.every == Duration::zero()) entry.refuse("its every_ms is missing");
      script_.ticks.push_back(std::move(tick));
    });
  }

  void read_rules(const JsonValue& value) {
    if (!value.is_object()) return value.wrong(kAnObject);
    if (value.size() > kMostRulesOfScript)
      return value.refuse(fmt::format("{} rules: at most {}", value.size(), kMostRulesOfScript));
    value.for_each_name([&](std::string_view name, const JsonValue& given) {
      if (!is_rule_name(name)) return given.refuse_name("no name of a rule");
      if (!given.is_object()) return given.wrong(kAnObject);
      ProcessorDescription::Rule& rule = script_.rules[std::string(name)];
      given.for_each_name([&](std::string_view member, const JsonValue& inner) {
        if (read_setting(rule.settings, member, inner) || inner.is_null()) return;
        if (member == "errors") rule.errors = inner.flag();
        if (member == "fields") read_fields(inner, rule);
      });
      take_out_headers(rule.settings, fmt::format("rules/{}", name));
    });
  }

  static void read_fields(const JsonValue& value, ProcessorDescription::Rule& rule) {
    if (!value.is_object()) return value.wrong(kAnObject);
    if (value.size() > 0) rule.fields_json = value.kept_json();
  }

  void read_defaults(const JsonValue& value) {
    if (!value.is_object()) return value.wrong(kAnObject);
    value.for_each_name(
        [&](std::string_view name, const JsonValue& given) { (void)read_setting(script_.defaults, name, given); });
    take_out_headers(script_.defaults, "defaults");
  }

  void take_out_headers(PageSettings& settings, std::string_view place) {
    std::vector<std::string> notes;
    note_headers(settings.request, place, notes);
    for (std::string& text : notes) {
      if (out_.logs.size() < kMostComplaints) out_.logs.push_back({.level = "warning", .text = std::move(text)});
    }
  }

  // By failures before; "": all others.
  void read_delays(const JsonValue& value) {
    if (!value.is_object()) return value.wrong(kAnObject);
    std::optional<Duration> others = std::chrono::hours{24};
    std::map<std::uint32_t, std::optional<Duration>> delays;
    value.for_each_name([&](std::string_view name, const JsonValue& given) {
      const auto delay = given.is_null() ? std::nullopt : std::optional(delay_of(given, 0));
      if (name.empty()) return void(others = delay);
      std::uint32_t failed = 0;
      const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), failed);
      const bool is_number = end == name.data() + name.size();
      if (!is_number || (error != std::errc{} && error != std::errc::result_out_of_range)) {
        return given.refuse_name("how many attempts have failed before, or \"\" for all others");
      }
      if (error == std::errc{} && failed <= kMostFailures) delays[failed] = delay;
    });
    auto& table = script_.retry_delay.table;
    table.clear();
    const std::uint32_t named = delays.empty() ? 0 : delays.rbegin()->first + 1;
    for (std::uint32_t failed = 0; failed < named; ++failed) {
      const auto known = delays.find(failed);
      table.push_back((known == delays.end() ? others : known->second).value_or(std::chrono::hours{24}));
    }
    table.push_back(others.value_or(std::chrono::hours{24}));
    if (!others) {
      for (std::uint32_t failed = 0; failed <= kMostFailures; ++failed) delays.try_emplace(failed, std::nullopt);
    }
    script_.retry_delays = std::move(delays);
  }

  DescribedMessage& out_;
  ProcessorDescription& script_;
};

// --- select ---------------------------------------------------------------------------------------------------------

class QueryReader {
 public:
  explicit QueryReader(SelectQuery& query) : query_(query) {}

  void read(const JsonValue& root) {
    JsonErrors errors;
    const JsonValue query = root.telling(errors);
    query.for_each_name([&](std::string_view name, const JsonValue& value) { read_member(name, value); });
    if (!errors) check(query);
    if (errors) query_.wrong = Error{code_, complaint_of(errors)};
  }

 private:
  void read_member(std::string_view name, const JsonValue& value) {
    if (value.is_null()) return;
    if (name == "css" || name == "xpath") {
      query_.is_xpath = name == "xpath";
      if (!value.if_text()) return value.wrong("a string");
      query_.selector = *value.if_text();
      ++selectors_;
    } else if (name == "within") {
      read_within(value);
    } else if (name == "html") {
      if (!value.if_text()) return value.wrong("a string");
      if (value.if_text()->size() > Limits::kMostHtmlBytes) {
        return refuse_size(value, fmt::format("{} bytes: at most {}", value.if_text()->size(), Limits::kMostHtmlBytes));
      }
      query_.html = *value.if_text();
    } else if (name == "give") {
      read_give(value);
    } else if (name == "most") {
      query_.most = static_cast<std::size_t>(value.whole(1, kMostMatches));
    }
  }

  void read_within(const JsonValue& value) {
    if (!value.is_list()) return value.wrong(kAList);
    if (value.size() > kMostWithin)
      return refuse_size(value, fmt::format("{} nodes: at most {}", value.size(), kMostWithin));
    auto& within = query_.within.emplace();
    within.reserve(value.size());
    value.for_each([&](const JsonValue& node) {
      const auto number = node.if_natural();
      if (!number) node.wrong("the number of a node");
      within.push_back(number.value_or(0));
    });
  }

  void read_give(const JsonValue& value) {
    if (!value.is_list()) return value.wrong(kAList);
    is_given_ = true;
    bool* const flags[] = {&query_.text,       &query_.raw,  &query_.lines,     &query_.outer_html,
                           &query_.inner_html, &query_.name, &query_.attributes};
    value.for_each([&](const JsonValue& word) {
      *flags[word.one_of({"text", "raw", "lines", "html", "inner_html", "name", "attributes"})] = true;
    });
  }

  void check(const JsonValue& query) {
    if (selectors_ != 1) query.refuse("css or xpath: one of both is wanted");
    if (query_.html && query_.within) query.refuse("html and within: one of both is wanted");
    if (!is_given_) query_.text = true;
  }

  void refuse_size(const JsonValue& value, std::string_view why) {
    code_ = Errc::too_large;
    value.refuse(why);
  }

  SelectQuery& query_;
  Errc code_ = Errc::invalid_input;
  int selectors_ = 0;
  bool is_given_ = false;
};

// --- lines ----------------------------------------------------------------------------------------------------------

// The members that every message has.
struct MessageHead {
  std::string_view type;
  bool has_id = false;
  std::optional<std::uint64_t> id;  // nullopt: it has none, or one that is none
  std::optional<std::uint64_t> query;
};

MessageHead head_of(const JsonValue& root) {
  MessageHead head;
  root.for_each_member([&](std::string_view name, const JsonValue& value) {
    if (name == "type") head.type = value.if_text().value_or("");
    if (name == "query") head.query = value.if_natural();
    if (name != "id") return;
    head.id = value.if_natural();
    head.has_id = !value.is_null();
  });
  return head;
}

LogMessage log_message_of(const MessageHead& head, const JsonValue& root) {
  LogMessage message{.id = head.id, .log = {.level = "info", .text = {}}};
  root.for_each_member([&](std::string_view name, const JsonValue& value) {
    if (name == "level") message.log.level = level_of(value.if_text().value_or(""));
    if (name == "text") message.log.text = value.shown();
  });
  return message;
}

void keep_last_of_each_part(std::vector<PageResult>& results) {
  std::unordered_map<std::string_view, std::size_t> last;
  for (std::size_t place = 0; place < results.size(); ++place) last[results[place].part] = place;
  if (last.size() == results.size()) return;
  std::vector<bool> is_last(results.size());
  for (const auto& [part, place] : last) is_last[place] = true;
  std::vector<PageResult> kept;
  for (std::size_t place = 0; place < results.size(); ++place) {
    if (is_last[place]) kept.push_back(std::move(results[place]));
  }
  results = std::move(kept);
}

}  // namespace

std::optional<Duration> retry_delay_of(const ProcessorDescription& description, std::uint32_t failed_before) {
  const auto said = description.retry_delays.find(failed_before);
  if (said != description.retry_delays.end()) return said->second;
  const auto& table = description.retry_delay.table;
  if (table.empty()) return std::chrono::hours{24};
  return table[std::min<std::size_t>(failed_before, table.size() - 1)];
}

bool is_empty_line(std::string_view line) noexcept { return trim_space(line).empty(); }

Result<ScriptMessage> read_script_message(std::string_view line, const FindVisit& find_visit,
                                          const ProcessorLimits& limits) {
  const auto no_message = [&](std::string_view why, Errc code = Errc::protocol) {
    return fail(code, fmt::format("a line that is no message: {}: {}", why, in_quotes(line, kMostQuoted)));
  };
  if (line.size() > limits.line_bytes) {
    return no_message(fmt::format("longer than {} bytes", limits.line_bytes), Errc::too_large);
  }
  const auto text = JsonText::parse(line);
  if (!text) return no_message(text.error().message);
  JsonErrors errors;
  const JsonValue root = text->root(errors);
  if (!root.is_object()) return no_message("no object");
  const MessageHead head = head_of(root);
  if (head.has_id && !head.id) return no_message("its id is no whole number");
  if (head.type == "log") return log_message_of(head, root);
  if (head.type == "described") {
    if (line.size() > Limits::kMostDescribedBytes) {
      return no_message(fmt::format("described: longer than {} bytes", Limits::kMostDescribedBytes), Errc::too_large);
    }
    DescribedMessage message;
    DescriptionReader(message).read(root);
    if (errors) return fail(Errc::invalid_input, "described: " + complaint_of(errors));
    return message;
  }
  const bool is_last = head.type == "done";
  if (!is_last && head.type != "more" && head.type != "select") {
    return no_message(head.type.empty() ? "its type is missing" : "an unknown type");
  }
  if (!head.id) return no_message("its id is missing");
  const OpenVisit* const visit = find_visit(*head.id);
  if (visit == nullptr) return no_message(fmt::format("no page with id {} is under way", *head.id));
  if (head.type == "select") {
    if (!head.query) return no_message("its query is missing");
    SelectQuery query{.id = *head.id, .query = *head.query};
    QueryReader(query).read(root);
    return query;
  }
  AnswerPart part{.id = *head.id, .is_last = is_last, .bytes = line.size()};
  AnswerReader(*visit, line.size(), part).read(root);
  return part;
}

// --- visits ---------------------------------------------------------------------------------------------------------

OpenVisit::OpenVisit(std::string_view url, const ProcessorLimits& limits) : url_(url), limits_(limits) {
  if (auto base = Url::parse(url)) base_ = *std::move(base);
}

void OpenVisit::log(PageLog log) {
  const std::size_t bytes = std::max<std::size_t>(1, log.text.size());
  const std::size_t room = limits_.log_bytes - log_bytes_;
  if (bytes > room) {
    log.text = std::string(cut_between_characters(log.text, room));
    log_bytes_over_ += bytes - log.text.size();
    log_bytes_ = limits_.log_bytes;  // nothing shorter comes behind a cut
    if (log.text.empty()) return;
  } else {
    log_bytes_ += bytes;
  }
  answer_.logs.push_back(std::move(log));
}

Result<void> OpenVisit::add(AnswerPart part) {
  bytes_ += part.bytes;
  if (bytes_ > limits_.answer_bytes) {
    return fail(Errc::too_large, fmt::format("an answer of more than {} bytes", limits_.answer_bytes));
  }
  for (PageLog& log : part.answer.logs) this->log(std::move(log));
  log_bytes_over_ += part.log_bytes_over;
  pages_seen_ += part.pages_seen;
  results_seen_ += part.results_seen;
  messages_seen_ += part.messages_seen;
  if (wrong_) return {};
  if (part.has_wrong_type) {
    wrong_ = std::move(part.answer.failure);
    std::vector<PageLog> logs = std::move(answer_.logs);
    answer_ = {};
    answer_.logs = std::move(logs);
    return {};
  }
  const auto append = []<class Entry>(std::vector<Entry>& all, std::vector<Entry>& more) {
    if (all.empty()) return void(all = std::move(more));
    all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  append(answer_.pages, part.answer.pages);
  append(answer_.messages, part.answer.messages);
  if (part.answer.results && !answer_.results) answer_.results.emplace();
  if (part.answer.results) append(*answer_.results, *part.answer.results);
  if (part.answer.save_json) answer_.save_json = std::move(part.answer.save_json);
  if (part.answer.failure) answer_.failure = std::move(part.answer.failure);
  return {};
}

Result<void> OpenVisit::count_query() {
  if (++queries_ <= Limits::kMostQueries) return {};
  return fail(Errc::too_large, fmt::format("select: more than {} queries of one visit", Limits::kMostQueries));
}

VisitAnswer OpenVisit::take_answer() {
  tell_of("pages", pages_seen_, Limits::kMostPages);
  tell_of("results", results_seen_, Limits::kMostResults);
  tell_of("messages", messages_seen_, Limits::kMostMessages);
  close_log();
  if (wrong_) answer_.failure = std::move(wrong_);
  if (answer_.results) keep_last_of_each_part(*answer_.results);
  return std::move(answer_);
}

VisitAnswer OpenVisit::take_failure(ProcessorFailure why) {
  close_log();
  VisitAnswer answer;
  answer.logs = std::move(answer_.logs);
  answer.failure = std::move(why);
  return answer;
}

void OpenVisit::tell_of(std::string_view what, std::size_t seen, std::size_t most) {
  if (seen <= most) return;
  answer_.logs.push_back(
      {.level = "warning", .text = fmt::format("{}: {} more than {}, and left out", what, seen - most, most)});
}

void OpenVisit::close_log() {
  if (log_bytes_over_ == 0) return;
  answer_.logs.push_back(
      {.level = "warning", .text = fmt::format("{} more bytes of this log were not kept", log_bytes_over_)});
}

}  // namespace argiope
