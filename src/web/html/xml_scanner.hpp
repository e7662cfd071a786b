// A pass over XML, tag by tag, that forgives what people get wrong. Private to the web module.
//
// Not a parser by the book: no DTD is read, no entity declared, and what is not well-formed is read as it was meant.
// That suits who looks for a few known elements, as in sitemaps and feeds.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "web/text/internal/ascii.hpp"
#include "web/text/internal/code_points.hpp"

namespace argiope {

// Appends `text` with its references replaced: of characters by number, and the five that XML knows by name. Any other
// "&" stays.
inline void append_xml_text(std::string& out, std::string_view text) {
  constexpr std::size_t kLongest = 10;  // of a reference, without & and ;
  struct Named {
    std::string_view name;
    char character;
  };
  constexpr Named kNamed[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  const auto number_of = [](std::string_view digits) -> std::uint32_t {
    const bool hex = !digits.empty() && (digits.front() == 'x' || digits.front() == 'X');
    if (hex) digits.remove_prefix(1);
    std::uint32_t value = 0;
    for (const char c : digits) {
      const int digit = hex_value(c);
      if (digit < 0 || (!hex && digit > 9)) return 0;
      value = value * (hex ? 16 : 10) + static_cast<std::uint32_t>(digit);
      if (value > 0x10FFFF) return 0;
    }
    return value >= 0xD800 && value <= 0xDFFF ? 0 : value;
  };
  while (true) {
    const std::size_t sign = std::min(text.find('&'), text.size());
    out += text.substr(0, sign);
    if (sign == text.size()) return;
    text.remove_prefix(sign);
    const std::size_t end = text.substr(0, kLongest + 2).find(';');
    const std::string_view name = end == std::string_view::npos ? std::string_view{} : text.substr(1, end - 1);
    const auto* const named = std::ranges::find(kNamed, name, &Named::name);
    const std::uint32_t character = named != std::end(kNamed) ? static_cast<std::uint32_t>(named->character)
                                    : name.starts_with('#')   ? number_of(name.substr(1))
                                                              : 0;
    if (character != 0)
      append_utf8(character, out);
    else
      out += '&';
    text.remove_prefix(character != 0 ? end + 1 : 1);
  }
}

struct XmlAttribute {
  std::string_view name;   // with its prefix
  std::string_view value;  // as written
};

// `Handler` has start(name, attributes), end(name), text(written), cdata(text): names with their prefixes. All that
// they get is part of `xml`. A tag that closes itself starts and ends. scan() returns why the rest was not read; empty:
// all was.
template <class Handler>
class XmlScanner {
 public:
  static constexpr std::size_t kMostAttributes = 1'000;  // of a tag; the others are left out

  XmlScanner(std::string_view xml, Handler& handler) : xml_(xml), handler_(handler) {}

  // `goes_on()` is asked after each tag.
  template <class GoesOn>
  std::string scan(GoesOn&& goes_on) {
    while (at_ < xml_.size() && goes_on()) {
      const std::size_t sign = std::min(xml_.find('<', at_), xml_.size());
      if (sign > at_) handler_.text(xml_.substr(at_, sign - at_));
      at_ = sign;
      if (at_ == xml_.size()) break;
      if (!markup()) return "it ends inside of a tag";
    }
    return {};
  }

 private:
  static constexpr bool is_name_start(char c) noexcept {
    return is_alpha(c) || c == '_' || c == ':' || static_cast<unsigned char>(c) >= 0x80;
  }
  static constexpr bool ends_name(char c) noexcept {
    return is_space(c) || c == '/' || c == '>' || c == '=' || c == '<';
  }
  std::string_view rest() const noexcept { return xml_.substr(at_); }
  bool skip_behind(std::string_view what, std::size_t from) noexcept {
    const std::size_t found = xml_.find(what, std::min(from, xml_.size()));
    if (found == std::string_view::npos) return false;
    at_ = found + what.size();
    return true;
  }
  void skip_space() noexcept {
    while (at_ < xml_.size() && is_space(xml_[at_])) ++at_;
  }
  std::string_view name() noexcept {
    const std::size_t start = at_;
    while (at_ < xml_.size() && !ends_name(xml_[at_])) ++at_;
    return xml_.substr(start, at_ - start);
  }

  // At a "<". False: the text ends before what begins here.
  bool markup() {
    if (rest().starts_with("<!--")) return skip_behind("-->", at_ + 4);
    if (rest().starts_with("<![CDATA[")) {
      const std::size_t start = at_ + 9;
      if (!skip_behind("]]>", start)) return false;
      handler_.cdata(xml_.substr(start, at_ - 3 - start));
      return true;
    }
    if (rest().starts_with("<?")) return skip_behind("?>", at_ + 2);
    if (rest().starts_with("<!")) return skip_declaration();
    if (rest().starts_with("</")) {
      at_ += 2;
      const std::string_view closed = name();
      const std::size_t end = xml_.find_first_of("<>", at_);
      if (end == std::string_view::npos) return false;
      at_ = xml_[end] == '>' ? end + 1 : end;
      handler_.end(closed);
      return true;
    }
    if (at_ + 1 == xml_.size()) return false;
    if (!is_name_start(xml_[at_ + 1])) {
      handler_.text(xml_.substr(at_++, 1));
      return true;
    }
    return start_tag();
  }

  // A DOCTYPE with what it declares, none of which is read.
  bool skip_declaration() noexcept {
    int brackets = 0;
    for (at_ += 2; at_ < xml_.size(); ++at_) {
      const char c = xml_[at_];
      if (c == '"' || c == '\'') {
        const std::size_t end = xml_.find(c, at_ + 1);
        if (end == std::string_view::npos) return false;
        at_ = end;
      } else if (brackets > 0 && rest().starts_with("<!--")) {
        const std::size_t end = xml_.find("-->", at_ + 4);
        if (end == std::string_view::npos) return false;
        at_ = end + 2;
      } else if (c == '[') {
        ++brackets;
      } else if (c == ']') {
        --brackets;
      } else if (c == '>' && brackets <= 0) {
        ++at_;
        return true;
      }
    }
    return false;
  }

  bool start_tag() {
    ++at_;
    const std::string_view opened = name();
    attributes_.clear();
    while (true) {
      skip_space();
      if (at_ >= xml_.size()) return false;
      const char c = xml_[at_];
      if (c == '>' || c == '<') break;
      if (c == '/' || c == '=') {
        ++at_;
        continue;
      }
      if (!attribute()) return false;
    }
    const bool closes_itself = at_ > 0 && xml_[at_ - 1] == '/';
    if (xml_[at_] == '>') ++at_;
    handler_.start(opened, attributes_);
    if (closes_itself) handler_.end(opened);
    return true;
  }

  bool attribute() {
    XmlAttribute found;
    found.name = name();
    skip_space();
    if (at_ < xml_.size() && xml_[at_] == '=') {
      ++at_;
      skip_space();
      if (at_ >= xml_.size()) return false;
      const char quote = xml_[at_];
      if (quote == '"' || quote == '\'') {
        const std::size_t end = xml_.find(quote, at_ + 1);
        if (end == std::string_view::npos) return false;
        found.value = xml_.substr(at_ + 1, end - at_ - 1);
        at_ = end + 1;
      } else {
        const std::size_t start = at_;
        while (at_ < xml_.size() && !is_space(xml_[at_]) && xml_[at_] != '>' && xml_[at_] != '<') ++at_;
        found.value = xml_.substr(start, at_ - start);
      }
    }
    if (attributes_.size() < kMostAttributes) attributes_.push_back(found);
    return true;
  }

  const std::string_view xml_;
  Handler& handler_;
  std::size_t at_ = 0;
  std::vector<XmlAttribute> attributes_;
};

}  // namespace argiope
