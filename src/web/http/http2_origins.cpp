#include "web/http/http2_origins.hpp"

#include <algorithm>
#include <utility>

#include "argiope/async/event_loop.hpp"

namespace argiope {
namespace {

constexpr std::size_t kHttp2ReadBytes = 64 * 1024;
// Of servers without HTTP/2 so many are remembered; the others are asked again.
constexpr std::size_t kMostOrigins = 4096;

}  // namespace

Http2Origins::Opening::~Opening() {
  origin_->is_opening = false;
  origin_->failure = std::move(failure_);
  ++origin_->openings;
  if (!origin_->waiting.empty()) detail::wake_all(origin_->waiting);
}

Http2Origins::Http2Origins(const HttpClientOptions& options)
    : options_(options),
      read_buffer_(std::make_shared<std::string>(
          options.byte_rate == nullptr ? kHttp2ReadBytes : options.byte_rate->piece(), '\0')) {}

Http2Origins::OriginPtr Http2Origins::at(std::string_view key) {
  if (const auto found = origins_.find(key); found != origins_.end()) return found->second;
  if (origins_.size() >= kMostOrigins) {
    std::erase_if(origins_,
                  [](const auto& one) { return one.second.use_count() == 1 && one.second->connections.empty(); });
  }
  auto origin = std::make_shared<Origin>();
  origin->key = key;
  return origins_.emplace(origin->key, origin).first->second;
}

Http2Origins::Shared Http2Origins::take(Origin& origin) {
  const TimePoint now = EventLoop::current().time();
  for (std::size_t i = 0; i < origin.connections.size();) {
    Origin::Kept& kept = origin.connections[i];
    if (kept.idle_at && now - kept.connection->idle_since() >= options_.keep_alive) {
      const Shared old = kept.connection;
      old->close();  // and it is not here any more
      continue;
    }
    if (!kept.connection->has_room()) {
      ++i;
      continue;
    }
    if (const auto idle_at = std::exchange(kept.idle_at, std::nullopt)) idle_.erase(*idle_at);
    return kept.connection;
  }
  return nullptr;
}

Coro<Result<void>> Http2Origins::wait(OriginPtr origin) {
  const std::uint64_t openings = origin->openings;
  try {
    co_await detail::Pause(origin->waiting);
  } catch (const CancelledError&) {
    // It may have been woken for room that another can use.
    if (!origin->waiting.empty()) detail::wake_first(origin->waiting);
    throw;
  }
  if (origin->openings != openings && origin->failure) co_return std::unexpected(*origin->failure);
  co_return Result<void>{};
}

Http2Origins::Shared Http2Origins::add(OriginPtr origin, ConnectionPtr connection) {
  // It may have been forgotten meanwhile, and known anew.
  origin = origins_.try_emplace(origin->key, origin).first->second;
  Http2Connection::Setup setup{
      .limits = {options_.header_limit, std::max<std::uint32_t>(1, options_.http2_streams)},
      .byte_rate = options_.byte_rate,
      .read_buffer = read_buffer_,
      .on_change = [weak = weak_from_this(), weak_origin = std::weak_ptr(origin)](Http2Connection& changed) {
        const auto self = weak.lock();
        auto its_origin = weak_origin.lock();
        if (self != nullptr && its_origin != nullptr) self->changed(std::move(its_origin), changed);
      }};
  origin->connections.reserve(origin->connections.size() + 1);
  auto made = Http2Connection::begin(std::move(connection), std::move(setup));
  origin->connections.push_back({made, {}});
  return made;
}

void Http2Origins::changed(OriginPtr origin, Http2Connection& connection) {
  // Before it may be forgotten: a connection that the server ends for this is often its last.
  if (connection.wants_http1()) origin->speaks_http1 = true;
  if (connection.is_closed()) return forget(std::move(origin), connection);
  for (std::size_t room = connection.room(); room > 0 && !origin->waiting.empty(); --room) {
    detail::wake_first(origin->waiting);
  }
  if (!connection.is_idle()) return;
  const auto kept =
      std::ranges::find(origin->connections, &connection, [](const Origin::Kept& one) { return one.connection.get(); });
  if (kept == origin->connections.end() || kept->idle_at) return;
  idle_.push_back(kept->connection);
  kept->idle_at = std::prev(idle_.end());
}

void Http2Origins::forget(OriginPtr origin, Http2Connection& connection) {
  const auto kept =
      std::ranges::find(origin->connections, &connection, [](const Origin::Kept& one) { return one.connection.get(); });
  if (kept == origin->connections.end()) return;
  const Shared last = kept->connection;  // it is being told of
  if (kept->idle_at) idle_.erase(*kept->idle_at);
  origin->connections.erase(kept);
  if (!origin->waiting.empty()) detail::wake_all(origin->waiting);
  const bool is_known = !origin->connections.empty() || origin->is_opening || origin->speaks_http1;
  if (!is_known && origin->waiting.empty()) origins_.erase(origin->key);
}

void Http2Origins::trim(std::size_t most) {
  if (idle_.empty()) return;
  const TimePoint now = EventLoop::current().time();
  while (!idle_.empty() && (idle_.size() > most || now - idle_.front()->idle_since() >= options_.keep_alive)) {
    const Shared oldest = idle_.front();
    oldest->close();  // and it is not here any more
  }
}

void Http2Origins::close_idle() {
  while (!idle_.empty()) {
    const Shared oldest = idle_.front();
    oldest->close();
  }
}

void Http2Origins::close() {
  std::vector<Shared> all;
  for (const auto& [key, origin] : origins_) {
    for (const Origin::Kept& kept : origin->connections) all.push_back(kept.connection);
  }
  for (const Shared& connection : all) connection->close();
}

}  // namespace argiope
