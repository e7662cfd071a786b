#include "project/process/internal/rule_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "argiope/web/detail/robots_meta.hpp"
#include "argiope/web/url.hpp"
#include "base/internal/fingerprint.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "crawl/extract/internal/extraction_json.hpp"
#include "crawl/page/internal/link_harvester.hpp"
#include "crawl/page/internal/refresh_field.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {
namespace {

bool header_says_nofollow(const PageResponse& response, std::string_view agent) {
  for (const auto& [name, value] : response.headers) {
    if (equals_lower(name, "x-robots-tag") && parse_robots_tag(value, agent).nofollow) return true;
  }
  return false;
}

}  // namespace

std::string RuleReading::Trouble::text() const {
  return field.empty() ? why : fmt::format("field {}: {}", in_quotes(field), why);
}

void RuleReading::clear() {
  links.clear();
  rules.clear();
  nofollow = false;
  links_dropped = 0;
  results.reset();
  found.clear();
  dropped = 0;
  troubles.clear();
  not_read.reset();
}

Result<Extractor> compile_fields(ExtractionRule rule) {
  rule.match.clear();
  return Extractor::compile({{std::move(rule)}});
}

Result<ExtractedRecords> extract_fields(const Extractor& extractor, const ExtractedPage& page) {
  if (extractor.reads(page.url.href(), page.content_type, page.body)) return extractor.extract(page);
  const std::string type = page.content_type.empty() ? "unknown" : printable(page.content_type, 100);
  return fail(Errc::invalid_input, fmt::format("nothing is taken from pages of type {}", type));
}

// --- RuleReader
// ----------------------------------------------------------------------------------------------------------

struct RuleReader::Compiled {
  struct Rule {
    bool follows = false;
    bool has_parts = false;
    std::optional<std::size_t> part;  // column of the field that is the part of records
    std::optional<Extractor> extractor;
  };
  ProjectMap map;
  std::string agent;
  std::vector<Rule> rules;
};

// The parts that each page uses again.
struct RuleReader::Links {
  explicit Links(std::string agent) : harvester(std::move(agent), kMostLinks) {}

  LinkHarvester harvester;
  std::uint64_t pages = 0;  // harvested so far
  std::unordered_set<std::uint64_t> seen;
};

struct RuleReader::Work {
  Work(const Compiled& compiled, std::shared_ptr<Links> links)
      : compiled_(compiled), links_(links ? std::move(links) : RuleReader::links(compiled.agent)) {}

  void read(std::size_t place, const std::string& page_url, const PageResponse& response, WallTime fetched_at,
            RuleReading& reading) {
    reading.clear();
    if (!is_to_be_read(page_url, response)) return;
    PageView page(url_, response.body, content_type_of(response));
    if (compiled_.rules[place].follows) follow(place, response, page, reading);
    if (compiled_.rules[place].extractor) extract(compiled_.rules[place], response, page, fetched_at, reading);
  }

  std::vector<Link> links_of(const std::string& page_url, const PageResponse& response) {
    std::vector<Link> links;
    if (!is_to_be_read(page_url, response)) return links;
    RuleReading ignored;
    std::unordered_map<std::uint64_t, std::size_t> places;
    PageView page(url_, response.body, content_type_of(response));
    for_each_link(response, page, ignored, [&](const LinkHarvester::Link& link) {
      const auto [found, is_new] = places.try_emplace(fingerprint(link.url.href()), links.size());
      if (is_new) {
        links.push_back({link.url.href(), link.nofollow});
      } else if (!link.nofollow) {
        links[found->second].nofollow = false;
      }
    });
    return links;
  }

 private:
  // Sets url_.
  bool is_to_be_read(const std::string& page_url, const PageResponse& response) {
    if (response.status != 200 || !response.error_kind.empty()) return false;
    const std::string& url = response.url.empty() ? page_url : response.url;
    if (parse_into(url_, url, nullptr) != UrlStatus::ok) return false;  // data: and the like
    url_.strip_fragment();
    return true;
  }

