#include "web/text/internal/content_decoder.hpp"

#include <brotli/decode.h>
#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "base/internal/printable.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {

enum class Coding : std::uint8_t { gzip, deflate, brotli, zstd };

namespace {

constexpr std::size_t kChunk = 32 * 1024;
constexpr int kZstdWindowLog = 23;  // RFC 9659: what content codings may use

std::optional<Coding> find_coding(std::string_view name) noexcept {
  constexpr std::pair<std::string_view, Coding> kCodings[] = {{"gzip", Coding::gzip},
                                                              {"x-gzip", Coding::gzip},
                                                              {"deflate", Coding::deflate},
                                                              {"br", Coding::brotli},
                                                              {"zstd", Coding::zstd}};
  for (const auto& [known, coding] : kCodings) {
    if (equals_lower(name, known)) return coding;
  }
  return std::nullopt;
}

std::unexpected<Error> damaged(std::string_view coding) {
  return fail(Errc::protocol, fmt::format("damaged {} data", coding));
}

constexpr std::string_view kGzipMark = "\x1f\x8b", kZstdMark = "\x28\xb5\x2f\xfd";

}  // namespace

bool may_be_coded(std::string_view coding, std::string_view begin) noexcept {
  const auto known = find_coding(coding);
  if (!known || begin.empty()) return true;
  if (*known == Coding::gzip) return begin.starts_with(kGzipMark.substr(0, begin.size()));
  if (*known == Coding::zstd) return begin.starts_with(kZstdMark.substr(0, begin.size()));
  return begin.starts_with(kGzipMark) || sniff_type(begin) == "application/octet-stream";
}

// Decodes at most kChunk bytes a call, so that limits are looked at often however well the data was packed.
class ContentDecoder::Stage {
 public:
  explicit Stage(Coding of) : coding(of) {}
  virtual ~Stage() = default;
  virtual void reset() = 0;
  // Takes bytes off the front of `in` and appends to `out`; call until `in` is empty and nothing more comes out.
  virtual Result<void> step(std::string_view& in, std::string& out) = 0;
  bool ended() const noexcept { return ended_; }
  bool started() const noexcept { return started_; }

  const Coding coding;
  std::uint64_t bytes_out = 0;

 protected:
  // Behind the end of a stream: takes the bytes that tell whether another follows, and, if none does, all the rest.
  // True once `magic_` holds the `size` bytes with which the other begins, however the pieces they came in were cut.
  bool another_begins(std::string_view& in, std::size_t size, bool (*is_magic)(std::string_view)) {
    const std::size_t taken = std::min(in.size(), size - magic_.size());
    magic_ += in.substr(0, taken);
    in.remove_prefix(taken);
    if (magic_.size() < size) return false;
    if (is_magic(magic_)) return true;
    in = {};
    return false;
  }

  bool ended_ = false;
  bool started_ = false;
  std::string magic_;
};

namespace {

class ZlibStage final : public ContentDecoder::Stage {
 public:
  explicit ZlibStage(Coding of) : Stage(of) {
    if (inflateInit2(&stream_, window_bits()) != Z_OK) throw std::bad_alloc();
  }
  ~ZlibStage() override { inflateEnd(&stream_); }

  void reset() override {
    inflateReset2(&stream_, window_bits());
    ended_ = started_ = false;
    magic_.clear();
  }

  Result<void> step(std::string_view& in, std::string& out) override {
    if (ended_) {
      if (coding != Coding::gzip) in = {};
      if (in.empty() || !another_begins(in, 3, is_magic)) return {};
      inflateReset2(&stream_, window_bits());  // another member of the same file
      std::string_view magic = magic_;
      if (auto begun = decode(magic, out); !begun) return begun;
      magic_.clear();
      return {};
    }
    if (!started_ && !in.empty()) {
      started_ = true;
      // "deflate" means zlib's format, but some servers send it bare; a zlib header's first byte ends in 8.
      if (coding == Coding::deflate && (static_cast<unsigned char>(in.front()) & 0x0f) != 8)
        inflateReset2(&stream_, -15);
    }
    return decode(in, out);
  }

 private:
  Result<void> decode(std::string_view& in, std::string& out) {
    const std::size_t before = out.size();
    out.resize(before + kChunk);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(std::min<std::size_t>(in.size(), 1u << 30));
    const uInt given = stream_.avail_in;
    stream_.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream_.avail_out = kChunk;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    out.resize(before + kChunk - stream_.avail_out);
    in.remove_prefix(given - stream_.avail_in);
    ended_ = code == Z_STREAM_END;
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
      return damaged(coding == Coding::gzip ? "gzip" : "deflate");
    }
    return {};
  }

