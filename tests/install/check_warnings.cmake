# SPDX-License-Identifier: Apache-2.0
# Whose warnings end a build: those of CI's compiler, and in the dev preset any compiler's.
cmake_minimum_required(VERSION 3.22)
include(${SOURCE_DIR}/cmake/warnings.cmake)

function(expect id version wanted)
  lockstep_warning_options(${id} ${version} options)
  if(NOT "${options}" STREQUAL "${wanted}")
    message(FATAL_ERROR "${id} ${version}: added '${options}', wanted '${wanted}'")
  endif()
endfunction()

expect(GNU 12.2.0 "")
expect(GNU 11.4.0 -Wno-error)
expect(GNU 13.3.0 -Wno-error)
expect(GNU 120.0.0 -Wno-error)
expect(Clang 12.0.1 -Wno-error)
set(LOCKSTEP_STRICT_WARNINGS ON)
expect(GNU 15.1.0 "")
expect(Clang 19.1.0 "")

# The presets: who asks for strict warnings, and that nobody but this file's function decides it.
file(READ ${SOURCE_DIR}/CMakePresets.json presets)
string(JSON count LENGTH "${presets}" configurePresets)
math(EXPR last "${count} - 1")
foreach(index RANGE ${last})
  string(JSON name GET "${presets}" configurePresets ${index} name)
  string(JSON strict ERROR_VARIABLE absent GET "${presets}" configurePresets ${index} cacheVariables LOCKSTEP_STRICT_WARNINGS)
  if((name STREQUAL "dev") EQUAL (NOT absent STREQUAL "NOTFOUND"))
    message(FATAL_ERROR "preset ${name}: LOCKSTEP_STRICT_WARNINGS is '${strict}'")
  endif()
endforeach()
