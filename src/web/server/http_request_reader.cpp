#include "web/server/http_request_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <optional>

#include "base/internal/printable.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;

constexpr std::size_t kMostBlankLines = 4;        // before a request
constexpr std::size_t kMostChunkLine = 4 * 1024;  // of a chunk's head; the trailers may be as long as a head
constexpr std::size_t kKeptInput = 4 * 1024;
constexpr std::size_t kKeptBody = 64 * 1024;
// A chunked body has at least that many bytes to come until it is complete. Beast asserts it, and does not look.
constexpr std::size_t kLeastOfChunks = 5;
constexpr unsigned char kTlsHandshake = 0x16;

std::string_view view(beast::string_view text) noexcept { return {text.data(), text.size()}; }

std::optional<HttpMethod> method_of(http::verb verb) noexcept {
  switch (verb) {
    case http::verb::get: return HttpMethod::get;
    case http::verb::head: return HttpMethod::head;
    case http::verb::post: return HttpMethod::post;
    case http::verb::put: return HttpMethod::put;
    case http::verb::patch: return HttpMethod::patch;
    case http::verb::delete_: return HttpMethod::delete_;
    case http::verb::options: return HttpMethod::options;
    default: return std::nullopt;
  }
}

// The fault of the bytes, in words of ours.
std::string_view reason_of(const boost::system::error_code& error) noexcept {
  if (error.category() != http::make_error_code(http::error::bad_method).category()) return "it cannot be read";
  switch (static_cast<http::error>(error.value())) {
    case http::error::bad_method: return "the method is not a token";
    case http::error::bad_target: return "the request target is missing, or has characters that must be escaped";
    case http::error::bad_field: return "a header line does not start with a name and a colon";
    case http::error::bad_value: return "a header field has a control character, or Connection is not a list";
    case http::error::bad_line_ending: return "a line ends with CR alone";
    case http::error::bad_content_length: return "Content-Length is not a number, or stands beside Transfer-Encoding";
    case http::error::multiple_content_length: return "Content-Length is given twice";
    case http::error::bad_transfer_encoding: return "Transfer-Encoding is given twice, or beside Content-Length";
    case http::error::bad_chunk: return "a chunk has no size, or ends elsewhere than its size says";
    case http::error::bad_chunk_extension: return "the line of a chunk's size has something else in it";
    default: return "it is not HTTP";
  }
}

// uri-host [":" port], as far as that a Host can have nothing in it that belongs elsewhere.
bool is_host(std::string_view text) noexcept {
  return std::ranges::all_of(text,
                             [](char c) { return is_alnum(c) || std::string_view("-._~:[]%!$&'()*+,;=").contains(c); });
}

}  // namespace

// Notes where in the input things are.
class HttpRequestReader::Parser final : public http::basic_parser<true> {
 public:
  explicit Parser(HttpRequestReader& reader) noexcept : reader_(reader) {
    // The head is put whole, and has been measured.
    header_limit(~std::uint32_t{0});
    body_limit(boost::none);
  }

  http::verb verb = http::verb::unknown;
  std::size_t lengths = 0;
  std::size_t hosts = 0;
  std::size_t transfer_encodings = 0;
  bool only_chunked = true;
  bool expects_continue = false;
  bool expects_other = false;
  bool in_trailers = false;

 private:
  using Error = beast::error_code;
  using View = beast::string_view;

  Place place_of(View text) const noexcept {
    return {static_cast<std::size_t>(text.data() - reader_.input_.data()), text.size()};
  }

