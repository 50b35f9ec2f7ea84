# How everything in the project is compiled: language level, warnings, sanitizers, compiler cache, output folder of
# programs.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Programs are compiled with -fPIC, too: GCC accepts the precompiled torch header (MusterTorch.cmake) only with the code
# model that it was made with, and libraries and programs share it.
set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# The compiler cache serves every checkout on the machine: paths below the checkout are hashed as relative ones, and
# neither the debug information nor the precompiled headers say where or when they were made. The sloppiness is what
# ccache needs to cache files that use a precompiled header. What it takes from the compiler's list of headers it needn't
# preprocess for: a tenth of a build without a cache.
find_program(MUSTER_CCACHE ccache)
if(MUSTER_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_DEPEND=true CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=true ${MUSTER_CCACHE})
endif()
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
endif()

add_library(muster_options INTERFACE)
target_compile_options(muster_options INTERFACE
  $<BUILD_INTERFACE:-Wall;-Wextra;-Werror;-Wno-sign-compare;-Wno-missing-field-initializers>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(muster_options INTERFACE $<BUILD_INTERFACE:-Wthread-safety>)
endif()
target_include_directories(muster_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
target_compile_features(muster_options INTERFACE cxx_std_20)

if(MUSTER_SANITIZE)
  add_compile_options(-fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MUSTER_SANITIZE})
endif()
if(MUSTER_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "MUSTER_FUZZ needs clang (libFuzzer); the compiler is ${CMAKE_CXX_COMPILER}. Use the preset fuzz or asan.")
  endif()
endif()
