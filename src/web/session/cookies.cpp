// The jar: which cookies there are, in what order they go, and which have to leave. The rules are in cookie_rules.cpp.
#include <algorithm>
#include <list>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "argiope/web/http_session.hpp"
#include "web/session/cookie_rules.hpp"

namespace argiope {
namespace {

// A cookie whose life is prolonged by less than this is the same as before for who writes cookies down: many servers
// prolong it with each answer.
constexpr Duration kSameExpiry = std::chrono::hours{1};
// Of one request: Apache and nginx read no field of more than 8 KiB, and a site that sets a cookie on each page would
// lock us out.
constexpr std::size_t kMostOfField = 8000;

struct KeptCookie {
  Cookie cookie;
  WallTime used;

  std::size_t bytes() const noexcept {
    return sizeof(KeptCookie) + cookie.name.size() + cookie.value.size() + cookie.domain.size() + cookie.path.size();
  }
};

// One that is to be sent: longest paths first, then the oldest (RFC 6265, 5.4).
struct ChosenCookie {
  std::size_t path_length;
  std::size_t place;
  KeptCookie* kept;
};
bool goes_before(const ChosenCookie& a, const ChosenCookie& b) noexcept {
  return a.path_length != b.path_length ? a.path_length > b.path_length : a.place < b.place;
}

bool is_same_to_write_down(const Cookie& a, const Cookie& b) {
  const bool as_long = a.expires.has_value() == b.expires.has_value() &&
                       (!a.expires || std::chrono::abs(*a.expires - *b.expires) < kSameExpiry);
  return as_long && a.value == b.value && a.secure == b.secure && a.http_only == b.http_only;
}

}  // namespace

class CookieJar::Impl {
 public:
  Impl(const CookieLimits& limits, std::atomic<std::size_t>& size) : limits_(limits), size_(size) {}

  bool take(const Url& from, Cookie cookie, WallTime now) {
    std::lock_guard lock(mutex_);
    return !overlays_secure(from, cookie) && store(std::move(cookie), now);
  }
  void put(Cookie cookie, WallTime now) {
    std::lock_guard lock(mutex_);
    store(std::move(cookie), now);
  }
  std::string field_for(const Url& url, WallTime now);
  std::vector<Cookie> all(WallTime now) const;
  void watch() {
    std::lock_guard lock(mutex_);
    watched_ = true;
  }
  std::vector<std::pair<std::string, std::vector<Cookie>>> take_changes(WallTime now);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  struct Site {
    std::vector<KeptCookie> cookies;  // in the order in which they came
    std::size_t bytes = 0;
    std::list<std::string_view>::iterator place;  // in recent_
  };
  using Sites = std::unordered_map<std::string, Site, Hash, std::equal_to<>>;

  bool overlays_secure(const Url& from, const Cookie& cookie) const;
  bool store(Cookie cookie, WallTime now);
  Sites::iterator site_for(std::string_view name);
  void erase(Site& site, std::size_t index);
  void erase_if_empty(Sites::iterator entry);
  void erase_expired(Sites::iterator entry, WallTime now);
  void shrink(Sites::iterator entry, WallTime now);
  void note_change(const std::string& site) {
    if (watched_) changed_.insert(site);
  }
  void append_cookies_of(std::string_view name, WallTime now, std::vector<Cookie>& out) const;
  static std::size_t first_to_go(const Site& site, WallTime now);

