// One pass over a page: its words into a digest and into 64 counters.
#include "web/html/internal/page_words.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "argiope/base/random.hpp"
#include "base/internal/fingerprint.hpp"
#include "base/internal/utf8.hpp"
#include "web/html/internal/html_walker.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

// Elements whose content no reader sees, up to their end tags. The content of `script` follows rules of its own.
constexpr std::string_view kUnseen[] = {"style", "iframe", "xmp", "noembed", "noframes"};

// Counts, for each of 64 bits, in how many of the hashes it is set: the counters are planes of bits, the lowest first,
// and one addition carries through them for all at a time.
class BitCounters {
 public:
  void add(std::uint64_t hash) noexcept {
    ++count_;
    for (std::size_t i = 0; hash != 0 && i < planes_.size(); ++i) {
      const std::uint64_t carry = planes_[i] & hash;
      planes_[i] ^= hash;
      hash = carry;
    }
  }
  // The bits that more than half of the hashes have.
  std::uint64_t majority() const noexcept {
    const std::uint64_t half = count_ / 2;
    std::uint64_t more = 0, equal = ~std::uint64_t{0};
    for (std::size_t i = planes_.size(); i-- > 0;) {
      const std::uint64_t bit = (half >> i & 1) != 0 ? ~std::uint64_t{0} : 0;
      more |= equal & planes_[i] & ~bit;
      equal &= ~(planes_[i] ^ bit);
    }
    return more;
  }

 private:
  std::array<std::uint64_t, 32> planes_{};
  std::uint64_t count_ = 0;
};

constexpr std::size_t kLeastPairSlots = 1024;  // a power of two; each growth is by four, up to twice kMostWordPairs

// A character that is a word by itself: of a script that is written without spaces. `text` begins with a well-formed
// one of three bytes or more.
bool is_word_alone(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(text[i])); };
  if (byte(0) >= 0xf0) return byte(0) == 0xf0 && byte(1) >= 0xa0;  // ideographs from U+20000 on
  const unsigned code = (byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
  return (code >= 0x0e00 && code < 0x0f00) || (code >= 0x1000 && code < 0x10a0) || (code >= 0x1780 && code < 0x1800) ||
         (code >= 0x2e80 && code < 0xa4d0) || (code >= 0xf900 && code < 0xfb00);
}

// U+2000 to U+206F and U+3000 to U+303F: dashes, quotation marks, and the spaces among them.
bool is_punctuation(std::string_view text) noexcept {
  const auto second = static_cast<unsigned char>(text[1]);
  return text[0] == '\xe2' ? second == 0x80 || (second == 0x81 && static_cast<unsigned char>(text[2]) < 0xb0)
                           : text[0] == '\xe3' && second == 0x80;
}

class WordCounter {
 public:
  explicit WordCounter(std::vector<std::uint64_t>& pairs) : pairs_(pairs) { pairs_.assign(kLeastPairSlots, 0); }

