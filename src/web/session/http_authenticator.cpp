#include "web/session/http_authenticator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/internal/base64.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::uint32_t kMostRenewals = 3;  // nonces in a row that the server says have grown stale
constexpr std::size_t kMostSpaces = 16;     // of a server
constexpr std::size_t kMostSpacePaths = 64;

// RFC 7617, 2.2: all that lies in the folder of what was asked, or below.
std::string folder_of(const Url& url) {
  const std::string_view path = url.pathname();
  return std::string(path.substr(0, path.rfind('/') + 1));
}

void add_space_path(std::vector<std::string>& paths, std::string path) {
  if (std::ranges::any_of(paths, [&](const std::string& known) { return path.starts_with(known); })) return;
  std::erase_if(paths, [&](const std::string& known) { return known.starts_with(path); });
  // Where the realm is all over the place, it is the server's.
  if (paths.size() == kMostSpacePaths) path = "/";
  if (path == "/") paths.clear();
  paths.push_back(std::move(path));
}

// RFC 7616, 3.3: what `domain` lists of this server; without it, all of it.
std::vector<std::string> digest_paths(const Url& asked, const std::string& domain) {
  std::vector<std::string> paths;
  for_each_token(domain, is_space, [&](std::string_view uri) {
    const auto url = Url::parse(uri, &asked);
    if (url && url->site_key() == asked.site_key()) add_space_path(paths, std::string(url->pathname()));
  });
  if (paths.empty()) paths.emplace_back("/");
  return paths;
}

// The strongest challenge of a server that can be answered.
struct ChosenChallenge {
  int strength = 0;
  std::string realm;
  std::optional<DigestChallenge> digest;  // else basic
};
std::optional<ChosenChallenge> strongest_of(std::string_view fields) {
  std::optional<ChosenChallenge> best;
  for (const HttpChallenge& challenge : parse_challenges(fields)) {
    ChosenChallenge one;
    if (challenge.scheme == "digest") {
      one.digest = parse_digest(challenge);
      if (!one.digest) continue;
      one.strength = 1 + static_cast<int>(one.digest->hash);
      one.realm = one.digest->realm;
    } else if (challenge.scheme == "basic") {
      if (const std::string* const realm = challenge.parameter("realm")) one.realm = *realm;
    } else {
      continue;
    }
    if (!best || one.strength > best->strength) best = std::move(one);
  }
  return best;
}

}  // namespace

HttpAuthenticator::HttpAuthenticator(std::vector<HttpCredentials> credentials, Random random) : random_(random) {
  for (HttpCredentials& one : credentials) {
    std::string where = one.where;
    servers_.try_emplace(std::move(where), Server{.credentials = std::move(one)});
  }
}

HttpAuthenticator::Server* HttpAuthenticator::server_of(const Url& url) {
  const auto found = servers_.find(url.site_key());
  return found == servers_.end() ? nullptr : &found->second;
}

// The space with the longest path that this one begins with.
const HttpAuthenticator::Space* HttpAuthenticator::covering(const Server& server, std::string_view path,
                                                            std::size_t& index) {
  const Space* best = nullptr;
  std::size_t longest = 0;
  for (std::size_t i = 0; i < server.spaces.size(); ++i) {
    for (const std::string& own : server.spaces[i].paths) {
      if (!path.starts_with(own) || (best != nullptr && own.size() <= longest)) continue;
      best = &server.spaces[i];
      longest = own.size();
      index = i;
    }
  }
  return best;
}

HttpAuthenticator::Answer HttpAuthenticator::answer_for(const HttpRequest& request) {
  Answer answer;
  Server* const server = server_of(request.url);
  if (server == nullptr) return answer;
  std::size_t index = 0;
  if (covering(*server, request.url.pathname(), index) == nullptr || server->spaces[index].refused) return answer;
  Space& space = server->spaces[index];
  answer.space = index + 1;
  answer.version = space.version;
  const HttpCredentials& who = server->credentials;
  if (!space.is_digest) {
    answer.field = "Basic " + to_base64(who.name + ':' + who.password);
    return answer;
  }
  DigestInput input;
  input.name = who.name;
  input.password = who.password;
  input.method = to_string(request.method);
  input.target = request.url.path_and_query();
  input.body = request.body;
  input.cnonce = space.cnonce;
  input.count = ++space.count;
  answer.field = answer_digest(space.digest, input);
  return answer;
}

