// The forms of a page: its tags are the walker's, and what they make of forms is here.
#include "web/html/html_forms.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "web/html/internal/html_entities.hpp"
#include "web/html/tag_reader.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::size_t kNoForm = static_cast<std::size_t>(-1);

constexpr TagBeginnings kTagsOfForms = {"base",    "button",   "form",     "iframe",    "input",  "math",
                                        "noembed", "noframes", "option",   "plaintext", "script", "select",
                                        "style",   "svg",      "template", "textarea",  "title",  "xmp"};

// Character references replaced, and no longer than it may be.
std::string decoded_value(std::string_view raw) {
  std::vector<char> bytes;
  append_attribute_value(raw.substr(0, kMostControlBytes), bytes);
  return {bytes.begin(), bytes.end()};
}

std::string collapsed_text(std::string_view raw) {
  std::string text;
  for (const char c : decoded_value(raw)) {
    if (!is_space(c)) {
      text += c;
    } else if (!text.empty() && text.back() != ' ') {
      text += ' ';
    }
  }
  if (text.ends_with(' ')) text.pop_back();
  return text;
}

class FormReader : public TagReader<FormReader> {
 public:
  explicit FormReader(std::string_view html) noexcept : TagReader(html), page_end_(html.data() + html.size()) {}

  HtmlForms read() {
    run();
    end_select();
    return std::move(found_);
  }

 private:
  friend HtmlWalker<FormReader>;

  bool wants(const char* name) const noexcept { return kTagsOfForms.may_be(name); }

  const char* start_tag(const char* p) {
    const std::string_view name(p, behind_name(p));
    p = read_attributes(name.data() + name.size());
    if (p == nullptr) return nullptr;
    const TagKind kind = tag_kind(name);
    if ((foreign_.entered() || kind == TagKind::foreign_root) && foreign_.start_tag(name, self_closing_)) return p;
    switch (kind) {
      case TagKind::base:
        if (!in_template() && found_.base_href.empty()) found_.base_href = words_of("href");
        return p;
      case TagKind::template_: open_template(); return p;
      case TagKind::raw_text: return equals_lower(name, "textarea") ? textarea(p) : raw_text(p, name);
      case TagKind::title:
      case TagKind::style: return raw_text(p, name);
      case TagKind::script: return script(p);
      case TagKind::plaintext: return nullptr;
      default: element(name, p); return p;
    }
  }

  const char* end_tag(const char* p) {
    if (begins_with_name(p, "form")) current_ = kNoForm;
    if (begins_with_name(p, "select")) end_select();
    return TagReader::end_tag(p);
  }

  bool has(std::string_view attribute_name) const noexcept { return attribute(attribute_name) != nullptr; }

  void element(std::string_view name, const char* behind_tag) {
    if (equals_lower(name, "form")) {
      form();
    } else if (equals_lower(name, "input")) {
      input();
    } else if (equals_lower(name, "button")) {
      if (!says("type", "button") && !says("type", "reset")) add({.value = words_of("value"), .is_submit = true});
    } else if (equals_lower(name, "select")) {
      end_select();
      begin_select();
    } else if (equals_lower(name, "option") && select_) {
      option(behind_tag);
    }
  }

  void form() {
    // One in another is none.
    if (current_ != kNoForm || found_.forms.size() == kMostForms) return;
    current_ = found_.forms.size();
    ids_.push_back(words_of("id"));
    HtmlForm& form = found_.forms.emplace_back();
    form.action = words_of("action");
    form.by_post = says("method", "post");
    if (says("enctype", "multipart/form-data")) form.encoding = HtmlForm::Encoding::multipart;
    if (says("enctype", "text/plain")) form.encoding = HtmlForm::Encoding::plain;
  }

  // Says where to go on.
  const char* textarea(const char* behind_tag) {
    // One that nothing ends has all that is left of the page.
    const char* const end = raw_text_end(behind_tag, "textarea");
    std::string_view text(behind_tag, end == nullptr ? page_end_ : end);
    if (text.starts_with('\n')) text.remove_prefix(1);
    add({.value = decoded_value(text), .is_sent = true});
    return end == nullptr ? nullptr : skip_tag(end + 2);
  }

  void input() {
    const std::string type = words_of("type");
    const auto is = [&](std::string_view lower) { return equals_lower(type, lower); };
    if (is("button") || is("reset") || is("file") || is("image")) return;
    FormControl control{.value = words_of("value"), .is_sent = true};
    if (is("checkbox") || is("radio")) {
      control.is_sent = has("checked");
      if (!has("value")) control.value = "on";
    }
    control.is_password = is("password");
    control.is_submit = is("submit");
    if (control.is_submit) control.is_sent = false;
    add(std::move(control));
  }

  void add(FormControl control) {
    control.name = words_of("name");
    if (has("disabled") || control.name.empty()) return;
    add_to(owner(), std::move(control));
  }
  void add_to(std::size_t form, FormControl control) {
    if (form == kNoForm || controls_ == kMostFormControls) return;
    // The first button is what "Enter" presses.
    std::vector<FormControl>& others = found_.forms[form].controls;
    if (control.is_submit) control.is_sent = std::ranges::none_of(others, &FormControl::is_submit);
    others.push_back(std::move(control));
    ++controls_;
  }

  // By its attribute, or where it stands. A form that comes only later is not found.
  std::size_t owner() const {
    if (!has("form")) return current_;
    const auto named = std::ranges::find(ids_, words_of("form"));
    return named == ids_.end() ? kNoForm : static_cast<std::size_t>(named - ids_.begin());
  }

  void begin_select() {
    select_.emplace(Select{words_of("name"), owner(), has("multiple"), {}});
    if (has("disabled")) select_->name.clear();
  }
  void option(const char* behind_tag) {
    const bool disabled = has("disabled");
    FormControl control{.name = select_->name};
    control.value =
        has("value") ? words_of("value") : collapsed_text({behind_tag, find_byte(behind_tag, page_end_, '<')});
    control.is_sent = has("selected") && !disabled;
    if (!disabled && select_->options.size() < kMostFormControls) select_->options.push_back(std::move(control));
  }
  void end_select() {
    if (!select_) return;
    Select select = std::move(*select_);
    select_.reset();
    if (select.name.empty()) return;
    std::vector<FormControl>& options = select.options;
    if (!select.multiple && !options.empty()) {
      // The last that is selected, or the first of all.
      const auto last = std::ranges::find(options.rbegin(), options.rend(), true, &FormControl::is_sent);
      FormControl chosen = last == options.rend() ? options.front() : *last;
      chosen.is_sent = true;
      options = {std::move(chosen)};
    }
    if (options.empty()) options.push_back({.name = select.name});
    for (FormControl& one : options) add_to(select.form, std::move(one));
  }

  struct Select {
    std::string name;
    std::size_t form;
    bool multiple;
    std::vector<FormControl> options;
  };

  const char* const page_end_;
  HtmlForms found_;
  std::vector<std::string> ids_;  // of the forms
  std::size_t current_ = kNoForm;
  std::size_t controls_ = 0;
  std::optional<Select> select_;
};

}  // namespace

const FormControl* HtmlForm::control(std::string_view name) const noexcept {
  const auto found = std::ranges::find(controls, name, &FormControl::name);
  return found == controls.end() ? nullptr : &*found;
}

HtmlForms scan_forms(std::string_view html) { return FormReader(html).read(); }

}  // namespace argiope
