#include "web/html/internal/sitemap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "argiope/web/detail/charset.hpp"
#include "web/html/xml_scanner.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/content_decoder.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostSitemapDepth = 64;     // of elements
constexpr std::size_t kMostStrayEnds = 10'000;    // end tags of what is not open
constexpr std::size_t kMostLinksOfEntry = 2'000;  // beside the page itself; the protocol allows 1,000 images
constexpr std::size_t kMostPrefixes = 100;        // of namespaces
constexpr std::size_t kMostDateBytes = 100;
constexpr int kMostPackings = 2;

// The meaning of an element to a reader of sitemaps. In what is `other` nothing is looked for.
enum class Mark : std::uint8_t {
  other,
  root,
  channel,
  entry,
  extension,  // extension: what groups links of another kind
  location,
  modified,
  published,
  changefreq,
  priority,
  guid,
  asset,
};

enum class Space : std::uint8_t { core, image, video, news, xhtml, atom, dublin, media, unknown };

Space space_of_uri(std::string_view uri) noexcept {
  struct Known {
    std::string_view part;
    Space space;
  };
  constexpr Known kKnown[] = {
      {"sitemap-image", Space::image},        {"sitemap-video", Space::video}, {"sitemap-news", Space::news},
      {"1999/xhtml", Space::xhtml},           {"2005/Atom", Space::atom},      {"purl.org/dc", Space::dublin},
      {"search.yahoo.com/mrss", Space::media}};
  for (const Known& known : kKnown) {
    if (uri.find(known.part) != std::string_view::npos) return known.space;
  }
  return Space::unknown;
}

// Where nothing says what a prefix stands for, what it mostly does.
Space space_of_prefix(std::string_view prefix) noexcept {
  struct Known {
    std::string_view prefix;
    Space space;
  };
  constexpr Known kKnown[] = {{"image", Space::image}, {"video", Space::video}, {"news", Space::news},
                              {"xhtml", Space::xhtml}, {"atom", Space::atom},   {"dc", Space::dublin},
                              {"media", Space::media}};
  for (const Known& known : kKnown) {
    if (prefix == known.prefix) return known.space;
  }
  return Space::unknown;
}

// Makes entries of what a scanner of XML tells.
class SitemapReader {
 public:
  SitemapReader(const SitemapLimits& limits, const std::function<void(const SitemapEntry&)>& visit,
                SitemapReport& report)
      : limits_(limits), visit_(visit), report_(report) {}

  bool goes_on() const noexcept { return !report_.cut && report_.trouble.empty() && !is_foreign_; }

  void start(std::string_view name, const std::vector<XmlAttribute>& attributes) {
    if (!goes_on()) return;
    note_prefixes(attributes);
    const auto [prefix, local] = split(name);
    if (open_.empty() && report_.kind == SitemapKind::none) return begin(name, prefix, local, attributes);
    if (open_.size() >= kMostSitemapDepth) {
      report_.trouble = fmt::format("elements are nested deeper than {}", kMostSitemapDepth);
      return;
    }
    const Space space = space_of(prefix);
    // An entry that was not ended ends where the next begins.
    if (space == Space::core && is_entry_name(local)) close_entry();
    const Mark parent = open_.empty() ? Mark::root : open_.back().mark;
    const Mark mark = mark_of(space, local, parent);
    open_.push_back({name, mark});
    if (mark == Mark::entry) begin_entry(attributes);
    if (wants_text(mark)) text_.clear();
    if (parent == Mark::root || parent == Mark::channel || parent == Mark::entry)
      take_attributes(space, local, attributes);
    if (mark == Mark::guid) guid_is_url_ = value_of(attributes, "isPermaLink") != "false";
  }

  void end(std::string_view name) {
    if (!goes_on()) return;
    for (std::size_t i = open_.size(); i > 0; --i) {
      if (open_[i - 1].name != name) continue;
      while (open_.size() >= i) close_one();
      return;
    }
    if (++stray_ends_ > kMostStrayEnds) report_.trouble = "too many tags end what has not begun";
  }

  void text(std::string_view written) {
    if (wants_text_now())
      append_xml_text(text_,
                      written.substr(0, limits_.most_url_bytes + 1 - std::min(text_.size(), limits_.most_url_bytes)));
  }
  void cdata(std::string_view plain) {
    if (wants_text_now()) text_ += plain.substr(0, limits_.most_url_bytes + 1);
  }

  // All has been read, or as much as can be.
  void finish() {
    if (report_.cut || is_foreign_) return;
    if (!open_.empty() && report_.trouble.empty()) report_.trouble = "it ends before its last element does";
    text_.clear();  // of an element that has not ended
    while (!open_.empty()) close_one();
  }

