// Pages that are asked for: in the words of scripts, as a request says them ("A page" in docs/processors.md), and what
// they are called; and messages that a request sends.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "argiope/web/url.hpp"
#include "base/internal/json_reader.hpp"
#include "base/internal/json_writer.hpp"
#include "project/process/internal/processor.hpp"

namespace argiope {

// Of one page that is said as a JSON object. Its rule is empty where it says none.
// Errors: invalid_input: what a script's page would be left out for.
Result<AskedPage> read_asked_page(std::string_view json);
// The members that read_asked_page() reads, of the object that is open in `out`.
void write_asked_page(JsonWriter& out, const AskedPage& page);
// Whether anything is said of it beside its URL, rule and context.
bool says_more_than_where(const AskedPage& page);

// The sender of a message that no project has sent: pyspider's name for it.
inline constexpr std::string_view kSentFromOutside = "__command__";
// A message to `project`: {"message": whatever it is, "url": what its result is called}, the latter may be missing.
// Mistakes go to the errors of `form`.
PageMessage read_outside_message(const JsonValue& form, std::string_view project);

// The name of the page of a URL, unless it was given another one: the URL as Url spells it, without fragment.
std::string usual_page_name(Url url);
// The same of a text; nullopt: it is no URL.
std::optional<std::string> usual_page_name(std::string_view url);

}  // namespace argiope
