# Shared by every CMakeLists.txt: flags, and the function that makes a module.

# How our own code is compiled; nothing of it reaches those who link an installed library.
add_library(argiope_flags INTERFACE)
target_compile_options(argiope_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor
  -Wno-missing-designated-field-initializers -fno-plt)
if(ARGIOPE_SANITIZE)
  target_compile_options(argiope_flags INTERFACE -fsanitize=${ARGIOPE_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(argiope_flags INTERFACE -fsanitize=${ARGIOPE_SANITIZE})
endif()

# What is installed belongs to the component `library`, but for the command.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME library)

# argiope_precompile(TARGET [header...]): parses what nearly every source includes once for the target, and `header`s too.
# A compiler cache takes its place where there is one: it cannot know a precompiled header of another checkout again.
function(argiope_precompile target)
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE <algorithm> <chrono> <coroutine> <expected> <functional> <map> <memory>
    <mutex> <optional> <span> <string> <string_view> <unordered_map> <utility> <vector> <fmt/format.h>
    <spdlog/spdlog.h> ${ARGN})
endfunction()

# argiope_join_sources(TARGET SIZE): compiles SIZE of its sources at a time (ARGIOPE_JOIN_SOURCES), because most of a source's time
# goes into the templates that its neighbours instantiate too. Names in the anonymous namespaces of a module's sources must
# differ, therefore.
function(argiope_join_sources target size)
  if(ARGIOPE_JOIN_SOURCES)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
  endif()
endfunction()

# argiope_runs_seldom(TARGET...): what is called once for a command or a request is inlined less, which spares a third of the
# time to compile it, and of its size.
function(argiope_runs_seldom)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:Clang>:SHELL:-mllvm -inline-threshold=25>)
  endforeach()
endfunction()

# All modules that are installed beside the command.
add_custom_target(argiope_libraries)

# argiope_room(NAME [BELOW room...] [HEADERS header...])
# A folder of sources of the module that the caller makes next. Rooms are named from the lowest to the highest: one
# includes itself and those BELOW it. HEADERS are those of include/argiope/MODULE, and of its folder detail, that belong to it.
# tests/structure reads these lines.
function(argiope_room name)
  set_property(DIRECTORY APPEND PROPERTY argiope_rooms ${name})
endfunction()

