#include "web/server/http_request_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/internal/printable.hpp"
#include "web/http/internal/http_method_names.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/http_field.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostBlankLines = 4;        // before a request
constexpr std::size_t kMostChunkLine = 4 * 1024;  // of a chunk's head; the trailers may be as long as a head
constexpr std::size_t kKeptInput = 4 * 1024;
constexpr std::size_t kKeptBody = 64 * 1024;
constexpr unsigned char kTlsHandshake = 0x16;

// uri-host [":" port], as far as that a Host can have nothing in it that belongs elsewhere.
bool is_host(std::string_view text) noexcept {
  return std::ranges::all_of(text,
                             [](char c) { return is_alnum(c) || std::string_view("-._~:[]%!$&'()*+,;=").contains(c); });
}

}  // namespace

HttpRequestReader::HttpRequestReader(const HttpServerOptions& options, ServerRequest& request)
    : options_(options), request_(request) {}

HttpRequestReader::State HttpRequestReader::read() {
  if (state_ == State::head) read_head();
  if (state_ == State::body) read_body();
  return state_;
}

void HttpRequestReader::next() {
  state_ = State::head;
  begin_ = line_begin_ = at_;
  lines_.start_over();
  line_count_ = blank_lines_ = 0;
  has_head_ = false;
  if (begin_ == input_.size()) {
    begin_ = line_begin_ = at_ = 0;
    if (input_.capacity() > kKeptInput) {
      std::string().swap(input_);
    } else {
      input_.clear();
    }
  }
  request_.headers.clear();
  request_.path_values.clear();
  if (request_.body.capacity() > kKeptBody) {
    std::string().swap(request_.body);
  } else {
    request_.body.clear();
  }
}

bool HttpRequestReader::take_wish_to_continue() noexcept {
  // A client that has begun to send it needs no telling.
  return std::exchange(wishes_to_continue_, false) && state_ == State::body && !has_more() && request_.body.empty();
}

void HttpRequestReader::show_head() {
  if (has_head_) return refer_to_input();
  request_.headers.clear();
  request_.target = request_.path = request_.query = request_.host = {};
}

HttpRequestReader::State HttpRequestReader::refuse(int status, std::string detail) {
  refusal_ = {status, std::move(detail)};
  return state_ = State::refused;
}

bool HttpRequestReader::refuse_bytes(std::string_view why) {
  refuse(400, fmt::format("bad request: {}", why));
  return false;
}

// --- the head

HttpRequestReader::State HttpRequestReader::read_head() {
  if (!find_end_of_head()) {
    // So that a connection that carries many requests in a row does not keep them all.
    if (state_ == State::head && begin_ > 0) {
      input_.erase(0, begin_);
      line_begin_ -= begin_;
      begin_ = at_ = 0;
    }
    return state_;
  }
  return parse_head();
}

bool HttpRequestReader::find_end_of_head() {
  using Found = HttpLineFinder::Found;
  for (;;) {
    const std::string_view unread = std::string_view(input_).substr(line_begin_);
    if (line_count_ == 0 && !unread.empty() && static_cast<unsigned char>(unread.front()) == kTlsHandshake) {
      refuse(400, "this port speaks HTTP, and not TLS");
      return false;
    }
    HttpLine line;
    const Found found = lines_.find(unread, options_.max_header_bytes, line);
    if (found == Found::too_long || line_begin_ + line.size - begin_ > options_.max_header_bytes) {
      refuse(line_count_ == 0 ? 414 : 431,
             fmt::format("{} longer than {} bytes",
                         line_count_ == 0 ? "the request line is" : "request line and header fields are",
                         options_.max_header_bytes));
      return false;
    }
    if (found == Found::not_yet || !check_line(line)) return false;
    lines_.use(line);
    line_begin_ += line.size;
    if (!line.text.empty()) {
      ++line_count_;
      continue;
    }
    if (line_count_ > 0) {
      head_end_ = line_begin_;
      return true;
    }
    lines_.start_over();
    begin_ = line_begin_;
    if (++blank_lines_ > kMostBlankLines) return refuse_bytes("there are empty lines where a request should start");
  }
}

bool HttpRequestReader::check_line(const HttpLine& line) {
  if (line.is_bare) return refuse_bytes("a line ends with LF alone");
  if (line_count_ > 0 && !line.text.empty() && is_blank(line.text.front())) {
    return refuse_bytes("a header field goes on in a second line");
  }
  if (line_count_ > options_.max_header_fields && !line.text.empty()) {
    refuse(431, fmt::format("there are more than {} header fields", options_.max_header_fields));
    return false;
  }
  return true;
}

