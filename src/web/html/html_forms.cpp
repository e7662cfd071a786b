#include "web/html/html_forms.hpp"

#include <algorithm>
#include <optional>

#include "web/html/internal/html_entities.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostTagAttributes = 100;
constexpr std::size_t kNoForm = static_cast<std::size_t>(-1);

// Character references replaced, and no longer than it may be.
std::string decoded_value(std::string_view raw) {
  std::vector<char> bytes;
  append_attribute_value(raw.substr(0, kMostControlBytes), bytes);
  return {bytes.begin(), bytes.end()};
}

struct FormTag {
  std::string_view name;  // as written
  bool is_end = false;
  std::vector<std::pair<std::string_view, std::string_view>> attributes;  // the first of a name counts

  bool is(std::string_view lower) const noexcept { return equals_lower(name, lower); }
  bool has(std::string_view lower) const noexcept { return raw(lower).has_value(); }
  std::string value(std::string_view lower) const { return decoded_value(raw(lower).value_or(std::string_view{})); }

 private:
  std::optional<std::string_view> raw(std::string_view lower) const noexcept {
    for (const auto& [its_name, its_value] : attributes) {
      if (equals_lower(its_name, lower)) return its_value;
    }
    return std::nullopt;
  }
};

// The tags of a page in their order; comments, declarations and the text of scripts are passed over.
class FormTags {
 public:
  explicit FormTags(std::string_view html) : rest_(html) {}

  // False at the end. `tag` is valid until the next call.
  bool next(FormTag& tag) {
    for (;;) {
      const std::size_t open = rest_.find('<');
      if (open == std::string_view::npos) return false;
      rest_.remove_prefix(open + 1);
      if (rest_.starts_with("!--")) {
        skip_behind("-->", 1);
      } else if (rest_.starts_with('!') || rest_.starts_with('?')) {
        skip_behind(">", 0);
      } else if (read(tag)) {
        if (!tag.is_end && is_opaque(tag)) take_text_until_end_of(tag.name);
        return true;
      }
    }
  }

  // Of a `textarea` that next() has just given, what stands in it.
  std::string_view raw_text() const noexcept { return raw_text_; }
  // What stands between the tag that next() has just given and the next one.
  std::string_view text_ahead() const noexcept { return rest_.substr(0, rest_.find('<')); }

 private:
  static bool is_opaque(const FormTag& tag) noexcept {
    constexpr std::string_view kNames[] = {"script", "style",  "textarea", "title",
                                           "xmp",    "iframe", "noembed",  "noframes"};
    return std::ranges::any_of(kNames, [&](std::string_view name) { return tag.is(name); });
  }

  void skip_behind(std::string_view end, std::size_t from) {
    const std::size_t found = rest_.find(end, from);
    rest_.remove_prefix(found == std::string_view::npos ? rest_.size() : found + end.size());
  }

  // Behind a "<". False: it begins no tag.
  bool read(FormTag& tag) {
    tag.is_end = rest_.starts_with('/');
    if (tag.is_end) rest_.remove_prefix(1);
    if (rest_.empty() || !is_alpha(rest_.front())) return false;
    tag.name = take_while([](char c) { return !is_space(c) && c != '/' && c != '>'; });
    tag.attributes.clear();
    for (;;) {
      take_while([](char c) { return is_space(c) || c == '/'; });
      if (rest_.empty()) return false;
      if (rest_.front() == '>') break;
      read_attribute(tag);
    }
    rest_.remove_prefix(1);
    return true;
  }

  void read_attribute(FormTag& tag) {
    const std::size_t first = rest_.front() == '=' ? 1 : 0;  // may begin with one
    std::size_t size = first;
    while (size < rest_.size() && !is_space(rest_[size]) && !std::string_view("/>=").contains(rest_[size])) ++size;
    const std::string_view name = rest_.substr(0, size);
    rest_.remove_prefix(size);
    take_while(is_space);
    std::string_view value;
    if (rest_.starts_with('=')) {
      rest_.remove_prefix(1);
      take_while(is_space);
      value = take_value();
    }
    if (tag.attributes.size() < kMostTagAttributes) tag.attributes.emplace_back(name, value);
  }

  std::string_view take_value() {
    if (rest_.empty() || (rest_.front() != '"' && rest_.front() != '\'')) {
      return take_while([](char c) { return !is_space(c) && c != '>'; });
    }
    const char quote = rest_.front();
    rest_.remove_prefix(1);
    const std::string_view value = take_while([quote](char c) { return c != quote; });
    rest_.remove_prefix(std::min<std::size_t>(1, rest_.size()));
    return value;
  }

