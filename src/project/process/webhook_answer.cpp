#include "project/process/internal/webhook_answer.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <variant>

#include "base/internal/printable.hpp"

namespace argiope {
namespace {

// Calls `take` with each line that has something, until it gives false.
template <class Take>
void for_each_line(std::string_view content, Take take) {
  while (!content.empty()) {
    const std::size_t end = content.find('\n');
    std::string_view line = content.substr(0, end);
    content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!is_empty_line(line) && !take(line)) return;
  }
}

ProcessorFailure answered(std::string_view what) {
  return {.text = fmt::format("the processor {}", what), .kind = "protocol"};
}

}  // namespace

VisitAnswer read_page_answer(std::string_view content, std::uint64_t id, OpenVisit visit) {
  std::optional<ProcessorFailure> wrong;
  bool is_done = false;
  for_each_line(content, [&](std::string_view line) {
    if (is_done) {
      wrong = answered("wrote more behind its answer");
      return false;
    }
    auto message = read_script_message(
        line, [&](std::uint64_t its) { return its == id ? &visit : nullptr; }, visit.limits());
    if (!message) {
      wrong = answered(fmt::format("answered what is no message: {}", message.error().message));
    } else if (auto* const part = std::get_if<AnswerPart>(&*message)) {
      is_done = part->is_last;
      if (const auto added = visit.add(std::move(*part)); !added)
        wrong = answered(fmt::format("answered too much: {}", added.error().message));
    } else if (auto* const log = std::get_if<LogMessage>(&*message)) {
      visit.log(std::move(log->log));
    } else if (std::holds_alternative<SelectQuery>(*message)) {
      wrong =
          answered("asked `select`, which a webhook has not: rules.X.fields of its description say what Argiope reads");
    } else {
      wrong = answered("answered `described` to a page");
    }
    return !wrong;
  });
  if (!wrong && !is_done) wrong = answered("answered without `done`");
  return wrong ? visit.take_failure(std::move(*wrong)) : visit.take_answer();
}

Result<DescribedMessage> read_describe_answer(std::string_view content, const ProcessorLimits& limits,
                                              std::vector<PageLog>& logs) {
  std::optional<Result<DescribedMessage>> found;
  for_each_line(content, [&](std::string_view line) -> bool {
    if (found) {
      found = fail(Errc::protocol, "the processor wrote more behind `described`");
      return false;
    }
    auto message = read_script_message(
        line, [](std::uint64_t) { return nullptr; }, limits);
    if (!message) {
      found = fail(message.error().code == Errc::invalid_input ? Errc::invalid_input : Errc::protocol,
                   fmt::format("the processor answered what is no message: {}", message.error().message));
      return false;
    }
    if (auto* const log = std::get_if<LogMessage>(&*message)) {
      logs.push_back(std::move(log->log));
    } else if (auto* const described = std::get_if<DescribedMessage>(&*message)) {
      found.emplace(std::move(*described));
    } else {
      found = fail(Errc::protocol, "the processor answered `describe` with another message");
      return false;
    }
    return true;
  });
  if (!found) return fail(Errc::protocol, "the processor answered `describe` without `described`");
  return std::move(*found);
}

}  // namespace argiope
