#include "argiope/web/detail/ip_address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace argiope {
namespace {

struct Range4 {
  std::uint32_t base;
  int bits;
  AddressClass address_class;
};
// IANA IPv4 Special-Purpose Address Registry, the narrower ranges first where they overlap.
constexpr Range4 kRanges4[] = {
    {0x00000000, 8, AddressClass::unspecified},
    {0x0a000000, 8, AddressClass::private_},
    {0x64400000, 10, AddressClass::private_},  // 100.64/10, shared address space
    {0x7f000000, 8, AddressClass::loopback},
    {0xa9fe0000, 16, AddressClass::link_local},
    {0xac100000, 12, AddressClass::private_},
    {0xc0000000, 24, AddressClass::reserved},  // 192.0.0/24, protocol assignments
    {0xc0000200, 24, AddressClass::reserved},  // TEST-NET-1
    {0xc0586300, 24, AddressClass::reserved},  // 192.88.99/24, 6to4 relays
    {0xc0a80000, 16, AddressClass::private_},
    {0xc6120000, 15, AddressClass::reserved},  // benchmarking
    {0xc6336400, 24, AddressClass::reserved},  // TEST-NET-2
    {0xcb007100, 24, AddressClass::reserved},  // TEST-NET-3
    {0xe0000000, 4, AddressClass::multicast},
    {0xf0000000, 4, AddressClass::reserved},  // future use, and limited broadcast
};

struct Range6 {
  std::array<std::uint8_t, 4> prefix;
  int bits;  // at most 32
  AddressClass address_class;
};
// IANA IPv6 Special-Purpose Address Registry; see classify() for what lies outside 2000::/3.
constexpr Range6 kRanges6[] = {
    {{0xfc, 0, 0, 0}, 7, AddressClass::private_},
    {{0x00, 0x64, 0xff, 0x9b}, 32, AddressClass::private_},  // 64:ff9b:1::/48, NAT64 of one's own
    {{0xfe, 0x80, 0, 0}, 10, AddressClass::link_local},
    {{0xfe, 0xc0, 0, 0}, 10, AddressClass::private_},  // site-local, deprecated
    {{0xff, 0, 0, 0}, 8, AddressClass::multicast},
    {{0x20, 0x01, 0x00, 0x00}, 23, AddressClass::reserved},  // protocol assignments: benchmarking, ORCHID and others
    {{0x20, 0x01, 0x0d, 0xb8}, 32, AddressClass::reserved},  // documentation
    {{0x3f, 0xff, 0x00, 0x00}, 20, AddressClass::reserved},  // documentation
};

AddressClass classify4(std::uint32_t address) noexcept {
  for (const Range4& range : kRanges4) {
    const std::uint32_t mask = ~std::uint32_t{0} << (32 - range.bits);
    if ((address & mask) == range.base) return range.address_class;
  }
  return AddressClass::public_;
}

std::uint32_t big_endian(std::span<const std::uint8_t> bytes) noexcept {
  return static_cast<std::uint32_t>(bytes[0]) << 24 | static_cast<std::uint32_t>(bytes[1]) << 16 |
         static_cast<std::uint32_t>(bytes[2]) << 8 | bytes[3];
}

bool all_zero(std::span<const std::uint8_t> bytes) noexcept {
  return std::ranges::all_of(bytes, [](std::uint8_t byte) { return byte == 0; });
}

// Names that are looked up in a private network, if anywhere.
bool is_private_name(std::string_view name) noexcept {
  constexpr std::string_view kPrivateDomains[] = {".localhost", ".local", ".internal", ".home.arpa"};
  return !name.contains('.') ||
         std::ranges::any_of(kPrivateDomains, [&](std::string_view domain) { return name.ends_with(domain); });
}

// The IPv4 address an IPv6 one stands for, if it does.
std::optional<std::uint32_t> inner_v4(std::span<const std::uint8_t> b) noexcept {
  if (all_zero(b.first(10)) && b[10] == 0xff && b[11] == 0xff) return big_endian(b.subspan(12));   // mapped
  if (all_zero(b.first(12)) && big_endian(b.subspan(12)) > 1) return big_endian(b.subspan(12));    // compatible
  if (big_endian(b) == 0x0064ff9b && all_zero(b.subspan(4, 8))) return big_endian(b.subspan(12));  // NAT64
  if (b[0] == 0x20 && b[1] == 0x02) return big_endian(b.subspan(2));                               // 6to4
  if (b[0] == 0x20 && b[1] == 0x01 && b[2] == 0 && b[3] == 0) return ~big_endian(b.subspan(12));   // Teredo client
  return std::nullopt;
}

}  // namespace

