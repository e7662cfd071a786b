// `argiope project try` of a project with a script: as the daemon's POST /v1/projects/try has it.
#pragma once

#include <functional>
#include <string>

#include "cli/crawl/render_arguments.hpp"
#include "cli/crawl/request_arguments.hpp"
#include "cli/project/run_projects.hpp"
#include "project/run/internal/page_engine.hpp"

namespace argiope {

struct ScriptTryArguments {
  std::string file, url;
  std::string rule;  // empty: what an ask for the page would get
  std::string data;  // JSON; empty: null
  std::string page;  // JSON: what else is said of it, as asks have it; empty: nothing
  std::string sandbox = "strict";
  std::string database;       // which knows pages of the project; empty: none is known
  RequestArguments requests;  // of them the guard alone
  RenderArguments render;
  bool json = false;
};

// The page as it is asked for. Errors: invalid_input, naming the option that is wrong.
Result<AskedPage> read_tried_page(const ScriptTryArguments& arguments);
// The same of any project, without a word. `on_answer`: as PageTryOrder has it.
// Errors: those of read_tried_page() and PageEngine::try_page(), and of what it works with.
Result<TriedPage> try_by_engine(const ScriptTryArguments& arguments, RunProject project,
                                std::function<void(const PageResponse&)> on_answer = {});
// Prints what came of it. The exit status.
int run_script_try(const ScriptTryArguments& arguments);

}  // namespace argiope
