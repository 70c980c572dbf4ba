#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# The port of vcpkg, without vcpkg: its manifest, its versions, and the result of its portfile on the archive of a release,
# with the functions of test/package/vcpkg/ in place of vcpkg's.
source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
work_in vcpkg

release_files
port=$release/vcpkg/ports/pawl

python3 - "$port/vcpkg.json" "$version" <<'PYTHON' || fail "packaging/vcpkg/ports/pawl/vcpkg.json is wrong: see above"
import json
import pathlib
import re
import sys

with open(sys.argv[1]) as file:
    manifest = json.load(file)
fields = {"name", "version", "description", "homepage", "license", "dependencies"}
assert set(manifest) == fields, f"fields: {set(manifest) ^ fields}"
assert manifest["name"] == "pawl"
assert manifest["version"] == sys.argv[2], manifest["version"]
assert manifest["license"] == "BSL-1.0"

dependencies = {
    each if isinstance(each, str) else each["name"]: each if isinstance(each, dict) else {}
    for each in manifest["dependencies"]
}
assert dependencies["vcpkg-cmake"]["host"] and dependencies["vcpkg-cmake-config"]["host"]
assert dependencies["boost-asio"]["version>="] == "1.81.0"
headers = "\n".join(path.read_text() for path in pathlib.Path("include").rglob("*.hpp"))
included = {
    "boost-" + {"version": "config"}.get(name, name.replace("_", "-"))
    for name in re.findall(r"^ *# *include <boost/(\w+)", headers, re.MULTILINE)
}
declared = {name for name in dependencies if name.startswith("boost-")}
assert declared == included, f"declared, or included, but not both: {declared ^ included}"
PYTHON
say "the manifest is of version $version, and names the parts of Boost that the headers include"

git -C "$release/vcpkg" init -q
git -C "$release/vcpkg" add -A
python3 - "$release/vcpkg/versions" "$version" "$(git -C "$release/vcpkg" write-tree --prefix=ports/pawl/)" <<'PYTHON' ||
import json
import pathlib
import sys

versions, version, tree = pathlib.Path(sys.argv[1]), *sys.argv[2:]
entry = {"git-tree": tree, "version": version, "port-version": 0}
assert json.loads((versions / "p-/pawl.json").read_text()) == {"versions": [entry]}, entry
baseline = {"baseline": version, "port-version": 0}
assert json.loads((versions / "baseline.json").read_text()) == {"default": {"pawl": baseline}}
PYTHON
    fail "vcpkg/versions is wrong: see above"
say "its entry in the versions names the tree that git gives the port in a registry"

quietly cmake -D PORT_DIR="$port" -D VERSION="$version" -D TO="$work" -P test/package/vcpkg/stand_ins.cmake
package=$work/packages/pawl
installed=$work/installed/some-triplet # a package is moved when it is installed
mkdir "$work/installed"
mv "$package" "$installed"

source=$work/buildtrees/pawl/src/pawl-$version
diff -r "$source/include" "$installed/include" || fail "the headers are not those of include/"
cmp "$source/LICENSE" "$installed/share/pawl/copyright"
cmp packaging/vcpkg/ports/pawl/usage "$installed/share/pawl/usage"
strays=$(cd "$installed" && find . \
    \( -type d -empty -print \) -o \
    \( -type f ! -path './include/*' ! -path './share/pawl/*' ! -path './share/pkgconfig/pawl.pc' -print \))
[[ -z $strays ]] || fail "does not belong into a package of headers: $strays"
! grep -rF "$work" "$installed" || fail "an installed file has an absolute path"
say "the package has the headers, share/pawl, share/pkgconfig/pawl.pc, and no absolute path"

mkdir "$work/consumer"
cp examples/quickstart/CMakeLists.txt "$work/consumer" # away from the sources: only the package is found
twenty_lines >"$work/consumer/main.cpp"
quietly cmake -S "$work/consumer" -B "$work/consumer/build" -D CMAKE_PREFIX_PATH="$installed"
grep -qx "pawl_DIR:PATH=$installed/share/pawl" "$work/consumer/build/CMakeCache.txt" || fail "another pawl was taken"
quietly cmake --build "$work/consumer/build" --target run
grep -qx 'timed out' "$work/log" || fail "the twenty lines have not timed out: $work/log"
say "a CMake consumer builds and runs the twenty lines of README.md with the package"

flags=$(PKG_CONFIG_LIBDIR=$installed/share/pkgconfig pkg-config --cflags "pawl = $version")
folder=$(sed -nE 's/.*-I([^ ]+).*/\1/p' <<<"$flags")
[[ $folder -ef $installed/include ]] || fail "pkg-config gives $flags"
say "pkg-config finds the moved headers"
