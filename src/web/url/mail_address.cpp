#include "web/url/internal/mail_address.hpp"

#include <algorithm>
#include <cstddef>

#include "argiope/web/url.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/utf8.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostLocal = 64, kMostDomain = 255, kMostLabel = 63;

// RFC 5322, 3.2.3, and what is beyond ASCII.
bool is_atom_letter(char c) {
  return is_alnum(c) || static_cast<unsigned char>(c) >= 0x80 ||
         std::string_view{"!#$%&'*+-/=?^_`{|}~"}.find(c) != std::string_view::npos;
}

// Whether each part of `text` between `separator`s is good, empty parts too; stops at the first that is not.
template <class Good>
bool every_part(std::string_view text, char separator, Good good) {
  while (true) {
    const std::size_t end = text.find(separator);
    if (!good(text.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end + 1);
  }
}

bool is_quoted_local(std::string_view local) {
  if (local.size() < 2 || local.front() != '"' || local.back() != '"') return false;
  local = local.substr(1, local.size() - 2);
  for (std::size_t i = 0; i < local.size(); ++i) {
    const auto c = static_cast<unsigned char>(local[i]);
    if (c < 0x20 || c == 0x7f || c == '"') return false;
    if (c == '\\' && ++i == local.size()) return false;
  }
  return true;
}

bool is_local(std::string_view local) {
  if (is_quoted_local(local)) return true;
  return every_part(local, '.',
                    [](std::string_view atom) { return !atom.empty() && std::ranges::all_of(atom, is_atom_letter); });
}

bool is_label(std::string_view label) {
  if (label.empty() || label.size() > kMostLabel || label.front() == '-' || label.back() == '-') return false;
  return std::ranges::all_of(label,
                             [](char c) { return is_alnum(c) || c == '-' || static_cast<unsigned char>(c) >= 0x80; });
}

// A name, or an address in brackets (RFC 5321, 4.1.3).
bool is_mail_domain(std::string_view domain) {
  if (!domain.starts_with('[')) return every_part(domain, '.', is_label);
  if (!domain.ends_with(']')) return false;
  domain = domain.substr(1, domain.size() - 2);
  const bool is_v6 = starts_with_lower(domain, "ipv6:");
  const std::string host = is_v6 ? "[" + std::string(domain.substr(5)) + "]" : std::string(domain);
  const auto url = Url::parse("http://" + host + "/");
  return url && url->is_ip_host() && url->path_and_query() == "/" && url->username().empty();
}

std::string trouble_in_list(std::string_view list) {
  std::string trouble;
  every_part(list, ',', [&](std::string_view one) {
    trouble = mail_address_trouble(trim_space(percent_decode(one)));
    return trouble.empty();
  });
  return trouble;
}

}  // namespace

std::string mail_address_trouble(std::string_view address) {
  if (address.empty()) return "an address is missing";
  const std::size_t at = address.rfind('@');
  if (at == std::string_view::npos) return in_quotes(address) + " has no @";
  const std::string_view local = address.substr(0, at), domain = address.substr(at + 1);
  if (!is_utf8(address)) return in_quotes(address) + " is not UTF-8";
  if (local.empty()) return in_quotes(address) + " has nothing before the @";
  if (domain.empty()) return in_quotes(address) + " has nothing behind the @";
  if (local.size() > kMostLocal) return in_quotes(address) + " has more than 64 bytes before the @";
  if (domain.size() > kMostDomain) return in_quotes(address) + " has more than 255 bytes behind the @";
  if (!is_local(local)) return in_quotes(address) + " has letters before the @ that must not be there";
  if (!is_mail_domain(domain)) return in_quotes(address) + " has no domain behind the @";
  return {};
}

std::string mailto_trouble(std::string_view url) {
  url.remove_prefix(std::min(url.find(':') + 1, url.size()));
  url = url.substr(0, url.find('#'));
  const std::string_view to = trim_space(url.substr(0, url.find('?')));
  const std::string_view fields = url.substr(std::min(url.find('?'), url.size()));
  if (to.empty() && fields.size() <= 1) return "it has no address";
  std::string trouble = to.empty() ? std::string{} : trouble_in_list(to);
  for_each_token(
      fields, [](char c) { return c == '?' || c == '&'; },
      [&](std::string_view field) {
        const std::size_t equals = std::min(field.find('='), field.size());
        const std::string_view name = field.substr(0, equals);
        const bool is_list = equals_lower(name, "to") || equals_lower(name, "cc") || equals_lower(name, "bcc");
        const std::string_view list = field.substr(std::min(equals + 1, field.size()));
        if (trouble.empty() && is_list && !list.empty()) trouble = trouble_in_list(list);
      });
  return trouble;
}

}  // namespace argiope
