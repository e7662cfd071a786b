// The sinks that a crawl may be given: records of its pages by rules, a mirror on disk, and WARC archives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/base/random.hpp"
#include "argiope/crawl/page.hpp"
#include "argiope/store/detail/url_store.hpp"
#include "argiope/web/url.hpp"

namespace argiope {

// The data that are taken from pages: rules with fields, and Extractor, which applies them to a page. It needs no crawl
// and no file: projects use it, too.

// The type that a field makes of what its source finds. docs/extraction.md has examples.
enum class FieldType : std::uint8_t {
  text,        // what a reader sees of it, in one line
  lines,       // the same with its lines
  raw,         // its characters as they are
  html,        // the element with its tags
  inner_html,  // what is between them
  number,      // the first number in it
  integer,
  boolean,
  date,  // as RFC 3339 has it
  url,   // absolute
  json,
};
// "inner_html", as rules write it.
std::string_view to_string(FieldType type) noexcept;
std::optional<FieldType> field_type_named(std::string_view name) noexcept;

struct FieldRule {
  std::string name;  // of the member or column
  // Where its value comes from; of several the first that has one. Each begins with one of
  //   css:SELECTOR, xpath:EXPRESSION     see Selector
  //   re:PATTERN                         in the page's text as it came: the first group, or all that matches
  //   meta:NAME, og:NAME, twitter:NAME   the content of meta elements
  //   jsonld:[TYPE]$PATH                 in the page's JSON-LD
  //   json:POINTER                       in a page that is JSON: /items/0/price (RFC 6901); "*" is each entry of a list
  //   readable:PART                      of the page's article: text, html, title, author, date or excerpt
  //   page:PART                          url, status, depth, content_type, size, fetched_at, title, canonical,
  //                                      language, description, headings, text or html
  std::vector<std::string> sources;
  FieldType type = FieldType::text;
  // Of what css or xpath finds: this attribute, instead of the text.
  std::string attribute;
  // RE2, on the text before it is converted: the first group, or all that matches, is the value; without a match there
  // is none.
  std::string re;
  bool all = false;                     // a list of all values; else the first
  bool required = false;                // a record without it is dropped
  std::optional<std::string> fallback;  // the value where there is none, as a page would write it
  char decimal = '\0';                  // of numbers: '.' or ','; else told by the number
  std::optional<bool> day_first;        // of dates such as 03/12/2026
};

struct ExtractionRule {
  std::string name;
  // Which pages: globs of URLs, or "re:" and a regular expression; none: all.
  std::vector<std::string> match;
  // "css:…" or "xpath:…": each element it finds is a record of its own, and selectors of fields look within it.
  // "json:…": each entry of the lists it leads to, and each object, and pointers of fields begin there. Empty: a page
  // is one record.
  std::string each;
  std::vector<FieldRule> fields;
  // There is a record whatever is found, and `required` counts for nothing.
  bool keeps_empty = false;
};

// Of several rules the first that matches a page is its rule.
struct ExtractionRules {
  std::vector<ExtractionRule> rules;

  static constexpr std::size_t kMostRules = 1'000;
  static constexpr std::size_t kMostFields = 500;  // of a rule
};

// "title=css:h1", "price:number=css:.price", "links:url[]=css:a::attr(href)": as `argiope crawl --field` has it.
// Errors: invalid_input, quoting the text.
Result<FieldRule> parse_field(std::string_view text);

class PageView;

// One page, as it is given to an Extractor. Lifetime: what it refers to outlives the call.
struct ExtractedPage {
  const Url& url;
  std::string_view body;  // decoded, in the charset it came in
  std::string_view content_type;
  int status = 200;
  std::uint32_t depth = 0;
  WallTime fetched_at{};
  // For the project's own use: the page as all others read it, so that it is read once. Null: it is read by itself.
  PageView* view = nullptr;
};

// A value of a record.
struct FieldValue {
  enum class Kind : std::uint8_t { none, text, number, boolean, json, list };
  Kind kind = Kind::none;
  std::string text;  // as JSON writes it, but of text, which stands without quotes
  std::vector<FieldValue> list;

  friend bool operator==(const FieldValue&, const FieldValue&) = default;
};

// A fault in a field of a page, and which field it is.
struct FieldTrouble {
  std::size_t field = 0;  // its place among the columns
  std::string why;        // "\"free\": there is no number in it"
};

struct ExtractedRecord {
  std::vector<FieldValue> values;  // one for each of Extractor::columns()
};

struct ExtractedRecords {
  std::optional<std::size_t> rule;  // nullopt: no rule matches the page
  std::vector<ExtractedRecord> records;
  std::vector<FieldTrouble> troubles;
  std::size_t dropped = 0;  // records that lack a required field
  // Of each column, in how many records something was found, also of those that were dropped; default values do not
  // count.
  std::vector<std::uint32_t> found;
};

// Rules, ready for use.
//
// Threads: any may extract at a time.
class Extractor {
 public:
  // Errors: invalid_input and too_large, naming the rule and the field: `rule "shop": field "price": css "h1 >": …`.
  static Result<Extractor> compile(const ExtractionRules& rules);

