#include "crawl/duplicates/trap_watch.hpp"

#include <algorithm>

#include "base/internal/fingerprint.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/url/internal/url_parameters.hpp"

namespace argiope {
namespace {

// Segments of a path that are compared with those before them: the others are as they are.
constexpr std::size_t kMostSegmentsOfShape = 64;

void append_without_numbers(std::string& out, std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_digit(text[i])) {
      out += text[i];
    } else if (i == 0 || !is_digit(text[i - 1])) {
      out += '#';
    }
  }
}

}  // namespace

std::string shape_of(std::string_view href) {
  const std::size_t scheme = href.find("://");
  const std::size_t host = scheme == std::string_view::npos ? 0 : scheme + 3;
  const std::size_t path = std::min(href.find('/', host), href.size());
  const std::size_t end = std::min(href.find('?', path), href.size());
  std::string shape(href.substr(0, path));
  std::vector<std::string> segments;
  for (std::size_t at = path; at < end;) {
    const std::size_t next = std::min(href.find('/', at + 1), end);
    std::string segment;
    append_without_numbers(segment, href.substr(at, next - at));
    at = next;
    if (std::ranges::find(segments, segment) != segments.end()) continue;
    shape += segment;
    if (segments.size() < kMostSegmentsOfShape) segments.push_back(std::move(segment));
  }
  std::vector<std::string> names;
  for_each_parameter(href.substr(end), [&](std::size_t, std::size_t, std::string_view name) {
    append_without_numbers(names.emplace_back(), name);
  });
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  for (std::size_t i = 0; i < names.size(); ++i) shape.append(1, i == 0 ? '?' : '&').append(names[i]);
  return shape;
}

bool TrapWatch::note(std::string_view href, bool is_copy) {
  const std::string name = shape_of(href);
  const std::uint64_t key = fingerprint(name);
  if (shapes_.size() >= kMostShapes && !shapes_.contains(key)) return false;
  Shape& shape = shapes_[key];
  ++shape.pages;
  shape.in_a_row = is_copy ? shape.in_a_row + 1 : 0;
  if (shape.in_a_row < most_ || traps_.contains(key)) return false;
  traps_[key] = {name, std::string(href), shape.pages, 0};
  return true;
}

bool TrapWatch::is_trap(std::string_view href) const {
  return !is_empty() && traps_.contains(fingerprint(shape_of(href)));
}

bool TrapWatch::leave_out(std::string_view href) {
  if (is_empty()) return false;
  const auto found = traps_.find(fingerprint(shape_of(href)));
  if (found == traps_.end()) return false;
  ++found->second.left_out;
  return true;
}

void TrapWatch::restore(std::string shape, std::uint64_t pages, std::string example) {
  const std::uint64_t key = fingerprint(shape);
  traps_.try_emplace(key, FoundTrap{std::move(shape), std::move(example), pages, 0});
}

std::vector<FoundTrap> TrapWatch::traps() const {
  std::vector<FoundTrap> all;
  for (const auto& [key, trap] : traps_) all.push_back(trap);
  std::ranges::sort(all, {}, &FoundTrap::shape);
  return all;
}

}  // namespace argiope
