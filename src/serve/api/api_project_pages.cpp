// The pages of projects, their results, and what becomes of those.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "base/internal/printable.hpp"
#include "project/process/internal/asked_pages.hpp"
#include "project/results/internal/result_export.hpp"
#include "serve/api/project_call.hpp"
#include "serve/base/without_secrets.hpp"
#include "web/text/internal/lower_case.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostPagesLooked = 20'000;    // for one page of a list, past pages of other states
constexpr std::size_t kMostResultsLooked = 20'000;  // the same, past those of other rules
// Of these what is read in one go, so that others are answered between.
constexpr std::size_t kRowsOfSlice = 200;
constexpr std::size_t kBytesOfSlice = 256 * 1024;
constexpr std::size_t kMostFileNameBytes = 100;
constexpr std::size_t kMostPagesAsked = 10'000;
constexpr std::uint64_t kMostCursor = (std::uint64_t{1} << 53) - 1;
constexpr std::size_t kMostPageBytes = 16 * 1024 * 1024;  // a page of results ends behind the one that is over

void write_known(JsonWriter& json, const KnownPage& page) {
  json.member("state", to_string(page.state));
  json.member("waits_for", page.state == PageState::waiting ? std::optional(to_string(page.wait)) : std::nullopt);
  json.member("priority", page.priority);
  json.member("due_at", page.due);
  json.member("succeeded_at", page.succeeded_at);
  json.member("ended_at", page.ended_at);
  json.member("retried", page.retried);
}

// Cost: that of reading both once, whatever they are: pages choose how they are called.
bool contains_ignoring_case(std::string_view text, std::string_view part_in_lower_case) {
  const std::string lower = in_lower_case(text);
  return ::memmem(lower.data(), lower.size(), part_in_lower_case.data(), part_in_lower_case.size()) != nullptr;
}

PageSettings settings_of(const PageRecord& page) {
  if (page.settings.empty()) return {};
  return read_settings(page.settings).value_or(PageSettings{});
}

// `tag`: its own, which goes before its rule's.
void write_page(JsonWriter& json, const PageRecord& page, const PageSettings& settings) {
  json.member("number", number_of(page.id));
  json.member("page", page.name);
  json.member("url", page.url.empty() ? page.name : page.url);
  json.member("rule", page.rule);
  write_known(json, page.known);
  json.member("tag", settings.tag.value);
  json.member("status_code", page.status_code);
  json.member("error", page.error);
}

// --- pages -----------------------------------------------------------------------------------------------------------

struct PagesFound {
  std::vector<PageRecord> pages;
  std::optional<std::uint64_t> next;
};

struct PagesWanted {
  std::optional<PageState> state;
  std::optional<std::string> rule;
  std::string filter;  // in its name or URL, in small letters; ASCII letters count without case
  std::uint64_t after = 0;
  std::size_t limit = 0;

  bool takes(const PageRecord& page) const {
    return (!state || page.known.state == *state) && (!rule || page.rule == *rule) &&
           (filter.empty() || contains_ignoring_case(page.name, filter) || contains_ignoring_case(page.url, filter));
  }
};

// How far one go may read.
class Slice {
 public:
  // Whether another row may be read.
  bool has_room() const noexcept { return rows_ < kRowsOfSlice && bytes_ < kBytesOfSlice; }
  void add(std::size_t bytes) noexcept {
    ++rows_;
    bytes_ += bytes;
  }

 private:
  std::size_t rows_ = 0, bytes_ = 0;
};

