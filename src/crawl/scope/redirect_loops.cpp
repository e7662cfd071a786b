#include "crawl/scope/redirect_loops.hpp"

#include <algorithm>

#include "base/internal/fingerprint.hpp"

namespace argiope {

void RedirectLoops::add(std::int64_t url_id, std::string_view url, std::string_view target) {
  redirects_.insert_or_assign(fingerprint(url), Redirect{url_id, fingerprint(target), Verdict::unknown});
}

// Each redirect leads to one target: the way from one is followed until it ends, closes, or meets what is known.
RedirectLoops::Verdict RedirectLoops::follow(std::uint64_t from) {
  std::vector<Redirect*> way;
  Verdict verdict = Verdict::ends;
  for (auto at = redirects_.find(from); at != redirects_.end(); at = redirects_.find(at->second.target)) {
    Redirect& redirect = at->second;
    if (redirect.verdict != Verdict::unknown) {
      verdict = redirect.verdict == Verdict::on_the_way ? Verdict::loops : redirect.verdict;
      break;
    }
    redirect.verdict = Verdict::on_the_way;
    way.push_back(&redirect);
  }
  for (Redirect* redirect : way) redirect->verdict = verdict;
  return verdict;
}

std::vector<std::int64_t> RedirectLoops::find() {
  std::vector<std::int64_t> loops;
  for (auto& [url, redirect] : redirects_) redirect.verdict = Verdict::unknown;
  for (const auto& [url, redirect] : redirects_) {
    if (redirect.verdict == Verdict::loops || follow(url) == Verdict::loops) loops.push_back(redirect.url_id);
  }
  std::ranges::sort(loops);
  return loops;
}

}  // namespace argiope