  template <class Visit>
  void for_each_link(const PageResponse& response, PageView& page, RuleReading& reading, Visit&& visit) {
    const bool is_read = page.is_html() || is_xml(page.content_type());
    Url refresh;
    const bool refreshes = find_refresh(url_, header_of(response, "refresh"), refresh);
    if (!is_read && !refreshes) return;
    reading.nofollow = header_says_nofollow(response, compiled_.agent);
    if (reading.nofollow) return;
    links_->seen.clear();
    if (!is_read) return visit({refresh, LinkKind::refresh, false});
    // A number for each page: what an earlier one has had counts for nothing.
    const LinkHarvester::Summary summary = links_->harvester.harvest(page, ++links_->pages, visit);
    reading.nofollow = summary.nofollow;
    reading.links_dropped = summary.dropped;
    if (refreshes && !summary.nofollow) visit({refresh, LinkKind::refresh, false});
  }

  void follow(std::size_t place, const PageResponse& response, PageView& page, RuleReading& reading) {
    for_each_link(response, page, reading, [&](const LinkHarvester::Link& link) {
      const std::string& href = link.url.href();
      if (link.nofollow || !links_->seen.insert(fingerprint(href)).second || !compiled_.map.follows(place, href))
        return;
      const ProjectMap::Answer answer = compiled_.map.find(href, host_);
      if (!answer.rule) return;
      reading.links.push_back(href);
      reading.rules.push_back(static_cast<std::uint32_t>(*answer.rule));
    });
  }

  void extract(const Compiled::Rule& rule, const PageResponse& response, PageView& page, WallTime fetched_at,
               RuleReading& reading) {
    const Extractor& extractor = *rule.extractor;
    auto extracted = extract_fields(extractor, {.url = url_,
                                                .body = page.body(),
                                                .content_type = page.content_type(),
                                                .status = response.status,
                                                .fetched_at = fetched_at,
                                                .view = &page});
    if (!extracted) {
      reading.not_read = std::move(extracted.error());
      return;
    }
    reading.dropped = extracted->dropped;
    reading.found = std::move(extracted->found);
    for (FieldTrouble& trouble : extracted->troubles)
      complain(reading, extractor.columns()[trouble.field], std::move(trouble.why));
    reading.results.emplace();
    reading.results->reserve(std::min(extracted->records.size(), kMostResults));
    places_.clear();
    for (std::size_t i = 0; i < extracted->records.size(); ++i) add_result(rule, i, extracted->records[i], reading);
  }

  void add_result(const Compiled::Rule& rule, std::size_t place, const ExtractedRecord& record, RuleReading& reading) {
    const auto drop = [&](std::string_view field, std::string why) {
      ++reading.dropped;
      complain(reading, field, std::move(why));
    };
    const std::string_view part_field =
        rule.part ? std::string_view(rule.extractor->columns()[*rule.part]) : std::string_view{};
    PageResult result;
    if (rule.part) {
      result.part = record.values[*rule.part].text;
      if (result.part.empty()) return drop(part_field, "it is the part of the record, and not there");
      if (result.part.size() > kMostPartBytes)
        return drop(part_field, fmt::format("a part has at most {} bytes", kMostPartBytes));
    } else if (rule.has_parts) {
      result.part = std::to_string(place);
    }
    JsonWriter json(result.value_json);
    json.object([&] { write_record(json, *rule.extractor, 0, record); });
    if (result.value_json.size() > kMostResultBytes) {
      return drop({},
                  fmt::format("a record of {} bytes: at most {} are kept", result.value_json.size(), kMostResultBytes));
    }
    std::vector<PageResult>& results = *reading.results;
    if (rule.part) {
      const auto [found, is_new] = places_.try_emplace(result.part, results.size());
      if (!is_new) {
        drop(part_field,
             fmt::format("{}: several records have this part, and the last counts", in_quotes(result.part, 60)));
        results[found->second] = std::move(result);
        return;
      }
    }
    if (results.size() >= kMostResults) return drop({}, fmt::format("more than {} records on one page", kMostResults));
    results.push_back(std::move(result));
  }

  static void complain(RuleReading& reading, std::string_view field, std::string why) {
    if (reading.troubles.size() < kMostTroubles) reading.troubles.push_back({std::string(field), std::move(why)});
  }

  const Compiled& compiled_;
  const std::shared_ptr<Links> links_;
  ProjectMap::Host host_;
  Url url_;
  std::unordered_map<std::string, std::size_t> places_;  // by part, in the results
};

RuleReader::RuleReader(std::shared_ptr<const Compiled> compiled, std::shared_ptr<Links> links)
    : compiled_(std::move(compiled)), work_(std::make_unique<Work>(*compiled_, std::move(links))) {}
