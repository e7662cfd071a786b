#include "crawl/duplicates/duplicate_book.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "base/internal/printable.hpp"
#include "crawl/options/internal/host_policies.hpp"

namespace argiope {
namespace {

constexpr int kDepthBits = 20;
constexpr std::uint64_t kDeepest = (std::uint64_t{1} << kDepthBits) - 1;
constexpr int kMostAliasHops = 20;
constexpr std::string_view kParameterNote = DuplicateBook::kNotePrefixes[0],
                           kTrapNote = DuplicateBook::kNotePrefixes[1];

ParameterNames names_or_throw(std::span<const std::string> words) {
  auto names = ParameterNames::parse(words);
  if (!names) throw std::invalid_argument(names.error().message);
  return std::move(*names);
}

std::uint64_t in_one_word(DuplicateBook::Page page) noexcept {
  return static_cast<std::uint64_t>(page.id) << kDepthBits | std::min<std::uint64_t>(page.depth, kDeepest);
}
std::int64_t id_in(std::uint64_t word) noexcept { return static_cast<std::int64_t>(word >> kDepthBits); }

// "http://host:80" of a URL, or of a note's name.
std::string_view site_at_front(std::string_view text) noexcept {
  const std::size_t host = text.find("://");
  return host == std::string_view::npos ? std::string_view{} : text.substr(0, text.find('/', host + 3));
}

}  // namespace

DuplicateBook::DuplicateBook(const CrawlOptions& options, std::uint64_t seed)
    : options_(options.duplicates),
      heeds_depth_(limits_depth(options)),
      stripped_(names_or_throw(options_.strip_parameters)),
      kept_(names_or_throw(options_.keep_parameters)),
      variants_(mix64(seed)),
      words_(options_.compares_words() ? std::make_unique<SimhashIndex>(options_.near_distance) : nullptr),
      lessons_(options_.learn_parameters ? std::make_unique<ParameterLessons>() : nullptr),
      traps_(options_.trap_pages) {}

// --- parameters ------------------------------------------------------------------------------------------------------

template <class Names>
bool DuplicateBook::takes_out(std::string_view name, Names&& is_learned) const {
  return (stripped_.contains(name) || is_learned(name)) && !kept_.contains(name);
}

bool DuplicateBook::strips(std::string_view href) const {
  bool found = false;
  const std::string_view site = site_at_front(href);
  std::lock_guard lock(mutex_);
  for_each_parameter(href, [&](std::size_t, std::size_t, std::string_view name) {
    found = found || takes_out(name, [&](std::string_view one) { return lessons_ && lessons_->is_learned(site, one); });
  });
  return found;
}

bool DuplicateBook::strip(const Url& url, Url& rest) {
  if (url.href().find_first_of("?;") == std::string::npos) return false;
  std::string text;
  if (!has_lessons_.load(std::memory_order_relaxed)) {
    text = without_parameters(
        url.href(), [&](std::string_view name) { return takes_out(name, [](std::string_view) { return false; }); });
  } else {
    const std::string_view site = site_at_front(url.href());
    std::lock_guard lock(mutex_);
    text = without_parameters(url.href(), [&](std::string_view name) {
      const bool goes = takes_out(name, [&](std::string_view one) { return lessons_->is_learned(site, one); });
      if (goes && !stripped_.contains(name)) lessons_->count_stripped(site, name);
      return goes;
    });
  }
  return !text.empty() && parse_into(rest, text, nullptr) == UrlStatus::ok;
}

bool DuplicateBook::is_first_variant(std::uint64_t fingerprint) {
  std::lock_guard lock(mutex_);
  return variants_.insert(fingerprint);
}

std::vector<UrlNote> DuplicateBook::learn(std::string_view href, std::string_view site, std::uint64_t words) {
  if (!lessons_) return {};
  std::vector<UrlNote> notes;
  std::lock_guard lock(mutex_);
  for (ParameterLessons::News& news : lessons_->observe(href, site, words)) {
    if (news.learned) {
      spdlog::info(
          "{}: the parameter {} changes no page: {} said the same without it, or with another value; links are "
          "followed without it",
          printable(site), printable(news.name), ParameterLessons::kPagesToLearn);
    } else {
      spdlog::info("{}: the parameter {} changes a page after all, {}; links are followed with it again",
                   printable(site), printable(news.name), printable(href));
    }
    notes.push_back({fmt::format("{}{}/{}", kParameterNote, site, news.name), news.learned ? "learned" : "matters"});
  }
  has_lessons_.store(!lessons_->is_empty(), std::memory_order_relaxed);
  return notes;
}

// --- contents --------------------------------------------------------------------------------------------------------

DuplicateBook::Copy DuplicateBook::find_copy(const Content& content, std::string_view site) {
  const std::uint64_t word = in_one_word(content.page);
  const auto counts = [&](std::uint64_t other) {
    return id_in(other) != content.page.id && (!heeds_depth_ || (other & kDeepest) <= content.page.depth);
  };
  std::lock_guard lock(mutex_);
  if (content.bytes_before != content.bytes) {
    const auto before = contents_.find(content.bytes_before);
    if (before != contents_.end() && id_in(before->second) == content.page.id) contents_.erase(before);
  }
  const auto [found, is_new] = contents_.try_emplace(content.bytes, word);
  if (!is_new && counts(found->second)) return {UrlReason::duplicate, id_in(found->second)};
  found->second = word;
  if (!words_ || !content.simhash) return {};
  const auto group = static_cast<std::uint32_t>(fingerprint(site));
  if (const auto match = words_->find(*content.simhash, group, counts))
    return {UrlReason::near_duplicate, id_in(match->value)};
  const auto is_own = [&](std::uint64_t other) { return id_in(other) == content.page.id; };
  // A page that is fetched again and again is there once, as long as it says nearly the same.
  if (!words_->find(*content.simhash, group, is_own)) words_->add(*content.simhash, group, word);
  return {};
}

bool DuplicateBook::add_alias(std::int64_t id, std::int64_t canonical) {
  std::lock_guard lock(mutex_);
  std::int64_t at = canonical;
  for (int hops = 0; at != id; ++hops) {
    const auto found = aliases_.find(at);
    if (found == aliases_.end() || hops == kMostAliasHops) {
      aliases_.insert_or_assign(id, canonical);
      return true;
    }
    at = found->second;
  }
  return false;
}

// --- traps -----------------------------------------------------------------------------------------------------------

std::optional<UrlNote> DuplicateBook::watch(std::string_view href, bool is_copy) {
  if (options_.trap_pages == 0) return std::nullopt;
  std::lock_guard lock(mutex_);
  if (!traps_.note(href, is_copy)) return std::nullopt;
  has_traps_.store(true, std::memory_order_relaxed);
  const std::string shape = shape_of(href);
  spdlog::info("{}: the last {} pages of this shape were copies of others; no more of them are followed",
               printable(shape), options_.trap_pages);
  return UrlNote{fmt::format("{}{}", kTrapNote, shape), fmt::format("{} {}", options_.trap_pages, href)};
}

bool DuplicateBook::is_trap(std::string_view href) const {
  if (!has_traps_.load(std::memory_order_relaxed)) return false;
  std::lock_guard lock(mutex_);
  return traps_.is_trap(href);
}

bool DuplicateBook::leave_out(std::string_view href) {
  if (!has_traps_.load(std::memory_order_relaxed)) return false;
  std::lock_guard lock(mutex_);
  return traps_.leave_out(href);
}

// --- notes and reports -----------------------------------------------------------------------------------------------

void DuplicateBook::restore(const UrlNote& note) {
  const std::string_view name = note.name;
  std::lock_guard lock(mutex_);
  if (lessons_ && name.starts_with(kParameterNote)) {
    const std::string_view site = site_at_front(name.substr(kParameterNote.size()));
    const std::size_t begin = kParameterNote.size() + site.size() + 1;
    if (site.empty() || begin >= name.size()) return;
    lessons_->restore(site, name.substr(begin), note.text == "learned");
    has_lessons_.store(!lessons_->is_empty());
  }
  if (options_.trap_pages > 0 && name.starts_with(kTrapNote)) {
    const std::string_view text = note.text;
    const std::size_t space = std::min(text.find(' '), text.size());
    std::uint64_t pages = 0;
    std::from_chars(text.data(), text.data() + space, pages);
    traps_.restore(std::string(name.substr(kTrapNote.size())), pages,
                   std::string(text.substr(std::min(space + 1, text.size()))));
    has_traps_.store(true);
  }
}

void DuplicateBook::tell(CrawlReport& report) const {
  std::lock_guard lock(mutex_);
  if (lessons_) report.learned_parameters = lessons_->learned();
  report.traps = traps_.traps();
}

std::uint64_t content_key(std::string_view digest, std::string_view site) noexcept {
  return fingerprint(digest, fingerprint(site));
}

}  // namespace argiope
