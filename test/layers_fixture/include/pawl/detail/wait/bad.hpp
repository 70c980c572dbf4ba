#include <pawl/detail/service/shard.hpp>
#include <pawl/pawl.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/time/tick.hpp>

#include <mutex>
