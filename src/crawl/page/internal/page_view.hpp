// A page as all who take it read it: its charset, its text in UTF-8, its links and references, what reports want of it,
// its words. Each is made when it is first asked for, and once. Its tree is no part of it: only extractions read one,
// on threads of their own (extraction_rules.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/web/detail/charset.hpp"
#include "argiope/web/http.hpp"
#include "argiope/web/link_scanner.hpp"
#include "argiope/web/url.hpp"
#include "crawl/page/internal/link_resolver.hpp"
#include "crawl/page/internal/page_text.hpp"
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

// The buffers of pages that are read on one thread: as many as there are pages being read at a time, mostly one. Of
// those that are idle a few are kept.
//
// Threads: one.
class PageBufferPool {
 public:
  static constexpr std::size_t kMostIdle = 4;

  std::unique_ptr<PageBuffers> take() {
    if (idle_.empty()) return std::make_unique<PageBuffers>();
    auto buffers = std::move(idle_.back());
    idle_.pop_back();
    return buffers;
  }
  void give(std::unique_ptr<PageBuffers> buffers) {
    if (idle_.size() < kMostIdle) idle_.push_back(std::move(buffers));
  }
  std::size_t idle() const noexcept { return idle_.size(); }

 private:
  std::vector<std::unique_ptr<PageBuffers>> idle_;
};

bool is_style_sheet(std::string_view content_type) noexcept;

// How a page is read, and which parts of it are found in one pass.
struct PageReading {
  // The name that a meta element may address instead of "robots". Outlives the reading, as the pool does.
  std::string_view agent{};
  std::size_t max_links = ScanOptions{}.max_links;
  bool note_places = false;      // as ScanOptions has it
  bool find_references = false;  // in the same pass as the links
  // Null: the page has buffers of its own, as it must where it is read on other threads than its owner's.
  PageBufferPool* pool = nullptr;
};

// Lifetime: refers to the URL and the bytes of its last begin(), which stay as and where they are meanwhile. What it
//           gives is valid until end() or begin(); of the text see PageText.
// Threads:  its owner's. The text is for any; links (is_html(), scan(), resolver()) are for any without a pool, while
//           the owner waits.
class PageView {
 public:
  // How often each was made. For tests.
  struct Made {
    std::uint32_t texts = 0, scans = 0, surveys = 0, words = 0;
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
  // The owner does not read it any more: what was found in passes over it is gone. May be called twice.
  void end();

  const Url& url() const noexcept { return *url_; }
  std::string_view body() const noexcept { return text_.body(); }
  std::string_view content_type() const noexcept { return text_.content_type(); }
  // By its type, or without one by its first bytes.
  bool is_html() const noexcept;

  PageText& page_text() noexcept { return text_; }
  const CharsetDecision& charset() { return text_.charset(); }
  std::string_view text() { return text_.utf8(); }
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

  Made made() const;

 private:
  PageBuffers& buffers();

  const Url* url_ = nullptr;
  PageText text_;
  bool is_begun_ = false;  // and not ended
  PageReading reading_;
  std::mutex scanning_;  // page handlers may ask for links on several threads
  std::unique_ptr<PageBuffers> buffers_;
  bool is_scanned_ = false;
  bool has_references_ = false;
  LinkResolver resolver_;  // begun by scan()
  std::optional<PageSurvey> survey_;
  std::optional<PageWords> words_;
  Made made_;  // but for the text
};

// An answer that those who take it may keep without a copy.
//
// Threads: the visit's. Those who keep it may read url, response and text on theirs.
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
  // The text, for those who keep the page to read it: no memory of it is left once they and the visit have let go.
  std::shared_ptr<PageText> share_text() {
    PageText& text = view.page_text();
    text.hold();
    return {&text, [page = share()](PageText* held) { held->let_go(); }};
  }
  bool is_shared() const noexcept { return is_shared_; }

 private:
  bool is_shared_ = false;
};

}  // namespace argiope
