#include "argiope/project/local_project.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <atomic>
#include <exception>
#include <random>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/base/clock.hpp"
#include "base/internal/json_writer.hpp"
#include "crawl/run/internal/local_wire.hpp"
#include "project/process/internal/processor_messages.hpp"
#include "project/run/internal/page_engine.hpp"
#include "project/run/internal/round_wait.hpp"

namespace argiope {
namespace {

constexpr Duration kLocalDrain = std::chrono::milliseconds{7'500};
constexpr Duration kShortestLocalLook = std::chrono::milliseconds{10};
constexpr Duration kLongestLocalLook = std::chrono::milliseconds{200};
constexpr Duration kLongestRetryWait = std::chrono::hours{24} * 36'525;  // what is longer could be no time
constexpr int kRestOfLocalLook = 20;                                     // times what a look takes
constexpr std::uint64_t kTheVisit = 1;

// A program's answer is written as a script's, so that it is held to the same rules.
ProcessorLimits limits_of_program() {
  ProcessorLimits limits;
  limits.line_bytes = limits.answer_bytes;
  return limits;
}

bool is_json(std::string_view text) {
  simdjson::dom::parser parser;
  return parser.parse(simdjson::padded_string(text)).error() == simdjson::SUCCESS;
}

Result<void> add_json(JsonWriter& out, std::string_view member, const std::string& text, std::string_view what) {
  if (!is_json(text)) return fail(Errc::invalid_input, fmt::format("{} is no JSON", what));
  out.key(member);
  out.raw(text);
  return {};
}

Result<void> write_ask(JsonWriter& out, const ProjectAsk& page, std::size_t place) {
  Result<void> good;
  out.object([&] {
    out.member("url", page.url);
    if (!page.rule.empty()) out.member("rule", page.rule);
    if (!page.name.empty()) out.member("name", page.name);
    if (!page.context.empty()) good = add_json(out, "context", page.context, fmt::format("pages/{}/context", place));
    if (page.priority) out.member("priority", *page.priority);
    if (page.age) out.member("age_ms", std::chrono::ceil<std::chrono::milliseconds>(*page.age).count());
    if (page.tag) out.member("tag", *page.tag);
    if (page.delay) out.member("delay_ms", std::chrono::ceil<std::chrono::milliseconds>(*page.delay).count());
    if (page.force) out.member("force", true);
    if (page.cancel) out.member("cancel", true);
  });
  return good;
}

// Errors: what is no JSON.
Result<std::string> write_answer(const ProjectAnswer& answer) {
  Result<void> good;
  const auto keep_first = [&](Result<void> found) {
    if (good && !found) good = std::move(found);
  };
  std::string line = json_object([&](JsonWriter& out) {
    out.member("type", "done");
    out.member("id", kTheVisit);
    if (answer.save) keep_first(add_json(out, "save", *answer.save, "save"));
    if (answer.failure) {
      out.object("error", [&] { out.member("text", *answer.failure); });
      return;
    }
    out.array("pages", [&] {
      for (std::size_t i = 0; i < answer.pages.size(); ++i) keep_first(write_ask(out, answer.pages[i], i));
    });
    if (!answer.results) return;
    out.array("results", [&] {
      for (std::size_t i = 0; i < answer.results->size(); ++i) {
        const ProjectResult& result = (*answer.results)[i];
        out.object([&] {
          if (!result.part.empty()) out.member("part", result.part);
          keep_first(add_json(out, "value", result.value, fmt::format("results/{}/value", i)));
        });
      }
    });
  });
  if (!good) return std::unexpected(std::move(good.error()));
  return line;
}

ProjectPage page_of(const PageCall& call) {
  return {.event = std::string(to_string(call.event)),
          .rule = call.rule,
          .name = call.name,
          .url = call.response.url,
          .context = call.context_json,
          .save = call.save_json,
          .fields = call.fields_json,
          .attempt = call.attempt,
          .status = call.response.status,
          .headers = call.response.headers,
          .encoding = call.response.encoding,
          .body = call.response.body};
}

// The program, as the engine sees a reader of pages.
class ProgramProcessor final : public Processor {
 public:
  explicit ProgramProcessor(const LocalProjectOptions& options) : options_(options) {}

  Coro<Result<ProcessorDescription>> describe() override {
    const std::string line = json_object([&](JsonWriter& out) {
      out.member("type", "described");
      out.member("protocol", kProcessorProtocol);
      out.object("on", [&] {
        if (!options_.on_start.empty()) out.member("start", options_.on_start);
        if (!options_.on_finished.empty()) out.member("finished", options_.on_finished);
      });
      out.object("rules", [&] {
        for (const std::string& rule : options_.error_rules) out.object(rule, [&] { out.member("errors", true); });
      });
    });
    auto message = read_script_message(
        line, [](std::uint64_t) { return nullptr; }, limits_);
    if (!message) co_return std::unexpected(std::move(message.error()));
    auto& described = std::get<DescribedMessage>(*message);
    if (described.failure) co_return fail(Errc::invalid_input, described.failure->text);
    co_return std::move(described.description);
  }

  Coro<VisitAnswer> process(const PageCall& call) override {
    OpenVisit visit(call.response.url, limits_);
    const auto failed = [&](std::string text) { return visit.take_failure({.text = std::move(text)}); };
    const ProjectPage page = page_of(call);
    ProjectAnswer answer;
    try {
      answer = co_await wait_for(options_.read(page), call.time_limit);
    } catch (const CancelledError&) {
      throw;
    } catch (const TimeoutError&) {
      co_return failed(fmt::format("it was not read within {}", format_duration(call.time_limit)));
    } catch (const std::exception& error) {
      co_return failed(*error.what() != '\0' ? error.what() : "an error without words");
    } catch (...) {
      co_return failed("an error without words");
    }
    const auto line = write_answer(answer);
    if (!line) co_return failed(line.error().message);
    auto message = read_script_message(
        *line, [&](std::uint64_t) { return &visit; }, limits_);
    if (!message) co_return failed(message.error().message);
    if (auto added = visit.add(std::get<AnswerPart>(std::move(*message))); !added)
      co_return failed(added.error().message);
    co_return visit.take_answer();
  }

  std::size_t capacity() const override { return std::max<std::size_t>(options_.concurrency, 1); }
  Coro<void> close() override { co_return; }

 private:
  const LocalProjectOptions& options_;
  const ProcessorLimits limits_ = limits_of_program();
};

Result<ProjectDefinition> read_definition(const LocalProjectOptions& options) {
  auto definition = parse_project_json(options.definition);
  if (!definition) return definition;
  if (!options.read) return fail(Errc::invalid_input, "read: there is no function to read its pages");
  if (definition->processor.empty())
    return fail(Errc::invalid_input, R"(project.processor: give it some words, such as ["this program"])");
  if (!definition->sinks.empty())
    return fail(Errc::unsupported, "sink: a program's project has none; read its results() instead");
  return definition;
}

}  // namespace

struct LocalProject::State {
  explicit State(LocalProjectOptions its_options)
      : options(std::move(its_options)),
        guard(options.setup.allow_private, options.setup.private_advice),
        http(wire_options(options.hosts, options.setup)) {}

