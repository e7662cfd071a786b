// Runs on one database with other options each: interrupted, narrowed, widened, re-seeded. However they follow each
// other, the last and widest ends with exactly the pages that a walk of its own finds, which knows the web as a graph
// and nothing of the crawler.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <deque>
#include <set>

#include "argiope/base/random.hpp"
#include "support/environment.hpp"
#include "support/simulated_web.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

// A page, or a redirect, of a small web that is a random graph.
struct Node {
  std::string url;
  std::vector<std::size_t> links;
  std::optional<std::size_t> redirect;
  bool forbidden = false;  // by robots.txt
  bool flaky = false;      // answers 503 while the web is `troubled`
  bool long_url = false;
  bool repeats = false;
  bool large = false;  // its last links stand behind 3,000 bytes of text
  bool pdf = false;    // by its Content-Type, whatever its name says
};

// A pattern, and which paths and hosts it is for, said in another way.
struct KnownPattern {
  const char* text;
  bool (*fits)(const std::string& host, const std::string& path);
};
const KnownPattern kKnownPatterns[] = {
    {"/docs/**", [](const std::string&, const std::string& path) { return path.starts_with("/docs/"); }},
    {"/docs/*",
     [](const std::string&, const std::string& path) { return path.starts_with("/docs/") && path.rfind('/') == 5; }},
    {"*.pdf", [](const std::string&, const std::string& path) { return path.ends_with(".pdf"); }},
    {"**/p{1,2,3}*",
     [](const std::string&, const std::string& path) {
       return path.contains("/p1") || path.contains("/p2") || path.contains("/p3");
     }},
    {"*.host0.test/**", [](const std::string& host, const std::string&) { return host == "www.host0.test"; }},
    {"http://host{2,3}.test/**",
     [](const std::string& host, const std::string&) { return host == "host2.test" || host == "host3.test"; }},
    {"re:/p[0-9]*[5-9]([^0-9]|$)",
     [](const std::string&, const std::string& path) {
       const std::size_t number = path.rfind("/p") + 2;
       const std::size_t end = path.find_first_not_of("0123456789", number);
       return path.contains("/p") && end != number && (end == std::string::npos ? path.back() : path[end - 1]) >= '5';
     }},
    {"/", [](const std::string&, const std::string& path) { return path == "/"; }},
};

class GraphWeb {
 public:
  static constexpr std::uint32_t kHosts = 5;
  // The second is the first one's www.
  static std::vector<std::string> origins() {
    return {"http://host0.test", "http://www.host0.test", "http://host2.test", "http://host3.test",
            "http://host4.test"};
  }

  explicit GraphWeb(Random& random) {
    const auto names = origins();
    for (std::uint32_t host = 0; host < kHosts; ++host) {
      const auto pages = 4 + random.below(14);
      for (std::size_t page = 0; page < pages; ++page) {
        Node& node = nodes.emplace_back();
        std::string path = page == 0 ? "/" : "/p" + std::to_string(page);
        if (page > 0) {
          if (random.chance(0.4)) path = random.chance(0.3) ? "/docs/deep" + path : "/docs" + path;
          if ((node.pdf = random.chance(0.1))) path += random.chance(0.7) ? ".pdf" : "";
          if (!node.pdf && random.chance(0.2)) path += random.chance(0.8) ? ".html" : ".pdf";
          if ((node.forbidden = random.chance(0.1))) path = "/private" + path;
          if ((node.long_url = random.chance(0.1))) path += "?" + std::string(100, 'x');
          if ((node.repeats = random.chance(0.1))) path = "/a/a/a/a" + path;
          if (node.repeats) node.forbidden = false;
          node.large = random.chance(0.2);
        }
        node.flaky = random.chance(0.1);
        node.url = names[host] + path;
        node.pdf = node.pdf && !node.large;
        hosts_of_.push_back(host);
      }
    }
    for (std::size_t from = 0; from < nodes.size(); ++from) {
      const bool chain = random.chance(0.5);
      if (chain && from + 1 < nodes.size()) nodes[from].links.push_back(from + 1);
      for (auto links = random.below(4); links > 0; --links) nodes[from].links.push_back(random.below(nodes.size()));
      if (random.chance(0.12)) {
        // Never to another redirect that leads back: always to a later one.
        if (from + 1 < nodes.size()) {
          nodes[from].redirect = from + 1 + random.below(nodes.size() - from - 1);
        }
      }
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) by_url_[nodes[i].url] = i;
  }

  SyntheticReply reply(const SyntheticRequest& request, const CrawlOptions& options) const {
    SyntheticReply reply;
    reply.latency = 20ms;
    reply.content_type = "text/html";
    if (request.target == "/robots.txt") {
      reply.content_type = "text/plain";
      reply.body = "User-agent: *\nDisallow: /private\n";
      return reply;
    }
    const auto found = by_url_.find(origins()[request.host] + std::string(request.target));
    if (found == by_url_.end()) {
      reply.status = 404;
      return reply;
    }
    const Node& node = nodes[found->second];
    if (node.flaky && troubled) {
      reply.status = 503;
      return reply;
    }
    if (node.redirect) {
      reply.status = 302;
      reply.headers.emplace_back("Location", nodes[*node.redirect].url);
      return reply;
    }
    if (!request.if_none_match.empty()) {
      reply.status = 304;
      return reply;
    }
    reply.headers.emplace_back("ETag", "\"same\"");
    if (node.pdf) {
      reply.content_type = "application/pdf";
      return reply;
    }
    for (std::size_t i = 0; i < node.links.size(); ++i) {
      if (i == 1 && node.large) reply.body += "<p>" + std::string(3000, '.');
      reply.body += "<a href=\"" + nodes[node.links[i]].url + "\">x</a>";
    }
    if (reply.body.size() > options.size_limit) {
      reply.body.resize(options.size_limit);
      reply.behaviour = SyntheticReply::Behaviour::flood;
    }
    return reply;
  }

  const std::string& host_of(std::size_t node) const {
    static const std::vector<std::string> kNames = {"host0.test", "www.host0.test", "host2.test", "host3.test",
                                                    "host4.test"};
    return kNames[hosts_of_[node]];
  }
  std::string path_of(std::size_t node) const {
    const std::string& url = nodes[node].url;
    const std::string path = url.substr(url.find('/', 7));
    return path.substr(0, path.find('?'));
  }
  std::optional<std::size_t> node_of(const std::string& url) const {
    const auto found = by_url_.find(url);
    return found == by_url_.end() ? std::nullopt : std::optional(found->second);
  }

