// The means of a PageEngine on this machine: `argiope project run` and `argiope serve` share them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/web/http.hpp"
#include "argiope/web/http_client.hpp"
#include "cli/crawl/render_arguments.hpp"
#include "project/process/internal/processor.hpp"
#include "project/run/internal/page_engine.hpp"

namespace argiope {

// With what is done at hosts, a browser that is started for the first page that wants it, and a seed of its own.
PageEngineOptions page_engine_options(CrawlOptions hosts, const RenderArguments& render);

// The folder beside a database for a project: "DATABASE-scripts/PROJECT". Absolute.
std::string folder_beside(const std::string& database, std::string_view suffix, std::string_view project);

// How scripts are run.
struct ScriptMeans {
  std::size_t workers = 2;  // processes of each, at most
  std::string sandbox = "strict";
  std::vector<std::string> hidden;  // files that they must not see, wherever those are
  // Whether the operator's own file says what the project is. Else it came by the API: its secrets are the files of
  // their names in `secrets_folder`, whatever of ours they could name.
  bool is_operators = false;
  // In the strict sandbox it sees the files of its folder alone, whatever its command names.
  bool sees_own_folder_alone = false;
  std::string secrets_folder;
  bool is_try = false;                // a page is tried
  HttpTransport* webhooks = nullptr;  // who sends to webhooks, and knows which addresses they may have
};

// The reader of a project's pages by its processor: a process of its own, confined, or a webhook. `folder`: of the
// project's file, absolute. Its words are without the project's secrets.
// Errors: those of confine(), with the option that is the way out; those of read_secret(); refused for a secret's file
//         that did not come with the operator's.
Result<std::unique_ptr<Processor>> make_script_processor(const ScriptMeans& means, const ProjectDefinition& project,
                                                         const std::string& folder, ProcessorWatch watch);

// For a client that asks webhooks: who asks, and whom it trusts, as that of pages, and nothing else of it, such as its
// proxies.
HttpClientOptions webhook_options(const HttpClientOptions& pages);

// For sinks of a project whose file is in `folder`. Transport and jobs are the caller's to add.
using SayOfProject = std::function<void(const std::string& project, const PageLog& line)>;
SinkMeans sink_means_in(const std::string& folder, const std::string& project, SayOfProject say);

// Logs what scripts and the engine say of a project. `before`, if there is one, is called before a line is written.
void log_of_project(const std::string& project, const PageLog& line, const std::function<void()>& before = {});

}  // namespace argiope
