# SPDX-License-Identifier: Apache-2.0
file(REMOVE_RECURSE ${SCRATCH_DIR})
set(prefix ${SCRATCH_DIR}/prefix)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${output}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix})
foreach(file IN ITEMS bin/lockstep bin/lockstep-sim-job share/doc/lockstep/LICENSE lib/liblockstep-nccl.so lib/libnccl-profiler-lockstep.so
        lib/librccl-profiler-lockstep.so lib/lockstep/unasked/librccl-profiler.so lib/liblockstep.so lib/liblockstep_plugin.so include/lockstep/lockstep.h
        share/lockstep/prometheus/lockstep-alerts.yml share/lockstep/prometheus/lockstep-dashboard.json)
  if(NOT EXISTS ${prefix}/${file})
    message(FATAL_ERROR "not installed: ${file}")
  endif()
endforeach()
# As NCCL does for NCCL_PROFILER_PLUGIN=lockstep, and without the variable; RCCL's names are links as NCCL's.
set(play ${prefix}/bin/lockstep-nccl-host --script allreduce --events 1 --plugin)
run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${prefix}/lib LOCKSTEP_DIR=${SCRATCH_DIR}/named ${play} lockstep)
run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${prefix}/lib/lockstep/unasked LOCKSTEP_DIR=${SCRATCH_DIR}/unasked ${play}=)
run(${prefix}/bin/lockstep version)
run(${CMAKE_COMMAND} -S ${CONSUMER_DIR} -B ${SCRATCH_DIR}/build -DCMAKE_PREFIX_PATH=${prefix}
    -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DCMAKE_C_COMPILER=${C_COMPILER})
run(${CMAKE_COMMAND} --build ${SCRATCH_DIR}/build)
run(${SCRATCH_DIR}/build/consumer)
run(${SCRATCH_DIR}/build/consumer_c)
