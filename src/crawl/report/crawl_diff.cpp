#include "crawl/report/internal/crawl_diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>

#include "argiope/base/clock.hpp"
#include "argiope/time/time_zone.hpp"
#include "base/internal/csv.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/output_file.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "crawl/scope/url_change.hpp"

namespace argiope {
namespace {

// All that has happened to one URL.
struct Net {
  WallTime at{};
  int status_before = 0;
  int status_after = 0;
  bool was_broken = false;  // at first; then a 0 before means no answer
  bool is_broken = false;
  bool content_changed = false;
  std::string detail;
};

AnswerClass class_before(const Net& net) {
  return net.was_broken && net.status_before < 400 ? AnswerClass::broken : class_of_status(net.status_before);
}
AnswerClass class_after(const Net& net) {
  return net.is_broken ? AnswerClass::broken : class_of_status(net.status_after);
}

void add_to(Net& net, const UrlChange& change, bool is_first) {
  if (is_first) {
    net.status_before = change.status_before;
    net.was_broken = change.kind == UrlChangeKind::mended;
  }
  net.at = change.at;
  net.status_after = change.status_after;
  net.is_broken = change.kind == UrlChangeKind::broken;
  net.content_changed = net.content_changed || change.kind == UrlChangeKind::changed;
  net.detail = change.detail;
}

std::optional<DiffKind> kind_of_net(const Net& net) {
  const AnswerClass before = class_before(net);
  const AnswerClass after = class_after(net);
  const bool was_there = before == AnswerClass::good || before == AnswerClass::redirect;
  switch (after) {
    case AnswerClass::good:
      if (!was_there) return DiffKind::mended;
      return net.content_changed || before == AnswerClass::redirect ? std::optional(DiffKind::changed) : std::nullopt;
    case AnswerClass::redirect: return was_there ? DiffKind::moved : DiffKind::mended;
    case AnswerClass::gone: return was_there ? std::optional(DiffKind::gone) : std::nullopt;
    case AnswerClass::broken: return was_there ? std::optional(DiffKind::broken) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<DiffKind> kind_of_new(const UrlRecord& record) {
  if (is_broken(record)) return DiffKind::broken;
  if (record.state != UrlState::done || record.reason == UrlReason::checked) return std::nullopt;
  return record.status_code >= 200 && record.status_code < 300 ? std::optional(DiffKind::fresh) : std::nullopt;
}

std::string status_in_words(int status) { return status == 0 ? "---" : std::to_string(status); }

void write_entry(const DiffEntry& entry, DiffFormat format, bool is_first, OutputFile& file) {
  switch (format) {
    case DiffFormat::text: {
      const bool is_new = entry.kind == DiffKind::fresh;
      file.write(fmt::format("{:<8} {}  ({}{}){}{}\n", to_string(entry.kind), printable(entry.url),
                             is_new ? "" : status_in_words(entry.status_before) + " → ",
                             status_in_words(entry.status_after), entry.detail.empty() ? "" : "  ",
                             printable(entry.detail)));
      return;
    }
    case DiffFormat::json:
      file.write(is_first ? "\n" : ",\n");
      file.write(json_object([&](JsonWriter& json) {
        json.member("kind", to_string(entry.kind));
        json.member("url", entry.url);
        json.member("at", to_rfc3339(entry.at));
        json.member("status_before", entry.status_before);
        json.member("status_after", entry.status_after);
        json.member("detail", entry.detail);
      }));
      return;
    case DiffFormat::csv: {
      std::string line;
      for (const std::string& field :
           {std::string(to_string(entry.kind)), entry.url, to_rfc3339(entry.at), std::to_string(entry.status_before),
            std::to_string(entry.status_after), entry.detail}) {
        append_csv_field(line, field);
      }
      end_csv_line(line);
      file.write(line);
      return;
    }
  }
}

void write_head(const CrawlDiff& diff, DiffFormat format, OutputFile& file) {
  if (format == DiffFormat::csv) file.write("kind,url,at,status_before,status_after,detail\r\n");
  if (format == DiffFormat::json) {
    file.write(fmt::format("{{\"since\":\"{}\",\"run\":{},\"changes\":[", to_rfc3339(diff.since),
                           diff.run_id ? std::to_string(*diff.run_id) : "null"));
  }
}

void write_end(const CrawlDiff& diff, DiffFormat format, OutputFile& file) {
  if (format == DiffFormat::csv) return;
  std::string counts;
  for (std::size_t i = 0; i < kDiffKinds; ++i) {
    const std::string_view name = to_string(static_cast<DiffKind>(i));
    const std::string_view between = i == 0 ? "" : format == DiffFormat::json ? "," : ", ";
    counts += format == DiffFormat::json ? fmt::format("{}\"{}\":{}", between, name, diff.counts[i])
                                         : fmt::format("{}{} {}", between, diff.counts[i], name);
  }
  if (format == DiffFormat::json) return file.write(fmt::format("\n],\"counts\":{{{}}}}}\n", counts));
  file.write(fmt::format("Since {}{}: {}\n", to_rfc3339(diff.since),
                         diff.run_id ? fmt::format(" (run {})", *diff.run_id) : "", counts));
}

}  // namespace

std::string_view to_string(DiffKind kind) noexcept {
  constexpr std::string_view kNames[kDiffKinds] = {"new", "gone", "changed", "moved", "broken", "mended"};
  return kNames[static_cast<std::size_t>(kind)];
}

Result<CrawlDiff> parse_since(UrlStore& store, std::string_view text, WallTime now) {
  std::int64_t wanted = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), wanted);
  const bool is_run = error == std::errc{} && end == text.data() + text.size();
  CrawlDiff diff;
  if (text.empty() || is_run) {
    auto scanned = store.scan_runs([&](const UrlRun& run) {
      if (!is_run || run.run_id == wanted) {
        diff.since = run.began;
        diff.run_id = run.run_id;
      }
      return true;
    });
    if (!scanned) return std::unexpected(std::move(scanned.error()));
    if (is_run && !diff.run_id)
      return fail(Errc::not_found, fmt::format("--since {}: there is no such run in the database", wanted));
    return diff;
  }
  if (const auto span = parse_span(text)) {
    diff.since = now - std::min<Duration>(*span, now - WallTime{});
    return diff;
  }
  const auto time = parse_timestamp(text);
  if (!time) {
    return fail(Errc::invalid_input,
                fmt::format("--since {}: the number of a run, a time as in 2026-11-23T08:00:00Z, or a span as in 1d",
                            in_quotes(text)));
  }
  diff.since = *time;
  return diff;
}

Result<void> diff_crawl(UrlStore& store, CrawlDiff& diff, const std::function<void(const DiffEntry&)>& visit) {
  std::unordered_map<std::int64_t, Net> changed;
  auto scanned = store.scan_changes(diff.since, [&](const UrlChange& change) {
    const auto [net, is_first] = changed.try_emplace(change.url_id);
    add_to(net->second, change, is_first);
    return true;
  });
  if (!scanned) return scanned;
  return store.scan(1, [&](const UrlRecord& record) {
    const auto found = changed.find(record.url_id);
    const bool is_new = record.ctime >= diff.since;
    if ((found == changed.end() && !is_new) || record.reason == UrlReason::asset || record.reason == UrlReason::sitemap)
      return true;
    const auto kind = is_new ? kind_of_new(record) : kind_of_net(found->second);
    if (!kind) return true;
    DiffEntry entry{.kind = *kind, .url = record.url};
    if (is_new) {
      entry.at = record.ctime;
      entry.status_after = record.status_code;
      entry.detail = record.error;
    } else {
      entry.at = found->second.at;
      entry.status_before = found->second.status_before;
      entry.status_after = found->second.status_after;
      entry.detail = found->second.detail;
    }
    ++diff.counts[static_cast<std::size_t>(*kind)];
    visit(entry);
    return true;
  });
}

Result<CrawlDiff> write_diff(UrlStore& store, CrawlDiff diff, DiffFormat format, const std::string& path) {
  OutputFile file("changes to", path);
  write_head(diff, format, file);
  bool is_first = true;
  auto done = diff_crawl(
      store, diff, [&](const DiffEntry& entry) { write_entry(entry, format, std::exchange(is_first, false), file); });
  if (!done) return std::unexpected(std::move(done.error()));
  write_end(diff, format, file);
  if (auto finished = file.finish(); !finished) return std::unexpected(std::move(finished.error()));
  return diff;
}

}  // namespace argiope
