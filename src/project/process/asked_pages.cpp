#include "project/process/internal/asked_pages.hpp"

#include <chrono>
#include <string>
#include <utility>

#include "base/internal/json_members.hpp"
#include "project/process/internal/processor_messages.hpp"

namespace argiope {
namespace {

constexpr std::string_view kPlace = "pages/0";
// As scripts have them.
constexpr std::size_t kMostMessageBytes = 64 * 1024;

bool says_rule(std::string_view json) {
  const auto text = JsonText::parse(json);
  JsonErrors errors;
  bool says = false;
  if (text)
    text->root(errors).for_each_member(
        [&](std::string_view name, const JsonValue& value) { says = says || (name == "rule" && !value.is_null()); });
  return says;
}

}  // namespace

// It is the only page of an answer: what is wrong with it is in that answer's log.
Result<AskedPage> read_asked_page(std::string_view json) {
  const OpenVisit visit("");
  std::string line = R"({"type":"done","id":1,"pages":[)";
  line += json;
  line += "]}";
  auto message = read_script_message(line, [&](std::uint64_t) { return &visit; });
  if (!message) return std::unexpected(std::move(message.error()));
  auto* const part = std::get_if<AnswerPart>(&*message);
  if (part == nullptr) return fail(Errc::invalid_input, "no page");
  VisitAnswer& answer = part->answer;
  if (answer.pages.size() != 1) {
    std::string why = answer.logs.empty() ? "no page" : std::move(answer.logs.front().text);
    if (why.starts_with(kPlace)) why.erase(0, kPlace.size());
    if (why.starts_with('/') || why.starts_with(':')) why.erase(0, 1);
    if (why.starts_with(' ')) why.erase(0, 1);
    return fail(Errc::invalid_input, std::move(why));
  }
  AskedPage page = std::move(answer.pages.front());
  if (!says_rule(json)) page.rule.clear();
  return page;
}

void write_asked_page(JsonWriter& out, const AskedPage& page) {
  out.member("url", page.url);
  if (!page.name.empty()) out.member("name", page.name);
  if (!page.rule.empty()) out.member("rule", page.rule);
  if (!page.context_json.empty()) {
    out.key("context");
    out.raw(page.context_json);
  }
  if (page.due_at) out.member("due_at", *page.due_at);
  if (page.delay) out.member("delay_ms", std::chrono::ceil<std::chrono::milliseconds>(*page.delay).count());
  if (page.force) out.member("force", true);
  if (page.cancel) out.member("cancel", true);
  write_settings(out, page.settings);
}

bool says_more_than_where(const AskedPage& page) {
  return !page.name.empty() || page.due_at || page.delay || page.force || page.cancel || !page.settings.is_empty();
}

PageMessage read_outside_message(const JsonValue& form, std::string_view project) {
  PageMessage message{.project = std::string(project)};
  JsonMembers in(form);
  in.refuse_repeated();
  if (const JsonValue* const url = in.find("url")) message.url = url->text(1, kMostMessageBytes);
  if (const JsonValue* const content = in.find("message")) {
    message.message_json = content->kept_json();
    if (message.message_json.size() > kMostMessageBytes) content->refuse("more than 64 KiB as JSON");
  } else {
    form.refuse("message is missing");
  }
  in.finish("there are only message and url");
  return message;
}

std::string usual_page_name(Url url) {
  url.strip_fragment();
  return url.href();
}

std::optional<std::string> usual_page_name(std::string_view url) {
  auto parsed = Url::parse(url);
  return parsed ? std::optional(usual_page_name(*std::move(parsed))) : std::nullopt;
}

}  // namespace argiope
