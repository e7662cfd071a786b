// The report of a crawl as one HTML file: what is wrong first, then what there is.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/time/time_zone.hpp"
#include "base/internal/counted.hpp"
#include "base/internal/html_report.hpp"
#include "base/internal/wording.hpp"
#include "base/internal/xml.hpp"
#include "crawl/report/internal/site_report.hpp"
#include "time/internal/time_labels.hpp"
#include "web/http/internal/reason_phrase.hpp"

namespace argiope {
namespace {

constexpr std::size_t kLettersShown = 160;  // of a URL or text
constexpr std::size_t kGroupsShown = 100;
constexpr std::size_t kPlacesOpen = 3;
constexpr std::size_t kRowsOpen = 15;  // of long lists; the others are folded

// The name of every kind of finding, and what to do about it.
struct KindWords {
  FindingKind kind;
  std::string_view heading, advice;
  std::string_view heading_elsewhere{};  // of those that lead to other sites; empty: there are none
};
constexpr KindWords kKindWords[kFindingKinds] = {
    {FindingKind::broken, "Broken links", "They lead to an error or to no answer.", "Broken links to other sites"},
    {FindingKind::fragment, "Missing fragments", "The pages have nothing of the name behind the #.",
     "Missing fragments of other sites"},
    {FindingKind::invalid, "Links that are no URLs", ""},
    {FindingKind::mail, "Mail addresses that can be none", ""},
    {FindingKind::mixed_content, "Mixed content", "Pages by https need these by http: browsers block them, or warn."},
    {FindingKind::redirect, "Links to update", "They lead to URLs that have moved for good.",
     "Links to other sites to update"},
};

// The commands that list all of which a report lists the first, in HTML. DB is the crawl's database.
constexpr std::string_view kAllFindings =
    "<code>--check-output links.csv</code>, or later <code>argiope crawl check DB -o links.csv</code>,";
constexpr std::string_view kAllPages = "<code>argiope crawl export DB --what pages -o pages.csv</code>";
constexpr std::string_view kAllDuplicates = "<code>argiope crawl export DB --what duplicates -o duplicates.csv</code>";
constexpr std::string_view kAllHosts = "<code>argiope crawl status DB --top 100000</code>";

std::string shown_text(std::string_view text) { return xml_escaped(shortened(text, kLettersShown)); }

// A link that tells the other site nothing. A URL that is none of the web is text.
std::string url_link(std::string_view url) {
  const bool is_web = url.starts_with("http://") || url.starts_with("https://");
  if (!is_web) return fmt::format(R"(<span class="url">{}</span>)", shown_text(url));
  return fmt::format(R"(<a class="url" rel="noreferrer noopener" href="{}">{}</a>)", xml_escaped(url), shown_text(url));
}

std::string heading(std::string_view id, std::string_view text) {
  return fmt::format(R"(<h2 id="{}">{}</h2>)", id, xml_escaped(text));
}
std::string note(std::string_view text) {
  return text.empty() ? "" : fmt::format(R"(<p class="dim">{}</p>)", xml_escaped(text));
}
std::string more_than_listed(std::uint64_t all, std::uint64_t listed, std::string_view how) {
  return all <= listed ? ""
                       : fmt::format(R"(<p class="dim">And {} more; {} lists all.</p>)", grouped(all - listed), how);
}

HtmlCell bytes_cell(std::int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (bytes < 1000) return {fmt::format("{} B", bytes), true};
  if (bytes < 1'000'000) return {fmt::format("{:.1f} kB", size / 1e3), true};
  return {bytes < 1'000'000'000 ? fmt::format("{:.1f} MB", size / 1e6) : fmt::format("{:.1f} GB", size / 1e9), true};
}
HtmlCell span_cell(Duration span) { return {span == Duration{} ? "–" : xml_escaped(short_duration(span)), true}; }
HtmlCell share_cell(std::uint64_t part, std::uint64_t whole) {
  return html_share(whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole));
}

// --- what is wrong

std::string place_item(const ReportedPlace& place) {
  if (place.page.empty()) return "<li>given on the command line</li>";
  std::string out = "<li>" + url_link(place.page);
  if (place.line > 0) out += fmt::format(", line {}", place.line);
  if (!place.text.empty()) out += fmt::format(": “{}”", shown_text(place.text));
  return out + "</li>";
}

// A few places as they stand, more behind a heading.
std::string places_cell(const ReportedFinding& finding) {
  std::string items;
  for (const ReportedPlace& place : finding.places) items += place_item(place);
  if (finding.place_count > finding.places.size()) {
    items += fmt::format(R"(<li class="dim">and {} more</li>)", grouped(finding.place_count - finding.places.size()));
  }
  const std::string list = fmt::format(R"(<ul class="places">{}</ul>)", items);
  if (finding.place_count <= kPlacesOpen) return list;
  return fmt::format("<details><summary>{}</summary>{}</details>", count_of(finding.place_count, "place"), list);
}

std::uint64_t findings_of_site(const SiteReport& report, FindingKind kind) {
  return report.check.counts[static_cast<std::size_t>(kind)] - report.check.elsewhere[static_cast<std::size_t>(kind)];
}

// Elsewhere, but for what leads to silent hosts.
std::uint64_t findings_elsewhere(const SiteReport& report, FindingKind kind) {
  std::uint64_t count = report.check.elsewhere[static_cast<std::size_t>(kind)];
  if (kind != FindingKind::broken) return count;
  for (const SilentHost& host : report.check.silent_hosts) count -= host.count;
  return count;
}

std::string findings_table(const SiteReport& report, FindingKind kind, bool is_elsewhere, std::uint64_t count) {
  HtmlTable table({{"URL"}, {"What"}, {"Where"}}, kRowsOpen);
  for (const ReportedFinding& found : report.findings) {
    if (found.finding.kind != kind || found.finding.is_elsewhere != is_elsewhere) continue;
    const std::string what = found.finding.advice.empty()
                                 ? shown_text(found.finding.message)
                                 : fmt::format("{}, to {}", found.finding.status, url_link(found.finding.advice));
    table.add({{url_link(found.finding.url)}, {what}, {places_cell(found)}});
  }
  return table.html() + more_than_listed(count, table.rows(), kAllFindings);
}

std::string findings_section(const SiteReport& report, const KindWords& words) {
  const std::uint64_t count = findings_of_site(report, words.kind);
  if (count == 0) return "";
  return heading(to_string(words.kind), fmt::format("{}: {}", words.heading, grouped(count))) + note(words.advice) +
         findings_table(report, words.kind, false, count);
}

std::string section_elsewhere(const SiteReport& report, const KindWords& words) {
  const std::uint64_t count = findings_elsewhere(report, words.kind);
  if (count == 0) return "";
  return heading(fmt::format("{}-elsewhere", to_string(words.kind)),
                 fmt::format("{}: {}", words.heading_elsewhere, grouped(count))) +
         note(words.advice) + findings_table(report, words.kind, true, count);
}

// "example.org cannot be reached (DNS): 214 links on 37 pages", and behind that its URLs, each with its first page.
std::string silent_host(const ReportedHost& silent) {
  std::string items;
  for (const ReportedFinding& found : silent.findings) {
    items += "<li>" + url_link(found.finding.url);
    if (!found.places.empty()) items += fmt::format(R"(<ul class="places">{}</ul>)", place_item(found.places.front()));
    if (found.place_count > 1)
      items += fmt::format(R"(<span class="dim">and {} more</span>)", count_of(found.place_count - 1, "place"));
    items += "</li>";
  }
  if (silent.host.count > silent.findings.size()) {
    items +=
        fmt::format(R"(<li class="dim">and {} more</li>)", count_of(silent.host.count - silent.findings.size(), "URL"));
  }
  return fmt::format(R"(<details><summary>{}: <b>{}</b> on {}</summary><ul class="places">{}</ul></details>)",
                     xml_escaped(words_on(silent.host)), count_of(silent.host.links, "link"),
                     count_of(silent.host.pages, "page"), items);
}

std::string silent_hosts_section(const SiteReport& report) {
  const std::uint64_t count = report.check.silent_hosts.size();
  if (count == 0) return "";
  std::string shown, hidden;
  for (std::size_t i = 0; i < report.silent_hosts.size(); ++i)
    (i < kRowsOpen ? shown : hidden) += silent_host(report.silent_hosts[i]);
  if (!hidden.empty()) {
    shown += fmt::format("<details><summary>{} more</summary>{}</details>",
                         grouped(report.silent_hosts.size() - kRowsOpen), hidden);
  }
  return heading("silent-hosts", fmt::format("Hosts that cannot be reached: {}", grouped(count))) +
         note("None of their URLs was answered: the links are broken, or the network was.") + shown +
         more_than_listed(count, report.silent_hosts.size(), kAllFindings);
}

std::string sections_elsewhere(const SiteReport& report) {
  std::string out;
  for (const KindWords& words : kKindWords) {
    out += section_elsewhere(report, words);
    if (words.kind == FindingKind::broken) out += silent_hosts_section(report);
  }
  return out;
}

std::string chains_section(const SiteReport& report) {
  if (report.redirects == 0) return "";
  std::string out = heading("redirects", fmt::format("Redirects: {}", grouped(report.redirects)));
  if (report.chain_count == 0) return out + note("None of them leads to another.");
  out += note(fmt::format("{} of more than one hop. Each hop costs whoever follows it a request.",
                          count_of(report.chain_count, "chain")));
  HtmlTable table({{"Hops", true}, {"From"}, {"By"}, {"To"}}, kRowsOpen);
  for (const auto& chain : report.chains) {
    std::string between;
    for (std::size_t i = 1; i + 1 < chain.size(); ++i) between += "<li>" + url_link(chain[i]) + "</li>";
    table.add({html_number(chain.size() - 1),
               {url_link(chain.front())},
               {fmt::format(R"(<ul class="places">{}</ul>)", between)},
               {url_link(chain.back())}});
  }
  return out + table.html() + more_than_listed(report.chain_count, report.chains.size(), kAllPages);
}

std::string page_items(const std::vector<std::string>& pages, std::uint64_t count) {
  std::string items;
  for (const std::string& page : pages) items += "<li>" + url_link(page) + "</li>";
  if (count > pages.size()) items += fmt::format(R"(<li class="dim">and {} more</li>)", grouped(count - pages.size()));
  return fmt::format(R"(<ul class="places">{}</ul>)", items);
}

std::string folded(std::string_view what, const PageList& list) {
  if (list.count == 0) return "";
  return fmt::format("<details><summary>{}: <b>{}</b></summary>{}</details>", xml_escaped(what), grouped(list.count),
                     page_items(list.pages, list.count));
}

std::string folded(std::string_view what, const PageGroups& groups) {
  if (groups.count == 0) return "";
  std::string out =
      fmt::format("<details><summary>{}: <b>{}</b></summary>", xml_escaped(what), count_of(groups.pages, "page"));
  for (std::size_t i = 0; i < std::min(groups.groups.size(), kGroupsShown); ++i) {
    const PageGroup& group = groups.groups[i];
    out += fmt::format("<h3>{}{}</h3>{}", group.what.empty() ? "" : fmt::format("“{}”: ", shown_text(group.what)),
                       count_of(group.count, "page"), page_items(group.pages, group.count));
  }
  if (groups.count > kGroupsShown)
    out += note(fmt::format("And {} more groups.", grouped(groups.count - kGroupsShown)));
  return out + "</details>";
}

std::string heads_section(const SiteReport& report) {
  const std::string found = folded("Without a title", report.titles.missing) +
                            folded("With several titles", report.titles.several) +
                            folded("With a title that others have too", report.titles.repeated) +
                            folded("Without a description", report.descriptions.missing) +
                            folded("With several descriptions", report.descriptions.several) +
                            folded("With a description that others have too", report.descriptions.repeated) +
                            folded("Without a heading (h1)", report.headings.missing) +
                            folded("With several headings (h1)", report.headings.several);
  if (!report.has_facts) return "";
  return heading("titles", "Titles and descriptions") +
         (found.empty() ? note("Every page has one title, one description and one heading, and no two have the same.")
                        : found);
}

std::string canonicals(const SiteReport& report) {
  if (report.canonical_count == 0) return "";
  HtmlTable table({{"Page"}, {"Names"}, {"Which"}});
  for (const CanonicalFinding& found : report.canonicals)
    table.add({{url_link(found.page)}, {url_link(found.canonical)}, {shown_text(found.what)}});
  return fmt::format("<details><summary>Canonical URLs that lead astray: <b>{}</b></summary>{}{}</details>",
                     count_of(report.canonical_count, "page"), table.html(),
                     more_than_listed(report.canonical_count, report.canonicals.size(), kAllDuplicates));
}

std::string duplicates_section(const SiteReport& report) {
  const std::string found = folded("The same bytes at several URLs", report.duplicates) +
                            folded("Nearly the same words at several URLs", report.near_duplicates) +
                            canonicals(report) + folded("No page links to them", report.orphans);
  return found.empty() ? "" : heading("duplicates", "Duplicates and orphans") + found;
}

std::string sitemaps_section(const SiteReport& report) {
  if (report.sitemaps == 0) return "";
  const std::string found = folded("In a sitemap, and broken", report.listed_broken) +
                            folded("In a sitemap, and redirected", report.listed_redirects) +
                            folded("In a sitemap, and not to be indexed (noindex)", report.listed_noindex) +
                            folded("In a sitemap, and no page links to them", report.listed_orphans) +
                            folded("Pages that are in no sitemap", report.not_listed);
  return heading("sitemaps", "Sitemaps and feeds") +
         note(fmt::format("{} with {}.", count_of(report.sitemaps, "file"), count_of(report.listed, "URL"))) +
         (found.empty() ? note("Every page is listed, and all that is listed is a page.") : found);
}

// --- what there is

PlotLabels time_labels(const SiteReport& report, const PlotCanvas& canvas) {
  const Duration span = report.until - report.from;
  return [&report, &canvas, span](int tick) {
    return axis_label(report.from + span / canvas.ticks * tick, span, TimeZone());
  };
}

// The time line in as many columns as fit: `fold` makes one value of several steps'.
template <class Value, class Fold>
std::vector<PlotColumn> time_columns(const SiteReport& report, const PlotCanvas& canvas,
                                     const std::array<Value, SiteReport::kSteps>& steps, Fold fold) {
  const std::size_t each = std::max<std::size_t>(SiteReport::kSteps / canvas.columns, 1);
  std::vector<PlotColumn> columns;
  const auto share = [](std::size_t step) { return static_cast<double>(step) / SiteReport::kSteps; };
  for (std::size_t begin = 0; begin < SiteReport::kSteps; begin += each) {
    double value = 0;
    for (std::size_t i = begin; i < std::min(begin + each, SiteReport::kSteps); ++i) value = fold(value, steps[i]);
    PlotColumn& column = columns.emplace_back(share(begin), share(begin + each), value);
    const Duration into = (report.until - report.from) / static_cast<int>(SiteReport::kSteps) * static_cast<int>(begin);
    if (value > 0) column.title = fmt::format("{}: {:.6g}", short_time(report.from + into, TimeZone()), value);
  }
  return columns;
}

std::string over_time_section(const SiteReport& report) {
  if (report.from == WallTime{}) return "";
  const auto sum = [](double a, std::uint32_t b) { return a + b; };
  const auto most_ms = [](double a, Duration b) { return std::max(a, to_seconds(b) * 1000); };
  std::string out = heading("time", "Over time") +
                    note(fmt::format("From {} to {} (UTC), by when each URL was asked last.",
                                     short_time(report.from, TimeZone()), short_time(report.until, TimeZone())));
  out += "<h3>Answers</h3>" + on_each_canvas([&](const PlotCanvas& canvas) {
           return plot_bars(canvas, "Answers over time", time_columns(report, canvas, report.answers, sum),
                            time_labels(report, canvas));
         });
  if (std::ranges::any_of(report.errors, [](std::uint32_t count) { return count > 0; })) {
    out += "<h3>Errors</h3>" + on_each_canvas([&](const PlotCanvas& canvas) {
             return plot_bars(canvas, "Errors over time", time_columns(report, canvas, report.errors, sum),
                              time_labels(report, canvas));
           });
  }
  if (report.timed > 0) {
    out += "<h3>Milliseconds an answer took (median)</h3>" + on_each_canvas([&](const PlotCanvas& canvas) {
             return plot_area(canvas, "How long answers took, over time",
                              time_columns(report, canvas, report.medians, most_ms), time_labels(report, canvas));
           });
  }
  return out;
}

std::string statuses_section(const SiteReport& report) {
  if (report.asked == 0) return "";
  HtmlTable table({{"Status"}, {"URLs", true}, {"Share"}});
  const auto add = [&](std::string_view look, std::string_view name, std::uint64_t count) {
    table.add({{fmt::format("<span class=\"{}\">{}</span>", look, xml_escaped(name))},
               html_number(count),
               share_cell(count, report.asked)});
  };
  for (const auto& [status, count] : report.statuses) {
    if (status > 0) {
      add(status >= 400 ? "warn" : "name", fmt::format("{} {}", status, reason_phrase(status)), count);
      continue;
    }
    add("warn", "no answer", count);
    for (const auto& [name, failed] : report.failures) add("dim", "of these: " + name, failed);
  }
  return heading("statuses", "Statuses") + table.html();
}

std::string types_section(const SiteReport& report) {
  if (report.content_types.empty()) return "";
  std::vector<std::pair<std::string, std::uint64_t>> types(report.content_types.begin(), report.content_types.end());
  std::ranges::sort(
      types, [](const auto& a, const auto& b) { return std::pair(b.second, a.first) < std::pair(a.second, b.first); });
  std::uint64_t all = 0;
  for (const auto& [type, count] : types) all += count;
  HtmlTable table({{"Type"}, {"URLs", true}, {"Share"}});
  for (std::size_t i = 0; i < std::min<std::size_t>(types.size(), 30); ++i) {
    table.add({{shown_text(types[i].first)}, html_number(types[i].second), share_cell(types[i].second, all)});
  }
  return heading("types", "Types") + table.html();
}

std::string depths_section(const SiteReport& report) {
  if (report.depths.empty()) return "";
  HtmlTable table({{"Links from the start"}, {"Pages", true}, {"Share"}});
  for (std::size_t listed = 0; const auto& [depth, count] : report.depths) {
    if (++listed > 50) break;
    table.add({{std::to_string(depth)}, html_number(count), share_cell(count, report.pages)});
  }
  return heading("depth", "Depth") + table.html();
}

std::string hosts_section(const SiteReport& report) {
  HtmlTable table({{"Host"}, {"URLs", true}, {"Pages", true}, {"Errors", true}, {"Bytes", true}, {"Median time", true}},
                  kRowsOpen);
  for (const auto& [site, host] : report.hosts) {
    table.add({{url_link(site + "/")},
               html_number(host.urls),
               html_number(host.pages),
               html_number(host.errors, true),
               bytes_cell(host.bytes),
               span_cell(host.median)});
  }
  if (table.rows() == 0) return "";
  return heading("hosts", fmt::format("Hosts: {}", grouped(report.host_count))) + table.html() +
         more_than_listed(report.host_count, report.hosts.size(), kAllHosts);
}

std::string speed_section(const SiteReport& report) {
  if (report.timed == 0) return "";
  std::string out =
      heading("speed", "Speed") +
      note(fmt::format("Half of {} took at most {}, nine in ten {}, 99 in a hundred {}; the slowest {}.",
                       count_of(report.timed, "answer"), short_duration(report.p50), short_duration(report.p90),
                       short_duration(report.p99), short_duration(report.slowest)));
  HtmlTable spread({{"Took"}, {"URLs", true}, {"Share"}});
  for (std::size_t i = 0; i < report.times.size(); ++i) {
    const std::string bound = i < SiteReport::kTimeBounds.size()
                                  ? "less than " + short_duration(SiteReport::kTimeBounds[i])
                                  : short_duration(SiteReport::kTimeBounds.back()) + " and more";
    if (report.times[i] > 0)
      spread.add({{bound}, html_number(report.times[i]), share_cell(report.times[i], report.timed)});
  }
  HtmlTable slow({{"Slowest"}, {"Took", true}, {"Bytes", true}}, kRowsOpen);
  for (const ReportedUrl& url : report.slow) slow.add({{url_link(url.url)}, span_cell(url.took), bytes_cell(url.size)});
  return out + spread.html() + "<h3>The slowest</h3>" + slow.html();
}

std::string sizes_section(const SiteReport& report) {
  if (report.large.empty()) return "";
  HtmlTable table({{"Largest"}, {"Bytes", true}, {"Took", true}}, kRowsOpen);
  for (const ReportedUrl& url : report.large)
    table.add({{url_link(url.url)}, bytes_cell(url.size), span_cell(url.took)});
  return heading("sizes", "The largest") + table.html();
}

std::string top_section(const SiteReport& report) {
  if (report.top.empty()) return "";
  HtmlTable table({{"Page"}, {"Title"}, {"Linked from", true}, {"Depth", true}, {"PageRank"}}, kRowsOpen);
  const double most = report.top.front().rank;
  for (const ReportedUrl& page : report.top) {
    table.add({{url_link(page.url)},
               {shown_text(page.title)},
               html_number(page.inbound),
               html_number(page.depth),
               html_share(most > 0 ? page.rank / most : 0)});
  }
  return heading("top", "Pages that matter most by their links") + table.html();
}

std::string left_out_section(const SiteReport& report) {
  HtmlTable table({{"Reason"}, {"URLs", true}});
  for (const auto& [reason, count] : report.left_out)
    table.add({{xml_escaped(reason.empty() ? "(none)" : reason)}, html_number(count)});
  if (report.queued > 0) table.add({{"still queued"}, html_number(report.queued)});
  return table.rows() == 0 ? "" : heading("left-out", "Not asked") + table.html();
}

std::string tiles(const SiteReport& report) {
  const std::uint64_t broken = findings_of_site(report, FindingKind::broken);
  const std::uint64_t elsewhere = report.check.elsewhere[static_cast<std::size_t>(FindingKind::broken)];
  const std::uint64_t others = report.check.errors() - broken - elsewhere;
  std::string out = R"(<div class="tiles">)";
  out += html_tile(grouped(report.pages), "pages");
  out += html_tile(grouped(report.asked), fmt::format("URLs asked of {}", grouped(report.urls)));
  out += html_tile(grouped(broken), "broken links", broken > 0);
  if (elsewhere > 0) out += html_tile(grouped(elsewhere), "broken links to other sites", true);
  out += html_tile(grouped(others), "other errors", others > 0);
  out += html_tile(grouped(report.check.warnings()), "warnings", report.check.warnings() > 0);
  out += html_tile(grouped(report.redirects), "redirects");
  if (report.timed > 0) out += html_tile(short_duration(report.p50), "an answer took (median)");
  out += html_tile(bytes_cell(report.bytes).html, "in bodies");
  return out + "</div>";
}

// The headings below, for who looks for one.
std::string contents_of(const std::string& body) {
  std::string out = "<nav>";
  constexpr std::string_view kHeading = "<h2 id=\"";
  for (std::size_t at = body.find(kHeading); at != std::string::npos; at = body.find(kHeading, at + 1)) {
    const std::size_t id = at + kHeading.size(), text = body.find('>', at) + 1;
    out += fmt::format(R"(<a href="#{}">{}</a>)", body.substr(id, body.find('"', id) - id),
                       body.substr(text, body.find("</h2>", text) - text));
  }
  return out + "</nav>";
}

}  // namespace

std::string html_site_report(const SiteReport& report) {
  std::string body;
  for (const KindWords& words : kKindWords) body += findings_section(report, words);
  body += sections_elsewhere(report);
  for (const auto section :
       {chains_section, heads_section, duplicates_section, sitemaps_section, over_time_section, statuses_section,
        types_section, depths_section, hosts_section, speed_section, sizes_section, top_section, left_out_section}) {
    body += section(report);
  }
  std::string name = report.title.empty() ? "an empty database" : report.title;
  if (report.other_sites > 0) name += " and " + count_of(report.other_sites, "other site");
  const std::string times = report.from == WallTime{}
                                ? "Nothing was asked."
                                : fmt::format("Crawled from {} to {} (UTC).", short_time(report.from, TimeZone()),
                                              short_time(report.until, TimeZone()));
  std::string head =
      fmt::format(R"(<h1>{}</h1><p class="dim">{}</p>)", shown_text(name), xml_escaped(times)) + tiles(report);
  if (report.check.is_good() && report.check.warnings() == 0 && report.asked > 0)
    head += R"(<p class="good">No broken links.</p>)";
  if (report.check.unread > 0) head += note(words_on_unread(report.check));
  if (report.unseen > 0) {
    head += note(
        fmt::format("Titles, descriptions, times and the like are not known of {}: no run with --html has read {} now.",
                    counted(report.unseen, "page"), report.unseen == 1 ? "it as it is" : "them as they are"));
  }
  if (report.asked > 0 && report.check.links == 0) {
    head += note("No links were kept: --html, --links or --check-links keep them, with their texts and lines.");
  }
  return html_document("Crawl of " + name, head + contents_of(body) + body);
}

}  // namespace argiope
