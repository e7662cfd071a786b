// The forms of any page. Names are there, numbers are bounded, and a second look finds the same.
#include "web/html/html_forms.hpp"

#include <cstdint>
#include <string_view>

#include "fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace argiope;
  const HtmlForms found = scan_forms({reinterpret_cast<const char*>(data), size});
  require(found.forms.size() <= kMostForms);
  std::size_t controls = 0;
  for (const HtmlForm& form : found.forms) {
    int buttons = 0;
    for (const FormControl& control : form.controls) {
      require(!control.name.empty() && control.value.size() <= 3 * kMostControlBytes);
      if (control.is_submit && control.is_sent) ++buttons;
    }
    require(buttons <= 1);
    controls += form.controls.size();
  }
  require(controls <= kMostFormControls);
  return 0;
}
