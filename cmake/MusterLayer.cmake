# muster_layer(NAME DEPS layer... [LIBS library...] [PRIVATE_LIBS library...] [TEST_LIBS library...] [OBJECTS file...]
#              [NO_THREADS])
#
# One folder of muster/ as one static library muster_NAME (alias muster::NAME), made of every *.cc below the folder, and
# one test program NAME_test, made of every *_test.cc. DEPS are other layers; tools/check_layers.py holds the includes
# against muster/LAYERS, so that what is linked and what is included are the same graph. OBJECTS are files of
# the layer that go whole into every program that links it, referred to or not: each is an object library muster_FILE.
# NO_THREADS: nothing in the folder has threads (tests/tools_test.py looks), so the thread sanitizer doesn't get its tests.
function(muster_layer name)
  cmake_parse_arguments(L "NO_THREADS" "" "DEPS;LIBS;PRIVATE_LIBS;TEST_LIBS;OBJECTS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cc)
  foreach(file IN LISTS L_OBJECTS)
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${name}/${file})
  endforeach()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$|/testing/built_at\\.cc$")
  list(TRANSFORM L_DEPS PREPEND muster_)
  if(sources)
    add_library(muster_${name} STATIC ${sources})
    target_link_libraries(muster_${name} PUBLIC muster_options ${L_DEPS} ${L_LIBS} PRIVATE ${L_PRIVATE_LIBS})
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
  if(MUSTER_TESTS AND tests AND NOT (L_NO_THREADS AND MUSTER_SANITIZE STREQUAL "thread"))
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

# muster_test(NAME SOURCES file... LIBS library... [LABELS label...] [TIMEOUT seconds]): a GoogleTest program, run whole by
# `./dev test`. Label `process`: it starts programs and looks at the machine, so it runs alone and not under sanitizers.
# The tests' own files are not optimised, what they test is: they are half of what is compiled, and compile in 5/8 of the
# time. Those that share the torch header keep the flags that it was compiled with.
function(muster_test name)
  cmake_parse_arguments(T "" "TIMEOUT" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE ${T_LIBS} muster_built_at GTest::gmock GTest::gtest_main)
  if(NOT "${T_LIBS}" MATCHES "torch|estimator")
    target_compile_options(${name} PRIVATE -O0)
    muster_share_test_header(${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY MUSTER_TEST_TARGETS ${name})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "gtest;${T_LABELS}")
  if(T_TIMEOUT)
    set_tests_properties(${name} PROPERTIES TIMEOUT ${T_TIMEOUT})
  endif()
endfunction()
