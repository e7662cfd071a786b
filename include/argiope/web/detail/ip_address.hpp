// IP addresses, what kind they are, and which of them the crawler may connect to.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/error.hpp"

struct sockaddr;

namespace argiope {

// An IPv4 or IPv6 address, without port or zone.
class IpAddress {
 public:
  // 0.0.0.0
  IpAddress() = default;
  static IpAddress v4(std::array<std::uint8_t, 4> bytes) noexcept;
  static IpAddress v6(std::array<std::uint8_t, 16> bytes) noexcept;
  // Dotted quad or RFC 4291 text, without brackets. No other spelling: the URL parser has normalised those.
  static std::optional<IpAddress> parse(std::string_view text);
  // nullopt unless the family is AF_INET or AF_INET6.
  static std::optional<IpAddress> from_sockaddr(const ::sockaddr* address) noexcept;

  bool is_v4() const noexcept { return is_v4_; }
  // 4 or 16 bytes, in network order.
  std::span<const std::uint8_t> bytes() const noexcept { return {bytes_.data(), is_v4_ ? 4u : 16u}; }
  std::string to_string() const;

  friend auto operator<=>(const IpAddress&, const IpAddress&) = default;

 private:
  bool is_v4_ = true;
  std::array<std::uint8_t, 16> bytes_{};
};

// By IANA's special-purpose address registries (RFC 6890).
enum class AddressClass : std::uint8_t {
  public_,
  loopback,
  private_,  // RFC 1918, RFC 4193 (fc00::/7), RFC 6598 (shared), fec0::/10
  link_local,
  multicast,
  unspecified,  // 0.0.0.0/8 and ::
  reserved,     // documentation, benchmarking, future use and other ranges without servers
};
std::string_view to_string(AddressClass address_class) noexcept;

// The class of what would be reached: IPv4 addresses inside IPv6 ones (mapped, compatible, NAT64, 6to4, Teredo) are
// judged as IPv4.
AddressClass classify(const IpAddress& address) noexcept;

// Which addresses may be connected to: public ones, those named, and all when `allow_private`. `advice` is added to
// refusals: what the user can do, such as an option of the program.
//
// Threads: check() from any, once set up.
class AddressGuard {
 public:
  explicit AddressGuard(bool allow_private, std::string advice = {})
      : allow_private_(allow_private), advice_(std::move(advice)) {}

  // Permits exactly this address, whatever its class.
  void permit(const IpAddress& address) { permitted_.push_back(address); }
  // Permits 127.0.0.0/8 and ::1.
  void permit_loopback() noexcept { loopback_ = true; }
  // For check_name() alone.
  void permit_name(std::string_view name) { permitted_names_.emplace_back(name); }

  // Errors: refused, naming the address and its class, and the advice.
  Result<void> check(const IpAddress& address) const;
  // Of a host that another looks up and connects to, a proxy, so that its address cannot be checked: refuses addresses
  // as check() does, and names that mean this machine or a private network wherever they are looked up: without a dot,
  // or in localhost, local, internal or home.arpa (RFC 6761, 6762, 8375; ICANN keeps "internal" out of the public DNS).
  // `host` is as a URL has it, with or without brackets.
  Result<void> check_name(std::string_view host) const;

 private:
  bool allow_private_;
  std::string advice_;
  bool loopback_ = false;
  std::vector<IpAddress> permitted_;
  std::vector<std::string> permitted_names_;
};

}  // namespace argiope

template <>
struct std::hash<argiope::IpAddress> {
  std::size_t operator()(const argiope::IpAddress& address) const noexcept {
    const auto bytes = address.bytes();
    return std::hash<std::string_view>{}({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
};