  std::vector<Node> nodes;
  bool troubled = false;

 private:
  std::vector<std::uint32_t> hosts_of_;
  std::map<std::string, std::size_t> by_url_;
};

// What the options leave out of the hosts in scope. `folders`: of seeds, "host/docs/".
bool is_left_out(const GraphWeb& web, std::size_t node, const CrawlOptions& options, const std::set<std::string>& hosts,
                 const std::set<std::string>& folders) {
  const std::string path = web.path_of(node);
  const auto fits = [&](const std::string& pattern) {
    const auto known = std::ranges::find(kKnownPatterns, pattern, &KnownPattern::text);
    return known->fits(web.host_of(node), path);
  };
  const auto begins = [&](const std::string& prefix) { return path.starts_with(prefix); };
  const auto ends = [&](const std::string& extension) { return path.ends_with("." + extension); };
  const auto below = [&](const std::string& folder) { return (web.host_of(node) + path).starts_with(folder); };
  if (std::ranges::any_of(options.exclude, fits)) return true;
  if (!options.include.empty() && std::ranges::none_of(options.include, fits)) return true;
  if (!options.path_prefixes.empty() && std::ranges::none_of(options.path_prefixes, begins)) return true;
  if (std::ranges::any_of(options.reject_extensions, ends)) return true;
  const bool has_extension = path.ends_with(".html") || path.ends_with(".pdf");
  if (!options.accept_extensions.empty() && has_extension && std::ranges::none_of(options.accept_extensions, ends))
    return true;
  return options.no_parent && hosts.contains(web.host_of(node)) && std::ranges::none_of(folders, below);
}

// The walk: breadth first, with redirects at the depth of what leads to them.
std::set<std::string> walk(const GraphWeb& web, const CrawlOptions& options) {
  std::set<std::string> hosts;
  std::set<std::size_t> seeds;
  for (const Url& seed : options.seeds) {
    hosts.emplace(seed.host());
    seeds.insert(*web.node_of(std::string(seed.href())));
  }
  const auto allowed = [&](std::size_t node) { return !options.robots || !web.nodes[node].forbidden; };
  std::set<std::string> folders;
  const auto add_folder = [&](std::size_t node) {
    const std::string path = web.path_of(node);
    folders.insert(web.host_of(node) + path.substr(0, path.rfind('/') + 1));
  };
  for (const std::size_t seed : seeds) add_folder(seed);
  // A seed's redirects are seeds; of their hosts, www is the same site.
  for (const std::size_t seed : std::set(seeds)) {
    for (std::size_t at = seed; web.nodes[at].redirect && allowed(at);) {
      const std::size_t next = *web.nodes[at].redirect;
      const bool both_zero = web.host_of(at).ends_with("host0.test") && web.host_of(next).ends_with("host0.test");
      if (web.host_of(at) == web.host_of(next) || both_zero) {
        hosts.insert(web.host_of(next));
        add_folder(next);
      }
      seeds.insert(next);
      at = next;
    }
  }
  const std::set<std::string> hosts_of_seeds = hosts;
  // Nobody has registered "test": each host is a domain, but for www.
  if (options.registrable_domains) {
    for (const Url& seed : options.seeds) {
      if (seed.host().ends_with("host0.test")) hosts.insert({"host0.test", "www.host0.test"});
    }
  }
  hosts.insert(options.whitelist.begin(), options.whitelist.end());
  if (std::ranges::count(options.whitelist, "host0.test") > 0) hosts.insert("www.host0.test");
  const auto in_scope = [&](std::size_t node) { return seeds.contains(node) || hosts.contains(web.host_of(node)); };
  const auto is_trap = [&](std::size_t node) {
    const Node& page = web.nodes[node];
    return !seeds.contains(node) &&
           ((page.repeats && options.max_segment_repeats < 4) || (page.long_url && options.max_url_length < 100));
  };
  std::map<std::size_t, std::uint32_t> depths;
  std::deque<std::size_t> queue;
  const auto reach = [&](std::size_t node, std::uint32_t depth, bool at_once) {
    // What is off scope is checked at most, and then may lead back.
    const auto excludes = [&](const KnownPattern& known) {
      return std::ranges::count(options.exclude, known.text) > 0 && known.fits(web.host_of(node), web.path_of(node));
    };
    if (!in_scope(node)) {
      if (!options.check_links || !web.nodes[node].redirect || std::ranges::any_of(kKnownPatterns, excludes)) return;
    } else if (!seeds.contains(node) && is_left_out(web, node, options, hosts_of_seeds, folders)) {
      return;
    }
    if (is_trap(node) || !allowed(node) || depth > options.max_depth.value_or(1'000'000)) return;
    const auto known = depths.find(node);
    if (known != depths.end() && known->second <= depth) return;
    depths[node] = depth;
    at_once ? queue.push_front(node) : queue.push_back(node);
  };
  for (const std::size_t seed : seeds) reach(seed, 0, false);
  std::set<std::string> pages;
  while (!queue.empty()) {
    const std::size_t node = queue.front();
    queue.pop_front();
    const std::uint32_t depth = depths[node];
    if (web.nodes[node].redirect) {
      reach(*web.nodes[node].redirect, depth, true);
      continue;
    }
    const bool accepted =
        options.accept_types.empty() || std::ranges::count(options.accept_types, "application/pdf") > 0;
    if (web.nodes[node].pdf && !accepted) continue;
    pages.insert(web.nodes[node].url);
    if (web.nodes[node].pdf) continue;
    for (const std::size_t link : web.nodes[node].links) reach(link, depth + 1, false);
  }
  return pages;
}

class Runs {
 public:
  explicit Runs(std::uint64_t seed) : random_(seed), web_(random_), on_disk_(seed % 8 == 0) {
    sim_.transport.before_reply = [this](const SyntheticRequest& request, TimePoint) {
      return web_.reply(request, sim_.options);
    };
    widest_ = sim_.options;
    widest_.seeds.clear();
    widest_.max_depth = 0;
    widest_.rate = 10'000;
    widest_.retries = 1;
    widest_.max_url_length = widest_.max_segment_repeats = 0;
    widest_.max_pages_per_host = widest_.size_limit = widest_.max_links_per_page = 0;
    widest_.max_redirects = 100;
  }

