#include "project/process/internal/secret_mask.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "argiope/web/url.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope {
namespace {

constexpr std::string_view kMask = "***";

// Of a JSON document from its quote on: where the text ends, behind the other quote.
std::size_t end_of_json_text(std::string_view json, std::size_t begin) noexcept {
  std::size_t end = begin + 1;
  while (end < json.size() && json[end] != '"') end += json[end] == '\\' ? 2 : 1;
  return std::min(end + 1, json.size());
}

class MaskedProcessor final : public Processor {
 public:
  MaskedProcessor(std::unique_ptr<Processor> processor, std::shared_ptr<const SecretMask> mask)
      : processor_(std::move(processor)), mask_(std::move(mask)) {}

  Coro<Result<ProcessorDescription>> describe() override { return describe(processor_, mask_); }
  Coro<void> when_changed() override { return processor_->when_changed(); }
  Coro<void> rest() override { return processor_->rest(); }
  Coro<VisitAnswer> process(const PageCall& call) override { return process(processor_, mask_, call); }
  std::size_t capacity() const override { return processor_->capacity(); }
  std::string masked(std::string text) const override {
    return mask_->masked_piece(processor_->masked(std::move(text)));
  }
  Coro<void> close() override { return processor_->close(); }

 private:
  using SharedMask = std::shared_ptr<const SecretMask>;

  static Coro<Result<ProcessorDescription>> describe(std::shared_ptr<Processor> processor, SharedMask mask) {
    auto described = co_await processor->describe();
    if (!described) described.error().message = mask->masked_piece(std::move(described.error().message));
    co_return described;
  }
  static Coro<VisitAnswer> process(std::shared_ptr<Processor> processor, SharedMask mask, const PageCall& call) {
    VisitAnswer answer = co_await processor->process(call);
    const auto conceal = [&](std::string& text) { text = mask->masked_piece(std::move(text)); };
    for (PageLog& line : answer.logs) conceal(line.text);
    if (answer.failure) {
      for (std::string* text :
           {&answer.failure->text, &answer.failure->kind, &answer.failure->where, &answer.failure->trace})
        conceal(*text);
    }
    if (answer.results) {
      for (PageResult& result : *answer.results) {
        result.part = mask->masked(std::move(result.part));
        result.value_json = mask->masked_json(std::move(result.value_json));
      }
    }
    co_return answer;
  }

  const std::shared_ptr<Processor> processor_;
  const SharedMask mask_;
};

}  // namespace

void SecretMask::add(std::string_view secret) {
  add_term(std::string(secret));
  for (std::size_t begin = 0; begin < secret.size();) {
    const std::size_t end = std::min(secret.find_first_of("\r\n", begin), secret.size());
    add_term(std::string(secret.substr(begin, end - begin)));
    begin = end + 1;
  }
}

void SecretMask::add_term(std::string term) {
  if (term.size() < kLeastBytes) return;
  std::string json;
  append_json_string(json, term, JsonEscapes::letters);
  for (std::string form : {percent_encode(term), json.substr(1, json.size() - 2), std::move(term)}) {
    if (std::ranges::find(terms_, form) == terms_.end()) terms_.push_back(std::move(form));
  }
  std::ranges::stable_sort(terms_, std::ranges::greater{}, &std::string::size);
}

std::string SecretMask::masked(std::string text) const {
  for (const std::string& term : terms_) {
    std::size_t at = text.find(term);
    if (at == std::string::npos) continue;
    std::string out;
    std::size_t taken = 0;
    for (; at != std::string::npos; at = text.find(term, taken)) {
      out.append(text, taken, at - taken).append(kMask);
      taken = at + term.size();
    }
    text = std::move(out.append(text, taken));
  }
  return text;
}

std::string SecretMask::masked_piece(std::string text) const {
  text = masked(std::move(text));
  const auto longest = [&](const auto& has) {
    std::size_t most = 0;
    for (const std::string& term : terms_) {
      std::size_t size = term.size() - 1;
      while (size > most && size >= kLeastBytes && !has(term, size)) --size;
      if (size >= kLeastBytes) most = std::max(most, size);
    }
    return most;
  };
  const auto conceal_before = [&](std::size_t end) {
    const std::string_view before = std::string_view(text).substr(0, end);
    const std::size_t size = longest([&](const std::string& term, std::size_t bytes) {
      return before.ends_with(std::string_view(term).substr(0, bytes));
    });
    if (size > 0) text.replace(end - size, size, kMask);
  };
  conceal_before(text.size());
  if (const std::size_t cut = text.rfind("…"); cut != std::string::npos) conceal_before(cut);
  const std::size_t size = longest([&](const std::string& term, std::size_t bytes) {
    return text.starts_with(std::string_view(term).substr(term.size() - bytes));
  });
  if (size > 0) text.replace(0, size, kMask);
  return text;
}

std::string SecretMask::masked_json(std::string json) const {
  if (terms_.empty()) return json;
  std::string out;
  std::size_t taken = 0;
  for (std::size_t begin = json.find('"'); begin != std::string::npos; begin = json.find('"', taken)) {
    const std::size_t end = end_of_json_text(json, begin);
    out.append(json, taken, begin - taken);
    taken = end;
    const std::string literal = json.substr(begin, end - begin);
    // Escapes can be written in many ways.
    std::optional<std::string> text;
    if (literal.size() < kLeastBytes) {
      // too short for any
    } else if (literal.contains('\\')) {
      JsonErrors errors;
      if (const auto parsed = JsonText::parse(literal)) {
        if (const auto read = parsed->root(errors).if_text()) text = std::string(*read);
      }
    } else {
      text = literal.substr(1, literal.size() - 2);
    }
    if (!text) {
      out += literal;
      continue;
    }
    std::string concealed = masked(*text);
    if (concealed == *text) {
      out += literal;
    } else {
      append_json_string(out, concealed, JsonEscapes::letters);
    }
  }
  out.append(json, taken);
  return out;
}

std::unique_ptr<Processor> masked_processor(std::unique_ptr<Processor> processor,
                                            std::shared_ptr<const SecretMask> mask) {
  return std::make_unique<MaskedProcessor>(std::move(processor), std::move(mask));
}

ProcessorWatch masked_watch(ProcessorWatch watch, std::shared_ptr<const SecretMask> mask) {
  if (watch.log) {
    watch.log = [mask, log = std::move(watch.log)](PageLog line) {
      line.text = mask->masked_piece(std::move(line.text));
      log(std::move(line));
    };
  }
  if (watch.trouble) {
    watch.trouble = [mask, trouble = std::move(watch.trouble)](const std::string& why) {
      trouble(mask->masked_piece(why));
    };
  }
  return watch;
}

}  // namespace argiope
