// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Runs inputs of a fuzz target without a fuzzer, with any compiler: replay FILE-OR-FOLDER...
// An input that fails ends the program; its name is the last one printed.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
    namespace fs = std::filesystem;
    std::vector<fs::path> files;
    for (int i = 1; i != argc; ++i) {
        if (fs::is_directory(argv[i]))
            files.insert(files.end(), fs::directory_iterator(argv[i]), {});
        else
            files.emplace_back(argv[i]);
    }
    std::sort(files.begin(), files.end());

    for (const fs::path& file : files) {
        std::cout << file.string() << std::endl;
        std::ifstream in(file, std::ios::binary);
        const std::vector<char> text{std::istreambuf_iterator<char>(in), {}};
        if (!in) {
            std::cerr << "cannot read it\n";
            return 1;
        }
        const std::vector<std::uint8_t> input(text.begin(), text.end());
        LLVMFuzzerTestOneInput(input.data(), input.size());
    }
    if (files.empty())
        std::cerr << "no input\n";
    return files.empty() ? 1 : 0;
}
