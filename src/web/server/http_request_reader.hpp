// From the bytes of one connection to its requests, without sockets. It refuses all that a client's reader of the same
// lines (http_lines.hpp) notes: what may be read in two ways smuggles a second request past a proxy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/web/http_server.hpp"
#include "web/http/internal/http_lines.hpp"

namespace argiope {

class HttpRequestReader {
 public:
  enum class State : std::uint8_t {
    head,      // the request's head has not come whole; nothing of it may have come yet
    body,      // its body has not
    complete,  // the request is there until next()
    refused,   // it cannot be read, and so nothing behind it can
  };
  // Why a request is refused, for the client.
  struct Refusal {
    int status = 0;
    std::string detail;
  };

  // Both must outlive the reader. `request` is filled, its memory reused.
  HttpRequestReader(const HttpServerOptions& options, ServerRequest& request);

  // Where the bytes that come are to be appended; not while a request is complete, which refers to it.
  std::string& input() noexcept { return input_; }
  // Goes on with what has been appended.
  State read();
  State state() const noexcept { return state_; }
  // After State::complete: on to the next request, of which read() may find all, or a part.
  void next();

  // Of a request that is not complete, something has come.
  bool has_begun() const noexcept { return state_ != State::head || input_.size() > begin_; }
  // Bytes of the input behind the request that is complete.
  bool has_more() const noexcept { return input_.size() > at_; }
  const Refusal& refusal() const noexcept { return refusal_; }
  // Of a request whose head has come:
  // it wants to be told that its body is welcome. Once.
  bool take_wish_to_continue() noexcept;
  bool is_http_1_0() const noexcept { return is_http_1_0_; }
  // The client would use the connection again.
  bool keep_alive() const noexcept { return keeps_connection(is_http_1_0_ ? 0 : 1, framing_.connection); }
  // Before the request is complete: what the head has said of it, as far as the head has come whole and could be read;
  // else the request has neither fields nor a path.
  void show_head();
  std::size_t body_bytes() const noexcept { return request_.body.size(); }
  // In memory, which grows ahead of it.
  std::size_t body_held() const noexcept { return request_.body.capacity(); }

 private:
  // Places in the input, which moves when it grows.
  struct Place {
    std::size_t begin = 0;
    std::size_t size = 0;
  };

  State refuse(int status, std::string detail);
  // The same for the bytes of a bad request; false, for those who say whether they went on.
  bool refuse_bytes(std::string_view why);
  State read_head();
  // Whether the head ends within the input; refuses what is too long, and lines that end or begin as they must not.
  bool find_end_of_head();
  bool check_line(const HttpLine& line);
  State parse_head();
  bool parse_request_line(std::string_view line);
  // Of the head, or a trailer.
  bool parse_field(std::string_view line);
  bool take_connection(std::string_view value);
  bool take_length(std::string_view value);
  bool take_coding(std::string_view value);
  State check_head();
  bool check_host();
  bool choose_target();
  State begin_body();
  State read_body();
  // Whether that was all.
  bool read_sized_body();
  bool read_chunks();
  bool take_chunk(HttpChunkReader::Step step, const HttpLine& line);
  void drop_read_body();
  void refer_to_input();
  Place place_of(std::string_view part) const noexcept {
    return {static_cast<std::size_t>(part.data() - input_.data()), part.size()};
  }
  std::string_view at(const Place& place) const noexcept {
    return std::string_view(input_).substr(place.begin, place.size);
  }

  const HttpServerOptions& options_;
  ServerRequest& request_;
  std::string input_;
  State state_ = State::head;
  Refusal refusal_;
  HttpLineFinder lines_;        // of the head
  std::size_t begin_ = 0;       // of the request
  std::size_t line_begin_ = 0;  // of the head's line that has not ended
  std::size_t line_count_ = 0;
  std::size_t blank_lines_ = 0;
  std::size_t head_end_ = 0;
  std::size_t at_ = 0;  // behind the head: what is before it has been read
  std::size_t body_limit_ = 0;

  Place method_;
  Place target_;
  Place host_;
  std::vector<std::pair<Place, Place>> fields_;
  bool has_head_ = false;  // that could be read
  // What the head says of the connection and the body.
  struct Framing {
    std::string connection;  // as a list
    std::optional<std::uint64_t> length;
    std::size_t hosts = 0;
    bool has_coding = false;
    bool is_chunked = false;
    bool expects_continue = false;
    bool expects_other = false;
  };
  Framing framing_;
  HttpChunkReader chunks_;
  bool is_http_1_0_ = false;
  bool wishes_to_continue_ = false;
};

}  // namespace argiope
