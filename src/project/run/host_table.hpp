// HostTable: the hosts that a page engine has met, by number, and the desk at which they are asked.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "project/fetch/internal/host_desk.hpp"
#include "project/run/page_engine_core.hpp"

namespace argiope {

// Of pages without a server.
inline constexpr std::string_view kDataSite = "data:";

// Of http and https. Errors: invalid_input, naming the URL.
Result<Url> url_to_visit(std::string_view url);

class HostTable final : public PageEnginePart {
 public:
  explicit HostTable(PageEngineCore& core) : PageEnginePart(core) {}

  // Of the store.
  void take_up(std::vector<HostRow> rows);
  void open_desk(Resolver* resolver);

  // A host that is met for the first time gets the next number.
  std::uint32_t host_of(const Url& url);
  std::uint32_t host_of(std::string_view url);
  // 0: none has been met.
  std::uint32_t find(std::string_view site) const;
  const std::string& site(std::uint32_t host) const { return sites_[host]; }
  // Numbers are below it.
  std::uint32_t end() const noexcept { return static_cast<std::uint32_t>(sites_.size()); }

  bool has_desk() const noexcept { return desk_ != nullptr; }
  HostDesk& desk() const noexcept { return *desk_; }
  bool is_at_desk(std::uint32_t host) const { return desk_ && host < at_desk_.size() && at_desk_[host]; }
  HostDesk::Doing doing_at(std::uint32_t host) const noexcept {
    return desk_ && at_desk_[host] ? desk_->doing(host) : HostDesk::Doing::ready;
  }

 private:
  std::uint32_t host_of_site(std::string site);

  std::unordered_map<std::string, std::uint32_t> host_ids_;
  std::vector<std::string> sites_{1};  // by id
  std::vector<bool> at_desk_{false};   // by id
  std::unique_ptr<HostDesk> desk_;
};

}  // namespace argiope
