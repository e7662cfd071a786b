// What [serve] of a configuration says, and what may not be.
#include "serve/internal/serve_options.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tuple>

namespace argiope {
namespace {

using namespace std::chrono_literals;

struct Read {
  ServeOptions options;
  std::string error;
};

Read read(std::string_view json) {
  Read result;
  const auto text = JsonText::parse(json);
  EXPECT_TRUE(text);
  if (!text) return result;
  JsonErrors errors;
  read_serve_options(text->root(errors), result.options);
  if (errors) result.error = errors.error().message;
  return result;
}

TEST(ListenAddresses, AreHostsPortsAndPaths) {
  const auto shown = [](std::string_view text) {
    const auto address = parse_listen_address(text, 7733);
    return address ? to_string(*address) : address.error().message;
  };
  EXPECT_EQ(shown("127.0.0.1:80"), "127.0.0.1:80");
  EXPECT_EQ(shown("localhost"), "localhost:7733");
  EXPECT_EQ(shown("[::1]:80"), "[::1]:80");
  EXPECT_EQ(shown("[::1]"), "[::1]:7733");
  EXPECT_EQ(shown(":80"), ":80");
  EXPECT_EQ(shown("unix:/run/a.sock"), "unix:/run/a.sock");
  EXPECT_EQ(shown("::1"), "address \"::1\": HOST:PORT, [IPV6]:PORT or unix:PATH");
  EXPECT_EQ(shown("[::1"), "address \"[::1\": HOST:PORT, [IPV6]:PORT or unix:PATH");
  EXPECT_EQ(shown("a:99999"), "address \"a:99999\": port \"99999\": a whole number, 0 to 65535");
  EXPECT_EQ(shown("a:"), "address \"a:\": port \"\": a whole number, 0 to 65535");
  EXPECT_EQ(shown("unix:"), "address \"unix:\": a path of 1 to 107 bytes");
}

TEST(ListenAddresses, AreLocalWhereOnlyThisMachineReachesThem) {
  const auto local = [](std::string_view text) { return parse_listen_address(text, 1)->is_local(); };
  for (const char* text : {"127.0.0.1", "127.8.8.8:9", "[::1]", "localhost:1", "unix:/x"})
    EXPECT_TRUE(local(text)) << text;
  for (const char* text : {":80", "0.0.0.0:80", "[::]:80", "192.168.0.7", "example.org"})
    EXPECT_FALSE(local(text)) << text;
}

TEST(ServeOptionsTest, MembersThatAreMissingKeepTheirValues) {
  const Read none = read("{}");
  EXPECT_EQ(none.error, "");
  EXPECT_EQ(none.options.store, "sqlite:argiope-jobs.db");
  EXPECT_EQ(to_string(none.options.http.at(0)), "127.0.0.1:7733");
  EXPECT_TRUE(none.options.beanstalkd.empty());
  EXPECT_TRUE(check(none.options));
}

TEST(ServeOptionsTest, EveryMemberIsRead) {
  const auto [options, error] = read(R"({"store":"memory:","listen":["[::1]:80","unix:/a"],"beanstalkd":"127.0.0.1",
      "beanstalkd_max_job_bytes":1000,"tokens":"t","hosts":"jobs.example","origins":["https://a"],"insecure":true,
      "tls":{"certificate":"c.pem","key":"k.pem","beanstalkd":true},"create_queues":false,"new_queue":{"max_attempts":7},"max_connections":5,
      "max_body_bytes":6,"max_batch_bytes":7,"max_bodies_bytes":9,"max_streams":8,
      "max_answers_bytes":10,"max_queues":11,"drain_limit":"3s","pages":"p.db"})");
  EXPECT_EQ(error, "");
  EXPECT_EQ(options.store, "memory:");
  EXPECT_EQ(options.http.size(), 2u);
  EXPECT_EQ(options.http[1].unix_path, "/a");
  EXPECT_EQ(options.beanstalkd.at(0).port, kBeanstalkdPort);
  EXPECT_EQ(options.beanstalkd_max_job_bytes, 1000u);
  EXPECT_EQ(options.token_file, "t");
  EXPECT_EQ(options.hosts, std::vector<std::string>{"jobs.example"});
  EXPECT_EQ(options.origins, std::vector<std::string>{"https://a"});
  EXPECT_TRUE(options.insecure);
  EXPECT_EQ(options.tls, (TlsFiles{.certificate = "c.pem", .key = "k.pem"}));
  EXPECT_TRUE(options.tls_for_beanstalkd);
  EXPECT_FALSE(options.create_queues);
  EXPECT_EQ(options.new_queue.retry.max_attempts, 7u);
  EXPECT_EQ(options.new_queue.keep_done, 24h) << "what new_queue does not say stays";
  EXPECT_EQ(options.max_connections + options.max_body_bytes + options.max_batch_bytes + options.max_streams, 26u);
  EXPECT_EQ(options.max_bodies_bytes, 9u);
  EXPECT_EQ(options.max_answers_bytes, 10u);
  EXPECT_EQ(options.max_queues, 11u);
  EXPECT_EQ(options.drain_limit, 3s);
  EXPECT_EQ(options.pages, "p.db");
}

TEST(ServeOptionsTest, WhatIsWrongIsToldByItsName) {
  EXPECT_EQ(read(R"({"lisen":"a"})").error, "member \"lisen\": [serve] has none");
  EXPECT_EQ(read(R"({"listen":["a:1","b:x"]})").error,
            "listen[1]: address \"b:x\": port \"x\": a whole number, 0 to 65535");
  EXPECT_EQ(read(R"({"max_connections":0})").error, "max_connections \"0\": a whole number, 1 to 1000000");
  EXPECT_EQ(read(R"({"tls":{"cert":"a"}})").error, "tls: member \"cert\": tls has none");
  EXPECT_EQ(read(R"({"new_queue":{"rat":1}})").error, "new_queue: there is no member \"rat\"");
}

TEST(ServeOptionsTest, WhatCannotStartIsToldByItsName) {
  for (const char* store : {"mysql:x", "", "sqlite:", ":memory:"}) {
    EXPECT_EQ(read(fmt::format(R"({{"store":"{}"}})", store)).error,
              fmt::format(R"(store "{}": "sqlite:FILE", "postgresql://USER@HOST/DATABASE", "redis://HOST/DB" or )"
                          R"("memory:" (nothing is kept))",
                          store));
    ServeOptions options;
    options.store = store;
    EXPECT_FALSE(check(options)) << store;
  }
  EXPECT_EQ(read(R"({"listen":["a:1","b:1","a:1"]})").error, R"(listen[2] "a:1": "a:1" is listened at already)");
  EXPECT_EQ(read(R"({"beanstalkd":"a:1","listen":"a:1"})").error, R"(beanstalkd "a:1": "a:1" is listened at already)");
  EXPECT_EQ(read(R"({"listen":["0.0.0.0:1","127.0.0.1:1"]})").error,
            R"(listen[1] "127.0.0.1:1": "0.0.0.0:1" is listened at already)");
  EXPECT_EQ(read(R"({"listen":["unix:a","unix:b","a:0","a:0","a:1","b:1"]})").error, "");
  EXPECT_NE(read(R"({"tokens":""})").error, "");
  EXPECT_NE(read(R"({"tls":{"certificate":"","key":""}})").error, "");
  ServeOptions options;
  options.beanstalkd = options.http;
  EXPECT_EQ(check(options).error().message, R"(beanstalkd "127.0.0.1:7733": "127.0.0.1:7733" is listened at already)");
}

TEST(ServeOptionsTest, OriginsAreWhatBrowsersSend) {
  for (const char* origin :
       {"shop", "*", "null", "https://", "https://shop.example/", "https://*.example", "://a", ""}) {
    EXPECT_NE(read(fmt::format(R"({{"origins":["https://a","{}"]}})", origin)).error.find("origins[1]"),
              std::string::npos)
        << origin;
  }
  EXPECT_EQ(
      read(R"({"origins":["https://shop.example","http://localhost:8080","moz-extension://a-b","http://[::1]:80"]})")
          .error,
      "");
}

TEST(ServeOptionsTest, HostsAreWhatClientsAskFor) {
  for (const char* host : {"http://jobs.example", "jobs.example/", "*", "*.example", "", ":80", "jobs.example:x",
                           "jobs.example:99999", "a,b", "a b", "u@jobs.example"}) {
    EXPECT_NE(read(fmt::format(R"({{"hosts":["jobs.example","{}"]}})", host)).error.find("hosts[1]"), std::string::npos)
        << host;
  }
  EXPECT_EQ(read(R"({"hosts":["jobs.example","jobs.example:7733","intranet","[2001:db8::1]:80","192.0.2.1"]})").error,
            "");
}

TEST(ServeOptionsTest, WhatOthersReachByBeanstalkdsProtocolIsGuardedToo) {
  ServeOptions options;
  options.beanstalkd = {{"127.0.0.1", 11300, {}}};
  EXPECT_TRUE(check(options));
  options.beanstalkd.push_back({"0.0.0.0", 11301, {}});
  ASSERT_FALSE(check(options));
  EXPECT_NE(check(options).error().message.find("knows no tokens"), std::string::npos);
  options.insecure = true;
  EXPECT_TRUE(check(options));
}

TEST(ServeOptionsTest, WhatOthersReachNeedsTokensAndTlsOrSomethingThatSpeaksIt) {
  const auto said = [](bool tokens, bool tls, bool insecure) {
    ServeOptions options;
    options.http = {{"127.0.0.1", 80, {}}, {"0.0.0.0", 81, {}}};
    if (tokens) options.token_file = "tokens";
    if (tls) options.tls = {.certificate = "c.pem", .key = "k.pem"};
    options.insecure = insecure;
    const auto good = check(options);
    return good ? "" : good.error().message;
  };
  EXPECT_NE(said(true, false, false).find("listen \"0.0.0.0:81\": others reach that address: give a certificate"),
            std::string::npos);
  EXPECT_NE(said(false, true, false).find("without tokens they may do everything"), std::string::npos);
  EXPECT_NE(said(false, false, true).find("without tokens they may do everything"), std::string::npos);
  EXPECT_EQ(said(true, true, false), "");
  EXPECT_EQ(said(true, false, true), "");
}

TEST(ServeOptionsTest, OnThisMachineItNeedsNoTokens) {
  ServeOptions options;
  options.http = {{"127.0.0.1", 80, {}}, {"::1", 80, {}}, {"localhost", 80, {}}, {"", 0, "argiope.sock"}};
  EXPECT_TRUE(check(options));
}

TEST(ServeOptionsTest, ACertificateAndItsKeyComeTogether) {
  ServeOptions options;
  options.tls_for_beanstalkd = true;
  EXPECT_FALSE(check(options));
  options.tls.certificate = "c.pem";
  EXPECT_FALSE(check(options));
  options.tls.key = "k.pem";
  EXPECT_TRUE(check(options));
}

TEST(ServeOptionsTest, WhatIsTakenAtTheStartAloneIsNamed) {
  ServeOptions asked;
  asked.hosts = {"jobs.example"};
  asked.token_file = "t";
  EXPECT_TRUE(taken_at_start(ServeOptions{}, asked).empty());
  asked.http.clear();
  asked.new_queue.retry.max_attempts = 7;
  asked.drain_limit = 1s;
  asked.tls.certificate = "c.pem";
  EXPECT_EQ(taken_at_start(ServeOptions{}, asked),
            (std::vector<std::string_view>{"listen", "tls", "new_queue", "drain_limit"}));
  asked = {};
  asked.store = "memory:";
  asked.beanstalkd = {{"127.0.0.1", 11300, {}}};
  asked.beanstalkd_max_job_bytes = asked.max_connections = asked.max_body_bytes = asked.max_batch_bytes = 1;
  asked.max_streams = asked.max_bodies_bytes = asked.beanstalkd_max_connections = 1;
  asked.max_answers_bytes = asked.max_queues = 1;
  asked.create_queues = false;
  asked.origins = {"https://a"};
  asked.pages = "pages.db";
  EXPECT_EQ(taken_at_start(ServeOptions{}, asked).size(), 14u);
}

TEST(ServeOptionsTest, EachProtocolHasALimitOfConnectionsOfItsOwn) {
  const Read given = read(R"({"max_connections":5,"beanstalkd_max_connections":7})");
  EXPECT_EQ(given.options.max_connections, 5u);
  EXPECT_EQ(given.options.beanstalkd_max_connections, 7u);
}

TEST(ServeOptionsTest, ConnectionsLeaveDescriptorsForTheOtherProtocolAndForFiles) {
  ServeOptions options;
  const auto fitted = [&](std::size_t descriptors, SpokenAt spoken = {1, 1}) {
    ServeOptions fit = options;
    const bool did = fit_connections(fit, spoken, descriptors);
    return std::tuple(did, fit.max_connections, fit.beanstalkd_max_connections);
  };
  EXPECT_EQ(fitted(0), std::tuple(false, 10'000u, 10'000u));
  EXPECT_EQ(fitted(21'024), std::tuple(false, 10'000u, 10'000u));
  EXPECT_EQ(fitted(1'024), std::tuple(true, 384u, 384u));
  options.max_connections = 100;
  EXPECT_EQ(fitted(1'024), std::tuple(true, 100u, 668u));
  options.max_connections = 10'000;
  EXPECT_EQ(fitted(1'024, {2, 1}), std::tuple(true, 192u, 384u));
  EXPECT_EQ(fitted(1'024, {1, 0}), std::tuple(true, 768u, 10'000u));
  EXPECT_EQ(fitted(1'024, {0, 1}), std::tuple(true, 10'000u, 768u));
}

}  // namespace
}  // namespace argiope
