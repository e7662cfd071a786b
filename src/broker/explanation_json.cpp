#include <fmt/format.h>

#include "argiope/base/json_writer.hpp"
#include "argiope/base/rfc3339.hpp"
#include "argiope/broker/broker.hpp"

namespace argiope {

std::string to_json(const JobExplanation& why) {
  const auto time = [](const std::optional<WallTime>& at) {
    return at ? fmt::format("\"{}\"", to_rfc3339(*at)) : std::string("null");
  };
  std::string out = fmt::format("{{\"id\":{},\"queue\":", why.id);
  append_json_string(out, why.queue);
  out += fmt::format(",\"state\":\"{}\",\"reason\":\"{}\",\"until\":{},\"ahead\":{},\"attempts\":{},\"max_attempts\":{},",
                     to_string(why.state), to_string(why.reason), time(why.until), why.ahead, why.attempts,
                     why.max_attempts);
  out += "\"error\":";
  append_json_string(out, why.error);
  out += ",\"waits_for\":[";
  for (const JobId id : why.waits_for) out += fmt::format("{}{}", out.back() == '[' ? "" : ",", id);
  out += fmt::format("],\"lease_until\":{},\"worker\":", time(why.lease_until));
  append_json_string(out, why.worker);
  out += fmt::format(",\"progress\":{},\"progress_message\":", why.progress);
  append_json_string(out, why.progress_message);
  out += ",\"owner_knows\":[";
  for (const WaitReason reason : why.owner_knows) {
    out += fmt::format("{}\"{}\"", out.back() == '[' ? "" : ",", to_string(reason));
  }
  out += ']';
  return out + '}';
}

}  // namespace argiope
