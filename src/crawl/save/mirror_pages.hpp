// Pages and style sheets as they are in a mirror: a link to what is saved leads to its file, any other to where it is
// on the web.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "argiope/web/url.hpp"
#include "crawl/page/internal/link_resolver.hpp"
#include "crawl/save/mirror_plan.hpp"
#include "web/html/internal/page_references.hpp"
#include "web/html/internal/page_rewriter.hpp"

namespace argiope {

// Threads: one at a time; several beside each other.
class MirrorPages {
 public:
  // Both outlive it.
  MirrorPages(const MirrorIndex& index, const MirrorPlan& plan) : index_(index), plan_(plan) {}
  MirrorPages(const MirrorPages&) = delete;

  // `text` is what came as `record`, and `path` its file; `references`, where the log has some, are those of the text,
  // which then is not gone through again. Replaces what `out` held.
  void render(const MirrorRecord& record, std::string_view path, std::string_view text, std::string_view references,
              std::string& out);

 private:
  // The text that replaces a link's, for all pages of a folder.
  struct Known {
    Rewritten what = Rewritten::as_it_was;
    std::string text;
  };
  void begin(std::string_view path, std::string_view base_href, std::string_view encoding);
  void render_page(const MirrorRecord& record, std::string_view path, std::string_view text,
                   std::string_view references, std::string& out);
  void render_style(const MirrorRecord& record, std::string_view path, std::string_view text, std::string& out);
  Rewritten rewrite(std::string_view url, ReferenceRole role, std::string& out);
  Known decide(std::string_view url, ReferenceRole role);
  std::string_view file_of(std::string_view href, std::string& fragment);

  const MirrorIndex& index_;
  const MirrorPlan& plan_;
  LinkResolver resolver_;
  PageReferences references_;
  Url page_, target_, next_;
  std::string_view path_;
  std::uint64_t context_ = 0;  // of what a page's relative links mean
  bool has_base_ = false;
  std::string transcoded_;
  std::unordered_map<std::uint64_t, Known> known_;
  std::size_t known_bytes_ = 0;
};

}  // namespace argiope
