#include "cli/project/project_try_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/base/clock.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "cli/commands.hpp"
#include "cli/human.hpp"
#include "cli/project/project_database.hpp"
#include "cli/project/project_means.hpp"
#include "cli/project/run_arguments.hpp"
#include "cli/project/run_projects.hpp"
#include "cli/project/stored_urls.hpp"
#include "cli/table.hpp"
#include "cli/version.hpp"
#include "crawl/run/internal/local_wire.hpp"
#include "project/process/internal/asked_pages.hpp"
#include "project/process/internal/processor_messages.hpp"
#include "project/run/internal/tried_page_json.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostResultsShown = 3;
constexpr std::size_t kMostLeadsShown = 30;

Coro<Result<TriedPage>> try_and_stop(PageEngine& engine, LocalWire& wire, PageTryOrder order) {
  Task<Result<void>> visiting =
      EventLoop::current().create_task(engine.run(wire.client(), &wire.resolver()), "projects", Start::eagerly);
  auto tried = co_await engine.try_page(std::move(order));
  engine.stop(true);
  if (auto ended = co_await visiting; !ended && tried) co_return std::unexpected(std::move(ended.error()));
  co_return tried;
}

// --- for people

std::string_view type_of_tried(const TriedPage& tried) {
  const std::string_view type = content_type_of(tried);
  return type.empty() ? "no type" : type;
}

void print_leads(const TriedPage& tried) {
  if (tried.leads.empty()) return;
  const auto followed = std::ranges::count_if(tried.leads, &TriedPage::Lead::is_followed);
  fmt::print("{}, {} of them asked for\n", counted(tried.leads.size() + tried.leads_left_out, "page"), followed);
  Table table({"RULE", "URL", "WOULD BE"});
  for (std::size_t i = 0; i < std::min(tried.leads.size(), kMostLeadsShown); ++i) {
    const TriedPage::Lead& lead = tried.leads[i];
    table.add({lead.rule.empty() ? "-" : one_line(lead.rule, kMostOfName), printable(lead.url, kMostOfName),
               printable(lead.becomes, kMostOfName)});
  }
  table.print();
  if (tried.leads.size() > kMostLeadsShown)
    fmt::print("… {} more (--json has up to 1,000)\n", tried.leads.size() + tried.leads_left_out - kMostLeadsShown);
}

