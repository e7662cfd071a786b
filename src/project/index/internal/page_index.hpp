// The facts kept in memory of every page of a project: enough for decide_ask() and for choosing what is visited next,
// in at most 28 bytes a page. Values that do not fit (a visit under way, times that have nothing to do with each other)
// are kept beside, as a KnownPage, of the few pages that have them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argiope/base/clock.hpp"
#include "project/index/internal/host_numbers.hpp"
#include "project/index/internal/interned_values.hpp"
#include "project/rules/internal/known_page.hpp"
#include "project/rules/internal/page_terms.hpp"

namespace argiope {

using RuleNumber = std::uint16_t;  // a project's own numbering of rule names, by its caller

// Pages are numbered from 1, without gaps, in the order of add(): the number of their PageId. Numbers end at 2³² − 1.
//
// A page is a record of 22 bytes in chunks that never move, and an entry of 4 bytes in a hash table in segments, each
// of which grows by itself by an eighth: growing never needs room for everything twice, nor more than a millisecond or
// two at ten million pages. A record has one time, in seconds; what a page shares with many others (priority, own
// terms, interval, how often it was retried, the span between two of its times) it has as one code of 16 bits, its tag
// as another. A tag for which no code is left, and the last success of a page that has failed since, lie in maps. Of
// what has no such form, and of what no code is left for, the whole KnownPage is kept beside.
//
// Memory:  under 28 bytes a page with a form, from some ten thousand pages on; some 40 more in a map; beside some 150
//          more.
// Errors:  what grows may throw std::bad_alloc; std::length_error beyond the last number.
// Threads: one at a time. Cost: O(1), but for collect(); a call that makes a segment grow O(pages / 256).
class PageIndex {
 public:
  using Number = std::uint64_t;

  // With a secret `seed`, nobody can choose names that crowd in one place and make it slow.
  explicit PageIndex(std::uint64_t seed = 0) noexcept : seed_(seed) {}
  PageIndex(PageIndex&&) = delete;

  // 0: unknown.
  Number find(std::uint64_t fingerprint) const noexcept;
  // A fingerprint that is not there yet.
  Number add(std::uint64_t fingerprint, std::uint32_t host, RuleNumber rule, const KnownPage& page);
  // A number that is not used (its page was lost, or another kind of gap), so that numbers stay those of the store: the
  // next add() gives `next`, and nothing changes if that has been given already. Only find() and collect() know gaps:
  // no call may name one.
  void skip_to(Number next);
  std::size_t size() const noexcept { return pages_; }
  Number last() const noexcept { return last_; }  // 0: there is none
  void reserve(std::size_t pages);

  // As decide_ask() wants it. Tags come back as the whole number they were given as. Times are exact where the whole
  // page is kept beside; else they are up to a second off, so that nothing is due early and nothing stays fresh too
  // long: a due time, and the end of a visit that failed, later; a success earlier, and with it the due time of its
  // recrawl, which stays exactly the same span behind it (collect() makes up for that).
  KnownPage known(Number page) const;
  void set(Number page, const KnownPage& known);
  std::uint32_t host(Number page) const noexcept;
  void set_host(Number page, std::uint32_t host);
  // Those that pages have, or had before set_host().
  const HostNumbers& hosts() const noexcept { return hosts_; }
  RuleNumber rule(Number page) const noexcept { return record(page).rule; }
  void set_rule(Number page, RuleNumber rule) { record(page).rule = rule; }
  PageState state(Number page) const noexcept;

  // A page that waits, as the frontier wants to know it.
  struct Waiting {
    Number page = 0;
    std::int32_t priority = 0;
    WallTime due{};
    std::uint32_t host = 0;
    friend bool operator==(const Waiting&, const Waiting&) = default;
  };
  // Looks at up to `steps` pages from `from` on, and calls visit(waiting) for those that wait. Gives where to go on; 0:
  // that was the last. `terms_of(rule)`: due times of what waits for its recrawl follow the rule of now.
  using TermsOf = std::function<const PageTerms&(RuleNumber)>;
  Number collect(Number from, std::size_t steps, const TermsOf& terms_of,
                 const std::function<void(const Waiting&)>& visit) const;
  // The same for one page; nullopt: it does not wait, or there is no such page.
  std::optional<Waiting> waiting(Number page, const TermsOf& terms_of) const;

  // Pages that are kept beside.
  std::size_t beside() const noexcept { return beside_.size(); }
  std::size_t memory_bytes() const noexcept;

