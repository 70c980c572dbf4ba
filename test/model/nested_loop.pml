/* Copyright (c) 2026 The Pawl authors
 * SPDX-License-Identifier: BSL-1.0
 *
 * Purpose
 *   A handler that runs its context in a loop of its own, where one thread runs the context: the loop does not find
 *   what the frames around it hold. These are units and cancelled waits of Asio's timers that their handlers have
 *   queued, which Asio keeps in a queue of the frame until the handler returns, and the rest of their turns. This is
 *   include/pawl/detail/service/runner_pool.hpp with driver.hpp and the parts of shard.hpp and dispatcher.hpp that claim and
 *   take. wakeup.pml explores the same parts with several threads and without such loops.
 *
 * Model
 *   One thread, one shard. A frame is one call of the context: a unit, the driver's wake-up, the driver's canceller, or
 *   a function of the user. Functions and handlers cancel and start waits, and may then run a loop until a wait that
 *   they have started before completes, or is cancelled in the loop. DEPTH limits how many do. Time passes when the
 *   driver's Asio timer expires.
 *
 * Properties
 *   never stuck           no process is blocked at the end: in each loop something runs until its wait completes
 *   nothing is left       at the end no entry is left, and no runner but those that were overtaken
 *
 * Left out
 *   The backlog of an expiry, and more entries than there may be runners: there a unit queues its successor, and a loop
 *   in its handler waits for that one until the driver wakes up. Waits that move, contexts of other types, turns that
 *   are stopped.
 */

#define WAITS 4                         /* 2 * d and 2 * d + 1: cancelled, and awaited, by the user's code at depth d */
#define DEPTH 2
#define FRAMES 6
#define ROOM 8

mtype = { idle, armed, due, done }
mtype = { unit, wake, canceller, function }
mtype = { off, set, hurries }

mtype phase[WAITS] = idle;
byte due_at[WAITS];
chan entries = [WAITS] of { byte };

byte per_turn = 1;                      /* completions_per_turn */
byte count, aside, tickets, oldest;     /* runner_pool */
byte queued_in;                         /* the frame that has queued the last one */

mtype driver = off;
byte armed_at;
bool cancels_soon;                      /* the canceller is due: Asio's reactor has it */
byte now;

chan queue = [ROOM] of { byte, byte };             /* of the context */
chan held[FRAMES] = [ROOM] of { byte, byte };      /* of the frames */
chan returned = [0] of { byte };
byte users;                             /* functions and handlers that run a loop, or have */

inline post(kind, ticket) {             /* scheduler::post_immediate_completion, post_deferred_completion */
    held[f]!kind, ticket
}

#define coming (count - aside)
#define wants_more (len(entries) > 0 && coming * per_turn < len(entries) + per_turn - 1)

inline claim_one_more() {
    count++;
    post(unit, tickets);
    queued_in = f;
    tickets++
}

inline claim_if_held() {                /* runner_pool::claim_if_held */
    if
#ifndef MUTANT_WHAT_A_LOOP_CANCELS_RELIES_ON_THE_FRAME_AROUND_IT
    :: per_turn > 1 && queued_in != f && count != 0 && !wants_more -> claim_one_more()
#endif
    :: else
    fi
}

inline settle() {                       /* shard::settle */
    do
    :: wants_more -> claim_one_more()
    :: else -> break
    od
}

inline begin(ticket) {                  /* runner_pool::begin */
    if
    :: ticket == oldest -> oldest++
    :: ticket > oldest ->
#ifndef MUTANT_RELIES_ON_WHAT_WAS_OVERTAKEN
        aside = aside + ticket - oldest;
        overtakes = true;
#endif
        oldest = ticket + 1
    :: ticket < oldest ->
#ifndef MUTANT_RELIES_ON_WHAT_WAS_OVERTAKEN
        aside--
#else
        skip
#endif
    fi
}

inline driver_cancel() {                /* driver::cancel, driver::cancel_soon */
    if
    :: armed_at != 0 ->
        driver = hurries;
        armed_at = 0;
#ifndef MUTANT_CANCELS_IN_THE_FRAME
        cancels_soon = true
#else
        post(wake, 0)
#endif
    :: else
    fi
}

inline arm(t) {                         /* driver::arm */
    if
    :: driver == off -> driver = set; armed_at = t
    :: driver != off && t < armed_at -> driver_cancel()
    :: else
    fi
}

#define due_of(w) (phase[w] == armed -> due_at[w] : 255)
#define earlier(a, b) (a < b -> a : b)
#define next_wake earlier(earlier(due_of(0), due_of(1)), earlier(due_of(2), due_of(3)))

inline start(w, t) {                    /* shard::start */
    phase[w] = armed;
    due_at[w] = t;
    arm(t)
}

inline cancel(w) {                      /* shard::cancel */
    if
    :: phase[w] == armed -> phase[w] = due; entries!w; claim_if_held(); settle()
    :: else
    fi
}

