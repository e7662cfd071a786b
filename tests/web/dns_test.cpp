#include "argiope/web/detail/dns.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/asio/ip/udp.hpp>
#include <deque>
#include <map>
#include <stdexcept>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/group.hpp"
#include "support/advancing_time.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

using ::testing::HasSubstr;

constexpr std::uint16_t kA = 1;
constexpr std::uint16_t kAaaa = 28;

// A name server (RFC 1035) that knows what the test told it: A and AAAA records, and names that do not exist. What it
// knows nothing of it does not answer.
class NameServer {
 public:
  struct Entry {
    std::vector<IpAddress> addresses;  // none: NXDOMAIN
    std::uint32_t ttl = 60;            // seconds
  };
  explicit NameServer(AsioBackend& backend)
      : socket_(backend.context(), {boost::asio::ip::make_address("127.0.0.1"), 0}) {}

  std::string address() const { return "127.0.0.1:" + std::to_string(socket_.local_endpoint().port()); }
  std::map<std::string, Entry> entries;
  // How often each name was asked for, A and AAAA apart.
  std::map<std::pair<std::string, std::uint16_t>, int> questions;
  // Answers are damaged: a header that promises more than there is.
  bool damaged = false;

  void stop() {
    boost::system::error_code ignored;
    socket_.close(ignored);
  }
  Coro<void> serve() {
    for (;;) {
      std::array<char, 1500> buffer;
      boost::asio::ip::udp::endpoint peer;
      const auto [ec, count] = co_await asio_op<std::size_t>(
          [&](auto handler) { socket_.async_receive_from(boost::asio::buffer(buffer), peer, std::move(handler)); },
          [&] { socket_.cancel(); });
      if (ec) co_return;
      const std::string reply = answer({buffer.data(), count});
      boost::system::error_code ignored;
      if (!reply.empty()) socket_.send_to(boost::asio::buffer(reply), peer, 0, ignored);
    }
  }

 private:
  static std::string u16(unsigned value) { return {static_cast<char>(value >> 8), static_cast<char>(value)}; }

  std::string answer(std::string_view query) {
    std::size_t at = 12;
    std::string name;
    while (at < query.size() && query[at] != 0) {
      const auto length = static_cast<unsigned char>(query[at]);
      if (!name.empty()) name += '.';
      name += query.substr(at + 1, length);
      at += 1u + length;
    }
    const std::string_view question = query.substr(12, at + 5 - 12);
    const auto type = static_cast<std::uint16_t>(static_cast<unsigned char>(query[at + 2]));
    ++questions[{name, type}];
    const auto found = entries.find(name);
    if (found == entries.end()) return {};

    std::string records;
    unsigned count = 0;
    for (const IpAddress& address : found->second.addresses) {
      if (address.is_v4() != (type == kA)) continue;
      ++count;
      records += u16(0xc00c) + u16(type) + u16(1) + u16(found->second.ttl >> 16) + u16(found->second.ttl & 0xffff) +
                 u16(static_cast<unsigned>(address.bytes().size()));
      for (const std::uint8_t byte : address.bytes()) records += static_cast<char>(byte);
    }
    if (damaged) count += 5;
    const unsigned no_such_name = found->second.addresses.empty() ? 3 : 0;
    return std::string(query.substr(0, 2)) + u16(0x8180 | no_such_name) + u16(1) + u16(count) + u16(0) + u16(0) +
           std::string(question) + records;
  }

  boost::asio::ip::udp::socket socket_;
};

class ResolverTest : public ::testing::Test {
 public:
  AdvancingClock clock;
  AsioBackend backend{clock};
  EventLoop loop{backend};
  NameServer server{backend};
  ResolverOptions options;

  ResolverTest() { options.servers = server.address(); }

  template <class Body>
  void with_resolver(Body body) {
    CaresResolver resolver(options, backend);
    loop.run_until_complete([&]() -> Coro<void> {
      auto serving = EventLoop::current().create_task(server.serve());
      co_await body(resolver);
      server.stop();
      co_await std::move(serving);
    }());
  }
  static IpAddress ip(std::string_view text) { return *IpAddress::parse(text); }
  // Asks a second later, and again where a busy machine answers too late.
  Coro<Result<AddressList>> answered(CaresResolver& resolver, std::string host) {
    for (;;) {
      clock.ahead += 1s;
      Result<AddressList> found = co_await resolver.resolve(host);
      if (found) co_return found;
    }
  }
};

