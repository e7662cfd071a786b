// A site of a few pages written by hand, behind a simulated transport: what is checked, and how it is asked.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/simulated_web.hpp"

namespace argiope {

struct CheckedSite {
  explicit CheckedSite(std::uint32_t hosts = 2) : sim({.hosts = hosts, .pages = 1}) {
    sim.options.seeds.resize(1);
    sim.options.rate = 1000;
    sim.options.check_links = sim.options.check_assets = sim.options.check_fragments = true;
    sim.options.keep_links = sim.options.keep_facts = true;
    sim.transport.before_reply = [this](const SyntheticRequest& request, TimePoint) {
      const auto found = replies.find({request.host, std::string(request.target)});
      if (found != replies.end()) return found->second;
      SyntheticReply missing;
      missing.status = 404;
      return missing;
    };
  }

  void page(const std::string& target, const std::string& html, std::uint32_t host = 0) {
    SyntheticReply reply;
    reply.body = html;
    replies[{host, target}] = reply;
  }
  void file(const std::string& target, const std::string& type, const std::string& body = "x", std::uint32_t host = 0) {
    page(target, body, host);
    replies[{host, target}].content_type = type;
  }
  // Style sheets from /0.css on, each of which imports the next one; the last one does not exist.
  void sheets_in_a_row(int count) {
    for (int i = 0; i < count; ++i) {
      file("/" + std::to_string(i) + ".css", "text/css", "@import '/" + std::to_string(i + 1) + ".css';");
    }
  }
  void redirect(const std::string& target, int status, const std::string& location, std::uint32_t host = 0) {
    SyntheticReply reply;
    reply.status = status;
    reply.headers.emplace_back("Location", location);
    replies[{host, target}] = reply;
  }

  CrawlReport run() {
    sim.transport.log.clear();
    return sim.run();
  }
  // "HEAD 1/x.png": method, host and target of what was asked, without robots.txt, in order.
  std::vector<std::string> asked() const {
    std::vector<std::string> out;
    for (const ServedRequest& request : sim.transport.log) {
      if (request.target == "/robots.txt") continue;
      out.push_back((request.head ? "HEAD " : "GET ") + std::to_string(request.host) + request.target);
    }
    return out;
  }
  UrlRecord record(const std::string& url) {
    UrlRecord found;
    EXPECT_TRUE(sim.store->scan(1, [&](const UrlRecord& record) {
      if (record.url == url) found = record;
      return record.url != url;
    }));
    EXPECT_NE(found.url_id, 0) << url;
    return found;
  }
  std::vector<KeptLink> links(const std::string& url) {
    std::vector<KeptLink> links;
    EXPECT_TRUE(sim.store->scan_kept_links(record(url).url_id, [&](std::int64_t, std::uint32_t, const KeptLink& link) {
      links.push_back(link);
      return true;
    }));
    return links;
  }
  PageFacts facts(const std::string& url) {
    const auto facts = sim.store->facts(record(url).url_id);
    EXPECT_TRUE(facts && *facts) << url;
    return facts && *facts ? **facts : PageFacts{};
  }

  Simulation sim;
  std::map<std::pair<std::uint32_t, std::string>, SyntheticReply> replies;
};

}  // namespace argiope
