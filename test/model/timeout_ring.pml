/* Copyright (c) 2026 The Pawl authors
 * SPDX-License-Identifier: BSL-1.0
 *
 * Purpose
 *   The lock-free ring of include/pawl/time/timeout_ring.hpp: reserve, publish, cancel, sweep, reclaim, grow, close,
 *   and how a registration notifies a sleeping driver. Each inline names the function that it models.
 *
 * Model
 *   Every access to shared memory is a step of its own. One or two threads register two or three items each in turn,
 *   and register an item again as soon as it is back, so that an address comes again with another ticket. One or two
 *   threads cancel, one of them with the same ticket twice, so that it is stale. One thread drives, and sleeps as long
 *   as next_wake() allows; another one forces. The ring is closed at any time, or at the end. It has two slots, or one
 *   slot and a second block of two to grow into. It passes up to three laps of tickets. init chooses the threads.
 *
 * Properties
 *   exactly once          given_back(): an item that is handed out is in the ring, and by that very ticket
 *   cancel's answer       cancel(): a canceller that gets nothing comes after another one that got the item
 *   no freed memory       given_back(): an item in the user's hands is not handed out
 *   full is true          reserve(): so many slots were in use when it looked
 *   one driver            begin_driving()
 *   room                  publish(): the slot is free
 *   never stuck           no process is blocked at the end: each registration finds its item back, the driver does
 *                         not sleep over one
 *
 * Left out
 *   Spin's memory is sequentially consistent. The orders are argued in the header, and explored by test/orders.
 *   has_room(), replace() and the search of more than two blocks.
 *   Time: each visit of the driver closes the sub-period, and this visit or the one after that finds the mark due.
 */

#define ITEMS 4
#define OUT 2           /* room of a sweep */
#define FIRST 1         /* first_number */

#define capacity(b) (1 + (b))
#define place(b, n) ((b) == 0 -> 0 : 1 + (n) % 2)

mtype = { unused, live, done }

/* slot.state is one word: number and phase */
byte number[3];
mtype phase[3] = unused;
byte item[3];

/* tail_ is one word */
byte tail = FIRST;
bit block;
bool closed;

byte head = FIRST;
byte open_from = FIRST;
bool driver;
byte mark;              /* marks_, the newest; 0 for none */

/* the users */
bool growing;           /* there is a second block to grow into */
byte ticket[ITEMS];     /* the ticket of the item's last registration; 0 for none */
bit ticket_block[ITEMS];
bool told;              /* the driver's sleep is over */
byte registering;

/* ghosts */
bool held[ITEMS];       /* the item is in the ring, or on its way into it */
byte held_by[ITEMS];    /* the number of its ticket */
byte passed = FIRST;    /* the highest value that head_ has had */
byte drivers;           /* threads that drive */

hidden byte i;

inline given_back(x, n) {
    assert(held[x] && held_by[x] == n);
    held[x] = false;
    held_by[x] = 0
}

inline set_head(to) {
    head = to;
    passed = (passed < to -> to : passed)
}

/* --- any thread -------------------------------------------------------------------------------------------- */

inline find_in(b, n) {                  /* find(): find_in */
    where = place(b, n);
    state = (number[where] == n -> phase[where] : unused)
}

inline find(n) {                        /* find(): the rest, if find_in(hint, n) has found nothing */
    if
    :: atomic { growing && state == unused -> hint = block }
        atomic { find_in(hint, n) }
        if
        :: atomic { hint == 1 && state == unused -> hint = 0; find_in(hint, n) }
        :: else
        fi
    :: else
    fi
}

inline reclaim() {                      /* reclaim() */
    atomic { h = head; to = h; hint = !growing }
    do
    :: atomic { find_in(hint, to) }
        find(to);
        if
        :: state == done -> to++
#ifdef MUTANT_RECLAIM_FREES_LIVE        /* and not only cancelled ones */
        :: state == live -> to++
#endif
        :: else -> break
        fi
    od;
    atomic {
        if
#ifdef MUTANT_RECLAIM_STORES_HEAD       /* overwrites the value of a quicker thread */
        :: to != h -> set_head(to)
#else
        :: to != h && head == h -> set_head(to)
#endif
        :: else
        fi;
        h = 0;
        to = 0;
        hint = 0;
        where = 0;
        state = 0
    }
}