void expect_addresses(const Result<AddressList>& result, std::vector<std::string> expected) {
  ASSERT_TRUE(result) << result.error().message;
  std::vector<std::string> texts;
  for (const IpAddress& address : *result) texts.push_back(address.to_string());
  EXPECT_THAT(texts, ::testing::UnorderedElementsAreArray(expected));
}

void expect_dns_error(const Result<AddressList>& result, std::string_view part) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::dns);
  EXPECT_THAT(result.error().message, HasSubstr(std::string(part)));
}

TEST_F(ResolverTest, TakesLiteralsAndLocalhostWithoutAQuestion) {
  with_resolver([&](CaresResolver& resolver) -> Coro<void> {
    expect_addresses(co_await resolver.resolve("192.0.2.7"), {"192.0.2.7"});
    expect_addresses(co_await resolver.resolve("[2001:db8::1]"), {"2001:db8::1"});
    expect_addresses(co_await resolver.resolve("2001:db8::1"), {"2001:db8::1"});
    for (const char* host : {"localhost", "localhost.", "a.b.localhost", "a.localhost."}) {
      expect_addresses(co_await resolver.resolve(host), {"127.0.0.1", "::1"});
    }
    expect_dns_error(co_await resolver.resolve(""), "empty");
    EXPECT_EQ(resolver.questions_asked(), 0u);
  });
  EXPECT_TRUE(server.questions.empty());
}

TEST_F(ResolverTest, AsksForBothFamiliesAndRemembers) {
  server.entries["www.example.test"] = {{ip("192.0.2.1"), ip("192.0.2.2"), ip("2001:db8::1")}};
  with_resolver([&](CaresResolver& resolver) -> Coro<void> {
    for (int i = 0; i < 3; ++i) {
      expect_addresses(co_await resolver.resolve("www.example.test"), {"192.0.2.1", "192.0.2.2", "2001:db8::1"});
    }
    EXPECT_EQ(resolver.questions_asked(), 1u);
  });
  EXPECT_EQ((server.questions[{"www.example.test", kA}]), 1);
  EXPECT_EQ((server.questions[{"www.example.test", kAaaa}]), 1);
}

TEST_F(ResolverTest, AsksAgainWhenTheTimeToLiveIsOver) {
  server.entries["a.test"] = {{ip("192.0.2.1")}, 60};
  with_resolver([&](CaresResolver& resolver) -> Coro<void> {
    expect_addresses(co_await resolver.resolve("a.test"), {"192.0.2.1"});
    server.entries["a.test"] = {{ip("192.0.2.9")}, 60};
    clock.ahead += 50s;
    expect_addresses(co_await resolver.resolve("a.test"), {"192.0.2.1"});
    clock.ahead += 11s;
    expect_addresses(co_await resolver.resolve("a.test"), {"192.0.2.9"});
    EXPECT_EQ(resolver.questions_asked(), 2u);
  });
}

