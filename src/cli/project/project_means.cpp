#include "cli/project/project_means.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "base/internal/printable.hpp"
#include "cli/crawl/wire_arguments.hpp"
#include "cli/random_number.hpp"
#include "cli/version.hpp"
#include "project/process/internal/child_processor.hpp"
#include "project/process/internal/sandbox.hpp"
#include "project/process/internal/secret_mask.hpp"
#include "project/process/internal/webhook_processor.hpp"

namespace argiope {
namespace {

namespace fs = std::filesystem;

// Where Python finds Argiope's helper: beside this program's installation, or in the sources that it was built from;
// empty: in neither.
std::string helper_folder() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const auto has_helper = [&](const fs::path& folder) { return fs::exists(folder / "argiope" / "processor", ignored); };
  if (const fs::path shared = program.parent_path().parent_path() / "share" / "argiope" / "python"; has_helper(shared))
    return shared;
  // build/PRESET/bin/argiope
  fs::path folder = program.parent_path();
  for (int up = 0; up < 3; ++up) folder = folder.parent_path();
  const fs::path sources = folder / "clients" / "python";
  return has_helper(sources) ? sources.string() : std::string{};
}

ProcessorUse use_of(const ScriptMeans& means, const ProjectDefinition& project) {
  return {.is_debug = project.status == ProjectStatus::debug, .is_try = means.is_try};
}

// Where the value of a project's secret is.
Result<SandboxSecret> place_of(const ScriptMeans& means, const ProjectSecret& secret, const std::string& folder) {
  if (means.is_operators)
    return SandboxSecret{secret.name,
                         secret.file.empty() ? "" : (fs::path(folder) / secret.file).lexically_normal().string()};
  if (secret.file.empty() && !means.secrets_folder.empty())
    return SandboxSecret{secret.name, means.secrets_folder + "/" + secret.name};
  return fail(Errc::refused, fmt::format("secret {}: a project that did not come from a file of this machine names its "
                                         "secrets alone, and their files are {}",
                                         in_quotes(secret.name), in_quotes(means.secrets_folder + "/NAME")));
}

Result<std::unique_ptr<Processor>> make_webhook_processor(const ScriptMeans& means, const ProjectDefinition& project,
                                                          const std::string& folder, ProcessorWatch watch,
                                                          const std::shared_ptr<SecretMask>& mask) {
  if (means.webhooks == nullptr) return fail(Errc::unsupported, "nothing is sent to webhooks here");
  auto url = Url::parse(project.processor.webhook);
  if (!url) return std::unexpected(std::move(url.error()));
  WebhookProcessorOptions options{
      .url = std::move(*url), .project = project.name, .argiope = kVersion, .use = use_of(means, project)};
  const ProjectProcessor& processor = project.processor;
  if (!processor.secret_file.empty() || !processor.secret_variable.empty()) {
    const std::string name = processor.secret_variable.empty() ? "secret_file" : processor.secret_variable;
    auto place = place_of(means, {name, processor.secret_file}, folder);
    if (!place) return std::unexpected(std::move(place.error()));
    options.secret = [place = std::move(*place), mask] {
      auto secret = read_secret(place);
      if (secret) mask->add(*secret);
      return secret;
    };
  }
  options.watch = std::move(watch);
  return std::make_unique<WebhookProcessor>(EventLoop::current(), *means.webhooks, std::move(options));
}

}  // namespace

std::string folder_beside(const std::string& database, std::string_view suffix, std::string_view project) {
  std::error_code ignored;
  const fs::path path = fs::absolute(database, ignored).lexically_normal();
  const std::string name = percent_encode(project);
  return fmt::format("{}-{}/{}{}", path.string(), suffix, name.starts_with('.') ? "_" : "", name);
}

HttpClientOptions webhook_options(const HttpClientOptions& pages) {
  HttpClientOptions options;
  options.user_agent = pages.user_agent;
  options.accept = "*/*";
  options.connect_timeout = pages.connect_timeout;
  options.extra_ca_file = pages.extra_ca_file;
  return options;
}

