# `cmake --install` and find_package(muster): every layer as muster::LAYER, all of them as muster::muster, the headers, the
# command. Needs the targets programs and libraries built (`./dev build`).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(layers GLOBAL PROPERTY MUSTER_LAYER_TARGETS)
add_library(muster_all INTERFACE)
add_library(muster::muster ALIAS muster_all)
set_target_properties(muster_all PROPERTIES EXPORT_NAME muster)
target_link_libraries(muster_all INTERFACE ${layers})

# A layer may have helper targets of its own (an object library): install every library in muster/.
muster_folder_targets(${PROJECT_SOURCE_DIR}/muster targets)
muster_targets_of_type(EXECUTABLE executables ${targets})
muster_targets_of_type(UTILITY utilities ${targets})
list(REMOVE_ITEM targets "" muster_test_header ${executables} ${utilities})
install(TARGETS muster_options muster_all ${targets} EXPORT musterTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        OBJECTS DESTINATION ${CMAKE_INSTALL_LIBDIR}/muster)
install(TARGETS muster_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# The headers of muster/PUBLIC and those that they include, as they are when the installation runs.
install(CODE "
  execute_process(COMMAND ${PROJECT_SOURCE_DIR}/tools/check_public.py --closure OUTPUT_VARIABLE headers
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE \"\\n\" \";\" headers \"\${headers}\")
  foreach(header IN LISTS headers)
    cmake_path(GET header PARENT_PATH folder)
    file(INSTALL \"${PROJECT_SOURCE_DIR}/\${header}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/\${folder}\")
  endforeach()")

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/muster)
install(EXPORT musterTargets NAMESPACE muster:: DESTINATION ${package_folder})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/musterConfig.cmake.in ${CMAKE_BINARY_DIR}/musterConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/musterConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/musterConfig.cmake ${CMAKE_BINARY_DIR}/musterConfigVersion.cmake
        DESTINATION ${package_folder})
