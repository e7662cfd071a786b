// A script's output: lines of any bytes, of which some are messages. What is read keeps to its bounds, what is wrong is
// told in one line, what is kept is JSON, and an answer ends as it should whatever its lines were. Queries are answered
// on a page of the second part, behind a line with "--".
#include "project/process/internal/processor_messages.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/internal/utf8.hpp"
#include "fuzz/require.hpp"
#include "project/process/internal/page_selector.hpp"
#include "project/process/internal/secret_mask.hpp"
#include "project/process/internal/webhook_answer.hpp"

namespace {

using namespace argiope;

void require_json(std::string_view json) { require(JsonText::parse(json).has_value() && !json.contains('\n')); }

void require_name(const std::string& rule) {
  require(!rule.empty() && rule.size() <= 200 && rule.find_first_of("\"\\\n\r\t") == std::string::npos);
}

void look_at(const DescribedMessage& message) {
  const ProcessorDescription& script = message.description;
  require(script.concurrency >= 1 && script.concurrency <= 1'000);
  require(script.ticks.size() <= 100 && script.rules.size() <= 1'000);
  for (const auto& tick : script.ticks) require(tick.every >= std::chrono::seconds{1});
  for (const auto& [name, rule] : script.rules) {
    require_name(name);
    require(read_settings(stored(rule.settings)) == rule.settings);
    if (!rule.fields_json.empty()) require_json(rule.fields_json);
  }
  for (std::uint32_t failed = 0; failed < 10; ++failed) {
    const auto delay = retry_delay_of(script, failed);
    require(!delay || *delay >= Duration::zero());
  }
}

void look_at(const VisitAnswer& answer) {
  for (const AskedPage& page : answer.pages) {
    require(page.url.starts_with("http") || page.url.starts_with("data:"));
    require_name(page.rule);
    require(page.name.size() <= 1'000 && !(page.due_at && page.delay));
    require(read_settings(stored(page.settings)) == page.settings);
    if (!page.context_json.empty()) require_json(page.context_json);
    PageCall call;
    call.rule = page.rule;
    call.url = page.url;
    call.context_json = page.context_json;
    call.settings = page.settings;
    const std::string line = write_page(call, 1);
    require(line.ends_with('\n'));
    require_json(std::string_view(line).substr(0, line.size() - 1));
  }
  if (answer.results) {
    for (const PageResult& result : *answer.results) require_json(result.value_json);
  }
  for (const PageMessage& message : answer.messages) require(!message.project.empty());
  if (answer.save_json) require_json(*answer.save_json);
  std::size_t logged = 0;
  for (const PageLog& log : answer.logs) {
    require(is_utf8(log.text) && !log.level.empty());
    logged += log.text.size();
  }
  require(logged < 2'000);
}

// The same as one answer over HTTP, whose results keep no secret.
void read_as_webhook(std::string_view content, const ProcessorLimits& limits) {
  std::vector<PageLog> logs;
  const auto described = read_describe_answer(content, limits, logs);
  if (described) {
    look_at(*described);
  } else {
    require(is_utf8(described.error().message) && !described.error().message.contains('\n'));
  }
  VisitAnswer answer = read_page_answer(content, 7, OpenVisit("https://shop.example/en/", limits));
  look_at(answer);
  SecretMask mask;
  mask.add("nsecret-\xc3\xa4\"");
  if (!answer.results) return;
  for (PageResult& result : *answer.results) {
    const std::string masked = mask.masked_json(result.value_json);
    require_json(masked);
    require(mask.masked_json(masked) == masked);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find("\n--\n");
  PageResponse response;
  response.url = "https://shop.example/en/";
  response.body = end == std::string_view::npos ? "<p>a<a href=b>c</a>" : std::string(input.substr(end + 4));
  input = input.substr(0, end);
  const ProcessorLimits limits{.line_bytes = 4'096, .answer_bytes = 8'192, .log_bytes = 1'000};
  OpenVisit visit(response.url, limits);
  PageSelector selector(response);
  read_as_webhook(input, limits);
  while (!input.empty()) {
    const std::size_t length = std::min(input.find('\n'), input.size());
    const std::string_view line = input.substr(0, length);
    input.remove_prefix(std::min(length + 1, input.size()));
    if (is_empty_line(line)) continue;
    auto message = read_script_message(
        line, [&](std::uint64_t id) { return id == 7 ? &visit : nullptr; }, limits);
    if (!message) {
      require(is_utf8(message.error().message) && !message.error().message.contains('\n'));
      continue;
    }
    if (const auto* described = std::get_if<DescribedMessage>(&*message)) look_at(*described);
    if (auto* log = std::get_if<LogMessage>(&*message)) visit.log(std::move(log->log));
    if (const auto* query = std::get_if<SelectQuery>(&*message)) {
      const std::string answer = write_selected(query->id, query->query, selector.select(*query));
      require_json(std::string_view(answer).substr(0, answer.size() - 1));
    }
    auto* const part = std::get_if<AnswerPart>(&*message);
    if (part == nullptr) continue;
    const bool is_last = part->is_last;
    if (!visit.add(std::move(*part))) return 0;
    if (!is_last) continue;
    look_at(visit.take_answer());
    visit = OpenVisit(response.url, limits);
  }
  look_at(visit.take_failure({.text = "it has ended"}));
  return 0;
}