// `looked`: how many pages have been, those of slices before this one included. True: there may be more behind `last`.
Result<bool> find_some_pages(const NamedProject& project, const PagesWanted& wanted, PagesFound& found,
                             std::size_t& looked, std::uint64_t& last) {
  bool more = false;
  Slice slice;
  const PageId behind = first_page_id(project.now.id) - 1 + static_cast<PageId>(last);
  auto scanned = project.of.store.scan_pages(project.now.id, behind, [&](const PageRecord& page) {
    if (found.pages.size() == wanted.limit || looked == kMostPagesLooked) {
      found.next = last;
      return false;
    }
    if (more = !slice.has_room(); more) return false;
    ++looked;
    slice.add(page.name.size() + page.url.size() + page.save.size() + page.context.size());
    last = number_of(page.id);
    if (wanted.takes(page)) found.pages.push_back(page);
    return true;
  });
  if (!scanned) return std::unexpected(std::move(scanned.error()));
  return more;
}

Coro<Result<PagesFound>> find_pages(const NamedProject& project, const PagesWanted& wanted) {
  PagesFound found;
  std::size_t looked = 0;
  std::uint64_t last = wanted.after;
  while (co_await or_return(find_some_pages(project, wanted, found, looked, last))) co_await sleep(Duration{});
  co_return found;
}

Coro<Result<ServerResponse>> list_pages(ApiState& api, ApiCall& call) {
  ApiQuery query(call);
  PagesWanted wanted;
  wanted.after = query.whole("after", 0, (std::uint64_t{1} << kPageNumberBits) - 1, 0);
  wanted.limit = query.whole("limit", 1, kMostInPage, kUsualPage);
  const auto state = query.one_of("state", {"waiting", "visiting", "done", "failed", "cancelled"});
  if (state) wanted.state = static_cast<PageState>(*state);
  wanted.rule = query.text("rule");
  wanted.filter = in_lower_case(query.text("filter").value_or(""));
  co_await or_return(query.finish());
  const NamedProject project = co_await or_return(project_in_path(api, call));
  const PagesFound found = co_await or_return(find_pages(project, wanted));
  co_return json_answer([&](JsonWriter& json) {
    json.array("pages", [&] {
      for (const PageRecord& page : found.pages) json.object([&] { write_page(json, page, settings_of(page)); });
    });
    json.member("next", found.next);
  });
}

constexpr std::string_view kPageMissing = "page: the name of a page, which is its URL unless it was given another";

// Errors: not_found.
Result<PageRecord> find_page(const NamedProject& project, std::string_view name) {
  const std::optional<PageId> id = project.of.engine.page_id(project.now.name, name);
  if (id) {
    auto pages = project.of.store.pages(std::span(&*id, 1));
    if (!pages) return std::unexpected(std::move(pages.error()));
    if (!pages->empty() && (pages->front().name == name || pages->front().name == usual_page_name(name)))
      return std::move(pages->front());
  }
  return fail(Errc::not_found,
              fmt::format("project {} knows no page {}", in_quotes(project.now.name), in_quotes(name)));
}

std::string_view or_null(std::string_view json) { return json.empty() ? "null" : json; }

Coro<Result<ServerResponse>> show_page(ApiState& api, ApiCall& call) {
  ApiQuery query(call);
  const std::string name = query.text("page").value_or("");
  co_await or_return(query.finish());
  if (name.empty()) co_return call.refuse_parameter("page", std::string(kPageMissing));
  const NamedProject project = co_await or_return(project_in_path(api, call));
  const PageRecord page = co_await or_return(find_page(project, name));
  std::vector<PageRecord> from;
  if (page.from != 0) from = co_await or_return(project.of.store.pages(std::span(&page.from, 1)));
  const PageSettings settings = settings_of(page);
  const bool hides = call.caller.scope < TokenScope::admin;
  co_return json_answer([&](JsonWriter& json) {
    write_page(json, page, settings);
    json.member("again", page.known.again);
    json.key("settings");
    json.raw(hides ? settings_without_secrets(stored(settings)) : stored(settings));
    json.key("context");
    json.raw(or_null(page.context));
    json.key("save");
    json.raw(or_null(page.save));
    json.member("crashes", page.crashes);
    json.member("etag", page.etag);
    json.member("last_modified", page.last_modified);
    json.member("round", page.round == 0 ? std::nullopt : std::optional(page.round));
    json.member("from", from.empty() ? std::nullopt : std::optional(from.front().name));
    json.key("last_visit");
    json.raw(or_null(page.track));
  });
}

