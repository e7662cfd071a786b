#include "serve/internal/serve_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <utility>

#include "argiope/base/clock.hpp"
#include "argiope/web/detail/ip_address.hpp"
#include "base/internal/json_members.hpp"
#include "base/internal/printable.hpp"
#include "jobs/internal/queue_config_json.hpp"
#include "store/internal/store_url.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {

namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kSqliteStore = "sqlite:";
constexpr std::size_t kMostUnixPath = 107;
constexpr std::size_t kMostNamedBytes = 4096;
constexpr std::size_t kMostAddresses = 64;
constexpr std::int64_t kMostConnections = 1'000'000;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
constexpr std::int64_t kMostBodiesBytes = std::int64_t{1} << 40;

Result<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return fail(Errc::invalid_input, fmt::format("port {}: a whole number, 0 to 65535", in_quotes(text)));
  }
  return port;
}

// A string, or a list of them: each is given to `take`.
template <class Take>
void each_text(const JsonValue& given, Take take) {
  if (given.if_text()) return take(given);
  if (!given.is_list() || given.size() > kMostAddresses) {
    return given.complain(fmt::format("a string, or a list of up to {}", kMostAddresses));
  }
  given.for_each([&](const JsonValue& entry) {
    if (!entry.if_text()) return entry.complain("a string");
    take(entry);
  });
}

// Whether the second could not be listened at beside the first. Port 0 is another one each time.
bool are_one_place(const ListenAddress& one, const ListenAddress& other) {
  if (one.is_unix() || other.is_unix()) return one.unix_path == other.unix_path;
  if (one.port == 0 || one.port != other.port) return false;
  const auto is_every_ipv4 = [](const ListenAddress& address) { return address.host == "0.0.0.0"; };
  const auto is_ipv4 = [](const ListenAddress& address) {
    return address.host == "localhost" || (!address.host.contains(':') && IpAddress::parse(address.host).has_value());
  };
  return equals_ignoring_case(one.host, other.host) || (is_every_ipv4(one) && is_ipv4(other)) ||
         (is_ipv4(one) && is_every_ipv4(other));
}

std::optional<std::string> why_not_beside(const ListenAddress& address, std::span<const ListenAddress> before) {
  for (const ListenAddress& other : before) {
    if (are_one_place(other, address)) return fmt::format("{} is listened at already", in_quotes(to_string(other)));
  }
  return std::nullopt;
}

// `http`: what is listened at already, where the file says so.
void read_addresses(JsonMembers& in, std::string_view name, std::uint16_t port, std::vector<ListenAddress>& out,
                    std::span<const ListenAddress> http = {}) {
  const JsonValue* given = in.find(name);
  if (given == nullptr) return;
  out.clear();
  each_text(*given, [&](const JsonValue& entry) {
    auto address = parse_listen_address(*entry.if_text(), port);
    if (!address) return entry.refuse(address.error());
    for (const auto& before : {http, std::span<const ListenAddress>(out)}) {
      if (const auto why = why_not_beside(*address, before)) return entry.complain(*why);
    }
    out.push_back(*std::move(address));
  });
}

// As browsers write it: "https://shop.example:8443", without a path. "null" is sent by pages of any origin that a
// sandbox hides.
bool is_origin(std::string_view text) {
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view host = text.substr(colon + 3);
  return !host.empty() && text.find_first_of("*/?#@ \t", colon + 3) == std::string_view::npos;
}

// HOST or HOST:PORT, as clients ask for it.
bool is_host(std::string_view text) {
  const std::size_t colon =
      text.starts_with('[') ? text.find(':', std::min(text.find(']'), text.size())) : text.find(':');
  const std::string_view host = text.substr(0, colon);
  const bool has_port = colon != std::string_view::npos;
  return !host.empty() && host.find_first_of("*/?#@,; \t") == std::string_view::npos &&
         (!has_port || parse_port(text.substr(colon + 1)).has_value());
}

