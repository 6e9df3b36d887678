# SPDX-License-Identifier: Apache-2.0
# Presets ask for -Werror. It holds where warnings are known: in the dev preset, and for the compiler that CI uses.
# What another compiler warns of does not end a stranger's build.
set(LOCKSTEP_CI_COMPILER GNU-12)

# lockstep_warning_options(ID VERSION OPTIONS): what is added to the flags for this compiler.
function(lockstep_warning_options id version options)
  string(REGEX MATCH "^[0-9]+" major "${version}")
  if(LOCKSTEP_STRICT_WARNINGS OR "${id}-${major}" STREQUAL LOCKSTEP_CI_COMPILER)
    set(${options} "" PARENT_SCOPE)
  else()
    set(${options} -Wno-error PARENT_SCOPE)
  endif()
endfunction()
