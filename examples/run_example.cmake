# cmake -DPROGRAM=... -DEXPECTED=... -P run_example.cmake : fails unless PROGRAM succeeds and prints what EXPECTED holds.
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE printed RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${status}; it printed:\n${printed}")
endif()
file(READ ${EXPECTED} expected)
if(NOT printed STREQUAL expected)
  message(FATAL_ERROR "${PROGRAM} printed:\n${printed}\nbut ${EXPECTED} has:\n${expected}")
endif()
