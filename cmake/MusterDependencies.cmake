# The libraries that muster needs. Each is a Debian package (tools/packages.txt) except libtorch, which
# tools/find_torch.py locates.
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(SQLite3 REQUIRED)
find_path(MUSTER_PROTOZERO_INCLUDE protozero/pbf_reader.hpp REQUIRED)
add_library(muster_protozero INTERFACE)
target_include_directories(muster_protozero SYSTEM INTERFACE $<BUILD_INTERFACE:${MUSTER_PROTOZERO_INCLUDE}>)

# Debian has no archives of spdlog and of fmt, on which it stands: only their headers are used, by muster/base/log.cc alone.
find_path(MUSTER_SPDLOG_INCLUDE spdlog/spdlog.h REQUIRED)
find_path(MUSTER_FMT_INCLUDE fmt/format.h REQUIRED)
add_library(muster_spdlog INTERFACE)
target_include_directories(muster_spdlog SYSTEM INTERFACE $<BUILD_INTERFACE:${MUSTER_SPDLOG_INCLUDE}>
                           $<BUILD_INTERFACE:${MUSTER_FMT_INCLUDE}>)

if(MUSTER_TESTS)
  find_package(GTest REQUIRED)
  # A client of status pages that isn't ours. The definitions must be those that Debian's library is compiled with (its
  # cpp-httplib.pc): its classes depend on them.
  find_path(MUSTER_HTTPLIB_INCLUDE httplib.h REQUIRED)
  find_library(MUSTER_HTTPLIB_LIBRARY cpp-httplib REQUIRED)
  add_library(muster_httplib INTERFACE)
  target_include_directories(muster_httplib SYSTEM INTERFACE $<BUILD_INTERFACE:${MUSTER_HTTPLIB_INCLUDE}>)
  target_compile_definitions(muster_httplib INTERFACE CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_ZLIB_SUPPORT)
  target_link_libraries(muster_httplib INTERFACE ${MUSTER_HTTPLIB_LIBRARY})
endif()

if(MUSTER_TORCH)
  if(NOT Torch_DIR)
    if(MUSTER_PYTHON)
      find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
      set(muster_beside --python ${Python_EXECUTABLE})  # its torch, not the checkout's
    endif()
    execute_process(COMMAND ${PROJECT_SOURCE_DIR}/tools/find_torch.py ${muster_beside}
                    OUTPUT_VARIABLE MUSTER_TORCH_CMAKE OUTPUT_STRIP_TRAILING_WHITESPACE
                    RESULT_VARIABLE MUSTER_TORCH_RESULT)
    if(NOT MUSTER_TORCH_RESULT EQUAL 0)
      message(FATAL_ERROR "libtorch was not found: './dev setup' installs it; or set Torch_DIR or LIBTORCH, or configure with -DMUSTER_TORCH=OFF")
    endif()
    set(Torch_DIR ${MUSTER_TORCH_CMAKE} CACHE PATH "folder of TorchConfig.cmake" FORCE)
  endif()
  # Torch's configuration warns of a profiler library that the wheel doesn't contain and nothing here needs.
  set(CMAKE_MESSAGE_LOG_LEVEL ERROR)
  find_package(Torch REQUIRED)
  unset(CMAKE_MESSAGE_LOG_LEVEL)
  # Programs find a libtorch of the checkout relative to themselves, so that they hold no path of this machine. CMake's own
  # way writes the full path of every folder that torch names. A libtorch elsewhere has no other place than its path.
  set(muster_torch_folder ${TORCH_INSTALL_PREFIX}/lib)
  cmake_path(IS_PREFIX PROJECT_SOURCE_DIR ${muster_torch_folder} NORMALIZE muster_torch_is_ours)
  if(muster_torch_is_ours)
    cmake_path(RELATIVE_PATH muster_torch_folder BASE_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
    string(PREPEND muster_torch_folder "$ORIGIN/")
  endif()
  set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
  set(CMAKE_INSTALL_RPATH ${muster_torch_folder} ${CUDAToolkit_LIBRARY_DIR})
endif()
