#include "cli/serve/served_projects.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <utility>

#include "argiope/web/url.hpp"
#include "async/internal/as_error.hpp"
#include "base/internal/output_file.hpp"
#include "base/internal/printable.hpp"
#include "cli/error_advice.hpp"
#include "cli/owner.hpp"
#include "cli/project/project_database.hpp"
#include "cli/project/project_means.hpp"
#include "cli/project/run_arguments.hpp"
#include "cli/random_number.hpp"
#include "config/internal/project_file.hpp"

namespace argiope {
namespace {

constexpr const char* kSourceName = "source";  // of a file that came by the API, in errors

// The first argument that can be a file of its own folder, and names no module.
const std::string* script_named_in(const std::vector<std::string>& command) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    const bool is_plain_name = !word.empty() && !word.starts_with('-') && !word.starts_with('.') && !word.contains('/');
    if (is_plain_name && command[i - 1] != "-m") return &word;
  }
  return nullptr;
}

constexpr const char* kTryFolder = ".try-";  // no project's: those of names that begin with a dot begin otherwise

// Where nobody else has put anything.
Result<void> make_folder(const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return fail(Errc::io, fmt::format("{}: {}", printable(folder), failed.message()));
  return {};
}

Result<std::string> file_of_script(const ProjectDefinition& project) {
  if (const std::string* const named = script_named_in(project.processor.command)) return *named;
  return fail(Errc::invalid_input,
              R"(script: processor names no file for it, such as shop.py in ["python3", "shop.py"])");
}

// The folder may be one that an earlier version of the script has written to: no link that it has left is followed.
Result<void> write_script(const std::string& path, const std::string& script) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(path, ignored)))
    std::filesystem::remove(path, ignored);
  OutputFile file("script", path);
  file.write(script);
  return file.finish();
}

// A folder that goes with who has it.
class OwnFolder {
 public:
  explicit OwnFolder(std::string path) : path_(std::move(path)) {}
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;
  ~OwnFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const noexcept { return path_; }

 private:
  const std::string path_;
};

// A processor whose script has a folder for it alone.
class ProcessorInFolder final : public Processor {
 public:
  ProcessorInFolder(std::unique_ptr<OwnFolder> folder, std::unique_ptr<Processor> processor)
      : folder_(std::move(folder)), processor_(std::move(processor)) {}

  Coro<Result<ProcessorDescription>> describe() override { return processor_->describe(); }
  Coro<void> when_changed() override { return processor_->when_changed(); }
  Coro<VisitAnswer> process(const PageCall& call) override { return processor_->process(call); }
  std::size_t capacity() const override { return processor_->capacity(); }
  Coro<void> close() override { return processor_->close(); }

 private:
  // Destroyed from the last to the first.
  const std::unique_ptr<OwnFolder> folder_;
  const std::unique_ptr<Processor> processor_;
};

Result<PageEngine::Draft> read_sent_source(const std::string& text) {
  auto source = parse_project_source(text, kSourceName);
  if (!source) return std::unexpected(std::move(source.error()));
  return PageEngine::Draft{.definition = std::move(source->definition),
                           .text = std::move(source->json),
                           .source = text,
                           .script = {},
                           .note = {}};
}

}  // namespace

Result<std::unique_ptr<ServedProjects>> ServedProjects::open(ServedProjectsOptions options, AsioBackend& backend,
                                                             Engine& jobs) {
  auto store =
      open_page_store(options.pages, {.is_private = true});  // what scripts say of pages may hold cookies and passwords
  if (!store) {
    Error error = std::move(store.error());
    if (!error.message.contains(options.pages))
      error.message = fmt::format("{}: {}", printable(options.pages), error.message);
    if (const std::string owner = error.code == Errc::busy ? owner_of_pages(options.pages) : std::string{};
        !owner.empty())
      error.message += ", " + owner;
    return std::unexpected(std::move(error));
  }
  std::unique_ptr<ServedProjects> projects(new ServedProjects(std::move(options), backend, jobs, std::move(*store)));
  if (auto set_up = projects->set_up(); !set_up) return std::unexpected(std::move(set_up.error()));
  return projects;
}

