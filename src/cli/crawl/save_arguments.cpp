#include "cli/crawl/save_arguments.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/internal/counted.hpp"
#include "base/internal/printable.hpp"

namespace argiope {

// clang-format off
void SaveArguments::add_to(CLI::App& command, const char* group) {
  command.add_option("--save", folder, "Save pages and what they are shown with in this folder, so that they can be read from disk: links lead from file to file")
      ->group(group)->type_name("DIR");
  command.add_option("--save-assets,--page-requisites", assets, "Pictures, styles, scripts and fonts for --save and --warc: all, same-host (on hosts that are followed), none (default: all with --save, else none)")
      ->check(CLI::IsMember({"all", "same-host", "none"}))->group(group)->type_name("WHICH");
}
// clang-format on

Result<std::shared_ptr<SaveSink>> SaveArguments::open(CrawlOptions& options, bool sync, Random random) const {
  if (folder.empty()) return std::shared_ptr<SaveSink>();
  auto opened = SaveSink::open({.path = folder, .sync = sync, .seeds = options.seeds}, random);
  if (!opened) return fail(opened.error().code, fmt::format("--save: {}", opened.error().message));
  options.sinks.push_back(*opened);
  return opened;
}

void SaveArguments::apply(CrawlOptions& options) const {
  const bool takes_all = assets.empty() ? !folder.empty() : assets == "all";
  options.requisites = takes_all ? Requisites::all : assets == "same-host" ? Requisites::same_host : Requisites::none;
}

void print_mirror(std::FILE* out, const SaveSink& mirror, const SaveArguments& arguments,
                  const std::vector<Url>& seeds) {
  const SaveSink::Totals totals = mirror.totals();
  fmt::print(out, "Saved in {}: {}, {} of them; {} new or changed", printable(arguments.folder),
             counted(totals.files, "file"), counted(totals.pages, "page"), totals.written);
  if (totals.removed > 0) fmt::print(out, ", {} gone", totals.removed);
  fmt::print(out, "\n");
  if (totals.cut_short > 0) {
    fmt::print(out, "  not saved, because they are larger than --size-limit-kb or were cut short: {}\n",
               totals.cut_short);
  }
  if (seeds.empty()) return;
  if (const auto first = mirror.file_of(seeds.front())) fmt::print(out, "Begin to read at {}\n", printable(*first));
}

}  // namespace argiope