  const CookieLimits limits_;
  std::atomic<std::size_t>& size_;  // written with the lock held
  mutable std::mutex mutex_;
  Sites sites_;
  std::list<std::string_view> recent_;  // names of sites_, the one used last in front
  std::size_t bytes_ = 0;
  bool watched_ = false;
  std::unordered_set<std::string> changed_;
};

// RFC 6265bis, 5.7, step 16: what comes in the clear must not take the place of what came over TLS.
bool CookieJar::Impl::overlays_secure(const Url& from, const Cookie& cookie) const {
  if (cookie.secure || is_trustworthy(from)) return false;
  const auto site = sites_.find(site_of_domain(cookie.domain));
  if (site == sites_.end()) return false;
  return std::ranges::any_of(site->second.cookies, [&](const KeptCookie& kept) {
    const Cookie& other = kept.cookie;
    return other.secure && other.name == cookie.name && path_matches(cookie.path, other.path) &&
           (domain_matches(other.domain, cookie.domain) || domain_matches(cookie.domain, other.domain));
  });
}

// True when what is sent has changed.
bool CookieJar::Impl::store(Cookie cookie, WallTime now) {
  const Sites::iterator entry = site_for(site_of_domain(cookie.domain));
  Site& site = entry->second;
  const auto found =
      std::ranges::find_if(site.cookies, [&](const KeptCookie& kept) { return is_same_cookie(kept.cookie, cookie); });
  const bool known = found != site.cookies.end();
  if (has_expired(cookie, now)) {
    if (known) {
      erase(site, static_cast<std::size_t>(found - site.cookies.begin()));
      note_change(entry->first);
    }
    erase_if_empty(entry);
    return known;
  }
  bool is_other = true;
  if (known) {
    is_other = found->cookie.value != cookie.value;
    if (!is_same_to_write_down(found->cookie, cookie)) note_change(entry->first);
    site.bytes -= found->bytes();
    bytes_ -= found->bytes();
    found->cookie = std::move(cookie);
    found->used = now;
    site.bytes += found->bytes();
    bytes_ += found->bytes();
  } else {
    note_change(entry->first);
    site.cookies.push_back({std::move(cookie), now});
    site.bytes += site.cookies.back().bytes();
    bytes_ += site.cookies.back().bytes();
    size_.fetch_add(1, std::memory_order_relaxed);
  }
  shrink(entry, now);
  return is_other;
}

CookieJar::Impl::Sites::iterator CookieJar::Impl::site_for(std::string_view name) {
  if (const auto found = sites_.find(name); found != sites_.end()) {
    recent_.splice(recent_.begin(), recent_, found->second.place);
    return found;
  }
  const auto made = sites_.try_emplace(std::string(name)).first;
  recent_.push_front(made->first);
  made->second.place = recent_.begin();
  return made;
}

void CookieJar::Impl::erase(Site& site, std::size_t index) {
  const auto cookie = site.cookies.begin() + static_cast<std::ptrdiff_t>(index);
  site.bytes -= cookie->bytes();
  bytes_ -= cookie->bytes();
  site.cookies.erase(cookie);
  size_.fetch_sub(1, std::memory_order_relaxed);
}

void CookieJar::Impl::erase_if_empty(Sites::iterator entry) {
  if (!entry->second.cookies.empty()) return;
  recent_.erase(entry->second.place);
  sites_.erase(entry);
}

// Leaves the site where it is, though it may be empty.
void CookieJar::Impl::erase_expired(Sites::iterator entry, WallTime now) {
  Site& site = entry->second;
  for (std::size_t i = site.cookies.size(); i-- > 0;) {
    if (!has_expired(site.cookies[i].cookie, now)) continue;
    erase(site, i);
    note_change(entry->first);
  }
}

std::size_t CookieJar::Impl::first_to_go(const Site& site, WallTime now) {
  const auto rank = [now](const KeptCookie& kept) {
    return std::tuple(!has_expired(kept.cookie, now), kept.cookie.secure, kept.used);
  };
  const auto first = std::ranges::min_element(site.cookies, {}, rank);
  return static_cast<std::size_t>(first - site.cookies.begin());
}

// Keeps to the limits: those of the site, which was used just now, and those of all.
void CookieJar::Impl::shrink(Sites::iterator entry, WallTime now) {
  Site& site = entry->second;
  while (site.cookies.size() > limits_.cookies_per_site || site.bytes > limits_.bytes_per_site) {
    erase(site, first_to_go(site, now));
    note_change(entry->first);
  }
  while (size_.load(std::memory_order_relaxed) > limits_.cookies || bytes_ > limits_.bytes) {
    const auto oldest = sites_.find(recent_.back());
    if (!oldest->second.cookies.empty()) erase(oldest->second, first_to_go(oldest->second, now));
    note_change(oldest->first);
    if (oldest == entry && site.cookies.empty()) break;
    if (oldest != entry) erase_if_empty(oldest);
  }
  erase_if_empty(entry);
}

std::string CookieJar::Impl::field_for(const Url& url, WallTime now) {
  const std::string_view host = url.host();
  const std::string_view path = url.pathname();
  const bool trusted = is_trustworthy(url);
  std::lock_guard lock(mutex_);
  std::vector<ChosenCookie> chosen;
  // Its site is its own name, or what is left of it behind some dot.
  for (std::string_view name = host; !name.empty();) {
    if (const auto entry = sites_.find(name); entry != sites_.end()) {
      recent_.splice(recent_.begin(), recent_, entry->second.place);
      erase_expired(entry, now);
      for (KeptCookie& kept : entry->second.cookies) {
        const Cookie& cookie = kept.cookie;
        const bool is_its_own = cookie.host_only ? host == cookie.domain : domain_matches(host, cookie.domain);
        if (is_its_own && path_matches(path, cookie.path) && (trusted || !cookie.secure)) {
          chosen.push_back({cookie.path.size(), chosen.size(), &kept});
        }
      }
      erase_if_empty(entry);
    }
    const std::size_t dot = name.find('.');
    name = dot == std::string_view::npos ? std::string_view{} : name.substr(dot + 1);
  }
  std::ranges::sort(chosen, goes_before);
  std::string field;
  for (const ChosenCookie& one : chosen) {
    const Cookie& cookie = one.kept->cookie;
    if (field.size() + cookie.name.size() + cookie.value.size() + std::string_view("; =").size() > kMostOfField)
      continue;
    one.kept->used = now;
    if (!field.empty()) field += "; ";
    if (!cookie.name.empty()) field.append(cookie.name) += '=';
    field += cookie.value;
  }
  return field;
}

void CookieJar::Impl::append_cookies_of(std::string_view name, WallTime now, std::vector<Cookie>& out) const {
  const auto site = sites_.find(name);
  if (site == sites_.end()) return;
  for (const KeptCookie& kept : site->second.cookies) {
    if (!has_expired(kept.cookie, now)) out.push_back(kept.cookie);
  }
}

std::vector<Cookie> CookieJar::Impl::all(WallTime now) const {
  std::lock_guard lock(mutex_);
  std::vector<std::string_view> names(recent_.begin(), recent_.end());
  std::ranges::sort(names);
  std::vector<Cookie> cookies;
  for (const std::string_view name : names) append_cookies_of(name, now, cookies);
  return cookies;
}

std::vector<std::pair<std::string, std::vector<Cookie>>> CookieJar::Impl::take_changes(WallTime now) {
  std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, std::vector<Cookie>>> changes;
  for (const std::string& name : changed_) {
    append_cookies_of(name, now, changes.emplace_back(name, std::vector<Cookie>{}).second);
  }
  changed_.clear();
  return changes;
}

CookieJar::CookieJar(CookieLimits limits) : impl_(std::make_unique<Impl>(limits, size_)) {}
CookieJar::~CookieJar() = default;

bool CookieJar::take(const Url& from, std::string_view set_cookie, WallTime now) {
  if (!may_have_cookies(from)) return false;
  const auto asked = parse_set_cookie(set_cookie, now);
  if (!asked) return false;
  auto cookie = cookie_of(from, *asked);
  return cookie && impl_->take(from, std::move(*cookie), now);
}

bool CookieJar::put(Cookie cookie, WallTime now) {
  if (has_expired(cookie, now) || !is_sound(cookie)) return false;
  impl_->put(std::move(cookie), now);
  return true;
}

std::string CookieJar::field_for(const Url& url, WallTime now) {
  return empty() || !may_have_cookies(url) ? std::string{} : impl_->field_for(url, now);
}

std::vector<Cookie> CookieJar::all(WallTime now) const { return impl_->all(now); }
void CookieJar::watch() { impl_->watch(); }
std::vector<std::pair<std::string, std::vector<Cookie>>> CookieJar::take_changes(WallTime now) {
  return impl_->take_changes(now);
}

}  // namespace argiope
