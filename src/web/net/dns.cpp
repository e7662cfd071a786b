#include "argiope/web/detail/dns.hpp"

#include <ares.h>
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <deque>
#include <map>
#include <stdexcept>
#include <unordered_map>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/set_while.hpp"

namespace argiope {
namespace {

using Descriptor = boost::asio::posix::stream_descriptor;

constexpr Duration kFailureTtl = std::chrono::milliseconds{500};  // how long a failure that may pass is remembered

bool is_localhost(std::string_view host) noexcept {
  if (host.ends_with('.')) host.remove_suffix(1);
  return host == "localhost" || host.ends_with(".localhost");
}

// Initialises c-ares once a process and keeps it for good.
void require_cares() {
  static const int status = ares_library_init(ARES_LIB_INIT_ALL);
  if (status != ARES_SUCCESS) throw std::runtime_error(fmt::format("c-ares: {}", ares_strerror(status)));
}

// A name that cannot be resolved is no connection that was refused: both are told apart by their words.
std::string why_no_addresses(int status) {
  switch (status) {
    case ARES_SUCCESS:
    case ARES_ENODATA: return "DNS knows no address of this name";
    case ARES_ENOTFOUND: return "DNS knows no such name";
    case ARES_EREFUSED: return "the DNS server does not answer questions about this name (its answer: REFUSED)";
    case ARES_ECONNREFUSED: return "no DNS server can be reached";
    case ARES_ETIMEOUT: return "no DNS server answers in time";
    case ARES_ESERVFAIL: return "the DNS server fails (its answer: SERVFAIL)";
    default: return fmt::format("DNS: {}", ares_strerror(status));
  }
}

}  // namespace

class CaresResolver::Impl {
 public:
  Impl(ResolverOptions options, AsioBackend& backend) : options_(std::move(options)), backend_(backend) {
    if (options_.max_questions == 0) throw std::invalid_argument("a resolver that may ask no questions");
    require_cares();
    ares_options settings{};
    settings.timeout = static_cast<int>(options_.timeout.count() / 1'000'000);
    settings.tries = options_.tries;
    settings.sock_state_cb = [](void* self, ares_socket_t fd, int readable, int writable) {
      static_cast<Impl*>(self)->watch(fd, readable != 0, writable != 0);
    };
    settings.sock_state_cb_data = this;
    const int mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB;
    if (const int status = ares_init_options(&channel_, &settings, mask); status != ARES_SUCCESS) {
      throw std::runtime_error(fmt::format("c-ares: {}", ares_strerror(status)));
    }
    if (!options_.servers.empty()) {
      if (const int status = ares_set_servers_ports_csv(channel_, options_.servers.c_str()); status != ARES_SUCCESS) {
        ares_destroy(channel_);
        throw std::runtime_error(fmt::format("DNS servers {}: {}", in_quotes(options_.servers), ares_strerror(status)));
      }
    }
  }

  ~Impl() {
    closing_ = true;
    timer_.cancel();
    ares_destroy(channel_);  // calls back every question that is open
    for (auto& [fd, watched] : watched_) watched->descriptor.release();
  }

  Coro<Result<AddressList>> resolve(std::string_view name) {
    std::string host(name);
    const TimePoint now = backend_.clock().now();
    if (auto found = cache_.find(host); found != cache_.end() && found->second.expires > now) {
      co_return found->second.result;
    }
    std::shared_ptr<Question> question;
    if (auto found = open_.find(host); found != open_.end()) {
      question = found->second;
    } else {
      question = ask(host);
    }
    co_await question->answered.wait();
    co_return question->result;
  }

  std::uint64_t questions_asked = 0;

 private:
  struct Question {
    Impl* owner = nullptr;
    std::string host;
    Event answered;
    Result<AddressList> result = fail(Errc::dns, "no answer");
    Duration ttl{};
  };
  struct Cached {
    Result<AddressList> result;
    TimePoint expires;
  };
  // A c-ares socket on the loop. Shared with the handlers of its waits, which may run after c-ares closed it.
  struct Watched {
    Watched(boost::asio::io_context& context, ares_socket_t fd) : descriptor(context, fd) {}
    Descriptor descriptor;
    bool read = false, write = false;       // wanted
    bool reading = false, writing = false;  // a wait is under way
    bool open = true;
  };

  std::shared_ptr<Question> ask(const std::string& host) {
    auto question = std::make_shared<Question>();
    question->owner = this;
    question->host = host;
    open_.emplace(host, question);
    ++questions_asked;
    waiting_.push_back(question);
    send_questions();
    arm_timer();
    return question;
  }

  // An answer may come before a question's sending returns, and asks for more questions: that is this loop's doing.
  void send_questions() {
    if (sending_) return;
    const SetWhile sending(sending_);
    while (!waiting_.empty() && under_way_ < options_.max_questions) {
      const std::shared_ptr<Question> question = std::move(waiting_.front());
      waiting_.pop_front();
      ++under_way_;
      send(question);
    }
  }

  void send(const std::shared_ptr<Question>& question) {
    ares_addrinfo_hints hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    // May call back before it returns.
    ares_getaddrinfo(
        channel_, question->host.c_str(), nullptr, &hints,
        [](void* argument, int status, int, ares_addrinfo* info) {
          std::unique_ptr<std::shared_ptr<Question>> kept(static_cast<std::shared_ptr<Question>*>(argument));
          Question& answered = **kept;
          answered.owner->answer(answered, status, info);
          if (info != nullptr) ares_freeaddrinfo(info);
        },
        new std::shared_ptr<Question>(question));
  }

