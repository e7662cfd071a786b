#include "store/urls/internal/url_export.hpp"

#include <fmt/format.h>

#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/internal/csv.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/output_file.hpp"
#include "base/internal/rfc3339.hpp"
#include "base/internal/utf8.hpp"

namespace argiope {
namespace {

constexpr std::size_t kRecordsAtOnce = 1000;

// Empty for the epoch, which stands for "never".
std::string timestamp(WallTime time) { return time == WallTime{} ? std::string{} : to_rfc3339_ms(time); }

// Rows as a file has them: each calls `field(name, value)` for its columns, text or number, in one order for all
// formats. `referrer` is the URL of the page that first linked to it.
struct UrlRow {
  template <class Field>
  static void for_each_field(const UrlRecord& record, std::string_view referrer, Field&& field);
};
struct BrokenRow {
  template <class Field>
  static void for_each_field(const UrlRecord& record, std::string_view referrer, Field&& field) {
    field("url", std::string_view{record.url});
    field("status", static_cast<std::int64_t>(record.status_code));
    field("error", std::string_view{record.error});
    field("linked_from", referrer);
  }
};

template <class Field>
void UrlRow::for_each_field(const UrlRecord& record, std::string_view referrer, Field&& field) {
  field("url_id", record.url_id);
  field("url", std::string_view{record.url});
  field("state", to_string(record.state));
  field("status_code", static_cast<std::int64_t>(record.status_code));
  field("content_type", std::string_view{record.content_type});
  field("size", record.size);
  field("depth", static_cast<std::int64_t>(record.depth));
  field("attempts", static_cast<std::int64_t>(record.attempts));
  field("ctime", std::string_view{timestamp(record.ctime)});
  field("mtime", std::string_view{timestamp(record.mtime)});
  field("referrer", referrer);
  field("redirect_to", std::string_view{record.redirect_to});
  field("etag", std::string_view{record.etag});
  field("last_modified", std::string_view{record.last_modified});
  field("digest", std::string_view{record.digest});
  field("error", std::string_view{record.error});
  field("reason", to_string(record.reason));
}

template <class Row>
struct JsonLine {
  static void header(std::string&) {}
  static void append(std::string& out, const UrlRecord& record, std::string_view referrer) {
    JsonWriter json(out);
    json.object([&] {
      Row::for_each_field(record, referrer, [&](std::string_view name, auto value) { json.member(name, value); });
    });
    out += '\n';
  }
};

template <class Row>
struct CsvLine {
  static void header(std::string& out) {
    Row::for_each_field(UrlRecord{}, {}, [&](std::string_view name, auto) { append_csv_field(out, name); });
    end_csv_line(out);
  }
  static void append(std::string& out, const UrlRecord& record, std::string_view referrer) {
    Row::for_each_field(record, referrer, [&](std::string_view, auto value) {
      if constexpr (std::is_integral_v<decltype(value)>) {
        append_csv_field(out, std::to_string(value));
      } else if (!is_utf8(value)) {
        append_csv_field(out, to_valid_utf8(value));  // headers in a database of an earlier version
      } else {
        append_csv_field(out, value);
      }
    });
    end_csv_line(out);
  }
};

// Gives records their referrers. URLs found on one page stand together, so that the last answer is often the next.
class Referrers {
 public:
  explicit Referrers(UrlStore& store) : store_(store) {}
  Result<std::string_view> url_of(std::int64_t id) {
    if (id == 0) return std::string_view{};
    if (id != last_) {
      auto found = store_.get(id);
      if (!found) return std::unexpected(std::move(found.error()));
      last_ = id;
      url_ = *found ? (*found)->url : std::string{};
    }
    return std::string_view{url_};
  }

