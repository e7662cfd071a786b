#include "cli/crawl/revisit_arguments.hpp"

#include <fmt/format.h>

#include "crawl/scope/internal/revisit_bounds.hpp"

namespace argiope {
// clang-format off
void RevisitArguments::add_to(CLI::App& command, const char* group) {
  command.add_option("--adaptive", adaptive, "Ask each page again in intervals of its own between these: shorter when it has changed, longer when not; kept over runs (10m..7d)")
      ->group(group)->type_name("MIN..MAX");
  command.add_flag("--forever", forever, "Go on until stopped: each page is asked again after its --age, or its --adaptive interval")->group(group);
}
// clang-format on

Result<void> RevisitArguments::apply(CrawlOptions& options) const {
  if (!adaptive.empty()) {
    const auto bounds = parse_revisit_bounds(adaptive);
    if (!bounds) return fail(bounds.error().code, fmt::format("--adaptive {}", bounds.error().message));
    options.adaptive = *bounds;
  }
  options.forever = forever;
  if (!forever) return {};
  if (!options.age && !options.adaptive) {
    return fail(Errc::invalid_input,
                "--forever: --age or --adaptive says when pages are asked again, as in --age 1h --forever");
  }
  if (!options.adaptive && *options.age <= Duration{})
    return fail(Errc::invalid_input, "--forever: --age 0 would never rest; give a span, as in --age 1h");
  return {};
}

}  // namespace argiope
