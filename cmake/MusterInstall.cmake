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
list(REMOVE_ITEM targets "" ${executables} ${utilities})
install(TARGETS muster_options muster_all ${targets} EXPORT musterTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        OBJECTS DESTINATION ${CMAKE_INSTALL_LIBDIR}/muster)
install(TARGETS muster_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/muster DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h"
        PATTERN "testing" EXCLUDE)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/muster)
install(EXPORT musterTargets NAMESPACE muster:: DESTINATION ${package_folder})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/musterConfig.cmake.in ${CMAKE_BINARY_DIR}/musterConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/musterConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/musterConfig.cmake ${CMAKE_BINARY_DIR}/musterConfigVersion.cmake
        DESTINATION ${package_folder})
