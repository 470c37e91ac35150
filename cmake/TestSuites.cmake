# hvd_add_suite(<target> LABELS <label> ... TIMEOUT <seconds> [PARALLEL]): makes CTest entries of a GoogleTest
# program, one per GoogleTest suite, named <target>.<suite>. One entry per test would start a process for
# each of thousands of cases; one per program would hide which suite hangs. The list is read from the
# program just before the tests run, so the entries always match what was built.
#
# An entry uses all cores, since most start several ranks; PARALLEL says that its tests are single-threaded.
# NAME runs the same program once more under another name, with the variables of ENVIRONMENT, without suites that
# match WITHOUT.
# Suites with "Soak" in their name get the label soak, with "Slow" the label slow, those that match ALONE the label alone:
# `./dev test` chooses by label, and runs nothing beside the last.
# GoogleTest's reports go to HVD_TEST_RESULTS, if that is set when the tests run.

# What all entries get. Sanitizers cost memory and time: their runs stop at four ranks.
set(max_ranks 8)
if(HVD_SANITIZE)
  set(max_ranks 4)
endif()
set(HVD_TEST_ENVIRONMENT
  "HVD_BUILD_DIR=${CMAKE_BINARY_DIR}"
  "HVD_SOURCE_DIR=${CMAKE_SOURCE_DIR}"
  "HVD_TEST_MAX_RANKS=${max_ranks}"
  "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1"
  "UBSAN_OPTIONS=print_stacktrace=1"
  "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1")

function(hvd_add_suite target)
  cmake_parse_arguments(arg "PARALLEL" "TIMEOUT;NAME;WITHOUT;ALONE" "LABELS;ENVIRONMENT" ${ARGN})
  set(name ${target})
  if(arg_NAME)
    set(name ${arg_NAME})
  endif()
  set(timeout ${arg_TIMEOUT})
  if(HVD_SANITIZE)
    math(EXPR timeout "${timeout} * 4")
  endif()
  set(processors 64)
  if(arg_PARALLEL)
    set(processors 1)
  endif()
  set(entries ${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake)
  file(GENERATE OUTPUT ${entries} CONTENT "
set(suite_target [[${name}]])
set(suite_program [[$<TARGET_FILE:${target}>]])
set(suite_labels [[${arg_LABELS}]])
set(suite_timeout ${timeout})
set(suite_processors ${processors})
set(suite_environment [[${HVD_TEST_ENVIRONMENT};${arg_ENVIRONMENT}]])
set(suite_without [[${arg_WITHOUT}]])
set(suite_alone [[${arg_ALONE}]])
include([[${CMAKE_SOURCE_DIR}/cmake/TestSuitesAtRunTime.cmake]])
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${entries})
endfunction()
