#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/warc/warc.hpp"
#include "base/internal/printable.hpp"
#include "warc/internal/warc_exchange.hpp"
#include "warc/warc_captures.hpp"
#include "web/http/internal/http_lines.hpp"
#include "web/http/internal/http_response_reader.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/content_decoder.hpp"

namespace argiope {
namespace {

constexpr std::size_t kTooShortToTell = 256;  // bytes of a body, whether they are text
constexpr std::string_view kNoRobots = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";

// Whether the payload is chunks: up to the last one, or whole ones alone. Of one that was cut off the first has to be
// whole.
bool is_in_chunks(std::string_view payload, bool is_cut) noexcept {
  using Step = HttpChunkReader::Step;
  HttpChunkReader chunks;
  bool has_one = false;
  bool is_at_end = false;  // of a chunk
  while (!payload.empty()) {
    HttpLine line;
    const Step step = chunks.take(payload, payload.size(), line);
    if (chunks.is_in_trailers()) return true;
    is_at_end = step == Step::end;
    has_one = has_one || is_at_end;
    if (!is_at_end && step != Step::size && step != Step::data) break;
    payload.remove_prefix(line.size);
  }
  return has_one && (is_cut || is_at_end);
}

bool names_chunked(std::string_view head) {
  HttpHeadLine line;
  for (bool first = true; take_http_line(head, line, first); first = false) {
    if (equals_lower(line.name, "transfer-encoding")) return true;
  }
  return false;
}

// Whether it is a line of HTTP/1, or what is read as one; "HTTP/2 200", "HTTP 200", "h2 200" are not.
bool is_http1(std::string_view line) noexcept {
  return starts_with_lower(line, "http/1.") || starts_with_lower(line, "icy ");
}

void append_status_line(std::string& out, std::string_view line) {
  if (is_http1(line)) {
    out += line;
  } else {
    out.append("HTTP/1.1").append(line.substr(std::min(line.find_first_of(" \t\r\n"), line.size())));
  }
  if (!out.ends_with('\n')) out += "\r\n";
}

// The head as a server would have had to send it with that payload: in HTTP/1.1, and without the fields that some
// writers leave as they were when they undo codings. The record says how long the payload is, whatever Content-Length
// says.
class TrueHead {
 public:
  explicit TrueHead(const WarcMessage& message) : message_(message) {
    is_in_chunks_ = names_chunked(message.head) && is_in_chunks(message.payload, !message.truncated.empty());
    const std::string coding = outermost_coding();
    is_coded_ = is_in_chunks_ || coding.empty() || message.payload.size() < kTooShortToTell ||
                may_be_coded(coding, message.payload);
  }

  void append_to(std::string& out) const {
    std::string_view head = message_.head;
    HttpHeadLine line;
    bool has_length = false;
    for (bool first = true; take_http_line(head, line, first); first = false) {
      if (first) {
        append_status_line(out, line.whole);
      } else if (equals_lower(line.name, "content-length")) {
        if (!is_in_chunks_ && !std::exchange(has_length, true))
          out += fmt::format("Content-Length: {}\r\n", message_.payload.size());
      } else if (!is_left_over(line)) {
        out += line.whole;
        if (!out.ends_with('\n')) out += "\r\n";
      }
    }
    out += "\r\n";
  }

 private:
  bool is_left_over(const HttpHeadLine& line) const {
    if (equals_lower(line.name, "transfer-encoding")) return !is_in_chunks_;
    return !is_coded_ && equals_lower(line.name, "content-encoding");
  }
  // The last that was put on.
  std::string outermost_coding() const {
    std::string_view head = message_.head;
    HttpHeadLine line;
    std::string last;
    for (bool first = true; take_http_line(head, line, first); first = false) {
      if (!equals_lower(line.name, "content-encoding")) continue;
      for_each_token(
          unfolded(line), [](char c) { return c == ',' || is_space(c); }, [&](std::string_view one) { last = one; });
    }
    return last;
  }

