// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The files below the root: GET and HEAD.
//
// A file is read in pieces while it is sent; a small file is one piece, and one write sends it with its
// header. Only the system caches. Symbolic links are followed: anyone who may write below the root
// decides what is served. A name that begins with a dot is not found, and neither is anything below it:
// such files are rarely meant to be served.

#ifndef PAWL_EXAMPLES_HTTP_SERVER_FILES_HPP
#define PAWL_EXAMPLES_HTTP_SERVER_FILES_HPP

#include "http_server/answer.hpp"
#include "http_server/target.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/file_posix.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/optional/optional.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

namespace example {

[[nodiscard]] inline std::string_view content_type(std::string_view path) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 15> types{{
        {".html", "text/html; charset=utf-8"},
        {".htm", "text/html; charset=utf-8"},
        {".css", "text/css"},
        {".txt", "text/plain; charset=utf-8"},
        {".md", "text/plain; charset=utf-8"},
        {".js", "text/javascript"},
        {".json", "application/json"},
        {".xml", "application/xml"},
        {".pdf", "application/pdf"},
        {".wasm", "application/wasm"},
        {".png", "image/png"},
        {".jpg", "image/jpeg"},
        {".gif", "image/gif"},
        {".svg", "image/svg+xml"},
        {".ico", "image/vnd.microsoft.icon"},
    }};
    for (const auto& [extension, type] : types)
        if (path.ends_with(extension))
            return type;
    return "application/octet-stream";
}

/// http::file_body with larger pieces: a Body of Beast, for responses only.
struct file_in_pieces {
    static constexpr std::uint64_t piece = 65'536;

    struct value_type {
        beast::file_posix file;
        std::uint64_t size = 0;
    };

    static std::uint64_t size(const value_type& v) { return v.size; }

    class writer {
    public:
        using const_buffers_type = boost::asio::const_buffer;

        template <bool is_request, class Fields>
        writer(http::header<is_request, Fields>& /*header*/, value_type& v)
            : file_(v.file), left_(v.size), data_(std::min(v.size, piece)) {}

        static void init(beast::error_code& ec) { ec = {}; }

        /// The next piece, and whether there is another.
        boost::optional<std::pair<const_buffers_type, bool>> get(beast::error_code& ec) {
            ec = {};
            if (left_ == 0)
                return boost::none;
            const std::size_t size = file_.read(data_.data(), std::min(left_, data_.size()), ec);
            if (!ec && size == 0) // the file has shrunk since the header was made
                ec = http::error::short_read;
            if (ec)
                return boost::none;
            left_ -= size;
            return {{const_buffers_type(data_.data(), size), left_ != 0}};
        }

    private:
        beast::file_posix& file_;
        std::uint64_t left_;
        std::vector<char> data_;
    };
};

/// The file at `path`, decoded and beginning with '/', below `root`.
[[nodiscard]] inline answer file_answer(const std::string& root, const std::string& path,
                                        const reply_form& form) {
    // Opening a pipe must not wait for its other end.
    constexpr int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

    if (climbs(path))
        return sorry(http::status::forbidden, form);
    if (is_hidden(path))
        return sorry(http::status::not_found, form);

    std::string full = root + path;
    beast::file_posix file;
    struct stat about {};
    file.native_handle(::open(full.c_str(), flags));
    if (file.is_open() && ::fstat(file.native_handle(), &about) == 0 && S_ISDIR(about.st_mode)) {
        full += "/index.html";
        file.native_handle(::open(full.c_str(), flags));
        if (file.is_open())
            ::fstat(file.native_handle(), &about);
    }
    if (!file.is_open()) {
        switch (errno) {
        case ENOENT:
        case ENOTDIR:
        case ENAMETOOLONG:
        case ELOOP:
            return sorry(http::status::not_found, form);
        case EACCES:
        case ENXIO: // a socket
            return sorry(http::status::forbidden, form);
        default: // no descriptors, no memory
            return sorry(http::status::service_unavailable, form);
        }
    }
    if (!S_ISREG(about.st_mode))
        return sorry(http::status::forbidden, form);

    http::response<file_in_pieces> response;
    response.body().file = std::move(file);
    response.body().size = static_cast<std::uint64_t>(about.st_size);
    return finish(std::move(response), form, content_type(full));
}

} // namespace example

#endif // PAWL_EXAMPLES_HTTP_SERVER_FILES_HPP
