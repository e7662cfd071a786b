// What tests of the HTTP client share: a client, a server that says what it was told to (RawServer), and one loop for
// both.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "argiope/web/http_client.hpp"
#include "support/advancing_time.hpp"
#include "support/loop_fixture.hpp"
#include "support/raw_server.hpp"

namespace argiope {

inline constexpr const char* kHello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

// Gives what the test says, and notes what it was asked.
class FixedResolver final : public Resolver {
 public:
  AddressList addresses{*IpAddress::parse("127.0.0.1")};
  std::vector<std::string> questions;
  Coro<Result<AddressList>> resolve(std::string_view host) override {
    questions.emplace_back(host);
    if (const auto literal = IpAddress::parse(host)) co_return AddressList{*literal};
    if (addresses.empty()) co_return fail(Errc::dns, "nobody knows it");
    co_return addresses;
  }
};

class HttpClientTest : public LoopTest<AdvancingTime> {
 public:
  FixedResolver resolver;
  AddressGuard guard{true};
  RawServer server{world.backend};
  HttpClientOptions options;
  HttpRequest request;
  HttpResponse response;

  HttpClientTest() { request.url = url("/"); }
  ~HttpClientTest() override {
    loop.cancel_all_tasks();
    settle();
    EXPECT_EQ(loop.task_count(), 0u);
  }

  Url url(std::string_view path, std::string_view host = "127.0.0.1", std::string_view scheme = "http") const {
    return *Url::parse(server.origin(host, scheme) + std::string(path));
  }
  // Runs `body` with a client of `options` while the server serves.
  template <class Body>
  void with_client(Body body) {
    HttpClient client(options, world.backend, resolver, guard);
    run([&]() -> Coro<void> {
      auto serving = EventLoop::current().create_task(server.serve());
      co_await body(client);
      serving.cancel();
    });
    client.close_idle();
    run([&]() -> Coro<void> { co_await server.all_closed(); });
  }
  // One request on a client of its own.
  Result<void> send() {
    Result<void> result;
    with_client([&](HttpClient& client) -> Coro<void> { result = co_await client.send(request, response); });
    return result;
  }
  Errc error_of_send() {
    const Result<void> result = send();
    EXPECT_FALSE(result.has_value());
    return result ? Errc::internal : result.error().code;
  }
};

}  // namespace argiope