 private:
  struct Open {
    std::string_view name;
    Mark mark;
  };
  struct Found {
    SitemapLink kind;
    std::string url;
  };

  static std::pair<std::string_view, std::string_view> split(std::string_view name) noexcept {
    const std::size_t colon = name.find(':');
    if (colon == std::string_view::npos) return {{}, name};
    return {name.substr(0, colon), name.substr(colon + 1)};
  }
  static std::string_view value_of(const std::vector<XmlAttribute>& attributes, std::string_view name) noexcept {
    const auto found = std::ranges::find(attributes, name, &XmlAttribute::name);
    return found == attributes.end() ? std::string_view{} : found->value;
  }
  static std::string decoded(std::string_view written) {
    std::string text;
    append_xml_text(text, written);
    return std::string(trim_space(text));
  }
  static constexpr bool wants_text(Mark mark) noexcept { return mark >= Mark::location; }
  bool wants_text_now() const noexcept {
    return !open_.empty() && wants_text(open_.back().mark) && text_.size() <= limits_.most_url_bytes;
  }

  void note_prefixes(const std::vector<XmlAttribute>& attributes) {
    for (const XmlAttribute& attribute : attributes) {
      if (!attribute.name.starts_with("xmlns:") || spaces_.size() >= kMostPrefixes) continue;
      spaces_.insert_or_assign(attribute.name.substr(6), space_of_uri(attribute.value));
    }
  }
  Space space_of(std::string_view prefix) const noexcept {
    if (prefix == core_prefix_) return Space::core;
    const auto found = spaces_.find(prefix);
    return found != spaces_.end() && found->second != Space::unknown ? found->second : space_of_prefix(prefix);
  }

  // The first tag says what the file is.
  void begin(std::string_view name, std::string_view prefix, std::string_view local,
             const std::vector<XmlAttribute>& attributes) {
    core_prefix_ = prefix;
    if (equals_lower(local, "urlset")) {
      report_.kind = SitemapKind::urls;
    } else if (equals_lower(local, "sitemapindex")) {
      report_.kind = SitemapKind::index;
    } else if (equals_lower(local, "rss") || equals_lower(local, "rdf") || local == "feed") {
      report_.kind = SitemapKind::feed;
      is_atom_ = local == "feed";
      if (equals_lower(local, "rdf")) core_prefix_ = {};
    } else {
      is_foreign_ = true;
      return;
    }
    base_ = decoded(value_of(attributes, "xml:base"));
    open_.push_back({name, Mark::root});
  }

  bool is_entry_name(std::string_view local) const noexcept {
    switch (report_.kind) {
      case SitemapKind::urls: return local == "url";
      case SitemapKind::index: return local == "sitemap";
      case SitemapKind::feed: return local == (is_atom_ ? "entry" : "item");
      default: return false;
    }
  }

  Mark mark_of(Space space, std::string_view local, Mark parent) const noexcept {
    const bool in_place = parent == Mark::root || parent == Mark::channel;
    if (space == Space::core && in_place && is_entry_name(local)) return Mark::entry;
    if (report_.kind == SitemapKind::feed) return mark_in_feed(space, local, parent);
    if (parent == Mark::entry) {
      if (space == Space::core) {
        if (local == "loc") return Mark::location;
        if (local == "lastmod") return Mark::modified;
        if (local == "changefreq") return Mark::changefreq;
        if (local == "priority") return Mark::priority;
      }
      const bool groups = space == Space::image || space == Space::video || space == Space::news;
      return groups ? Mark::extension : Mark::other;
    }
    if (parent != Mark::extension) return Mark::other;
    if (space == Space::news && local == "publication_date") return Mark::published;
    const bool is_asset = (space == Space::image && local == "loc") ||
                          (space == Space::video && (local == "content_loc" || local == "thumbnail_loc"));
    return is_asset ? Mark::asset : Mark::other;
  }

  Mark mark_in_feed(Space space, std::string_view local, Mark parent) const noexcept {
    if (space == Space::core && parent == Mark::root && local == "channel") return Mark::channel;
    const bool in_channel = parent == Mark::channel;
    if (parent != Mark::entry && !in_channel) return Mark::other;
    if (is_atom_) {
      if (space != Space::core || in_channel) return Mark::other;
      return local == "updated" ? Mark::modified : local == "published" ? Mark::published : Mark::other;
    }
    if (space == Space::core && local == "link") return Mark::location;
    if (in_channel) return Mark::other;
    if (space == Space::core && local == "guid") return Mark::guid;
    if (space == Space::core && local == "pubDate") return Mark::published;
    if (space == Space::dublin && local == "date") return Mark::published;
    return space == Space::atom && local == "updated" ? Mark::modified : Mark::other;
  }

