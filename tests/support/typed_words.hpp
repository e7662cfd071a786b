// Words of a command line, as a group of arguments takes them: what becomes of them, or why they are refused.
#pragma once

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "argiope/base/error.hpp"

namespace argiope {

// `headings`: under which --help lists them, for groups that want to be told.
template <class Arguments, class... Headings>
void type_into(Arguments& arguments, const std::vector<std::string>& words, Headings... headings) {
  CLI::App app{"", "argiope"};
  arguments.add_to(app, headings...);
  app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
}

// What is said of words that are none of these arguments; empty where they are.
template <class Arguments, class... Headings>
std::string why_not_parsed(const std::vector<std::string>& words, Headings... headings) {
  Arguments arguments;
  try {
    type_into(arguments, words, headings...);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return {};
}

template <class Value>
Value accepted(Result<Value> made) {
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  return made ? std::move(*made) : Value{};
}

template <class Value>
std::string refused(const Result<Value>& made) {
  EXPECT_FALSE(made);
  return made ? "" : made.error().message;
}

}  // namespace argiope
