# SPDX-License-Identifier: Apache-2.0
# Part of an installation: links into the sources become text and the path there, in the pages in `pages`, below the prefix.
if(NOT IS_ABSOLUTE "${pages}")
  set(pages "${CMAKE_INSTALL_PREFIX}/${pages}")
endif()
file(GLOB_RECURSE installed "$ENV{DESTDIR}${pages}/*.md")
foreach(page IN LISTS installed)
  file(READ "${page}" text)
  string(REGEX REPLACE "\\[([^]]+)\\]\\((\\.\\./)*((bench|fuzz|include|sim|src|tests)/[^)]*)\\)" "\\1 (\\3)" text "${text}")
  file(WRITE "${page}" "${text}")
endforeach()
