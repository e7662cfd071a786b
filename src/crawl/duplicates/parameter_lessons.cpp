#include "crawl/duplicates/parameter_lessons.hpp"

#include <algorithm>
#include <tuple>

#include "base/internal/fingerprint.hpp"
#include "web/url/internal/url_parameters.hpp"

namespace argiope {
namespace {

constexpr std::size_t kSightings = std::size_t{1} << 17;
constexpr std::size_t kMostParameters = 16;  // of a URL that are looked at
constexpr std::uint64_t kWholeUrl = 1;       // tells the key of a URL from those of URLs without a parameter
constexpr std::uint64_t kUrlBits = ~std::uint64_t{0} >> 1;

}  // namespace

ParameterLessons::ParameterLessons() : sightings_(kSightings) {}

std::uint64_t ParameterLessons::key_of(std::string_view site, std::string_view name) noexcept {
  return fingerprint(name, fingerprint(site));
}

ParameterLessons::Candidate* ParameterLessons::candidate(std::string_view site, std::string_view name) {
  const std::uint64_t key = key_of(site, name);
  if (const auto found = candidates_.find(key); found != candidates_.end()) return &found->second;
  if (candidates_.size() >= kMostCandidates) return nullptr;
  Candidate& made = candidates_[key];
  made.site = site;
  made.name = name;
  return &made;
}

const ParameterLessons::Candidate* ParameterLessons::find(std::string_view site, std::string_view name) const {
  const auto found = candidates_.find(key_of(site, name));
  return found == candidates_.end() ? nullptr : &found->second;
}

std::vector<ParameterLessons::News> ParameterLessons::observe(std::string_view href, std::string_view site,
                                                              std::uint64_t words) {
  std::vector<News> news;
  const std::uint64_t url = fingerprint(href, kWholeUrl);
  std::vector<std::string_view> names;
  for_each_parameter(href, [&](std::size_t, std::size_t, std::string_view name) {
    if (names.size() < kMostParameters && std::ranges::find(names, name) == names.end()) names.push_back(name);
  });
  for (const std::string_view name : names) {
    const std::string rest = without_parameters(href, [&](std::string_view other) { return other == name; });
    const std::uint64_t key = fingerprint(rest, fingerprint(name));
    Candidate* const about = candidate(site, name);
    if (about == nullptr) continue;
    Sighting& seen = sighting(key);
    if (seen.key != key) {
      seen = {key, words, url & kUrlBits, 0};
      const std::uint64_t whole = fingerprint(rest, kWholeUrl);
      const Sighting& without = sighting(whole);
      if (without.key != whole) continue;
      seen.counted = without.words == words;
      if (auto said = compare(*about, without.words == words, true)) news.push_back(std::move(*said));
    } else if (seen.url != (url & kUrlBits)) {
      auto said = compare(*about, seen.words == words, seen.counted == 0);
      if (said) news.push_back(std::move(*said));
      seen = {key, words, url & kUrlBits, std::uint64_t{seen.counted} | (seen.words == words)};
    }
  }
  sighting(url) = {url, words, url & kUrlBits, 0};
  return news;
}

std::optional<ParameterLessons::News> ParameterLessons::compare(Candidate& about, bool same, bool is_new_page) {
  if (about.matters) return std::nullopt;
  if (!same) {
    about.matters = true;
    if (!std::exchange(about.learned, false)) return std::nullopt;
    --learned_;
    return News{about.name, false};
  }
  if (!is_new_page || about.learned || ++about.same < kPagesToLearn) return std::nullopt;
  about.learned = true;
  ++learned_;
  return News{about.name, true};
}

bool ParameterLessons::is_learned(std::string_view site, std::string_view name) const {
  const Candidate* const found = learned_ > 0 ? find(site, name) : nullptr;
  return found != nullptr && found->learned;
}

void ParameterLessons::restore(std::string_view site, std::string_view name, bool learned) {
  Candidate* const about = candidate(site, name);
  if (about == nullptr || about->learned) return;
  about->matters = !learned;
  about->learned = learned;
  about->same = learned ? kPagesToLearn : 0;
  learned_ += learned;
}

void ParameterLessons::count_stripped(std::string_view site, std::string_view name) {
  if (Candidate* const about = candidate(site, name)) ++about->stripped;
}

std::vector<LearnedParameter> ParameterLessons::learned() const {
  std::vector<LearnedParameter> all;
  for (const auto& [key, about] : candidates_) {
    if (about.learned) all.push_back({about.site, about.name, about.same, about.stripped});
  }
  std::ranges::sort(all, {}, [](const LearnedParameter& one) { return std::tie(one.site, one.name); });
  return all;
}

}  // namespace argiope
