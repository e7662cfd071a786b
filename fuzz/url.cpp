// The URL parser: any bytes, alone and against a base; what it accepts must parse to itself again, and its parts must
// be what it is made of. An input of two lines is a base and a reference.
#include "argiope/web/url.hpp"

#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"

namespace {

using namespace argiope;

void check(const Url& url) {
  require(url.href().size() <= kMaxUrlLength);
  const auto again = Url::parse(url.href());
  require(again && *again == url && again->host() == url.host() && again->pathname() == url.pathname());
  require(url.is_ip_host() == again->is_ip_host());

  std::string credentials(url.username());
  if (!url.password().empty()) credentials.append(":").append(url.password());
  if (!credentials.empty()) credentials += '@';
  const std::string whole = std::string(url.scheme()) + "://" + credentials + std::string(url.host_and_port()) +
                            std::string(url.path_and_query());
  require(whole == url.without_fragment());
  require(url.pathname().starts_with('/') && url.host().empty() <= (url.scheme() == "file"));
  require(url.host_and_port() == std::string(url.host()) + (url.port().empty() ? "" : ":" + std::string(url.port())));

  Url bare = url;
  bare.strip_fragment();
  require(bare.href() == url.without_fragment() && bare.hash().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  static const Url fallback = *Url::parse("http://user:pw@host.example:81/a/b/c?q#f");
  static Url reused;  // keeps whatever the input before it left behind
  // An encoder that writes what a parser should never see unencoded.
  static const QueryEncoder encoder = [](std::string_view utf8, std::string& out) { (out += "\x1b\xff#' ") += utf8; };

  const std::size_t newline = input.find('\n');
  const auto base = newline == std::string_view::npos ? Result<Url>{fallback} : Url::parse(input.substr(0, newline));
  const std::string_view reference = newline == std::string_view::npos ? input : input.substr(newline + 1);
  for (const Url* against : {static_cast<const Url*>(nullptr), base ? &*base : nullptr}) {
    const auto url = Url::parse(reference, against);
    const UrlStatus status = parse_into(reused, reference, against);
    require(url.has_value() == (status == UrlStatus::ok) && reused == url.value_or(Url{}));
    if (url) check(*url);
    if (parse_into(reused, reference, against, &encoder) == UrlStatus::ok) check(reused);
  }
  return 0;
}
