#include "project/index/internal/page_index.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>
#include <utility>

#include "argiope/base/random.hpp"
#include "project/rules/internal/decide_ask.hpp"

namespace argiope {
namespace {

using IndexSeconds = std::chrono::seconds;

constexpr WallTime kNoIndexTime{};
constexpr PageIndex::Number kLastPageNumber = std::numeric_limits<std::uint32_t>::max();
// A table this full is one whose longest probes are still within a few cache lines.
constexpr std::uint64_t kFullPercent = 85;
constexpr std::uint32_t kSmallSegment = 128;  // grows by half
constexpr std::size_t kPrefetched = 16;

std::uint32_t segment_capacity(std::uint64_t entries) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(entries * 100 / kFullPercent + 2, kLastPageNumber));
}

std::uint64_t manner_hash(std::uint64_t hash, std::uint64_t value) noexcept { return mix64(hash ^ value); }
template <class Value>
std::uint64_t manner_hash(std::uint64_t hash, const std::optional<Value>& value) noexcept {
  return value ? manner_hash(manner_hash(hash, 1), static_cast<std::uint64_t>(*value)) : manner_hash(hash, 0);
}
std::uint64_t manner_hash(std::uint64_t hash, const std::optional<Duration>& value) noexcept {
  return value ? manner_hash(manner_hash(hash, 1), static_cast<std::uint64_t>(value->count())) : manner_hash(hash, 0);
}

WallTime record_time(std::uint32_t time_s) noexcept { return WallTime{IndexSeconds{time_s}}; }
// nullopt: it has no place in 32 bits, or is the epoch, which stands for no time.
std::optional<std::uint32_t> record_seconds(std::chrono::sys_seconds time) noexcept {
  const auto count = time.time_since_epoch().count();
  if (count < 1 || count > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return static_cast<std::uint32_t>(count);
}

}  // namespace

std::size_t PageIndex::MannerHash::operator()(const Manner& manner) const noexcept {
  std::uint64_t hash = mix64(static_cast<std::uint32_t>(manner.priority) | std::uint64_t{manner.retried} << 32);
  hash = manner_hash(hash, static_cast<std::uint64_t>(manner.span.count()));
  hash = manner_hash(hash, manner.interval);
  hash = manner_hash(hash, manner.own.priority);
  hash = manner_hash(hash, manner.own.age);
  hash = manner_hash(hash, manner.own.retries);
  return manner_hash(hash, manner.own.auto_recrawl);
}

// --- forms -----------------------------------------------------------------------------------------------------------

// In the order of the two bits of a form.
PageState PageIndex::state_of(std::uint8_t form) noexcept {
  constexpr PageState kStates[] = {PageState::waiting, PageState::done, PageState::failed, PageState::cancelled};
  return is_beside(form) ? static_cast<PageState>(form >> 4 & 7) : kStates[form & 3];
}

// nullopt: two of its times have nothing to do with each other, or it is visited.
std::optional<PageIndex::Form> PageIndex::form_of(const KnownPage& known) {
  if (known.state == PageState::visiting || known.again) return std::nullopt;
  Form form;
  form.manner = {known.priority, known.retried, {}, known.interval, known.own};
  const bool has_succeeded = known.succeeded_at != kNoIndexTime;
  const bool has_ended = known.ended_at != kNoIndexTime;
  const bool has_due = known.due != kNoIndexTime;
  const bool was_success = has_succeeded && known.succeeded_at == known.ended_at;
  if (has_succeeded && !has_ended) return std::nullopt;
  if (has_due && has_ended) {
    // Spans that are the rule's or the page's own interval are shared; others would use up the codes.
    if (known.state != PageState::waiting || known.wait != (was_success ? PageWait::recrawl : PageWait::retry))
      return std::nullopt;
    if (known.due < known.ended_at || known.ended_at < kNoIndexTime || known.due > WallTime::max() - IndexSeconds{1})
      return std::nullopt;
    form.manner.span = known.due - known.ended_at;
    if (!was_success && form.manner.span % IndexSeconds{1} != Duration::zero()) return std::nullopt;
    form.shape = was_success ? Shape::fetched_span : has_succeeded ? Shape::failed_since_span : Shape::ended_span;
  } else if (has_due) {
    form.shape = Shape::due;
  } else if (has_ended) {
    form.shape = was_success ? Shape::fetched : has_succeeded ? Shape::failed_since : Shape::ended;
  }
  if (form.shape == Shape::timeless) return form;
  const WallTime time = has_ended ? known.ended_at : known.due;
  const auto rounded = was_success ? std::chrono::floor<IndexSeconds>(time) : std::chrono::ceil<IndexSeconds>(time);
  const auto seconds = record_seconds(rounded);
  const auto succeeded = record_seconds(std::chrono::floor<IndexSeconds>(known.succeeded_at));
  if (!seconds || (has_succeeded && !succeeded)) return std::nullopt;
  form.time_s = *seconds;
  form.succeeded_s = succeeded.value_or(0);
  form.is_rounded = rounded != time;
  return form;
}

