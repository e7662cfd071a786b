// PageReports: what is told of projects and of their pages, and why a page is not visited.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "project/rules/internal/page_reasons.hpp"
#include "project/run/host_table.hpp"

namespace argiope {

class PageReports final : public PageEnginePart {
 public:
  PageReports(PageEngineCore& core, const HostTable& hosts) : PageEnginePart(core), hosts_(hosts) {}

  ProjectStatusNow status_of(const LiveProject& project) const;
  std::optional<PageId> page_id(std::string_view project, std::string_view page) const;
  Result<PageExplanation> explain(std::string_view project, std::string_view page) const;

 private:
  // Of the page's last visit, by its row; empty: it went well, or is not there yet.
  std::string last_error(const LiveProject& project, PageIndex::Number page) const;
  // Why a page that is due is not visited: its host or its project's rate. nullopt: neither.
  std::optional<PageReason> why_held_up(LiveProject& project, PageIndex::Number page, const Explanation& queued) const;

  const HostTable& hosts_;
};

}  // namespace argiope