  void play() {
    for (auto runs = 1 + random_.below(6); runs > 0; --runs) {
      sim_.options = draw();
      widen();
      web_.troubled = random_.chance(0.5);
      (void)run();
    }
    sim_.options = widest_;
    web_.troubled = false;
    const CrawlReport report = run();
    EXPECT_TRUE(report.finished) << report.stopped_by;
    expect_same(pages(), walk(web_, widest_));
    EXPECT_EQ(report.waiting, 0u) << "all that was ever queued is in the widest scope";
    // What is left out is there to be seen.
    std::map<std::string, std::uint64_t> excluded;
    for_each_record([&](const UrlRecord& record) {
      EXPECT_NE(record.state, UrlState::queued) << record.url;
      EXPECT_EQ(record.shelf, std::nullopt) << record.url;
      if (record.state == UrlState::excluded) ++excluded[std::string(to_string(record.reason))];
    });
    EXPECT_EQ(report.left_out, excluded);
  }

 private:
  // With what the store says of each URL that makes the difference.
  void expect_same(const std::set<std::string>& ours, const std::set<std::string>& theirs) {
    std::vector<std::string> differences;
    std::ranges::set_symmetric_difference(ours, theirs, std::back_inserter(differences));
    for (const std::string& url : differences) {
      std::string known = "not known";
      for_each_record([&](const UrlRecord& record) {
        if (record.url != url) return;
        known = std::string(to_string(record.state)) + ' ' + std::string(to_string(record.reason)) + ", status " +
                std::to_string(record.status_code) + ", depth " + std::to_string(record.depth) + ", limit " +
                std::to_string(record.limit) + ", referrer " + std::to_string(record.referrer) + ' ' + record.error;
      });
      ADD_FAILURE() << (ours.contains(url) ? "fetched and not found by the walk: "
                                           : "found by the walk and not fetched: ")
                    << url << ": " << known;
    }
  }

  CrawlReport run() {
    if (on_disk_) sim_.store = *open_url_store(folder_.file("crawl.db"), {.sync = SyncMode::off, .linger = 0ms});
    const CrawlReport report = sim_.run();
    sim_.backend.manual_clock().advance(1s);
    if (on_disk_) {
      last_ = records();
      EXPECT_TRUE(sim_.store->close());
    } else {
      last_ = records();
    }
    return report;
  }

  std::vector<UrlRecord> records() {
    std::vector<UrlRecord> all;
    EXPECT_TRUE(sim_.store->scan(1, [&](const UrlRecord& record) {
      all.push_back(record);
      return true;
    }));
    return all;
  }

  CrawlOptions draw() {
    CrawlOptions options = sim_.options;
    options.rate = 10'000;
    options.seeds.clear();
    options.whitelist.clear();
    for (auto seeds = 1 + random_.below(2); seeds > 0; --seeds) {
      // Roots mostly.
      const std::string url = random_.chance(0.6) ? GraphWeb::origins()[random_.below(GraphWeb::kHosts)] + "/"
                                                  : web_.nodes[random_.below(web_.nodes.size())].url;
      options.seeds.push_back(*Url::parse(url));
    }
    for (const char* host : {"host0.test", "host2.test", "host3.test", "host4.test"}) {
      if (random_.chance(0.25)) options.whitelist.emplace_back(host);
    }
    draw_filters(options);
    options.max_depth =
        random_.chance(0.25) ? std::nullopt : std::optional(static_cast<std::uint32_t>(random_.below(7)));
    if (always_limited_ && !options.max_depth) options.max_depth = 5;
    options.robots = random_.chance(0.85);
    options.check_links = checks_ && random_.chance(0.5);
    options.order = static_cast<CrawlOrder>(random_.below(4));
    options.max_pages = random_.chance(0.5) ? 1 + random_.below(20) : 0;
    options.max_time = random_.chance(0.2) ? std::optional<Duration>(1ms * random_.between(1, 500)) : std::nullopt;
    options.queue_size = random_.chance(0.5) ? 2 : 1000;
    options.max_url_length = random_.chance(0.5) ? 90 : 8000;
    options.max_segment_repeats = random_.chance(0.5) ? 2 : 10;
    options.max_pages_per_host = random_.chance(0.3) ? 3 : 1000;
    options.size_limit = random_.chance(0.5) ? 2000 : 1'000'000;
    options.max_links_per_page = random_.chance(0.3) ? 2 : 1000;
    options.max_redirects = random_.chance(0.3) ? 1 : 100;
    options.retries = static_cast<std::uint32_t>(random_.below(2));
    options.age = random_.chance(0.2) ? std::optional<Duration>(0s) : std::nullopt;
    options.requeue = random_.chance(0.2) ? static_cast<Requeue>(random_.below(5)) : Requeue::none;
    return options;
  }

  // Some of the options that leave URLs of the hosts out.
  void draw_filters(CrawlOptions& options) {
    for (std::vector<std::string>* list :
         {&options.include, &options.exclude, &options.path_prefixes, &options.accept_types, &options.accept_extensions,
          &options.reject_extensions}) {
      list->clear();
    }
    options.registrable_domains = random_.chance(0.2);
    options.no_parent = always_filtered_ && !checks_ && (never_ascends_ || random_.chance(0.2));
    if (never_ascends_) options.whitelist.clear(), options.registrable_domains = false;
    if (!always_filtered_) return;
    const auto pattern = [&] { return kKnownPatterns[random_.below(std::size(kKnownPatterns))].text; };
    if (random_.chance(0.6)) options.exclude = {pattern(), pattern()};
    if (checks_) return;
    if (random_.chance(0.6)) options.include = {pattern(), pattern(), pattern()};
    if (random_.chance(0.3)) options.path_prefixes = {"/docs/", "/p"};
    if (random_.chance(0.3)) options.accept_types = {random_.chance(0.3) ? "application/pdf" : "text/html"};
    if (random_.chance(0.3)) options.accept_extensions = {random_.chance(0.5) ? "html" : "pdf"};
    if (random_.chance(0.3)) options.reject_extensions = {random_.chance(0.5) ? "html" : "pdf"};
  }

  using Texts = std::vector<std::string>;
  // What lets in all where there is none, and else one of several.
  void widen_choice(Texts& widest, const Texts& drawn) const {
    if (drawn.empty() || (widest.empty() && !is_first_)) return widest.clear();
    widest.insert(widest.end(), drawn.begin(), drawn.end());
  }
  // What keeps out one of several.
  void widen_bar(Texts& widest, const Texts& drawn) const {
    if (is_first_) widest = drawn;
    std::erase_if(widest, [&](const std::string& text) { return std::ranges::count(drawn, text) == 0; });
  }
  void widen_filters(const CrawlOptions& drawn) {
    widen_choice(widest_.include, drawn.include);
    widen_choice(widest_.path_prefixes, drawn.path_prefixes);
    widen_choice(widest_.accept_types, drawn.accept_types);
    widen_choice(widest_.accept_extensions, drawn.accept_extensions);
    widen_bar(widest_.exclude, drawn.exclude);
    widen_bar(widest_.reject_extensions, drawn.reject_extensions);
    // Hosts that no seed has brought have no bounds: of them a run with a seed there would find less.
    const bool is_bounded = drawn.no_parent && drawn.whitelist.empty() && !drawn.registrable_domains;
    widest_.no_parent = (is_first_ || widest_.no_parent) && is_bounded;
    widest_.registrable_domains = widest_.registrable_domains || drawn.registrable_domains;
    is_first_ = false;
  }

