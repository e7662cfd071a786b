#include "argiope/crawl/detail/crawl_report.hpp"

#include "argiope/store/detail/url_record.hpp"

namespace argiope {

std::uint64_t CrawlReport::cut_by_guards() const {
  std::uint64_t sum = 0;
  for (const UrlReason guard : {UrlReason::url_length, UrlReason::repeated_segment, UrlReason::pages_per_host,
                                UrlReason::links_per_page, UrlReason::cut_off, UrlReason::trap}) {
    const auto found = left_out.find(std::string(to_string(guard)));
    if (found != left_out.end()) sum += found->second;
  }
  return sum;
}

}  // namespace argiope