HttpAuthenticator::Space* HttpAuthenticator::space_of(const HttpRequest& request, const Answer& sent) {
  Server* const server = sent.space == 0 ? nullptr : server_of(request.url);
  return server == nullptr ? nullptr : &server->spaces[sent.space - 1];
}

HttpAuthenticator::Space* HttpAuthenticator::known_space(Server& server, const Space& like) {
  const auto found = std::ranges::find_if(server.spaces, [&](const Space& space) {
    return space.is_digest == like.is_digest && space.realm == like.realm;
  });
  return found == server.spaces.end() ? nullptr : &*found;
}

void HttpAuthenticator::renew(Space& space, DigestChallenge digest) {
  space.digest = std::move(digest);
  space.cnonce = fmt::format("{:016x}{:016x}", random_.next(), random_.next());
  space.count = 0;
  ++space.version;
}

HttpChallenged HttpAuthenticator::challenged(const HttpRequest& request, const Answer& sent, std::string_view fields) {
  Server* const server = server_of(request.url);
  if (server == nullptr) return HttpChallenged::none;
  auto chosen = strongest_of(fields);
  if (!chosen) return HttpChallenged::none;
  Space news;
  news.is_digest = chosen->digest.has_value();
  news.realm = chosen->realm;
  if (news.is_digest) {
    news.paths = digest_paths(request.url, chosen->digest->domain);
    news.digest = std::move(*chosen->digest);
  } else {
    news.paths = {folder_of(request.url)};
  }
  Space* const known = known_space(*server, news);
  if (known == nullptr) {
    // It has gone as Basic, but where a realm of Digest took its place.
    if (!news.is_digest && server->credentials.goes_as_basic && sent.space == 0) return HttpChallenged::refused;
    if (server->spaces.size() == kMostSpaces) return HttpChallenged::none;
    Space& space = server->spaces.emplace_back(std::move(news));
    if (space.is_digest) renew(space, space.digest);
    return HttpChallenged::again;
  }
  if (known->refused) return HttpChallenged::none;
  if (space_of(request, sent) == known) {
    if (sent.version != known->version) return HttpChallenged::again;  // renewed since
    return challenged_again(*known, std::move(news));
  }
  // The same realm, elsewhere on the server.
  for (std::string& path : news.paths) add_space_path(known->paths, std::move(path));
  std::size_t index = 0;
  const Space* const next = covering(*server, request.url.pathname(), index);
  if (next == known) return HttpChallenged::again;
  // It lies in another space's folder, or beyond what `domain` has listed.
  if (known->paths.size() < kMostSpacePaths) known->paths.emplace_back(request.url.pathname());
  return HttpChallenged::again;
}

// Of a request that went with an answer.
HttpChallenged HttpAuthenticator::challenged_again(Space& space, Space news) {
  // Some servers do not say that a nonce has grown stale. One that has let others in is believed to have.
  const bool may_be_stale = space.is_digest && (news.digest.stale || (space.proven && space.renewed == 0));
  if (may_be_stale && space.renewed < kMostRenewals) {
    ++space.renewed;
    renew(space, std::move(news.digest));
    return HttpChallenged::again;
  }
  // Where others were let in, it is this page that is not for us.
  if (space.proven) return HttpChallenged::none;
  space.refused = true;
  return HttpChallenged::refused;
}

void HttpAuthenticator::accepted(const HttpRequest& request, const Answer& sent) {
  Space* const space = space_of(request, sent);
  if (space == nullptr) return;
  space->proven = true;
  if (sent.version == space->version) space->renewed = 0;
}

}  // namespace argiope
