# SPDX-License-Identifier: Apache-2.0
# What `make install` leaves: programs, capture libraries, the public header, the Python module and a CMake package.
# The command line installs its man page and completions itself, and sim/ its program.
include(CMakePackageConfigHelpers)

if(TARGET lockstep)
  install(TARGETS lockstep RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

get_property(capture_libraries GLOBAL PROPERTY LOCKSTEP_CAPTURE_LIBRARIES)
if(capture_libraries)
  install(TARGETS ${capture_libraries} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  # What NCCL, and some RCCL, make of NCCL_PROFILER_PLUGIN=lockstep; and what they open where the variable is not set, in a
  # folder that the loader does not look into unasked.
  set(unasked lockstep/unasked)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/lib/${unasked})
  foreach(kind IN ITEMS nccl rccl)
    file(CREATE_LINK liblockstep-nccl.so ${CMAKE_BINARY_DIR}/lib/lib${kind}-profiler-lockstep.so SYMBOLIC)
    file(CREATE_LINK ../../liblockstep-nccl.so ${CMAKE_BINARY_DIR}/lib/${unasked}/lib${kind}-profiler.so SYMBOLIC)
    install(FILES ${CMAKE_BINARY_DIR}/lib/lib${kind}-profiler-lockstep.so DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(FILES ${CMAKE_BINARY_DIR}/lib/${unasked}/lib${kind}-profiler.so DESTINATION ${CMAKE_INSTALL_LIBDIR}/${unasked})
  endforeach()
endif()

install(DIRECTORY include/lockstep DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(EXISTS ${PROJECT_SOURCE_DIR}/python/lockstep)
  install(DIRECTORY python/lockstep DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep/python FILES_MATCHING PATTERN "*.py" PATTERN "py.typed")
endif()

# The pages and what they link to.
install(FILES LICENSE NOTICE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md THIRD-PARTY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES python/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/python)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} USE_SOURCE_PERMISSIONS PATTERN CMakeLists.txt EXCLUDE PATTERN *_test.cc EXCLUDE PATTERN recordings EXCLUDE)
install(CODE "set(pages [[${CMAKE_INSTALL_DOCDIR}]])")
install(SCRIPT cmake/installed_pages.cmake)
install(FILES examples/prometheus/lockstep-alerts.yml examples/prometheus/lockstep-dashboard.json
  DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep/prometheus)

# lockstep::lockstep is the header alone: a program that uses it runs with or without liblockstep.so.
add_library(lockstep_header INTERFACE)
add_library(lockstep::lockstep ALIAS lockstep_header)
set_target_properties(lockstep_header PROPERTIES EXPORT_NAME lockstep)
target_include_directories(lockstep_header INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(lockstep_header INTERFACE ${CMAKE_DL_LIBS})
install(TARGETS lockstep_header EXPORT lockstepTargets)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep)
install(EXPORT lockstepTargets NAMESPACE lockstep:: DESTINATION ${package_dir})
configure_package_config_file(cmake/lockstepConfig.cmake.in lockstepConfig.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(lockstepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lockstepConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/lockstepConfigVersion.cmake
  DESTINATION ${package_dir})
