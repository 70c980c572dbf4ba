#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: make_conan_center.sh ARCHIVE URL FOLDER
#
# Writes FOLDER/recipes/pawl in the form of a pull request to conan-center. ARCHIVE is the release as a .tar.gz with one
# folder in it, URL is where users get it. The recipe is that of the root; only the origin of its version and of its
# sources differs.
set -Eeuo pipefail

die() {
    printf '%s\n' "$*" >&2
    exit 1
}
(($# == 3)) || die "usage: $0 ARCHIVE URL FOLDER"
archive=$1 url=$2 to=$3/recipes/pawl
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
root=$here/../..
[[ -r $archive ]] || die "cannot read $archive: give the release as a .tar.gz"
[[ ! -e $to ]] || die "$to exists: remove it, or give another folder"

version=$(sed -nE 's/^#define PAWL_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+)$/\2/p' "$root/include/pawl/version.hpp" | paste -sd .)
sha256=$(sha256sum <"$archive")
mkdir -p "$to/all/test_package"
for template in config.yml all/conandata.yml; do
    sed -e "s|@version@|$version|" -e "s|@url@|$url|" -e "s|@sha256@|${sha256%% *}|" \
        "$here/conan-center/recipes/pawl/$template" >"$to/$template"
done
sed -e '/^import re$/d' -e 's/import copy, load$/import copy, get/' \
    -e 's|^    url = .*|    url = "https://github.com/conan-io/conan-center-index"|' \
    -e '/^    # Only here/,/^    def layout/{/^    def layout/!d}' \
    -e 's/basic_layout(self)/basic_layout(self, src_folder="src")/' \
    -e '/^    def build(self)/i \
    def source(self):\
        get(self, **self.conan_data["sources"][self.version], strip_root=True)\
' "$root/conanfile.py" >"$to/all/conanfile.py"
cp "$root"/test/package/conan/{conanfile.py,CMakeLists.txt,test_package.cpp} "$to/all/test_package"
