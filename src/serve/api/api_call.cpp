#include "serve/api/api_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "argiope/jobs/job.hpp"
#include "argiope/web/url.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/utf8.hpp"
#include "serve/gate/internal/token_digest.hpp"
#include "serve/gate/request_source.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostParameters = 64;
constexpr std::size_t kMostKeyBytes = 255;
// In requests: what people keep here for themselves may be any JSON, and of many together each is refused by itself.
constexpr JsonLeftAlone kLeftAlone[] = {
    {"", "payload"}, {"job", "payload"},  {"completion", "payload"},  // jobs
    {"", "message"}, {"", "context"},     {"page", "context"},
    {"", "data"},    {"", "save"},  // pages
    {"", "jobs"},    {"", "settlements"}, {"", "settle"},
    {"", "pages"},
};

std::string decoded(std::string_view text) {
  std::string spaced(text);
  std::ranges::replace(spaced, '+', ' ');
  return percent_decode(spaced);
}

}  // namespace

// --- the call
// ----------------------------------------------------------------------------------------------------------

std::unexpected<Error> ApiCall::refuse(Problem problem) {
  if (!problem_) problem_ = std::move(problem);
  return fail(Errc::invalid_input, problem_->detail);
}

bool ApiCall::may_reach(std::string_view name) const noexcept {
  return changes_nothing(request.method) ? caller.may_use(name) : caller.may_change(name);
}

bool ApiCall::reaches_all() const noexcept {
  return !caller.is_bound() && (caller.scope == TokenScope::admin || changes_nothing(request.method));
}

Result<void> ApiCall::check_use(std::string_view name) {
  if (may_reach(name)) return {};
  return refuse(ProblemType::forbidden,
                fmt::format("{}: the token {} may not use that name", in_quotes(name), in_quotes(caller.name)));
}

Result<void> ApiCall::check_put(std::string_view queue, std::string_view function) {
  auto why_not = caller.why_not_put(queue, function);
  return why_not ? Result<void>(refuse(ProblemType::forbidden, *std::move(why_not))) : Result<void>{};
}

std::unexpected<Error> ApiCall::refuse_parameter(std::string_view name, const std::string& why) {
  return refuse({ProblemType::invalid_input, why, {{std::string(name), why, "parameter"}}});
}

Result<std::optional<RequestKey>> ApiCall::request_key() {
  if (key_) return *key_;
  auto key = read_key();
  if (key) key_ = *key;
  return key;
}

Result<std::optional<RequestKey>> ApiCall::read_key() {
  const auto is_key = [](const auto& field) { return equals_lower(field.first, "idempotency-key"); };
  const auto fields = std::ranges::count_if(request.headers, is_key);
  if (fields == 0) return std::nullopt;
  const std::string_view given = std::ranges::find_if(request.headers, is_key)->second;
  const bool printable = std::ranges::all_of(given, [](char c) { return c >= 0x20 && c < 0x7f; });
  if (fields > 1 || given.empty() || given.size() > kMostKeyBytes || !printable) {
    const std::string why = fmt::format("Idempotency-Key: one, of 1 to {} printable characters", kMostKeyBytes);
    return refuse({ProblemType::invalid_input, why, {{"Idempotency-Key", why, "header"}}});
  }
  const TokenDigest digest = digest_of_token(
      fmt::format("{} {}\n{}\n{}", to_string(request.method), request.target, media_type(request), request.body));
  return RequestKey{.key = fmt::format("{}\n{}", caller.name, given),
                    .digest = std::string(reinterpret_cast<const char*>(digest.data()), digest.size())};
}

Result<void> ApiCall::check(Repetition how) {
  if (how != Repetition::mismatch) return {};
  return refuse(ProblemType::idempotency_mismatch, "another request has had that Idempotency-Key");
}

Result<void> ApiCall::check_unbound(std::string_view what) {
  if (!caller.is_bound()) return {};
  return refuse(ProblemType::forbidden, fmt::format("the token is bound to some queues, and {} is of all", what));
}

std::string_view ApiCall::id_or_name(std::string_view part) const {
  std::string_view value = request.path_value(part);
  if (value.starts_with('=')) value.remove_prefix(1);
  return value;
}

Result<std::string> ApiCall::name_in_path(std::string_view part) {
  const std::string_view name = id_or_name(part);
  if (name.empty() || name.size() > kMostNameBytes || !is_utf8(name)) {
    return refuse(ProblemType::invalid_input,
                  fmt::format("{} {}: 1 to {} bytes of UTF-8", part, in_quotes(name), kMostNameBytes));
  }
  if (auto good = check_use(name); !good) return std::unexpected(std::move(good.error()));
  return std::string(name);
}

bool ApiCall::has_json() const {
  const std::string type = media_type(request);
  return type.empty() || type == "application/json" || type.ends_with("+json") ||
         type == "application/x-www-form-urlencoded";
}

void ApiCall::parse() {
  if (!has_json() || parsed_) return;
  parsed_ = read_object();
  wrong_body_ = std::exchange(problem_, std::nullopt);
}

Result<JsonValue> ApiCall::object() {
  if (!parsed_) return read_object();
  if (!*parsed_) return refuse(*wrong_body_);
  return *parsed_;
}

