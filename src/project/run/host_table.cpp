#include "project/run/host_table.hpp"

#include <fmt/format.h>

#include "base/internal/printable.hpp"
#include "project/rules/internal/data_scheme.hpp"

namespace argiope {

Result<Url> url_to_visit(std::string_view address) {
  auto url = Url::parse(address);
  if (!url) return fail(Errc::invalid_input, fmt::format("url {}: {}", in_quotes(address), url.error().message));
  if (url->scheme() != "http" && url->scheme() != "https") {
    return fail(Errc::invalid_input,
                fmt::format("url {}: only http, https and data URLs can be visited", in_quotes(address)));
  }
  return url;
}

void HostTable::take_up(std::vector<HostRow> rows) {
  for (HostRow& row : rows) {
    if (row.id >= sites_.size()) {
      sites_.resize(row.id + 1);
      at_desk_.resize(row.id + 1);
    }
    host_ids_.emplace(row.site, row.id);
    sites_[row.id] = std::move(row.site);
  }
}

void HostTable::open_desk(Resolver* resolver) {
  desk_ = std::make_unique<HostDesk>(options_.hosts, *core_.loop, *core_.transport, resolver, core_.random.next());
  desk_->number_by([this](const Url& url) { return host_of(url); });
}

std::uint32_t HostTable::host_of(const Url& url) { return host_of_site(url.site_key()); }

std::uint32_t HostTable::host_of(std::string_view url) {
  if (is_data_url(url)) return host_of_site(std::string(kDataSite));
  const auto parsed = url_to_visit(url);
  return host_of_site(parsed ? parsed->site_key() : std::string(kDataSite));
}

std::uint32_t HostTable::host_of_site(std::string site) {
  const auto [found, is_new] = host_ids_.try_emplace(std::move(site), static_cast<std::uint32_t>(sites_.size()));
  if (is_new) {
    sites_.push_back(found->first);
    at_desk_.push_back(false);
    core_.new_hosts.push_back({found->second, found->first});
  }
  if (desk_ && !at_desk_[found->second] && found->first != kDataSite) {
    desk_->add(found->second, found->first);
    at_desk_[found->second] = true;
  }
  return found->second;
}

std::uint32_t HostTable::find(std::string_view site) const {
  const auto number_of_url = [&](const std::string& text) -> std::uint32_t {
    const auto url = Url::parse(text);
    const auto found = url ? host_ids_.find(url->site_key()) : host_ids_.end();
    return found == host_ids_.end() || found->first == kDataSite ? 0 : found->second;
  };
  if (site.find("://") != std::string_view::npos) return number_of_url(std::string(site));
  const std::uint32_t secure = number_of_url(fmt::format("https://{}", site));
  return secure != 0 ? secure : number_of_url(fmt::format("http://{}", site));
}

}  // namespace argiope
