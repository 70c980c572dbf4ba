#: format [--check]                 format all sources; --check: only list the files that need it

mode=(-i)
case ${1-} in
    "") ;;
    --check) mode=(--dry-run --Werror) ;;
    *) does_not_know "$1" --check ;;
esac
need clang-format-16:clang-format-16 # one version on both systems, because versions differ in layout
find include test bench examples \( -name '*.hpp' -o -name '*.cpp' \) -print0 |
    xargs -0 clang-format-16 "${mode[@]}"
