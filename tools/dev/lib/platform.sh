# ./dev test --platform.

# unpack PACKAGE...: unpacks packages that conflict with installed ones into build/unpacked, by apt and dpkg.
unpack() {
    local package
    mkdir -p build/unpacked
    for package in "$@"; do
        [[ ! -e build/unpacked/$package.done ]] || continue
        [[ -n $system_boost && -z ${PAWL_NO_INSTALL:-} ]] || die "$package is needed; install it yourself"
        printf 'dev: unpacking %s\n' "$package"
        (
            cd build/unpacked
            apt-get -qq download "$package" 2>/dev/null || { apt-get -qq update && apt-get -qq download "$package"; }
            dpkg-deb -x "${package}"_*.deb .
            rm "${package}"_*.deb
            touch "$package.done"
        )
    done
}

# io_uring_works: whether the kernel allows this process a ring. Containers often forbid it.
io_uring_works() {
    printf '%s\n' '#include <liburing.h>' 'int main() { io_uring ring; return io_uring_queue_init(8, &ring, 0) != 0; }' |
        g++ -x c++ - -luring -o build/io_uring_works && build/io_uring_works
}

test_platform() {
    local platform=$1 only=$2 all=$3 compiler=g++ options=() flags= libraries= targets
    shift 3
    need cmake:cmake ninja:ninja-build g++:g++ "libboost${system_boost:-1.81}-dev"
    mkdir -p build
    case $platform in
        select) flags='-DBOOST_ASIO_DISABLE_EPOLL -DBOOST_ASIO_DISABLE_TIMERFD -DBOOST_ASIO_DISABLE_EVENTFD' ;;
        kqueue)
            compiler=clang++-19
            need clang++-19:clang-19
            flags="-DBOOST_ASIO_HAS_KQUEUE -isystem $PWD/test/support/kqueue"
            flags+=' -DBOOST_ASIO_DISABLE_EPOLL -DBOOST_ASIO_DISABLE_TIMERFD -DBOOST_ASIO_DISABLE_EVENTFD'
            ;;
        no_threads) flags=-DBOOST_ASIO_DISABLE_THREADS ;;
        no_rtti) flags='-fno-rtti -DBOOST_ASIO_ENABLE_HANDLER_TRACKING -DBOOST_ASIO_NO_EXCEPTIONS' ;;
        separate)
            flags=-DBOOST_ASIO_SEPARATE_COMPILATION
            libraries=$PWD/build/asio.o
            echo '#include <boost/asio/impl/src.hpp>' | g++ -std=c++20 $flags -x c++ -c - -o "$libraries"
            ;;
        io_uring)
            need liburing-dev
            io_uring_works || {
                echo "dev: io_uring: skipped, because the kernel does not allow it"
                return
            }
            flags='-DBOOST_ASIO_HAS_IO_URING -DBOOST_ASIO_DISABLE_EPOLL'
            libraries=-luring
            ;;
        libc++)
            compiler=clang++-19
            need clang++-19:clang-19
            unpack libc++-19-dev libc++1-19 libc++abi-19-dev libc++abi1-19 libunwind-19-dev libunwind-19
            local llvm=$PWD/build/unpacked/usr/lib/llvm-19
            # std::jthread, which some tests use, is experimental in libc++.
            flags="-nostdinc++ -isystem $llvm/include/c++/v1 -D_LIBCPP_ENABLE_EXPERIMENTAL"
            flags+=" -D_LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_DEBUG"
            options=(-D CMAKE_EXE_LINKER_FLAGS="-stdlib=libc++ -L$llvm/lib -Wl,-rpath,$llvm/lib")
            ;;
        x86)
            # Not g++-multilib, which conflicts with the cross compilers; so one folder is named here.
            local version
            version=$(g++ -dumpversion)
            need "g++-${version%%.*}-multilib"
            flags='-m32 -idirafter /usr/include/x86_64-linux-gnu'
            ;;
        arm64 | s390x)
            local machine=${platform/arm64/aarch64}
            need "g++-$machine-linux-gnu" "qemu-$machine:qemu-user"
            compiler=$machine-linux-gnu-g++
            options=(-D CMAKE_SYSTEM_NAME=Linux -D CMAKE_SYSTEM_PROCESSOR="$machine"
                -D CMAKE_CROSSCOMPILING_EMULATOR="qemu-$machine;-L;/usr/$machine-linux-gnu")
            ;;
        windows)
            need g++-mingw-w64-x86-64-posix wine64
            compiler=x86_64-w64-mingw32-g++-posix
            options=(-D CMAKE_SYSTEM_NAME=Windows -D CMAKE_CROSSCOMPILING_EMULATOR=/usr/lib/wine/wine64)
            flags='-D_WIN32_WINNT=0x0A00 -DWIN32_LEAN_AND_MEAN -DNOMINMAX -Wa,-mbig-obj'
            libraries='-static -lws2_32 -lmswsock'
            export WINEPREFIX=$PWD/build/wine WINEDEBUG=-all
            ;;
        *) misused "no such platform: $platform$(did_you_mean "$platform" windows libc++ select kqueue no_threads no_rtti separate io_uring x86 arm64 s390x)" ;;
    esac
    dir=build/platform-$platform
    lock_folder "$dir"
    case $platform in
        arm64 | s390x | windows)
            # Not all of /usr/include: its other headers are the host's, not the target's.
            mkdir -p build/only_boost
            ln -sfn "${BOOST_INCLUDEDIR:-/usr/include}/boost" build/only_boost/boost
            options+=(-D Boost_NO_BOOST_CMAKE=ON -D Boost_INCLUDE_DIR="$PWD/build/only_boost")
            ;;
    esac
    cmake --preset release -B "$dir" -D CMAKE_CXX_COMPILER="$compiler" -D CMAKE_CXX_FLAGS="$flags" \
        -D CMAKE_CXX_STANDARD_LIBRARIES="$libraries" "${options[@]}" -D PAWL_FOREIGN=ON -D PAWL_BUILD_EXAMPLES=OFF \
        -D PAWL_BUILD_BENCH=OFF -D CMAKE_VERIFY_INTERFACE_HEADER_SETS=OFF
    if [[ -z $only ]]; then
        only='hello_timer|(wait_.*|conformance_.*vectors)_test'
        # These take minutes under emulation.
        [[ $platform =~ ^(arm64|s390x)$ ]] || only+='|contract_pawl'
        [[ $platform != no_threads ]] || only+='|timeouts_(timeout|group)_test'
        [[ $platform =~ ^(arm64|s390x|windows|no_threads)$ ]] || only+='|(service_alarm|watch_stats|race_(timer|broadcast_ring)_race)_test'
        # Whether a unit allocates depends on the size of Asio's operations.
        [[ $platform != windows ]] || only+='|service_slots_test'
        only="^($only)\$"
    fi
    [[ -z $all ]] || only='^hello_timer$|^example_|_test$|^contract_|^fuzz_corpus_'
    mapfile -t targets < <(cmake --build "$dir" --target help | sed -n 's/^\([a-z0-9_]*\): phony$/\1/p' | grep -E -- "$only")
    ((${#targets[@]})) || die "no test program matches $only"
    cmake --build "$dir" --parallel "${PAWL_JOBS:-$(nproc)}" --target "${targets[@]}" -- -k 0
    # The first program starts a server that outlives it and would keep ctest's pipe open.
    [[ $platform != windows ]] || /usr/lib/wine/wine64 wineboot </dev/null >/dev/null 2>&1 {lock}<&-
    ctest --test-dir "$dir" --output-on-failure --no-tests=error --parallel "${PAWL_JOBS:-$(nproc)}" \
        -R "^($(IFS='|' && printf '%s' "${targets[*]}"))\$" "$@"
}
