// What can be said of a job from its record and its store alone, by the owner of its queue as by anybody else.
#pragma once

#include <cstdint>

#include "argiope/engine/broker.hpp"
#include "engine/internal/job_clock.hpp"
#include "engine/store_use.hpp"

namespace argiope {

inline constexpr std::uint64_t kMostAhead = 1'000'000;

void to_calendar(JobRecord& record, const JobClock& clock);

// Everything but reason and state; `config`: of its queue, if that is known.
JobExplanation explanation_of(const JobRecord& record, const QueueConfig* config);
// Names the reason of a job that has ended, is buried or waits for others; false for any other job.
Coro<Result<bool>> explain_by_record(const StoreUse& store, const JobRecord& record, JobExplanation& why);
// How many more important ones lie before it in the store.
Coro<Result<std::uint64_t>> count_ahead(const StoreUse& store, const JobRecord& record, QueueId queue, Duration ageing);

}  // namespace argiope