  int window_bits() const noexcept { return coding == Coding::gzip ? 15 + 16 : 15; }
  static bool is_magic(std::string_view magic) noexcept { return magic == "\x1f\x8b\x08"; }

  z_stream stream_{};
};

class BrotliStage final : public ContentDecoder::Stage {
 public:
  BrotliStage() : Stage(Coding::brotli) { reset(); }
  void reset() override {
    state_.reset(BrotliDecoderCreateInstance(nullptr, nullptr, nullptr));
    if (state_ == nullptr) throw std::bad_alloc();
    ended_ = started_ = false;
  }
  Result<void> step(std::string_view& in, std::string& out) override {
    if (ended_) {
      in = {};
      return {};
    }
    started_ = started_ || !in.empty();
    const std::size_t before = out.size();
    out.resize(before + kChunk);
    std::size_t available_in = in.size(), available_out = kChunk;
    auto* next_in = reinterpret_cast<const std::uint8_t*>(in.data());
    auto* next_out = reinterpret_cast<std::uint8_t*>(out.data() + before);
    const auto result =
        BrotliDecoderDecompressStream(state_.get(), &available_in, &next_in, &available_out, &next_out, nullptr);
    out.resize(before + kChunk - available_out);
    in.remove_prefix(in.size() - available_in);
    if (result == BROTLI_DECODER_RESULT_ERROR) return damaged("br");
    ended_ = result == BROTLI_DECODER_RESULT_SUCCESS;
    return {};
  }

 private:
  struct Deleter {
    void operator()(BrotliDecoderState* state) const noexcept { BrotliDecoderDestroyInstance(state); }
  };
  std::unique_ptr<BrotliDecoderState, Deleter> state_;
};

// The library takes what it is given in one call for a whole frame when that looks like one. So that the same bytes
// mean the same however they are cut, each frame's header is given alone and complete.
class ZstdStage final : public ContentDecoder::Stage {
 public:
  ZstdStage() : Stage(Coding::zstd), context_(ZSTD_createDCtx()) {
    if (context_ == nullptr) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kZstdWindowLog);
  }
  void reset() override {
    ZSTD_DCtx_reset(context_.get(), ZSTD_reset_session_only);
    ended_ = started_ = false;
    in_header_ = true;
    magic_.clear();
  }
  Result<void> step(std::string_view& in, std::string& out) override {
    if (!in_header_) return decode(in, out);
    if (in.empty()) return {};
    started_ = true;
    if (ended_ && !another_begins(in, kMagicBytes, is_magic)) return {};
    ended_ = false;
    while (magic_.size() < header_size(magic_)) {
      if (in.empty()) return {};
      magic_ += in.front();
      in.remove_prefix(1);
    }
    in_header_ = false;
    const std::string header = std::exchange(magic_, {});
    std::string_view given = header;
    return decode(given, out);
  }

 private:
  static constexpr std::size_t kMagicBytes = 4;

  static bool is_skipped(std::string_view magic) noexcept {
    return (magic[0] & 0xf0) == 0x50 && magic.substr(1, 3) == "\x2a\x4d\x18";
  }
  // Of a frame, or of one to be skipped (RFC 8878, 3.1).
  static bool is_magic(std::string_view magic) noexcept { return magic == "\x28\xb5\x2f\xfd" || is_skipped(magic); }
  // How long the header is that begins so; until its fifth byte is there, at least that long (RFC 8878, 3.1.1.1).
  static std::size_t header_size(std::string_view begun) noexcept {
    if (begun.size() <= kMagicBytes) return kMagicBytes + 1;
    if (is_skipped(begun)) return kMagicBytes + 4;
    constexpr std::size_t kSizeOfId[] = {0, 1, 2, 4};
    const auto descriptor = static_cast<unsigned char>(begun[kMagicBytes]);
    const bool single_segment = (descriptor & 0x20) != 0;
    const std::size_t content_size = descriptor >> 6 == 0 ? single_segment : 1u << (descriptor >> 6);
    return kMagicBytes + 1 + !single_segment + kSizeOfId[descriptor & 3] + content_size;
  }

  Result<void> decode(std::string_view& in, std::string& out) {
    const std::size_t before = out.size();
    out.resize(before + kChunk);
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    ZSTD_outBuffer output{out.data() + before, kChunk, 0};
    const std::size_t hint = ZSTD_decompressStream(context_.get(), &output, &input);
    out.resize(before + output.pos);
    in.remove_prefix(input.pos);
    if (ZSTD_isError(hint)) return damaged("zstd");
    ended_ = in_header_ = hint == 0;
    return {};
  }

  struct Deleter {
    void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, Deleter> context_;
  bool in_header_ = true;  // magic_ holds what is there of it
};