RuleReader::RuleReader(RuleReader&&) noexcept = default;
RuleReader& RuleReader::operator=(RuleReader&&) noexcept = default;
RuleReader::~RuleReader() = default;

std::shared_ptr<RuleReader::Links> RuleReader::links(std::string agent) {
  return std::make_shared<Links>(std::move(agent));
}

RuleReader RuleReader::another(std::shared_ptr<Links> links) const { return RuleReader(compiled_, std::move(links)); }

Result<RuleReader> RuleReader::make(const ProjectDefinition& project, ProjectMap map, std::string agent,
                                    std::shared_ptr<Links> links) {
  auto compiled = std::make_shared<Compiled>(Compiled{std::move(map), std::move(agent), {}});
  for (const ProjectRule& rule : project.rules) {
    Compiled::Rule& ready = compiled->rules.emplace_back();
    ready.follows = rule.follow;
    if (rule.extraction.fields.empty()) continue;
    auto extractor = compile_fields(rule.extraction);
    if (!extractor) return std::unexpected(std::move(extractor.error()));
    const auto& columns = extractor->columns();
    ready.has_parts = !rule.extraction.each.empty();
    if (!rule.part.empty()) {
      const auto found = std::ranges::find(columns, rule.part);
      if (found == columns.end())
        return fail(Errc::invalid_input, fmt::format("part {}: the rule has no such field", in_quotes(rule.part)));
      ready.part = static_cast<std::size_t>(found - columns.begin());
    }
    ready.extractor = std::move(*extractor);
  }
  return RuleReader(std::move(compiled), std::move(links));
}

void RuleReader::read(std::size_t rule, const std::string& page_url, const PageResponse& response, WallTime fetched_at,
                      RuleReading& reading) {
  work_->read(rule, page_url, response, fetched_at, reading);
}

std::vector<RuleReader::Link> RuleReader::links_of(const std::string& page_url, const PageResponse& response) {
  return work_->links_of(page_url, response);
}

const std::vector<std::string>& RuleReader::columns(std::size_t rule) const noexcept {
  static const std::vector<std::string> kNone;
  const auto& extractor = compiled_->rules[rule].extractor;
  return extractor ? extractor->columns() : kNone;
}

// --- ScriptFields
// --------------------------------------------------------------------------------------------------------

Result<ScriptFields> ScriptFields::compile(std::string_view fields_json) {
  const auto json = JsonText::parse(fields_json);
  if (!json) return std::unexpected(json.error());
  JsonErrors errors;
  ExtractionRule rule;
  rule.fields = read_fields(json->root(errors));
  if (errors) return std::unexpected(errors.error());
  if (rule.fields.empty()) return ScriptFields(std::nullopt);
  rule.keeps_empty = true;
  auto extractor = compile_fields(std::move(rule));
  if (!extractor) return std::unexpected(std::move(extractor.error()));
  return ScriptFields(std::move(*extractor));
}

std::string ScriptFields::read(const std::string& page_url, const PageResponse& response, WallTime fetched_at,
                               std::vector<std::string>& troubles) const {
  if (!extractor_) return "{}";
  const auto url = Url::parse(response.url.empty() ? page_url : response.url);
  const std::string_view content_type = content_type_of(response);
  const auto extracted = [&]() -> Result<ExtractedRecords> {
    if (!url) return std::unexpected(url.error());
    return extract_fields(*extractor_, {.url = *url,
                                        .body = response.body,
                                        .content_type = content_type,
                                        .status = response.status,
                                        .fetched_at = fetched_at});
  }();
  if (!extracted) {
    troubles.push_back(fmt::format("fields: {}", extracted.error().message));
  } else {
    for (const FieldTrouble& trouble : extracted->troubles) {
      if (troubles.size() >= RuleReader::kMostTroubles) break;
      troubles.push_back(fmt::format("field {}: {}", in_quotes(extractor_->columns()[trouble.field]), trouble.why));
    }
  }
  ExtractedRecord nothing;
  nothing.values.resize(extractor_->columns().size());
  const bool has_record = extracted && !extracted->records.empty();
  return json_object(
      [&](JsonWriter& json) { write_record(json, *extractor_, 0, has_record ? extracted->records[0] : nothing); });
}

}  // namespace argiope