// Into a record that has let go of what it had.
void PageIndex::put_down(Record& record, Number page, const KnownPage& known) {
  const auto form = form_of(known);
  const auto manner = form ? manners_.take(form->manner) : std::nullopt;
  if (!manner) {
    beside_.insert_or_assign(page, known);
    record.form = static_cast<std::uint8_t>(kBesideMark | static_cast<unsigned>(known.state) << 4);
    return;
  }
  const auto state = static_cast<unsigned>(known.state);
  const unsigned short_state = state == 0 ? 0 : state - 1;  // without visiting
  record.time_s = form->time_s;
  record.manner = *manner;
  record.tag = tags_.take(known.tag).value_or(kWideTag);
  record.form = static_cast<std::uint8_t>(short_state | static_cast<unsigned>(known.wait) << 2 |
                                          static_cast<unsigned>(form->shape) << 4 | (form->is_rounded ? 0x80U : 0U));
  if (record.tag == kWideTag) wide_tags_.insert_or_assign(page, known.tag);
  if (form->shape >= Shape::failed_since) successes_.insert_or_assign(page, form->succeeded_s);
}

void PageIndex::let_go_of(Record& record, Number page) {
  if (is_beside(record.form)) {
    beside_.erase(page);
  } else {
    manners_.give_back(record.manner);
    if (record.tag == kWideTag) {
      wide_tags_.erase(page);
    } else {
      tags_.give_back(record.tag);
    }
    if (shape_of(record.form) >= Shape::failed_since) successes_.erase(page);
  }
  record.form = kGapForm;
}

KnownPage PageIndex::expanded(const Record& record, Number page) const {
  const Manner& manner = manners_[record.manner];
  KnownPage known{.state = state_of(record.form), .wait = wait_of(record.form), .priority = manner.priority};
  known.interval = manner.interval;
  known.retried = manner.retried;
  known.tag = record.tag == kWideTag ? wide_tags_.at(page) : tags_[record.tag];
  known.own = manner.own;
  const WallTime time = record_time(record.time_s);
  switch (shape_of(record.form)) {
    case Shape::timeless: break;
    case Shape::due: known.due = time; break;
    case Shape::fetched_span: known.due = time + manner.span; [[fallthrough]];
    case Shape::fetched: known.succeeded_at = known.ended_at = time; break;
    case Shape::ended_span: known.due = time + manner.span; [[fallthrough]];
    case Shape::ended: known.ended_at = time; break;
    case Shape::failed_since_span: known.due = time + manner.span; [[fallthrough]];
    case Shape::failed_since:
      known.ended_at = time;
      known.succeeded_at = record_time(successes_.at(page));
      break;
  }
  return known;
}

KnownPage PageIndex::known(Number page) const {
  const Record& record = this->record(page);
  return is_beside(record.form) ? beside_.at(page) : expanded(record, page);
}

void PageIndex::set(Number page, const KnownPage& known) {
  Record& record = this->record(page);
  if (is_beside(record.form) && !form_of(known)) {  // a visit that begins where another state was beside, too
    beside_.insert_or_assign(page, known);
    record.form = static_cast<std::uint8_t>(kBesideMark | static_cast<unsigned>(known.state) << 4);
    return;
  }
  let_go_of(record, page);
  put_down(record, page, known);
}

PageState PageIndex::state(Number page) const noexcept { return state_of(record(page).form); }

std::uint32_t PageIndex::host_of(const Record& record, Number page) const noexcept {
  const std::uint32_t host = record.host_low | static_cast<std::uint32_t>(record.host_high) << 16;
  return host == kWideHost ? wide_hosts_.find(page)->second : host;
}

std::uint32_t PageIndex::host(Number page) const noexcept { return host_of(record(page), page); }

void PageIndex::set_host(Number page, std::uint32_t host) {
  hosts_.add(host);
  Record& record = this->record(page);
  const std::uint32_t short_host = std::min(host, kWideHost);
  record.host_low = static_cast<std::uint16_t>(short_host);
  record.host_high = static_cast<std::uint8_t>(short_host >> 16);
  if (short_host == kWideHost) {
    wide_hosts_.insert_or_assign(page, host);
  } else {
    wide_hosts_.erase(page);
  }
}

// --- what waits ------------------------------------------------------------------------------------------------------

