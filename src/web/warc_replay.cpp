#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/web/warc.hpp"
#include "web/http_response_reader.hpp"
#include "web/internal/ascii.hpp"
#include "web/internal/warc_exchange.hpp"
#include "web/warc_captures.hpp"

namespace argiope {
namespace {

constexpr std::string_view kNoRobots = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";

constexpr std::string_view kGzipBegins = "\x1f\x8b";

// Whether the payload begins as one in chunks does.
bool begins_with_chunk(std::string_view payload) noexcept {
  const std::string_view line = payload.substr(0, std::min(payload.find_first_of("\r\n; "), payload.size()));
  return !line.empty() && line.size() <= 16 && line.size() < payload.size() &&
         std::ranges::all_of(line, [](char c) { return hex_value(c) >= 0; });
}

bool names_chunked(std::string_view head) {
  HttpHeadLine line;
  for (bool first = true; take_http_line(head, line, first); first = false) {
    if (equals_lower(line.name, "transfer-encoding")) return true;
  }
  return false;
}

bool is_shorter(std::string_view length, std::size_t size) noexcept {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), number);
  return error == std::errc{} && number < size;
}

// The head as a server would have had to send it with that payload: in HTTP/1.1, and without the fields that some writers leave as
// they were when they undo codings.
void append_true_head(std::string& out, std::string_view head, std::string_view payload) {
  const bool is_chunked = names_chunked(head);
  const bool is_in_chunks = is_chunked && begins_with_chunk(payload);
  const bool is_unpacked = !is_in_chunks && !payload.empty() && !payload.starts_with(kGzipBegins);
  const auto is_left_over = [&](const HttpHeadLine& line) {
    if (equals_lower(line.name, "transfer-encoding")) return !is_in_chunks;
    if (equals_lower(line.name, "content-length")) return is_chunked || is_shorter(line.value, payload.size());
    const bool is_gzip = equals_lower(line.value, "gzip") || equals_lower(line.value, "x-gzip");
    return is_gzip && is_unpacked && equals_lower(line.name, "content-encoding");
  };
  HttpHeadLine line;
  for (bool first = true; take_http_line(head, line, first); first = false) {
    if (first && (line.whole.starts_with("HTTP/2") || line.whole.starts_with("HTTP/3"))) {
      out.append("HTTP/1.1").append(line.whole.substr(std::min(line.whole.find_first_of(" \r\n"), line.whole.size())));
    } else if (!is_left_over(line)) {
      out += line.whole;
    }
    if (!out.ends_with('\n')) out += "\r\n";
  }
  out += "\r\n";
}

// What a server would have had to send: whole, or as much as there is of it.
Result<void> read_message(HttpResponseReader& reader, std::string_view message) {
  auto used = reader.feed(message);
  if (!used) return std::unexpected(std::move(used.error()));
  return reader.done() ? Result<void>{} : reader.feed_end();
}

// That it is cut off was the archive's doing.
void note_truncated(HttpResponse& response) {
  response.truncated = true;
  response.damage.clear();
  response.oddities &= static_cast<std::uint16_t>(~(1u << static_cast<unsigned>(HttpOddity::cut_short)));
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
      append_true_head(text_, message_.head, message_.payload);
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
    if (*found && message_.truncated == "length" && !response.damage.empty()) note_truncated(response);
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
