// StreamLayer: what stands between a stream and its socket and makes the bytes of the one from those of the other: TLS
// (web/net/tls.cpp). Stream::start_layer() puts one there.
#pragma once

#include <string>
#include <string_view>

namespace argiope::detail {

// Everything is done at once, on bytes that are there: the stream does the waiting, reading and sending.
//
// Errors:  receive() and send() throw std::system_error when the connection cannot go on; what they have appended then
//          is still given to the reader and sent to the peer.
// Threads: its stream's.
class StreamLayer {
 public:
  StreamLayer() = default;
  StreamLayer(const StreamLayer&) = delete;
  StreamLayer& operator=(const StreamLayer&) = delete;
  virtual ~StreamLayer() = default;

  // Takes all of what came from the peer (nothing: a client's layer begins). Appends to `plain` what it says, and to
  // `to_peer` what the peer needs for it. True: the peer has ended its side.
  virtual bool receive(std::string_view came, std::string& plain, std::string& to_peer) = 0;
  // Appends to `to_peer` what `plain` becomes. To be called when the layer is ready.
  virtual void send(std::string_view plain, std::string& to_peer) = 0;
  // The bytes that tell the peer that no more comes.
  virtual void end(std::string& to_peer) noexcept = 0;
  // Both sides have agreed on how they talk.
  virtual bool is_ready() const noexcept = 0;
};

}  // namespace argiope::detail
