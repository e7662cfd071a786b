// HostReports: what is done at each host, and why nothing is.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "project/run/page_reports.hpp"

namespace argiope {

class HostReports final : public PageEnginePart {
 public:
  using MaySee = std::function<bool(std::string_view project)>;

  HostReports(PageEngineCore& core, const HostTable& hosts, const PageReports& reports)
      : PageEnginePart(core), hosts_(hosts), reports_(reports) {}

  HostsFound hosts(const HostQuery& query) const;
  HostExplanation explain_host(std::string_view site, const MaySee& may_see) const;

 private:
  std::vector<const LiveProject*> seen_projects(const MaySee& may_see) const;
  HostStatusNow status_of_host(std::uint32_t host, const std::vector<const LiveProject*>& projects) const;
  HostExplanation::OfProject at_host(const LiveProject& project, std::uint32_t host) const;

  const HostTable& hosts_;
  const PageReports& reports_;
};

}  // namespace argiope
