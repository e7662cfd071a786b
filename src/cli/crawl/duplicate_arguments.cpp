#include "cli/crawl/duplicate_arguments.hpp"

#include <fmt/format.h>

#include "cli/list_option.hpp"
#include "cli/number_option.hpp"
#include "web/url/internal/url_parameters.hpp"

namespace argiope {

// One option, two lines: no formatter sees that.
// clang-format off
void DuplicateArguments::add_to(CLI::App& command, const char* group) {
  command.add_option("--skip-duplicates", skip, "Do not follow the links of a page with the same bytes as another of its host (exact), or also nearly the same words (near)")
      ->check(CLI::IsMember({"exact", "near"}))->group(group)->type_name("exact|near");
  command.add_flag("--near-duplicates", note_near, "Keep of each page what --html and exports need to tell which say nearly the same")->group(group);
  command.add_option("--near-distance", near_distance, "In how many of 64 bits the simhashes of nearly equal pages may differ")
      ->check(whole_number(0, 7))->group(group)->type_name("BITS")->default_str(std::to_string(DuplicateOptions{}.near_distance));
  command.add_flag("--canonical", canonical, "Do not follow the links of a page that names another URL in scope as its canonical one, but that URL")
      ->group(group);
  add_list(command, "--strip-parameters", strip_parameters, "Follow links without these parameters: names, beginnings (ref_*), and the lists tracking and sessions")
      ->group(group)->type_name("NAME,…");
  command.add_flag("--learn-parameters", learn_parameters, "Follow links without parameters that were seen to change no page of their site")->group(group);
  add_list(command, "--keep-parameters", keep_parameters, "Parameters that stay, whatever is listed or learned")
      ->group(group)->type_name("NAME,…");
  command.add_option("--traps", traps, "No longer follow URLs of one shape (numbers, repeated folders and values apart) once N of its pages in a row were copies, exact or near; 50 is a good number")
      ->check(whole_number(2, 1'000'000))->group(group)->type_name("N");
}
// clang-format on

Result<void> DuplicateArguments::apply(CrawlOptions& options) const {
  for (const auto& [option, words] :
       {std::pair{"--strip-parameters", &strip_parameters}, {"--keep-parameters", &keep_parameters}}) {
    if (const auto names = ParameterNames::parse(*words); !names) {
      return fail(Errc::invalid_input, fmt::format("{} {}", option, names.error().message));
    }
  }
  DuplicateOptions& duplicates = options.duplicates;
  duplicates.skip_exact = !skip.empty();
  duplicates.skip_near = skip == "near";
  if (near_distance) duplicates.near_distance = *near_distance;
  duplicates.canonical = canonical;
  duplicates.strip_parameters = strip_parameters;
  duplicates.learn_parameters = learn_parameters;
  duplicates.keep_parameters = keep_parameters;
  duplicates.trap_pages = traps;
  // Pages are compared with those of earlier runs, too.
  duplicates.keep_simhashes = note_near || duplicates.compares_words();
  options.keep_facts = options.keep_facts || duplicates.keep_simhashes;
  return {};
}

}  // namespace argiope
