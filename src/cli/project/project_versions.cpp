// `argiope project versions`: what a project's file and script were, what has changed between two of them, and the way
// back.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <expected>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/internal/json_told.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "cli/commands.hpp"
#include "cli/number_option.hpp"
#include "cli/project/project_database.hpp"
#include "cli/project/project_looks.hpp"
#include "cli/project/project_place.hpp"
#include "cli/table.hpp"
#include "cli/text_diff.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostVersionsShown = 1'000;

struct ProjectVersionsArguments {
  std::string name;
  ProjectPlace place;
  std::vector<std::int64_t> diff;
  std::int64_t show = 0, show_script = 0, roll_back = 0;
  bool json = false;
};

struct ShownVersion {
  std::int64_t number = 0;
  WallTime made_at{};
  std::string note;
  std::size_t source_bytes = 0, script_bytes = 0;
  std::string source, script;  // of list() empty where there is a daemon
};

// The versions of a project, wherever it is.
class VersionsOfProject {
 public:
  virtual ~VersionsOfProject() = default;
  // The newest first.
  virtual Result<std::vector<ShownVersion>> list() = 0;
  // Errors: not_found; those of the place.
  virtual Result<ShownVersion> one(std::int64_t number) = 0;
  // Makes a new version that is as this one was, and gives its number.
  virtual Result<std::int64_t> roll_back(std::int64_t number) = 0;
  // How to go on with a version that roll_back() has made.
  virtual std::string then_say(std::int64_t number) const = 0;
  // Says it; the exit status.
  virtual int complain(const Error& error) const = 0;
};

// --- of a database

// As it was written; of one that came as JSON, that.
std::string source_of(ProjectVersion& version) {
  return std::move(version.source.empty() ? version.text : version.source);
}

ShownVersion as_shown(ProjectVersion version) {
  ShownVersion shown{.number = version.number,
                     .made_at = version.made_at,
                     .note = std::move(version.note),
                     .source = source_of(version),
                     .script = std::move(version.script)};
  shown.source_bytes = shown.source.size();
  shown.script_bytes = shown.script.size();
  return shown;
}

class StoredVersions final : public VersionsOfProject {
 public:
  StoredVersions(std::unique_ptr<PageStore> store, ProjectRecord project)
      : store_(std::move(store)), project_(std::move(project)) {}

  Result<std::vector<ShownVersion>> list() override {
    auto versions = store_->versions(project_.id, kMostVersionsShown);
    if (!versions) return std::unexpected(std::move(versions.error()));
    std::vector<ShownVersion> list;
    for (ProjectVersion& version : *versions) list.push_back(as_shown(std::move(version)));
    return list;
  }

  Result<ShownVersion> one(std::int64_t number) override {
    auto version = version_of(*store_, project_, number);
    if (!version) return std::unexpected(std::move(version.error()));
    return as_shown(std::move(*version));
  }

  Result<std::int64_t> roll_back(std::int64_t number) override {
    auto version = version_of(*store_, project_, number);
    if (!version) return std::unexpected(std::move(version.error()));
    if (const auto definition = definition_of(*version); !definition) return std::unexpected(definition.error());
    const WallTime now = calendar_now();
    version->number = ++project_.version;
    version->made_at = now;
    version->note = fmt::format("back to {}", number);
    project_.changed_at = now;
    project_.trouble.clear();
    PageBatch batch;
    batch.at = now;
    batch.versions.push_back(std::move(*version));
    batch.projects.push_back(project_);
    store_->submit(std::move(batch));
    if (auto closed = store_->close(); !closed) return std::unexpected(std::move(closed.error()));
    return project_.version;
  }

  std::string then_say(std::int64_t number) const override {
    return fmt::format(
        "argiope project run without the file runs it; with the file, the file counts:\nargiope project versions {} "
        "--show {} prints it.",
        printable(project_.name), number);
  }

  int complain(const Error& error) const override { return complain_of_project(error, status_for(error)); }

 private:
  std::unique_ptr<PageStore> store_;
  ProjectRecord project_;
};

// --- of a daemon

