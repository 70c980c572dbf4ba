# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0

set(VCPKG_BUILD_TYPE release) # header-only

vcpkg_download_distfile(ARCHIVE
    URLS "@url@"
    FILENAME "pawl-${VERSION}.tar.gz"
    SHA512 @sha512@
)
vcpkg_extract_source_archive(SOURCE_PATH ARCHIVE "${ARCHIVE}")

vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        -DPAWL_BUILD_TESTS=OFF
        -DPAWL_BUILD_EXAMPLES=OFF
        -DPAWL_BUILD_BENCH=OFF
        -DPAWL_INSTALL_CMAKEDIR=share/pawl
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup()
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/doc") # the licence, which is in share/pawl
file(INSTALL "${CURRENT_PORT_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
