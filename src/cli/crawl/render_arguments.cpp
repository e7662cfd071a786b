#include "cli/crawl/render_arguments.hpp"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <utility>

#include "cli/number_option.hpp"
#include "cli/span_option.hpp"
#include "web/url/internal/url_patterns.hpp"

namespace argiope {

// One option, two lines: no formatter sees that.
// clang-format off
void RenderArguments::add_to(CLI::App& command, const char* group) {
  CLI::Option* const on = command.add_flag("--render", render, "Run the scripts of HTML pages in a Chromium on this machine: links, records and reports are of what they make")
      ->group(group);
  command.add_option("--render-only", only, "Render only pages that match (repeatable)")
      ->needs(on)->group(group)->type_name("PATTERN")->allow_extra_args(false);
  for (CLI::Option* const option : add_browser_to(command, group)) option->needs(on);
}

std::vector<CLI::Option*> RenderArguments::add_browser_to(CLI::App& command, const char* group) {
  using std::chrono::milliseconds;
  std::vector<CLI::Option*> added = {
    add_span(command, "--render-wait", wait, "A page is done so long after it has loaded (default: when it has asked for nothing for 500 ms)"),
    command.add_option("--render-until", until, "A page is done when it has an element for this CSS selector")
      ->type_name("SELECTOR"),
    add_span_with_default(command, "--render-timeout", timeout, "A page that has not loaded by then is an error", {milliseconds{1}}),
    command.add_option("--render-pages", pages, "Pages rendered at a time")
      ->check(whole_number(1, 100))->type_name("N")->capture_default_str(),
    command.add_option("--render-requests", requests, "Scripts, styles and data that one page may ask for")
      ->check(whole_number(0, 10'000))->type_name("N")->capture_default_str(),
    command.add_option("--browser", browser, "The browser's program (default: chromium, chromium-browser or google-chrome in PATH)")
      ->type_name("FILE"),
    command.add_flag("--render-no-sandbox", no_sandbox, "Let scripts of pages run without the browser's sandbox, which root cannot have. Only for sites that you trust with this machine")
  };
  for (CLI::Option* const option : added) option->group(group);
  return added;
}
// clang-format on

Result<ChromiumOptions> RenderArguments::browser_options(const std::string& user_agent) const {
  if (wait && !until.empty()) return fail(Errc::invalid_input, "--render-wait, --render-until: one of them");
  ChromiumOptions chromium;
  chromium.user_agent = user_agent;
  chromium.sandbox = !no_sandbox;
  chromium.pages = pages;
  chromium.wait = wait;
  chromium.until = until;
  chromium.timeout = timeout;
  auto program = find_chromium(browser);
  if (!program && !browser.empty())
    return fail(Errc::invalid_input, fmt::format("--browser: {}", program.error().message));
  if (!program) return std::unexpected(std::move(program.error()));
  chromium.program = std::move(*program);
  if (auto good = check(chromium); !good) {
    Error& error = good.error();
    if (error.code == Errc::unsupported) {
      error.message += "; run this as another user, or with --render-no-sandbox where all pages can be trusted";
    } else {
      error.message.insert(0, "--render-until: ");
    }
    return std::unexpected(std::move(error));
  }
  return chromium;
}

Result<void> RenderArguments::apply(CrawlOptions& options, std::size_t threads) const {
  if (!render) return {};
  if (threads > 1) {
    return fail(Errc::invalid_input, "--render: the browser has processes of its own; with --threads 1 alone");
  }
  if (auto compiled = UrlPatterns::compile(only); !compiled)
    return fail(compiled.error().code, fmt::format("--render-only: {}", compiled.error().message));
  auto chromium = browser_options(options.user_agent);
  if (!chromium && chromium.error().code != Errc::invalid_input) chromium.error().message.insert(0, "--render: ");
  if (!chromium) return std::unexpected(std::move(chromium.error()));
  options.renderer = std::make_shared<ChromiumRenderer>(std::move(*chromium));
  options.render_only = only;
  options.render_limits.requests = requests;
  return {};
}

}  // namespace argiope
