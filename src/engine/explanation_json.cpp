#include "engine/internal/explanation_json.hpp"

namespace argiope {

void write_members(JsonWriter& json, const JobExplanation& why) {
  json.member("id", why.id);
  json.member("queue", why.queue);
  json.member("state", to_string(why.state));
  json.member("reason", to_string(why.reason));
  json.member("until", why.until);
  json.member("ahead", why.ahead);
  json.member("attempts", why.attempts);
  json.member("max_attempts", why.max_attempts);
  json.member("error", why.error);
  json.list("waits_for", why.waits_for);
  json.member("lease_until", why.lease_until);
  json.member("worker", why.worker);
  json.member("progress", why.progress);
  json.member("progress_message", why.progress_message);
  json.array("owner_knows", [&] {
    for (const WaitReason reason : why.owner_knows) json.value(to_string(reason));
  });
}

std::string to_json(const JobExplanation& why) {
  return json_object([&](JsonWriter& json) { write_members(json, why); });
}

}  // namespace argiope
