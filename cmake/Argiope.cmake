# Shared by every CMakeLists.txt: flags and one function for each kind of target.

add_library(argiope_flags INTERFACE)
target_compile_features(argiope_flags INTERFACE cxx_std_23)
target_compile_options(argiope_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor
  -Wno-missing-designated-field-initializers -fno-plt)
target_compile_definitions(argiope_flags INTERFACE SPDLOG_COMPILED_LIB SPDLOG_FMT_EXTERNAL)
if(ARGIOPE_SANITIZE)
  target_compile_options(argiope_flags INTERFACE -fsanitize=${ARGIOPE_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(argiope_flags INTERFACE -fsanitize=${ARGIOPE_SANITIZE})
endif()
if(ARGIOPE_FUZZ)
  target_compile_options(argiope_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# argiope_module(NAME [BELOW rung...] [LIBS public library...] [PRIVATE library...])
# The static library argiope_NAME from every .cpp beside the caller.
function(argiope_module name)
  cmake_parse_arguments(ARG "" "" "BELOW;LIBS;PRIVATE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_library(argiope_${name} STATIC ${sources})
  add_library(argiope::${name} ALIAS argiope_${name})
  target_include_directories(argiope_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM ARG_BELOW PREPEND argiope_)
  target_link_libraries(argiope_${name} PUBLIC argiope_flags ${ARG_BELOW} ${ARG_LIBS} PRIVATE ${ARG_PRIVATE})
endfunction()
