# The dashboard (dashboard/) in the binary: a source file with the bytes of each file by .incbin, and their table.
# docs/decisions.md, "The dashboard is carried by the binary", says why it is done this way.

set(ARGIOPE_DASHBOARD AUTO CACHE STRING "Carry the dashboard: AUTO (when `make dashboard` has installed its libraries), ON, OFF")
set_property(CACHE ARGIOPE_DASHBOARD PROPERTY STRINGS AUTO ON OFF)

# The libraries of its package.json: the name a page imports, and the file in node_modules.
set(argiope_dashboard_libraries
  preact.mjs=preact/dist/preact.mjs
  hooks.mjs=preact/hooks/dist/hooks.mjs
  htm.mjs=htm/dist/htm.mjs
  uplot.mjs=uplot/dist/uPlot.esm.js
  uplot.css=uplot/dist/uPlot.min.css)

# argiope_find_dashboard_libraries(OUT): entries "ui/lib/NAME=FILE" of all of them; empty when one is missing.
function(argiope_find_dashboard_libraries out)
  set(found)
  foreach(entry ${argiope_dashboard_libraries})
    string(REGEX MATCH "^([^=]+)=(.+)$" _ ${entry})
    set(name ${CMAKE_MATCH_1})
    # The glob makes a build notice that a library has come or gone.
    file(GLOB file CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/dashboard/node_modules/${CMAKE_MATCH_2})
    if(NOT file)
      set(${out} "" PARENT_SCOPE)
      return()
    endif()
    if(name STREQUAL hooks.mjs)
      # It names its neighbour by package; a browser wants a path, and our policy allows no import map in the page.
      file(READ ${file} text)
      string(REPLACE "from\"preact\"" "from\"./preact.mjs\"" changed "${text}")
      if(changed STREQUAL text)
        message(FATAL_ERROR "${file} does not import preact as it did; see cmake/ArgiopeDashboard.cmake")
      endif()
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
      set(file ${CMAKE_CURRENT_BINARY_DIR}/hooks.mjs)
      file(CONFIGURE OUTPUT ${file} CONTENT "${changed}" @ONLY)
    endif()
    list(APPEND found ui/lib/${name}=${file})
  endforeach()
  # Who passes the binary on passes these on.
  foreach(library preact htm uplot)
    file(READ ${PROJECT_SOURCE_DIR}/dashboard/node_modules/${library}/LICENSE text)
    string(APPEND licenses "${library}\n\n${text}\n\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/licenses.txt CONTENT "${licenses}" @ONLY)
  list(APPEND found ui/licenses.txt=${CMAKE_CURRENT_BINARY_DIR}/licenses.txt)
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# argiope_list_dashboard(OUT): "PATH=FILE" of all that is carried.
function(argiope_list_dashboard out)
  set(root ${PROJECT_SOURCE_DIR}/dashboard)
  set(libraries)
  if(NOT ARGIOPE_DASHBOARD STREQUAL "OFF")
    argiope_find_dashboard_libraries(libraries)
    if(NOT libraries AND ARGIOPE_DASHBOARD STREQUAL "ON")
      message(FATAL_ERROR "The dashboard's libraries are not installed: run `make dashboard`, or npm ci in ${root}")
    endif()
  endif()
  if(NOT libraries)
    message(STATUS "Without the dashboard (make dashboard)")
    set(${out} =${root}/absent.html PARENT_SCOPE)
    return()
  endif()
  set(listed =${root}/index.html ${libraries})
  file(GLOB files CONFIGURE_DEPENDS RELATIVE ${root} ${root}/*.js ${root}/*.css ${root}/*.svg ${root}/pages/*.js)
  foreach(file ${files})
    list(APPEND listed ui/${file}=${root}/${file})
  endforeach()
  set(${out} ${listed} PARENT_SCOPE)
endfunction()

function(argiope_content_type file out)
  cmake_path(GET file EXTENSION LAST_ONLY extension)
  set(types .html text/html .css text/css .js text/javascript .mjs text/javascript .svg image/svg+xml .txt text/plain)
  list(FIND types ${extension} at)
  math(EXPR at "${at} + 1")
  list(GET types ${at} type)
  set(${out} "${type}; charset=utf-8" PARENT_SCOPE)
endfunction()

# argiope_embed_dashboard(TARGET): gives the target the source that defines dashboard_files().
function(argiope_embed_dashboard target)
  argiope_list_dashboard(listed)
  set(index 0)
  foreach(entry ${listed})
    string(REGEX MATCH "^([^=]*)=(.+)$" _ "${entry}")
    set(path /${CMAKE_MATCH_1})
    set(file ${CMAKE_MATCH_2})
    # The hash is in the source, so that a change of the bytes is one of the source, for compiler caches too.
    file(SHA256 ${file} hash)
    string(SUBSTRING ${hash} 0 24 tag)
    file(SIZE ${file} size)
    argiope_content_type(${file} type)
    string(APPEND bytes ".globl argiope_file_${index}\\n.hidden argiope_file_${index}\\nargiope_file_${index}: .incbin \\\"${file}\\\"\\n")
    string(APPEND names "extern __attribute__((visibility(\"hidden\"))) const char argiope_file_${index}[];\n")
    string(APPEND table "    {\"${path}\", \"${type}\", \"\\\"${tag}\\\"\", {argiope_file_${index}, ${size}}},\n")
    list(APPEND files ${file})
    math(EXPR index "${index} + 1")
  endforeach()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/dashboard_files.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[
// Made by cmake/ArgiopeDashboard.cmake.
#include "serve/static_files.hpp"

asm(".pushsection .rodata\n@bytes@.popsection\n");
extern "C" {
@names@}  // extern "C"

namespace argiope {
namespace {
constinit const StaticFile kFiles[] = {
@table@};
}
std::span<const StaticFile> dashboard_files() noexcept { return kFiles; }
}  // namespace argiope
]])
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${files}")
  target_sources(${target} PRIVATE ${source})
endfunction()