# argiope_module(NAME [NOT_INSTALLED] [BELOW rung...] [LIBS public library...] [PRIVATE library...])
# The static library argiope_NAME (argiope::NAME) from every .cpp beside the caller and in its rooms. What is not
# installed is the command's.
function(argiope_module name)
  cmake_parse_arguments(ARG "NOT_INSTALLED" "" "BELOW;LIBS;PRIVATE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  get_property(rooms DIRECTORY PROPERTY argiope_rooms)
  foreach(room ${rooms})  # one room's sources beside each other, and so joined with each other
    file(GLOB in_room CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${room}/*.cpp)
    list(APPEND sources ${in_room})
  endforeach()
  add_library(argiope_${name} STATIC ${sources})
  add_library(argiope::${name} ALIAS argiope_${name})
  set_target_properties(argiope_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(argiope_${name} PUBLIC cxx_std_23)
  target_include_directories(argiope_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM ARG_BELOW PREPEND argiope_)
  target_link_libraries(argiope_${name} PUBLIC $<BUILD_INTERFACE:argiope_flags> ${ARG_BELOW} ${ARG_LIBS}
    PRIVATE ${ARG_PRIVATE})
  if(ARGIOPE_FUZZ)  # The fuzzer sees which ways the modules take; tests of the same build need not.
    target_compile_options(argiope_${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  argiope_precompile(argiope_${name})
  argiope_join_sources(argiope_${name} 30)
  if(ARG_NOT_INSTALLED)
    return()
  endif()
  add_dependencies(argiope_libraries argiope_${name})
  install(TARGETS argiope_${name} EXPORT argiopeTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endfunction()

# argiope_moved_header(OLD NEW): a program that includes argiope/OLD gets argiope/NEW. Only where the library is installed:
# our own sources use the new names.
function(argiope_moved_header old new)
  set(header ${PROJECT_BINARY_DIR}/moved/argiope/${old})
  file(CONFIGURE OUTPUT ${header} CONTENT "// Moved to argiope/${new}.\n#pragma once\n#include \"argiope/${new}\"\n")
  cmake_path(GET old PARENT_PATH folder)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/argiope/${folder})
endfunction()

# All modules as one target, argiope::argiope; the headers; and what find_package(argiope) reads. Of the headers those for
# users, and those in folders named detail, which they are made of; what is internal stays in src.
function(argiope_install_library)
  add_library(argiope_all INTERFACE)
  add_library(argiope::argiope ALIAS argiope_all)
  set_target_properties(argiope_all PROPERTIES EXPORT_NAME argiope)
  target_link_libraries(argiope_all INTERFACE argiope_project argiope_crawl argiope_calls)
  install(TARGETS argiope_all EXPORT argiopeTargets)
  # Each line: the header, and the old names that lead to it.
  foreach(line
      "async/asio_backend async/asio_op" "async/coro async/errors async/or_return"
      "async/event_loop async/future async/runner async/signals async/sleep async/timeout" "async/group async/waiting"
      "async/io_backend async/virtual_backend" "async/stream async/descriptor async/subprocess"
      "async/threads async/channel async/executor async/threadsafe" "async/detail/awaitable async/awaitable"
      "base/clock base/duration" "calls/calls calls/command calls/http_call calls/http_push web/http_call"
      "crawl/local_crawl crawl/crawler" "crawl/page crawl/crawl_sink"
      "crawl/sinks crawl/extraction_rules crawl/extraction_sink crawl/save_sink crawl/warc_sink"
      "crawl/detail/crawl_report crawl/crawl_report" "crawl/detail/host_settings crawl/host_settings"
      "crawl/detail/scope crawl/scope" "document/document web/document"
      "engine/book broker/guest engine/schedule_book schedule/schedule_book"
      "engine/engine broker/broker broker/events engine/events engine/schedule_events engine/scheduler
        schedule/schedule_events schedule/scheduler"
      "engine/worker broker/worker" "engine/detail/lease engine/lease" "jobs/job jobs/job_record"
      "jobs/job_queue jobs/queue_config jobs/retry" "jobs/schedule jobs/schedule_record schedule/schedule store/schedule_record"
      "jobs/detail/requests jobs/requests" "jobs/detail/shelf jobs/shelf" "jobs/detail/token_level jobs/token_level"
      "render/page_renderer render/chromium web/chromium web/page_renderer" "store/detail/sync_mode store/sync_mode"
      "store/detail/url_record store/url_record" "store/detail/url_store store/url_store"
      "time/time_zone schedule/time_zone schedule/timestamp time/timestamp"
      "time/trigger schedule/cron schedule/trigger time/cron" "warc/warc web/warc" "web/http_server web/http_router"
      "web/http_session web/cookies web/login" "web/detail/byte_rate web/byte_rate" "web/detail/charset web/charset"
      "web/detail/credentials web/credentials" "web/detail/dns web/dns" "web/detail/http_versions web/http_versions"
      "web/detail/ip_address web/ip_address" "web/detail/proxy web/proxy" "web/detail/robots_meta web/robots_meta"
      "web/detail/tls web/tls")
    separate_arguments(names UNIX_COMMAND "${line}")
    list(POP_FRONT names new)
    foreach(old ${names})
      argiope_moved_header(${old}.hpp ${new}.hpp)
    endforeach()
  endforeach()
  include(CMakePackageConfigHelpers)
  set(destination ${CMAKE_INSTALL_LIBDIR}/cmake/argiope)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/argiopeConfig.cmake.in
    ${PROJECT_BINARY_DIR}/argiopeConfig.cmake INSTALL_DESTINATION ${destination})
  # Until 1.0 every minor version may change what the headers offer.
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/argiopeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/argiope DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT argiopeTargets NAMESPACE argiope:: DESTINATION ${destination})
  install(FILES ${PROJECT_BINARY_DIR}/argiopeConfig.cmake ${PROJECT_BINARY_DIR}/argiopeConfigVersion.cmake
    ${PROJECT_SOURCE_DIR}/cmake/ArgiopeDependencies.cmake ${PROJECT_SOURCE_DIR}/cmake/ArgiopeCompiler.cmake
    DESTINATION ${destination})
endfunction()
