// Reads one answer by the rules in a project's file, without any script: which links become pages, and which results it
// gives. And takes fields from pages for scripts, whose rules may have some as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/crawl/sinks.hpp"
#include "project/process/internal/processor.hpp"
#include "project/rules/internal/project_definition.hpp"
#include "project/rules/internal/project_map.hpp"

namespace argiope {

struct RuleReading {
  // Absolute, without fragments, each once, in their order: those that the page's rule follows and a rule of the
  // project matches. None of an answer that is no success, or that asks not to be followed.
  std::vector<std::string> links;
  std::vector<std::uint32_t> rules;  // of each link, among ProjectDefinition::rules
  bool nofollow = false;             // the page, or its header, asks so
  std::size_t links_dropped = 0;     // beyond kMostLinks, or far too long

  // nullopt: those of the page stay as they are, because its rule has no fields, the answer is no success, or it could
  // not be read. A record is a JSON object with all fields of the rule, null for what is not there. Of a rule without
  // `each` its part is "", else what the rule's `part` field says, or "0", "1" … by its place on the page. Of the same
  // part the last counts.
  std::optional<std::vector<PageResult>> results;
  // In RuleReader::columns(): in how many records something was found, default values aside; of `results` and those
  // that were dropped.
  std::vector<std::uint32_t> found;
  std::size_t dropped = 0;  // records without a required field or a part, too large, or too many
  struct Trouble {
    std::string field;  // empty: the record as a whole
    std::string why;

    // `field "price": …`, one line.
    std::string text() const;
  };
  std::vector<Trouble> troubles;  // at most kMostTroubles
  std::optional<Error> not_read;  // why there are no results although the rule has fields and the answer was a success

  std::size_t records() const noexcept { return (results ? results->size() : 0) + dropped; }
  // Keeps its memory.
  void clear();
};

// Threads: one at a time; another() is for another one.
class RuleReader {
 public:
  static constexpr std::size_t kMostLinks = 50'000;
  static constexpr std::size_t kMostResults = 10'000;
  static constexpr std::size_t kMostResultBytes = 1024 * 1024;
  static constexpr std::size_t kMostPartBytes = 1'000;
  static constexpr std::size_t kMostTroubles = 100;

  // `agent` is the name that pages may address in their meta elements and headers.
  // Errors: those of Extractor::compile().
  // `links`: null: some of its own.
  struct Links;
  static Result<RuleReader> make(const ProjectDefinition& project, ProjectMap map, std::string agent,
                                 std::shared_ptr<Links> links = nullptr);
  // The means that find links: a quarter of a megabyte, which readers of the same agent may share on one thread.
  static std::shared_ptr<Links> links(std::string agent);
  // Shares what is compiled.
  RuleReader another(std::shared_ptr<Links> links = nullptr) const;
  RuleReader(RuleReader&&) noexcept;
  RuleReader& operator=(RuleReader&&) noexcept;
  ~RuleReader();

  // Reads the answer of a page that carries `rule`, among ProjectDefinition::rules. `page_url` counts where the answer
  // says no URL. Links and fields are those of an answer with status 200; it is judged by the page's own rule, wherever
  // redirects have led.
  void read(std::size_t rule, const std::string& page_url, const PageResponse& response, WallTime fetched_at,
            RuleReading& reading);
  // Of an answer with status 200 all links, each once, in their order, followed or not.
  struct Link {
    std::string url;        // absolute, without fragment
    bool nofollow = false;  // each time; of a page that asks so there are none
  };
  std::vector<Link> links_of(const std::string& page_url, const PageResponse& response);
  // The names of the rule's fields, in their order.
  const std::vector<std::string>& columns(std::size_t rule) const noexcept;

 private:
  struct Compiled;
  struct Work;
  RuleReader(std::shared_ptr<const Compiled> compiled, std::shared_ptr<Links> links);

  std::shared_ptr<const Compiled> compiled_;
  std::unique_ptr<Work> work_;
};

// An Extractor of one rule for pages that are known to carry it: of all URLs, wherever redirects have led.
// Errors: those of Extractor::compile().
Result<Extractor> compile_fields(ExtractionRule rule);
// Errors: those of Extractor::extract(), and invalid_input for pages of a type that the rule does not read.
Result<ExtractedRecords> extract_fields(const Extractor& extractor, const ExtractedPage& page);

// The fields that a script has Argiope take from the pages of a rule ("fields" of docs/processors.md).
//
// Threads: any may read at a time.
class ScriptFields {
 public:
  // `fields_json`: an object, name to source, as in a file's [rule.fields].
  // Errors: invalid_input and too_large, naming the field.
  static Result<ScriptFields> compile(std::string_view fields_json);

  // A JSON object with all fields, null for what is not there. `troubles`: what went wrong, a sentence each.
  std::string read(const std::string& page_url, const PageResponse& response, WallTime fetched_at,
                   std::vector<std::string>& troubles) const;

 private:
  explicit ScriptFields(std::optional<Extractor> extractor) : extractor_(std::move(extractor)) {}

  std::optional<Extractor> extractor_;  // nullopt: there are no fields
};

}  // namespace argiope