ShownVersion read_told_version(const JsonValue& told) {
  ToldMembers in(told);
  ShownVersion version;
  in.read("number", version.number);
  in.read("made_at", version.made_at);
  in.read("note", version.note);
  in.read("source_bytes", version.source_bytes);
  in.read("script_bytes", version.script_bytes);
  in.read("source", version.source);
  in.read("script", version.script);
  // Of what came as JSON, and of what has secrets for others than who asks, there is the definition alone.
  const JsonValue* const definition = in.find("definition");
  if (version.source.empty() && definition != nullptr) version.source = definition->json();
  return version;
}

std::vector<ShownVersion> read_told_versions(const JsonValue& told) {
  std::vector<ShownVersion> versions;
  ToldMembers(told).for_each("versions",
                             [&](const JsonValue& version) { versions.push_back(read_told_version(version)); });
  return versions;
}

std::int64_t read_told_number(const JsonValue& told) {
  std::int64_t number = 0;
  ToldMembers(told).read("version", number);
  return number;
}

class ToldVersions final : public VersionsOfProject {
 public:
  ToldVersions(std::unique_ptr<ProjectDaemon> daemon, std::string name)
      : daemon_(std::move(daemon)), name_(std::move(name)) {}

  Result<std::vector<ShownVersion>> list() override {
    return daemon_->get(path_of_project(name_, fmt::format("versions?limit={}", kMostVersionsShown)),
                        read_told_versions);
  }
  Result<ShownVersion> one(std::int64_t number) override {
    return daemon_->get(path_of_project(name_, fmt::format("versions/{}", number)), read_told_version);
  }
  Result<std::int64_t> roll_back(std::int64_t number) override {
    const auto body =
        daemon_->ask(HttpMethod::post, path_of_project(name_, "roll-back"), fmt::format(R"({{"version":{}}})", number));
    if (!body) return std::unexpected(body.error());
    return read_answer(*body, read_told_number);
  }
  std::string then_say(std::int64_t) const override { return "It is in force."; }
  int complain(const Error& error) const override { return complain_of_daemon(error); }

 private:
  std::unique_ptr<ProjectDaemon> daemon_;
  std::string name_;
};

// --- what is said of them

void print_versions(const std::vector<ShownVersion>& versions) {
  Table table({"VERSION", "MADE AT", "FILE", "SCRIPT", "NOTE"});
  for (const ShownVersion& version : versions) {
    table.add({fmt::to_string(version.number), to_rfc3339(version.made_at),
               fmt::format("{} bytes", version.source_bytes),
               version.script_bytes == 0 ? "-" : fmt::format("{} bytes", version.script_bytes),
               one_line(version.note, kMostOfName)});
  }
  table.print();
}

std::string versions_json(const std::string& name, const std::vector<ShownVersion>& versions) {
  return json_object([&](JsonWriter& out) {
    out.member("project", name);
    out.array("versions", [&] {
      for (const ShownVersion& version : versions) {
        out.object([&] {
          out.member("version", version.number);
          out.member("made_at", version.made_at);
          out.member("note", version.note);
          out.member("source", version.source);
          out.member("script", version.script);
        });
      }
    });
  });
}

int list_versions(VersionsOfProject& project, const std::string& name, bool json) {
  auto versions = project.list();
  if (!versions) return project.complain(versions.error());
  if (!json) {
    print_versions(*versions);
    return kExitFinished;
  }
  for (ShownVersion& version : *versions) {
    if (!version.source.empty()) continue;
    auto whole = project.one(version.number);
    if (!whole) return project.complain(whole.error());
    version = std::move(*whole);
  }
  fmt::print("{}\n", versions_json(name, *versions));
  return kExitFinished;
}

int print_diff(VersionsOfProject& project, const std::string& name, std::int64_t from, std::int64_t to) {
  const auto before = project.one(from);
  if (!before) return project.complain(before.error());
  const auto after = project.one(to);
  if (!after) return project.complain(after.error());
  const auto print = [&](const char* what, std::string ShownVersion::*text) {
    const auto title = [&](std::int64_t number) { return fmt::format("{}/{}/{}", printable(name), number, what); };
    fmt::print("{}", printable_lines(unified_diff((*before).*text, (*after).*text, title(from), title(to))));
  };
  print("file", &ShownVersion::source);
  print("script", &ShownVersion::script);
  return kExitFinished;
}

