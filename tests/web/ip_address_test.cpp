#include "argiope/web/detail/ip_address.hpp"

#include <gtest/gtest.h>

namespace argiope {
namespace {

AddressClass class_of(std::string_view text) { return classify(*IpAddress::parse(text)); }

TEST(IpAddress, ParsesAndWritesBothFamilies) {
  EXPECT_EQ(IpAddress::parse("192.0.2.1")->to_string(), "192.0.2.1");
  EXPECT_EQ(IpAddress::parse("2001:DB8::1")->to_string(), "2001:db8::1");
  EXPECT_EQ(IpAddress::parse("1.2.3"), std::nullopt);
  EXPECT_EQ(IpAddress::parse("example.org"), std::nullopt);
  EXPECT_EQ(IpAddress::parse(std::string_view("1.2.3.4\0x", 9)), std::nullopt);
  EXPECT_NE(*IpAddress::parse("0.0.0.0"), *IpAddress::parse("::"));
}

TEST(IpAddress, KnowsTheSpecialRangesOfIpv4) {
  EXPECT_EQ(class_of("93.184.216.34"), AddressClass::public_);
  EXPECT_EQ(class_of("10.1.2.3"), AddressClass::private_);
  EXPECT_EQ(class_of("172.16.0.1"), AddressClass::private_);
  EXPECT_EQ(class_of("172.32.0.1"), AddressClass::public_);
  EXPECT_EQ(class_of("192.168.0.1"), AddressClass::private_);
  EXPECT_EQ(class_of("100.64.0.1"), AddressClass::private_);
  EXPECT_EQ(class_of("127.8.9.1"), AddressClass::loopback);
  EXPECT_EQ(class_of("169.254.169.254"), AddressClass::link_local);
  EXPECT_EQ(class_of("0.1.2.3"), AddressClass::unspecified);
  EXPECT_EQ(class_of("224.0.0.1"), AddressClass::multicast);
  EXPECT_EQ(class_of("255.255.255.255"), AddressClass::reserved);
  EXPECT_EQ(class_of("198.51.100.7"), AddressClass::reserved);
}

TEST(IpAddress, KnowsTheSpecialRangesOfIpv6) {
  EXPECT_EQ(class_of("2606:2800:220:1::1"), AddressClass::public_);
  EXPECT_EQ(class_of("::1"), AddressClass::loopback);
  EXPECT_EQ(class_of("::"), AddressClass::unspecified);
  EXPECT_EQ(class_of("fd00::1"), AddressClass::private_);
  EXPECT_EQ(class_of("fe80::1"), AddressClass::link_local);
  EXPECT_EQ(class_of("ff02::1"), AddressClass::multicast);
  EXPECT_EQ(class_of("2001:db8::1"), AddressClass::reserved);
  EXPECT_EQ(class_of("2001:2::1"), AddressClass::reserved);         // benchmarking
  EXPECT_EQ(class_of("2001:20::1"), AddressClass::reserved);        // ORCHIDv2
  EXPECT_EQ(class_of("2001:200::1"), AddressClass::public_);        // the first beyond the protocol assignments
  EXPECT_EQ(class_of("3fff:fff::1"), AddressClass::reserved);       // documentation
  EXPECT_EQ(class_of("5f00::1"), AddressClass::reserved);           // SRv6 SIDs
  EXPECT_EQ(class_of("100::1"), AddressClass::reserved);            // discard-only
  EXPECT_EQ(class_of("4000::1"), AddressClass::reserved);           // not given out
  EXPECT_EQ(class_of("64:ff9b:1::a00:1"), AddressClass::private_);  // NAT64 of one's own
}

TEST(IpAddress, SeesThroughIpv4InsideIpv6) {
  EXPECT_EQ(class_of("::ffff:127.0.0.1"), AddressClass::loopback);
  EXPECT_EQ(class_of("::127.0.0.1"), AddressClass::loopback);
  EXPECT_EQ(class_of("64:ff9b::10.0.0.1"), AddressClass::private_);
  EXPECT_EQ(class_of("2002:7f00:1::"), AddressClass::loopback);
  EXPECT_EQ(class_of("2001:0:1:2:3:4:80ff:fffe"), AddressClass::loopback);  // Teredo hides 127.0.0.1 inverted
  EXPECT_EQ(class_of("::ffff:93.184.216.34"), AddressClass::public_);
}

TEST(AddressGuard, LetsOnlyPublicAddressesThroughUnlessTold) {
  const AddressGuard guard(false, "ask Ann");
  EXPECT_TRUE(guard.check(*IpAddress::parse("93.184.216.34")));
  const auto refused = guard.check(*IpAddress::parse("169.254.169.254"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::refused);
  EXPECT_EQ(refused.error().message, "169.254.169.254 is a link-local address; ask Ann");
  EXPECT_FALSE(guard.check(*IpAddress::parse("::ffff:10.0.0.1")));
  EXPECT_TRUE(AddressGuard(true).check(*IpAddress::parse("10.0.0.1")));
}

TEST(AddressGuard, PermitsWhatASeedNamesAndNoMore) {
  AddressGuard guard(false);
  guard.permit(*IpAddress::parse("10.0.0.1"));
  EXPECT_TRUE(guard.check(*IpAddress::parse("10.0.0.1")));
  EXPECT_FALSE(guard.check(*IpAddress::parse("10.0.0.2")));
  guard.permit_loopback();
  EXPECT_TRUE(guard.check(*IpAddress::parse("127.0.0.9")));
  EXPECT_TRUE(guard.check(*IpAddress::parse("::1")));
  EXPECT_FALSE(guard.check(*IpAddress::parse("192.168.1.1")));
}

}  // namespace
}  // namespace argiope
