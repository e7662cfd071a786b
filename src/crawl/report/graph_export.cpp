// CSV, GraphML and DOT. Sitemaps are in sitemap_writer.cpp.
#include "crawl/report/internal/graph_export.hpp"

#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>

#include "base/internal/counted.hpp"
#include "base/internal/csv.hpp"
#include "base/internal/output_file.hpp"
#include "base/internal/utf8.hpp"
#include "base/internal/xml.hpp"
#include "crawl/duplicates/internal/duplicate_pages.hpp"
#include "crawl/page/seen_answers.hpp"
#include "crawl/report/internal/link_graph.hpp"
#include "crawl/report/url_names.hpp"

namespace argiope {
namespace {

bool is_node(const UrlRecord& record) {
  return record.reason != UrlReason::asset && record.reason != UrlReason::requisite;
}

class CsvWriter {
 public:
  explicit CsvWriter(OutputFile& file) : file_(file) {}
  void write(std::initializer_list<std::string_view> fields) {
    line_.clear();
    for (const std::string_view field : fields) append_csv_field(line_, field);
    end_csv_line(line_);
    file_.write(line_);
  }

 private:
  OutputFile& file_;
  std::string line_;
};

// --- links

Result<void> write_kept_links(UrlStore& store, const UrlRecord& page, UrlNames& names, CsvWriter& csv) {
  std::vector<KeptLink> links;
  auto scanned = store.scan_kept_links(page.url_id, [&](std::int64_t, std::uint32_t, const KeptLink& link) {
    links.push_back(link);
    return true;
  });
  if (!scanned) return scanned;
  for (const KeptLink& link : links) {
    csv.write({page.url, link.target == 0 ? link.href : names.of(link.target), link.kind, link.text, link.rel,
               std::to_string(link.line), link.fragment});
  }
  return names.failure();
}

Result<bool> keeps_links(UrlStore& store) {
  bool found = false;
  auto scanned = store.scan_kept_links([&](std::int64_t, std::uint32_t, const KeptLink&) {
    found = true;
    return false;
  });
  if (!scanned) return std::unexpected(std::move(scanned.error()));
  return found;
}

// By url_id.
using IdFlags = std::vector<bool>;
bool has_flag(const IdFlags& flags, std::int64_t id) {
  return id > 0 && id < std::ssize(flags) && flags[static_cast<std::size_t>(id)];
}

// A sitemap is stored as if it redirected to what it lists, at the same depth.
Result<IdFlags> read_redirecting(UrlStore& store) {
  IdFlags redirecting(static_cast<std::size_t>(store.next_id()), false);
  auto scanned = store.scan_redirects([&](const UrlRecord& record) {
    if (record.url_id < std::ssize(redirecting)) redirecting[static_cast<std::size_t>(record.url_id)] = true;
    return true;
  });
  if (!scanned) return std::unexpected(std::move(scanned.error()));
  return redirecting;
}

using EdgeVisitor = std::function<void(std::int64_t from, std::int64_t to, bool is_redirect)>;

void visit_edges(const UrlLinks& links, const IdFlags& redirecting, const EdgeVisitor& visit) {
  for (const std::int64_t target : links.targets) {
    if (target > 0) visit(links.url_id, target, links.redirect && has_flag(redirecting, links.url_id));
  }
}

// Visits the edges that the crawl goes by. `visit` may not read the store.
Result<void> for_each_edge(UrlStore& store, const EdgeVisitor& visit) {
  const auto redirecting = read_redirecting(store);
  if (!redirecting) return std::unexpected(redirecting.error());
  return store.scan_links([&](const UrlLinks& links) {
    visit_edges(links, *redirecting, visit);
    return true;
  });
}

// The same in stretches, so that `visit` may read the store.
Result<void> for_each_edge_reading(UrlStore& store, const EdgeVisitor& visit) {
  constexpr std::size_t kPagesAtOnce = 20'000;  // each stretch passes over those before it
  const auto redirecting = read_redirecting(store);
  if (!redirecting) return std::unexpected(redirecting.error());
  std::vector<UrlLinks> pages;
  for (std::int64_t from = 0;;) {
    pages.clear();
    auto scanned = store.scan_links([&](const UrlLinks& links) {
      if (links.url_id >= from) pages.push_back(links);
      return pages.size() < kPagesAtOnce;
    });
    if (!scanned) return scanned;
    for (const UrlLinks& page : pages) visit_edges(page, *redirecting, visit);
    if (pages.size() < kPagesAtOnce) return {};
    from = pages.back().url_id + 1;
  }
}

Result<void> write_links_csv(UrlStore& store, OutputFile& file) {
  CsvWriter csv(file);
  UrlNames names(store);
  csv.write({"from", "to", "kind", "text", "rel", "line", "fragment"});
  const auto kept = keeps_links(store);
  if (!kept) return std::unexpected(kept.error());
  if (*kept) {
    return for_each_record(store, [&](const UrlRecord& record) { return write_kept_links(store, record, names, csv); });
  }
  auto written = for_each_edge_reading(store, [&](std::int64_t from, std::int64_t to, bool redirects) {
    const std::string from_url = names.of(from);
    csv.write({from_url, names.of(to), redirects ? "redirect" : "link", "", "", "", ""});
  });
  return written ? names.failure() : written;
}

// --- pages

Result<void> write_pages_csv(UrlStore& store, OutputFile& file) {
  const auto graph = LinkGraph::read(store);
  if (!graph) return std::unexpected(graph.error());
  CsvWriter csv(file);
  csv.write({"url", "state", "reason", "status", "content_type", "size", "depth", "inbound", "outbound", "pagerank",
             "orphan", "took_ms", "title", "description", "heading", "canonical", "noindex", "redirect_to", "error"});
  return for_each_record(store, [&](const UrlRecord& record) -> Result<void> {
    const auto found = store.facts(record.url_id);
    if (!found) return std::unexpected(found.error());
    const PageFacts facts = found->value_or(PageFacts{});
    const GraphPage* const page = graph->find(record.url_id);
    const auto number = [&](std::uint32_t GraphPage::*member) {
      return page ? std::to_string(page->*member) : std::string();
    };
    csv.write({record.url, to_string(record.state), to_string(record.reason), std::to_string(record.status_code),
               record.content_type, std::to_string(record.size), std::to_string(record.depth),
               number(&GraphPage::inbound), number(&GraphPage::outbound), page ? fmt::format("{:.9g}", page->rank) : "",
               page && page->is_orphan ? "1" : "", *found ? fmt::format("{:.3f}", to_seconds(facts.took) * 1000) : "",
               facts.title, facts.description, facts.heading, facts.canonical, facts.noindex ? "1" : "",
               record.redirect_to, record.error});
    return {};
  });
}

// --- duplicates

Result<void> write_duplicates_csv(UrlStore& store, OutputFile& file) {
  const auto found = find_duplicate_pages(store);
  if (!found) return std::unexpected(found.error());
  CsvWriter csv(file);
  UrlNames names(store);
  csv.write({"kind", "url", "of", "distance", "what"});
  for (const auto& [kind, copies] : {std::pair{"exact", &found->exact}, {"near", &found->near}}) {
    for (const PageCopy& copy : *copies) {
      const std::string url = names.of(copy.url_id);
      csv.write({kind, url, names.of(copy.of), std::to_string(copy.distance), ""});
    }
  }
  for (const CanonicalConflict& conflict : found->conflicts) {
    csv.write({"canonical", names.of(conflict.url_id), conflict.canonical, "", conflict.what});
  }
  return names.failure();
}

// --- graphs

constexpr std::string_view kGraphmlHead =
    R"(<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
<key id="url" for="node" attr.name="url" attr.type="string"/>
<key id="title" for="node" attr.name="title" attr.type="string"/>
<key id="state" for="node" attr.name="state" attr.type="string"/>
<key id="status" for="node" attr.name="status" attr.type="int"/>
<key id="depth" for="node" attr.name="depth" attr.type="int"/>
<key id="inbound" for="node" attr.name="inbound" attr.type="int"/>
<key id="pagerank" for="node" attr.name="pagerank" attr.type="double"/>
<key id="kind" for="edge" attr.name="kind" attr.type="string"/>
<graph id="crawl" edgedefault="directed">
)";

// Nodes that have been written: an edge may name no other.
Result<IdFlags> for_each_node(UrlStore& store, const std::function<Result<void>(const UrlRecord&)>& visit) {
  IdFlags nodes(static_cast<std::size_t>(store.next_id()), false);
  auto visited = for_each_record(store, [&](const UrlRecord& record) -> Result<void> {
    if (!is_node(record) || record.url_id >= std::ssize(nodes)) return {};
    nodes[static_cast<std::size_t>(record.url_id)] = true;
    return visit(record);
  });
  if (!visited) return std::unexpected(std::move(visited.error()));
  return nodes;
}

Result<void> write_graphml(UrlStore& store, OutputFile& file) {
  const auto graph = LinkGraph::read(store);
  if (!graph) return std::unexpected(graph.error());
  file.write(kGraphmlHead);
  const auto nodes = for_each_node(store, [&](const UrlRecord& record) -> Result<void> {
    const auto facts = store.facts(record.url_id);
    if (!facts) return std::unexpected(facts.error());
    const auto data = [&](std::string_view key, std::string_view value) {
      if (!value.empty()) file.write(fmt::format(R"(<data key="{}">{}</data>)", key, xml_escaped(value)));
    };
    file.write(fmt::format(R"(<node id="n{}">)", record.url_id));
    data("url", record.url);
    if (*facts) data("title", (*facts)->title);
    data("state", to_string(record.state));
    if (record.status_code != 0) data("status", std::to_string(record.status_code));
    data("depth", std::to_string(record.depth));
    if (const GraphPage* page = graph->find(record.url_id)) {
      data("inbound", std::to_string(page->inbound));
      data("pagerank", fmt::format("{:.9g}", page->rank));
    }
    file.write("</node>\n");
    return {};
  });
  if (!nodes) return std::unexpected(nodes.error());
  auto edges = for_each_edge(store, [&](std::int64_t from, std::int64_t to, bool redirects) {
    if (!has_flag(*nodes, from) || !has_flag(*nodes, to)) return;
    file.write(fmt::format(R"(<edge source="n{}" target="n{}"><data key="kind">{}</data></edge>)"
                           "\n",
                           from, to, redirects ? "redirect" : "link"));
  });
  file.write("</graph>\n</graphml>\n");
  return edges;
}

// A quoted string of DOT: quotes and backslashes escaped, lines in one.
std::string dot_quoted(std::string_view text) {
  std::string out = "\"";
  for (const std::string valid = to_valid_utf8(text); const char c : valid) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  return out + '"';
}

Result<void> write_dot(UrlStore& store, OutputFile& file) {
  file.write("digraph crawl {\n  node [shape=box];\n");
  const auto nodes = for_each_node(store, [&](const UrlRecord& record) -> Result<void> {
    const std::string url = dot_quoted(record.url);
    file.write(fmt::format("  n{} [label={}, URL={}{}];\n", record.url_id, url, url,
                           is_broken(record)                    ? ", color=red"
                           : record.state == UrlState::excluded ? ", color=gray"
                                                                : ""));
    return {};
  });
  if (!nodes) return std::unexpected(nodes.error());
  auto edges = for_each_edge(store, [&](std::int64_t from, std::int64_t to, bool redirects) {
    if (!has_flag(*nodes, from) || !has_flag(*nodes, to)) return;
    file.write(fmt::format("  n{} -> n{}{};\n", from, to, redirects ? " [style=dashed]" : ""));
  });
  file.write("}\n");
  return edges;
}

}  // namespace

