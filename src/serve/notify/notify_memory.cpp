#include "serve/notify/notify_memory.hpp"

#include <algorithm>
#include <optional>

#include "base/internal/json_reader.hpp"
#include "base/internal/json_told.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope {
namespace {

std::optional<Trouble> trouble_of(std::string_view name) {
  const auto found = std::ranges::find(kTroubleNames, name);
  if (found == kTroubleNames.end()) return std::nullopt;
  return static_cast<Trouble>(found - kTroubleNames.begin());
}

std::string_view name_of(Trouble trouble) { return kTroubleNames[static_cast<std::size_t>(trouble)]; }

template <class Each>
void for_each_of(ToldMembers& in, std::string_view name, Each each) {
  if (const JsonValue* list = in.find(name); list != nullptr && list->is_list()) list->for_each(each);
}

// One whose trouble is not known here is passed over.
void read_open(const JsonValue& value, bool is_told, std::map<TroubleKey, OpenTrouble>& into) {
  ToldMembers in(value);
  OpenTrouble open;
  open.is_told = is_told;
  std::string trouble, subject;
  in.read("trouble", trouble);
  in.read("subject", subject);
  in.read("since", open.start.at);
  in.read("is_event", open.start.is_event);
  in.read("run", open.start.run);
  in.read("job", open.start.job);
  in.read("message", open.message);
  if (const JsonValue* over = in.find("over")) {
    ToldMembers how(*over);
    how.read("text", open.over.emplace().text);
    how.read("run", open.over->run);
  }
  if (const auto known = trouble_of(trouble)) into.insert_or_assign({*known, std::move(subject)}, std::move(open));
}

void write_open(JsonWriter& json, const TroubleKey& key, const OpenTrouble& open) {
  json.object([&] {
    json.member("trouble", name_of(key.first));
    json.member("subject", key.second);
    json.member("since", open.start.at);
    json.member("is_event", open.start.is_event);
    json.member("run", open.start.run);
    json.member("job", open.start.job);
    json.member("message", open.message);
    if (!open.over) return;
    json.key("over");
    json.object([&] {
      json.member("text", open.over->text);
      json.member("run", open.over->run);
    });
  });
}

// nullopt: of a trouble that is not known here.
std::optional<Notice> read_notice(const JsonValue& value) {
  ToldMembers in(value);
  Notice notice;
  std::string trouble;
  in.read("trouble", trouble);
  in.read("subject", notice.subject);
  in.read("is_over", notice.is_over);
  in.read("count", notice.count);
  in.read("run", notice.run);
  in.read("first_at", notice.first_at);
  in.read("last_at", notice.last_at);
  in.read("text", notice.text);
  for_each_of(in, "jobs", [&](const JsonValue& job) {
    notice.jobs.push_back(static_cast<JobId>(job.whole(0, static_cast<std::int64_t>(kMostJobId))));
  });
  const auto known = trouble_of(trouble);
  if (!known) return std::nullopt;
  notice.trouble = *known;
  return notice;
}

}  // namespace

std::string to_line(std::string_view rule, const NotifyMemory& memory) {
  return json_object([&](JsonWriter& json) {
           json.member("notify", rule);
           for (const bool is_told : {true, false}) {
             json.array(is_told ? "lasting" : "untold", [&] {
               for (const auto& [key, open] : memory.open) {
                 if (open.is_told == is_told) write_open(json, key, open);
               }
             });
           }
           json.array("gathered", [&] {
             for (const Notice& notice : memory.gathered) {
               json.object([&] {
                 json.member("trouble", name_of(notice.trouble));
                 json.member("subject", notice.subject);
                 json.member("is_over", notice.is_over);
                 json.member("count", notice.count);
                 json.member("run", notice.run);
                 json.member("first_at", notice.first_at);
                 json.member("last_at", notice.last_at);
                 json.member("text", notice.text);
                 json.list("jobs", notice.jobs);
               });
             }
           });
           json.member("left_out", memory.left_out);
         }) +
         '\n';
}

std::map<std::string, NotifyMemory, std::less<>> read_notify_memories(std::string_view lines) {
  std::map<std::string, NotifyMemory, std::less<>> memories;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    const auto text = JsonText::parse(line);
    if (!text) continue;
    JsonErrors errors;
    const JsonValue root = text->root(errors);
    ToldMembers in(root);
    NotifyMemory memory;
    std::string rule;
    in.read("notify", rule);
    in.read("left_out", memory.left_out);
    for_each_of(in, "lasting", [&](const JsonValue& value) { read_open(value, true, memory.open); });
    for_each_of(in, "untold", [&](const JsonValue& value) { read_open(value, false, memory.open); });
    for_each_of(in, "gathered", [&](const JsonValue& value) {
      if (auto notice = read_notice(value)) memory.gathered.push_back(*std::move(notice));
    });
    if (!errors) memories.insert_or_assign(std::move(rule), std::move(memory));
  }
  return memories;
}

}  // namespace argiope
