// `data:` URLs: pages that are their own answer.
#include <fmt/format.h>

#include <algorithm>

#include "argiope/web/detail/charset.hpp"
#include "base/internal/base64.hpp"
#include "project/fetch/internal/page_fetcher.hpp"
#include "project/fetch/page_encoding.hpp"
#include "project/rules/internal/data_scheme.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {
namespace {

constexpr std::string_view kUsualDataType = "text/plain;charset=US-ASCII";

// Takes ";base64" from the end of a media type, spaces and all. False: it is not there.
bool take_base64_mark(std::string_view& type) {
  constexpr std::string_view kMark = "base64";
  if (type.size() < kMark.size() || !equals_lower(type.substr(type.size() - kMark.size()), kMark)) return false;
  std::string_view rest = type.substr(0, type.size() - kMark.size());
  while (rest.ends_with(' ')) rest.remove_suffix(1);
  if (!rest.ends_with(';')) return false;
  type = rest.substr(0, rest.size() - 1);
  return true;
}

// The Infra Standard's "forgiving-base64 decode": space anywhere, padding or none, and bits after the last byte do not
// matter.
std::optional<std::string> from_forgiving_base64(std::string text) {
  std::erase_if(text, is_space);
  if (text.size() % 4 == 0) {
    for (int i = 0; i < 2 && text.ends_with('='); ++i) text.pop_back();
  }
  if (text.size() % 4 == 1 || text.contains('=')) return std::nullopt;
  const std::size_t left = text.size() % 4;
  if (left != 0) {
    constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t digit = kDigits.find(text.back());
    if (digit == std::string_view::npos) return std::nullopt;
    text.back() = kDigits[digit & (left == 2 ? 0x30u : 0x3cu)];
    text.append(4 - left, '=');
  }
  return from_base64(text);
}

}  // namespace

PageResponse answer_of_data_url(std::string_view url) {
  PageResponse response;
  response.url = url;
  const auto refuse = [&](std::string text) {
    response.error_kind = "refused";
    response.error_text = std::move(text);
    return response;
  };
  if (!is_data_url(url)) return refuse("this is no data: URL");
  std::string_view rest = url.substr(kDataScheme.size());
  rest = rest.substr(0, rest.find('#'));
  const std::size_t comma = rest.find(',');
  if (comma == std::string_view::npos) return refuse("a data: URL without a comma says nothing");
  std::string_view type = trim_space(rest.substr(0, comma));
  const bool is_base64 = take_base64_mark(type);
  response.body = percent_decode(rest.substr(comma + 1));
  if (is_base64) {
    auto bytes = from_forgiving_base64(std::move(response.body));
    response.body.clear();
    if (!bytes) return refuse("the content of the data: URL is no base64");
    response.body = std::move(*bytes);
  }
  std::string given(type);
  if (given.starts_with(';')) given.insert(0, "text/plain");
  const bool is_type = !parse_content_type(given).type.empty() && std::ranges::none_of(given, [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e;
  });
  response.status = 200;
  // Where nothing is said, what is in it is looked at: who writes "data:,é" means no windows-1252.
  response.encoding =
      is_type ? page_encoding(given, response.body) : std::string(detect_charset(response.body, {}).name);
  response.headers.emplace_back("Content-Type", is_type ? std::move(given) : std::string(kUsualDataType));
  return response;
}

}  // namespace argiope
