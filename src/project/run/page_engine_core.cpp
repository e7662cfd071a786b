#include "project/run/page_engine_core.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/internal/printable.hpp"

namespace argiope {

PageEngineCore::PageEngineCore(PageEngineOptions its_options, PageStore& its_store)
    : options(std::move(its_options)),
      store(its_store),
      random(mix64(options.seed)),
      reading{
          .agent = options.hosts.product_token, .here = RuleReader::links(options.hosts.product_token), .there = {}} {}

WallTime PageEngineCore::wall() const {
  return std::chrono::floor<std::chrono::milliseconds>(loop != nullptr ? loop->clock().wall_now() : opened_at);
}

std::optional<WallTime> PageEngineCore::wall_at(TimePoint at) const {
  constexpr Duration kAsGoodAsNever = std::chrono::hours{24} * 36'525;
  if (loop == nullptr) return std::nullopt;
  const TimePoint now = loop->time();
  if (at > saturating_add(now, kAsGoodAsNever)) return std::nullopt;
  return wall() + std::max(at - now, Duration{});
}

SharedProject PageEngineCore::find(std::string_view name) const {
  const auto found = projects.find(name);
  return found == projects.end() ? nullptr : found->second;
}

Result<SharedProject> PageEngineCore::need(std::string_view name) const {
  if (SharedProject project = find(name)) return project;
  return no_project(name);
}

std::unexpected<Error> PageEngineCore::no_project(std::string_view name) {
  return argiope::fail(Errc::not_found, fmt::format("there is no project {}", in_quotes(name)));
}

void PageEngineCore::log(const LiveProject& project, std::string_view level, std::string text) const {
  if (project.log) return project.log({std::string(level), std::move(text)});
  if (!options.on_log) return;
  try {
    options.on_log(project.record.name, {std::string(level), std::move(text)});
  } catch (const std::exception& error) {
    spdlog::error("project {}: its log could not be told: {}", project.record.name, error.what());
  }
}

void PageEngineCore::submit(PageBatch batch) {
  if (!new_hosts.empty()) {
    batch.hosts.insert(batch.hosts.begin(), new_hosts.begin(), new_hosts.end());
    new_hosts.clear();
  }
  store.submit(std::move(batch));
}

void PageEngineCore::stop(bool now) {
  stopping = true;
  at_once = at_once || now;
  soon();
}

void PageEngineCore::fail(Error error) {
  spdlog::error("{}", error.message);
  failure = std::move(error);
  stop(true);
}

}  // namespace argiope