HttpRequestReader::State HttpRequestReader::parse_head() {
  fields_.clear();
  host_ = {};
  framing_ = {};
  chunks_ = {};
  std::string_view head = std::string_view(input_).substr(begin_, head_end_ - begin_);
  for (bool is_first = true;; is_first = false) {
    const std::string_view line = head.substr(0, head.find('\n') - 1);
    if (line.empty()) break;
    if (!(is_first ? parse_request_line(line) : parse_field(line))) return state_;
    head.remove_prefix(line.size() + 2);
  }
  at_ = head_end_;
  return check_head();
}

bool HttpRequestReader::parse_request_line(std::string_view line) {
  const std::string_view method = line.substr(0, line.find(' '));
  if (method.size() == line.size() || !is_token(method)) return refuse_bytes("the method is not a token");
  line.remove_prefix(method.size() + 1);
  const auto* const target_end =
      std::ranges::find_if(line, [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f; });
  const std::string_view target = line.substr(0, static_cast<std::size_t>(target_end - line.begin()));
  if (target.empty() || target_end == line.end() || *target_end != ' ') {
    return refuse_bytes("the request target is missing, or has characters that must be escaped");
  }
  line.remove_prefix(target.size() + 1);
  is_http_1_0_ = line == "HTTP/1.0";
  if (is_http_1_0_ || line == "HTTP/1.1") {
    method_ = place_of(method);
    target_ = place_of(target);
    return true;
  }
  if (!line.starts_with("HTTP/")) return refuse_bytes("the request line does not end in HTTP/1.1");
  refuse(505, "this server speaks HTTP/1.1 and HTTP/1.0");
  return false;
}

bool HttpRequestReader::parse_field(std::string_view line) {
  using Fault = HttpField::Fault;
  const auto [name, value, fault, is_spaced] = http_field_in(line);
  if (fault == Fault::name || is_spaced) return refuse_bytes("a header line does not start with a name and a colon");
  if (fault == Fault::carriage_return) return refuse_bytes("a line ends with CR alone");
  if (fault == Fault::control) return refuse_bytes("a header field has a control character");
  if (equals_lower(name, "connection") || equals_lower(name, "proxy-connection")) {
    if (!take_connection(value)) return false;
  } else if (equals_lower(name, "content-length")) {
    if (!take_length(value)) return false;
  } else if (equals_lower(name, "transfer-encoding")) {
    if (!take_coding(value)) return false;
  }
  if (has_head_) return true;  // it is a trailer
  fields_.emplace_back(place_of(name), place_of(value));
  if (equals_lower(name, "host")) {
    ++framing_.hosts;
    host_ = place_of(value);
  } else if (equals_lower(name, "expect")) {
    (equals_lower(value, "100-continue") ? framing_.expects_continue : framing_.expects_other) = true;
  }
  return true;
}

bool HttpRequestReader::take_connection(std::string_view value) {
  bool is_list = true;
  for_each_element(value,
                   [&](std::string_view element) { is_list = is_list && (element.empty() || is_token(element)); });
  append_to_list(framing_.connection, value);
  return is_list || refuse_bytes("Connection is not a list");
}

bool HttpRequestReader::take_length(std::string_view value) {
  std::uint64_t length = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, length);
  const bool is_number = error == std::errc{} && stop == end;
  // One list is as many fields.
  if (framing_.length || (!is_number && value.contains(','))) return refuse_bytes("Content-Length is given twice");
  if (!is_number || framing_.is_chunked) {
    return refuse_bytes("Content-Length is not a number, or stands beside Transfer-Encoding");
  }
  framing_.length = length;
  return true;
}

bool HttpRequestReader::take_coding(std::string_view value) {
  if (framing_.has_coding || framing_.length) {
    return refuse_bytes("Transfer-Encoding is given twice, or beside Content-Length");
  }
  framing_.has_coding = true;
  framing_.is_chunked = equals_lower(value, "chunked");
  return true;
}

HttpRequestReader::State HttpRequestReader::check_head() {
  if (framing_.has_coding) {
    if (!framing_.is_chunked) return refuse(501, "the only Transfer-Encoding this server knows is chunked");
    if (is_http_1_0_) return refuse(400, "bad request: HTTP/1.0 has no Transfer-Encoding");
  }
  if (!check_host()) return state_;
  const auto method = http_method_named(at(method_));
  if (!method) {
    return refuse(501, fmt::format("this server does not know the method {}", in_quotes(at(method_), 40)));
  }
  request_.method = *method;
  if (!choose_target()) return state_;
  if (framing_.expects_other) return refuse(417, "the only expectation this server knows is 100-continue");
  wishes_to_continue_ = framing_.expects_continue && !is_http_1_0_;
  has_head_ = true;
  refer_to_input();
  return begin_body();
}