ServedProjects::ServedProjects(ServedProjectsOptions options, AsioBackend& backend, Engine& jobs,
                               std::unique_ptr<PageStore> store)
    : options_(std::move(options)),
      backend_(backend),
      jobs_(jobs.book(), random_number),
      guard_(options_.visits.requests.allow_private, kAllowPrivateAdvice),
      others_addresses_(options_.visits.requests.allow_private, kAllowPrivateAdvice),
      store_(std::move(store)) {}

ServedProjects::~ServedProjects() = default;

// Removes the folders that tries have left where the daemon was killed.
void ServedProjects::forget_tried() const {
  std::error_code ignored;
  for (auto entry = std::filesystem::directory_iterator(scripts_folder(), ignored);
       entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
    if (entry->path().filename().string().starts_with(kTryFolder)) std::filesystem::remove_all(entry->path(), ignored);
  }
}

Result<void> ServedProjects::set_up() {
  CrawlOptions hosts;
  CrawlSetup setup;
  if (auto applied = options_.visits.apply(hosts, setup, environment_variable); !applied) return applied;
  forget_tried();
  http_ = wire_options(hosts, setup);
  wire_.emplace(backend_, http_, guard_);
  engine_ = std::make_unique<PageEngine>(engine_options(std::move(hosts)), *store_);
  for_daemon_.emplace(DaemonProjects{
      .engine = *engine_,
      .store = *store_,
      .is_locked = [this](std::string_view name) { return named_.contains(name); },
      .read_source = read_sent_source,
      .keep_script = [this](const ProjectDefinition& project,
                            const std::string& script) { return keep_script(project, script); },
      .try_script = [this](const ProjectDefinition& project, const std::string& script,
                           ProcessorWatch watch) { return try_script(project, script, std::move(watch)); },
      .failure = [this] { return failure_; }});
  return engine_->open(backend_.clock().wall_now());
}

PageEngineOptions ServedProjects::engine_options(CrawlOptions hosts) {
  PageEngineOptions options = page_engine_options(std::move(hosts), options_.visits.render);
  options.drain_limit = kDrain;
  options.page_timeout = options_.visits.requests.timeout;
  options.make_processor = [this](const ProjectDefinition& definition, ProcessorWatch watch) {
    return make_processor(definition, false, std::move(watch));
  };
  options.script_of = [this](const ProjectDefinition& definition) { return script_now(definition); };
  options.may_send = [this](std::string_view from, std::string_view to) {
    return folders_.contains(from) || !for_daemon_->may_send || for_daemon_->may_send(from, to);
  };
  const auto say = [](const std::string& project, const PageLog& line) { log_of_project(project, line); };
  options.sink_means = [this, say](const ProjectDefinition& definition) {
    SinkMeans means = sink_means_in(results_folder_of(definition.name), definition.name, say);
    means.jobs = &jobs_;
    return means;
  };
  options.on_log = say;
  options.on_round_end = [this](const std::string& project, const RoundRecord& round,
                                const std::vector<std::string>& alarms) {
    spdlog::info("project {}: round {} has ended: {} visits, {} of them failed, {} results", printable(project),
                 round.number, round.pages, round.failed, round.results);
    if (for_daemon_->on_round_end) for_daemon_->on_round_end(project, round, alarms);
  };
  return options;
}

std::string ServedProjects::own_folder_of(const std::string& project) const {
  return folder_beside(options_.pages, "scripts", project);
}

std::string ServedProjects::scripts_folder() const {
  return std::filesystem::path(own_folder_of("any")).parent_path().string();
}