  PageEngineOptions engine_options();
  Coro<Result<void>> work(PageEngine& engine, HttpTransport& transport, Resolver* resolver);
  Coro<void> end_with_round(PageEngine& engine);
  Result<void> begin(PageEngine& engine);

  const LocalProjectOptions options;
  SystemClock clock;
  AddressGuard guard;
  const HttpClientOptions http;
  ProjectDefinition definition;
  std::unique_ptr<PageStore> store;
  std::atomic<bool> is_stopped = false;
};

LocalProject::LocalProject(std::unique_ptr<State> state) : state_(std::move(state)) {}
LocalProject::~LocalProject() = default;

Result<std::unique_ptr<LocalProject>> LocalProject::open(LocalProjectOptions options) {
  auto definition = read_definition(options);
  if (!definition) return std::unexpected(std::move(definition.error()));
  auto state = std::make_unique<State>(std::move(options));
  state->definition = std::move(*definition);
  for (const Url& start : state->definition.start) permit_named(state->guard, start);
  auto store = open_page_store(state->options.setup.database, {.sync = state->options.setup.sync});
  if (!store) return std::unexpected(std::move(store.error()));
  state->store = std::move(*store);
  // Mistakes in its rules are told now.
  PageEngine engine(state->engine_options(), *state->store);
  if (auto opened = engine.open(state->clock.wall_now()); !opened) return std::unexpected(std::move(opened.error()));
  if (auto put = engine.put_project({.definition = state->definition,
                                     .text = state->options.definition,
                                     .source = {},
                                     .script = {},
                                     .note = "a program"});
      !put) {
    return std::unexpected(std::move(put.error()));
  }
  if (auto flushed = state->store->flush(); !flushed) return std::unexpected(std::move(flushed.error()));
  return std::unique_ptr<LocalProject>(new LocalProject(std::move(state)));
}

PageEngineOptions LocalProject::State::engine_options() {
  PageEngineOptions engine;
  engine.body_limit = options.hosts.size_limit;
  engine.concurrency = options.hosts.concurrency;
  engine.hosts = options.hosts;
  std::random_device entropy;
  engine.seed = std::uint64_t{entropy()} << 32 | entropy();
  engine.drain_limit = kLocalDrain;
  engine.is_wanted = [this](std::string_view name) { return name == definition.name; };
  engine.make_processor = [this](const ProjectDefinition&,
                                 const ProcessorWatch&) -> Result<std::unique_ptr<Processor>> {
    return std::make_unique<ProgramProcessor>(options);
  };
  return engine;
}

Result<void> LocalProject::State::begin(PageEngine& engine) {
  const auto status = engine.project(definition.name);
  if (!status) return fail(Errc::not_found, "the project was deleted");
  return status->round ? Result<void>{} : engine.start(definition.name);
}

Coro<void> LocalProject::State::end_with_round(PageEngine& engine) {
  Duration pause = kShortestLocalLook;
  for (RoundWait wait = RoundWait::goes_on; wait == RoundWait::goes_on && !is_stopped;) {
    co_await sleep(pause);
    const TimePoint before = clock.now();
    wait = look_at_round(engine, definition.name, clock.wall_now() + std::min(options.retry_wait, kLongestRetryWait));
    pause = std::min(pause * 2, kLongestLocalLook) + kRestOfLocalLook * (clock.now() - before);
    if (wait != RoundWait::over) continue;
    // The event of its end may lead on.
    try {
      co_await wait_for(engine.round_over(definition.name), kLongestLocalLook);
    } catch (const TimeoutError&) {
      wait = RoundWait::goes_on;
    }
  }
  AfterRounds after(engine, {definition.name}, clock.wall_now());
  while (!is_stopped && after.goes_on(clock.wall_now())) co_await sleep(kLongestLocalLook);
  engine.stop();
}

Coro<Result<void>> LocalProject::State::work(PageEngine& engine, HttpTransport& transport, Resolver* resolver) {
  EventLoop& loop = EventLoop::current();
  Task<Result<void>> visiting = loop.create_task(engine.run(transport, resolver), "project", Start::eagerly);
  auto begun = begin(engine);
  if (!begun) engine.stop(true);
  Task<void> ending = loop.create_task(end_with_round(engine), "round");
  auto ended = co_await visiting;
  ending.cancel();
  try {
    co_await ending;
  } catch (const CancelledError&) {
    // asked for
  }
  co_return begun ? std::move(ended) : std::move(begun);
}

Result<ProjectReport> LocalProject::run() {
  State& state = *state_;
  PageEngine engine(state.engine_options(), *state.store);
  if (auto opened = engine.open(state.clock.wall_now()); !opened) return std::unexpected(std::move(opened.error()));
  LocalWire wire(state.clock, state.http, state.guard);
  const std::unique_ptr<HttpTransport> other =
      state.options.setup.transport ? state.options.setup.transport() : nullptr;
  auto worked = wire.loop().run_until_complete(other != nullptr ? state.work(engine, *other, nullptr)
                                                                : state.work(engine, wire.client(), &wire.resolver()));
  wire.client().close_idle();
  if (!worked) return std::unexpected(std::move(worked.error()));
  ProjectReport report{.visits = engine.visits(), .failed = engine.visits_failed()};
  if (const auto status = engine.project(state.definition.name)) {
    report.left = status->round ? status->outstanding : 0;
    report.trouble = status->trouble;
    const auto results = state.store->count_results(status->id);
    if (!results) return std::unexpected(results.error());
    report.results = *results;
  }
  return report;
}

void LocalProject::stop() { state_->is_stopped = true; }

Result<void> LocalProject::results(const std::function<bool(const Row&)>& visit) {
  const auto records = state_->store->projects();
  if (!records) return std::unexpected(records.error());
  for (const ProjectRecord& record : *records) {
    if (record.name != state_->definition.name || record.deleted_at) continue;
    return state_->store->scan_results(record.id, std::nullopt, [&](const ResultRow& row) {
      return visit({.page = row.page_name,
                    .url = std::string(shown_url(row.page_name, row.url)),
                    .rule = row.rule,
                    .part = row.part,
                    .value = row.value,
                    .added_at = row.added_at,
                    .changed_at = row.changed_at});
    });
  }
  return {};
}

}  // namespace argiope