// `wanted`: what each has to be, where it is none.
void read_texts(JsonMembers& in, std::string_view name, bool (*is_one)(std::string_view), std::string_view wanted,
                std::vector<std::string>& out) {
  const JsonValue* given = in.find(name);
  if (given == nullptr) return;
  out.clear();
  each_text(*given, [&](const JsonValue& entry) {
    const std::string_view text = *entry.if_text();
    if (!is_one(text)) return entry.complain(wanted);
    out.emplace_back(text);
  });
}

void read_store(JsonMembers& in, std::string& out) {
  const JsonValue* given = in.find("store");
  if (given == nullptr) return;
  out = given->text(0, kMostNamedBytes);
  if (const auto why = why_no_store(out); why && !given->errors()) given->complain(*why);
}

// An empty name would count as none, and what the file is to guard would be open to all.
void read_file_name(JsonMembers& in, std::string_view name, std::string& out) {
  if (const JsonValue* given = in.find(name)) out = given->text(1, kMostNamedBytes);
}

void read_size(JsonMembers& in, std::string_view name, std::int64_t most, std::size_t& out) {
  out = static_cast<std::size_t>(in.whole(name, most, 1, static_cast<std::int64_t>(out)));
}

void read_new_queue(JsonMembers& in, QueueConfig& out) {
  const JsonValue* given = in.find("new_queue");
  if (given == nullptr) return;
  JsonErrors errors;
  auto config = detail::read_queue_config(given->json(), out, errors);
  if (!config) return given->refuse(config.error());
  out = *std::move(config);
}

void read_tls(JsonMembers& in, ServeOptions& options) {
  const JsonValue* given = in.find("tls");
  if (given == nullptr) return;
  if (!given->is_object()) return given->complain("a table with a certificate and a key");
  JsonMembers tls(*given);
  options.tls = {};
  read_file_name(tls, "certificate", options.tls.certificate);
  read_file_name(tls, "key", options.tls.key);
  options.tls_for_beanstalkd = tls.flag("beanstalkd", false);
  tls.finish("tls has none");
}

// Files, timers, commands and requests of the daemon's own: a quarter, and no more than this.
constexpr std::size_t kMostForOthers = 1'024;

}  // namespace

Result<void> check_http_address(const ListenAddress& address, const ServeOptions& options) {
  if (address.is_local()) return {};
  const std::string shown = in_quotes(to_string(address));
  if (!options.insecure && options.tls.certificate.empty()) {
    return fail(
        Errc::invalid_input,
        fmt::format("listen {}: others reach that address: give a certificate and a key (tls, --tls-certificate, "
                    "--tls-key); or, where something that speaks TLS stands before it, insecure = true "
                    "(--insecure)",
                    shown));
  }
  if (options.token_file.empty()) {
    return fail(Errc::invalid_input,
                fmt::format("listen {}: others reach that address, and without tokens they may do everything: "
                            "argiope token add, and tokens = FILE (--tokens)",
                            shown));
  }
  return {};
}

Result<void> check_beanstalkd_address(const ListenAddress& address, const ServeOptions& options) {
  if (options.insecure || address.is_local()) return {};
  return fail(Errc::invalid_input,
              fmt::format("beanstalkd {}: others reach that address, and the protocol knows no tokens. Where something "
                          "else guards it: insecure = true (--insecure)",
                          in_quotes(to_string(address))));
}

bool fit_connections(ServeOptions& options, SpokenAt spoken, std::size_t descriptors) {
  const std::size_t for_http = options.max_connections * spoken.http;
  const std::size_t for_beanstalkd = options.beanstalkd_max_connections * spoken.beanstalkd;
  const std::size_t there = descriptors - std::min(descriptors / 4, kMostForOthers);
  if (descriptors == 0 || for_http + for_beanstalkd <= there) return false;
  // Half for each, and what the one does not use for the other.
  const std::size_t half = there / 2;
  const std::size_t http = std::min(for_http, std::max(half, there - std::min(there, for_beanstalkd)));
  const std::size_t beanstalkd = std::min(for_beanstalkd, there - http);
  if (spoken.http > 0) options.max_connections = std::max<std::size_t>(http / spoken.http, 1);
  if (spoken.beanstalkd > 0) {
    options.beanstalkd_max_connections = std::max<std::size_t>(beanstalkd / spoken.beanstalkd, 1);
  }
  return true;
}