Coro<Result<ServerResponse>> explain_page(ApiState& api, ApiCall& call) {
  ApiQuery query(call);
  const std::string page = query.text("page").value_or("");
  co_await or_return(query.finish());
  if (page.empty()) co_return call.refuse_parameter("page", std::string(kPageMissing));
  const NamedProject project = co_await or_return(project_in_path(api, call));
  const PageExplanation why = co_await or_return(project.of.engine.explain(project.now.name, page));
  co_return json_answer([&](JsonWriter& json) {
    json.member("page", why.name);
    json.member("known", why.known);
    json.member("reason", why.reason);
    json.member("words", why.words);
    json.member("until", why.until);
    json.member("rule", why.rule);
    if (!why.known) return;
    write_known(json, why.page);
  });
}

void write_decision(JsonWriter& json, const AskDecision& decision) {
  json.member("verdict", to_string(decision.verdict));
  json.member("reason", to_string(decision.reason));
  json.member("until", decision.until == WallTime::max() ? std::nullopt : std::optional(decision.until));
}

// Of one of several, which is refused by itself.
Result<std::string> page_text(const JsonValue& entry) {
  static constexpr JsonLeftAlone kContext[] = {{"", "context"}};
  JsonErrors errors;
  refuse_repeated_within(entry.telling(errors), kContext);
  if (errors) return std::unexpected(errors.error());
  return entry.json();
}

// A page, or several under "pages", each of which is answered for itself.
Coro<Result<ServerResponse>> ask_pages(ApiState& api, ApiCall& call) {
  const NamedProject project = co_await or_return(project_in_path(api, call));
  const JsonValue root = co_await or_return(call.object());
  JsonMembers in(root);
  in.refuse_repeated();
  const bool are_many = in.has("pages");
  std::vector<Result<std::string>> texts;
  if (are_many) {
    const JsonValue& list = *in.find("pages");
    in.finish("beside pages there is none");
    if (!list.is_list() || list.size() > kMostPagesAsked) {
      list.wrong(fmt::format("a list of at most {} pages", kMostPagesAsked));
    } else {
      list.for_each([&](const JsonValue& entry) { texts.push_back(page_text(entry)); });
    }
  } else {
    texts.emplace_back(root.json());
  }
  co_await or_return(call.read_all());
  PageEngine& engine = project.of.engine;
  std::vector<Result<AskDecision>> replies;
  replies.reserve(texts.size());
  for (const auto& text : texts) {
    auto page = text ? read_asked_page(*text) : std::unexpected(text.error());
    replies.push_back(page ? engine.ask(project.now.name, std::move(*page)) : std::unexpected(std::move(page.error())));
  }
  co_await or_return(committed(project.of.store));
  if (!are_many) {
    const AskDecision decision = co_await or_return(std::move(replies.front()));
    co_return json_answer([&](JsonWriter& json) { write_decision(json, decision); });
  }
  co_return json_answer([&](JsonWriter& json) {
    json.array("replies", [&] {
      for (const auto& reply : replies) {
        json.object([&] {
          if (reply) return write_decision(json, *reply);
          json.key("error");
          write(json, problem_of(reply.error()));
        });
      }
    });
  });
}

Coro<Result<ServerResponse>> send_message(ApiState& api, ApiCall& call) {
  const NamedProject project = co_await or_return(project_in_path(api, call));
  const JsonValue root = co_await or_return(call.object());
  PageMessage message = read_outside_message(root, project.now.name);
  co_await or_return(call.read_all());
  const std::string page = page_of_message(message.url);
  co_await or_return(project.of.engine.send_message(kSentFromOutside, std::move(message)));
  co_await or_return(committed(project.of.store));
  co_return json_answer([&](JsonWriter& json) { json.member("page", page); });
}