  // The union of all that was ever asked for.
  void widen() {
    const CrawlOptions& drawn = sim_.options;
    widen_filters(drawn);
    std::ranges::copy(drawn.seeds, std::back_inserter(widest_.seeds));
    std::ranges::copy(drawn.whitelist, std::back_inserter(widest_.whitelist));
    if (!drawn.max_depth) {
      widest_.max_depth.reset();
    } else if (widest_.max_depth) {
      widest_.max_depth = std::max(*widest_.max_depth, *drawn.max_depth);
    }
    widest_.robots = widest_.robots && drawn.robots;
    widest_.check_links = widest_.check_links || drawn.check_links;
    widest_.max_url_length = std::max(widest_.max_url_length, drawn.max_url_length);
    widest_.max_segment_repeats = std::max(widest_.max_segment_repeats, drawn.max_segment_repeats);
    widest_.max_pages_per_host = 1000;
    widest_.size_limit = 1'000'000;
    widest_.max_links_per_page = 1000;
    widest_.order = drawn.order;
    widest_.queue_size = drawn.queue_size;
  }

  template <class Visit>
  void for_each_record(Visit&& visit) {
    for (const UrlRecord& record : last_) visit(record);
  }

  std::set<std::string> pages() {
    std::set<std::string> found;
    for_each_record([&](const UrlRecord& record) {
      const bool page = record.state == UrlState::done && (record.status_code == 200 || record.status_code == 304) &&
                        record.reason == UrlReason::none;
      if (page) EXPECT_TRUE(found.insert(record.url).second) << record.url;
    });
    return found;
  }

  Random random_;
  GraphWeb web_;
  const bool on_disk_;
  const bool always_limited_ = random_.chance(0.6);
  const bool always_filtered_ = random_.chance(0.6);
  // Links to other hosts are checked, whose hosts another run may have in scope and leave them out by all but
  // `exclude`.
  const bool checks_ = random_.chance(0.5);
  const bool never_ascends_ = always_filtered_ && !checks_ && random_.chance(0.3);
  bool is_first_ = true;
  TemporaryFolder folder_;
  Simulation sim_{{.hosts = GraphWeb::kHosts, .pages = 1}, GraphWeb::origins()};
  CrawlOptions widest_;
  std::vector<UrlRecord> last_;
};

class CrawlRuns : public testing::Test {
 protected:
  CrawlRuns() { spdlog::set_level(spdlog::level::err); }
  ~CrawlRuns() override { spdlog::set_level(spdlog::level::info); }
};

TEST_F(CrawlRuns, TheWidestEndsWithThePagesOfAnIndependentWalkWhateverCameBefore) {
  const std::uint64_t first = from_environment("ARGIOPE_CRAWL_FIRST_SEED", 1);
  const std::uint64_t seeds = from_environment("ARGIOPE_CRAWL_SEEDS", 200);
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE("ARGIOPE_CRAWL_FIRST_SEED=" + std::to_string(seed));
    Runs(seed).play();
    if (testing::Test::HasFailure()) return;
  }
}

// --- one by one ---------------------------------------------------------------------------------------------------

// A web of pages by hand: URL to links.
struct Site {
  std::map<std::string, std::vector<std::string>> pages;
  std::map<std::string, std::string> redirects;
  std::map<std::string, int> statuses;
  std::map<std::string, std::string> types;  // of what is no page
  std::string robots;

  static std::vector<std::string> origins() { return {"http://a.test", "http://b.test", "http://www.a.test"}; }

  Site() {
    sim.options.seeds = {*Url::parse("http://a.test/")};
    sim.options.rate = 10'000;
    sim.transport.before_reply = [this](const SyntheticRequest& request, TimePoint) {
      SyntheticReply reply;
      reply.content_type = "text/html";
      const std::string url = origins()[request.host] + std::string(request.target);
      if (request.target == "/robots.txt") {
        reply.body = robots;
      } else if (const auto status = statuses.find(url); status != statuses.end()) {
        reply.status = status->second;
      } else if (const auto redirect = redirects.find(url); redirect != redirects.end()) {
        reply.status = 301;
        reply.headers.emplace_back("Location", redirect->second);
      } else if (const auto type = types.find(url); type != types.end()) {
        reply.content_type = type->second;
        reply.body = "no page";
      } else if (const auto page = pages.find(url); page == pages.end()) {
        reply.status = 404;
      } else if (!request.if_none_match.empty()) {
        reply.status = 304;
      } else {
        reply.headers.emplace_back("ETag", "\"same\"");
        for (const std::string& link : page->second) reply.body += "<a href=\"" + link + "\">x</a>";
      }
      asked.push_back((request.head ? "HEAD " : "") + url);
      return reply;
    };
  }

  // What a run asks for, beside robots.txt, in order.
  std::vector<std::string> run() {
    asked.clear();
    report = sim.run();
    sim.backend.manual_clock().advance(1s);
    std::erase_if(asked, [](const std::string& url) { return url.ends_with("/robots.txt"); });
    return asked;
  }
  std::set<std::string> run_set() {
    const auto urls = run();
    return {urls.begin(), urls.end()};
  }
  UrlRecord record(const std::string& url) {
    UrlRecord found;
    EXPECT_TRUE(sim.store->scan(1, [&](const UrlRecord& record) {
      if (record.url == url) found = record;
      return found.url_id == 0;
    }));
    return found;
  }

  Simulation sim{{.hosts = 3, .pages = 1}, origins()};
  std::vector<std::string> asked;
  CrawlReport report;
};

using Urls = std::vector<std::string>;

