// A settlement as JSON, as POST /v1/leases/settle takes it.
#pragma once

#include <cstdint>

#include "argiope/engine/detail/lease.hpp"
#include "base/internal/json_writer.hpp"

namespace argiope {

// The members of one settlement, into an object that is open. Members that its outcome does not allow are left out.
void write_settlement(JsonWriter& json, std::uint64_t token, const Verdict& verdict);

}  // namespace argiope
