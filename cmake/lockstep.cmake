# SPDX-License-Identifier: Apache-2.0
# One function per kind of target. Sources are explicit and relative to the calling folder.

# Most presets compile several sources of a target as one, which takes about half the time. Sources that have a file-local
# name of another source of their target stay apart: cmake/apart.txt, a regular expression of paths a line.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/apart.txt apart REGEX "^[^#]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/apart.txt)
list(JOIN apart "|" LOCKSTEP_APART)
function(lockstep_keep_apart)
  foreach(source IN LISTS ARGN)
    get_filename_component(source ${source} ABSOLUTE)
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${source})
    if(path MATCHES "^(${LOCKSTEP_APART})$")
      set_property(SOURCE ${source} PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()

# lockstep_room(name SOURCES ... [DEPS ...] [TESTS ...]): a static library lockstep_<name> and, of the TESTS files, what lockstep_test makes.
function(lockstep_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;TESTS" ${ARGN})
  lockstep_keep_apart(${ARG_SOURCES})
  if(ARG_SOURCES)
    add_library(lockstep_${name} STATIC ${ARG_SOURCES})
    target_include_directories(lockstep_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(lockstep_${name} PUBLIC ${ARG_DEPS})
  else()
    add_library(lockstep_${name} INTERFACE)
    target_include_directories(lockstep_${name} INTERFACE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(lockstep_${name} INTERFACE ${ARG_DEPS})
  endif()
  foreach(test IN LISTS ARG_TESTS)
    lockstep_test(${test} DEPS lockstep_${name})
  endforeach()
endfunction()

# Test programs take far longer to optimise than to run, above all with sanitizers. They bring no undefined behaviour to look for.
function(lockstep_test_options target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0> $<$<CONFIG:RelWithDebInfo>:-O0>
    $<$<BOOL:${LOCKSTEP_SANITIZE}>:-fno-sanitize=undefined>)
endfunction()

# Whether LOCKSTEP_SKIP_TESTS matches a folder: the preset has no use for its tests.
function(lockstep_is_skipped folder result)
  if(LOCKSTEP_SKIP_TESTS AND folder MATCHES "${LOCKSTEP_SKIP_TESTS}")
    set(${result} TRUE PARENT_SCOPE)
  else()
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

# lockstep_test(file.cc [DEPS ...] [LABELS ...] [ALONE]): a source of the folder's GoogleTest program <folder>_test, run as one ctest per TEST().
# ALONE makes it a program of its own, <folder>_<file>: for tests of the process itself, or with dependencies of their own.
# tests/support/places.h says where the tree and the built programs are.
function(lockstep_test file)
  if(NOT LOCKSTEP_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "ALONE" "" "DEPS;LABELS" ${ARGN})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  string(REPLACE "/" "_" folder "${folder}")
  string(REGEX REPLACE "^src_" "" folder "${folder}")
  lockstep_is_skipped(${folder} skipped)
  if(skipped)
    return()
  endif()
  if(ARG_ALONE)
    get_filename_component(stem ${file} NAME_WE)
    set(target ${folder}_${stem})
  else()
    set(target ${folder}_test)
  endif()
  if(NOT TARGET ${target})
    add_executable(${target})
    target_link_libraries(${target} PRIVATE GTest::gtest_main)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
    lockstep_test_options(${target})
    target_precompile_headers(${target} REUSE_FROM lockstep_test_headers)
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    gtest_discover_tests(${target} TEST_PREFIX ${folder}. DISCOVERY_TIMEOUT 120 PROPERTIES LABELS "${ARG_LABELS}")
  endif()
  lockstep_keep_apart(${file})
  target_sources(${target} PRIVATE ${file})
  target_link_libraries(${target} PRIVATE ${ARG_DEPS})
endfunction()

# Optimised as one unit when linked, so never compiled as one.
function(lockstep_capture_properties target)
  set_target_properties(${target} PROPERTIES INTERPROCEDURAL_OPTIMIZATION ${LOCKSTEP_CAPTURE_IPO})
  if(LOCKSTEP_CAPTURE_IPO)
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  endif()
endfunction()

# lockstep_capture_library(name SOURCES ... SYMBOLS file): a library for the user's process: libc only, hidden symbols,
# exactly the symbols of the version script, never unloaded (late events and thread exits stay safe).
function(lockstep_capture_library name)
  cmake_parse_arguments(ARG "" "SYMBOLS" "SOURCES;DEPS" ${ARGN})
  lockstep_keep_apart(${ARG_SOURCES})
  add_library(${name} SHARED ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/src/capture/core/old_symbols.cc)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  if(LOCKSTEP_CAPTURE_IPO AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_definitions(${name} PRIVATE LOCKSTEP_OLD_SYMBOLS)
    # Where the functions were before glibc 2.34; since then these two are empty.
    target_link_options(${name} PRIVATE -flto-partition=one -Wl,--push-state,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0 -Wl,--pop-state)
  endif()
  target_compile_options(${name} PRIVATE ${LOCKSTEP_CAPTURE_FLAGS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  # Clearing the implicit libraries keeps libstdc++ and libgcc out: a stray `new` then fails the link.
  set(CMAKE_CXX_IMPLICIT_LINK_LIBRARIES "" PARENT_SCOPE)
  lockstep_capture_properties(${name})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE C
    LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SYMBOLS})
  target_link_options(${name} PRIVATE -Wl,-z,defs -Wl,-z,nodelete -Wl,--as-needed
    -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SYMBOLS})
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_CAPTURE_LIBRARIES ${name})
endfunction()
