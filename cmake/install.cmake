# Installs the headers and a CMake package that find_package(pawl) finds.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(PAWL_INSTALL_CMAKEDIR "${CMAKE_INSTALL_DATADIR}/cmake/pawl" CACHE STRING "Where pawl-config.cmake goes")

write_basic_package_version_file(
    "${PROJECT_BINARY_DIR}/pawl-config-version.cmake" COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(TARGETS pawl EXPORT pawl-targets FILE_SET HEADERS)
install(EXPORT pawl-targets NAMESPACE pawl:: DESTINATION "${PAWL_INSTALL_CMAKEDIR}")
install(FILES cmake/pawl-config.cmake "${PROJECT_BINARY_DIR}/pawl-config-version.cmake"
        DESTINATION "${PAWL_INSTALL_CMAKEDIR}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
