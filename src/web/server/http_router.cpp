#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "argiope/web/http_server.hpp"
#include "argiope/web/url.hpp"
#include "base/internal/printable.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMethods = 7;

// The part up to the next slash, taken off the front of `path` with that slash. A path is parts with slashes between.
std::string_view take_part(std::string_view& path, bool& is_last) noexcept {
  const std::size_t slash = path.find('/');
  is_last = slash == std::string_view::npos;
  const std::string_view part = path.substr(0, slash);
  path.remove_prefix(is_last ? path.size() : slash + 1);
  return part;
}

}  // namespace

// A tree of path parts.
class HttpRouter::Routes {
 public:
  struct Target {
    std::array<HttpHandler, kMethods> handlers;
    // Of the pattern, which may differ from method to method.
    std::array<std::vector<std::string>, kMethods> names;
    std::array<std::string, kMethods> patterns;

    bool has(HttpMethod method) const noexcept { return handlers[static_cast<std::size_t>(method)] != nullptr; }
    std::string allowed() const;
  };
  struct Node {
    std::map<std::string, Node, std::less<>> written;
    std::unique_ptr<Node> any;     // {name}
    std::unique_ptr<Target> rest;  // {name...}
    std::unique_ptr<Target> end;
  };

  void add(HttpMethod method, std::string_view pattern, HttpHandler handler);
  // The target of `path`; what its parts in braces matched goes to `values`.
  const Target* find(std::string_view path, std::vector<std::string>& values) const {
    return path.starts_with('/') ? find_below(root_, path.substr(1), values) : nullptr;
  }

 private:
  static const Target* find_below(const Node& node, std::string_view path, std::vector<std::string>& values);

  Node root_;
};

std::string HttpRouter::Routes::Target::allowed() const {
  std::string list;
  for (std::size_t i = 0; i < kMethods; ++i) {
    const auto method = static_cast<HttpMethod>(i);
    const bool is_served =
        has(method) || method == HttpMethod::options || (method == HttpMethod::head && has(HttpMethod::get));
    if (is_served) list += fmt::format("{}{}", list.empty() ? "" : ", ", to_string(method));
  }
  return list;
}

void HttpRouter::Routes::add(HttpMethod method, std::string_view pattern, HttpHandler handler) {
  const auto refuse = [&](std::string_view why) {
    throw std::invalid_argument(fmt::format("the route {} {}", in_quotes(pattern), why));
  };
  if (!handler) refuse("has no handler");
  if (!pattern.starts_with('/')) refuse("does not start with a slash");
  std::string_view path = pattern.substr(1);
  std::vector<std::string> names;
  Node* node = &root_;
  std::unique_ptr<Target>* target = nullptr;
  for (bool is_last = false; !is_last;) {
    std::string_view part = take_part(path, is_last);
    if (!part.starts_with('{') || !part.ends_with('}')) {
      node = &node->written[std::string(part)];
      target = &node->end;
      continue;
    }
    std::string_view name = part.substr(1, part.size() - 2);
    const bool is_rest = name.ends_with("...");
    if (is_rest) name.remove_suffix(3);
    if (name.empty()) refuse("has braces without a name");
    if (std::ranges::find(names, name) != names.end()) refuse("has a name twice");
    if (is_rest && !is_last) refuse("has something behind {…...}");
    names.emplace_back(name);
    if (is_rest) {
      target = &node->rest;
    } else {
      if (node->any == nullptr) node->any = std::make_unique<Node>();
      node = node->any.get();
      target = &node->end;
    }
  }
  if (*target == nullptr) *target = std::make_unique<Target>();
  const auto at = static_cast<std::size_t>(method);
  if ((*target)->has(method)) refuse(fmt::format("is there already, as {}", (*target)->patterns[at]));
  (*target)->handlers[at] = std::move(handler);
  (*target)->names[at] = std::move(names);
  (*target)->patterns[at] = std::string(pattern);
}

const HttpRouter::Routes::Target* HttpRouter::Routes::find_below(const Node& node, std::string_view path,
                                                                 std::vector<std::string>& values) {
  std::string_view after = path;
  bool is_last = false;
  const std::string part = percent_decode(take_part(after, is_last));
  const auto go_on = [&](const Node& next) -> const Target* {
    return is_last ? next.end.get() : find_below(next, after, values);
  };
  if (const auto written = node.written.find(part); written != node.written.end()) {
    if (const Target* found = go_on(written->second)) return found;
  }
  const std::size_t values_before = values.size();
  if (node.any != nullptr && !part.empty()) {
    values.push_back(part);
    if (const Target* found = go_on(*node.any)) return found;
    values.resize(values_before);
  }
  if (node.rest != nullptr) values.push_back(percent_decode(path));
  return node.rest.get();
}

HttpRouter::HttpRouter() : routes_(std::make_shared<Routes>()) {}

void HttpRouter::add(HttpMethod method, std::string_view pattern, HttpHandler handler) {
  routes_->add(method, pattern, std::move(handler));
}

ServerResponse HttpRouter::refuse(const ServerRequest& request, int status, std::string_view detail) const {
  return refusal_ ? refusal_(request, status, detail) : ServerResponse::problem(status, detail);
}

Coro<ServerResponse> HttpRouter::operator()(ServerRequest& request) const {
  const std::shared_ptr<const Routes> routes = routes_;
  // Of the server as a whole (RFC 9110, 9.3.7).
  if (request.method == HttpMethod::options && request.path == "*") co_return ServerResponse{.status = 204};
  std::vector<std::string> values;
  const Routes::Target* target = routes->find(request.path, values);
  if (target == nullptr) co_return refuse(request, 404, fmt::format("there is nothing at {}", in_quotes(request.path)));
  HttpMethod method = request.method;
  if (method == HttpMethod::head && !target->has(method)) method = HttpMethod::get;
  if (!target->has(method)) {
    const std::string allowed = target->allowed();
    ServerResponse response{.status = 204};
    if (method != HttpMethod::options) {
      response =
          refuse(request, 405, fmt::format("{} is not allowed here; {} are", to_string(request.method), allowed));
    }
    response.headers.emplace_back("Allow", allowed);
    co_return response;
  }
  const auto at = static_cast<std::size_t>(method);
  for (std::size_t i = 0; i < values.size(); ++i) {
    request.path_values.emplace_back(target->names[at][i], std::move(values[i]));
  }
  co_return co_await target->handlers[at](request);
}

}  // namespace argiope
