// Parameters of any URL: they stand where they are said to be, and taking some out takes out those alone.
#include "web/url/internal/url_parameters.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/web/url.hpp"
#include "fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace argiope;
  auto url = Url::parse({reinterpret_cast<const char*>(data), size});
  if (!url) return 0;
  url->strip_fragment();
  const std::string& href = url->href();
  std::size_t last = 0;
  std::size_t count = 0, dropped = 0;
  const auto drop = [](std::string_view name) { return name.size() % 2 == 0; };
  for_each_parameter(href, [&](std::size_t begin, std::size_t end, std::string_view name) {
    require(begin >= last && end > begin && end <= href.size());
    require(href[begin] == '?' || href[begin] == '&' || href[begin] == ';');
    require(!name.empty() && name.data() == href.data() + begin + 1);
    last = end;
    ++count;
    dropped += drop(name);
  });
  const std::string rest = without_parameters(href, drop);
  require(rest.empty() == (dropped == 0));
  if (rest.empty()) return 0;
  require(rest.size() < href.size());
  std::size_t left = 0;
  for_each_parameter(rest, [&](std::size_t, std::size_t, std::string_view name) {
    require(!drop(name));
    ++left;
  });
  require(left == count - dropped);
  const std::string none = without_parameters(href, [](std::string_view) { return true; });
  for_each_parameter(none, [&](std::size_t, std::size_t, std::string_view) { require(false); });
  return 0;
}