  void on_request_impl(http::verb method, View, View target, int version, Error&) override {
    verb = method;
    reader_.target_ = place_of(target);
    reader_.is_http_1_0_ = version == 10;
  }
  void on_response_impl(int, View, int, Error&) override {}
  void on_field_impl(http::field field, View name, View value, Error&) override {
    if (in_trailers) return;
    reader_.fields_.emplace_back(place_of(name), place_of(value));
    switch (field) {
      case http::field::host:
        ++hosts;
        reader_.host_ = place_of(value);
        break;
      case http::field::content_length:
        // Beast takes "5, 5" for 5.
        lengths += 1 + static_cast<std::size_t>(std::ranges::count(view(value), ','));
        break;
      case http::field::transfer_encoding:
        // Beast takes what does not end in "chunked" for a request without a body.
        ++transfer_encodings;
        only_chunked = only_chunked && equals_lower(view(value), "chunked");
        break;
      case http::field::expect:
        (equals_lower(view(value), "100-continue") ? expects_continue : expects_other) = true;
        break;
      default: break;
    }
  }
  void on_header_impl(Error&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, Error&) override { in_trailers = true; }
  std::size_t on_body_impl(View body, Error&) override {
    reader_.request_.body.append(view(body));
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t, View, Error&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, View body, Error&) override {
    reader_.request_.body.append(view(body));
    return body.size();
  }
  void on_finish_impl(Error&) override {}

  HttpRequestReader& reader_;
};

HttpRequestReader::HttpRequestReader(const HttpServerOptions& options, ServerRequest& request)
    : options_(options), request_(request) {}
HttpRequestReader::~HttpRequestReader() = default;

HttpRequestReader::State HttpRequestReader::read() {
  if (state_ == State::head) read_head();
  if (state_ == State::body) read_body();
  return state_;
}

