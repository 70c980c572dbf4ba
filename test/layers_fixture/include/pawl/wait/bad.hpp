#include <pawl/pawl.hpp>
#include <pawl/service/shard.hpp>
#include <pawl/steady_timer.hpp>
#include <pawl/time/tick.hpp>

#include <mutex>
