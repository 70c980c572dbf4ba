// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// Responses, ready to be sent.

#ifndef PAWL_EXAMPLES_HTTP_SERVER_ANSWER_HPP
#define PAWL_EXAMPLES_HTTP_SERVER_ANSWER_HPP

#include "http_server/access_log.hpp"

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/message_generator.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>

namespace example {

namespace beast = boost::beast;
namespace http = boost::beast::http;

/// What determines the form of a response.
struct reply_form {
    unsigned version = 11;
    bool keep_alive = false;
    bool head = false; ///< the answer to HEAD: a header without its body
};

struct answer {
    http::message_generator message;
    unsigned status;
    std::uint64_t size;       ///< of the body that is sent
    std::string trouble = {}; ///< for the log
};

/// The time for `Date`, formatted once a second.
[[nodiscard]] inline const std::string& http_date() {
    thread_local std::time_t second = -1;
    thread_local std::string text;
    if (const std::time_t now = std::time(nullptr); now != second) {
        text = format_time("%a, %d %b %Y %H:%M:%S GMT");
        second = now;
    }
    return text;
}

/// Adds the fields that all responses have.
template <class Body>
[[nodiscard]] answer finish(http::response<Body>&& response, const reply_form& form,
                            std::string_view content_type) {
    response.version(form.version);
    response.keep_alive(form.keep_alive);
    response.set(http::field::date, http_date());
    response.set(http::field::content_type, content_type);
    const std::uint64_t size = Body::size(response.body());
    response.content_length(size);
    const unsigned status = response.result_int();
    if (!form.head)
        return {std::move(response), status, size};

    http::response<http::empty_body> header_only;
    header_only.base() = std::move(response.base());
    return {std::move(header_only), status, 0};
}

[[nodiscard]] inline answer in_memory(const reply_form& form, std::string_view content_type,
                                      std::string body) {
    http::response<http::string_body> response;
    response.body() = std::move(body);
    return finish(std::move(response), form, content_type);
}

[[nodiscard]] inline answer plain_text(http::status status, const reply_form& form,
                                       std::string body) {
    http::response<http::string_body> response;
    response.result(status);
    response.body() = std::move(body);
    return finish(std::move(response), form, "text/plain; charset=utf-8");
}

/// An error response; its body is its name.
[[nodiscard]] inline answer sorry(http::status status, const reply_form& form) {
    std::string body = std::to_string(static_cast<unsigned>(status)) + ' ';
    body += http::obsolete_reason(status);
    return plain_text(status, form, body + '\n');
}

/// 405, with the allowed methods.
[[nodiscard]] inline answer only(std::string_view methods, const reply_form& form) {
    http::response<http::string_body> response;
    response.result(http::status::method_not_allowed);
    response.set(http::field::allow, methods);
    response.body() = "405 Method Not Allowed\n";
    return finish(std::move(response), form, "text/plain; charset=utf-8");
}

} // namespace example

#endif // PAWL_EXAMPLES_HTTP_SERVER_ANSWER_HPP
