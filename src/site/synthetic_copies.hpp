// Those places of a synthetic web that are there under many URLs: copies of documents, pages whose links carry
// sessions, and traps of pages that all say the same.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "site/internal/synthetic_web.hpp"
#include "site/synthetic_layout.hpp"

namespace argiope {

inline constexpr std::uint32_t kCopiedDocuments = 12;
inline constexpr std::uint32_t kNearCopies = 3;     // of each document: with one word, two and three that differ
inline constexpr std::uint32_t kSessionPages = 45;  // of each kind

// The link that leads there from the front page.
struct CopiesEntrance {
  WebFeature feature;
  std::string_view path;
};
inline constexpr std::array kCopiesEntrances = {
    CopiesEntrance{WebFeature::copies, "/copies/"},
    CopiesEntrance{WebFeature::sessions, "/sessions/page-0"},
    CopiesEntrance{WebFeature::sessions, "/sessions/item-0"},
    CopiesEntrance{WebFeature::traps, "/traps/calendar/2026-1"},
    CopiesEntrance{WebFeature::traps, "/traps/folder/"},
    CopiesEntrance{WebFeature::traps, "/traps/filter?colour=red"},
};

// Fills in the answer; false when there is no such place.
bool answer_copies(const SyntheticLayout& layout, const SyntheticRequest& request, SyntheticReply& reply);

// One URL of each thing that is there: what a crawl finds that leaves out all copies, follows links without their
// sessions and names, for each trap, the page by which it is entered.
std::vector<std::string> originals(const SyntheticLayout& layout, std::uint32_t host);

}  // namespace argiope
