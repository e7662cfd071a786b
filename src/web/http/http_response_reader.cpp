#include "web/http/internal/http_response_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/internal/utf8.hpp"
#include "web/http/internal/reason_phrase.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/content_type.hpp"
#include "web/text/internal/http_field.hpp"
#include "web/text/internal/uri_text.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostLeadingBlanks = 8;  // bytes of empty lines before the status line

// Read and dropped of a body that is not wanted: less than another connection costs.
constexpr std::uint64_t kMostDroppedBytes = 32 * 1024;

std::unexpected<Error> bad(std::string_view what) {
  return fail(Errc::protocol, fmt::format("bad HTTP response: {}", what));
}

}  // namespace

std::string_view to_string(HttpOddity oddity) noexcept {
  constexpr std::string_view kNames[kHttpOddities] = {"blank_lines",
                                                      "odd_status_line",
                                                      "bare_line_feeds",
                                                      "malformed_header_line",
                                                      "folded_header_line",
                                                      "repeated_length",
                                                      "length_and_transfer_encoding",
                                                      "odd_transfer_encoding",
                                                      "unknown_content_encoding",
                                                      "needless_length",
                                                      "odd_chunks",
                                                      "cut_short"};
  return kNames[static_cast<std::size_t>(oddity)];
}

std::string describe_oddities(std::uint16_t oddities) {
  std::string text;
  for (std::size_t i = 0; i < kHttpOddities; ++i) {
    if ((oddities >> i & 1) == 0) continue;
    if (!text.empty()) text += ", ";
    text += to_string(static_cast<HttpOddity>(i));
  }
  std::ranges::replace(text, '_', ' ');
  return text;
}

void HttpHeaders::clear() {
  content_type.clear();
  etag.clear();
  last_modified.clear();
  location.clear();
  retry_after.clear();
  refresh.clear();
  robots_tag.clear();
  content_encoding.clear();
  set_cookie.clear();
  authenticate.clear();
  content_length.reset();
}

void HttpWire::clear() {
  request.clear();
  head.clear();
  coded_body.clear();
  is_coded = is_cut = false;
}

HttpResponseReader::HttpResponseReader(HttpResponse& response, ContentDecoder& decoder, const HttpReaderLimits& limits,
                                       HttpMethod method)
    : response_(response), decoder_(decoder), limits_(limits), is_head_request_(method == HttpMethod::head) {
  response_.status = 0;
  response_.headers.clear();
  response_.fields.clear();
  response_.body.clear();
  response_.truncated = false;
  response_.unwanted = false;
  response_.oddities = 0;
  response_.damage.clear();
  response_.wire.head.clear();
  response_.wire.coded_body.clear();
  response_.wire.is_coded = response_.wire.is_cut = false;
}

Result<std::size_t> HttpResponseReader::feed(std::string_view bytes) {
  std::size_t used = 0;
  while (!done() && used < bytes.size()) {
    started_ = true;
    const bool in_head = state_ <= State::fields;
    auto stepped = step(bytes.substr(used));
    if (!stepped) return stepped;
    if (*stepped == 0) break;
    // Blank lines before the status line leave the state as it is.
    if (limits_.keep_wire && in_head && state_ != State::status_line)
      response_.wire.head += bytes.substr(used, *stepped);
    used += *stepped;
  }
  return used;
}

Result<std::size_t> HttpResponseReader::step(std::string_view bytes) {
  switch (state_) {
    case State::status_line: return read_status_line(bytes);
    case State::fields: return read_field(bytes);
    case State::chunks: return read_chunks(bytes);
    case State::body_by_length:
    case State::body_to_end: return read_body(bytes);
    case State::framed_body:
    case State::done: break;
  }
  return 0;
}

Result<void> HttpResponseReader::feed_end(const Error* why) {
  const auto broken = [&](std::string message) {
    return why != nullptr ? *why : Error{Errc::network, std::move(message)};
  };
  switch (state_) {
    case State::done: return {};
    case State::status_line:
      if (!started_) return std::unexpected(broken("connection closed before a response"));
      [[fallthrough]];
    case State::fields: return std::unexpected(broken("connection closed inside the response header"));
    case State::body_to_end:
      if (why != nullptr) return cut_short(*why);
      return end_body();
    case State::chunks:
      if (!chunks_.is_in_trailers()) break;
      note(HttpOddity::chunks);  // all of the body is there
      return end_body();
    case State::body_by_length:
      return cut_short(broken(fmt::format("connection closed with {} bytes of the body missing", body_left_)));
    default: break;
  }
  return cut_short(broken("connection closed inside the body"));
}

