#include "cli/crawl/scope_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/internal/printable.hpp"
#include "cli/list_option.hpp"
#include "cli/number_option.hpp"
#include "crawl/scope/internal/path_prefix.hpp"
#include "web/text/internal/content_type.hpp"
#include "web/text/internal/lower_case.hpp"
#include "web/text/internal/media_type_names.hpp"
#include "web/url/internal/url_patterns.hpp"

namespace argiope {
namespace {

Result<void> check_patterns(std::string_view option, const std::vector<std::string>& patterns) {
  const auto compiled = UrlPatterns::compile(patterns);
  if (compiled) return {};
  return fail(compiled.error().code, fmt::format("{}: {}", option, compiled.error().message));
}

Result<std::string> parse_prefix(const std::string& text) {
  auto prefix = parse_path_prefix(text);
  if (!prefix) prefix.error().message.insert(0, "--path-prefix ");
  return prefix;
}

// "pdf" of "pdf", ".pdf" and "*.PDF".
Result<std::string> parse_extension(std::string_view option, const std::string& text) {
  const std::size_t first = text.find_first_not_of("*.");
  const bool has_more = first != std::string::npos && text.find_first_of("/*?[]{}", first) == std::string::npos;
  if (has_more) return in_lower_case(std::string_view(text).substr(first));
  return fail(Errc::invalid_input, fmt::format("{} {}: an extension as in pdf or tar.gz; --exclude takes patterns",
                                               option, in_quotes(text)));
}

Result<std::string> parse_media_type(const std::string& text) {
  std::string lower = in_lower_case(text);
  const bool is_group =
      lower.ends_with("/*") && !parse_content_type(lower.substr(0, lower.size() - 1) + 'x').type.empty();
  if (is_group || parse_content_type(lower).type == lower) return lower;
  const std::string_view meant = media_type_of_extension(lower.substr(lower.find_first_not_of('.') == 1 ? 1 : 0));
  return fail(Errc::invalid_input, fmt::format("--accept-type {}: a media type as in {} or image/*", in_quotes(text),
                                               meant.empty() ? "application/pdf" : meant));
}

// Each of `texts` by parse(text), into `out`.
template <class Parse>
Result<void> parse_each(const std::vector<std::string>& texts, std::vector<std::string>& out, Parse parse) {
  for (const std::string& text : texts) {
    auto parsed = parse(text);
    if (!parsed) return std::unexpected(std::move(parsed.error()));
    out.push_back(std::move(*parsed));
  }
  return {};
}

}  // namespace

// clang-format off
void ScopeArguments::add_to(CLI::App& command, const char* group) {
  command.add_flag("--domain", domain, "Also follow links to the registered domain of each URL and its subdomains: of www.example.co.uk, example.co.uk")
      ->group(group);
  add_list(command, "--port", ports, "Only what is on this port (repeatable; default: all)", whole_number(1, 65535))
      ->group(group)->type_name("N");
  command.add_option("--include", include, "Follow only links that fit this pattern (repeatable), on hosts that are followed anyway")
      ->group(group)->type_name("PATTERN")->allow_extra_args(false);
  command.add_option("--exclude", exclude, "Follow no links that fit this pattern, and check none (repeatable); counts more than --include")
      ->group(group)->type_name("PATTERN")->allow_extra_args(false);
  command.add_option("--path-prefix", path_prefixes, "Follow only links whose path begins so, as in /docs/ (repeatable)")
      ->group(group)->type_name("PREFIX")->allow_extra_args(false);
  command.add_flag("--no-parent", no_parent, "Never leave the folders of the URLs, up to their last slash")->group(group);
  add_list(command, "--accept-type", accept_types, "Of answers that are neither pages nor of this media type, read no body: application/pdf, image/* (repeatable)")
      ->group(group)->type_name("TYPE");
  add_list(command, "--accept-ext", accept_extensions, "Follow only links that end so, and those that end with no extension: html,php (repeatable)")
      ->group(group)->type_name("EXT");
  add_list(command, "--reject-ext", reject_extensions, "Follow no links that end so: zip,tar.gz,mp4 (repeatable)")
      ->group(group)->type_name("EXT");
}
// clang-format on

Result<void> ScopeArguments::apply(CrawlOptions& options) const {
  for (const auto& [option, patterns] : {std::pair{"--include", &include}, {"--exclude", &exclude}}) {
    if (auto good = check_patterns(option, *patterns); !good) return good;
  }
  options.registrable_domains = domain;
  options.ports = ports;
  options.include = include;
  options.exclude = exclude;
  options.no_parent = no_parent;
  if (auto done = parse_each(path_prefixes, options.path_prefixes, parse_prefix); !done) return done;
  if (auto done = parse_each(accept_types, options.accept_types, parse_media_type); !done) return done;
  const auto extension = [](std::string_view option) {
    return [option](const std::string& text) { return parse_extension(option, text); };
  };
  auto done = parse_each(accept_extensions, options.accept_extensions, extension("--accept-ext"));
  if (done) done = parse_each(reject_extensions, options.reject_extensions, extension("--reject-ext"));
  return done;
}

}  // namespace argiope
