// WarcReplay: requests answered from WARC files of any program, instead of from the net.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/web/http.hpp"
#include "argiope/web/url.hpp"

namespace argiope {

// The newest capture of each URL in some WARC files.
//
// Memory:  some 60 bytes a URL.
// Threads: any.
class WarcReplay {
 public:
  // Finds captures by the index beside a file (FILE.cdxj) as far as that goes, and by reading the file.
  // Errors: not_found, io; wrong_format (no WARC file); too_large (a record). A damaged record is left out with a
  // warning, and a file that ends within its last record is read as far as it is whole.
  static Result<std::shared_ptr<const WarcReplay>> open(const std::vector<std::string>& files);
  ~WarcReplay();

  std::size_t urls() const noexcept;
  // Where the crawl that made the archive began; where that is not told, the first page in it.
  const std::vector<Url>& seeds() const noexcept;

  // Answers from `replay`. A robots.txt that is not in the archive is a 404; any other URL that is not there is the
  // error not_found. HEAD gets the head that GET would get; conditions are not looked at, and nothing asks to wait
  // (Retry-After). Blocks while it reads the file, and never suspends.
  static std::unique_ptr<HttpTransport> transport(std::shared_ptr<const WarcReplay> replay);

 private:
  class Impl;
  class Transport;
  explicit WarcReplay(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace argiope