Result<void> HttpResponseReader::cut_short(Error why) {
  if (response_.unwanted) {
    abandon();
    return {};
  }
  // All that a compressed body had given so far is there already, so a damaged end changes nothing.
  if (!got_body_ || response_.body.empty()) return std::unexpected(std::move(why));
  note(HttpOddity::cut_short);
  response_.damage = std::move(why.message);
  keep_alive_ = false;
  state_ = State::done;
  return {};
}

void HttpResponseReader::note(HttpOddity oddity) {
  response_.oddities |= static_cast<std::uint16_t>(1u << static_cast<unsigned>(oddity));
}

// --- lines

std::unexpected<Error> HttpResponseReader::too_long() const {
  return fail(Errc::too_large, fmt::format("response header larger than {} bytes", limits_.header_bytes));
}

Result<std::optional<HttpLine>> HttpResponseReader::take_line(std::string_view bytes) {
  HttpLine line;
  switch (lines_.find(bytes, limits_.header_bytes, line)) {
    case HttpLineFinder::Found::whole: return line;
    case HttpLineFinder::Found::too_long: return too_long();
    case HttpLineFinder::Found::not_yet: break;
  }
  return std::nullopt;
}

void HttpResponseReader::use(const HttpLine& line) {
  lines_.use(line);
  if (line.is_bare) note(HttpOddity::line_feeds);
}

// --- the head

Result<std::size_t> HttpResponseReader::read_status_line(std::string_view bytes) {
  if (bytes.front() == '\r' || bytes.front() == '\n') {
    if (lines_.count(1) > kMostLeadingBlanks) return bad("no status line");
    note(HttpOddity::blank_lines);
    return 1;
  }
  // A line that does not begin as a status line never will be one: no need to wait for its end.
  const std::string_view begun = bytes.substr(0, 5);
  if (!equals_lower(begun, std::string_view("http/").substr(0, begun.size())) &&
      !starts_with_lower(begun, std::string_view("icy ").substr(0, begun.size()))) {
    return bad("no status line");
  }
  auto line = take_line(bytes);
  if (!line) return std::unexpected(std::move(line.error()));
  if (!*line) return 0;
  use(**line);
  if (auto parsed = parse_status((*line)->text); !parsed) return std::unexpected(std::move(parsed.error()));
  state_ = State::fields;
  return (*line)->size;
}

Result<void> HttpResponseReader::parse_status(std::string_view line) {
  std::size_t at = 3;
  if (starts_with_lower(line, "icy")) {
    note(HttpOddity::status_line);
    minor_version_ = 0;
  } else {
    if (line.size() < 8 || line[5] != '1' || line[6] != '.' || !is_digit(line[7])) return bad("its version");
    minor_version_ = line[7] - '0';
    at = 8;
  }
  const std::size_t code_at = line.find_first_not_of(" \t", at);
  if (code_at == at || code_at == std::string_view::npos) return bad("no status");
  const std::string_view code = line.substr(code_at);
  const bool is_code = code.size() >= 3 && std::ranges::all_of(code.substr(0, 3), is_digit) && code[0] != '0' &&
                       (code.size() == 3 || !is_digit(code[3]));
  if (!is_code) return bad("its status");
  // "200", without even the space that stands before an empty reason; two spaces; "200OK".
  if (code_at != at + 1 || code.size() == 3 || code[3] != ' ') note(HttpOddity::status_line);
  response_.status = (code[0] - '0') * 100 + (code[1] - '0') * 10 + (code[2] - '0');
  return {};
}

Result<std::size_t> HttpResponseReader::read_field(std::string_view bytes) {
  auto first = take_line(bytes);
  if (!first) return std::unexpected(std::move(first.error()));
  if (!*first) return 0;
  HttpLine line = **first;
  if (line.text.empty()) {
    use(line);
    if (auto ended = end_head(); !ended) return std::unexpected(std::move(ended.error()));
    return line.size;
  }
  // A line that begins with a space goes on with the one before (RFC 9112, 5.2).
  for (bool is_first = true;; is_first = false) {
    if (line.size == bytes.size()) {
      lines_.search_from(is_first ? line.size - 1 : 0);
      return 0;
    }
    if (!is_blank(bytes[line.size])) break;
    if (is_first) folded_.assign(line.text);
    lines_.search_from(line.size);
    const auto next = take_line(bytes);
    if (!next) return std::unexpected(next.error());
    if (!*next) {
      lines_.search_from(0);
      return 0;
    }
    folded_ += ' ';
    folded_ += trim_blanks((*next)->text.substr(line.size));
    line = {folded_, (*next)->size, line.is_bare || (*next)->is_bare};
    note(HttpOddity::folded_line);
  }
  use(line);
  if (auto taken = take_field(line.text); !taken) return std::unexpected(std::move(taken.error()));
  return line.size;
}