Coro<Result<ServerResponse>> recent_visits(ApiState& api, ApiCall& call) {
  const NamedProject project = co_await or_return(project_in_path(api, call));
  co_return json_answer([&](JsonWriter& json) {
    json.array("visits", [&] {
      for (const VisitNote& visit : project.of.engine.recent(project.now.name)) {
        json.object([&] {
          json.member("at", visit.at);
          json.member("page", visit.name);
          json.member("url", visit.url);
          json.member("rule", visit.rule);
          json.member("status_code", visit.status);
          json.member("succeeded", visit.succeeded);
          json.member("gave_up", visit.gave_up);
          json.key("fetch_ms");
          json.fixed(milliseconds_of(visit.fetched), 3);
          json.key("process_ms");
          json.fixed(milliseconds_of(visit.processed), 3);
          json.member("pages", visit.pages);
          json.member("results", visit.results);
          json.member("error", visit.error);
        });
      }
    });
  });
}

// --- results ---------------------------------------------------------------------------------------------------------

// "17/size": behind that part of the page of that number.
std::string cursor_of(const PageStore::ResultPlace& place) {
  return fmt::format("{}/{}", number_of(place.page), place.part);
}

Result<std::optional<PageStore::ResultPlace>> place_behind(ApiCall& call, const std::optional<std::string>& cursor,
                                                           ProjectId project) {
  if (!cursor) return std::nullopt;
  const std::size_t slash = std::min(cursor->find('/'), cursor->size());
  const auto number = plain_number(std::string_view(*cursor).substr(0, slash));
  if (!number || slash == cursor->size() || *number >> kPageNumberBits != 0) {
    return call.refuse_parameter("after", fmt::format("after {}: what an answer had as next", in_quotes(*cursor)));
  }
  return PageStore::ResultPlace{.page = first_page_id(project) - 1 + static_cast<PageId>(*number),
                                .part = cursor->substr(slash + 1)};
}

void write_result(JsonWriter& json, const ResultRow& row) {
  json.object([&] {
    json.member("page", row.page_name);
    json.member("url", row.url);
    json.member("rule", row.rule);
    json.member("part", row.part);
    json.member("added_at", row.added_at);
    json.member("changed_at", row.changed_at);
    json.key("value");
    json.raw(row.value);
  });
}

// The fields of the project's rules as they are now; none where its script says what there is.
std::vector<std::string> columns_now(const NamedProject& project) {
  const auto definition = project.of.engine.definition(project.now.name);
  return definition ? columns_of(*definition) : std::vector<std::string>{};
}

struct ResultsWanted {
  std::optional<PageStore::ResultPlace> after;
  std::optional<std::string> rule;
  std::optional<PageId> page;
  std::size_t limit = 0;
};

struct ResultsFound {
  std::vector<ResultRow> rows;
  std::size_t bytes = 0, looked = 0;
  std::optional<PageStore::ResultPlace> last{};  // how far it came
  std::optional<std::string> next;
};

// True: there may be more behind `found.last`.
Result<bool> find_some_results(const NamedProject& project, const ResultsWanted& wanted, ResultsFound& found) {
  bool more = false;
  Slice slice;
  auto scanned = project.of.store.scan_results(project.now.id, found.last, [&](const ResultRow& row) {
    if (wanted.page && row.page != *wanted.page) return false;
    if (found.rows.size() == wanted.limit || found.bytes > kMostPageBytes || found.looked == kMostResultsLooked) {
      found.next = cursor_of(*found.last);
      return false;
    }
    if (more = !slice.has_room(); more) return false;
    ++found.looked;
    slice.add(row.value.size());
    found.last = {.page = row.page, .part = row.part};
    if (wanted.rule && row.rule != *wanted.rule) return true;
    found.bytes += row.value.size();
    found.rows.push_back(row);
    return true;
  });
  if (!scanned) return std::unexpected(std::move(scanned.error()));
  return more;
}

