// One line for each way to break the layers; check_layers.cmake must report all of them.
// A comment may say std::chrono::steady_clock::now() and <mutex>.
#include "tick.hpp"

#include <pawl/config.hpp>
#include <pawl/detail/wait/wait_state.hpp>
#include <pawl/error.hpp>
#include <pawl/time/tick.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <mutex>
#include <thread>

inline int lines[] = {1, 2};
inline auto early = std::chrono::steady_clock::now();
