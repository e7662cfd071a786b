// A page as all who take it read it: its charset, its text in UTF-8, its links and references, what reports want of it,
// its words, its tree. Each is made when it is first asked for, and once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/document/document.hpp"
#include "argiope/web/detail/charset.hpp"
#include "argiope/web/http.hpp"
#include "argiope/web/link_scanner.hpp"
#include "argiope/web/url.hpp"
#include "crawl/page/internal/link_resolver.hpp"
#include "web/html/internal/page_references.hpp"
#include "web/html/internal/page_survey.hpp"
#include "web/html/internal/page_words.hpp"

namespace argiope {

// Memory for what is found in one pass over a page. Pages use it one after the other.
struct PageBuffers {
  ScanResult scan;
  PageReferences references;
  PageWordReader words;
};

// The buffers of pages that are read on one thread: as many as there are pages being read at a time, mostly one.
class PageBufferPool {
 public:
  std::unique_ptr<PageBuffers> take() {
    if (idle_.empty()) return std::make_unique<PageBuffers>();
    auto buffers = std::move(idle_.back());
    idle_.pop_back();
    return buffers;
  }
  void give(std::unique_ptr<PageBuffers> buffers) { idle_.push_back(std::move(buffers)); }

 private:
  std::vector<std::unique_ptr<PageBuffers>> idle_;
};

bool is_style_sheet(std::string_view content_type) noexcept;

// How a page is read, and which parts of it are found in one pass.
struct PageReading {
  // The name that a meta element may address instead of "robots".
  std::string_view agent{};
  std::size_t max_links = ScanOptions{}.max_links;
  bool note_places = false;        // as ScanOptions has it
  bool find_references = false;    // in the same pass as the links
  PageBufferPool* pool = nullptr;  // outlives the reading; null: the page has buffers of its own
};

// Lifetime: refers to the URL and the bytes of its last begin(), which stay as and where they are meanwhile. What it
//           gives is valid until end() or begin(), text and tree until begin().
// Threads:  one at a time; once there is a text, document() and what it needs may run on another than all else.
class PageView {
 public:
  // How often each was made. For tests.
  struct Made {
    std::uint32_t texts = 0, scans = 0, surveys = 0, words = 0, trees = 0;
  };

  PageView() = default;
  PageView(const Url& url, std::string_view body, std::string_view content_type) { begin(url, body, content_type); }
  PageView(const PageView&) = delete;
  PageView& operator=(const PageView&) = delete;
  ~PageView() { end(); }

  // From here on it is a view of this page.
  void begin(const Url& url, std::string_view body, std::string_view content_type);
  // Before the first scan(); else what was asked for before counts.
  void read_as(const PageReading& reading) noexcept { reading_ = reading; }
  // The parts that were found in passes over it are not needed any more.
  void end();

  const Url& url() const noexcept { return *url_; }
  std::string_view body() const noexcept { return body_; }
  std::string_view content_type() const noexcept { return content_type_; }
  // By its type, or without one by its first bytes.
  bool is_html();

  const CharsetDecision& charset();
  // The body without its byte order mark, in UTF-8: itself where that is what it is, or all is ASCII. Text that is no
  // UTF-8 in a page that says it is stays as it is.
  std::string_view text();
  // Whether text() is the body, byte for byte.
  bool is_text_as_it_came();
  // Its links, as read_as() says.
  const ScanResult& scan();
  // In the pass of scan(), where that looks for them.
  const PageReferences& references();
  // Against the base and in the encoding of the page.
  const LinkResolver& resolver();
  // With at most SurveyOptions' own number of links.
  const PageSurvey& survey();
  const PageWords& words();
  // Errors: those of Document::parse().
  const Result<Document>& document();

  const Made& made() const noexcept { return made_; }

 private:
  PageBuffers& buffers();

  const Url* url_ = nullptr;
  std::string_view body_;
  std::string_view content_type_;
  PageReading reading_;
  std::optional<bool> is_html_;
  std::optional<CharsetDecision> charset_;
  std::optional<std::string_view> text_;
  std::string transcoded_;
  std::unique_ptr<PageBuffers> buffers_;
  bool is_scanned_ = false;
  bool has_references_ = false;
  LinkResolver resolver_;  // begun by scan()
  std::optional<PageSurvey> survey_;
  std::optional<PageWords> words_;
  std::optional<Result<Document>> document_;
  Made made_;
};

// An answer that those who take it may keep without a copy.
//
// Threads: the visit's; of what is shared see PageView.
struct FetchedPage : std::enable_shared_from_this<FetchedPage> {
  Url url;
  HttpResponse response;
  PageView view;  // of the two, from begin() on

  // The response has come. It stays as it is from here on, but for fields that nobody reads who keeps it.
  void begin(const Url& asked) {
    url = asked;
    view.begin(url, response.body, response.headers.content_type);
  }
  // For those who keep it: it is not used for another answer.
  std::shared_ptr<FetchedPage> share() {
    is_shared_ = true;
    return shared_from_this();
  }
  bool is_shared() const noexcept { return is_shared_; }

 private:
  bool is_shared_ = false;
};

}  // namespace argiope