bool ListenAddress::is_local() const noexcept {
  if (is_unix() || host == "localhost") return true;
  const auto address = IpAddress::parse(host);
  return address && classify(*address) == AddressClass::loopback;
}

Result<ListenAddress> parse_listen_address(std::string_view text, std::uint16_t usual_port) {
  if (text.starts_with(kUnix)) {
    const std::string_view path = text.substr(kUnix.size());
    if (path.empty() || path.size() > kMostUnixPath || path.contains('\0')) {
      return fail(Errc::invalid_input,
                  fmt::format("address {}: a path of 1 to {} bytes", in_quotes(text), kMostUnixPath));
    }
    return ListenAddress{.host = {}, .port = 0, .unix_path = std::string(path)};
  }
  const std::size_t bracket = text.rfind(']');
  const std::size_t colon = text.rfind(':');
  const bool has_port = colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  std::string_view host = has_port ? text.substr(0, colon) : text;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.contains('[') || host.contains(']') || (host.contains(':') && bracket == std::string_view::npos)) {
    return fail(Errc::invalid_input, fmt::format("address {}: HOST:PORT, [IPV6]:PORT or unix:PATH", in_quotes(text)));
  }
  ListenAddress address{.host = std::string(host), .port = usual_port, .unix_path = {}};
  if (!has_port) return address;
  const auto port = parse_port(text.substr(colon + 1));
  if (!port) return fail(Errc::invalid_input, fmt::format("address {}: {}", in_quotes(text), port.error().message));
  address.port = *port;
  return address;
}

std::string to_string(const ListenAddress& address) {
  if (address.is_unix()) return std::string(kUnix) + address.unix_path;
  const bool is_v6 = address.host.contains(':');
  return fmt::format("{}{}{}:{}", is_v6 ? "[" : "", address.host, is_v6 ? "]" : "", address.port);
}

QueueConfig default_new_queue() {
  QueueConfig config;
  config.keep_done = std::chrono::days{1};
  config.keep_cancelled = std::chrono::weeks{1};
  return config;
}

std::string ServeOptions::audit_file() const { return audit ? *audit : beside_store("-audit.jsonl"); }

std::string ServeOptions::beside_store(std::string_view ending) const {
  return store.starts_with(kSqliteStore) ? store.substr(kSqliteStore.size()).append(ending) : std::string();
}

void read_serve_options(const JsonValue& table, ServeOptions& options) {
  JsonMembers in(table);
  read_store(in, options.store);
  read_addresses(in, "listen", kHttpPort, options.http);
  const std::vector<ListenAddress> said = in.has("listen") ? options.http : std::vector<ListenAddress>{};
  read_addresses(in, "beanstalkd", kBeanstalkdPort, options.beanstalkd, said);
  read_size(in, "beanstalkd_max_job_bytes", kMostBytes, options.beanstalkd_max_job_bytes);
  read_file_name(in, "tokens", options.token_file);
  read_texts(in, "hosts", is_host,
             "a name without a scheme or a path, with a port or without, such as \"jobs.example\"; * is none",
             options.hosts);
  read_texts(in, "origins", is_origin,
             "an origin without a path, such as \"https://shop.example\"; * and null are none", options.origins);
  read_tls(in, options);
  options.insecure = in.flag("insecure", options.insecure);
  options.allow_private = in.flag("allow_private", options.allow_private);
  options.create_queues = in.flag("create_queues", options.create_queues);
  read_new_queue(in, options.new_queue);
  read_size(in, "max_connections", kMostConnections, options.max_connections);
  read_size(in, "beanstalkd_max_connections", kMostConnections, options.beanstalkd_max_connections);
  read_size(in, "max_body_bytes", kMostBytes, options.max_body_bytes);
  read_size(in, "max_batch_bytes", kMostBytes, options.max_batch_bytes);
  read_size(in, "max_bodies_bytes", kMostBodiesBytes, options.max_bodies_bytes);
  read_size(in, "max_answers_bytes", kMostBodiesBytes, options.max_answers_bytes);
  read_size(in, "max_queues", kMostConnections, options.max_queues);
  read_size(in, "max_streams", kMostConnections, options.max_streams);
  in.parsed("drain_limit", options.drain_limit, parse_span);
  options.pages = in.text("pages", options.pages);
  if (in.has("audit")) options.audit = in.text("audit");
  in.parsed("keep_audit", options.keep_audit, parse_span);
  in.finish("[serve] has none");
}