TEST_F(CrawlRuns, ARunWithAnotherSeedLeavesWhatWaitsForTheFirstAlone) {
  Site site;
  site.pages["http://a.test/"] = {"/1", "/2", "/3"};
  for (const char* url : {"http://a.test/1", "http://a.test/2", "http://a.test/3", "http://b.test/"})
    site.pages[url] = {};
  site.sim.options.max_pages = 2;
  EXPECT_EQ(site.run(), Urls({"http://a.test/", "http://a.test/1"}));
  site.sim.options.max_pages = 0;
  site.sim.options.seeds = {*Url::parse("http://b.test/")};
  for (const bool check : {false, true}) {
    site.sim.options.check_links = check;
    const auto asked = site.run();
    EXPECT_EQ(asked, check ? Urls() : Urls({"http://b.test/"}));
    EXPECT_TRUE(site.report.finished);
    EXPECT_EQ(site.report.waiting, 2u);
    EXPECT_EQ(site.record("http://a.test/2").state, UrlState::queued);
  }
  site.sim.options.seeds = {*Url::parse("http://a.test/")};
  EXPECT_EQ(site.run(), Urls({"http://a.test/2", "http://a.test/3"}));
  EXPECT_EQ(site.report.waiting, 0u);
}

TEST_F(CrawlRuns, AWiderScopeTakesUpLinksOfPagesThatAreNotFetchedAgain) {
  Site site;
  site.pages["http://a.test/"] = {"http://b.test/x"};
  site.pages["http://b.test/x"] = {"/y"};
  site.pages["http://b.test/y"] = {};
  EXPECT_EQ(site.run(), Urls({"http://a.test/"}));
  EXPECT_EQ(site.report.left_out, (std::map<std::string, std::uint64_t>{{"off_scope", 1}}));
  // The page is asked whether it has changed, and has not: its links are kept.
  site.sim.options.age = 0s;
  EXPECT_EQ(site.run(), Urls({"http://a.test/"}));
  site.sim.options.age.reset();
  site.sim.options.whitelist = {"b.test"};
  EXPECT_EQ(site.run(), Urls({"http://b.test/x", "http://b.test/y"}));
  EXPECT_TRUE(site.report.left_out.empty());
}

TEST_F(CrawlRuns, CheckLinksAsksWhatWasNotAskedAndAWiderScopeFetchesWhatWasOnlyChecked) {
  Site site;
  site.pages["http://a.test/"] = {"http://b.test/x"};
  site.pages["http://b.test/x"] = {"/y"};
  EXPECT_EQ(site.run(), Urls({"http://a.test/"}));
  EXPECT_EQ(site.run(), Urls());
  EXPECT_EQ(site.report.taken_up, 0u) << "nothing was due";
  site.sim.options.check_links = true;
  EXPECT_EQ(site.run(), Urls({"HEAD http://b.test/x"}));
  EXPECT_EQ(site.run(), Urls());
  EXPECT_EQ(site.record("http://b.test/x").reason, UrlReason::checked);
  site.sim.options.whitelist = {"b.test"};
  EXPECT_EQ(site.run(), Urls({"http://b.test/x", "http://b.test/y"}));
}

TEST_F(CrawlRuns, RobotsFilesThatChangeOrAreIgnoredLetInWhatTheyForbade) {
  for (const bool off : {false, true}) {
    Site site;
    site.robots = "User-agent: *\nDisallow: /private\n";
    site.pages["http://a.test/"] = {"/private"};
    site.pages["http://a.test/private"] = {"/private/deeper"};
    EXPECT_EQ(site.run(), Urls({"http://a.test/"}));
    EXPECT_EQ(site.run(), Urls()) << "it still forbids";
    EXPECT_EQ(site.report.left_out, (std::map<std::string, std::uint64_t>{{"robots", 1}}));
    if (off) {
      site.sim.options.robots = false;
    } else {
      site.robots.clear();
    }
    EXPECT_EQ(site.run(), Urls({"http://a.test/private", "http://a.test/private/deeper"})) << off;
  }
}

TEST_F(CrawlRuns, WhatIsDeepIsTakenUpWhenTheLimitIsLargerOrItIsASeed) {
  Site site;
  const auto page = [](int number) {
    return "http://a.test/" + (number == 0 ? std::string() : std::to_string(number));
  };
  for (int i = 0; i < 9; ++i) site.pages[page(i)] = {page(i + 1)};
  site.sim.options.max_depth = 2;
  EXPECT_EQ(site.run(), Urls({page(0), page(1), page(2)}));
  EXPECT_EQ(site.report.left_out.at("depth"), 1u);
  site.sim.options.max_depth = 3;
  EXPECT_EQ(site.run(), Urls({page(3)}));
  site.sim.options.seeds.push_back(*Url::parse(page(3)));
  EXPECT_EQ(site.run(), Urls({page(4), page(5), page(6)})) << "from the new seed three links on";
  site.sim.options.max_depth.reset();
  EXPECT_EQ(site.run(), Urls({page(7), page(8), page(9)}));
}

TEST_F(CrawlRuns, DepthFirstFindsWhatIsNearerLater) {
  for (const CrawlOrder order : {CrawlOrder::bfs, CrawlOrder::dfs, CrawlOrder::priority, CrawlOrder::random}) {
    Site site;
    // Depth first goes by 1, 2, 3 to the middle, which is one link from the front page, too.
    site.pages["http://a.test/"] = {"/middle", "/1"};
    site.pages["http://a.test/1"] = {"/1/2"};
    site.pages["http://a.test/1/2"] = {"/middle"};
    site.pages["http://a.test/middle"] = {"/end"};
    site.pages["http://a.test/end"] = {"/last"};
    site.pages["http://a.test/last"] = {"/too-far"};
    site.sim.options.order = order;
    site.sim.options.max_depth = 3;
    site.sim.options.per_host = 1;
    EXPECT_EQ(site.run_set(),
              (std::set<std::string>{"http://a.test/", "http://a.test/1", "http://a.test/1/2", "http://a.test/middle",
                                     "http://a.test/end", "http://a.test/last"}));
    EXPECT_EQ(site.asked.size(), 6u) << "each once";
    EXPECT_EQ(site.record("http://a.test/last").depth, 3u);
  }
}

TEST_F(CrawlRuns, AChainHasNoEndWithoutALimit) {
  Site site;
  const auto page = [](int number) {
    return "http://a.test/" + (number == 0 ? std::string() : std::to_string(number));
  };
  for (int i = 0; i < 400; ++i) site.pages[page(i)] = {page(i + 1)};
  site.pages[page(400)] = {};
  EXPECT_EQ(site.run().size(), 401u);
  EXPECT_TRUE(site.report.complete());
}

