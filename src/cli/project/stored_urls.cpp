#include "cli/project/stored_urls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/internal/printable.hpp"
#include "cli/crawl/crawl_looks.hpp"
#include "cli/project/project_database.hpp"
#include "project/run/internal/page_trial.hpp"

namespace argiope {
namespace {

constexpr std::size_t kPagesOfABatch = 10'000;

bool may_be_page(const UrlRecord& record) {
  return record.reason != UrlReason::asset && record.reason != UrlReason::requisite &&
         record.reason != UrlReason::sitemap;
}

// A database of one kind or the other.
struct EitherStore {
  std::unique_ptr<UrlStore> crawl;
  std::unique_ptr<PageStore> pages;
};

Result<EitherStore> open_either(const std::string& database) {
  auto crawl = open_crawl_to_look(database);
  if (crawl) return EitherStore{std::move(*crawl), nullptr};
  if (crawl.error().code != Errc::wrong_format) return std::unexpected(std::move(crawl.error()));
  auto pages = look_at_pages(database);
  if (pages) return EitherStore{nullptr, std::move(*pages)};
  return std::unexpected(std::move(pages.error().code == Errc::wrong_format ? crawl.error() : pages.error()));
}

// Those that are there, or of them the one of that name alone.
Result<std::vector<ProjectRecord>> projects_of(PageStore& store, std::string_view name) {
  auto projects = store.projects();
  if (!projects) return projects;
  std::erase_if(*projects, [](const ProjectRecord& project) { return project.deleted_at.has_value(); });
  if (std::ranges::find(*projects, name, &ProjectRecord::name) == projects->end()) return projects;
  std::erase_if(*projects, [&](const ProjectRecord& project) { return project.name != name; });
  return projects;
}

bool is_web_url(std::string_view url) { return url.starts_with("http://") || url.starts_with("https://"); }

Result<std::string> scan_pages(PageStore& store, const std::string& database, std::string_view name,
                               const std::function<void(const StoredUrl&)>& visit) {
  const auto projects = projects_of(store, name);
  if (!projects) return std::unexpected(projects.error());
  for (const ProjectRecord& project : *projects) {
    const auto scanned = store.scan_pages(project.id, 0, [&](const PageRecord& page) {
      const std::string_view url = shown_url(page.name, page.url);
      if (is_web_url(url)) visit({.name = page.name, .url = url, .known = page.known});
      return true;
    });
    if (!scanned) return std::unexpected(scanned.error());
  }
  const bool is_one = projects->size() == 1 && projects->front().name == name;
  return fmt::format("{} of {}", is_one ? "project " + printable(name) : "the projects", printable(database));
}

}  // namespace

Result<std::string> scan_stored_urls(const std::string& database, std::string_view project,
                                     const std::function<void(const StoredUrl&)>& visit) {
  auto store = open_either(database);
  if (!store) return std::unexpected(std::move(store.error()));
  if (store->pages) return scan_pages(*store->pages, database, project, visit);
  const auto scanned = store->crawl->scan(
      1,
      [&](const UrlRecord& record) {
        visit({.name = record.url,
               .url = record.url,
               .may_be_page = may_be_page(record),
               .known = known_page_of(record)});
        return true;
      },
      UrlStore::Fields::to_go_on);
  if (!scanned) return std::unexpected(scanned.error());
  return printable(database);
}

Result<void> copy_known_pages(const std::string& database, std::string_view project, PageStore& store) {
  auto from = open_either(database);
  if (!from) return std::unexpected(std::move(from.error()));
  if (!from->pages) return {};
  auto projects = projects_of(*from->pages, project);
  if (!projects) return std::unexpected(std::move(projects.error()));
  if (projects->size() != 1 || projects->front().name != project) return {};
  ProjectRecord& record = projects->front();
  auto version = version_of(*from->pages, record);
  if (!version) return std::unexpected(std::move(version.error()));
  auto hosts = from->pages->hosts();
  if (!hosts) return std::unexpected(std::move(hosts.error()));
  const ProjectId id = record.id;
  record.status = to_string(ProjectStatus::stop);
  record.start_wanted.reset();
  PageBatch batch{.projects = {std::move(record)}, .versions = {std::move(*version)}, .hosts = std::move(*hosts)};
  const auto copied = from->pages->scan_pages(id, 0, [&](const PageRecord& page) {
    PageRecord& known = batch.added.emplace_back(page);
    known.context.clear();
    known.save.clear();
    if (batch.added.size() >= kPagesOfABatch) store.submit(std::exchange(batch, {}));
    return true;
  });
  if (!copied) return copied;
  store.submit(std::move(batch));
  return store.flush();
}

}  // namespace argiope
