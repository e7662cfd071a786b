// Answers what scripts ask of a page's HTML or XML: `select` in docs/processors.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "argiope/base/error.hpp"
#include "argiope/document/document.hpp"
#include "project/process/internal/processor.hpp"
#include "project/process/internal/processor_messages.hpp"

namespace argiope {

// Of one visit, from its first query to its `done`.
//
// Threads: any, one at a time; it shares nothing, so that the queries of a visit may be answered on an executor one
//          after another, and it may be destroyed there. Make one when the first query comes: it copies the body.
// Cost:    of the first query that of reading the page; of each up to a second of hostile ones (Document::kMostSteps,
//          twice).
// Memory:  the page and its tree (DocumentLimits); kMostKeptDocuments, kMostKeptBytes and kMostKeptNodes of what came
//          with queries, beside the last of it (a document of one node takes 200 KB, a node of a long one 0.5 KB); an
//          answer of up to kMostAnswerBytes.
class PageSelector {
 public:
  static constexpr std::size_t kMostAnswerBytes = 16 * 1024 * 1024;
  static constexpr std::size_t kMostKeptBytes = 16 * 1024 * 1024;
  static constexpr std::size_t kMostKeptNodes = 20'000;
  static constexpr std::size_t kMostKeptDocuments = 32;

  explicit PageSelector(const PageResponse& response);

  // The matches, as a JSON list for write_selected(). Does not count queries: OpenVisit::count_query() does.
  // Errors: invalid_input for a selector that is wrong, for nodes that are none or of several documents, and
  //         `query.wrong`; too_large for a page, a selector, a time or an answer beyond its bound. Nodes of the oldest
  //         documents of queries are none any more when there are too many of them.
  Result<std::string> select(const SelectQuery& query);

 private:
  // A document, and the numbers of its nodes: from `first` on.
  struct Known {
    Document document;
    std::uint64_t first = 0;
    std::size_t bytes = 0;  // of its text, and of its links, which are absolute
  };

  Result<const Known*> document_of(const SelectQuery& query, std::vector<Match>& within);
  Result<const Known*> page();
  Result<const Known*> add_document(const std::string& html);
  const Known* find(std::uint64_t node) const noexcept;
  void forget_oldest();
  Result<Known> known(Result<Document> document, std::size_t bytes);
  static Result<std::string> told(const Known& known, const std::vector<Match>& matches, const SelectQuery& query);

  const std::string url_;
  const std::string content_type_;
  std::string body_;  // until it is read
  std::optional<Result<Known>> page_;
  std::deque<Known> others_;  // that came with queries, the oldest first
  std::uint64_t next_ = 0;    // the first number of the next document
};

}  // namespace argiope