 private:
  // The terms that pages have in common.
  struct Manner {
    std::int32_t priority = 0;
    std::uint32_t retried = 0;
    Duration span{};  // from the record's time to when the page is due
    std::optional<Duration> interval;
    OwnTerms own;
    friend bool operator==(const Manner&, const Manner&) = default;
  };
  struct MannerHash {
    std::size_t operator()(const Manner& manner) const noexcept;
  };
  // Which times the record's one time stands for; all others are the epoch.
  enum class Shape : std::uint8_t {
    timeless,      // none
    due,           // due, rounded up
    fetched,       // succeeded_at and ended_at, rounded down
    ended,         // ended_at, rounded up
    fetched_span,  // the same, and due a span later
    ended_span,    // as ended, and due a span later
    // As ended and ended_span, with a success before, rounded down, in successes_.
    failed_since,
    failed_since_span,
  };
  struct Form {
    Shape shape{};
    bool is_rounded = false;
    std::uint32_t time_s = 0;
    std::uint32_t succeeded_s = 0;
    Manner manner;
  };
  // `form`: bits 0 and 1 are the state, 2 and 3 what it waits for, 4 to 6 the shape, 7 whether its time is rounded. 3
  // for what it waits for means that the page is kept beside, with its state in bits 4 to 6, where 7 is a gap.
  struct [[gnu::packed]] Record {
    std::uint64_t fingerprint = 0;
    std::uint32_t time_s = 0;
    std::uint16_t host_low = 0;
    std::uint8_t host_high = 0;
    std::uint8_t form = 0;
    std::uint16_t manner = 0;
    std::uint16_t tag = 0;
    std::uint16_t rule = 0;
  };
  static_assert(sizeof(Record) == 22);
  static constexpr std::size_t kChunk = 256;
  struct Chunk {
    std::array<Record, kChunk> records;
  };
  // Linear probing in a table of any size. An entry is a page's number in the low bits, as many as the segment's
  // numbers need, and above them bits of its hash, so that few probes look at records of other pages; 0 is free.
  struct Segment {
    std::unique_ptr<std::uint32_t[]> entries;
    std::uint32_t capacity = 0;
    std::uint32_t used = 0;
    std::uint32_t number_bits = 0;
  };
  static constexpr int kSegmentBits = 8;
  using Segments = std::array<Segment, std::size_t{1} << kSegmentBits>;

  static constexpr std::uint8_t kBesideMark = 0x0c;
  static constexpr std::uint8_t kGapForm = 0x7c;
  static constexpr std::uint32_t kWideHost = 0xff'ffff;
  static constexpr std::uint16_t kWideTag = 0xffff;  // no code of InternedValues

  static bool is_beside(std::uint8_t form) noexcept { return (form & kBesideMark) == kBesideMark; }
  static PageState state_of(std::uint8_t form) noexcept;
  static Shape shape_of(std::uint8_t form) noexcept { return static_cast<Shape>(form >> 4 & 7); }
  static PageWait wait_of(std::uint8_t form) noexcept { return static_cast<PageWait>(form >> 2 & 3); }

  // --- forms
  static std::optional<Form> form_of(const KnownPage& known);
  void put_down(Record& record, Number page, const KnownPage& known);
  KnownPage expanded(const Record& record, Number page) const;
  void let_go_of(Record& record, Number page);
  std::optional<Waiting> waiting_of(const Record& record, Number page, const TermsOf& terms_of) const;
  std::uint32_t host_of(const Record& record, Number page) const noexcept;

  // --- records
  Record& record(Number page) noexcept { return chunks_[(page - 1) / kChunk]->records[(page - 1) % kChunk]; }
  const Record& record(Number page) const noexcept {
    return chunks_[(page - 1) / kChunk]->records[(page - 1) % kChunk];
  }
  Record& new_record();

  // --- the table
  std::uint64_t mixed(std::uint64_t fingerprint) const noexcept;
  static std::uint32_t ideal(std::uint64_t mixed, std::uint32_t capacity) noexcept {
    return static_cast<std::uint32_t>((static_cast<unsigned __int128>(mixed << kSegmentBits) * capacity) >> 64);
  }
  static std::uint32_t entry_of(std::uint64_t mixed, std::uint32_t number, std::uint32_t number_bits) noexcept {
    return static_cast<std::uint32_t>((mixed << number_bits) | number);
  }
  void insert(std::uint64_t mixed, std::uint32_t number);
  static void place(Segment& segment, std::uint64_t mixed, std::uint32_t number) noexcept;
  static void widen_numbers(Segment& segment, std::uint32_t number_bits) noexcept;
  void grow(Segment& segment, std::uint32_t capacity);

  const std::uint64_t seed_;
  std::vector<std::unique_ptr<Chunk>> chunks_;  // null: all of it is a gap
  std::unique_ptr<Segments> segments_;
  InternedValues<Manner, MannerHash> manners_;
  InternedValues<PageTag> tags_;
  std::unordered_map<Number, KnownPage> beside_;
  std::unordered_map<Number, std::uint32_t> successes_;   // in seconds
  std::unordered_map<Number, PageTag> wide_tags_;         // for which no code was left
  std::unordered_map<Number, std::uint32_t> wide_hosts_;  // that do not fit into a record
  HostNumbers hosts_;
  std::size_t pages_ = 0;
  Number last_ = 0;
};

}  // namespace argiope
