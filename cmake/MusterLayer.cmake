# muster_layer(NAME DEPS layer... [LIBS library...] [PRIVATE_LIBS library...] [TEST_LIBS library...] [OBJECTS file...]
#              [NO_THREADS [THREAD_TESTS test...]])
#
# One folder of muster/ as one static library muster_NAME (alias muster::NAME), made of every *.cc below the folder, and
# one test program NAME_test, made of every *_test.cc. DEPS are other layers; tools/check_layers.py holds the includes
# against muster/LAYERS, so that what is linked and what is included are the same graph. OBJECTS are files of
# the layer that go whole into every program that links it, referred to or not: each is an object library muster_FILE.
# NO_THREADS: nothing in the folder has threads but tests (tests/tools/structure_test.py looks). The thread sanitizer gets only
# those that THREAD_TESTS names, "a_test.cc" each, not those whose threads stand for processes.
function(muster_layer name)
  cmake_parse_arguments(L "NO_THREADS" "" "DEPS;LIBS;PRIVATE_LIBS;TEST_LIBS;OBJECTS;THREAD_TESTS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cc)
  foreach(file IN LISTS L_OBJECTS)
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${name}/${file})
  endforeach()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$|/testing/built_at\\.cc$")
  if(L_NO_THREADS AND MUSTER_SANITIZE STREQUAL "thread")
    list(JOIN L_THREAD_TESTS "|" threaded)
    list(FILTER tests INCLUDE REGEX "/(${threaded})$")  # none, if the list is empty
  endif()
  list(TRANSFORM L_DEPS PREPEND muster_)
  if(sources)
    add_library(muster_${name} STATIC ${sources})
    target_link_libraries(muster_${name} PUBLIC muster_options ${L_DEPS} ${L_LIBS} PRIVATE ${L_PRIVATE_LIBS})
    if(MUSTER_FUZZ)
      # Counts the branches taken, by which fuzz targets find their way. The tests do without: nothing reads it there.
      target_compile_options(muster_${name} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
  else()
    add_library(muster_${name} INTERFACE)
    target_link_libraries(muster_${name} INTERFACE muster_options ${L_DEPS} ${L_LIBS})
  endif()
  foreach(file IN LISTS L_OBJECTS)
    get_filename_component(object ${file} NAME_WE)
    add_library(muster_${object} OBJECT ${name}/${file})
    set_target_properties(muster_${object} PROPERTIES EXPORT_NAME ${object})
    target_link_libraries(muster_${object} PRIVATE muster_options)
    # TARGET_NAME is what lets an installed package find the objects under their exported name.
    target_link_libraries(muster_${name} INTERFACE $<TARGET_OBJECTS:$<TARGET_NAME:muster_${object}>>)
  endforeach()
  add_library(muster::${name} ALIAS muster_${name})
  set_target_properties(muster_${name} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY MUSTER_LAYER_TARGETS muster_${name})
  if(MUSTER_TESTS AND tests)
    muster_test(${name}_test SOURCES ${tests} LIBS muster_${name} ${L_TEST_LIBS})
  endif()
endfunction()

# What nearly every test includes, compiled once. Only where several files are compiled as one anyway: the presets that
# compile each by itself (dev, notorch) find out what a file forgets to include.
function(muster_share_test_header name)
  if(NOT CMAKE_UNITY_BUILD)
    return()
  endif()
  if(NOT TARGET muster_test_header)
    file(WRITE ${CMAKE_BINARY_DIR}/test_header.cc.new "// Exists so that the tests' header is precompiled once.\n")
    file(COPY_FILE ${CMAKE_BINARY_DIR}/test_header.cc.new ${CMAKE_BINARY_DIR}/test_header.cc ONLY_IF_DIFFERENT)
    add_library(muster_test_header OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/test_header.cc)
    target_link_libraries(muster_test_header PRIVATE muster_options GTest::gmock absl::statusor absl::strings)
    target_compile_options(muster_test_header PRIVATE -O0)
    target_precompile_headers(muster_test_header PRIVATE <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp>
      <algorithm> <filesystem> <fstream> <functional> <map> <memory> <optional> <set> <string> <thread> <vector>
      <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/strings/str_split.h> <absl/time/time.h>)
  endif()
  target_precompile_headers(${name} REUSE_FROM muster_test_header)
endfunction()

# A program whose own code needn't be fast. The property tells MusterTorch.cmake which precompiled header fits.
function(muster_unoptimised name)
  set_target_properties(${name} PROPERTIES MUSTER_UNOPTIMISED ON)
  target_compile_options(${name} PRIVATE -O0)
endfunction()

# A library or program that starts, watches and reports: nothing in it is as busy as training. -O1 compiles in 3/4 of the time
# of -O2, which `./dev demo` on a new machine waits for, and under the sanitizers -O0 in 2/5 of the time of -O1.
function(muster_briefly_optimised name)
  if(MUSTER_SANITIZE)
    target_compile_options(${name} PRIVATE -O0)
  elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${name} PRIVATE -O1)
  endif()
endfunction()

# muster_test(NAME SOURCES file... LIBS library... [LABELS label...] [TIMEOUT seconds]): a GoogleTest program, run whole by
# `./dev test`. Label `process`: it starts programs and looks at the machine, so it doesn't run under sanitizers; `long`:
# only `./dev test --long` runs it.
# The tests' own files are not optimised, the layers that they test are: the tests are half of what is compiled, and compile
# in 5/8 of the time.
function(muster_test name)
  cmake_parse_arguments(T "" "TIMEOUT" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE ${T_LIBS} muster_built_at GTest::gmock GTest::gtest_main)
  muster_unoptimised(${name})
  if(NOT "${T_LIBS}" MATCHES "torch|estimator")
    muster_share_test_header(${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY MUSTER_TEST_TARGETS ${name})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "gtest;${T_LABELS}")
  set_target_properties(${name} PROPERTIES MUSTER_LABELS "gtest;${T_LABELS}")
  if(T_TIMEOUT)
    set_tests_properties(${name} PROPERTIES TIMEOUT ${T_TIMEOUT})
  endif()
endfunction()