void print_script_try(const std::string& asked, const TriedPage& tried) {
  fmt::print("{}\n", printable(asked));
  if (!tried.becomes.empty())
    fmt::print("  rule {}; asked for it would be: {}\n", tried.rule.empty() ? "none" : printable(tried.rule),
               tried.becomes);
  if (!tried.not_fetched.empty()) fmt::print("  not fetched: {}\n", printable_lines(tried.not_fetched));
  if (!tried.url.empty() && tried.url != asked) fmt::print("  leads to {}\n", printable(tried.url, kMostOfName));
  if (tried.status != 0) {
    fmt::print("  answered {}, {}, {}, in {}\n", tried.status, printable(type_of_tried(tried)),
               counted(tried.body_bytes, "byte"), human_duration(to_seconds(tried.took)));
  }
  for (const PageLog& line : tried.logs) fmt::print("  {}: {}\n", printable(line.level), printable_lines(line.text));
  if (tried.failure) fmt::print("The visit fails: {}\n", printable_lines(tried.failure->text));
  if (tried.failure && !tried.failure->trace.empty()) fmt::print("{}\n", printable_lines(tried.failure->trace));
  if (!tried.not_extracted.empty()) fmt::print("The page could not be read: {}\n", printable(tried.not_extracted));
  if (!tried.results.empty()) fmt::print("{}\n", counted(tried.results.size(), "result"));
  for (std::size_t i = 0; i < std::min(tried.results.size(), kMostResultsShown); ++i) {
    const PageResult& result = tried.results[i];
    fmt::print("  {}{}\n", result.part.empty() ? "" : printable(result.part, kMostOfName) + ": ",
               printable(result.value_json, 1'000));
  }
  if (tried.results.size() > kMostResultsShown)
    fmt::print("  … {} more (--json has all)\n", tried.results.size() - kMostResultsShown);
  print_leads(tried);
  for (const PageMessage& message : tried.messages) {
    fmt::print("a message to {}: {}\n", printable(message.project, kMostOfName),
               printable(message.message_json, 1'000));
  }
}

}  // namespace

Result<AskedPage> read_tried_page(const ScriptTryArguments& arguments) {
  const auto wrong = [](std::string_view option, std::string_view why) {
    return fail(Errc::invalid_input, fmt::format("{}: {}", option, why));
  };
  AskedPage page{.url = arguments.url, .rule = arguments.rule, .context_json = arguments.data};
  if (!arguments.data.empty()) {
    if (const auto data = JsonText::parse(arguments.data); !data) return wrong("--data", data.error().message);
  }
  if (arguments.page.empty()) return page;
  const auto text = JsonText::parse_object("--page", arguments.page, ProcessorLimits::kMostPageBytes);
  if (!text) return std::unexpected(text.error());
  JsonErrors errors;
  std::string_view why_not;
  const std::string whole = json_object([&](JsonWriter& out) {
    out.member("url", arguments.url);
    text->root(errors).for_each_member([&](std::string_view name, const JsonValue& value) {
      if (name == "url") why_not = "url is the argument URL";
      if (name == "cancel") why_not = "a page that is cancelled is not visited";
      out.key(name);
      out.raw(value.json());
    });
  });
  if (!why_not.empty()) return wrong("--page", why_not);
  auto read = read_asked_page(whole);
  if (!read) return wrong("--page", read.error().message);
  if (!page.rule.empty()) read->rule = page.rule;
  if (!page.context_json.empty()) read->context_json = page.context_json;
  return read;
}

Result<TriedPage> try_by_engine(const ScriptTryArguments& arguments, RunProject project,
                                std::function<void(const PageResponse&)> on_answer) {
  auto page = read_tried_page(arguments);
  if (!page) return std::unexpected(std::move(page.error()));
  ProjectRunArguments usual;  // as `argiope project run` has them
  usual.requests.user_agent = fmt::format("argiope/{}", kVersion);
  usual.requests.allow_private = arguments.requests.allow_private;
  usual.render = arguments.render;
  CrawlOptions hosts;
  CrawlSetup setup;
  if (auto applied = usual.apply(hosts, setup, environment_variable); !applied)
    return std::unexpected(std::move(applied.error()));
  const HttpClientOptions http = wire_options(hosts, setup);
  AddressGuard guard(setup.allow_private, setup.private_advice);
  for (const Url& start : project.definition.start) permit_named(guard, start);
  if (const auto asked = Url::parse(arguments.url)) permit_named(guard, *asked);

  auto store = open_page_store(":memory:");
  if (!store) return std::unexpected(std::move(store.error()));
  if (!arguments.database.empty()) {
    if (auto copied = copy_known_pages(arguments.database, project.name, **store); !copied)
      return std::unexpected(std::move(copied.error()));
  }
  const SystemClock clock;
  LocalWire wire(clock, http, guard);
  const AddressGuard all_addresses(true);  // whom the file names
  WireOnLoop webhooks(wire.backend(), webhook_options(http), all_addresses);
  PageEngineOptions options = page_engine_options(std::move(hosts), arguments.render);
  // Of the project as the database has it nothing runs.
  options.make_processor = [](const ProjectDefinition&, ProcessorWatch) -> Result<std::unique_ptr<Processor>> {
    return fail(Errc::unsupported, "it is only looked at");
  };
  const auto make_processor = [&](const ProjectDefinition& definition, ProcessorWatch watch) {
    const ScriptMeans means{.workers = 1,
                            .sandbox = arguments.sandbox,
                            .hidden = {},
                            .is_operators = true,
                            .secrets_folder = {},
                            .is_try = true,
                            .webhooks = &webhooks.client()};
    return make_script_processor(means, definition, project.folder, std::move(watch));
  };
  PageEngine engine(std::move(options), **store);
  if (auto opened = engine.open(clock.wall_now()); !opened) return std::unexpected(std::move(opened.error()));
  PageTryOrder order{.definition = project.draft->text,
                     .page = std::move(*page),
                     .on_answer = std::move(on_answer),
                     .make_processor = make_processor};
  auto tried = wire.loop().run_until_complete(try_and_stop(engine, wire, std::move(order)));
  wire.client().close_idle();
  webhooks.client().close_idle();
  return tried;
}

int run_script_try(const ScriptTryArguments& arguments) {
  auto projects = read_run_projects({arguments.file});
  if (!projects) return complain_of_project(projects.error(), kExitUsage);
  const auto tried = try_by_engine(arguments, std::move(projects->front()));
  if (!tried)
    return complain_of_project(tried.error(), tried.error().code == Errc::invalid_input ? kExitUsage : kExitNothing);
  if (arguments.json) {
    fmt::print("{}\n", json_object([&](JsonWriter& out) { write_tried_page(out, arguments.url, *tried); }));
  } else {
    print_script_try(arguments.url, *tried);
  }
  return tried->not_fetched.empty() && !tried->failure ? kExitFinished : kExitBroken;
}

}  // namespace argiope