std::unique_ptr<ContentDecoder::Stage> make_stage(Coding coding) {
  switch (coding) {
    case Coding::brotli: return std::make_unique<BrotliStage>();
    case Coding::zstd: return std::make_unique<ZstdStage>();
    default: return std::make_unique<ZlibStage>(coding);
  }
}

}  // namespace

ContentDecoder::ContentDecoder() = default;
ContentDecoder::~ContentDecoder() = default;

Result<void> ContentDecoder::start(std::string_view codings, std::size_t output_limit) {
  for (auto& stage : stages_) spares_.push_back(std::move(stage));
  stages_.clear();
  output_limit_ = output_limit;
  bytes_in_ = bytes_out_ = 0;
  truncated_ = false;
  while (!codings.empty()) {
    const std::size_t comma = codings.find(',');
    const std::string_view name = trim_space(codings.substr(0, comma));
    codings = comma == std::string_view::npos ? std::string_view{} : codings.substr(comma + 1);
    if (name.empty() || name == "identity") continue;
    const auto coding = find_coding(name);
    if (!coding) return fail(Errc::unsupported, fmt::format("content coding {} is not known", in_quotes(name)));
    if (stages_.size() == kMostCodings) return fail(Errc::unsupported, "more than three content codings");
    const auto spare = std::ranges::find(spares_, *coding, [](const auto& stage) { return stage->coding; });
    if (spare != spares_.end()) {
      (*spare)->reset();
      (*spare)->bytes_out = 0;
      stages_.insert(stages_.begin(), std::move(*spare));
      spares_.erase(spare);
    } else {
      stages_.insert(stages_.begin(), make_stage(*coding));
    }
  }
  return {};
}

Result<void> ContentDecoder::feed(std::string_view bytes, std::string& out) {
  bytes_in_ += bytes.size();
  if (truncated_) return {};
  if (stages_.empty()) {
    out.append(bytes.substr(0, std::min(bytes.size(), output_limit_ - static_cast<std::size_t>(bytes_out_))));
    bytes_out_ += bytes.size();
    truncated_ = bytes_out_ > output_limit_;
    return {};
  }
  return pump(0, bytes, out);
}

// Runs `bytes` through the stages from `index` on, a chunk at a time, so that no stage ever holds much.
Result<void> ContentDecoder::pump(std::size_t index, std::string_view bytes, std::string& out) {
  Stage& stage = *stages_[index];
  const bool last = index + 1 == stages_.size();
  for (;;) {
    std::string& to = last ? out : between_[index];
    if (!last) to.clear();
    const std::size_t before = to.size();
    const std::size_t left = bytes.size();
    if (auto stepped = stage.step(bytes, to); !stepped) return stepped;
    const std::size_t produced = to.size() - before;
    if (produced == 0 && bytes.size() == left) return {};
    stage.bytes_out += produced;
    if (stage.bytes_out > kRatioFloor && stage.bytes_out / kMostRatio > bytes_in_) {
      return fail(Errc::too_large,
                  fmt::format("decompression bomb: {} bytes became more than {}", bytes_in_, stage.bytes_out));
    }
    if (last) {
      bytes_out_ += produced;
      if (bytes_out_ > output_limit_) {
        out.resize(out.size() - static_cast<std::size_t>(bytes_out_ - output_limit_));
        truncated_ = true;
        return {};
      }
    } else if (produced > 0) {
      if (auto pumped = pump(index + 1, to, out); !pumped) return pumped;
      if (truncated_) return {};
    }
  }
}

Result<void> ContentDecoder::finish() const {
  if (truncated_) return {};
  for (const auto& stage : stages_) {
    // An empty body is no data at all, which servers send with a 204 or to HEAD.
    if (stage->started() && !stage->ended()) return fail(Errc::protocol, "the compressed body ends too early");
  }
  return {};
}

}  // namespace argiope