  template <class Belongs>
  std::string_view take_while(Belongs belongs) {
    std::size_t size = 0;
    while (size < rest_.size() && belongs(rest_[size])) ++size;
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  void take_text_until_end_of(std::string_view name) {
    const std::string_view text = rest_;
    while (!rest_.empty()) {
      const std::size_t open = std::min(rest_.find("</"), rest_.size());
      rest_.remove_prefix(open);
      const std::string_view behind = rest_.substr(std::min<std::size_t>(2, rest_.size()));
      if (rest_.empty() || equals_ignoring_case(behind.substr(0, name.size()), name)) break;
      rest_.remove_prefix(2);
    }
    raw_text_ = text.substr(0, text.size() - rest_.size());
  }

  std::string_view rest_;
  std::string_view raw_text_;
};

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

class FormScanner {
 public:
  explicit FormScanner(std::string_view html) : tags_(html) {}

  HtmlForms run() {
    for (FormTag tag; tags_.next(tag);) {
      if (tag.is("form")) {
        form(tag);
      } else if (tag.is("select")) {
        end_select();
        if (!tag.is_end) begin_select(tag);
      } else if (tag.is("template")) {
        templates_ += tag.is_end ? (templates_ > 0 ? -1 : 0) : 1;
      } else if (!tag.is_end) {
        start(tag);
      }
    }
    end_select();
    return std::move(found_);
  }

 private:
  void form(const FormTag& tag) {
    if (tag.is_end) {
      current_ = kNoForm;
      return;
    }
    // One in another is none.
    if (current_ != kNoForm || found_.forms.size() == kMostForms) return;
    current_ = found_.forms.size();
    ids_.push_back(tag.value("id"));
    HtmlForm& form = found_.forms.emplace_back();
    form.action = tag.value("action");
    form.by_post = equals_lower(tag.value("method"), "post");
    const std::string encoding = tag.value("enctype");
    if (equals_lower(encoding, "multipart/form-data")) form.encoding = HtmlForm::Encoding::multipart;
    if (equals_lower(encoding, "text/plain")) form.encoding = HtmlForm::Encoding::plain;
  }

  void start(const FormTag& tag) {
    if (tag.is("base") && templates_ == 0 && found_.base_href.empty()) {
      found_.base_href = tag.value("href");
    } else if (tag.is("input")) {
      input(tag);
    } else if (tag.is("button")) {
      const std::string type = tag.value("type");
      const bool sends = !equals_lower(type, "button") && !equals_lower(type, "reset");
      if (sends) add(tag, {.value = tag.value("value"), .is_submit = true});
    } else if (tag.is("textarea")) {
      std::string_view text = tags_.raw_text();
      if (text.starts_with('\n')) text.remove_prefix(1);
      add(tag, {.value = decoded_value(text), .is_sent = true});
    } else if (tag.is("option") && select_) {
      option(tag);
    }
  }

  void input(const FormTag& tag) {
    const std::string type = tag.value("type");
    const auto is = [&](std::string_view lower) { return equals_lower(type, lower); };
    if (is("button") || is("reset") || is("file") || is("image")) return;
    FormControl control{.value = tag.value("value"), .is_sent = true};
    if (is("checkbox") || is("radio")) {
      control.is_sent = tag.has("checked");
      if (!tag.has("value")) control.value = "on";
    }
    control.is_password = is("password");
    control.is_submit = is("submit");
    if (control.is_submit) control.is_sent = false;
    add(tag, std::move(control));
  }

  void add(const FormTag& tag, FormControl control) {
    control.name = tag.value("name");
    if (tag.has("disabled") || control.name.empty()) return;
    add_to(owner_of(tag), std::move(control));
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
  std::size_t owner_of(const FormTag& tag) const {
    if (!tag.has("form")) return current_;
    const auto named = std::ranges::find(ids_, tag.value("form"));
    return named == ids_.end() ? kNoForm : static_cast<std::size_t>(named - ids_.begin());
  }

  void begin_select(const FormTag& tag) {
    select_.emplace(Select{tag.value("name"), owner_of(tag), tag.has("multiple"), {}});
    if (tag.has("disabled")) select_->name.clear();
  }
  void option(const FormTag& tag) {
    const bool disabled = tag.has("disabled");
    FormControl control{.name = select_->name};
    control.value = tag.has("value") ? tag.value("value") : collapsed_text(tags_.text_ahead());
    control.is_sent = tag.has("selected") && !disabled;
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

  FormTags tags_;
  HtmlForms found_;
  std::vector<std::string> ids_;  // of the forms
  std::size_t current_ = kNoForm;
  std::size_t controls_ = 0;
  std::optional<Select> select_;
  int templates_ = 0;  // that are open; what is in one is no part of the page
};

}  // namespace

const FormControl* HtmlForm::control(std::string_view name) const noexcept {
  const auto found = std::ranges::find(controls, name, &FormControl::name);
  return found == controls.end() ? nullptr : &*found;
}

HtmlForms scan_forms(std::string_view html) { return FormScanner(html).run(); }

}  // namespace argiope
