// Tests that use up all descriptors.
#pragma once

#include <gtest/gtest.h>

// The undefined-behaviour sanitizer asks by a pipe of its own whether memory can be read, and takes having none for a
// no.
#if defined(__has_feature)
#if __has_feature(undefined_behavior_sanitizer)
#define ARGIOPE_NEEDS_DESCRIPTORS GTEST_SKIP() << "the sanitizer needs descriptors itself"
#endif
#endif
#ifndef ARGIOPE_NEEDS_DESCRIPTORS
#define ARGIOPE_NEEDS_DESCRIPTORS
#endif
