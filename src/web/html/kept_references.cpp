// References as bytes: a check, where the head begins, the base, and of each reference four numbers, most of one byte.
#include <limits>
#include <optional>

#include "base/internal/fingerprint.hpp"
#include "web/html/internal/page_references.hpp"

namespace argiope {
namespace {

// Another number when scan_references() finds others, or they are written otherwise.
constexpr std::uint64_t kReferencesFormat = 2;
constexpr std::size_t kReferencesCheck = 4;  // bytes

void append_kept_number(std::uint64_t number, std::string& out) {
  for (; number >= 0x80; number >>= 7) out += static_cast<char>((number & 0x7f) | 0x80);
  out += static_cast<char>(number);
}

void append_kept_check(std::string_view bytes, std::string& out) {
  const std::uint64_t check = fingerprint(bytes, kReferencesFormat);
  for (std::size_t i = 0; i < kReferencesCheck; ++i) out += static_cast<char>(check >> (8 * i) & 0xff);
}

// Takes what stands in front; nullopt where it is not whole.
class KeptBytes {
 public:
  explicit KeptBytes(std::string_view bytes) noexcept : bytes_(bytes) {}
  bool empty() const noexcept { return bytes_.empty(); }
  // Of at most 35 bits: no sum of a few of them overflows.
  std::optional<std::uint64_t> number() noexcept {
    std::uint64_t number = 0;
    for (int shift = 0; shift <= 28 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      number |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return number;
    }
    return std::nullopt;
  }
  std::optional<std::string_view> text(std::uint64_t size) noexcept {
    if (size > bytes_.size()) return std::nullopt;
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

 private:
  std::string_view bytes_;
};

constexpr unsigned kRoleShift = 3, kBareShift = 7, kOutsideShift = 8;

std::uint64_t packed_kind(const PageReference& reference) noexcept {
  return static_cast<std::uint64_t>(reference.syntax) | static_cast<std::uint64_t>(reference.role) << kRoleShift |
         std::uint64_t{reference.is_bare} << kBareShift | std::uint64_t{!reference.in_attribute} << kOutsideShift;
}

bool unpack_kind(std::uint64_t kind, PageReference& reference) noexcept {
  const std::uint64_t role = kind >> kRoleShift & 15;
  reference.syntax = static_cast<ReferenceSyntax>(kind & 7);
  reference.role = static_cast<ReferenceRole>(role);
  reference.is_bare = (kind >> kBareShift & 1) != 0;
  reference.in_attribute = (kind >> kOutsideShift & 1) == 0;
  return role <= static_cast<std::uint64_t>(ReferenceRole::fixed) && kind >> (kOutsideShift + 1) == 0;
}

}  // namespace

void append_references(const PageReferences& references, std::string& out) {
  std::string bytes;
  bytes.reserve(references.base_href.size() + 5 * references.found.size() + 16);
  append_kept_number(references.head, bytes);
  append_kept_number(references.base_href.size(), bytes);
  bytes += references.base_href;
  std::uint32_t before = 0;
  for (const PageReference& one : references.found) {
    append_kept_number(one.begin - before, bytes);
    append_kept_number(one.begin - one.tag, bytes);
    append_kept_number(one.size, bytes);
    append_kept_number(packed_kind(one), bytes);
    before = one.begin;
  }
  append_kept_check(bytes, out);
  out += bytes;
}

namespace {

bool read_kept_references(std::string_view kept, std::size_t page_size, PageReferences& references) {
  if (kept.size() < kReferencesCheck || page_size > kMaxScannedPage) return false;
  std::string check;
  append_kept_check(kept.substr(kReferencesCheck), check);
  if (!kept.starts_with(check)) return false;
  KeptBytes bytes(kept.substr(kReferencesCheck));
  const auto head = bytes.number(), base_size = bytes.number();
  const auto base = bytes.text(base_size.value_or(std::numeric_limits<std::uint64_t>::max()));
  if (!head || *head > page_size || !base) return false;
  for (std::uint64_t begin = 0; !bytes.empty();) {
    const auto ahead = bytes.number(), behind_tag = bytes.number(), size = bytes.number(), kind = bytes.number();
    PageReference one;
    if (!ahead || !behind_tag || !size || !kind || !unpack_kind(*kind, one)) return false;
    begin += *ahead;
    if (begin + *size > page_size || *behind_tag > begin) return false;
    one.begin = static_cast<std::uint32_t>(begin);
    one.size = static_cast<std::uint32_t>(*size);
    one.tag = static_cast<std::uint32_t>(begin - *behind_tag);
    references.found.push_back(one);
  }
  references.base_href = *base;
  references.head = *head;
  return true;
}

}  // namespace

bool read_references(std::string_view kept, std::size_t page_size, PageReferences& references) {
  references.found.clear();
  references.base_href.clear();
  references.head = 0;
  const bool is_read = read_kept_references(kept, page_size, references);
  if (!is_read) references.found.clear();
  return is_read;
}

}  // namespace argiope
