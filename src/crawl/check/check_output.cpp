// Text, JSON and CSV; and which writer a format has.
#include "crawl/check/check_output.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/internal/counted.hpp"
#include "base/internal/csv.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "crawl/check/internal/check_output.hpp"

namespace argiope {
namespace {

constexpr std::size_t kPlacesShown = 20;

std::string_view severity_of(const LinkFinding& finding) { return is_warning(finding.kind) ? "warning" : "error"; }

std::string place_in_words(const std::string& page, const KeptLink& link) {
  if (page.empty()) return "given on the command line";
  std::string out = printable(page);
  if (link.line > 0) out += fmt::format(":{}", link.line);
  if (!link.text.empty()) out += "  " + in_quotes(link.text);
  if (link.kind != "anchor") out += fmt::format("  ({})", link.kind);
  return out;
}

// The first places of what is told together, under the URLs that they have.
class TextPlaces {
 public:
  TextPlaces(UrlStore& store, OutputFile& file) : store_(store), file_(file) {}

  Result<void> add(const LinkFinding& finding) {
    if (count_ < kPlacesShown) file_.write(fmt::format("    {}\n", printable(finding.url)));
    return for_each_place(store_, finding, [&](const std::string& page, const KeptLink& link) {
      if (++count_ <= kPlacesShown) file_.write(fmt::format("      in {}\n", place_in_words(page, link)));
    });
  }
  void end() const {
    if (count_ > kPlacesShown) file_.write(fmt::format("      and {} more\n", count_ - kPlacesShown));
  }

