# Run when a test program has been built: writes to OUTPUT what ctest is to run of it, a process for each suite, because to start
# one takes longer than most tests. Suites of many tests are divided; those that take long, as SLOW says (a regular expression),
# into single ones, which processors can share, and which have ten minutes: they compute as long as that under a sanitizer beside
# other work. The others have what CMakePresets.json says.
#
#   cmake -DPROGRAM=… -DNAME=… -DSLOW=… -DOUTPUT=… -P ArgiopeDiscover.cmake
set(most_of_suite 40)

execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "[;[]|]" "_" listed "${listed}")  # of values of parameters: what CMake takes for lists
string(REPLACE "\n" ";" lines "${listed}")

set(script "")
function(argiope_add_part name tests properties)
  foreach(test ${tests})
    if(NOT test MATCHES "^[^.]+[.][^.]+$")
      message(FATAL_ERROR "${PROGRAM}: \"${test}\" is no test's name")
    endif()
  endforeach()
  string(JOIN ":" filter ${tests})
  string(APPEND script "add_test([=[${name}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${filter}]=])\n"
    "set_tests_properties([=[${name}]=] PROPERTIES LABELS ${NAME} ${properties})\n")
  set(script "${script}" PARENT_SCOPE)
endfunction()

# Writes down the suite read so far.
macro(argiope_end_suite)
  list(LENGTH tests count)
  if(count GREATER 0 AND SLOW AND suite MATCHES "${SLOW}")
    foreach(test ${tests})
      argiope_add_part(${NAME}.${test} ${test} "TIMEOUT 600")
    endforeach()
  elseif(count GREATER most_of_suite)
    set(part 0)
    foreach(first RANGE 0 ${count} ${most_of_suite})
      if(first LESS count)
        math(EXPR part "${part} + 1")
        list(SUBLIST tests ${first} ${most_of_suite} some)
        argiope_add_part("${NAME}.${suite}_${part}" "${some}" "")
      endif()
    endforeach()
  elseif(count GREATER 0)
    argiope_add_part(${NAME}.${suite} "${tests}" "")
  endif()
endmacro()

set(suite "")
set(tests "")
foreach(line ${lines})
  string(REGEX REPLACE " +#.*" "" line "${line}")
  string(STRIP "${line}" found)
  if(line MATCHES "^  ")
    if(NOT found MATCHES "DISABLED_")
      list(APPEND tests ${suite}.${found})
    endif()
  elseif(found MATCHES "[.]$")
    argiope_end_suite()
    string(REGEX REPLACE "[.]$" "" suite "${found}")
    set(tests "")
  endif()
endforeach()
argiope_end_suite()
if(NOT script)
  message(FATAL_ERROR "${PROGRAM} lists no test")
endif()
file(WRITE ${OUTPUT} "${script}")
