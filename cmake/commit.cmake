# SPDX-License-Identifier: Apache-2.0
# ${commit}: what is built, as `lockstep version` says it; with "+" if files have changed since. Empty where nobody knows.
set(LOCKSTEP_COMMIT "" CACHE STRING "Commit of the sources, if they lie outside git")
set(commit "${LOCKSTEP_COMMIT}")
find_program(LOCKSTEP_GIT git)
mark_as_advanced(LOCKSTEP_GIT)
if(commit STREQUAL "" AND LOCKSTEP_GIT)
  execute_process(COMMAND ${LOCKSTEP_GIT} -C ${PROJECT_SOURCE_DIR} rev-parse --short=12 HEAD
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND ${LOCKSTEP_GIT} -C ${PROJECT_SOURCE_DIR} status --porcelain --untracked-files=no
    OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    string(APPEND commit "+")
  endif()
  # A commit or a checkout appends to this file.
  execute_process(COMMAND ${LOCKSTEP_GIT} -C ${PROJECT_SOURCE_DIR} rev-parse --git-path logs/HEAD
    OUTPUT_VARIABLE git_log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  cmake_path(ABSOLUTE_PATH git_log BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(EXISTS "${git_log}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${git_log}")
  endif()
endif()
