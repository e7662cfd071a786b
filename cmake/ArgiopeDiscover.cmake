# Run when a test program has been built: writes to OUTPUT what ctest is to run of it, a process for each suite, because to start
# one takes longer than most tests. Suites of many tests are divided; those that take long, as SLOW says (a regular expression),
# into single ones, which processors can share.
#
#   cmake -DPROGRAM=… -DNAME=… -DSLOW=… -DOUTPUT=… -P ArgiopeDiscover.cmake
set(most_of_suite 40)

execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "[;[]|]" "_" listed "${listed}")  # of values of parameters: what CMake takes for lists
string(REPLACE "\n" ";" lines "${listed}")

set(script "")
function(argiope_add_part name tests)
  string(JOIN ":" filter ${tests})
  string(APPEND script "add_test([=[${name}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${filter}]=])\n"
    "set_tests_properties([=[${name}]=] PROPERTIES TIMEOUT 900)\n")
  set(script "${script}" PARENT_SCOPE)
endfunction()

# Writes down the suite read so far.
macro(argiope_end_suite)
  list(LENGTH tests count)
  if(count GREATER 0 AND SLOW AND suite MATCHES "${SLOW}")
    foreach(test ${tests})
      argiope_add_part(${NAME}.${test} ${test})
    endforeach()
  elseif(count GREATER most_of_suite)
    set(part 0)
    foreach(first RANGE 0 ${count} ${most_of_suite})
      if(first LESS count)
        math(EXPR part "${part} + 1")
        list(SUBLIST tests ${first} ${most_of_suite} some)
        argiope_add_part("${NAME}.${suite}_${part}" "${some}")
      endif()
    endforeach()
  elseif(count GREATER 0)
    argiope_add_part(${NAME}.${suite} "${tests}")
  endif()
endmacro()

set(suite "")
set(tests "")
foreach(line ${lines})
  string(REGEX REPLACE " +#.*" "" line "${line}")
  if(line MATCHES "^  (.+)")
    if(NOT CMAKE_MATCH_1 MATCHES "DISABLED_")
      list(APPEND tests ${suite}.${CMAKE_MATCH_1})
    endif()
  elseif(line MATCHES "^(.+)\\.$")
    argiope_end_suite()
    set(suite ${CMAKE_MATCH_1})
    set(tests "")
  endif()
endforeach()
argiope_end_suite()
file(WRITE ${OUTPUT} "${script}")