  void begin_entry(const std::vector<XmlAttribute>& attributes) {
    found_.clear();
    location_.clear();
    guid_.clear();
    changefreq_.clear();
    priority_.clear();
    modified_.reset();
    published_.reset();
    entry_base_ = decoded(value_of(attributes, "xml:base"));
    // RSS 1.0 names the page there, too.
    if (report_.kind == SitemapKind::feed && !is_atom_) about_ = decoded(value_of(attributes, "rdf:about"));
  }

  // Takes the URL of an element that says it in attributes.
  void take_attributes(Space space, std::string_view local, const std::vector<XmlAttribute>& attributes) {
    const bool in_entry = open_.size() > 1 && open_[open_.size() - 2].mark == Mark::entry;
    if (report_.kind == SitemapKind::urls) {
      const bool is_link = (space == Space::xhtml || space == Space::core) && local == "link";
      if (!in_entry || !is_link) return;
      if (has_relation(value_of(attributes, "rel"), "alternate"))
        add(SitemapLink::alternate, value_of(attributes, "href"));
      return;
    }
    if (report_.kind != SitemapKind::feed) return;
    if (is_atom_ && space == Space::core && local == "link") {
      const std::string_view rel = value_of(attributes, "rel");
      const std::string_view href = value_of(attributes, "href");
      if (rel == "enclosure") return add(SitemapLink::enclosure, href, in_entry);
      if (!rel.empty() && rel != "alternate") return;
      if (in_entry && location_.empty()) {
        location_ = decoded(href);
      } else {
        add(in_entry ? SitemapLink::alternate : SitemapLink::page, href, in_entry);
      }
    }
    if (in_entry && !is_atom_ && space == Space::core && local == "enclosure")
      add(SitemapLink::enclosure, value_of(attributes, "url"));
  }
  static bool has_relation(std::string_view rel, std::string_view wanted) {
    bool found = false;
    for_each_token(
        rel, [](char c) { return is_space(c); },
        [&](std::string_view word) { found = found || equals_lower(word, wanted); });
    return found;
  }

  // A link beside that of its entry; one of the feed itself is told at once.
  void add(SitemapLink kind, std::string_view written, bool in_entry = true) {
    if (written.empty() || (in_entry && found_.size() >= kMostLinksOfEntry)) return;
    if (written.size() > limits_.most_url_bytes) {
      ++report_.dropped;
      return;
    }
    if (in_entry) {
      found_.push_back({kind, decoded(written)});
    } else {
      tell({.url = decoded(written), .base = base_, .kind = kind});
    }
  }

  void close_entry() {
    const auto entry = std::ranges::find(open_, Mark::entry, &Open::mark);
    const auto kept = static_cast<std::size_t>(entry - open_.begin());
    while (open_.size() > kept) close_one();
  }

  void close_one() {
    const Mark mark = open_.back().mark;
    open_.pop_back();
    const Mark parent = open_.empty() ? Mark::root : open_.back().mark;
    if (wants_text(mark)) {
      take_text(mark, parent);
      text_.clear();
    }
    if (mark == Mark::entry && !report_.cut) tell_entry();
  }

  void take_text(Mark mark, Mark parent) {
    const std::string_view text = trim_space(text_);
    if (text.empty()) return;
    if (text.size() > limits_.most_url_bytes) {
      ++report_.dropped;
      return;
    }
    switch (mark) {
      case Mark::location:
        if (parent == Mark::channel) return tell({.url = text, .base = base_, .kind = SitemapLink::page});
        if (location_.empty()) location_ = text;
        return;
      case Mark::guid:
        if (guid_is_url_) guid_ = text;
        return;
      case Mark::modified: modified_ = date_of(text); return;
      case Mark::published:
        if (!published_) published_ = date_of(text);
        return;
      case Mark::changefreq: changefreq_ = text.substr(0, kMostDateBytes); return;
      case Mark::priority: priority_ = text.substr(0, kMostDateBytes); return;
      case Mark::asset:
        if (found_.size() < kMostLinksOfEntry) found_.push_back({SitemapLink::image, std::string(text)});
        return;
      default: return;
    }
  }
  static std::optional<FeedDate> date_of(std::string_view text) {
    return text.size() <= kMostDateBytes ? parse_feed_date(text) : std::nullopt;
  }

  void tell_entry() {
    if (report_.entries >= limits_.most_entries) {
      report_.cut = true;
      report_.trouble = fmt::format("only the first {} entries were read", limits_.most_entries);
      return;
    }
    ++report_.entries;
    const bool names_guid = guid_.starts_with("http://") || guid_.starts_with("https://");
    const std::string& url = !location_.empty() ? location_ : names_guid ? guid_ : about_;
    if (!url.empty()) {
      tell({.url = url,
            .base = base(),
            .kind = report_.kind == SitemapKind::index ? SitemapLink::sitemap : SitemapLink::page,
            .modified = modified_ ? modified_ : published_,
            .changefreq = changefreq_,
            .priority = priority_});
    } else {
      ++report_.dropped;
    }
    for (const Found& found : found_) tell({.url = found.url, .base = base(), .kind = found.kind});
    about_.clear();
  }
  // An entry's own base is relative to that of its feed, which is seldom given.
  std::string_view base() const noexcept { return entry_base_.empty() ? base_ : entry_base_; }

