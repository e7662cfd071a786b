// The forms of an HTML page: what a browser would send if nobody changed anything. Found in one pass, without a tree.
// Used by the login step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace argiope {

inline constexpr std::size_t kMostForms = 100;            // of a page
inline constexpr std::size_t kMostFormControls = 1000;    // of all its forms
inline constexpr std::size_t kMostControlBytes = 65'536;  // of a name or value; longer ones are cut off

struct FormControl {
  std::string name;  // never empty
  std::string value;
  bool is_sent = false;  // as the page stands; an unchecked box is not
  bool is_password = false;
  bool is_submit = false;  // a button that sends the form
};

struct HtmlForm {
  std::string action;  // as written; empty: the page's own URL
  enum class Encoding : std::uint8_t { urlencoded, multipart, plain } encoding = Encoding::urlencoded;
  bool by_post = false;  // else by GET
  std::vector<FormControl> controls;

  // Null when there is none of that name.
  const FormControl* control(std::string_view name) const noexcept;
};

struct HtmlForms {
  std::vector<HtmlForm> forms;
  std::string base_href;  // of the first `base` that has one
};

// `html` is UTF-8. HTML standard, 4.10.21.4 ("constructing the entry list") as far as it needs no scripts: disabled
// controls, plain buttons and files are left out; a `select` has its selected options, or its first.
// Cost: linear in the page.
HtmlForms scan_forms(std::string_view html);

}  // namespace argiope