 private:
  UrlStore& store_;
  OutputFile& file_;
  std::size_t count_ = 0;
};

// "example.org cannot be reached (DNS): 214 links on 37 pages".
std::string host_in_words(const SilentHost& host) {
  return fmt::format("{}: {} on {}", words_on(host), counted(host.links, "link"), counted(host.pages, "page"));
}

Result<void> write_text(UrlStore& store, const CheckResult& result, OutputFile& file) {
  bool is_elsewhere = false;
  // `first`: of what is told together.
  const auto head = [&](const LinkFinding& first, const std::string& message) {
    if (first.is_elsewhere && !std::exchange(is_elsewhere, true)) {
      file.write(fmt::format("{}At other sites:\n\n", &first == result.findings.data() ? "" : "\n"));
    }
    file.write(fmt::format("{} {}: {}\n", severity_of(first), to_string(first.kind), printable(message)));
    return TextPlaces(store, file);
  };
  const auto write_host = [&](const SilentHost& host) -> Result<void> {
    TextPlaces places = head(result.findings[host.first], host_in_words(host));
    for (std::size_t i = 0; i < host.count; ++i) {
      if (auto added = places.add(result.findings[host.first + i]); !added) return added;
    }
    places.end();
    return {};
  };
  const auto write_one = [&](const LinkFinding& finding) -> Result<void> {
    TextPlaces places = head(finding, finding.message);
    if (auto added = places.add(finding); !added) return added;
    places.end();
    return {};
  };
  if (auto written = for_each_finding(result, write_host, write_one); !written) return written;
  file.write(fmt::format("{}{}\n", result.findings.empty() ? "" : "\n", words_on_check(result)));
  return {};
}

// The object's last member.
std::string silent_hosts_in_json(const CheckResult& result) {
  const std::string object = json_object([&](JsonWriter& json) {
    json.array("silent_hosts", [&] {
      for (const SilentHost& host : result.silent_hosts) {
        json.object([&] {
          json.member("host", host.host);
          json.member("trouble", host.trouble);
          json.member("urls", std::uint64_t{host.count});
          json.member("links", host.links);
          json.member("pages", host.pages);
        });
      }
    });
  });
  return "," + object.substr(1, object.size() - 2);
}

Result<void> write_json(UrlStore& store, const CheckResult& result, OutputFile& file) {
  file.write(fmt::format("{{\"urls\":{},\"links\":{},\"unread\":{},\"errors\":{},\"warnings\":{},\"findings\":[",
                         result.urls, result.links, result.unread, result.errors(), result.warnings()));
  bool is_first = true;
  for (const LinkFinding& finding : result.findings) {
    Result<void> visited;
    const std::string object = json_object([&](JsonWriter& json) {
      json.member("kind", to_string(finding.kind));
      json.member("severity", severity_of(finding));
      json.member("url", finding.url);
      json.member("status", finding.status);
      json.member("message", finding.message);
      json.member("elsewhere", finding.is_elsewhere);
      if (!finding.advice.empty()) json.member("suggestion", finding.advice);
      json.array("places", [&] {
        visited = for_each_place(store, finding, [&](const std::string& page, const KeptLink& link) {
          json.object([&] {
            json.member("page", page);
            json.member("line", std::int64_t{link.line});
            json.member("kind", link.kind);
            json.member("text", link.text);
            json.member("rel", link.rel);
          });
        });
      });
    });
    if (!visited) return visited;
    file.write(std::exchange(is_first, false) ? "\n" : ",\n");
    file.write(object);
  }
  file.write("\n]");
  file.write(silent_hosts_in_json(result));
  file.write("}\n");
  return {};
}

Result<void> write_csv(UrlStore& store, const CheckResult& result, OutputFile& file) {
  std::string line;
  const auto write_line = [&](std::initializer_list<std::string_view> fields) {
    line.clear();
    for (const std::string_view field : fields) append_csv_field(line, field);
    end_csv_line(line);
    file.write(line);
  };
  write_line(
      {"severity", "kind", "url", "status", "message", "suggestion", "page", "line", "link_kind", "text", "rel"});
  for (const LinkFinding& finding : result.findings) {
    auto visited = for_each_place(store, finding, [&](const std::string& page, const KeptLink& link) {
      write_line({severity_of(finding), to_string(finding.kind), finding.url, std::to_string(finding.status),
                  finding.message, finding.advice, page, std::to_string(link.line), link.kind, link.text, link.rel});
    });
    if (!visited) return visited;
  }
  if (result.unread > 0) write_line({"unknown", "unread", "", "0", words_on_unread(result), "", "", "0", "", "", ""});
  return {};
}

constexpr std::pair<std::string_view, CheckFormat> kFormatNames[] = {{"text", CheckFormat::text},
                                                                     {"json", CheckFormat::json},
                                                                     {"csv", CheckFormat::csv},
                                                                     {"junit", CheckFormat::junit},
                                                                     {"sarif", CheckFormat::sarif}};
constexpr std::pair<std::string_view, CheckFormat> kFormatEndings[] = {{".txt", CheckFormat::text},
                                                                       {".json", CheckFormat::json},
                                                                       {".csv", CheckFormat::csv},
                                                                       {".xml", CheckFormat::junit},
                                                                       {".sarif", CheckFormat::sarif}};

}  // namespace

std::optional<CheckFormat> parse_check_format(std::string_view name) noexcept {
  for (const auto& [known, format] : kFormatNames) {
    if (name == known) return format;
  }
  return std::nullopt;
}

std::optional<CheckFormat> check_format_of(std::string_view file) noexcept {
  if (file.ends_with(".sarif.json")) return CheckFormat::sarif;
  for (const auto& [ending, format] : kFormatEndings) {
    if (file.ends_with(ending)) return format;
  }
  return std::nullopt;
}

std::string words_on_check(const CheckResult& result) {
  std::string words =
      fmt::format("{} and {} in {} to {}", counted(result.errors(), "error"), counted(result.warnings(), "warning"),
                  counted(result.links, "link"), counted(result.urls, "URL"));
  if (const std::uint64_t elsewhere = result.errors_elsewhere(); elsewhere > 0) {
    words += fmt::format("; {} at other sites", counted(elsewhere, "error"));
  }
  if (result.unread > 0) words += "; " + words_on_unread(result);
  return words;
}

Result<void> write_check(UrlStore& store, const CheckResult& result, CheckFormat format, const std::string& path,
                         std::string_view version) {
  OutputFile file("link check to", path);
  Result<void> written;
  switch (format) {
    case CheckFormat::text: written = write_text(store, result, file); break;
    case CheckFormat::json: written = write_json(store, result, file); break;
    case CheckFormat::csv: written = write_csv(store, result, file); break;
    case CheckFormat::junit: written = write_check_junit(store, result, file); break;
    case CheckFormat::sarif: written = write_check_sarif(store, result, version, file); break;
  }
  return written ? file.finish() : written;
}

}  // namespace argiope