std::optional<PageIndex::Waiting> PageIndex::waiting_of(const Record& record, Number page,
                                                        const TermsOf& terms_of) const {
  if (record.form == kGapForm || state_of(record.form) != PageState::waiting) return std::nullopt;
  Waiting waiting{.page = page, .host = host_of(record, page)};
  const bool recrawl_in_record = !is_beside(record.form) && wait_of(record.form) == PageWait::recrawl;
  if (!is_beside(record.form) && !recrawl_in_record) {
    const Manner& manner = manners_[record.manner];
    const Shape shape = shape_of(record.form);
    waiting.priority = manner.priority;
    if (shape == Shape::due) waiting.due = record_time(record.time_s);
    if (shape == Shape::fetched_span || shape == Shape::ended_span || shape == Shape::failed_since_span) {
      waiting.due = record_time(record.time_s) + manner.span;
    }
    return waiting;
  }
  const KnownPage known =
      under_rule(recrawl_in_record ? expanded(record, page) : beside_.at(page), terms_of(record.rule));
  if (known.state != PageState::waiting) return std::nullopt;
  waiting.priority = known.priority;
  waiting.due = known.due;
  // Its success was rounded down, and what is due is not to be so early.
  const bool is_early = recrawl_in_record && (record.form & 0x80) != 0;
  if (is_early && waiting.due < WallTime::max() - IndexSeconds{1}) waiting.due += IndexSeconds{1};
  return waiting;
}

std::optional<PageIndex::Waiting> PageIndex::waiting(Number page, const TermsOf& terms_of) const {
  if (page == 0 || page > last_ || !chunks_[(page - 1) / kChunk]) return std::nullopt;
  return waiting_of(record(page), page, terms_of);
}

PageIndex::Number PageIndex::collect(Number from, std::size_t steps, const TermsOf& terms_of,
                                     const std::function<void(const Waiting&)>& visit) const {
  Number page = std::max<Number>(from, 1);
  for (; page <= last_ && steps > 0; --steps) {
    if (!chunks_[(page - 1) / kChunk]) {
      page += kChunk - (page - 1) % kChunk;
      continue;
    }
    if (const auto waiting = waiting_of(record(page), page, terms_of)) visit(*waiting);
    ++page;
  }
  return page <= last_ ? page : 0;
}

// --- records ---------------------------------------------------------------------------------------------------------

PageIndex::Record& PageIndex::new_record() {
  if (last_ >= kLastPageNumber) throw std::length_error("a project has no more numbers for pages");
  const std::size_t chunk = last_ / kChunk;
  if (chunk >= chunks_.size()) chunks_.resize(chunk + 1);
  if (!chunks_[chunk]) {
    chunks_[chunk] = std::make_unique<Chunk>();
    for (Record& record : chunks_[chunk]->records) record.form = kGapForm;
  }
  return record(last_ + 1);
}

PageIndex::Number PageIndex::add(std::uint64_t fingerprint, std::uint32_t host, RuleNumber rule,
                                 const KnownPage& page) {
  hosts_.add(host);
  Record& record = new_record();
  const Number number = last_ + 1;
  record.fingerprint = fingerprint;
  record.rule = rule;
  const std::uint32_t short_host = std::min(host, kWideHost);
  record.host_low = static_cast<std::uint16_t>(short_host);
  record.host_high = static_cast<std::uint8_t>(short_host >> 16);
  if (short_host == kWideHost) wide_hosts_.insert_or_assign(number, host);
  insert(mixed(fingerprint), static_cast<std::uint32_t>(number));
  last_ = number;
  ++pages_;
  put_down(record, number, page);
  return number;
}

void PageIndex::skip_to(Number next) {
  if (next <= last_ + 1) return;
  if (next > kLastPageNumber) throw std::length_error("a project has no more numbers for pages");
  last_ = next - 1;
  const std::size_t chunks = (last_ + kChunk - 1) / kChunk;
  if (chunks > chunks_.size()) chunks_.resize(chunks);
}

void PageIndex::reserve(std::size_t pages) {
  pages = std::min<std::size_t>(pages, kLastPageNumber);
  if (pages <= pages_) return;
  chunks_.reserve((last_ + (pages - pages_) + kChunk - 1) / kChunk);
  if (!segments_) segments_ = std::make_unique<Segments>();
  // Chance gives some segments more than others: by far the most within four deviations.
  const std::size_t mean = (pages >> kSegmentBits) + 1;
  std::size_t deviation = 1;
  while (deviation * deviation < mean) ++deviation;
  const std::uint32_t capacity = segment_capacity(mean + (mean > 64 ? 3 * deviation : 0));
  for (Segment& segment : *segments_) {
    if (capacity > segment.capacity) grow(segment, capacity);
  }
}

// --- the table -------------------------------------------------------------------------------------------------------

std::uint64_t PageIndex::mixed(std::uint64_t fingerprint) const noexcept { return mix64(fingerprint ^ seed_); }

