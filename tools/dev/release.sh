#: release [--check]                walk a release of HEAD, and stop at the first thing that is not ready; --check: without
#:                                  the tests, which take hours. Uploads nothing; the files are left in build/release

case ${1-} in
    "" | --check) ;;
    *) does_not_know "$1" --check ;;
esac
need git:git
not_ready() { die "not ready: $*"; }

version=$(sed -nE 's/^#define PAWL_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+)$/\2/p' include/pawl/version.hpp | paste -sd .)
# The other recipes take it from version.hpp.
grep -qF "  version: '$version'," meson.build || not_ready "meson.build has not version $version, which version.hpp has."
heading=$(grep -m 2 '^## ' CHANGELOG.md || true)
[[ $heading =~ ^(##\ \[Unreleased\]$'\n')?"## [$version] - "[0-9]{4}-[0-9]{2}-[0-9]{2}($|$'\n') ]] ||
    not_ready "the newest heading of CHANGELOG.md is not '## [$version] - <date>'."
! sed -n '/^## \[Unreleased\]/,/^## \[[0-9]/p' CHANGELOG.md | grep -vE '^(## |$)' >/dev/null ||
    not_ready "CHANGELOG.md has lines below [Unreleased]: move them below [$version]."
! unfilled=$(git grep -lE '<address of the repository>|Nothing is published yet' -- ':!test' ':!tools') ||
    not_ready "these say '<address of the repository>' or 'Nothing is published yet': ${unfilled//$'\n'/ }"
[[ -z $(git status --porcelain) ]] || not_ready "git status is not clean: commit what it lists, or remove it."
tagged=$(git rev-parse -q --verify "v$version^{commit}" || true)
[[ -z $tagged || $tagged == "$(git rev-parse HEAD)" ]] ||
    not_ready "v$version is another commit: raise the version in version.hpp and meson.build."

homepage=$(sed -nE 's/^    homepage = "(.*)"$/\1/p' conanfile.py)
url=$homepage/releases/download/v$version
lock_folder build/release
for each in files again; do
    rm -rf "build/release/$each"
    packaging/make_release.sh HEAD "$url" "build/release/$each"
done
difference=$(diff -rq build/release/files build/release/again) ||
    not_ready "the files of the release are not the same when they are made again: $difference"

[[ ${1-} == --check ]] || {
    .ci/run || not_ready ".ci/run fails."
    ./dev package || not_ready "./dev package fails."
    for each in asan+ubsan tsan optimised optimised+assertions; do
        ./dev test --preset "$each" || not_ready "./dev test --preset $each fails."
    done
}

[[ $(git cat-file -t "v$version" 2>/dev/null) == tag ]] ||
    not_ready "HEAD has no tag: git tag -s v$version -m 'Pawl $version'"
echo "dev: ready. Push v$version, and put the four files of build/release/files, without its folders, to $url"
echo "     Then see CONTRIBUTING.md for the registries."
