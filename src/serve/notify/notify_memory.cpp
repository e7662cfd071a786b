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
void read_lasting(const JsonValue& value, LastingTroubles& into) {
  ToldMembers in(value);
  std::string trouble, subject;
  WallTime since{};
  in.read("trouble", trouble);
  in.read("subject", subject);
  in.read("since", since);
  if (const auto known = trouble_of(trouble)) into.insert_or_assign({*known, std::move(subject)}, since);
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
           json.array("lasting", [&] {
             for (const auto& [state, since] : memory.lasting) {
               json.object([&, &told = state, &began = since] {
                 json.member("trouble", name_of(told.first));
                 json.member("subject", told.second);
                 json.member("since", began);
               });
             }
           });
           json.array("gathered", [&] {
             for (const Notice& notice : memory.gathered) {
               json.object([&] {
                 json.member("trouble", name_of(notice.trouble));
                 json.member("subject", notice.subject);
                 json.member("is_over", notice.is_over);
                 json.member("count", notice.count);
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
    for_each_of(in, "lasting", [&](const JsonValue& value) { read_lasting(value, memory.lasting); });
    for_each_of(in, "gathered", [&](const JsonValue& value) {
      if (auto notice = read_notice(value)) memory.gathered.push_back(*std::move(notice));
    });
    if (!errors) memories.insert_or_assign(std::move(rule), std::move(memory));
  }
  return memories;
}

}  // namespace argiope