PageIndex::Number PageIndex::find(std::uint64_t fingerprint) const noexcept {
  if (!segments_) return 0;
  const std::uint64_t hash = mixed(fingerprint);
  const Segment& segment = (*segments_)[hash >> (64 - kSegmentBits)];
  if (segment.used == 0) return 0;
  const std::uint64_t mask = (std::uint64_t{1} << segment.number_bits) - 1;
  const auto hash_bits = static_cast<std::uint32_t>(entry_of(hash, 0, segment.number_bits));
  for (std::uint32_t place = ideal(hash, segment.capacity);;) {
    const std::uint32_t entry = segment.entries[place];
    if (entry == 0) return 0;
    const auto number = static_cast<std::uint32_t>(entry & mask);
    if (entry - number == hash_bits && record(number).fingerprint == fingerprint) return number;
    if (++place == segment.capacity) place = 0;
  }
}

void PageIndex::place(Segment& segment, std::uint64_t mixed, std::uint32_t number) noexcept {
  std::uint32_t place = ideal(mixed, segment.capacity);
  while (segment.entries[place] != 0) {
    if (++place == segment.capacity) place = 0;
  }
  segment.entries[place] = entry_of(mixed, number, segment.number_bits);
}

void PageIndex::insert(std::uint64_t mixed, std::uint32_t number) {
  if (!segments_) segments_ = std::make_unique<Segments>();
  Segment& segment = (*segments_)[mixed >> (64 - kSegmentBits)];
  const auto bits = static_cast<std::uint32_t>(std::bit_width(number));
  if (bits > segment.number_bits) widen_numbers(segment, bits);
  if (std::uint64_t{segment.used + 1} * 100 > std::uint64_t{segment.capacity} * kFullPercent) {
    const std::uint32_t used = segment.used;
    grow(segment, segment_capacity(std::uint64_t{used} + (used < kSmallSegment ? used / 2 : used / 8) + 1));
  }
  place(segment, mixed, number);
  ++segment.used;
}

// Numbers take bits from the hashes, whose low ones stay.
void PageIndex::widen_numbers(Segment& segment, std::uint32_t number_bits) noexcept {
  const std::uint64_t mask = (std::uint64_t{1} << segment.number_bits) - 1;
  for (std::uint32_t place = 0; place < segment.capacity; ++place) {
    std::uint32_t& entry = segment.entries[place];
    if (entry == 0) continue;
    const std::uint64_t hash = entry >> segment.number_bits;
    entry = entry_of(hash, static_cast<std::uint32_t>(entry & mask), number_bits);
  }
  segment.number_bits = number_bits;
}

void PageIndex::grow(Segment& segment, std::uint32_t capacity) {
  const Segment old{std::exchange(segment.entries, std::make_unique<std::uint32_t[]>(capacity)), segment.capacity,
                    segment.used, segment.number_bits};
  segment.capacity = capacity;
  const std::uint64_t mask = (std::uint64_t{1} << old.number_bits) - 1;
  // Records lie anywhere: their memory is fetched some ahead.
  std::array<std::uint32_t, kPrefetched> ahead{};
  std::size_t count = 0;
  const auto place_ahead = [&] {
    for (std::size_t i = 0; i < count; ++i) place(segment, mixed(record(ahead[i]).fingerprint), ahead[i]);
    count = 0;
  };
  for (std::uint32_t i = 0; i < old.capacity; ++i) {
    if (old.entries[i] == 0) continue;
    ahead[count] = static_cast<std::uint32_t>(old.entries[i] & mask);
    __builtin_prefetch(&record(ahead[count]));
    if (++count == kPrefetched) place_ahead();
  }
  place_ahead();
}

std::size_t PageIndex::memory_bytes() const noexcept {
  constexpr std::size_t kAllocation = 2 * sizeof(void*);
  std::size_t bytes =
      sizeof(*this) + chunks_.capacity() * sizeof(chunks_[0]) + manners_.memory_bytes() + tags_.memory_bytes();
  for (const auto& chunk : chunks_) bytes += chunk ? sizeof(Chunk) + kAllocation : 0;
  if (segments_) {
    bytes += sizeof(Segments);
    for (const Segment& segment : *segments_)
      bytes += segment.capacity * sizeof(std::uint32_t) + (segment.entries ? kAllocation : 0);
  }
  bytes += beside_.size() * (sizeof(std::pair<const Number, KnownPage>) + 2 * sizeof(void*)) +
           beside_.bucket_count() * sizeof(void*);
  bytes += (successes_.size() + wide_tags_.size() + wide_hosts_.size()) * 4 * sizeof(void*);
  bytes += (successes_.bucket_count() + wide_tags_.bucket_count() + wide_hosts_.bucket_count()) * sizeof(void*);
  return bytes + hosts_.memory_bytes();
}

}  // namespace argiope