TEST_F(CrawlRuns, EveryLinkOfALongPageIsFollowed) {
  Site site;
  constexpr std::size_t kLinks = 60'000;
  std::vector<std::string>& links = site.pages["http://a.test/"];
  for (std::size_t i = 1; i <= kLinks; ++i) links.push_back("/" + std::to_string(i));
  site.sim.options.max_pages = 1;
  EXPECT_EQ(site.run(), Urls({"http://a.test/"}));
  EXPECT_EQ(site.report.stats.urls, kLinks + 1);
  EXPECT_EQ(site.report.stats.queued, kLinks);
  EXPECT_TRUE(site.report.left_out.empty());
}

TEST_F(CrawlRuns, WhatGuardsAgainstTrapsLeaveOutIsSaidAndTakenUpByLargerOnes) {
  Site site;
  const std::string length = "http://a.test/" + std::string(80, 'x');
  const std::string repeated = "http://a.test/s/s/s";
  site.pages["http://a.test/"] = {length, repeated, "/1", "/2", "/3", "/4"};
  for (const auto& url : {length, repeated, std::string("http://a.test/4")}) site.pages[url] = {};
  for (const char* url : {"http://a.test/1", "http://a.test/2", "http://a.test/3"}) site.pages[url] = {};
  CrawlOptions& options = site.sim.options;
  const CrawlOptions usual = options;
  options.max_url_length = 50;
  options.max_segment_repeats = 2;
  options.max_pages_per_host = 3;
  options.max_links_per_page = 5;
  EXPECT_EQ(site.run(), Urls({"http://a.test/", "http://a.test/1", "http://a.test/2"}));
  EXPECT_TRUE(site.report.finished);
  EXPECT_FALSE(site.report.complete());
  EXPECT_EQ(site.report.left_out,
            (std::map<std::string, std::uint64_t>{
                {"url_length", 1}, {"repeated_segment", 1}, {"pages_per_host", 1}, {"links_per_page", 1}}));
  EXPECT_EQ(site.run(), Urls()) << "the same limits";
  EXPECT_FALSE(site.report.complete()) << "though nothing was due";
  options = usual;
  EXPECT_EQ(site.run_set(),
            (std::set<std::string>{"http://a.test/", "http://a.test/3", "http://a.test/4", length, repeated}));
  EXPECT_TRUE(site.report.complete());
}

TEST_F(CrawlRuns, WhatAnswered429Or5xxUntilTheEndHasFailedAndIsDueAgain) {
  for (const int status : {429, 500, 503, 408}) {
    Site site;
    site.pages["http://a.test/"] = {"/x"};
    site.pages["http://a.test/x"] = {"/y"};
    site.pages["http://a.test/y"] = {};
    site.statuses["http://a.test/x"] = status;
    site.sim.options.retries = 1;
    EXPECT_EQ(site.run(), Urls({"http://a.test/", "http://a.test/x", "http://a.test/x"}));
    EXPECT_EQ(site.record("http://a.test/x").state, UrlState::failed);
    EXPECT_EQ(site.record("http://a.test/x").status_code, status);
    EXPECT_EQ(site.report.failures.at("http"), 1u);
    EXPECT_EQ(site.report.broken.at(0).status, status);
    site.statuses.clear();
    EXPECT_EQ(site.run(), Urls({"http://a.test/x", "http://a.test/y"}));
    EXPECT_EQ(site.report.broken_count, 0u);
  }
}

// Pages of which some fail, each of the others with one more behind it.
struct SiteInTrouble : Site {
  SiteInTrouble() {
    auto& front = pages["http://a.test/"];
    for (int i = 0; i < 20; ++i) {
      const std::string number = std::to_string(i);
      front.push_back("/bad" + number);
      statuses["http://a.test/bad" + number] = 500;
    }
    for (int i = 0; i < 20; ++i) {
      const std::string folder = "/dir" + std::to_string(i) + "/";
      front.push_back(folder);
      pages["http://a.test" + folder] = {folder + "page"};
      pages["http://a.test" + folder + "page"] = {};
    }
    sim.options.retries = 0;
  }

  // Each run asks what none had asked, until there is none; how many runs that takes.
  int expect_progress() {
    std::set<std::string> seen;
    for (int runs = 1; runs < 100; ++runs) {
      const std::size_t before = seen.size();
      for (const std::string& url : run()) seen.insert(url);
      if (seen.size() == all()) return runs;
      EXPECT_GT(seen.size(), before) << "run " << runs << " has asked nothing new";
      if (seen.size() == before) break;
    }
    return 0;
  }
  std::size_t all() const { return 61; }
};

TEST_F(CrawlRuns, RunsWithALimitComeToEverythingThoughMuchHasFailed) {
  const auto limit_by = [](int kind, CrawlOptions& options) {
    if (kind == 0) options.max_pages = 10;
    if (kind == 1) options.max_time = 45ms;  // ten a run, about: the site asks for 5 ms each
    if (kind == 2) options.max_pages = 10, options.retries = 2;
    if (kind == 3) options.max_pages = 10, options.age = 0s;
    if (kind == 4) options.max_pages = 10, options.requeue = Requeue::failed;
    if (kind == 5) options.max_pages = 10, options.queue_size = 4;
    if (kind == 6) options.max_pages = 10, options.order = CrawlOrder::random;
    if (kind == 7) options.max_pages = 10, options.adaptive = RevisitBounds{1ms, 1s};
  };
  for (int kind = 0; kind < 8; ++kind) {
    SCOPED_TRACE(kind);
    SiteInTrouble site;
    limit_by(kind, site.sim.options);
    if (kind == 1) site.sim.options.delay = 5ms;
    EXPECT_GT(site.expect_progress(), 4);
  }
}

TEST_F(CrawlRuns, WhatHasFailedTwiceIsAskedByRunsWithALimitAtTimesThatGrow) {
  SiteInTrouble site;
  site.sim.options.max_pages = 10;
  for (int runs = 0; runs < 12 && !site.report.finished; ++runs) site.run();
  EXPECT_TRUE(site.report.finished) << "it does not go round what fails for ever";
  EXPECT_EQ(site.run(), Urls());
  EXPECT_EQ(site.report.resting, 20u);
  EXPECT_EQ(site.record("http://a.test/bad3").limit, 2);
  site.sim.backend.manual_clock().advance(11min);
  EXPECT_EQ(site.run().size(), 10u);
  EXPECT_EQ(site.run().size(), 10u);
  EXPECT_EQ(site.run(), Urls());
  site.sim.backend.manual_clock().advance(11min);
  EXPECT_EQ(site.run(), Urls()) << "20 minutes now";
  site.statuses.clear();
  site.sim.options.max_pages = 0;
  EXPECT_EQ(site.run().size(), 20u) << "a run without a limit asks all that has failed";
  EXPECT_EQ(site.report.resting, 0u);
  EXPECT_EQ(site.record("http://a.test/bad3").limit, 0);
}

