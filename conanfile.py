# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import valid_min_cppstd
from conan.tools.files import copy, load
from conan.tools.layout import basic_layout
from conan.tools.scm import Version

required_conan_version = ">=2.1"


class PawlConan(ConanFile):
    name = "pawl"
    package_type = "header-library"
    description = "Timers for Boost.Asio servers, on a timing wheel"
    license = "BSL-1.0"
    url = "<address of the repository>"
    homepage = "<address of the repository>"
    topics = ("asio", "timer", "timeout", "timing-wheel", "coroutines", "header-only")
    settings = "os", "arch", "compiler", "build_type"
    no_copy_source = True

    # Only here, up to layout(): packaging/make_release.sh puts a source() in place of this.
    exports_sources = "include/*", "LICENSE"
    test_package_folder = "test/package/conan"

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "include/pawl/version.hpp"))
        parts = re.findall(r"#define PAWL_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)
        self.version = ".".join(parts)

    def layout(self):
        basic_layout(self)

    def requirements(self):
        self.requires("boost/[>=1.81 <2]")

    def package_id(self):
        self.info.clear()

    def validate(self):
        if not valid_min_cppstd(self, 20):
            raise ConanInvalidConfiguration(
                "Pawl needs C++20: set compiler.cppstd=20 in the profile, or pass -s compiler.cppstd=20."
            )
        # The oldest that config.hpp takes; of other compilers nothing is known.
        oldest = {"gcc": 12, "clang": 14}.get(str(self.settings.compiler))
        if oldest and Version(self.settings.compiler.version) < oldest:
            raise ConanInvalidConfiguration(
                f"Pawl needs {self.settings.compiler} {oldest} or newer: install one,"
                f" and set compiler.version in the profile to its version."
            )
        # The range above keeps older ones out, save where a consumer overrides it.
        # Not dependencies["boost"]: that does not know of platform_requires.
        for require, boost in self.dependencies.items():
            if require.ref.name == "boost" and boost.ref.version < "1.81":
                raise ConanInvalidConfiguration(
                    f"Pawl needs Boost 1.81 or newer: require one instead of boost/{boost.ref.version}."
                )

    def build(self):
        pass

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "include/pawl/*.hpp", self.source_folder, self.package_folder)

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "pawl")
        self.cpp_info.set_property("cmake_target_name", "pawl::pawl")
        self.cpp_info.set_property("pkg_config_name", "pawl")
        self.cpp_info.requires = ["boost::headers"]
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        if self.settings.os in ["Linux", "FreeBSD"]:
            self.cpp_info.system_libs = ["pthread"]
