/* Copyright (c) 2026 The Pawl authors
 * SPDX-License-Identifier: BSL-1.0
 *
 * Purpose
 *   The claims of readers, the cleaners, and the reuse of slots, of include/pawl/detail/feed/ring_core.hpp, with messages
 *   that are read in place and destroyed. Each inline names the function that it models.
 *
 * Model
 *   Every access to shared memory is a step of its own. Two slots, each used up to three times. Two places for
 *   readers: a reader joins, at the oldest or the newest message, reads what is present, suspends, resumes, leaves, and
 *   joins again, in any order. Writers reserve a slot, or two at once, and clean if there is no room; one of them may
 *   cancel its reservation. Another thread only cleans. The policy is drop_new or lag. init chooses the threads.
 *
 * Properties
 *   no message is destroyed under a reader    read_slice(), destroy()
 *   each is destroyed once                    destroy()
 *   a slot is free when it is written         construct()
 *   read messages were published              read_slice()
 *   nothing is forgotten (states)             init: no slot stays written and unpublished, or destroyed and not free
 *   order                                     reserve()
 *
 * Left out
 *   Spin's memory is sequentially consistent: see test/orders. block, closing, owners, and messages that are copied.
 */

#define SLOTS 2
#define NONE 15

mtype = { none, written, skipped, freed };

bool lag;
byte limit;             /* no more generations than this are reserved */

byte reserved;
byte published;
byte oldest;
byte doomed;
byte free;
byte claim[2] = NONE;

/* slot.state is one word */
byte number[SLOTS];
mtype phase[SLOTS] = none;

/* ghosts */
byte made[SLOTS];       /* the generation of the present message, plus one; 0: none */
byte looks[2] = NONE;   /* a reader reads from here to looks_to */
byte looks_to[2];
byte left;              /* threads */

#define slot(g) ((g) % SLOTS)
#define is_in(g, a, b) (number[slot(g)] == (g) && (phase[slot(g)] == a || phase[slot(g)] == b))
#define min(a, b) ((a) < (b) -> (a) : (b))
#define max(a, b) ((a) < (b) -> (b) : (a))

inline set_state(g, p) { atomic { number[slot(g)] = g; phase[slot(g)] = p } }

inline advance(position, a, b) {        /* advance(), advance_from() */
    from = position;
    do
    :: to = from;
        do
        :: is_in(to, a, b) -> to++
        :: else -> break
        od;
        if
        :: to == from -> break
        :: else ->
            atomic {
                if
#ifdef MUTANT_ADVANCE_STORES            /* not a compare-exchange: it goes back */
                :: true -> position = to; from = to
#else
                :: position == from -> position = to; from = to
                :: else -> break        /* another thread has moved it, and continues */
#endif
                fi
            }
#ifdef MUTANT_ADVANCE_LOOKS_ONCE        /* states that are set in the meantime are lost */
            break
#endif
        fi
    od
}

/* --- cleaners ---------------------------------------------------------------------------------------------- */

inline destroy(g) {
    atomic {
        assert(looks[0] == NONE || g < looks[0] || g >= looks_to[0]);
        assert(looks[1] == NONE || g < looks[1] || g >= looks_to[1]);
        if
        :: is_in(g, skipped, skipped) -> assert(made[slot(g)] != g + 1)
        :: else -> assert(made[slot(g)] == g + 1); made[slot(g)] = 0
        fi
    }
}

inline look_at_claims() {
    goal = min(goal, claim[0]);
    goal = min(goal, claim[1])
}

inline raise() {                        /* raise(): a maximum */
    atomic { oldest = max(oldest, goal) }
}

inline clean(wanted) {                  /* clean() */
    goal = published;
    if
    :: lag -> goal = min(goal, wanted)
    :: else -> look_at_claims()
    fi;
#ifdef MUTANT_RAISE_AFTER_CLAIMS        /* a reader that starts in the meantime is missed */
    look_at_claims();
    raise();
#else
    raise();
#ifndef MUTANT_CLAIMS_SEEN_ONCE         /* with drop_new; with lag claims are ignored */
    look_at_claims();
#endif
#endif
    atomic {                            /* free() */
        at = doomed;
        if
#ifdef MUTANT_DOOM_STORES               /* two cleaners destroy the same message */
        :: at < goal -> skip
#else
        :: at < goal -> doomed = goal
#endif
        :: else -> goal = at
        fi
    }
#ifdef MUTANT_DOOM_STORES
    doomed = max(doomed, goal);
#endif
#ifdef MUTANT_FREE_BEFORE_DESTROYED     /* a writer is quicker */
    atomic { free = max(free, goal) }
#endif
    if
    :: at < goal ->
        do
        :: at < goal -> destroy(at); set_state(at, freed); at++
        :: else -> break
        od;
#ifdef MUTANT_FREE_PASSES_OTHERS        /* another cleaner has not destroyed the messages before */
        atomic { free = max(free, goal) }
#else
        advance(free, freed, freed)
#endif
    :: else
    fi
}

inline forget() { atomic { from = 0; to = 0; goal = 0; at = 0; first = 0; n = 0; want = 0; cleaned = false } }

proctype cleans(byte times) {
    byte from, to, goal, at, first, n, want;
    bool cleaned;

    do
    :: times > 0 -> clean(oldest); times--; forget()
    :: times == 0 -> break
    od;
    left--
}

