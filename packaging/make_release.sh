#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: make_release.sh COMMIT URL FOLDER
#
# Writes the files of a release to FOLDER. The same commit gives the same bytes each time. URL is the folder from which
# users get the archive.
#
#   pawl-VERSION.tar.gz
#   pawl.wrap                             for Meson, and for WrapDB
#   pawl-VERSION.spdx.json                the bill of materials (SPDX 2.3): what Pawl is, and that it needs Boost
#   SHA256SUMS                            of the three above; check with: sha256sum -c SHA256SUMS
#   conan-center/recipes/pawl             for a pull request to conan-center. The recipe is that of the root; only the
#                                         origin of its version and of its sources differs.
#   vcpkg/ports/pawl, vcpkg/versions      the port, and its entry in the versions of a registry
set -Eeuo pipefail

die() {
    printf '%s\n' "$*" >&2
    exit 1
}
(($# == 3)) || die "usage: $0 COMMIT URL FOLDER"
[[ ! -e $3 ]] || die "$3 exists: remove it, or give another folder"
commit=$1 url=$2
mkdir -p "$3"
to=$(cd "$3" && pwd)
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

version=$(git show "$commit:include/pawl/version.hpp" |
    sed -nE 's/^#define PAWL_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+)$/\2/p' | paste -sd .)
archive=$to/pawl-$version.tar.gz
# Times are that of the commit. What a user of git may have configured is set here.
git -c core.attributesFile=/dev/null -c core.autocrlf=false -c core.eol=lf -c tar.umask=0022 \
    archive --format=tar --prefix="pawl-$version/" "$commit" | gzip -9n >"$archive"

# The recipes are those of the commit, too.
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
tar -xzf "$archive" --strip-components=1 -C "$source"
mkdir "$to/vcpkg"
cp "$source/packaging/meson/pawl.wrap" "$to"
cp "$source/packaging/spdx/pawl.spdx.json" "$to/pawl-$version.spdx.json"
cp -r "$source/packaging/conan/conan-center" "$to"
cp -r "$source"/packaging/vcpkg/{ports,versions} "$to/vcpkg"

# fill NAME VALUE: in place of @NAME@ in the templates.
fill() { grep -rlZ --exclude='*.gz' "@$1@" "$to" | xargs -0 sed -i "s|@$1@|$2|g"; }
fill version "$version"
fill url "$url/${archive##*/}"
fill sha256 "$(sha256sum <"$archive" | cut -d' ' -f1)"
fill sha512 "$(sha512sum <"$archive" | cut -d' ' -f1)"
fill date "$(TZ=UTC0 git show -s --format=%cd --date=format-local:%FT%TZ "$commit^{commit}")"
fill boost "$(sed -n 's/^find_package(Boost \([0-9.]*\).*/\1/p' "$source/cmake/pawl-requirements.cmake")"
(LC_ALL=C && cd "$to" && sha256sum -- *.*) >"$source/SHA256SUMS"
mv "$source/SHA256SUMS" "$to"

# vcpkg names a port by the hash that git gives its folder.
port=$to/vcpkg/ports/pawl
git -C "$port" init -q
git -C "$port" -c core.autocrlf=false add -A
fill git_tree "$(git -C "$port" write-tree)"
rm -rf "$port/.git"

recipe=$to/conan-center/recipes/pawl/all
mkdir "$recipe/test_package"
sed -e '/^import re$/d' -e 's/import copy, load$/import copy, get/' \
    -e 's|^    url = .*|    url = "https://github.com/conan-io/conan-center-index"|' \
    -e '/^    # Only here/,/^    def layout/{/^    def layout/!d}' \
    -e 's/basic_layout(self)/basic_layout(self, src_folder="src")/' \
    -e '/^    def build(self)/i \
    def source(self):\
        get(self, **self.conan_data["sources"][self.version], strip_root=True)\
' "$source/conanfile.py" >"$recipe/conanfile.py"
cp "$source"/test/package/conan/{conanfile.py,CMakeLists.txt,test_package.cpp} "$recipe/test_package"
