// LocalProject: a project whose pages a function of this program reads, on this machine's sockets, clock and chance;
// what `argiope project run` is for scripts, for programs.
//
//   LocalProjectOptions options;
//   options.definition = R"({"project": {"name": "shop", "start": ["https://shop.example/"], "processor": ["this
//   program"]}})"; options.setup.database = "pages.db";
//   options.read = [](const ProjectPage& page) -> Coro<ProjectAnswer> {
//     ProjectAnswer answer;
//     answer.pages.push_back({.url = "https://shop.example/item/1", .rule = "item"});
//     co_return answer;
//   };
//   auto project = LocalProject::open(std::move(options));
//   if (project) auto report = (*project)->run();
//
// Document (argiope/document/document.hpp) reads HTML; link argiope::project. examples/read_pages.cpp is a whole
// program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/crawl/local_crawl.hpp"

namespace argiope {

// A page to be read. JSON is text here; empty: none.
struct ProjectPage {
  std::string event;    // "fetch"; "start" and "finished" where the options name a rule for them
  std::string rule;     // which the page was asked for with
  std::string name;     // its URL without a fragment, unless who asked gave it another
  std::string url;      // behind redirects
  std::string context;  // JSON that came with the ask
  std::string save;     // JSON that the last reading of this page left behind
  std::string fields;   // JSON: what the `fields` of its rule found, by their names
  std::uint32_t attempt = 1;
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string encoding;                                      // of a body that is text
  std::string body;
};

// A page that is asked for. Pages that are known and fresh are let be: see docs/projects.md.
struct ProjectAsk {
  std::string url;      // absolute
  std::string rule;     // empty: `__call__`, as of scripts
  std::string name;     // empty: the URL without its fragment
  std::string context;  // JSON, at most 64 KiB; empty: none
  std::optional<std::int32_t> priority;
  std::optional<Duration> age;     // visited again only when its last success is older
  std::optional<std::string> tag;  // visited again when it was visited with another
  std::optional<Duration> delay;
  bool force = false;
  bool cancel = false;
};

// JSON, of one part of a page; parts need names where a page has several.
struct ProjectResult {
  std::string value;
  std::string part;
};

// The outcome of a reading.
struct ProjectAnswer {
  std::vector<ProjectAsk> pages;
  // In place of the page's results of before; nullopt: those stay.
  std::optional<std::vector<ProjectResult>> results;
  std::optional<std::string> save;  // JSON for the next reading of this page; nullopt: it stays
  // Why it failed: the page is tried again, as its rule says, and nothing else of this counts but `save`.
  std::optional<std::string> failure;
};

struct LocalProjectOptions {
  // A project's definition as JSON: a project's file (docs/projects.md) with its tables as objects. `project.processor`
  // must be there and may be any words: it says that the pages are read by a program. Its rules follow links, unless
  // they have `"follow": false`; what their `fields` find are the page's results where the answer has none.
  // It may have no sinks: read results() instead.
  std::string definition;
  // Reads a page, on the loop; as many as `concurrency` at a time. An exception is the page's failure. It is cancelled
  // at the page's time limit (30 s), and when the project ends.
  std::function<Coro<ProjectAnswer>(const ProjectPage&)> read;
  std::size_t concurrency = 100;
  // The rule of what is read when a round begins; empty: only the definition's starts are asked for.
  std::string on_start;
  std::string on_finished;               // the rule of what is read when a round has ended; empty: nothing is
  std::vector<std::string> error_rules;  // those whose pages are read, too, where the status is no success
  CrawlOptions hosts;                    // what is done at hosts; seeds, scope and the like count for nothing
  CrawlSetup setup;  // `database`: pages.db. One thread; `transport` instead of sockets, where it is set
  // run() ends when all that is left of its round waits longer than this to be tried again.
  Duration retry_wait = std::chrono::minutes{1};
};

struct ProjectReport {
  std::uint64_t visits = 0, failed = 0;  // of this run; a retry is a visit of its own
  std::uint64_t left = 0;                // pages of the round that are still to be visited
  std::uint64_t results = 0;             // of the project, in the database
  std::string trouble;                   // why it stands still; empty: it does not
};

// Threads: open(), run(), results() and the destructor from one; stop() from any.
class LocalProject {
 public:
  // Opens the database, and puts the definition: as the next version, if it is another than the one that is there.
  // Errors: those of the definition (invalid_input, unsupported for sinks or no `read`) and of the database, naming it.
  static Result<std::unique_ptr<LocalProject>> open(LocalProjectOptions options);
  ~LocalProject();

  // Visits the pages of one round: a new one, or what is left of the last. Blocks; not within a running loop. May be
  // called again, for another round.
  // Errors: the database's.
  Result<ProjectReport> run();
  // Ends run(), and each that comes later: visits under way have 7.5 s to end, and all that was done is in the
  // database.
  void stop();

  struct Row {
    std::string page, url, rule, part;
    std::string value;  // JSON
    WallTime added_at{}, changed_at{};
  };
  // All results, by page and part, until `visit` says false. Not while run() runs. Errors: the database's.
  Result<void> results(const std::function<bool(const Row&)>& visit);

 private:
  struct State;
  explicit LocalProject(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace argiope