Result<void> HttpResponseReader::count_field() {
  if (++fields_ <= limits_.header_fields) return {};
  return fail(Errc::too_large, fmt::format("more than {} response header fields", limits_.header_fields));
}

Result<void> HttpResponseReader::take_field(std::string_view line) {
  if (auto counted = count_field(); !counted) return counted;
  const HttpField field = http_field_in(line);
  if (field.is_spaced || field.fault != HttpField::Fault::none) note(HttpOddity::header_line);
  // One that is none is passed over.
  if (field.fault == HttpField::Fault::none) keep_field(field.name, field.value);
  return {};
}

void HttpResponseReader::keep_field(std::string_view name, std::string_view value) {
  if (limits_.keep_fields) response_.fields.emplace_back(name, value);
  enum class Kept : std::uint8_t { first, validator, reference, list, types, lines };
  HttpHeaders& headers = response_.headers;
  const struct {
    std::string_view name;
    std::string* text;
    Kept kept;
  } fields[] = {{"etag", &headers.etag, Kept::validator},
                {"refresh", &headers.refresh, Kept::first},
                {"location", &headers.location, Kept::reference},
                {"connection", &connection_, Kept::list},
                {"set-cookie", &headers.set_cookie, Kept::lines},
                {"retry-after", &headers.retry_after, Kept::first},
                {"content-type", &headers.content_type, Kept::types},
                {"x-robots-tag", &headers.robots_tag, Kept::lines},
                {"last-modified", &headers.last_modified, Kept::validator},
                {"content-length", &content_length_, Kept::list},
                {"content-encoding", &headers.content_encoding, Kept::list},
                {"www-authenticate", &headers.authenticate, Kept::lines},
                {"transfer-encoding", &transfer_encoding_, Kept::list}};
  for (const auto& field : fields) {
    if (!equals_lower(name, field.name)) continue;
    // These three are stored and printed. A validator must be sent back as it came, or not at all: "*" would ask for
    // anything but an answer.
    if (field.kept == Kept::validator && (!is_utf8(value) || value == "*")) return;
    if (field.kept == Kept::types) return add_type(value);
    if (field.kept == Kept::list) return append_to_list(*field.text, value);
    if (field.kept != Kept::lines) {
      if (!field.text->empty()) return;  // of repeated fields the first counts
      *field.text = field.kept == Kept::reference ? reference_of_bytes(value) : std::string(value);
      return;
    }
    if (!field.text->empty()) *field.text += '\n';
    *field.text += value;
    return;
  }
}

void HttpResponseReader::add_type(std::string_view value) {
  std::string& type = response_.headers.content_type;
  const std::string text = to_valid_utf8(value);
  if (type != text) append_to_list(type, text);
}

// --- what the body is

std::optional<std::uint64_t> HttpResponseReader::find_length() {
  bool repeated = false;
  const auto length = agreed_length(content_length_, repeated);
  if (length) response_.headers.content_length = *length;
  if (repeated) note(HttpOddity::repeated_length);
  return length;
}

bool HttpResponseReader::has_no_body(std::optional<std::uint64_t> length) {
  const bool never = response_.status < 200 || response_.status == 204;
  if (never && ((length && *length > 0) || !transfer_encoding_.empty())) note(HttpOddity::needless_length);
  return never || is_head_request_ || response_.status == 304;
}

Result<void> HttpResponseReader::end_head() {
  keep_alive_ = keeps_connection(minor_version_, connection_);
  const bool is_bodiless = has_no_body(find_length());
  if (response_.status == kSwitchingProtocols) keep_alive_ = false;
  if (is_bodiless) {
    state_ = State::done;
  } else if (auto chosen = choose_framing(); !chosen) {
    return chosen;
  }
  distrust_what_is_odd();
  return {};
}

void HttpResponseReader::distrust_what_is_odd() noexcept {
  constexpr unsigned kHarmless = 1u << static_cast<unsigned>(HttpOddity::content_coding);
  if ((response_.oddities & ~kHarmless) != 0) keep_alive_ = false;
}