// Pages that do not answer before a run ends, linked before those that do.
struct SiteThatHangs : Site {
  SiteThatHangs() {
    auto& front = pages["http://a.test/"];
    for (const char* name : {"/hangs", "/good"}) {
      for (int i = 0; i < 10; ++i) front.push_back(name + std::to_string(i));
    }
    sim.options.per_host = 2;
    sim.transport.before_reply = [this, answer = sim.transport.before_reply](const SyntheticRequest& request,
                                                                             TimePoint now) {
      SyntheticReply reply = answer(request, now);
      if (request.target.starts_with("/hangs")) hang(reply);
      if (request.target.starts_with("/good")) reply.status = 200;
      if (request.host == 1 && request.target != "/robots.txt") {
        reply.status = 200;
        reply.latency = 500ms;
        const auto next = std::to_string(++others);
        reply.body = "<a href=\"/" + next + "\">x</a>" + std::string(20'000, ' ');
      }
      return reply;
    };
  }

  // How many runs it takes until each good page was asked; 0: too many.
  int runs_until_all_good() {
    std::set<std::string> good;
    for (int runs = 1; runs < 20; ++runs) {
      for (const std::string& url : run()) {
        if (url.starts_with("http://a.test/good")) good.insert(url);
      }
      sim.backend.manual_clock().advance(1min);  // no host rests from the run before
      if (good.size() == 10) return runs;
    }
    return 0;
  }

  std::function<void(SyntheticReply&)> hang = [](SyntheticReply& reply) { reply.latency = 60s; };
  int others = 0;  // pages of the other host
};

TEST_F(CrawlRuns, WhatARunLeavesUnansweredAtItsEndComesBehindWhatNoneHasAsked) {
  for (const bool adaptive : {false, true}) {
    SCOPED_TRACE(adaptive);
    SiteThatHangs site;
    site.sim.options.max_time = 3s;
    if (adaptive) site.sim.options.adaptive = RevisitBounds{1s, 1h};
    EXPECT_GT(site.runs_until_all_good(), 1);
    const UrlRecord cut = site.record("http://a.test/hangs0");
    EXPECT_EQ(cut.state, UrlState::queued);
    EXPECT_NE(cut.mtime, WallTime{});
    EXPECT_EQ(cut.attempts, 0u) << "that the run has ended is no failure";
    site.hang = [](SyntheticReply&) {};
    site.sim.options.max_time.reset();
    EXPECT_TRUE(site.run_set().contains("http://a.test/hangs0")) << "it is still asked";
    EXPECT_TRUE(site.report.finished);
  }
}

TEST_F(CrawlRuns, WhatTheQuotaHasCutOffComesBehindWhatNoRunHasAsked) {
  SiteThatHangs site;
  site.hang = [](SyntheticReply& reply) {
    reply.latency = 2s;
    reply.behaviour = SyntheticReply::Behaviour::reset;
  };
  // Each run, a page of the other host uses the quota up while those that hang are under way.
  site.sim.options.seeds.push_back(*Url::parse("http://b.test/"));
  site.sim.options.quota = 10'000;
  EXPECT_GT(site.runs_until_all_good(), 1);
  EXPECT_EQ(site.record("http://a.test/hangs0").state, UrlState::queued);
  EXPECT_NE(site.record("http://a.test/hangs0").mtime, WallTime{});
}

TEST_F(CrawlRuns, OfWhatWasNotSentBeforeARunEndedNothingIsWritten) {
  SiteThatHangs site;
  site.sim.options.max_time = 3s;
  site.run();
  EXPECT_NE(site.record("http://a.test/hangs0").mtime, WallTime{});
  EXPECT_EQ(site.record("http://a.test/hangs9").mtime, WallTime{});
  EXPECT_EQ(site.record("http://a.test/good0").mtime, WallTime{});
}

// What stops in the middle of the attempts at a URL counts on.
TEST_F(CrawlRuns, RunsThatAreGivenUpAreCountedOverAttemptsThatAStopHasParted) {
  Site site;
  site.pages["http://a.test/"] = {"/bad"};
  site.statuses["http://a.test/bad"] = 503;
  site.sim.options.retries = 0;
  site.run();
  EXPECT_EQ(site.record("http://a.test/bad").limit, 1);
  site.sim.options.retries = 5;
  site.sim.options.max_time = 100ms;
  site.run();
  EXPECT_EQ(site.record("http://a.test/bad").state, UrlState::queued);
  site.sim.options.max_time.reset();
  site.run();
  EXPECT_EQ(site.record("http://a.test/bad").state, UrlState::failed);
  EXPECT_EQ(site.record("http://a.test/bad").limit, 2);
}

TEST_F(CrawlRuns, ASeedThatLeadsToAnotherSiteBringsOnlyThatPage) {
  Site site;
  site.redirects["http://a.test/"] = "http://b.test/landing";
  site.pages["http://b.test/landing"] = {"/more", "http://a.test/home"};
  site.pages["http://b.test/more"] = {};
  site.pages["http://a.test/home"] = {};
  EXPECT_EQ(site.run(), Urls({"http://a.test/", "http://b.test/landing", "http://a.test/home"}));
  EXPECT_EQ(site.record("http://b.test/more").reason, UrlReason::off_scope);
  EXPECT_EQ(site.run(), Urls());
}

// The host becomes part of the crawl when the slow redirect comes, after links to it were left out.
TEST_F(CrawlRuns, ASeedThatLeadsToWwwBringsWhatWasLeftOutBefore) {
  Site site;
  site.sim.options.seeds = {*Url::parse("http://a.test/"), *Url::parse("http://a.test/late")};
  site.sim.options.per_host = 1;
  site.pages["http://a.test/"] = {"http://www.a.test/x"};
  site.pages["http://www.a.test/x"] = {"/z"};
  site.pages["http://www.a.test/z"] = {};
  site.pages["http://www.a.test/y"] = {};
  site.redirects["http://a.test/late"] = "http://www.a.test/y";
  EXPECT_EQ(site.run_set(), (std::set<std::string>{"http://a.test/", "http://a.test/late", "http://www.a.test/x",
                                                   "http://www.a.test/y", "http://www.a.test/z"}));
  EXPECT_TRUE(site.report.left_out.empty());
}

TEST_F(CrawlRuns, RequeueFetchesAgainWholeAndALaterRunGoesOnWithIt) {
  Site site;
  site.pages["http://a.test/"] = {"/1", "/gone"};
  site.pages["http://a.test/1"] = {};
  EXPECT_EQ(site.run().size(), 3u);
  site.sim.options.requeue = Requeue::broken;
  EXPECT_EQ(site.run(), Urls({"http://a.test/gone"}));
  site.sim.options.requeue = Requeue::excluded;
  EXPECT_EQ(site.run(), Urls());
  site.sim.options.requeue = Requeue::all;
  site.sim.options.max_pages = 1;
  EXPECT_EQ(site.run(), Urls({"http://a.test/"}));
  EXPECT_EQ(site.report.statuses, (std::map<int, std::uint64_t>{{200, 1}}));
  site.sim.options.requeue = Requeue::none;
  site.sim.options.max_pages = 0;
  EXPECT_EQ(site.run(), Urls({"http://a.test/1", "http://a.test/gone"}));
}

TEST_F(CrawlRuns, WhatPatternsLeaveOutIsStoredWithItsReasonAndTakenUpByARunWithoutThem) {
  Site site;
  site.pages = {{"http://a.test/", {"/docs/x", "/private/y", "/z.zip", "http://b.test/"}},
                {"http://a.test/docs/x", {}},
                {"http://a.test/private/y", {"/private/deeper"}},
                {"http://a.test/private/deeper", {}},
                {"http://a.test/z.zip", {}}};
  site.sim.options.exclude = {"/private/**"};
  site.sim.options.reject_extensions = {"zip"};
  EXPECT_EQ(site.run(), (std::vector<std::string>{"http://a.test/", "http://a.test/docs/x"}));
  EXPECT_EQ(site.report.left_out,
            (std::map<std::string, std::uint64_t>{{"exclude", 1}, {"extension", 1}, {"off_scope", 1}}));
  EXPECT_EQ(site.record("http://a.test/private/y").reason, UrlReason::exclude);
  site.sim.options.exclude.clear();
  EXPECT_EQ(site.run_set(), (std::set<std::string>{"http://a.test/private/y", "http://a.test/private/deeper"}));
  site.sim.options.reject_extensions.clear();
  EXPECT_EQ(site.run(), (std::vector<std::string>{"http://a.test/z.zip"}));
  EXPECT_EQ(site.report.left_out, (std::map<std::string, std::uint64_t>{{"off_scope", 1}}));
}

TEST_F(CrawlRuns, ASeedIsFetchedWhateverExcludesItAndSoIsWhereItLeads) {
  Site site;
  site.redirects = {{"http://a.test/private/", "http://a.test/private/start"}};
  site.pages = {{"http://a.test/private/start", {"/private/x", "/open"}}, {"http://a.test/open", {"/private/start"}}};
  site.sim.options.seeds = {*Url::parse("http://a.test/private/")};
  site.sim.options.exclude = {"/private/**"};
  EXPECT_EQ(site.run(),
            (std::vector<std::string>{"http://a.test/private/", "http://a.test/private/start", "http://a.test/open"}));
}

// Found as a link, and excluded, before the seed that leads there was answered.
TEST_F(CrawlRuns, WhatASeedLeadsToIsFetchedThoughItWasExcludedWhenItWasFound) {
  Site site;
  site.pages = {{"http://a.test/", {"/private/start"}}, {"http://a.test/private/start", {}}};
  site.redirects = {{"http://a.test/later", "http://a.test/private/start"}};
  site.sim.options.seeds = {*Url::parse("http://a.test/"), *Url::parse("http://a.test/later")};
  site.sim.options.exclude = {"/private/**"};
  EXPECT_EQ(site.run(),
            (std::vector<std::string>{"http://a.test/", "http://a.test/later", "http://a.test/private/start"}));
  EXPECT_EQ(site.report.left_out, (std::map<std::string, std::uint64_t>{}));
}

TEST_F(CrawlRuns, WhatIsNotAcceptedIsAskedByHeadWhereItsNameSaysSoAndFetchedNeverWhole) {
  Site site;
  site.pages = {{"http://a.test/", {"/a.pdf", "/page.pdf", "/b", "/img.png"}},
                {"http://a.test/page.pdf", {"/c"}},
                {"http://a.test/c", {}}};
  site.types = {{"http://a.test/a.pdf", "application/pdf"},
                {"http://a.test/b", "application/zip"},
                {"http://a.test/img.png", "image/png"}};
  site.sim.options.accept_types = {"image/*"};
  EXPECT_EQ(site.run_set(), (std::set<std::string>{"http://a.test/", "HEAD http://a.test/a.pdf",
                                                   "HEAD http://a.test/page.pdf", "http://a.test/page.pdf",
                                                   "http://a.test/b", "http://a.test/img.png", "http://a.test/c"}));
  EXPECT_EQ(site.report.left_out, (std::map<std::string, std::uint64_t>{{"content_type", 2}}));
  EXPECT_EQ(site.report.stats.pages, 3u) << "pages are read for their links, whatever else is";
  const UrlRecord record = site.record("http://a.test/b");
  EXPECT_EQ(record.state, UrlState::excluded);
  EXPECT_EQ(record.reason, UrlReason::content_type);
  EXPECT_EQ(record.status_code, 200);
  EXPECT_EQ(record.content_type, "application/zip");
  EXPECT_EQ(site.run(), std::vector<std::string>{}) << "the same run once more has nothing to do";
  site.sim.options.accept_types = {"image/*", "application/zip"};
  EXPECT_EQ(site.run(), std::vector<std::string>{"http://a.test/b"});
  site.sim.options.accept_types.clear();
  EXPECT_EQ(site.run(), std::vector<std::string>{"http://a.test/a.pdf"});
  EXPECT_EQ(site.report.left_out, (std::map<std::string, std::uint64_t>{}));
}

TEST_F(CrawlRuns, ALinkThatIsExcludedIsNotChecked) {
  Site site;
  site.pages = {{"http://a.test/", {"http://b.test/ads/x", "http://b.test/y"}}};
  site.sim.options.check_links = true;
  site.sim.options.exclude = {"/ads/**"};
  EXPECT_EQ(site.run_set(), (std::set<std::string>{"http://a.test/", "HEAD http://b.test/y", "http://b.test/y"}));
  site.sim.options.exclude.clear();
  EXPECT_EQ(site.run_set(), (std::set<std::string>{"HEAD http://b.test/ads/x", "http://b.test/ads/x"}));
}

}  // namespace
}  // namespace argiope