  const WarcMessage& message_;
  bool is_in_chunks_ = false;
  bool is_coded_ = true;
};

// The message that a server would have had to send: whole, or as much as there is of it.
Result<void> read_message(HttpResponseReader& reader, std::string_view message) {
  auto used = reader.feed(message);
  if (!used) return std::unexpected(std::move(used.error()));
  return reader.done() ? Result<void>{} : reader.feed_end();
}

// A body that the archive has only a part of: as much as it wanted to keep, or as came.
void note_truncated(HttpResponse& response, std::string_view why) {
  constexpr auto kCut = static_cast<std::uint16_t>(1u << static_cast<unsigned>(HttpOddity::cut_short));
  if (why == "length") {
    response.truncated = true;
    response.damage.clear();
    response.oddities &= static_cast<std::uint16_t>(~kCut);
  } else if (response.damage.empty()) {
    response.damage = fmt::format("cut off when it was archived: {}", in_quotes(why, 40));
    response.oddities |= kCut;
  }
}

}  // namespace

class WarcReplay::Impl {
 public:
  explicit Impl(WarcCaptures its_captures) : captures(std::move(its_captures)) {}
  const WarcCaptures captures;
};

class WarcReplay::Transport final : public HttpTransport {
 public:
  explicit Transport(std::shared_ptr<const WarcReplay> replay)
      : replay_(std::move(replay)), reader_(replay_->impl_->captures) {}

  Coro<Result<void>> send(const HttpRequest& request, HttpResponse& response) override {
    response.sent_at = EventLoop::current().time();
    response.connected = true;
    response.wire.request.clear();
    auto answered = answer(request, response);
    response.headers.retry_after.clear();
    co_return answered;
  }

 private:
  Result<void> answer(const HttpRequest& request, HttpResponse& response) {
    auto found = reader_.read(request.url, message_);
    if (!found) return fail(found.error().code, fmt::format("{}: {}", request.url.href(), found.error().message));
    const bool is_robots = request.url.path_and_query() == "/robots.txt";
    if (!*found && !is_robots) return fail(Errc::not_found, fmt::format("{}: not in the archive", request.url.href()));
    text_.clear();
    if (!*found) {
      text_ = kNoRobots;
    } else {
      TrueHead(message_).append_to(text_);
    }
    if (*found) text_ += message_.payload;
    const HttpReaderLimits limits{
        .body_bytes = request.body_limit, .keep_fields = request.keep_fields, .keep_wire = request.keep_wire};
    HttpResponseReader reader(response, decoder_, limits, request.method);
    if (auto read = read_message(reader, text_); !read) {
      return fail(read.error().code, fmt::format("{}: {}", request.url.href(), read.error().message));
    }
    response.wire_bytes = text_.size();
    response.remote = IpAddress::parse(message_.address).value_or(IpAddress{});
    if (*found && !message_.truncated.empty() && request.method != HttpMethod::head)
      note_truncated(response, message_.truncated);
    return {};
  }

  const std::shared_ptr<const WarcReplay> replay_;
  WarcCaptures::Reader reader_;
  WarcMessage message_;
  std::string text_;
  ContentDecoder decoder_;
};

WarcReplay::WarcReplay(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WarcReplay::~WarcReplay() = default;

Result<std::shared_ptr<const WarcReplay>> WarcReplay::open(const std::vector<std::string>& files) {
  auto captures = WarcCaptures::open(files);
  if (!captures) return std::unexpected(std::move(captures.error()));
  return std::shared_ptr<const WarcReplay>(new WarcReplay(std::make_unique<Impl>(std::move(*captures))));
}

std::size_t WarcReplay::urls() const noexcept { return impl_->captures.size(); }
const std::vector<Url>& WarcReplay::seeds() const noexcept { return impl_->captures.seeds(); }

std::unique_ptr<HttpTransport> WarcReplay::transport(std::shared_ptr<const WarcReplay> replay) {
  return std::make_unique<Transport>(std::move(replay));
}

}  // namespace argiope