  // The names of all fields of all rules, each once, in the order of the rules.
  const std::vector<std::string>& columns() const noexcept;
  // Of a rule, by its place; "1" and so on for those without a name.
  const std::string& rule_name(std::size_t rule) const noexcept;
  std::size_t rules() const noexcept;
  // Whether a rule has the field of a column.
  bool has_field(std::size_t rule, std::size_t column) const noexcept;
  // Whether a rule matches the URL, as Url spells it.
  bool matches(std::string_view href) const;
  // The same, and the page is something that its rule reads: HTML or XML, or JSON for a rule that has pointers into it.
  bool reads(std::string_view href, std::string_view content_type, std::string_view body) const;

  // A record of which no field has a value is none; default values do not count.
  // Errors: those of Document::parse, and too_large where a selector takes too long on this page, or its values are too
  //         large together; invalid_input for JSON that is none.
  //         The page has no records then.
  Result<ExtractedRecords> extract(const ExtractedPage& page) const;

  static constexpr std::size_t kMostRecords = 100'000;  // of a page
  static constexpr std::size_t kMostValues = 10'000;    // of a list
  static constexpr std::size_t kMostValueBytes = 4 * 1024 * 1024;
  static constexpr std::size_t kMostPageBytes = 64 * 1024 * 1024;  // of all values of a page

 private:
  struct Compiled;
  explicit Extractor(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
};

// ExtractionSink: what rules take from a crawl's pages, in a file, while the crawl goes on.

struct ExtractionOptions {
  enum class Format : std::uint8_t {
    by_name,  // of the output: ".csv" is CSV, all else JSONL
    jsonl,    // an object a line
    csv,      // RFC 4180, with a header; lists and JSON as JSON
  };
  ExtractionRules rules;
  // A file, which is gone on with where it is there; "-": standard output.
  std::string output = "-";
  Format format = Format::by_name;
  // On which pages are read; 0: as many as the machine has processors, and at most 8.
  std::size_t threads = 0;
  // Kept records survive a power cut.
  bool sync = true;
};

// Of one field, over all records.
struct FieldReport {
  std::string name;
  std::uint64_t values = 0;    // records that have one
  std::uint64_t troubles = 0;  // values that could not be converted, and required ones that were missing
  std::string example;         // of a trouble, and its page
};

struct ExtractionReport {
  std::uint64_t pages = 0;    // that a rule matches
  std::uint64_t records = 0;  // written in this run
  std::uint64_t empty = 0;    // pages without a record
  std::uint64_t dropped = 0;  // records that lacked a required field
  std::uint64_t refused = 0;  // pages that could not be read, or would have taken too long
  std::uint64_t known = 0;    // pages whose records an interrupted run has written already
  std::string refused_example;
  std::vector<FieldReport> fields;
};

// A record begins with `url`, `fetched_at` (when it was asked for; RFC 3339, in milliseconds) and, where there are
// several rules, `rule`. Records of a page are written together, in one piece. HTML and XML with status 200 are read,
// on threads of the sink; what goes wrong with a page is counted and told, and fails nothing.
//
//   auto extraction = ExtractionSink::open({.rules = rules, .output = "items.jsonl"});
//   options.sinks.push_back(*extraction);
//   auto crawl = LocalCrawl::open(std::move(options), setup);
//   auto fits = (*extraction)->go_on_from((*crawl)->store());
//
// The database keeps with each commit how far the file has whole pages (note()). A run that goes on with both after a
// crash cuts off what is behind, whose pages it fetches again, and leaves out those before it that are not done. So no
// page is lost, torn, or written twice, after a power cut neither (`sync`). Standard output may get a page twice.
//
// Threads: as CrawlSink; open(), go_on_from() and the destructor while no crawl runs.
class ExtractionSink final : public CrawlSink {
 public:
  // Errors: those of Extractor::compile; io, disk_full, busy (another crawl writes the file), and wrong_format for a
  //         file with other columns, or that no crawl has written.
  static Result<std::shared_ptr<ExtractionSink>> open(const ExtractionOptions& options);
  ~ExtractionSink() override;

  // Compares the end of the file with what the database knows; when the crawl is open, and before it runs.
  // Errors: wrong_format when the file is of an earlier crawl than the database; those of the store.
  Result<void> go_on_from(UrlStore& store);

  Result<void> take(const Exchange& exchange) override;
  std::size_t backlog() const noexcept override;
  Result<void> keep() override;
  std::optional<UrlNote> note() const override;
  Result<void> finish() override;
  std::string demand() const override;
  bool begins_anew() const noexcept override;
  // Of a run that is told to end: records that go to a pipe wait for their reader no longer than so from now on. Then
  // their pages are not done, as when the run were killed. Any thread.
  void give_up(Duration after) noexcept;