inline reserve() {                      /* reserve() */
    do
    :: atomic {
            n = tail;
            b = block;
            was_full = (tail - passed >= capacity(block));
            if
            :: closed -> n = 0; break
            :: else
            fi
        }
        atomic {                        /* used() */
#ifdef MUTANT_FULL_IS_UNSIGNED          /* head_ may have passed the word that was loaded */
            used = n - head;
#else
            used = (head < n -> n - head : 0);
#endif
            if
#ifdef MUTANT_FULL_IS_OFF_BY_ONE        /* as in the circular timeout buffer */
            :: used > capacity(b) && reclaimed ->
#else
            :: used >= capacity(b) && reclaimed ->
#endif
                assert(was_full);
                n = 0;
                break
            :: else
            fi
        }
        if
#ifdef MUTANT_FULL_IS_OFF_BY_ONE
        :: atomic { used <= capacity(b) ->
#else
        :: atomic { used < capacity(b) ->
#endif
                if
                :: tail == n && block == b && !closed ->
                    tail++;
                    held_by[mine] = n;
                    break
                :: else
                fi
            }
        :: else -> reclaim(); reclaimed = true
        fi
    od
}

inline publish() {                      /* publish() */
    assert(phase[place(b, n)] != live);
#ifdef MUTANT_PUBLISH_BEFORE_FILL
    atomic { number[place(b, n)] = n; phase[place(b, n)] = live }
    item[place(b, n)] = mine
#else
    item[place(b, n)] = mine;
    atomic { number[place(b, n)] = n; phase[place(b, n)] = live }
#endif
}

inline forget_all() { n = 0; b = 0; mine = 0; from = 0; used = 0; was_full = false; reclaimed = false }

inline try_register() {                 /* try_register() */
#ifdef MUTANT_FIRST_BEFORE_RESERVE      /* the wake-up invariant, reversed */
    from = open_from;
#endif
    reserve();
    if
    :: n != 0 ->
        publish();
        atomic {
#ifndef MUTANT_FIRST_BEFORE_RESERVE
            from = open_from;
#endif
            told = told || from == n;   /* the caller: wakes the driver, keeps the ticket */
            ticket[mine] = n;
            ticket_block[mine] = b;
            forget_all()
        }
    :: atomic { n == 0 -> held[mine] = false; forget_all() }
    fi
}

inline nothing(n) {                     /* the right answer to cancel(): another one got the item */
    i = 0;
    do
    :: i < ITEMS -> assert(!held[i] || held_by[i] != n); i++
    :: else -> break
    od
}

inline cancel() {                       /* cancel(): by ticket n of block b */
    atomic {
#ifdef MUTANT_CANCEL_IGNORES_TICKET     /* it is live, but maybe another item */
        where = place(b, n);
        state = phase[where];
#else
        find_in(b, n);
#endif
        if
        :: state != live -> nothing(n); where = 0; state = 0
        :: else
        fi
    }
    if
    :: atomic { state == live -> got = item[where] }
        atomic {
            if
#ifdef MUTANT_CANCEL_STORES             /* not a compare-exchange: two may win */
            :: true ->
#elif defined MUTANT_CANCEL_IGNORES_TICKET
            :: phase[where] == live ->
#else
            :: number[where] == n && phase[where] == live ->
#endif
                phase[where] = done;
#ifdef MUTANT_ITEM_READ_AFTER_CANCEL    /* the slot may be in use again */
            :: else -> nothing(n); where = 0; state = 0
            fi
        }
        if
        :: atomic { state == live -> got = item[where]; given_back(got, n); got = 0; where = 0; state = 0 }
        :: else
        fi
#else
                given_back(got, n)
            :: else -> nothing(n)
            fi;
            got = 0;
            where = 0;
            state = 0
        }
#endif
    :: else
    fi
}

inline grow() {                         /* grow(); the block itself comes before */
    atomic { n = tail; b = block; open = !closed }
    if
    :: atomic { open && b == 0 -> used = (head < n -> n - head : 0) }
        atomic {
            if
            :: used >= capacity(b) && tail == n && block == b && !closed -> block = 1
            :: else
            fi
        }
    :: else
    fi
}

/* --- drivers ----------------------------------------------------------------------------------------------- */

inline sweep(limit) {                   /* sweep() */
    atomic { at = head; hint = !growing; left = OUT }
    do
    :: atomic { left > 0 -> left--; find_in(hint, at) }
        find(at);
        if
#ifdef MUTANT_SWEEP_SKIPS_UNPUBLISHED   /* treats reserved slots as cancelled */
        :: state == unused && at < limit -> at++
        :: state == unused && at >= limit -> break
#else
        :: atomic { state == unused ->
                h = head;
                if
                :: h <= at -> break     /* not published yet */
                :: else -> at = h
                fi
            }
#endif
        :: state == live && at >= limit -> break
        :: atomic { state == live && at < limit -> got = item[where] }
#ifdef MUTANT_HEAD_BEFORE_DONE          /* the slot is released before it has been handled */
            advance(at + 1);
#endif
            atomic {
                if
#ifdef MUTANT_SWEEP_STORES              /* not a compare-exchange: a cancel may have won */
                :: true ->
#else
                :: number[where] == at && phase[where] == live ->
#endif
                    phase[where] = done;
                    given_back(got, at)
                :: else
                fi;
                at++
            }
        :: state == done -> at++
        fi
    :: left == 0 -> break
    od;
    advance(at);
    atomic {
        if
        :: mark <= at -> mark = 0
        :: else
        fi;
        if
        :: open_from < at -> open_from = at     /* open_at(): its exchange on tail_ is only for the order */
        :: else
        fi;
        h = 0;
        hint = 0;
        left = 0;
        got = 0;
        where = 0;
        state = 0;
        end_driving()
    }
}

