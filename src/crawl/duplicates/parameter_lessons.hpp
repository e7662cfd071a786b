// Which parameters of a site's URLs never change what a page says: learned from pages whose URLs differ in nothing
// else.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/crawl/detail/crawl_report.hpp"

namespace argiope {

// A parameter is learned when kPagesToLearn pages were met under two URLs that differ in it alone, by its value or by
// whether it is there, and said the same words each time. One page that says something else ends that for good.
//
// The memory of pages is bounded: where there are many, the oldest are forgotten, and less is learned.
//
// Memory:  3 MiB, and some 200 bytes for each parameter of each site, at most kMostCandidates of them.
// Threads: one at a time.
class ParameterLessons {
 public:
  static constexpr std::uint32_t kPagesToLearn = 20;
  static constexpr std::size_t kMostCandidates = 10'000;

  ParameterLessons();

  // The change that an observation has made: `name` of `site` is learned, or, `learned` no more, it matters after all.
  struct News {
    std::string name;
    bool learned = false;
  };
  // A page says this (PageWords::digest), at a URL of `site`.
  std::vector<News> observe(std::string_view href, std::string_view site, std::uint64_t words);

  // Whether links of that site are followed without the parameter.
  bool is_learned(std::string_view site, std::string_view name) const;
  bool is_empty() const noexcept { return learned_ == 0; }

  // Of another run.
  void restore(std::string_view site, std::string_view name, bool learned);
  // The learned parameters, by site and name.
  std::vector<LearnedParameter> learned() const;
  void count_stripped(std::string_view site, std::string_view name);

 private:
  struct Candidate {
    std::string site, name;
    std::uint32_t same = 0;
    std::uint64_t stripped = 0;
    bool matters = false;
    bool learned = false;
  };
  // Of URLs that differ in one parameter alone: what the last of them said.
  struct Sighting {
    std::uint64_t key = 0;
    std::uint64_t words = 0;
    std::uint64_t url : 63 = 0;
    std::uint64_t counted : 1 = 0;  // that they say the same
  };
  static std::uint64_t key_of(std::string_view site, std::string_view name) noexcept;
  Candidate* candidate(std::string_view site, std::string_view name);
  const Candidate* find(std::string_view site, std::string_view name) const;
  Sighting& sighting(std::uint64_t key) noexcept { return sightings_[key & (sightings_.size() - 1)]; }
  std::optional<News> compare(Candidate& candidate, bool same, bool is_new_page);

  std::vector<Sighting> sightings_;
  boost::unordered_flat_map<std::uint64_t, Candidate> candidates_;
  std::size_t learned_ = 0;
};

}  // namespace argiope
