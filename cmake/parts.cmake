# SPDX-License-Identifier: Apache-2.0
# Software of others, as rooms name it: part::sqlite and so on. A target with the property LOCKSTEP_PORTABLE takes the static libraries,
# every other one the shared ones; the rooms between are compiled once for both.

# lockstep_part(name shared... [STATIC archive...] [AFTER library...]): archives are names in the library folders, what comes after them
# is what they need. What is absent is added to the global property LOCKSTEP_PORTABLE_MISSES.
function(lockstep_part name shared)
  cmake_parse_arguments(ARG "" "" "STATIC;AFTER" ${ARGN})
  add_library(lockstep_part_${name} INTERFACE)
  add_library(part::${name} ALIAS lockstep_part_${name})
  foreach(library IN LISTS shared)
    target_link_libraries(lockstep_part_${name} INTERFACE $<$<NOT:$<BOOL:$<TARGET_PROPERTY:LOCKSTEP_PORTABLE>>>:${library}>)
  endforeach()
  add_library(lockstep_static_${name} INTERFACE)
  target_link_libraries(lockstep_part_${name} INTERFACE $<$<BOOL:$<TARGET_PROPERTY:LOCKSTEP_PORTABLE>>:lockstep_static_${name}>)
  foreach(archive IN LISTS ARG_STATIC)
    find_library(LOCKSTEP_STATIC_${archive} NAMES lib${archive}.a)
    mark_as_advanced(LOCKSTEP_STATIC_${archive})
    if(LOCKSTEP_STATIC_${archive})
      target_link_libraries(lockstep_static_${name} INTERFACE ${LOCKSTEP_STATIC_${archive}})
    else()
      set_property(GLOBAL APPEND PROPERTY LOCKSTEP_PORTABLE_MISSES lib${archive}.a)
    endif()
  endforeach()
  target_link_libraries(lockstep_static_${name} INTERFACE ${ARG_AFTER})
endfunction()

# lockstep_static_source(name PACKAGE package FILES ... INCLUDES ...): a static library from the source package that tools/setup has
# unpacked, for a part of which Debian has no static library that will do. Without the sources it is missed.
function(lockstep_static_source name)
  cmake_parse_arguments(ARG "" "PACKAGE" "FILES;INCLUDES" ${ARGN})
  file(GLOB folder ${PROJECT_SOURCE_DIR}/build/sources/${ARG_PACKAGE}-*)
  list(LENGTH folder count)
  if(NOT count EQUAL 1)
    set_property(GLOBAL APPEND PROPERTY LOCKSTEP_PORTABLE_MISSES "the source of ${ARG_PACKAGE}")
    return()
  endif()
  list(TRANSFORM ARG_FILES PREPEND ${folder}/)
  list(TRANSFORM ARG_INCLUDES PREPEND ${folder}/)
  add_library(lockstep_source_${name} STATIC EXCLUDE_FROM_ALL ${ARG_FILES})
  target_include_directories(lockstep_source_${name} SYSTEM PRIVATE ${ARG_INCLUDES})
  target_compile_options(lockstep_source_${name} PRIVATE -w)
  set_target_properties(lockstep_source_${name} PROPERTIES UNITY_BUILD OFF C_EXTENSIONS ON)
  target_link_libraries(lockstep_static_${name} INTERFACE lockstep_source_${name})
endfunction()

find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
lockstep_part(zlib ZLIB::ZLIB STATIC z)
if(NOT LOCKSTEP_BUILD_TOOLS)
  return()
endif()
find_package(SQLite3 REQUIRED)
find_package(LibArchive REQUIRED)
find_package(simdjson REQUIRED)
find_library(LIBDEFLATE_LIBRARY deflate REQUIRED)
lockstep_part(sqlite SQLite::SQLite3 STATIC sqlite3 AFTER Threads::Threads)
lockstep_part(deflate ${LIBDEFLATE_LIBRARY} STATIC deflate)
lockstep_part(simdjson simdjson::simdjson)
lockstep_static_source(simdjson PACKAGE simdjson FILES src/simdjson.cpp INCLUDES include src)
lockstep_part(bzip2 "")  # of libarchive; Debian's archive is not for shared libraries
lockstep_static_source(bzip2 PACKAGE bzip2 INCLUDES .
  FILES blocksort.c bzlib.c compress.c crctable.c decompress.c huffman.c randtable.c)
lockstep_part(archive LibArchive::LibArchive STATIC archive zstd lzma AFTER part::bzip2 part::zlib)