TEST_F(ResolverTest, ClampsTheTimeToLive) {
  options.min_ttl = 100s;
  options.max_ttl = 1000s;
  server.entries["short.test"] = {{ip("192.0.2.1")}, 0};
  server.entries["long.test"] = {{ip("192.0.2.2")}, 2'000'000'000};
  server.entries["broken.test"] = {{ip("192.0.2.3")}, 0xffffffff};
  with_resolver([&](CaresResolver& resolver) -> Coro<void> {
    const auto ask_all = [&]() -> Coro<void> {
      expect_addresses(co_await resolver.resolve("short.test"), {"192.0.2.1"});
      expect_addresses(co_await resolver.resolve("long.test"), {"192.0.2.2"});
      expect_addresses(co_await resolver.resolve("broken.test"), {"192.0.2.3"});
    };
    co_await ask_all();
    clock.ahead += 90s;
    co_await ask_all();
    EXPECT_EQ(resolver.questions_asked(), 3u);
    clock.ahead += 11s;
    expect_addresses(co_await resolver.resolve("short.test"), {"192.0.2.1"});
    expect_addresses(co_await resolver.resolve("long.test"), {"192.0.2.2"});
    EXPECT_EQ(resolver.questions_asked(), 4u);
    clock.ahead += 900s;
    expect_addresses(co_await resolver.resolve("long.test"), {"192.0.2.2"});
    EXPECT_EQ(resolver.questions_asked(), 5u);
  });
}

TEST_F(ResolverTest, RemembersForAWhileWhatDoesNotExist) {
  server.entries["gone.test"] = {};
  with_resolver([&](CaresResolver& resolver) -> Coro<void> {
    expect_dns_error(co_await resolver.resolve("gone.test"), "gone.test: ");
    expect_dns_error(co_await resolver.resolve("gone.test"), "gone.test: ");
    EXPECT_EQ(resolver.questions_asked(), 1u);
    server.entries["gone.test"] = {{ip("192.0.2.1")}};
    clock.ahead += 31s;
    expect_addresses(co_await resolver.resolve("gone.test"), {"192.0.2.1"});
  });
}

TEST_F(ResolverTest, AsksOnceForAllWhoAskAtTheSameTime) {
  server.entries["busy.test"] = {{ip("192.0.2.1")}};
  with_resolver([&](CaresResolver& resolver) -> Coro<void> {
    std::vector<Coro<Result<AddressList>>> asking;
    for (int i = 0; i < 20; ++i) asking.push_back(resolver.resolve("busy.test"));
    for (const auto& result : co_await gather(std::move(asking))) expect_addresses(result, {"192.0.2.1"});
    EXPECT_EQ(resolver.questions_asked(), 1u);
  });
  EXPECT_EQ((server.questions[{"busy.test", kA}]), 1);
}

TEST_F(ResolverTest, GoesOnForTheOthersWhenOneIsCancelled) {
  server.entries["busy.test"] = {{ip("192.0.2.1")}};
  with_resolver([&](CaresResolver& resolver) -> Coro<void> {
    auto first = EventLoop::current().create_task(resolver.resolve("busy.test"));
    auto second = EventLoop::current().create_task(resolver.resolve("busy.test"));
    co_await yield_now();
    first.cancel();
    expect_addresses(co_await std::move(second), {"192.0.2.1"});
    EXPECT_TRUE(first.cancelled());
    EXPECT_EQ(resolver.questions_asked(), 1u);
  });
}

// More than a socket's buffer would hold, were they all sent at once; a lost one would wait for its time-out.
TEST_F(ResolverTest, AnswersManyQuestionsAtOnce) {
  options.timeout = 60s;
  std::vector<std::string> hosts;
  for (int i = 0; i < 1000; ++i) {
    hosts.push_back("h" + std::to_string(i) + ".test");
    server.entries[hosts.back()] = {{ip("192.0.2." + std::to_string(i % 256))}};
  }
  with_resolver([&](CaresResolver& resolver) -> Coro<void> {
    std::vector<Coro<Result<AddressList>>> asking;
    for (const std::string& host : hosts) asking.push_back(resolver.resolve(host));
    const auto results = co_await gather(std::move(asking));
    for (std::size_t i = 0; i < results.size(); ++i) {
      expect_addresses(results[i], {"192.0.2." + std::to_string(i % 256)});
    }
  });
  for (const std::string& host : hosts)
    EXPECT_EQ((server.questions[{host, kA}]), 1) << "asked again: an answer was lost";
}

TEST_F(ResolverTest, GivesUpOnAServerThatIsSilent) {
  options.timeout = 20ms;
  options.tries = 2;
  with_resolver([&](CaresResolver& resolver) -> Coro<void> {
    expect_dns_error(co_await resolver.resolve("silent.test"), "silent.test: ");
    while (server.questions[{"silent.test", kA}] < 2) co_await sleep(1ms);  // the last one may be on its way
  });
  EXPECT_EQ((server.questions[{"silent.test", kA}]), 2);
}

TEST_F(ResolverTest, AsksAgainSoonWhenNobodyAnswered) {
  options.timeout = 20ms;
  options.tries = 1;
  with_resolver([&](CaresResolver& resolver) -> Coro<void> {
    expect_dns_error(co_await resolver.resolve("slow.test"), "slow.test: ");
    server.entries["slow.test"] = {{ip("192.0.2.1")}};
    expect_addresses(co_await answered(resolver, "slow.test"), {"192.0.2.1"});
  });
}

TEST_F(ResolverTest, SurvivesDamagedAnswers) {
  options.timeout = 20ms;
  options.tries = 1;
  server.damaged = true;
  server.entries["a.test"] = {{ip("192.0.2.1")}};
  with_resolver([&](CaresResolver& resolver) -> Coro<void> {
    const auto result = co_await resolver.resolve("a.test");
    EXPECT_FALSE(result);
  });
}

TEST_F(ResolverTest, RefusesNamesThatCannotBe) {
  with_resolver([&](CaresResolver& resolver) -> Coro<void> {
    expect_dns_error(co_await resolver.resolve(std::string(70, 'a') + ".test"), "");
    expect_dns_error(co_await resolver.resolve("a..test"), "");
    std::string long_name;
    for (int i = 0; i < 100; ++i) long_name += "abc.";
    expect_dns_error(co_await resolver.resolve(long_name + "test"), "");
  });
}

TEST_F(ResolverTest, MayEndWithQuestionsOpen) {
  bool ended = false;
  auto asking = std::make_unique<CaresResolver>(options, backend);
  loop.run_until_complete([&]() -> Coro<void> {
    auto waiting = EventLoop::current().create_task(asking->resolve("silent.test"));
    co_await yield_now();
    co_await yield_now();
    waiting.cancel();
    co_await yield_now();
    asking.reset();
    co_await yield_now();
    ended = waiting.done();
  }());
  EXPECT_TRUE(ended);
}

TEST_F(ResolverTest, BoundsItsCache) {
  options.cache_limit = 3;
  for (int i = 0; i < 6; ++i) server.entries["h" + std::to_string(i) + ".test"] = {{ip("192.0.2.1")}};
  with_resolver([&](CaresResolver& resolver) -> Coro<void> {
    for (int i = 0; i < 6; ++i) {
      expect_addresses(co_await resolver.resolve("h" + std::to_string(i) + ".test"), {"192.0.2.1"});
    }
    expect_addresses(co_await resolver.resolve("h5.test"), {"192.0.2.1"});
    EXPECT_EQ(resolver.questions_asked(), 6u);
    expect_addresses(co_await resolver.resolve("h0.test"), {"192.0.2.1"});
    EXPECT_EQ(resolver.questions_asked(), 7u);
  });
}

TEST_F(ResolverTest, SendsWaitingQuestionsWhenOthersFailAtOnce) {
  options.max_questions = 1;
  options.timeout = 20ms;
  options.tries = 1;
  server.entries["good.test"] = {{ip("192.0.2.1")}};
  with_resolver([&](CaresResolver& resolver) -> Coro<void> {
    std::vector<Coro<Result<AddressList>>> asking;
    asking.push_back(resolver.resolve("silent.test"));
    std::vector<std::string> bad;  // resolve() keeps a view of the name
    for (int i = 0; i < 50; ++i) bad.push_back("bad.." + std::to_string(i));
    for (const std::string& name : bad) asking.push_back(resolver.resolve(name));
    asking.push_back(resolver.resolve("good.test"));
    const auto results = co_await gather(std::move(asking));
    for (std::size_t i = 0; i + 1 < results.size(); ++i) EXPECT_FALSE(results[i]);
    while (server.questions[{"good.test", kA}] == 0) co_await sleep(1ms);
    expect_addresses(results.back() ? results.back() : co_await answered(resolver, "good.test"), {"192.0.2.1"});
  });
}

TEST_F(ResolverTest, RefusesServersThatAreNone) {
  options.servers = "not an address";
  EXPECT_THROW(CaresResolver(options, backend), std::runtime_error);
  options.servers.clear();
  options.max_questions = 0;
  EXPECT_THROW(CaresResolver(options, backend), std::invalid_argument);
}

}  // namespace
}  // namespace argiope