Result<JsonValue> ApiCall::read_object() {
  if (!has_json()) {
    return refuse(ProblemType::unsupported_media_type,
                  fmt::format("Content-Type {}: application/json is wanted", in_quotes(media_type(request))));
  }
  if (count_json_values(request.body, kMostBodyValues) > kMostBodyValues) return refuse(too_many_values());
  auto parsed = JsonText::parse(has_body() ? std::string_view(request.body) : std::string_view("{}"));
  if (!parsed) return refuse({ProblemType::invalid_input, parsed.error().message, {{"", parsed.error().message}}});
  text_ = std::move(*parsed);
  const JsonValue root = text_->root(errors_);
  if (!root.is_object()) root.wrong("one JSON object is wanted");
  refuse_repeated_within(root, kLeftAlone);
  if (auto good = checked(); !good) return std::unexpected(std::move(good.error()));
  return root;
}

Result<void> ApiCall::no_members() {
  const auto root = object();
  if (!root) return std::unexpected(root.error());
  JsonMembers(*root).finish("there is none here");
  return read_all();
}

Result<void> ApiCall::check_coding() {
  const std::string_view coding = request.header("Content-Encoding");
  if (coding.empty() || equals_lower(coding, "identity")) return {};
  return refuse(ProblemType::unsupported_coding,
                fmt::format("Content-Encoding {}: send the body without a coding", in_quotes(coding)));
}

Result<void> ApiCall::checked() {
  if (!errors_) return {};
  return refuse(problem_of(errors_));
}

Result<void> ApiCall::read_all() {
  auto good = checked();
  parsed_.reset();
  text_.reset();
  turn_.reset();
  return good;
}

Problem too_many_values() {
  const std::string why =
      fmt::format("more than {} values: send several requests, or JSON of your own as text", kMostBodyValues);
  return {ProblemType::too_large, why, {{"", why}}};
}

std::optional<std::uint64_t> plain_number(std::string_view text) noexcept {
  std::uint64_t number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, wrong] = std::from_chars(text.data(), last, number);
  if (wrong != std::errc{} || end != last || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  return number;
}

std::string media_type(const ServerRequest& request) {
  const std::string_view field = request.header("Content-Type");
  std::string type(field.substr(0, field.find(';')));
  type.erase(type.find_last_not_of(" \t") + 1);
  std::ranges::transform(type, type.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return type;
}

ServerResponse answer_with_output(std::string output) {
  const bool is_text = is_utf8(output);
  ServerResponse response{.status = 200, .headers = {}, .body = std::move(output)};
  response.headers.emplace_back("Content-Type", is_text ? "text/plain; charset=utf-8" : "application/octet-stream");
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  return response;
}

// --- the query
// ---------------------------------------------------------------------------------------------------------

ApiQuery::ApiQuery(ApiCall& of) : of_(of) {
  std::string_view query = of.request.query;
  while (!query.empty() && parameters_.size() < kMostParameters) {
    const std::string_view part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(part.size() + 1, query.size()));
    if (part.empty()) continue;
    const std::size_t equals = std::min(part.find('='), part.size());
    parameters_.push_back({decoded(part.substr(0, equals)), decoded(part.substr(std::min(equals + 1, part.size())))});
  }
  if (!query.empty())
    refuse(decoded(query.substr(0, query.find_first_of("=&"))), "", "the query has too many parameters");
}

std::optional<std::string> ApiQuery::text(std::string_view name) {
  std::optional<std::string> found;
  for (Parameter& parameter : parameters_) {
    if (parameter.name != name) continue;
    if (found) refuse(name, parameter.value, "the parameter is there twice");
    parameter.asked = true;
    found = parameter.value;
  }
  return found;
}

std::uint64_t ApiQuery::whole(std::string_view name, std::uint64_t least, std::uint64_t most, std::uint64_t usual) {
  const auto given = text(name);
  if (!given) return usual;
  const auto number = plain_number(*given);
  if (number && *number >= least && *number <= most) return *number;
  refuse(name, *given, fmt::format("a whole number, {} to {}", least, most));
  return usual;
}

bool ApiQuery::flag(std::string_view name, bool usual) {
  const auto given = text(name);
  if (!given) return usual;
  if (given->empty() || *given == "1" || *given == "true") return true;
  if (*given != "0" && *given != "false") refuse(name, *given, "true or false");
  return false;
}

std::optional<std::size_t> ApiQuery::one_of(std::string_view name, std::initializer_list<std::string_view> words) {
  const auto given = text(name);
  if (!given) return std::nullopt;
  const auto* const place = std::ranges::find(words, *given);
  if (place != words.end()) return static_cast<std::size_t>(place - words.begin());
  std::string all;
  for (const std::string_view word : words) all += fmt::format("{}{}", all.empty() ? "" : ", ", word);
  refuse(name, *given, fmt::format("one of {}", all));
  return std::nullopt;
}

Result<void> ApiQuery::finish() {
  const auto unknown = std::ranges::find(parameters_, false, &Parameter::asked);
  if (unknown != parameters_.end()) refuse(unknown->name, unknown->value, "there is no such parameter");
  if (error_) return std::unexpected(*error_);
  return {};
}

void ApiQuery::refuse(std::string_view name, std::string_view value, std::string_view why) {
  if (error_) return;
  error_ = of_.refuse_parameter(name, fmt::format("{} {}: {}", printable(name, 60), in_quotes(value), why)).error();
}

}  // namespace argiope