void HttpRequestReader::next() {
  state_ = State::head;
  begin_ = line_begin_ = at_;
  lines_ = blank_lines_ = 0;
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

bool HttpRequestReader::keep_alive() const noexcept { return parser_->keep_alive(); }

HttpRequestReader::State HttpRequestReader::refuse(int status, std::string detail) {
  refusal_ = {status, std::move(detail)};
  return state_ = State::refused;
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
  for (;;) {
    if (lines_ == 0 && line_begin_ < input_.size() &&
        static_cast<unsigned char>(input_[line_begin_]) == kTlsHandshake) {
      refuse(400, "this port speaks HTTP, and not TLS");
      return false;
    }
    const std::size_t line_end = input_.find('\n', std::max(line_begin_, at_));
    const bool ended = line_end != std::string::npos;
    if ((ended ? line_end + 1 : input_.size()) - begin_ > options_.max_header_bytes) {
      refuse(lines_ == 0 ? 414 : 431,
             fmt::format("{} longer than {} bytes",
                         lines_ == 0 ? "the request line is" : "request line and header fields are",
                         options_.max_header_bytes));
      return false;
    }
    at_ = input_.size();
    if (!ended) return false;
    at_ = line_end + 1;
    if (!check_line(line_end)) return false;
    const bool is_empty = line_end == line_begin_ + 1;
    line_begin_ = line_end + 1;
    if (is_empty && lines_ > 0) {
      head_end_ = line_begin_;
      return true;
    }
    if (!is_empty) {
      ++lines_;
      continue;
    }
    begin_ = line_begin_;
    if (++blank_lines_ > kMostBlankLines) {
      refuse(400, "bad request: there are empty lines where a request should start");
      return false;
    }
  }
}

bool HttpRequestReader::check_line(std::size_t line_end) {
  if (line_end == line_begin_ || input_[line_end - 1] != '\r') {
    refuse(400, "bad request: a line ends with LF alone");
  } else if (lines_ > 0 && (input_[line_begin_] == ' ' || input_[line_begin_] == '\t')) {
    refuse(400, "bad request: a header field goes on in a second line");
  } else if (lines_ > options_.max_header_fields && line_end != line_begin_ + 1) {
    refuse(431, fmt::format("there are more than {} header fields", options_.max_header_fields));
  }
  return state_ != State::refused;
}

HttpRequestReader::State HttpRequestReader::parse_head() {
  fields_.clear();
  host_ = {};
  parser_ = std::make_unique<Parser>(*this);
  boost::system::error_code error;
  const std::size_t used = parser_->put({input_.data() + begin_, head_end_ - begin_}, error);
  if (error == http::error::bad_version) {
    const std::size_t version = input_.find(' ', input_.find(' ', begin_) + 1) + 1;
    return input_.compare(version, 5, "HTTP/") == 0
               ? refuse(505, "this server speaks HTTP/1.1 and HTTP/1.0")
               : refuse(400, "bad request: the request line does not end in HTTP/1.1");
  }
  if (error) return refuse(400, fmt::format("bad request: {}", reason_of(error)));
  if (used != head_end_ - begin_) return refuse(400, "bad request: an empty line is in the middle of the head");
  at_ = head_end_;
  return check_head();
}

HttpRequestReader::State HttpRequestReader::check_head() {
  const Parser& parser = *parser_;
  if (parser.transfer_encodings > 0) {
    if (parser.transfer_encodings > 1) return refuse(400, "bad request: Transfer-Encoding is given twice");
    if (!parser.only_chunked) return refuse(501, "the only Transfer-Encoding this server knows is chunked");
    if (is_http_1_0_) return refuse(400, "bad request: HTTP/1.0 has no Transfer-Encoding");
  }
  if (parser.lengths > 1) return refuse(400, "bad request: Content-Length is given twice");
  if (!check_host()) return state_;
  const auto method = method_of(parser.verb);
  if (!method) {
    const std::size_t size = input_.find(' ', begin_) - begin_;
    return refuse(501, fmt::format("this server does not know the method {}", in_quotes(at({begin_, size}), 40)));
  }
  request_.method = *method;
  if (!choose_target()) return state_;
  if (parser.expects_other) return refuse(417, "the only expectation this server knows is 100-continue");
  wishes_to_continue_ = parser.expects_continue && !is_http_1_0_;
  has_head_ = true;
  refer_to_input();
  return begin_body();
}

bool HttpRequestReader::check_host() {
  if (parser_->hosts > 1) {
    refuse(400, "bad request: Host is given twice");
  } else if (parser_->hosts == 0 && !is_http_1_0_) {
    refuse(400, "bad request: there is no Host");
  } else if (!is_host(at(host_))) {
    refuse(400, "bad request: Host is no name and port");
  }
  return state_ != State::refused;
}

// "/path", "http://host/path" as clients of proxies send it, or "*".
bool HttpRequestReader::choose_target() {
  const std::string_view target = at(target_);
  const std::size_t scheme = starts_with_lower(target, "http://") ? 7 : starts_with_lower(target, "https://") ? 8 : 0;
  if (scheme > 0) {
    const std::size_t path = std::min(target.find_first_of("/?", scheme), target.size());
    host_ = {target_.begin + scheme, path - scheme};
    target_ = {target_.begin + path, target.size() - path};
    if (host_.size == 0 || !is_host(at(host_))) refuse(400, "bad request: the target has no host");
  } else if (!target.starts_with('/') && !(target == "*" && request_.method == HttpMethod::options)) {
    refuse(400, "bad request: the target does not start with a slash");
  }
  return state_ != State::refused;
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
  const auto length = parser_->content_length();
  if (length && *length > body_limit_) {
    return refuse(413, fmt::format("the body has {} bytes, and {} are allowed", *length, body_limit_));
  }
  if (parser_->is_done()) return state_ = State::complete;
  if (length) request_.body.reserve(std::min<std::size_t>(*length, kKeptBody));
  parser_->body_limit(body_limit_);
  parser_->eager(true);
  return state_ = State::body;
}

HttpRequestReader::State HttpRequestReader::read_body() {
  const bool chunked = parser_->chunked();
  while (input_.size() - at_ >= (chunked ? kLeastOfChunks : 1)) {
    boost::system::error_code error;
    const std::size_t used = parser_->put({input_.data() + at_, input_.size() - at_}, error);
    at_ += used;
    if (parser_->is_done()) {
      refer_to_input();
      return state_ = State::complete;
    }
    if (error == http::error::body_limit) {
      return refuse(413, fmt::format("the body is longer than {} bytes, which are allowed", body_limit_));
    }
    if (error && error != http::error::need_more) return refuse(400, fmt::format("bad request: {}", reason_of(error)));
    if (used == 0) break;
  }
  const std::size_t left = input_.size() - at_;
  if (left > std::max(kMostChunkLine, options_.max_header_bytes)) {
    return refuse(400, "bad request: the line of a chunk's size, or what follows the last chunk, is too long");
  }
  drop_read_body();
  return state_;
}

// The head stays where it is.
void HttpRequestReader::drop_read_body() {
  input_.erase(head_end_, at_ - head_end_);
  at_ = head_end_;
}

}  // namespace argiope