 private:
  UrlStore& store_;
  std::int64_t last_ = 0;
  std::string url_;
};

// All pages with a link to a broken URL, as far as links are stored (UrlLinks). A link that redirects leads to where it
// ends.
class LinkingPages {
 public:
  static Result<LinkingPages> read(UrlStore& store, const BrokenRule& is_wanted) {
    LinkingPages pages;
    std::unordered_set<std::int64_t> wanted;
    auto scanned = store.scan(1, [&](const UrlRecord& record) {
      if (is_wanted(record)) wanted.insert(record.url_id);
      return true;
    });
    if (!scanned) return std::unexpected(std::move(scanned.error()));
    // A redirect to what is wanted is wanted, too; most lead to larger ids, so few rounds find all.
    for (bool more = !wanted.empty(); more;) {
      more = false;
      scanned = store.scan_links([&](const UrlLinks& links) {
        for (const std::int64_t target : links.redirect ? links.targets : std::vector<std::int64_t>{}) {
          if (wanted.contains(target) && wanted.insert(links.url_id).second) more = true;
        }
        return true;
      });
      if (!scanned) return std::unexpected(std::move(scanned.error()));
    }
    if (wanted.empty()) return pages;
    scanned = store.scan_links([&](const UrlLinks& links) {
      for (const std::int64_t target : links.targets) {
        if (wanted.contains(target)) (links.redirect ? pages.redirects_ : pages.pages_)[target].push_back(links.url_id);
      }
      return true;
    });
    if (!scanned) return std::unexpected(std::move(scanned.error()));
    return pages;
  }

  // In order of their ids; none where no link to it is stored.
  std::vector<std::int64_t> of(std::int64_t broken) const {
    std::set<std::int64_t> found, seen{broken};
    for (std::vector<std::int64_t> next{broken}; !next.empty();) {
      const std::int64_t target = next.back();
      next.pop_back();
      if (const auto pages = pages_.find(target); pages != pages_.end()) {
        found.insert(pages->second.begin(), pages->second.end());
      }
      const auto redirects = redirects_.find(target);
      if (redirects == redirects_.end()) continue;
      for (const std::int64_t from : redirects->second) {
        if (seen.insert(from).second) next.push_back(from);
      }
    }
    return {found.begin(), found.end()};
  }

 private:
  std::unordered_map<std::int64_t, std::vector<std::int64_t>> pages_, redirects_;  // by target
};

// `scan(from, visit)` visits the records in question with url_id >= `from`, in order. In stretches, because a visitor
// may not read.
// A record has a line for each of `pages`, or, where they are none, one with its referrer.
template <class Line, class Scan>
Result<void> write_lines(UrlStore& store, const std::string& path, Scan&& scan, const LinkingPages& pages) {
  OutputFile file("export to", path);
  std::string line;
  Line::header(line);
  file.write(line);
  Referrers referrers(store);
  std::vector<UrlRecord> records;
  for (std::int64_t from = 1;;) {
    records.clear();
    auto scanned = scan(from, [&](const UrlRecord& record) {
      records.push_back(record);
      return records.size() < kRecordsAtOnce;
    });
    if (!scanned) return scanned;
    for (const UrlRecord& record : records) {
      std::vector<std::int64_t> from_pages = pages.of(record.url_id);
      if (from_pages.empty()) from_pages.push_back(record.referrer);
      for (const std::int64_t page : from_pages) {
        const auto referrer = referrers.url_of(page);
        if (!referrer) return std::unexpected(referrer.error());
        line.clear();
        Line::append(line, record, *referrer);
        file.write(line);
      }
    }
    if (records.size() < kRecordsAtOnce || !file.ok()) break;
    from = records.back().url_id + 1;
  }
  return file.finish();
}

template <class Row, class Scan>
Result<void> write_rows(UrlStore& store, const std::string& path, Scan&& scan, const LinkingPages& pages = {}) {
  if (path == "-" || path.ends_with(".jsonl")) return write_lines<JsonLine<Row>>(store, path, scan, pages);
  if (path.ends_with(".csv")) return write_lines<CsvLine<Row>>(store, path, scan, pages);
  return fail(Errc::invalid_input, fmt::format("export to {}: the name must end with .jsonl or .csv", path));
}

}  // namespace

Result<void> export_urls(UrlStore& store, const std::string& path) {
  return write_rows<UrlRow>(store, path,
                            [&](std::int64_t from, const UrlStore::Visitor& visit) { return store.scan(from, visit); });
}

void append_url_json(std::string& out, const UrlRecord& record, std::string_view referrer) {
  JsonLine<UrlRow>::append(out, record, referrer);
}

Result<void> export_broken(UrlStore& store, const std::string& path, const BrokenRule& is_wanted) {
  const auto pages = LinkingPages::read(store, is_wanted);
  if (!pages) return std::unexpected(pages.error());
  const auto scan = [&](std::int64_t from, const UrlStore::Visitor& visit) {
    return store.scan(from, [&](const UrlRecord& record) { return !is_wanted(record) || visit(record); });
  };
  return write_rows<BrokenRow>(store, path, scan, *pages);
}

}  // namespace argiope