std::string ServedProjects::results_folder_of(const std::string& project) const {
  if (const auto found = folders_.find(project); found != folders_.end()) return found->second;
  std::string own = folder_beside(options_.pages, "results", project);
  std::error_code told_by_the_sink;
  std::filesystem::create_directories(own, told_by_the_sink);
  return own;
}

bool ServedProjects::is_operators(const ProjectDefinition& project) const {
  const auto found = operators_processors_.find(project.name);
  return found != operators_processors_.end() && found->second == project.processor;
}

HttpTransport& ServedProjects::webhooks_for(bool is_operators) {
  std::optional<WireOnLoop>& wire = is_operators ? operators_webhooks_ : others_webhooks_;
  if (!wire) wire.emplace(backend_, webhook_options(http_), is_operators ? all_addresses_ : others_addresses_);
  return wire->client();
}

void ServedProjects::expect(const std::vector<RunProject>& projects) {
  folders_.clear();
  operators_processors_.clear();
  for (const RunProject& project : projects) {
    folders_[project.name] = project.folder;
    operators_processors_[project.name] = project.definition.processor;
  }
}

Result<void> ServedProjects::keep_script(const ProjectDefinition& project, const std::string& script) const {
  if (folders_.contains(project.name)) return {};  // its file's folder is not ours
  const auto name = file_of_script(project);
  if (!name) return std::unexpected(name.error());
  const std::string folder = own_folder_of(project.name);
  if (auto made = make_folder(folder); !made) return made;
  return write_script(folder + "/" + *name, script);
}

// Of a project that came by the API nothing is read but what keep_script() has put there, whatever its command names.
std::string ServedProjects::script_now(const ProjectDefinition& project) const {
  if (is_operators(project)) return script_of(project, folders_.at(project.name));
  if (project.processor.command.empty()) return {};
  const auto name = file_of_script(project);
  return name ? text_of_script(own_folder_of(project.name) + "/" + *name).value_or("") : std::string{};
}

void ServedProjects::keep_scripts_of_versions() const {
  for (const ProjectStatusNow& status : engine_->projects()) {
    const auto version = store_->version(status.id, status.version);
    if (!version || !*version || (*version)->script.empty()) continue;
    const auto definition = parse_project_json((*version)->text);
    if (!definition || definition->processor.command.empty() || is_operators(*definition)) continue;
    if (auto kept = keep_script(*definition, (*version)->script); !kept)
      spdlog::warn("project {}: {}", printable(status.name), printable(kept.error().message));
  }
}

Result<std::unique_ptr<Processor>> ServedProjects::make_processor(const ProjectDefinition& project, bool is_try,
                                                                  ProcessorWatch watch) {
  if (is_operators(project))
    return make_processor_in(project, folders_.at(project.name), is_try, true, std::move(watch));
  const std::string folder = own_folder_of(project.name);
  if (!project.processor.command.empty()) {
    if (auto made = make_folder(folder); !made) return std::unexpected(std::move(made.error()));
  }
  return make_processor_in(project, folder, is_try, false, std::move(watch));
}

Result<std::unique_ptr<Processor>> ServedProjects::make_processor_in(const ProjectDefinition& project,
                                                                     const std::string& folder, bool is_try,
                                                                     bool is_operators, ProcessorWatch watch) {
  ScriptMeans means{.workers = is_try ? 1 : options_.visits.workers,
                    .sandbox = options_.visits.sandbox,
                    .hidden = options_.hidden,
                    .is_try = is_try};
  means.hidden.push_back(options_.pages);
  means.hidden.push_back(options_.pages + "-secrets");
  means.is_operators = is_operators;
  means.sees_own_folder_alone = !is_operators;
  means.secrets_folder = folder_beside(options_.pages, "secrets", project.name);
  if (!project.processor.webhook.empty()) means.webhooks = &webhooks_for(is_operators);
  return make_script_processor(means, project, folder, std::move(watch));
}

