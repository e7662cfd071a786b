// The change that a fetch tells of a URL that was fetched before. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "argiope/store/detail/url_record.hpp"

namespace argiope {

// How a URL answers, as far as changes go.
enum class AnswerClass : std::uint8_t { good, redirect, gone, broken };
// `status` 0: no answer, which is broken.
AnswerClass class_of_status(int status) noexcept;

// The change from what is stored to what has come of a fetch; nullopt: nothing, or there was no answer before. `at` and
// `url_id` are the outcome's.
std::optional<UrlChange> change_between(const UrlRecord& before, const UrlOutcome& after);

// An outcome that changes nothing of what is stored.
UrlOutcome as_it_was(const UrlRecord& record);

}  // namespace argiope