  void add_text(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const auto byte = static_cast<unsigned char>(text[at]);
      if (byte < 0x80) {
        const char c = to_lower(text[at++]);
        if (is_alnum(c)) {
          word_ = (word_ ^ static_cast<unsigned char>(c)) * kFactor;
          in_word_ = true;
        } else {
          end_word();
        }
        continue;
      }
      const std::size_t length = utf8_length(text.substr(at));
      const std::string_view character = text.substr(at, std::max<std::size_t>(length, 1));
      at += character.size();
      const bool alone = length >= 3 && is_word_alone(character);
      const bool separates = (length == 2 && character == "\xc2\xa0") || (length == 3 && is_punctuation(character));
      if (alone || separates) end_word();
      if (separates) continue;
      for (const char c : character) word_ = (word_ ^ static_cast<unsigned char>(c)) * kFactor;
      in_word_ = true;
      if (alone) end_word();
    }
    end_word();
  }
  // Something that is shown and is no word.
  void add_picture(std::string_view source) { digest_ = mix64(digest_ ^ fingerprint(source, kPicture)); }

  PageWords take() const noexcept { return {count_, digest_, bits_.majority()}; }

 private:
  static constexpr std::uint64_t kStart = 0xcbf29ce484222325;
  static constexpr std::uint64_t kFactor = 0x00000100000001b3;
  static constexpr std::uint64_t kPicture = 1;

  void end_word() noexcept {
    if (!in_word_) return;
    const std::uint64_t word = mix64(word_);
    word_ = kStart;
    in_word_ = false;
    digest_ = mix64(digest_ ^ word);
    ++count_;
    if (count_ > 1) add_pair(mix64(last_ + 3 * word));
    last_ = word;
  }

  // Into the table, which is at most half full, and into the counters if it was not there.
  void add_pair(std::uint64_t pair) {
    if (pair == 0 || pair_count_ == kMostWordPairs || !insert(pair)) return;
    ++pair_count_;
    bits_.add(pair);
    if (2 * pair_count_ <= pairs_.size()) return;
    const std::vector<std::uint64_t> before = std::exchange(pairs_, std::vector<std::uint64_t>(4 * pairs_.size()));
    for (const std::uint64_t known : before) {
      if (known != 0) insert(known);
    }
  }
  bool insert(std::uint64_t pair) noexcept {
    for (std::size_t at = pair & (pairs_.size() - 1);; at = (at + 1) & (pairs_.size() - 1)) {
      if (pairs_[at] == pair) return false;
      if (pairs_[at] != 0) continue;
      pairs_[at] = pair;
      return true;
    }
  }

  std::uint64_t word_ = kStart;
  bool in_word_ = false;
  std::uint64_t last_ = 0;
  std::uint64_t digest_ = 0;
  std::uint32_t count_ = 0;
  std::vector<std::uint64_t>& pairs_;
  std::size_t pair_count_ = 0;
  BitCounters bits_;
};

// Tags are the walker's; what stands between them is counted.
class WordWalker : public HtmlWalker<WordWalker> {
 public:
  WordWalker(std::string_view html, std::vector<std::uint64_t>& pairs)
      : HtmlWalker(html), page_end_(html.data() + html.size()), words_(pairs) {}

  PageWords walk() {
    const char* p = begin_;
    for (const char* text = p; p != nullptr; text = p) {
      p = find_byte(p, end_, '<');
      words_.add_text({text, p});
      if (p == end_) {
        words_.add_text({end_, page_end_});
        break;
      }
      ++p;
      if (is_alpha(*p)) {
        p = start_tag(p);
      } else if (*p == '/') {
        p = end_tag(p + 1);
      } else if (*p == '!') {
        p = declaration(p + 1);
      } else if (*p == '?') {
        p = past_bracket(p);
      }
    }
    return words_.take();
  }

 private:
  const char* start_tag(const char* p) {
    const std::string_view name(p, behind_name(p));
    p = name.data() + name.size();
    if (foreign_.entered() || equals_lower(name, "svg") || equals_lower(name, "math")) [[unlikely]] {
      const char* const behind_tag = no_attributes(p);
      if (behind_tag == nullptr || foreign_.start_tag(name, self_closing_)) return behind_tag;
    }
    switch (to_lower(name.front())) {
      case 'e':
      case 'i':
      case 'f':
      case 'n':
      case 's':
      case 't':
      case 'x': return element(name, p);
      default: return skip_tag(p);
    }
  }

  const char* element(std::string_view name, const char* p) {
    if (equals_lower(name, "script")) return script(no_attributes(p));
    if (equals_lower(name, "img") || equals_lower(name, "frame") || equals_lower(name, "embed")) return picture(p);
    if (equals_lower(name, "iframe")) return raw_text(picture(p), name);
    if (std::ranges::any_of(kUnseen, [&](std::string_view one) { return equals_lower(name, one); })) {
      return raw_text(no_attributes(p), name);
    }
    if (!equals_lower(name, "title") && !equals_lower(name, "textarea")) return skip_tag(p);
    const char* const behind_tag = no_attributes(p);
    const char* const end = raw_text_end(behind_tag, name);
    if (end == nullptr) return nullptr;
    words_.add_text({behind_tag, end});
    return skip_tag(end + 2);
  }

  const char* picture(const char* p) {
    return attributes(p, [this, found = false](std::string_view name, std::string_view raw) mutable {
      if (found || !equals_lower(name, "src")) return;
      found = true;
      words_.add_picture(raw);
    });
  }

  const char* const page_end_;
  WordCounter words_;
};

}  // namespace

PageWords PageWordReader::read(std::string_view html) { return WordWalker(html, pairs_).walk(); }

}  // namespace argiope