Coro<Result<ResultsFound>> find_results(const NamedProject& project, const ResultsWanted& wanted) {
  ResultsFound found;
  found.last = wanted.after;
  // Behind all parts of the page before it: no part, which is UTF-8, is beyond that byte.
  if (wanted.page && !wanted.after) found.last = PageStore::ResultPlace{.page = *wanted.page - 1, .part = "\xff"};
  while (co_await or_return(find_some_results(project, wanted, found))) co_await sleep(Duration{});
  co_return found;
}

Coro<Result<ServerResponse>> page_of_results(const NamedProject& project, const ResultsWanted& wanted) {
  const std::vector<std::string> columns = columns_now(project);
  const ResultsFound found = co_await or_return(find_results(project, wanted));
  co_return json_answer([&](JsonWriter& json) {
    json.array("results", [&] {
      for (const ResultRow& row : found.rows) write_result(json, row);
    });
    json.array("columns", [&] {
      for (const std::string& column : columns) json.value(column);
    });
    json.member("next", found.next);
  });
}

// "attachment; filename="shop-results.csv"": of a name what every system takes in a file's name.
std::string as_download(std::string_view project, std::string_view ending) {
  std::string name(project.substr(0, kMostFileNameBytes));
  std::ranges::replace_if(
      name, [](char c) { return !is_alnum(c) && c != '-' && c != '_'; }, '_');
  return fmt::format("attachment; filename=\"{}-results.{}\"", name, ending);
}

Coro<void> send_results(std::shared_ptr<ResultExport> work, BodyWriter& out) {
  std::string piece;
  for (bool more = true; more && !out.server_stops();) {
    piece.clear();
    auto stepped = work->step(piece);
    // The client sees that its answer was cut off.
    if (!stepped) throw std::runtime_error(stepped.error().message);
    more = *stepped;
    co_await out.write(piece);
    co_await sleep(Duration{});
  }
}

// All results, of which only a step is ever in memory, however slowly they are taken; cut off when the caller's right
// ends.
ServerResponse stream_results(const Caller& caller, const NamedProject& project, ResultExportOptions options) {
  using Type = std::pair<std::string_view, std::string_view>;
  const auto [type, ending] = options.format == ExportFormat::csv
                                  ? Type("text/csv; charset=utf-8; header=present", "csv")
                              : options.format == ExportFormat::jsonl ? Type("application/jsonl", "jsonl")
                                                                      : Type("application/json", "json");
  auto work = std::make_shared<ResultExport>(results_of(project.of.store, project.now.id), std::move(options));
  const auto send = [work, right = caller.right](BodyWriter& out) {
    return while_it_holds(right, send_results(work, out));
  };
  ServerResponse response = ServerResponse::streamed(200, std::string(type), send);
  response.headers.emplace_back("Content-Disposition", as_download(project.now.name, ending));
  return response;
}

Coro<Result<ServerResponse>> list_results(ApiState& api, ApiCall& call) {
  ApiQuery query(call);
  const auto format = query.one_of("format", {"json", "jsonl", "csv", "array"}).value_or(0);
  const auto cursor = query.text("after");
  const auto limit_given = query.text("limit");
  const auto page = query.text("page");
  ResultsWanted wanted;
  wanted.limit = query.whole("limit", 1, kMostInPage, kUsualPage);
  wanted.rule = query.text("rule");
  co_await or_return(query.finish());
  const NamedProject project = co_await or_return(project_in_path(api, call));
  if (format == 0) {
    wanted.after = co_await or_return(place_behind(call, cursor, project.now.id));
    if (page) wanted.page = (co_await or_return(find_page(project, *page))).id;
    co_return co_await page_of_results(project, wanted);
  }
  if (cursor || limit_given || page) {
    co_return call.refuse_parameter("format",
                                    "format: as csv, jsonl and array all results come, without after, limit and page");
  }
  constexpr ExportFormat kFormats[] = {ExportFormat::json, ExportFormat::jsonl, ExportFormat::csv, ExportFormat::json};
  ResultExportOptions options{.format = kFormats[format], .columns = {}, .rules = {}};
  if (wanted.rule) options.rules.push_back(*wanted.rule);
  options.columns = columns_now(project);
  co_return stream_results(call.caller, project, std::move(options));
}

