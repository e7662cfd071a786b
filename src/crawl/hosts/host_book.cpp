#include "crawl/hosts/host_book.hpp"

#include <algorithm>
#include <utility>

#include "argiope/base/random.hpp"
#include "argiope/jobs/job.hpp"

namespace argiope {
namespace {

constexpr std::uint8_t kAnswered = 1;
constexpr std::uint8_t kProven = 2;
constexpr std::uint8_t kOnShelf = 4;
constexpr std::uint8_t kUnreachable = 8;
constexpr std::uint8_t kTaken = 16;  // the host is back; its place waits for it
constexpr std::size_t kFirstNotes = 16;
constexpr JobId kMostId = (JobId{1} << 40) - 1;  // a million millions; beyond, the stretch only seems longer

void put_id(std::uint8_t (&bytes)[5], JobId id) noexcept {
  for (std::size_t i = 0; i < 5; ++i) bytes[i] = static_cast<std::uint8_t>(id >> (8 * i));
}
JobId get_id(const std::uint8_t (&bytes)[5]) noexcept {
  JobId id = 0;
  for (std::size_t i = 0; i < 5; ++i) id |= JobId{bytes[i]} << (8 * i);
  return id;
}

// 0 stands for no note.
std::uint64_t key_of(std::uint64_t site) noexcept { return site == 0 ? 1 : site; }

}  // namespace

HostNotes::Note& HostNotes::place_of(Segment& segment, std::uint64_t site) noexcept {
  const std::size_t count = segment.notes.size();
  auto at = static_cast<std::size_t>((static_cast<unsigned __int128>(mix64(site)) * count) >> 64);
  while (segment.notes[at].site != 0 && segment.notes[at].site != site) {
    if (++at == count) at = 0;
  }
  return segment.notes[at];
}

void HostNotes::grow(Segment& segment) {
  std::vector<Note> old =
      std::exchange(segment.notes, std::vector<Note>(std::max(kFirstNotes, segment.notes.size() * 5 / 4)));
  for (const Note& note : old) {
    if (note.site != 0) place_of(segment, note.site) = note;
  }
}

void HostNotes::put(const Host& host) {
  const std::uint64_t site = key_of(host.site_fingerprint);
  Segment& segment = segment_of(site);
  if (7 * (segment.used + 1) > 6 * segment.notes.size()) grow(segment);
  Note& note = place_of(segment, site);
  if (note.site == 0) ++segment.used;
  if (note.site == 0 || (note.flags & kTaken) != 0) ++size_;
  note = Note{};
  note.site = site;
  note.urls = host.urls;
  if (host.health.answered()) note.flags |= kAnswered;
  if (host.health.proven()) note.flags |= kProven;
  if (host.lost) {
    note.lost = static_cast<std::uint8_t>(1 + static_cast<unsigned>(host.lost->cause.code));
    if (host.lost->unreachable) note.flags |= kUnreachable;
  }
  if (!host.on_shelf) return;
  note.flags |= kOnShelf;
  note.first_priority = host.on_shelf->first.priority;
  note.last_priority = host.on_shelf->last.priority;
  put_id(note.first_id, std::min(host.on_shelf->first.id, kMostId));
  put_id(note.last_id, std::min(host.on_shelf->last.id, kMostId));
}

bool HostNotes::take(Host& host) {
  const std::uint64_t site = key_of(host.site_fingerprint);
  Segment& segment = segment_of(site);
  if (segment.notes.empty()) return false;
  Note& note = place_of(segment, site);
  if (note.site == 0 || (note.flags & kTaken) != 0) return false;
  host.urls = note.urls;
  host.health.remember((note.flags & kAnswered) != 0, (note.flags & kProven) != 0);
  if (note.lost != 0) {
    host.lost = std::make_unique<HostLoss>();
    host.lost->cause = {static_cast<Errc>(note.lost - 1), host.site + " was given up earlier in this run"};
    host.lost->unreachable = (note.flags & kUnreachable) != 0;
  }
  if ((note.flags & kOnShelf) != 0) {
    const JobId last = get_id(note.last_id);
    host.on_shelf = Host::Stretch{{note.first_priority, get_id(note.first_id)},
                                  {note.last_priority, last == kMostId ? kMostJobId : last}};
  }
  note.flags |= kTaken;
  --size_;
  return true;
}

Host& HostBook::add(std::string site, std::uint64_t site_fingerprint) {
  auto host = std::make_unique<Host>();
  host->site = std::move(site);
  host->site_fingerprint = site_fingerprint;
  notes_.take(*host);
  Host& made = *host;
  by_site_.emplace(made.site, std::move(host));
  return made;
}

}  // namespace argiope
