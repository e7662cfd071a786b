// ResultSink: one kind of sink. ResultSinks decides what is read from the feed, when to try again and what is stored.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "project/results/internal/result_sinks.hpp"
#include "project/rules/internal/project_definition.hpp"
#include "project/store/internal/page_store.hpp"

namespace argiope {

// Events in their order; never empty.
struct SinkBatch {
  std::vector<FeedRow> rows;

  std::int64_t first() const noexcept { return rows.front().number; }
  std::int64_t last() const noexcept { return rows.back().number; }
};

// Why a batch was not taken.
struct SinkTrouble {
  std::string text;
  // The receiver has said when to come again: nothing is wrong but that.
  std::optional<Duration> wait = {};
};
template <class T>
using SinkResult = std::expected<T, SinkTrouble>;
inline std::unexpected<SinkTrouble> sink_trouble(std::string text) {
  return std::unexpected(SinkTrouble{std::move(text)});
}
inline std::unexpected<SinkTrouble> sink_trouble(const Error& error) { return sink_trouble(error.message); }

// The things that a sink knows from the start.
struct SinkContext {
  std::string project;
  ProjectSink sink;
  std::vector<std::string> columns;  // of CSV: the fields of the rules that it is for; empty: values are one column
  SinkMeans means;
  std::string place;  // as it was stored last
  // Stores a place with the cursor as it is, and returns when it is committed: for what must be known before the next
  // step.
  std::function<Coro<Result<void>>(std::string place)> keep;

  void log(const std::string& text) const {
    if (means.log) means.log(sink.name, text);
  }
  // Against the project's folder.
  std::string path(const std::string& named) const;
  // The secret, without the line's end; empty: no file or variable is said. Reads the file each time, on this thread.
  Result<std::string> secret() const;
};

class ResultSink {
 public:
  virtual ~ResultSink() = default;
  // Gives the place that is to be stored with the batch's end as the cursor. After a trouble the same events come
  // again, perhaps with others behind them or fewer. One call at a time; what it throws is a trouble, too.
  // Cancel: what of it was taken is unknown.
  virtual Coro<SinkResult<std::string>> deliver(const SinkBatch& batch) = 0;
};

std::shared_ptr<ResultSink> make_file_sink(std::shared_ptr<SinkContext> context);
std::shared_ptr<ResultSink> make_webhook_sink(std::shared_ptr<SinkContext> context);
std::shared_ptr<ResultSink> make_command_sink(std::shared_ptr<SinkContext> context);
std::shared_ptr<ResultSink> make_queue_sink(std::shared_ptr<SinkContext> context);
std::shared_ptr<ResultSink> make_postgresql_sink(std::shared_ptr<SinkContext> context);

// --- how events are written

// The page's URL, or its name where that is no URL's.
std::string_view sink_page(const FeedRow& row) noexcept;
// {"number":7,"project":"shop","page":"https://…","part":"","rule":"item","news":"added","at":"2026-…","value":{…}},
// without an end of line. `name` besides, where the page's is not its URL.
void append_event_json(std::string& out, std::string_view project, const FeedRow& row);
// All of them, one a line.
std::string events_as_lines(std::string_view project, const SinkBatch& batch);
// "number,project,page,part,rule,news,at," and the columns, or "value" where there are none.
std::string event_csv_header(const std::vector<std::string>& columns);
void append_event_csv(std::string& out, std::string_view project, const std::vector<std::string>& columns,
                      const FeedRow& row);

}  // namespace argiope
