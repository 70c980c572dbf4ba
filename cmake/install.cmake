# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0

# Installs the headers, a CMake package for find_package(pawl), and pawl.pc for pkg-config. The installed files contain
# no absolute path, so they can be moved.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(PAWL_INSTALL_CMAKEDIR "${CMAKE_INSTALL_DATADIR}/cmake/pawl" CACHE STRING "Where pawl-config.cmake goes")
set(pawl_pkgconfigdir "${CMAKE_INSTALL_DATADIR}/pkgconfig")

configure_package_config_file(cmake/pawl-config.cmake.in "${PROJECT_BINARY_DIR}/pawl-config.cmake"
    INSTALL_DESTINATION "${PAWL_INSTALL_CMAKEDIR}" PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
# While the version is 0.x, each minor version may break compatibility.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/pawl-config-version.cmake"
    COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)

cmake_path(ABSOLUTE_PATH pawl_pkgconfigdir BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE from)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY "${from}" OUTPUT_VARIABLE pawl_pc_to_include)
configure_file(cmake/pawl.pc.in pawl.pc @ONLY)

install(TARGETS pawl EXPORT pawl-targets FILE_SET HEADERS FILE_SET inner_headers)
install(EXPORT pawl-targets NAMESPACE pawl:: DESTINATION "${PAWL_INSTALL_CMAKEDIR}")
install(FILES "${PROJECT_BINARY_DIR}/pawl-config.cmake" "${PROJECT_BINARY_DIR}/pawl-config-version.cmake"
              cmake/pawl-requirements.cmake
        DESTINATION "${PAWL_INSTALL_CMAKEDIR}")
install(FILES "${PROJECT_BINARY_DIR}/pawl.pc" DESTINATION "${pawl_pkgconfigdir}")
install(FILES tools/gdb/pawl_printers.py DESTINATION "${CMAKE_INSTALL_DATADIR}/pawl/gdb")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