Result<void> check(const ServeOptions& options) {
  if (const auto why = why_no_store(options.store))
    return fail(Errc::invalid_input, fmt::format("store {}: {}", in_quotes(shown_store(options.store)), *why));
  if (options.http.empty()) return fail(Errc::invalid_input, "listen: at least one address");
  if (options.tls.certificate.empty() != options.tls.key.empty()) {
    return fail(Errc::invalid_input, "tls: a certificate and a key, both");
  }
  if (options.tls_for_beanstalkd && options.tls.certificate.empty()) {
    return fail(Errc::invalid_input, "tls: beanstalkd needs a certificate and a key");
  }
  std::vector<ListenAddress> before;
  for (const auto& [member, addresses] :
       {std::pair{"listen", &options.http}, std::pair{"beanstalkd", &options.beanstalkd}}) {
    for (const ListenAddress& address : *addresses) {
      if (const auto why = why_not_beside(address, before)) {
        return fail(Errc::invalid_input, fmt::format("{} {}: {}", member, in_quotes(to_string(address)), *why));
      }
      before.push_back(address);
    }
  }
  for (const ListenAddress& address : options.http) {
    if (auto good = check_http_address(address, options); !good) return good;
  }
  for (const ListenAddress& address : options.beanstalkd) {
    if (auto good = check_beanstalkd_address(address, options); !good) return good;
  }
  return {};
}

std::vector<std::string_view> taken_at_start(const ServeOptions& now, const ServeOptions& asked) {
  std::vector<std::string_view> names;
  const auto note = [&](std::string_view name, bool differs) {
    if (differs) names.push_back(name);
  };
  note("store", now.store != asked.store);
  note("listen", now.http != asked.http);
  note("beanstalkd", now.beanstalkd != asked.beanstalkd);
  note("beanstalkd_max_job_bytes", now.beanstalkd_max_job_bytes != asked.beanstalkd_max_job_bytes);
  note("origins", now.origins != asked.origins);
  note("tls", now.tls.certificate.empty() != asked.tls.certificate.empty() ||
                  now.tls_for_beanstalkd != asked.tls_for_beanstalkd);
  note("allow_private", now.allow_private != asked.allow_private);
  note("create_queues", now.create_queues != asked.create_queues);
  note("new_queue", to_json(now.new_queue) != to_json(asked.new_queue));
  note("max_connections", now.max_connections != asked.max_connections);
  note("beanstalkd_max_connections", now.beanstalkd_max_connections != asked.beanstalkd_max_connections);
  note("max_body_bytes", now.max_body_bytes != asked.max_body_bytes);
  note("max_batch_bytes", now.max_batch_bytes != asked.max_batch_bytes);
  note("max_bodies_bytes", now.max_bodies_bytes != asked.max_bodies_bytes);
  note("max_answers_bytes", now.max_answers_bytes != asked.max_answers_bytes);
  note("max_queues", now.max_queues != asked.max_queues);
  note("max_streams", now.max_streams != asked.max_streams);
  note("pages", now.pages != asked.pages);
  note("drain_limit", now.drain_limit != asked.drain_limit);
  return names;
}

}  // namespace argiope