// RFC 9112, 6.3.
Result<void> HttpResponseReader::choose_framing() {
  const auto length = response_.headers.content_length;
  if (!transfer_encoding_.empty()) {
    bool chunked = false;
    for_each_element(transfer_encoding_, [&](std::string_view element) {
      const std::string_view coding = trim_blanks(element.substr(0, element.find(';')));
      if (chunked || minor_version_ == 0 || !equals_lower(coding, "chunked")) note(HttpOddity::transfer_coding);
      chunked = equals_lower(coding, "chunked");
      // Any other was put on behind the content's codings, and comes off as they do.
      if (!chunked && !equals_lower(coding, "identity")) append_to_list(response_.headers.content_encoding, coding);
    });
    if (length || !content_length_.empty()) note(HttpOddity::length_and_chunks);
    const bool identity = equals_lower(transfer_encoding_, "identity");
    if (chunked || !identity) {
      state_ = chunked ? State::chunks : State::body_to_end;
      return start_body();
    }
  }
  if (!content_length_.empty() && !length) return bad("its Content-Length");
  state_ = length ? State::body_by_length : State::body_to_end;
  if (!length) keep_alive_ = false;
  body_left_ = length.value_or(0);
  if (auto started = start_body(); !started) return started;
  return length && *length == 0 ? end_body() : Result<void>{};
}

Result<void> HttpResponseReader::start_body() {
  if (!limits_.wanted_types.empty()) {
    judge_type();
    if (response_.unwanted) return {};
  }
  const std::string& encoding = response_.headers.content_encoding;
  encoded_ = !encoding.empty() && !equals_lower(encoding, "identity");
  coded_begin_.clear();
  has_all_coded_ = true;
  if (encoded_) {
    auto started = decoder_.start(encoding, limits_.body_bytes);
    if (started) return {};
    if (started.error().code != Errc::unsupported) return started;
    note(HttpOddity::content_coding);  // the body is taken as it is
    encoded_ = false;
  }
  if (state_ == State::body_by_length || state_ == State::framed_body) {
    response_.body.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(body_left_, limits_.body_bytes)));
  }
  return {};
}

// --- the body

Result<std::size_t> HttpResponseReader::read_body(std::string_view bytes) {
  if (state_ != State::body_to_end)
    bytes = bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), body_left_)));
  got_body_ = true;
  if (auto taken = take_body(bytes); !taken) return std::unexpected(std::move(taken.error()));
  if (done() || state_ == State::body_to_end) return bytes.size();
  body_left_ -= bytes.size();
  if (body_left_ > 0) return bytes.size();
  if (auto ended = end_body(); !ended) return std::unexpected(std::move(ended.error()));
  return bytes.size();
}

void HttpResponseReader::keep_coded(std::string_view body) {
  HttpWire& wire = response_.wire;
  const std::size_t room = limits_.body_bytes - wire.coded_body.size();
  wire.is_coded = true;
  wire.is_cut = wire.is_cut || body.size() > room;
  wire.coded_body.append(body.data(), std::min(room, body.size()));
}

Result<void> HttpResponseReader::take_body(std::string_view body) {
  if (response_.unwanted) {
    drop(body.size());
    return {};
  }
  if (encoded_) {
    if (limits_.keep_wire) keep_coded(body);
    auto fed = decoder_.feed(body, response_.body);
    if (!fed && fed.error().code != Errc::protocol) return fed;
    if (!fed && !take_as_it_is(body)) return cut_short(std::move(fed.error()));
    if (fed) {
      response_.truncated = decoder_.truncated();
      remember_coded(body);
    }
  } else {
    take_plain(body);
  }
  if (response_.truncated) state_ = State::done;
  if (sniffs_ && (done() || response_.body.size() >= kSniffedBytes)) sniff_type_of_body();
  return {};
}

void HttpResponseReader::take_plain(std::string_view body) {
  const std::size_t room = limits_.body_bytes - response_.body.size();
  response_.body.append(body.data(), std::min(room, body.size()));
  response_.truncated = body.size() > room;
}

// As long as it is all that has come.
void HttpResponseReader::remember_coded(std::string_view body) {
  if (has_all_coded_) has_all_coded_ = coded_begin_.size() + body.size() <= kSniffedBytes;
  has_all_coded_ ? void(coded_begin_ += body) : coded_begin_.clear();
}

// Takes a body that cannot be decoded from its beginning on, and does not look coded: the server has named a coding
// that it has not put on. `body` is the last piece of it. False: it is damaged.
bool HttpResponseReader::take_as_it_is(std::string_view body) {
  if (!has_all_coded_) return false;
  coded_begin_ += body;
  const std::string_view codings = response_.headers.content_encoding;
  const std::string_view outermost = trim_blanks(codings.substr(codings.rfind(',') + 1));
  if (may_be_coded(outermost, coded_begin_)) return false;
  note(HttpOddity::content_coding);
  encoded_ = false;
  response_.body.clear();
  take_plain(coded_begin_);
  return true;
}

