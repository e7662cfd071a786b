// The places at one address, and who is called when one is free.
#include "crawl/hosts/internal/address_gate.hpp"

#include <gtest/gtest.h>

#include <string>

namespace argiope {
namespace {

const IpAddress kGateAddress = *IpAddress::parse("8.8.8.8");

TEST(AddressGateTest, CallsWhoHasWaitedLongest) {
  AddressGate gate(1);
  std::string called;
  const auto waker = [&](char name) { return [&called, name] { return called += name, true; }; };
  EXPECT_TRUE(gate.enter(kGateAddress, waker('a')));
  EXPECT_FALSE(gate.enter(kGateAddress, waker('b')));
  EXPECT_FALSE(gate.enter(kGateAddress, waker('c')));
  EXPECT_TRUE(gate.enter(*IpAddress::parse("8.8.4.4"), waker('d')));
  gate.leave(kGateAddress);
  EXPECT_EQ(called, "b");
  EXPECT_TRUE(gate.enter(kGateAddress, waker('b')));
  gate.leave(kGateAddress);
  EXPECT_EQ(called, "bc");
}

TEST(AddressGateTest, APlaceOfWhoHasGoneIsTheNextOnes) {
  AddressGate gate(2);
  std::string called;
  const auto waker = [&](char name, bool is_there) {
    return [&called, name, is_there] { return called += name, is_there; };
  };
  EXPECT_TRUE(gate.enter(kGateAddress, waker('-', true)));
  EXPECT_TRUE(gate.enter(kGateAddress, waker('-', true)));
  for (const char name : {'a', 'b'}) EXPECT_FALSE(gate.enter(kGateAddress, waker(name, false)));
  for (const char name : {'c', 'd', 'e', 'f'}) EXPECT_FALSE(gate.enter(kGateAddress, waker(name, true)));
  gate.leave(kGateAddress);
  EXPECT_EQ(called, "abc");
  gate.wake(kGateAddress);  // "c" does not come
  EXPECT_EQ(called, "abcd");
  gate.leave(kGateAddress);  // nor does "d": both places are free
  EXPECT_EQ(called, "abcdef");
}

}  // namespace
}  // namespace argiope