inline fall_due(w) {
    if
    :: phase[w] == armed && due_at[w] <= now -> phase[w] = due; entries!w; fallen = true
    :: else
    fi
}

inline collect() {                      /* shard::collect for a lone_runner, wakeup::wake */
    fallen = false;
    fall_due(0);
    fall_due(1);
    fall_due(2);
    fall_due(3);
    if
#ifndef MUTANT_A_WAKE_UP_RUNS_A_HANDLER_FIRST
    :: count == 0 && len(entries) == 1 -> count++; claimed = true
#else
    :: wants_more -> count++; claimed = true
#endif
    :: else ->
        if
#ifndef MUTANT_A_WAKE_UP_FINDS_NOTHING_OUT
        :: fallen && count != 0 && !wants_more -> claim_one_more()
#endif
        :: else
        fi
    fi;
    settle();
    if
    :: next_wake != 255 -> w = next_wake; arm(w)
    :: else
    fi
}

/* The frame `f`: one call of the context. */
proctype frame(byte f, kind, ticket) {
    bool claimed, fallen, last, overtakes;
    byte w, n, next_kind, next_ticket, own;

    if
    :: kind == canceller ->             /* driver::on_cancel */
        atomic {
            cancels_soon = false;
            if
            :: driver == hurries -> post(wake, 0)
            :: else
            fi
        }
        goto ends
    :: kind == wake ->                  /* driver::on_wake */
        atomic { driver = off; armed_at = 0; collect() }
        if
        :: !claimed -> goto ends
        :: else
        fi
    :: kind == unit ->
        atomic {
            begin(ticket);
            if
#ifndef MUTANT_A_UNIT_THAT_OVERTAKES_RUNS_A_HANDLER
            :: overtakes -> count--; settle(); goto ends
#endif
            :: else
            fi
        }
    :: kind == function -> goto user
    fi;

turn:                                   /* dispatcher::turn, shard::take */
    atomic {
        n++;
        w = WAITS;
        if
        :: entries?w
        :: empty(entries)
        fi;
        last = n == per_turn || empty(entries);
        if
        :: last -> count--
        :: else -> aside++
        fi;
        settle();
        if
        :: w < WAITS -> phase[w] = done
        :: else
        fi
    }
    if
    :: w == WAITS -> goto ends
    :: else
    fi;

user:
    if
    :: users < DEPTH && f < FRAMES - 1 ->
        atomic {
            own = 2 * users;
            users++;
            if
            :: cancel(own)
            :: true
            fi;
            if
            :: users < DEPTH -> cancel(own + 2)
            :: true
            fi;
            if
            :: phase[own + 1] == idle -> start(own + 1, now + 1)
            :: phase[own + 1] == idle -> start(own + 1, now + 3)
            :: phase[own + 1] != idle       /* started before */
            fi
        }
        do
        :: phase[own + 1] == done -> break
        :: phase[own + 1] != done ->
            atomic {
                if
                :: queue?next_kind, next_ticket -> run frame(f + 1, next_kind, next_ticket)
                :: cancels_soon -> run frame(f + 1, canceller, 0)
                :: driver == set ->
                    now = (armed_at > now -> armed_at : now);
                    run frame(f + 1, wake, 0)
                fi
            }
            returned?eval(f + 1)
        od
    :: users != 0 -> atomic { cancel(2 * users - 1) }   /* the last loop awaits it */
    :: true
    fi;
    if
    :: kind != function && !last ->
        atomic { aside-- }
        goto turn
    :: else
    fi;

ends:                                   /* scheduler: work_cleanup */
    atomic {
        do
        :: held[f]?next_kind, next_ticket -> queue!next_kind, next_ticket
        :: empty(held[f]) -> break
        od;
        returned!f
    }
}

init {
    byte what;
    byte ticket;
    byte f = FRAMES - 1;                /* no handler: what it posts is queued at once */

    atomic {
        if
        :: per_turn = 1
        :: per_turn = 3
        fi;
        phase[0] = armed;
        due_at[0] = 9;
        phase[2] = armed;
        due_at[2] = 9;
        driver = set;
        armed_at = 9;
        if
        :: start(3, 2)                  /* expires beside another one */
        :: true
        fi;
        if
        :: start(1, 2)
        :: true
        fi;
        queue!function, 0;
        if
        :: queue!function, 0                    /* from outside: no frame holds it */
        :: true
        fi
    }
    do
    :: atomic { queue?what, ticket -> run frame(0, what, ticket) }
        returned?eval(0)
    :: atomic { cancels_soon -> run frame(0, canceller, 0) }
        returned?eval(0)
    :: atomic { driver == set && next_wake != 255 ->
            now = (armed_at > now -> armed_at : now);
            run frame(0, wake, 0)
        }
        returned?eval(0)
    :: empty(queue) && !cancels_soon && next_wake == 255 -> break
    od;
    assert(empty(entries) && count == aside)
}
