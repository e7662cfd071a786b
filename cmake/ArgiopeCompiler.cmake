# Refuses compilers that miscompile coroutines, or cannot compile the headers. Read by the build, and by whoever uses the
# installed library (cmake/argiopeConfig.cmake.in): argiope_compiler_problem says what is wrong, or is empty.
set(argiope_compiler_problem "")
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
    OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19))
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(argiope_compiler_problem "miscompiles coroutines (double frees and hangs)")
  else()
    set(argiope_compiler_problem "cannot compile the headers of Argiope (std::expected)")
  endif()
  set(argiope_compiler_problem
    "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${argiope_compiler_problem}. Use clang++ 19 or newer, or g++ 14 or newer: cmake -DCMAKE_CXX_COMPILER=clang++-19 (docs/coroutine-pitfalls.md)")
endif()
