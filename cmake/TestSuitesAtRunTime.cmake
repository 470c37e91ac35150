# Read by ctest, once per GoogleTest program (see TestSuites.cmake): asks the program for its suites and adds
# one entry for each. A program that is missing or cannot list its tests becomes an entry that fails.
set(listing "")
set(failed 1)
if(EXISTS "${suite_program}")
  execute_process(COMMAND "${suite_program}" --gtest_list_tests
    OUTPUT_VARIABLE listing ERROR_VARIABLE errors RESULT_VARIABLE failed TIMEOUT 60)
endif()
if(failed)
  add_test("${suite_target}.cannot_list_its_tests" "${suite_program}" --gtest_list_tests)
  set_tests_properties("${suite_target}.cannot_list_its_tests" PROPERTIES LABELS "${suite_labels}" TIMEOUT 60)
  set(listing "")
endif()

# Suite lines start in the first column and end in a dot; a comment may follow.
string(REGEX MATCHALL "(^|\n)[A-Za-z_][A-Za-z0-9_/]*\\." suites "${listing}")
list(REMOVE_DUPLICATES suites)
foreach(suite IN LISTS suites)
  string(REGEX REPLACE "[\n.]" "" suite "${suite}")
  if(suite_without AND suite MATCHES "${suite_without}")
    continue()
  endif()
  string(REPLACE "/" "-" file_name "${suite_target}.${suite}")
  set(labels "${suite_labels}")
  foreach(word Soak Fault Slow)
    if(suite MATCHES "${word}")
      string(TOLOWER "${word}" label)
      list(APPEND labels "${label}")
    endif()
  endforeach()
  set(timeout ${suite_timeout})
  if(suite MATCHES "Soak")
    set(timeout 3600)
  endif()
  add_test("${suite_target}.${suite}" "${suite_program}" "--gtest_filter=${suite}.*"
    "--gtest_output=xml:${suite_results}/${file_name}.xml" --gtest_brief=0)
  set_tests_properties("${suite_target}.${suite}" PROPERTIES LABELS "${labels}" TIMEOUT ${timeout}
    PROCESSORS ${suite_processors} ENVIRONMENT "${suite_environment}")
endforeach()