  // Of this run.
  ExtractionReport report() const;

 private:
  class Impl;
  explicit ExtractionSink(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// SaveSink: a crawl's pages and what they are shown with, in a folder that can be browsed from disk.

struct SaveOptions {
  // The mirror's folder: there is none yet, or it is empty, or a mirror of the same crawl.
  std::string path;
  // Kept files survive a power cut.
  bool sync = true;
  // Where the crawl begins. A mirror of a crawl that began on other hosts is not taken for this one's. Empty: that is
  // not looked at.
  std::vector<Url> seeds;
};

// Keeps pages and assets while the crawl runs, and at its end, or when it is told to, puts each into its file:
// DIR/host/path/name.html. Links to what is saved lead to its file, through redirects too, and others to where they
// lead on the web. A run that goes on, or asks what has changed, writes only the files that are not as they should be.
// Answers other than 200 are not saved, nor are bodies that were cut short; what is gone (404, 410) is removed.
//
//   auto mirror = SaveSink::open({.path = "site"}, random);
//   options.sinks.push_back(*mirror);
//   options.requisites = Requisites::all;
//
// Threads: as CrawlSink.
class SaveSink final : public CrawlSink {
 public:
  // Errors: io, disk_full, busy (another process writes the mirror), wrong_format (a folder with files that is no
  // mirror, or one of another crawl), newer_version, corrupt.
  static Result<std::shared_ptr<SaveSink>> open(const SaveOptions& options, Random random);
  ~SaveSink() override;

  Result<void> take(const Exchange& exchange) override;
  std::size_t backlog() const noexcept override;
  Result<void> keep() override;
  // Makes the files of what was taken so far, while the crawl goes on: a crawl without end is to be browsed, too.
  // Blocks for as long as that takes, from any thread. Errors: as finish(), whose turn it is then to tell them again.
  Result<void> build();
  // Makes the files. Errors: as open(), and wrong_format where a file that is not of this mirror is in the way.
  Result<void> finish() override;
  bool lacks(std::string_view url) const override;
  bool can_lack() const noexcept override { return true; }
  std::string demand() const override;

  struct Totals {
    std::uint64_t files = 0;    // in the mirror
    std::uint64_t pages = 0;    // HTML pages among them
    std::uint64_t written = 0;  // by this run, each time that they were new or had changed
    std::uint64_t removed = 0;
    std::uint64_t cut_short = 0;  // answers of this run that were not saved because they are not whole
  };
  // Once it has finished.
  Totals totals() const;
  // The file of a URL, in the folder: where to begin to read. nullopt: it has none. Once it has finished.
  std::optional<std::string> file_of(const Url& url) const;

 private:
  class Impl;
  explicit SaveSink(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// WarcSink: a crawl's pages as they came, in WARC files.

struct WarcOptions {
  // "site" or "site.warc.gz": the file site.warc.gz, each record packed for itself, and the index site.cdxj.
  // "site.warc": not packed. An archive that is there is added to.
  std::string path;
  // A file that has so many bytes is followed by another: site-00001.warc.gz, site-00002.warc.gz …; 0: there is one.
  std::uint64_t most_bytes = 0;
  // Kept records survive a power cut.
  bool sync = true;
  // Fields of the warcinfo record: software, robots, who made it.
  std::vector<std::pair<std::string, std::string>> info;
  // Where the crawl begins: told in the warcinfo record, so that a replay begins there too.
  std::vector<Url> seeds;
};

// Writes pages and robots.txt: a response record for each, or a revisit record when the archive has the same payload
// already, and a request record. A check of a link is no capture, nor is a body of a type that is not wanted. A thread
// of its own digests, packs and writes.
//
//   auto archive = WarcSink::open({.path = "site"}, clock, random);
//   options.sinks.push_back(*archive);
//
// Threads: as CrawlSink.
class WarcSink final : public CrawlSink {
 public:
  // The leavings of a killed run behind the last whole record are cut off, and a warning says so. `clock` outlives the
  // sink.
  // Errors: io, disk_full, busy (another process writes the archive), wrong_format (a file of that name is no WARC
  // file), corrupt (a damaged record with others behind it).
  static Result<std::shared_ptr<WarcSink>> open(const WarcOptions& options, const Clock& clock, Random random);
  ~WarcSink() override;

  bool wants_wire() const noexcept override { return true; }
  Result<void> take(const Exchange& exchange) override;
  std::size_t backlog() const noexcept override;
  Result<void> keep() override;
  Result<void> finish() override;
  std::string demand() const override;
  bool begins_anew() const noexcept override;

  // Of this run.
  struct Totals {
    std::uint64_t responses = 0;
    std::uint64_t revisits = 0;
    std::uint64_t bytes = 0;  // of all records, as they are in the file
  };
  Totals totals() const;
  // Where the last records are. Not while the crawl runs.
  const std::string& file() const noexcept;

 private:
  class Impl;
  explicit WarcSink(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace argiope
