// A project's results in a file, as `argiope project run --results` and `argiope project results` write them.
#pragma once

#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "project/results/internal/result_export.hpp"
#include "project/store/internal/page_store.hpp"

namespace argiope {

// By the name's end; JSON Lines where it says nothing.
ExportFormat export_format_of(std::string_view file) noexcept;
// With the columns of the project's rules. "-": standard output. Errors: those of export_results().
Result<ResultExportReport> write_results(PageStore& store, const ProjectRecord& project, ResultExportOptions options,
                                         const std::string& file);

}  // namespace argiope
