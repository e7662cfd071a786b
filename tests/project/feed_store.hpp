// A store of pages that has a feed and the rows of sinks, and nothing else: for tests of who reads them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "project/store/internal/page_store.hpp"

namespace argiope {

class FeedStore : public PageStore {
 public:
  std::vector<FeedRow> feed;
  std::map<std::string, SinkRow> rows;  // committed
  std::vector<SinkRow> submitted;       // in their order
  std::optional<Error> failed;
  std::optional<Error> read_failure;
  std::size_t most_read = 0;  // of one read_feed()

  static FeedRow event(std::int64_t number, std::string value = "{}", std::string rule = "item") {
    const std::string url = "http://shop.test/" + std::to_string(number);
    return {.number = number,
            .project = 1,
            .page = first_page_id(1) + number,
            .page_name = url,
            .rule = std::move(rule),
            .news = ResultNews::added,
            .value = std::move(value),
            .at = std::chrono::sys_days{std::chrono::year{2026} / 11 / 23} + std::chrono::milliseconds{number}};
  }
  void add(std::int64_t from, std::int64_t to, const std::string& value = "{}") {
    for (std::int64_t number = from; number <= to; ++number) feed.push_back(event(number, value));
  }

  void submit(PageBatch batch) override {
    for (SinkRow& row : batch.sinks) {
      submitted.push_back(row);
      rows[row.name] = row;
    }
  }
  std::uint64_t begin_flush() override { return ++flushes_; }
  bool flushed(std::uint64_t flush) const override { return flush <= flushes_ && asked_++ % 3 == 2; }
  std::optional<Error> failure() const override { return failed; }
  Result<std::vector<FeedRow>> read_feed(ProjectId project, std::int64_t after, std::size_t most) override {
    if (read_failure) return std::unexpected(*read_failure);
    most_read = std::max(most_read, most);
    std::vector<FeedRow> found;
    auto at = std::ranges::upper_bound(feed, after, {}, &FeedRow::number);
    for (; at != feed.end() && found.size() < most; ++at) {
      if (at->project == project) found.push_back(*at);
    }
    return found;
  }
  Result<std::vector<SinkRow>> sinks(ProjectId project) override {
    if (read_failure) return std::unexpected(*read_failure);
    std::vector<SinkRow> found;
    for (const auto& [name, row] : rows) {
      if (row.project == project) found.push_back(row);
    }
    return found;
  }

  Result<void> flush() override { return {}; }
  std::size_t backlog() const override { return 0; }
  void on_feed(std::function<void()>) override {}
  Result<std::vector<ProjectRecord>> projects() override { return none(); }
  ProjectId next_project_id() override { return 2; }
  Result<std::vector<ProjectVersion>> versions(ProjectId, std::size_t) override { return none(); }
  Result<std::optional<ProjectVersion>> version(ProjectId, std::int64_t) override { return none(); }
  Result<std::vector<HostRow>> hosts() override { return none(); }
  Result<void> scan_known(ProjectId, const std::function<bool(const KnownRow&)>&) override { return none(); }
  Result<std::vector<PageRecord>> pages(std::span<const PageId>) override { return none(); }
  Result<void> scan_pages(ProjectId, PageId, const std::function<bool(const PageRecord&)>&) override { return none(); }
  Result<std::optional<PageRecord>> find_page(ProjectId, std::string_view) override { return none(); }
  Result<void> scan_results(ProjectId, const std::optional<ResultPlace>&,
                            const std::function<bool(const ResultRow&)>&) override {
    return none();
  }
  Result<std::uint64_t> count_results(ProjectId) override { return none(); }
  Result<std::vector<FeedRow>> read_feed_back(ProjectId, std::int64_t, std::size_t, std::size_t) override {
    return none();
  }
  Result<std::vector<RoundRecord>> rounds(ProjectId, std::size_t) override { return none(); }
  Result<void> close() override { return {}; }

 private:
  static std::unexpected<Error> none() { return fail(Errc::unsupported, "it has a feed alone"); }
  std::uint64_t flushes_ = 0;
  mutable std::uint64_t asked_ = 0;
};

}  // namespace argiope