  void tell(const SitemapEntry& entry) {
    if (report_.cut) return;
    if (report_.links >= limits_.most_links) {
      report_.cut = true;
      report_.trouble = fmt::format("only the first {} links were read", limits_.most_links);
      return;
    }
    ++report_.links;
    visit_(entry);
  }

  const SitemapLimits& limits_;
  const std::function<void(const SitemapEntry&)>& visit_;
  SitemapReport& report_;
  bool is_foreign_ = false;  // it is something else
  bool is_atom_ = false;
  std::string_view core_prefix_;
  std::map<std::string_view, Space> spaces_;  // by prefix
  std::vector<Open> open_;
  std::size_t stray_ends_ = 0;
  std::string text_, base_;
  // Of the entry that is open.
  std::string location_, guid_, about_, entry_base_, changefreq_, priority_;
  bool guid_is_url_ = true;
  std::optional<FeedDate> modified_, published_;
  std::vector<Found> found_;
};

bool is_web_url(std::string_view text) noexcept {
  return starts_with_lower(text, "http://") || starts_with_lower(text, "https://");
}

void read_lines(std::string_view text, const SitemapLimits& limits,
                const std::function<void(const SitemapEntry&)>& visit, SitemapReport& report) {
  for_each_token(
      text, [](char c) { return c == '\n' || c == '\r'; },
      [&](std::string_view line) {
        line = trim_space(line);
        if (line.empty() || line.starts_with('#') || report.cut) return;
        const bool is_url = is_web_url(line) && line.size() <= limits.most_url_bytes;
        // A text that does not begin with a URL is no list of them.
        if (report.kind == SitemapKind::none && !is_url) report.cut = true;
        if (!is_url) {
          ++report.dropped;
          return;
        }
        report.kind = SitemapKind::text;
        if (report.entries >= std::min(limits.most_entries, limits.most_links)) {
          report.cut = true;
          report.trouble = fmt::format("only the first {} entries were read", report.entries);
          return;
        }
        ++report.entries;
        ++report.links;
        visit({.url = line, .kind = SitemapLink::page});
      });
  if (report.kind == SitemapKind::none) report = {};
}

bool is_gzip(std::string_view body) noexcept { return body.starts_with("\x1f\x8b"); }

// The part of `body` that can be unpacked.
std::string unpacked_list(std::string_view body, std::size_t most_bytes, SitemapReport& report) {
  ContentDecoder decoder;
  std::string text;
  auto done = decoder.start("gzip", most_bytes);
  if (done) done = decoder.feed(body, text);
  if (done) done = decoder.finish();
  if (decoder.truncated()) {
    report.trouble = fmt::format("only the first {} bytes were read", most_bytes);
  } else if (!done) {
    report.trouble = done.error().message;
  }
  return text;
}

}  // namespace

std::string_view to_string(SitemapKind kind) noexcept {
  constexpr std::array<std::string_view, 5> kNames = {"none", "urls", "index", "text", "feed"};
  return kNames[static_cast<std::size_t>(kind)];
}

SitemapReport read_sitemap(std::string_view body, std::string_view content_type, const SitemapLimits& limits,
                           const std::function<void(const SitemapEntry&)>& visit) {
  SitemapReport report;
  std::string plain, transcoded;
  for (int i = 0; i < kMostPackings && is_gzip(body); ++i) {
    std::string text = unpacked_list(body, limits.most_bytes, report);
    plain = std::move(text);
    body = plain;
  }
  std::string trouble = std::exchange(report.trouble, {});
  if (body.size() > limits.most_bytes) {
    body = body.substr(0, limits.most_bytes);
    trouble = fmt::format("only the first {} bytes were read", limits.most_bytes);
  }
  body = trim_space(in_utf8(body, detect_charset(body, content_type), transcoded));
  if (!body.starts_with('<')) {
    read_lines(body, limits, visit, report);
  } else {
    SitemapReader reader(limits, visit, report);
    XmlScanner scanner(body, reader);
    std::string ended = scanner.scan([&] { return reader.goes_on(); });
    if (report.trouble.empty()) report.trouble = std::move(ended);
    reader.finish();
  }
  if (report.trouble.empty()) report.trouble = std::move(trouble);
  return report;
}

}  // namespace argiope
