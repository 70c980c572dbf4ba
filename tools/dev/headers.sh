#: headers [--compiler C]           compile each header alone; ./dev test compiles the public ones ten at a time

compiler=g++
take_options "compiler" "$@"
((${#rest[@]} == 0)) || does_not_know "${rest[0]}"
need "$compiler:${compiler/clang++/clang}" cmake:cmake ninja:ninja-build "libboost${system_boost:-1.81}-dev"
dir=build/headers-${compiler##*/}
lock_folder "$dir"
cmake --preset optimised -B "$dir" -D CMAKE_CXX_COMPILER="$compiler" -D PAWL_VERIFY_INNER_HEADERS=ON -D PAWL_BUILD_TESTS=OFF \
    -D PAWL_BUILD_EXAMPLES=OFF -D PAWL_BUILD_BENCH=OFF
compile all_verify_interface_header_sets