// The operator's folder, secrets and webhooks are for the operator's own file alone, which a text that came by the API
// is not.
Result<std::unique_ptr<Processor>> ServedProjects::try_script(const ProjectDefinition& project, const std::string& sent,
                                                              ProcessorWatch watch) {
  const bool is_as_configured = sent.empty() && is_operators(project);
  if (is_as_configured || !project.processor.webhook.empty()) return make_processor(project, true, std::move(watch));
  std::string script = sent;
  if (const auto status = script.empty() ? engine_->project(project.name) : std::nullopt) {
    auto version = store_->version(status->id, status->version);
    if (!version) return std::unexpected(std::move(version.error()));
    if (*version) script = std::move((*version)->script);
  }
  auto folder = std::make_unique<OwnFolder>(fmt::format("{}/{}{}", scripts_folder(), kTryFolder, ++tried_scripts_));
  if (auto made = make_folder(folder->path()); !made) return std::unexpected(std::move(made.error()));
  if (!script.empty()) {
    const auto name = file_of_script(project);
    if (!name) return std::unexpected(name.error());
    if (auto written = write_script(folder->path() + "/" + *name, script); !written)
      return std::unexpected(std::move(written.error()));
  }
  auto processor = make_processor_in(project, folder->path(), true, false, std::move(watch));
  if (!processor) return processor;
  return std::make_unique<ProcessorInFolder>(std::move(folder), std::move(*processor));
}

void ServedProjects::begin() {
  keep_scripts_of_versions();
  begun_ = true;
  visiting_ = EventLoop::current().create_task(visit(), "projects", Start::eagerly);
}

Coro<void> ServedProjects::visit() {
  auto ended = co_await as_error(engine_->run(wire_->client(), &wire_->resolver()));
  if (ended) co_return;
  failure_ = std::move(ended.error());
  spdlog::error("projects are visited no more: {}", printable_lines(failure_->message));
}

Result<void> ServedProjects::apply(std::vector<RunProject> projects) {
  expect(projects);
  std::set<std::string, std::less<>> names;
  for (const RunProject& project : projects) {
    names.insert(project.name);
    for (const Url& start : project.definition.start) permit_named(guard_, start);
  }
  for (RunProject& project : projects) {
    if (auto applied = apply_one(std::move(project)); !applied) return applied;
  }
  named_ = std::move(names);
  return {};
}

Result<void> ServedProjects::apply_one(RunProject project) {
  const auto named = [&](Error error) {
    error.message = fmt::format("project {}: {}", in_quotes(project.name), error.message);
    return std::unexpected(std::move(error));
  };
  // The configuration has it, no matter who deleted it.
  if (!engine_->project(project.name)) (void)engine_->restore(project.name);
  project.draft->note = "the configuration's";
  if (auto put = engine_->put_project(std::move(*project.draft)); !put) return named(std::move(put.error()));
  const auto status = engine_->project(project.name);
  if (!status || status->round || (status->status != ProjectStatus::running && status->status != ProjectStatus::debug))
    return {};
  const auto rounds = store_->rounds(status->id, 1);
  if (!rounds) return named(rounds.error());
  if (!rounds->empty()) return {};
  if (auto started = engine_->start(project.name); !started) return named(std::move(started.error()));
  return {};
}

void ServedProjects::hurry() {
  if (engine_) engine_->stop(true);
}

void ServedProjects::stop_soon() {
  if (begun_) engine_->stop();
}

Coro<Result<void>> ServedProjects::stop() {
  if (std::exchange(begun_, false)) {
    engine_->stop();
    co_await visiting_;
    for (std::optional<WireOnLoop>* const wire : {&wire_, &operators_webhooks_, &others_webhooks_}) {
      if (*wire) (*wire)->client().close_idle();
    }
  }
  if (failure_) co_return std::unexpected(*failure_);
  co_return Result<void>{};
}

}  // namespace argiope