/* --- writers ----------------------------------------------------------------------------------------------- */

inline reserve() {                      /* reserve(): n generations, or n = 0 */
    do
    :: first = reserved;
        if
#ifdef MUTANT_ROOM_BY_OLDEST            /* a reader may still hold a slice */
        :: first + n <= oldest + SLOTS ->
#elif defined MUTANT_ROOM_BY_DOOMED     /* doomed messages are not destroyed yet */
        :: first + n <= doomed + SLOTS ->
#else
        :: first + n <= free + SLOTS ->
#endif
            atomic {
                if
                :: reserved == first ->
                    reserved = first + n;
                    assert(free <= doomed && doomed <= oldest && doomed <= published && published <= reserved);
                    break
                :: else
                fi
            }
        :: else ->
            if
            :: cleaned -> n = 0; break
            :: else ->
                want = max(SLOTS, first + n) - SLOTS;
                clean(want);
                cleaned = true
            fi
        fi
    od
}

inline construct(g) {
    atomic { assert(made[slot(g)] == 0); made[slot(g)] = g + 1 }
}

proctype writes(byte rounds; byte most) {
    byte from, to, goal, at, first, n, want;
    bool cleaned;

    do
    :: rounds > 0 ->
        rounds--;
        n = most;
        if
        :: reserved + n <= limit -> reserve()
        :: else -> n = 0
        fi;
        if
        :: n == 0
        :: n > 0 ->
#ifdef MUTANT_PUBLISHED_BEFORE_WRITTEN
            at = first;
            do
            :: at < first + n -> set_state(at, written); at++
            :: else -> break
            od;
            advance(published, written, skipped);
            at = first;
            do
            :: at < first + n -> construct(at); at++
            :: else -> break
            od
#else
            at = first;
            do
            :: at < first + n -> construct(at); set_state(at, written); at++    /* emplace(), publish() */
            :: at < first + n -> set_state(at, skipped); at++                    /* not written, or cancelled */
            :: else -> break
            od;
            advance(published, written, skipped)
#endif
        fi;
        forget()
    :: rounds == 0 -> break
    od;
    left--
}

/* --- readers ----------------------------------------------------------------------------------------------- */

inline begin_or_later() {               /* begin_or_later() */
#ifdef MUTANT_CHECK_BEFORE_CLAIM        /* a cleaner intervenes */
    next = max(next, oldest);
    claim[me] = next
#elif defined MUTANT_CLAIM_UNCHECKED
    claim[me] = next
#else
    do
    :: claim[me] = next;
        atomic {
            if
            :: oldest <= next -> break
            :: else -> next = oldest
            fi
        }
    od
#endif
}

inline read_slice() {                   /* a slice of all present messages */
    atomic {
        looks[me] = next;
        looks_to[me] = end;
        assert(end <= reserved)
    }
    do
    :: next < end ->
        atomic {
            assert(made[slot(next)] == next + 1 || is_in(next, skipped, skipped));
            next++
        }
    :: else -> break
    od;
#ifdef MUTANT_CLAIM_GIVEN_UP_EARLY      /* while it still reads */
    claim[me] = (lag -> NONE : next);
    looks[me] = NONE
#else
    atomic { looks[me] = NONE; looks_to[me] = 0 }
    claim[me] = (lag -> NONE : next)
#endif
}

proctype reads(bit me; byte lives; byte most) {
    byte next, end, actions;
    bool suspended;

    do
    :: lives > 0 ->
        lives--;
        actions = most;
        if                              /* join */
        :: next = oldest
        :: next = published
        fi;
        if
        :: lag -> skip
        :: else -> begin_or_later()
        fi;
        do
        :: actions > 0 && !suspended ->
            actions--;
            end = published;
            if
            :: end > next ->
                if
                :: lag ->
                    begin_or_later();
                    end = max(end, next)
                :: else
                fi;
                read_slice()
            :: else
            fi;
            end = 0
        :: actions > 0 && !suspended -> claim[me] = NONE; suspended = true; actions--
        :: suspended ->
            if
            :: lag -> next = max(next, oldest)
#ifdef MUTANT_RESUMES_WHERE_IT_WAS      /* and ignores which messages have gone */
            :: else -> claim[me] = next
#else
            :: else -> begin_or_later()
#endif
            fi;
            suspended = false
        :: !suspended -> break
        od;
        claim[me] = NONE;               /* leave */
        next = 0
    :: lives == 0 -> break
    od;
    left--
}

init {
    atomic {
        if
        :: lag = true
        :: lag = false
        fi;
        if
        :: limit = 6; left = 2; run writes(6, 1); run reads(0, 2, 2)
        :: limit = 3; left = 3; run writes(1, 1); run writes(1, 2); run reads(0, 1, 1)
        :: limit = 3; left = 3; run writes(2, 1); run writes(1, 1); run cleans(1)
        :: limit = 3; left = 3; run writes(3, 1); run reads(0, 1, 2); run cleans(1)
        :: limit = 3; left = 3; run writes(3, 1); run reads(0, 1, 1); run reads(1, 1, 1)
        fi
    }
    left == 0 ->
    assert(!is_in(published, written, skipped));
    assert(!is_in(free, freed, freed));
    assert(free == doomed && published == reserved)
}