PageEngineOptions page_engine_options(CrawlOptions hosts, const RenderArguments& render) {
  PageEngineOptions options;
  if (auto browser = render.browser_options(hosts.user_agent)) {
    hosts.renderer = std::make_shared<ChromiumRenderer>(std::move(*browser));
    hosts.render_limits.requests = render.requests;
  } else {
    options.why_not_rendered = std::move(browser.error().message);
  }
  options.body_limit = hosts.size_limit;
  options.concurrency = hosts.concurrency;
  options.hosts = std::move(hosts);
  options.seed = random_number();
  return options;
}

Result<std::unique_ptr<Processor>> make_script_processor(const ScriptMeans& means, const ProjectDefinition& project,
                                                         const std::string& folder, ProcessorWatch watch) {
  const auto mask = std::make_shared<SecretMask>();
  const bool has_secrets = !project.processor.secrets.empty() || !project.processor.webhook.empty();
  if (has_secrets) watch = masked_watch(std::move(watch), mask);
  if (!project.processor.webhook.empty()) {
    auto made = make_webhook_processor(means, project, folder, std::move(watch), mask);
    if (!made) return made;
    return masked_processor(std::move(*made), mask);
  }
  ChildProcessorOptions options;
  options.mask = mask;
  for (const ProjectSecret& secret : project.processor.secrets) {
    auto place = place_of(means, secret, folder);
    if (!place) return std::unexpected(std::move(place.error()));
    options.sandbox.secrets.push_back(std::move(*place));
  }
  if (!project.processor.readable.empty() && !means.is_operators) {
    return fail(Errc::refused,
                "readable: only a project that came from a file of this machine, by that file, says what its script "
                "sees besides its own folder");
  }
  for (const std::string& path : project.processor.readable) {
    std::string whole = (fs::path(folder) / path).lexically_normal().string();
    if (whole.size() > 1 && whole.ends_with('/')) whole.pop_back();
    options.sandbox.readable.push_back(std::move(whole));
  }
  options.command = project.processor.command;
  options.directory = folder;
  options.project = project.name;
  options.argiope = kVersion;
  options.use = use_of(means, project);
  options.workers = means.workers;
  auto kind = parse_sandbox_kind(means.sandbox);
  if (!kind) return std::unexpected(std::move(kind.error()));
  options.sandbox.kind = *kind;
  options.sandbox.shows_own_folder_alone = means.sees_own_folder_alone;
  options.sandbox.python_path = helper_folder();
  for (const std::string& file : means.hidden) {
    std::error_code ignored;
    options.sandbox.hidden.push_back(fs::absolute(file, ignored).string());
  }
  // The child's own start says it again; here it is said at once, with the way out.
  const auto confined = confine(options.command, options.directory, options.sandbox);
  if (!confined) {
    Error error = confined.error();
    if (error.code == Errc::unsupported) error.message += "; --sandbox basic or none confines it less";
    return std::unexpected(std::move(error));
  }
  for (const std::string& note : confined->notes) watch.log({"info", note});
  options.on_log = std::move(watch.log);
  options.on_described = std::move(watch.described);
  options.on_trouble = std::move(watch.trouble);
  options.on_changed = std::move(watch.changed);
  auto processor = std::make_unique<ChildProcessor>(EventLoop::current(), std::move(options));
  if (!has_secrets) return processor;
  return masked_processor(std::move(processor), mask);
}

SinkMeans sink_means_in(const std::string& folder, const std::string& project, SayOfProject say) {
  return {.folder = folder,
          .variable = [](const std::string& name) { return environment_variable(name.c_str()); },
          .log =
              [project, say = std::move(say)](const std::string& sink, const std::string& text) {
                say(project, {"warning", sink + ": " + text});
              }};
}

void log_of_project(const std::string& project, const PageLog& line, const std::function<void()>& before) {
  const auto level = line.level == "debug"                               ? spdlog::level::debug
                     : line.level == "error"                             ? spdlog::level::err
                     : line.level == "warning" || line.level == "stderr" ? spdlog::level::warn
                                                                         : spdlog::level::info;
  if (!spdlog::should_log(level)) return;
  if (before) before();
  // Each line by itself, such as of a trace: a line of the log is one line.
  std::string_view rest = line.text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    spdlog::log(level, "{}: {}", printable(project), printable(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

}  // namespace argiope