IpAddress IpAddress::v4(std::array<std::uint8_t, 4> bytes) noexcept {
  IpAddress address;
  std::ranges::copy(bytes, address.bytes_.begin());
  return address;
}

IpAddress IpAddress::v6(std::array<std::uint8_t, 16> bytes) noexcept {
  IpAddress address;
  address.is_v4_ = false;
  address.bytes_ = bytes;
  return address;
}

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  char buffer[INET6_ADDRSTRLEN];
  if (text.size() >= sizeof buffer) return std::nullopt;
  std::memcpy(buffer, text.data(), text.size());
  buffer[text.size()] = '\0';
  if (std::strlen(buffer) != text.size()) return std::nullopt;
  std::array<std::uint8_t, 4> four;
  if (::inet_pton(AF_INET, buffer, four.data()) == 1) return v4(four);
  std::array<std::uint8_t, 16> sixteen;
  if (::inet_pton(AF_INET6, buffer, sixteen.data()) == 1) return v6(sixteen);
  return std::nullopt;
}

std::optional<IpAddress> IpAddress::from_sockaddr(const ::sockaddr* address) noexcept {
  if (address->sa_family == AF_INET) {
    std::array<std::uint8_t, 4> bytes;
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, bytes.size());
    return v4(bytes);
  }
  if (address->sa_family == AF_INET6) {
    std::array<std::uint8_t, 16> bytes;
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, bytes.size());
    return v6(bytes);
  }
  return std::nullopt;
}

std::string IpAddress::to_string() const {
  char buffer[INET6_ADDRSTRLEN];
  return ::inet_ntop(is_v4_ ? AF_INET : AF_INET6, bytes_.data(), buffer, sizeof buffer);
}

std::string_view to_string(AddressClass address_class) noexcept {
  switch (address_class) {
    case AddressClass::public_: return "public";
    case AddressClass::loopback: return "loopback";
    case AddressClass::private_: return "private";
    case AddressClass::link_local: return "link-local";
    case AddressClass::multicast: return "multicast";
    case AddressClass::unspecified: return "unspecified";
    case AddressClass::reserved: return "reserved";
  }
  return "unknown";
}

AddressClass classify(const IpAddress& address) noexcept {
  const auto bytes = address.bytes();
  if (address.is_v4()) return classify4(big_endian(bytes));
  if (all_zero(bytes.first(15)) && bytes[15] <= 1) {
    return bytes[15] == 1 ? AddressClass::loopback : AddressClass::unspecified;
  }
  if (const auto inner = inner_v4(bytes)) return classify4(*inner);
  const std::uint32_t head = big_endian(bytes);
  for (const Range6& range : kRanges6) {
    const std::uint32_t mask = ~std::uint32_t{0} << (32 - range.bits);
    if ((head & mask) == big_endian(range.prefix)) return range.address_class;
  }
  // Of the rest, only 2000::/3 has been given out to be used (RFC 4291, 2.4).
  return (head >> 29) == 1 ? AddressClass::public_ : AddressClass::reserved;
}

Result<void> AddressGuard::check(const IpAddress& address) const {
  const AddressClass address_class = classify(address);
  if (address_class == AddressClass::public_ || allow_private_) return {};
  if (loopback_ && address_class == AddressClass::loopback) return {};
  if (std::ranges::find(permitted_, address) != permitted_.end()) return {};
  return fail(Errc::refused, fmt::format("{} is a {} address{}{}", address.to_string(), to_string(address_class),
                                         advice_.empty() ? "" : "; ", advice_));
}

Result<void> AddressGuard::check_name(std::string_view host) const {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (const auto address = IpAddress::parse(host)) return check(*address);
  std::string_view name = host;
  if (name.ends_with('.')) name.remove_suffix(1);
  if (allow_private_ || !is_private_name(name)) return {};
  if (loopback_ && (name == "localhost" || name.ends_with(".localhost"))) return {};
  if (std::ranges::find(permitted_names_, host) != permitted_names_.end()) return {};
  return fail(Errc::refused,
              fmt::format("{} is a name of a private network{}{}", host, advice_.empty() ? "" : "; ", advice_));
}

}  // namespace argiope
