#: install [--prefix FOLDER]        install the headers, for CMake and pkg-config; FOLDER: /usr/local (default)

prefix=/usr/local
take_options prefix "$@"
((${#rest[@]} == 0)) || does_not_know "${rest[0]}"
[[ $prefix == /* ]] || prefix=$here/$prefix
# The nearest folder that exists must take new ones.
folder=$prefix
until [[ -e $folder ]]; do folder=$(dirname "$folder"); done
[[ -d $folder && -w $folder ]] ||
    die "you may not write to $folder: ./dev install --prefix FOLDER installs elsewhere, such as in ~/.local; or be root."
need g++:g++ cmake:cmake make:make "libboost${system_boost:-1.81}-dev"
lock_folder build/install
cmake -B build/install -D PAWL_BUILD_TESTS=OFF -D PAWL_BUILD_EXAMPLES=OFF -D PAWL_BUILD_BENCH=OFF
cmake --install build/install --prefix "$prefix" >/dev/null
echo "dev: Pawl is installed in $prefix. In CMake: find_package(pawl REQUIRED), target_link_libraries(... pawl::pawl),"
echo "     with CMAKE_PREFIX_PATH=$prefix if CMake does not find it there. Otherwise: pkg-config --cflags pawl, with"
echo "     PKG_CONFIG_PATH=$prefix/share/pkgconfig if pkg-config does not find it there."