void write_news(JsonWriter& json, const FeedRow& row) {
  json.object([&] {
    json.member("number", row.number);
    json.member("at", row.at);
    json.member("news", to_string(row.news));
    json.member("page", row.page_name);
    json.member("url", row.url);
    json.member("rule", row.rule);
    json.member("part", row.part);
    json.key("value");
    json.raw(row.value);
  });
}

// The newest first.
Result<ServerResponse> feed_before(const NamedProject& project, std::int64_t before, std::size_t limit) {
  auto rows = project.of.store.read_feed_back(project.now.id, before, limit + 1, kMostPageBytes);
  if (!rows) return std::unexpected(std::move(rows.error()));
  std::size_t bytes = 0;
  for (const FeedRow& row : *rows) bytes += row.value.size();
  const bool has_more = rows->size() > limit || bytes >= kMostPageBytes;
  if (rows->size() > limit) rows->pop_back();
  return json_answer([&](JsonWriter& json) {
    json.array("feed", [&] {
      for (const FeedRow& row : *rows) write_news(json, row);
    });
    json.member("next", has_more ? std::optional(rows->back().number) : std::nullopt);
  });
}

Coro<Result<ServerResponse>> read_feed(ApiState& api, ApiCall& call) {
  ApiQuery query(call);
  const std::uint64_t after = query.whole("after", 0, kMostCursor, 0);
  const auto before = query.text("before");
  const std::uint64_t before_number = query.whole("before", 1, kMostCursor, kMostCursor);
  const std::size_t limit = query.whole("limit", 1, kMostInPage, kUsualPage);
  const bool is_newest_first = query.one_of("order", {"oldest", "newest"}).value_or(0) == 1;
  co_await or_return(query.finish());
  const NamedProject project = co_await or_return(project_in_path(api, call));
  if (is_newest_first) co_return feed_before(project, static_cast<std::int64_t>(before_number), limit);
  if (before)
    co_return call.refuse_parameter("before", "before: of order=newest; the oldest first are those behind after");
  const auto rows =
      co_await or_return(project.of.store.read_feed(project.now.id, static_cast<std::int64_t>(after), limit));
  co_return json_answer([&](JsonWriter& json) {
    json.array("feed", [&] {
      for (const FeedRow& row : rows) write_news(json, row);
    });
    // Of a feed there is always more to come.
    json.member("next", rows.empty() ? after : static_cast<std::uint64_t>(rows.back().number));
  });
}

}  // namespace

std::vector<ApiRoute> project_page_routes() {
  using enum HttpMethod;
  return {
      reading_much(get, "/v1/projects/{project}/pages", list_pages, true),
      {post, "/v1/projects/{project}/pages", TokenScope::admin, ask_pages, true},
      {post, "/v1/projects/{project}/messages", TokenScope::admin, send_message, true},
      {.method = get, .pattern = "/v1/projects/{project}/pages/explain", .handler = explain_page, .has_query = true},
      {.method = get, .pattern = "/v1/projects/{project}/pages/one", .handler = show_page, .has_query = true},
      {get, "/v1/projects/{project}/recent", TokenScope::read, recent_visits},
      reading_much(get, "/v1/projects/{project}/results", list_results, true),
      reading_much(get, "/v1/projects/{project}/feed", read_feed, true),
  };
}

}  // namespace argiope