inline advance(to) {                    /* advance() */
#ifdef MUTANT_HEAD_GOES_BACK            /* a registration may have reclaimed in the meantime */
    atomic { set_head(to) }
#else
    h = head;
    do
    :: atomic { h < to ->
            if
            :: head == h -> set_head(to); break
            :: else -> h = head
            fi
        }
    :: h >= to -> break
    od
#endif
}

/* The exchange of driving goes in one step with the step after it, and the store with the step before it: no other thread
 * accesses the variables in between. */
#ifdef MUTANT_NO_TURN                   /* two drivers */
#define may_drive true
#else
#define may_drive !driver
#endif

inline begin_driving() {
    driver = true;
    drivers++;
    assert(drivers == 1)                /* marks_ and begin_ are plain memory */
}

inline end_driving() { driver = false; drivers-- }

inline make_mark(seen) {                /* mark() */
    if
    :: atomic { may_drive && seen > open_from && tail != open_from -> begin_driving(); mark = seen }
        atomic { open_from = seen; end_driving() }     /* open_at() */
    :: else
    fi
}

/* --- the threads ------------------------------------------------------------------------------------------- */

proctype registers(byte base; byte items; byte rounds) {
    byte n, used, h, to, from, where, mine;
    mtype state;
    bit b, hint;
    bool was_full, reclaimed;

    do
    :: atomic { rounds > 0 && !held[base + rounds % items] ->
            mine = base + rounds % items;
            held[mine] = true;
            rounds--
        }
        try_register()
    :: atomic { rounds == 0 -> registering--; break }
    od
}

inline pick() {                         /* a ticket of any item */
    if
    :: atomic { ticket[0] != 0 -> n = ticket[0]; b = ticket_block[0] }
    :: atomic { ticket[1] != 0 -> n = ticket[1]; b = ticket_block[1] }
    :: atomic { ticket[2] != 0 -> n = ticket[2]; b = ticket_block[2] }
    :: atomic { ticket[3] != 0 -> n = ticket[3]; b = ticket_block[3] }
    :: closed
    fi
}

proctype cancels(byte times) {          /* with one ticket: a stale one, if it comes twice */
    byte n, where, got;
    mtype state;
    bit b;

    pick();
    do
    :: atomic { n != 0 && times > 0 -> times-- } cancel()
    :: else -> break
    od
}

proctype grows() {
    byte n, used;
    bit b;
    bool open;

    grow()
}

proctype forces() {
    byte at, h, where, got, left, limit;
    mtype state;
    bit hint;

    if
    :: atomic { may_drive -> begin_driving(); limit = tail }
        sweep(limit)                    /* force() */
    :: else
    fi;
    told = true                         /* wake-up invariant: the driver calls next_wake() */
}

proctype drives() {
    byte at, h, where, got, left, limit, seen;
    mtype state;
    bit hint;
    bool again;

    do
    :: atomic { told || again -> told = false; again = false; limit = mark; seen = tail }   /* position() */
        make_mark(seen);
        if
        :: atomic { may_drive -> begin_driving(); if :: limit = mark :: skip fi }
            sweep(limit)                /* expire() */
        :: atomic { else -> again = true }      /* busy */
        fi;
        atomic {                        /* more; next_wake() */
            again = again || at < limit || tail != open_from || mark != 0;
            seen = 0;
            limit = 0;
            at = 0
        }
    :: atomic { closed && !told && !again && may_drive -> begin_driving(); limit = tail }
        sweep(limit);                   /* drain() */
        if
        :: at >= limit -> break
        :: atomic { else -> limit = 0; at = 0 }
        fi
    od
}

proctype closes(bool orderly) {
    if
    :: orderly -> registering == 0 && !held[0] && !held[1] && !held[2] && !held[3]
    :: else
    fi;
    closed = true                       /* close() */
}

inline registrations(items, first, second) {    /* by two threads */
    registering = (first > 0) + (second > 0);
    run registers(0, items, first);
    if
    :: second > 0 -> run registers(2, 2, second)
    :: else
    fi
}

init {
    atomic {
        run drives();
        block = 1;
        if                              /* all at once take too long for a test */
        :: registrations(2, 2, 1); run cancels(1); run closes(true)
        :: registrations(3, 3, 0); run forces(); run closes(false)
        :: registrations(2, 1, 1); run cancels(2); run cancels(1); run closes(true)
        :: registrations(2, 6, 0); run cancels(2); run closes(true)
        :: registrations(2, 3, 0); run cancels(2); run cancels(1); run closes(true)
        :: registrations(3, 3, 0); run cancels(1); growing = true; block = 0; run grows(); run closes(true)
        fi
    }
    atomic {
        _nr_pr == 1;
        assert(!held[0] && !held[1] && !held[2] && !held[3]);
        assert(head == tail)
    }
}
