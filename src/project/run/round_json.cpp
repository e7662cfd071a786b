#include "project/run/internal/round_json.hpp"

namespace argiope {

void write_round(JsonWriter& json, const RoundRecord& round) {
  json.member("number", round.number);
  json.member("cause", round.cause);
  json.member("began", round.began);
  json.member("ended", round.ended);
  json.member("pages", round.pages);
  json.member("failed", round.failed);
  json.member("results", round.results);
}

}  // namespace argiope
