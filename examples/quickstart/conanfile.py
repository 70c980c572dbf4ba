# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0

from conan import ConanFile
from conan.tools.cmake import CMake, cmake_layout


class Quickstart(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    requires = "pawl/[>=0.1]"
    generators = "CMakeDeps", "CMakeToolchain"

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()
        cmake.build(target="run")
