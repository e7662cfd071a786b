# cmake -DBUILD=… -DCOMPILER=… -DPROGRAM=… -P run_package.cmake : installs the library of BUILD into a folder, builds the program
# against it, and runs it; and the command, which has to find what a script of pyspider's begins with.
set(work ${BUILD}/package_test)
file(REMOVE_RECURSE ${work})

# step(WHAT STATUS command…): runs it and expects its exit status; what it printed is in `printed`.
function(step what status)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
  if(NOT result EQUAL status)
    message(FATAL_ERROR "${what}: exit status ${result} instead of ${status}:\n${output}")
  endif()
  set(printed "${output}" PARENT_SCOPE)
endfunction()

step("install" 0 ${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/installed --component library)
step("configure" 0 ${CMAKE_COMMAND} -S ${PROGRAM} -B ${work}/build -DCMAKE_CXX_COMPILER=${COMPILER}
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=${work}/installed)
step("build" 0 ${CMAKE_COMMAND} --build ${work}/build)
step("run" 0 ${work}/build/outside)
if(NOT printed STREQUAL "42\n")
  message(FATAL_ERROR "it printed:\n${printed}")
endif()
step("configure what docs/library.md prints" 0 ${CMAKE_COMMAND} -S ${PROGRAM}/../../examples/own_program -B ${work}/own
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=${work}/installed)
step("build that" 0 ${CMAKE_COMMAND} --build ${work}/own)
step("run that" 0 ${work}/own/own_program)
if(NOT printed STREQUAL "first\nsecond\n")
  message(FATAL_ERROR "the program of docs/library.md printed:\n${printed}")
endif()
step("install the command" 0 ${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/installed --component command)
file(WRITE ${work}/scripts/shop.py "from pyspider.libs.base_handler import *\nclass Handler(BaseHandler):\n  def on_start(self):\n    print('begun')\n")
file(WRITE ${work}/shop.toml "[project]\nname = \"shop\"\nprocessor = [\"python3\", \"-m\", \"argiope.processor\", \"scripts/shop.py\"]\n")
step("a script" 0 ${work}/installed/bin/argiope project try ${work}/shop.toml data:,on_start --sandbox none)
if(NOT printed MATCHES "print: begun")
  message(FATAL_ERROR "the script printed:\n${printed}")
endif()
step("Ctrl-C" 130 timeout --preserve-status --signal INT 1 ${work}/build/outside waits)

# expect_of_compiler(ID VERSION PATTERN): what find_package says of a compiler; nothing where PATTERN is empty.
function(expect_of_compiler id version pattern)
  set(CMAKE_CXX_COMPILER_ID ${id})
  set(CMAKE_CXX_COMPILER_VERSION ${version})
  include(${PROGRAM}/../../cmake/ArgiopeCompiler.cmake)
  if(NOT argiope_compiler_problem MATCHES "^${pattern}$")
    message(FATAL_ERROR "${id} ${version}: ${argiope_compiler_problem}")
  endif()
endfunction()
expect_of_compiler(GNU 12.2.0 "GNU 12\\.2\\.0 miscompiles coroutines .* -DCMAKE_CXX_COMPILER=clang\\+\\+-19.*")
expect_of_compiler(Clang 16.0.6 "Clang 16\\.0\\.6 cannot compile the headers .* Use clang\\+\\+ 19 or newer.*")
expect_of_compiler(GNU 14.2.0 "")
expect_of_compiler(Clang 19.1.7 "")

# Debian 12's g++.
find_program(gcc_12 g++-12)
if(gcc_12)
  step("configure with g++ 12" 1 ${CMAKE_COMMAND} -S ${PROGRAM} -B ${work}/refused -DCMAKE_CXX_COMPILER=${gcc_12}
    -DCMAKE_PREFIX_PATH=${work}/installed)
  string(REGEX REPLACE "[ \n]+" " " printed "${printed}")
  if(NOT printed MATCHES "miscompiles coroutines .* Use clang\\+\\+ 19 or newer")
    message(FATAL_ERROR "g++ 12 is refused without a reason:\n${printed}")
  endif()
endif()
file(REMOVE_RECURSE ${work})