// As it is: it may be meant for a file.
int print_one(VersionsOfProject& project, std::int64_t number, std::string ShownVersion::*what) {
  const auto version = project.one(number);
  if (!version) return project.complain(version.error());
  const std::string& text = (*version).*what;
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kExitFinished;
}

int roll_back(VersionsOfProject& project, const std::string& name, std::int64_t number) {
  const auto versions = project.list();
  if (!versions) return project.complain(versions.error());
  if (!versions->empty() && versions->front().number == number) {
    return complain_of_project(
        {Errc::invalid_input, fmt::format("project {}: {} is the newest version already", in_quotes(name), number)},
        kExitUsage);
  }
  const auto made = project.roll_back(number);
  if (!made) return project.complain(made.error());
  fmt::print("{}: version {} is as version {} was. {}\n", printable(name), *made, number, project.then_say(*made));
  return kExitFinished;
}

// Where it cannot be opened, the reason is said; the error is the exit status.
std::expected<std::unique_ptr<VersionsOfProject>, int> open_versions(const ProjectVersionsArguments& arguments) {
  if (!arguments.place.daemon.empty()) {
    auto daemon = ProjectDaemon::open(arguments.place.daemon);
    if (!daemon) return std::unexpected(complain_of_daemon(daemon.error()));
    return std::make_unique<ToldVersions>(std::move(*daemon), arguments.name);
  }
  const std::string& database = arguments.place.database;
  auto store = arguments.roll_back > 0 ? change_pages(database) : look_at_pages(database);
  if (!store) return std::unexpected(complain_of_project(store.error(), kExitNothing));
  auto project = find_project(**store, arguments.name);
  if (!project) return std::unexpected(complain_of_project(project.error(), status_for(project.error())));
  return std::make_unique<StoredVersions>(std::move(*store), std::move(*project));
}

int run_project_versions(const ProjectVersionsArguments& arguments) {
  const auto opened = open_versions(arguments);
  if (!opened) return opened.error();
  VersionsOfProject& project = **opened;
  if (arguments.roll_back > 0) return roll_back(project, arguments.name, arguments.roll_back);
  if (!arguments.diff.empty()) return print_diff(project, arguments.name, arguments.diff[0], arguments.diff[1]);
  if (arguments.show > 0) return print_one(project, arguments.show, &ShownVersion::source);
  if (arguments.show_script > 0) return print_one(project, arguments.show_script, &ShownVersion::script);
  return list_versions(project, arguments.name, arguments.json);
}

}  // namespace

std::function<int()> add_project_versions(CLI::App& project) {
  auto arguments = std::make_shared<ProjectVersionsArguments>();
  CLI::App* command = project.add_subcommand(
      "versions", "List what a project's file and script were, compare two versions, or go back to one.");
  command->add_option("NAME", arguments->name, "The project")->required()->type_name("");
  arguments->place.add_to(*command);
  const CLI::Validator number = whole_number(1, 1'000'000'000);
  CLI::Option* const diff =
      command->add_option("--diff", arguments->diff, "Changes from version A to version B, in file and script")
          ->expected(2)
          ->check(number)
          ->type_name("A B");
  CLI::Option* const show = command->add_option("--show", arguments->show, "Print the file of this version")
                                ->check(number)
                                ->type_name("N")
                                ->excludes(diff);
  CLI::Option* const script =
      command->add_option("--show-script", arguments->show_script, "Print the script of this version")
          ->check(number)
          ->type_name("N")
          ->excludes(diff)
          ->excludes(show);
  command
      ->add_option("--roll-back", arguments->roll_back,
                   "Make a new version that is as this one was; of a database only while nobody runs it")
      ->check(number)
      ->type_name("N")
      ->excludes(diff)
      ->excludes(show)
      ->excludes(script);
  command->add_flag("--json", arguments->json, "The list as JSON, with files and scripts")->excludes(diff);
  command->footer(
      "Exit status: 0, 2 there is no such project or version, 3 the database or the daemon cannot be used.\n"
      "Example: argiope project versions shop --diff 1 2");
  return [arguments] { return run_project_versions(*arguments); };
}

}  // namespace argiope