Result<void> HttpResponseReader::end_body() {
  Result<void> finished;
  if (encoded_ && !response_.truncated) finished = decoder_.finish();
  if (!finished && take_as_it_is({})) finished = {};
  if (sniffs_) sniff_type_of_body();
  if (!finished && !response_.unwanted) return cut_short(std::move(finished.error()));
  distrust_what_is_odd();
  state_ = State::done;
  return {};
}

// --- what is not wanted

void HttpResponseReader::judge_type() {
  const std::string& header = response_.headers.content_type;
  sniffs_ = parse_content_type(header).type.empty();
  if (!sniffs_ && !has_media_type(header, limits_.wanted_types)) refuse_body();
}

void HttpResponseReader::sniff_type_of_body() {
  sniffs_ = false;
  if (!has_media_type(sniff_type(response_.body), limits_.wanted_types)) refuse_body();
}

void HttpResponseReader::refuse_body() {
  response_.unwanted = true;
  response_.truncated = encoded_ = false;
  response_.body.clear();
  response_.wire.coded_body.clear();
  // A body that ends with the connection is not worth its end.
  const bool is_long =
      (state_ == State::body_by_length || state_ == State::framed_body) && body_left_ > kMostDroppedBytes;
  if (state_ == State::body_to_end || done() || is_long) abandon();
}

void HttpResponseReader::drop(std::uint64_t bytes) {
  dropped_ += bytes;
  if (dropped_ > kMostDroppedBytes) abandon();
}

void HttpResponseReader::abandon() noexcept {
  keep_alive_ = false;
  state_ = State::done;
}

Result<std::size_t> HttpResponseReader::read_chunks(std::string_view bytes) {
  using Step = HttpChunkReader::Step;
  HttpLine line;
  Result<void> taken;
  switch (chunks_.take(bytes, limits_.header_bytes, line)) {
    case Step::needs_more: return 0;
    case Step::too_long: return too_long();
    case Step::bad_size:
      taken = cut_short({Errc::protocol, "bad HTTP response: the size of a chunk"});
      line.size = bytes.size();
      break;
    case Step::size:  // an extension says nothing to us
      if (!line.is_bare) break;
      note(HttpOddity::line_feeds);
      note(HttpOddity::chunks);
      break;
    case Step::data:
      got_body_ = true;
      taken = take_body(line.text);
      break;
    case Step::end:
      if (line.is_bare) note(HttpOddity::chunks);
      break;
    case Step::bad_end:
      taken = cut_short({Errc::protocol, "bad HTTP response: a chunk of another size than it says"});
      line.size = bytes.size();
      break;
    case Step::trailer:
      if (line.is_bare) note(HttpOddity::line_feeds);
      if (++fields_ > limits_.header_fields) return fail(Errc::too_large, "too many trailers");
      if (line.text.empty()) taken = end_body();
      break;
  }
  if (!taken) return std::unexpected(std::move(taken.error()));
  return line.size;
}

// --- what is framed already

void HttpResponseReader::take_status(int status) {
  started_ = true;
  state_ = State::fields;
  response_.status = status;
  if (limits_.keep_wire) {
    response_.wire.head = fmt::format("HTTP/1.1 {} {}\r\n", status, reason_phrase(status));
  }
}

Result<void> HttpResponseReader::take_framed_field(std::string_view name, std::string_view value) {
  constexpr std::size_t kBesides = std::string_view(": \r\n").size();
  if (lines_.count(name.size() + value.size() + kBesides) > limits_.header_bytes) return too_long();
  if (auto counted = count_field(); !counted) return counted;
  if (state_ != State::fields) return {};  // of a trailer, which nobody asks for
  keep_field(name, value);
  if (limits_.keep_wire) append_field(response_.wire.head, name, value);
  return {};
}

Result<void> HttpResponseReader::end_framed_head() {
  if (limits_.keep_wire) response_.wire.head += "\r\n";
  const auto length = find_length();
  if (has_no_body(length)) {
    state_ = State::done;
    return {};
  }
  state_ = State::framed_body;
  body_left_ = length.value_or(0);
  return start_body();
}

Result<void> HttpResponseReader::take_framed_body(std::string_view bytes) {
  if (state_ != State::framed_body) return {};
  got_body_ = true;
  return take_body(bytes);
}

Result<void> HttpResponseReader::end_framed() {
  if (state_ == State::framed_body) return end_body();
  return done() ? Result<void>{} : bad("it ends inside its head");
}

}  // namespace argiope