Result<void> export_graph(UrlStore& store, GraphFormat format, const std::string& path) {
  OutputFile file("export to", path);
  Result<void> written;
  switch (format) {
    case GraphFormat::links_csv: written = write_links_csv(store, file); break;
    case GraphFormat::pages_csv: written = write_pages_csv(store, file); break;
    case GraphFormat::duplicates_csv: written = write_duplicates_csv(store, file); break;
    case GraphFormat::graphml: written = write_graphml(store, file); break;
    case GraphFormat::dot: written = write_dot(store, file); break;
  }
  return written ? file.finish() : written;
}

Result<std::string> words_on_missing(UrlStore& store, GraphFormat format) {
  struct Missing {
    std::string_view demand, what, option;
  };
  const Missing missing =
      format == GraphFormat::pages_csv        ? Missing{kFactsDemand, "titles, times and the like", "--html"}
      : format == GraphFormat::duplicates_csv ? Missing{kWordsDemand, "near duplicates", "--near-duplicates"}
                                              : Missing{kLinksDemand, "links", "--links"};
  if (missing.demand == kLinksDemand) {
    // Crawls with --max-depth go by them, too.
    bool goes_by_links = false;
    auto scanned = store.scan_links([&](const UrlLinks&) {
      goes_by_links = true;
      return false;
    });
    if (!scanned) return std::unexpected(std::move(scanned.error()));
    if (goes_by_links) return std::string{};
  }
  const auto unseen = UnseenPages::count(store, missing.demand);
  if (!unseen) return std::unexpected(unseen.error());
  if (*unseen == 0) return std::string{};
  return fmt::format("not known of {}: {}. A run with {} asks again", counted(*unseen, "page"), missing.what,
                     missing.option);
}

}  // namespace argiope