bool HttpRequestReader::check_host() {
  if (framing_.hosts > 1) return refuse_bytes("Host is given twice");
  if (framing_.hosts == 0 && !is_http_1_0_) return refuse_bytes("there is no Host");
  return is_host(at(host_)) || refuse_bytes("Host is no name and port");
}

// "/path", "http://host/path" as clients of proxies send it, or "*".
bool HttpRequestReader::choose_target() {
  const std::string_view target = at(target_);
  const std::size_t scheme = starts_with_lower(target, "http://") ? 7 : starts_with_lower(target, "https://") ? 8 : 0;
  if (scheme > 0) {
    const std::size_t path = std::min(target.find_first_of("/?", scheme), target.size());
    host_ = {target_.begin + scheme, path - scheme};
    target_ = {target_.begin + path, target.size() - path};
    return (host_.size > 0 && is_host(at(host_))) || refuse_bytes("the target has no host");
  }
  return target.starts_with('/') || (target == "*" && request_.method == HttpMethod::options) ||
         refuse_bytes("the target does not start with a slash");
}

void HttpRequestReader::refer_to_input() {
  request_.set_target(at(target_));
  request_.host = at(host_);
  request_.headers.clear();
  for (const auto& [name, value] : fields_) request_.headers.emplace_back(at(name), at(value));
}

// --- the body

HttpRequestReader::State HttpRequestReader::begin_body() {
  body_limit_ = options_.body_limit ? options_.body_limit(request_) : options_.max_body_bytes;
  const auto length = framing_.length;
  if (length && *length > body_limit_) {
    return refuse(413, fmt::format("the body has {} bytes, and {} are allowed", *length, body_limit_));
  }
  if (!framing_.is_chunked && length.value_or(0) == 0) return state_ = State::complete;
  if (length) request_.body.reserve(std::min<std::size_t>(*length, kKeptBody));
  return state_ = State::body;
}

HttpRequestReader::State HttpRequestReader::read_body() {
  const bool is_over = framing_.is_chunked ? read_chunks() : read_sized_body();
  if (state_ == State::refused) return state_;
  if (is_over) {
    refer_to_input();
    return state_ = State::complete;
  }
  drop_read_body();
  return state_;
}

bool HttpRequestReader::read_sized_body() {
  const std::size_t left = static_cast<std::size_t>(*framing_.length) - request_.body.size();
  const std::string_view piece = std::string_view(input_).substr(at_, left);
  request_.body += piece;
  at_ += piece.size();
  return piece.size() == left;
}

bool HttpRequestReader::read_chunks() {
  using Step = HttpChunkReader::Step;
  const std::size_t most_of_lines = std::max(kMostChunkLine, options_.max_header_bytes);
  while (at_ < input_.size()) {
    HttpLine line;
    const Step step = chunks_.take(std::string_view(input_).substr(at_), most_of_lines, line);
    if (step == Step::needs_more || !take_chunk(step, line)) return false;
    at_ += line.size;
    if (step == Step::trailer && line.text.empty()) return true;
  }
  return false;
}

bool HttpRequestReader::take_chunk(HttpChunkReader::Step step, const HttpLine& line) {
  using Step = HttpChunkReader::Step;
  switch (step) {
    case Step::needs_more: return true;
    case Step::too_long: return refuse_bytes("the line of a chunk's size, or what follows the last chunk, is too long");
    case Step::bad_size:
    case Step::bad_end: return refuse_bytes("a chunk has no size, or ends elsewhere than its size says");
    case Step::size:
      if (line.is_bare || line.text.contains('\r') || !are_chunk_extensions(chunks_.extensions())) {
        return refuse_bytes("the line of a chunk's size has something else in it");
      }
      if (chunks_.left() <= body_limit_ - request_.body.size()) return true;
      refuse(413, fmt::format("the body is longer than {} bytes, which are allowed", body_limit_));
      return false;
    case Step::data: request_.body += line.text; return true;
    case Step::end: return !line.is_bare || refuse_bytes("a chunk has no size, or ends elsewhere than its size says");
    case Step::trailer:
      if (line.is_bare) return refuse_bytes("a line ends with LF alone");
      return line.text.empty() || parse_field(line.text);
  }
  return true;
}

// The head stays where it is.
void HttpRequestReader::drop_read_body() {
  input_.erase(head_end_, at_ - head_end_);
  at_ = head_end_;
}

}  // namespace argiope