  void answer(Question& question, int status, const ares_addrinfo* info) {
    if (closing_) return;
    --under_way_;
    AddressList addresses;
    Duration ttl = options_.max_ttl;
    for (const ares_addrinfo_node* node = info != nullptr ? info->nodes : nullptr; node != nullptr;
         node = node->ai_next) {
      if (auto address = IpAddress::from_sockaddr(node->ai_addr)) addresses.push_back(*address);
      ttl = std::min<Duration>(ttl, std::chrono::seconds{std::max(node->ai_ttl, 0)});
    }
    if (status == ARES_SUCCESS && !addresses.empty()) {
      question.result = std::move(addresses);
      ttl = std::max(ttl, options_.min_ttl);
    } else {
      question.result = fail(Errc::dns, fmt::format("{}: {}", question.host, why_no_addresses(status)));
      // Only that there is no such name is worth remembering: another failure would answer every later attempt, too.
      const bool unknown = status == ARES_SUCCESS || status == ARES_ENOTFOUND || status == ARES_ENODATA;
      ttl = unknown ? options_.negative_ttl : kFailureTtl;
    }
    if (cache_.size() >= options_.cache_limit) forget_expired();
    cache_.insert_or_assign(question.host, Cached{question.result, saturating_add(backend_.clock().now(), ttl)});
    const std::string host = question.host;  // the entry that is erased may hold the last reference
    question.answered.set();
    open_.erase(host);
    send_questions();
  }

  void forget_expired() {
    const TimePoint now = backend_.clock().now();
    std::erase_if(cache_, [&](const auto& entry) { return entry.second.expires <= now; });
    if (cache_.size() >= options_.cache_limit) cache_.clear();
  }

  void watch(ares_socket_t fd, bool readable, bool writable) {
    auto found = watched_.find(fd);
    if (!readable && !writable) {
      if (found == watched_.end()) return;
      found->second->open = false;
      found->second->descriptor.release();  // c-ares closes it itself
      watched_.erase(found);
      return;
    }
    if (found == watched_.end()) {
      found = watched_.emplace(fd, std::make_shared<Watched>(backend_.context(), fd)).first;
    }
    found->second->read = readable;
    found->second->write = writable;
    wait(found->second, fd);
  }

  void wait(const std::shared_ptr<Watched>& watched, ares_socket_t fd) {
    if (watched->read && !watched->reading) {
      watched->reading = true;
      watched->descriptor.async_wait(Descriptor::wait_read, [this, watched, fd](const auto& ec) {
        watched->reading = false;
        ready(watched, ec, fd, ARES_SOCKET_BAD);
      });
    }
    if (watched->write && !watched->writing) {
      watched->writing = true;
      watched->descriptor.async_wait(Descriptor::wait_write, [this, watched, fd](const auto& ec) {
        watched->writing = false;
        ready(watched, ec, ARES_SOCKET_BAD, fd);
      });
    }
  }

  void ready(const std::shared_ptr<Watched>& watched, const boost::system::error_code& ec, ares_socket_t readable,
             ares_socket_t writable) {
    // After release() the waits end with an error, perhaps when this resolver is gone.
    if (ec || !watched->open) return;
    ares_process_fd(channel_, readable, writable);
    if (watched->open) wait(watched, readable != ARES_SOCKET_BAD ? readable : writable);
    arm_timer();
  }

  // c-ares counts its time-outs when it is called; the loop sees to it that it is.
  void arm_timer() {
    timer_.cancel();
    timeval left{};
    if (ares_timeout(channel_, nullptr, &left) == nullptr) return;
    const Duration delay = std::chrono::seconds{left.tv_sec} + std::chrono::microseconds{left.tv_usec};
    timer_ = EventLoop::current().call_later(delay + std::chrono::milliseconds{1}, [this] {
      ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
      arm_timer();
    });
  }

  ResolverOptions options_;
  AsioBackend& backend_;
  ares_channel channel_ = nullptr;
  bool closing_ = false;
  Handle timer_;
  std::unordered_map<std::string, Cached> cache_;
  std::unordered_map<std::string, std::shared_ptr<Question>> open_;
  std::deque<std::shared_ptr<Question>> waiting_;  // those of them not sent yet
  std::size_t under_way_ = 0;
  bool sending_ = false;
  std::map<ares_socket_t, std::shared_ptr<Watched>> watched_;
};

CaresResolver::CaresResolver(ResolverOptions options, AsioBackend& backend)
    : impl_(std::make_unique<Impl>(std::move(options), backend)) {}
CaresResolver::~CaresResolver() = default;

Coro<Result<AddressList>> CaresResolver::resolve(std::string_view host) {
  if (host.empty()) co_return fail(Errc::dns, "empty host name");
  std::string_view bare = host;
  if (bare.starts_with('[') && bare.ends_with(']')) bare = bare.substr(1, bare.size() - 2);
  if (auto literal = IpAddress::parse(bare)) co_return AddressList{*literal};
  if (is_localhost(bare)) co_return AddressList{*IpAddress::parse("127.0.0.1"), *IpAddress::parse("::1")};
  co_return co_await impl_->resolve(bare);
}

std::uint64_t CaresResolver::questions_asked() const noexcept { return impl_->questions_asked; }

}  // namespace argiope
