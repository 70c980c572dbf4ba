#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""The page of timers of http_server in a headless Chromium. No time is asserted: tests wait for events.

usage: page.py DIRECTORY CHROMIUM CHROMEDRIVER

DIRECTORY has the programs.
"""

import contextlib
import sys
import threading
import typing

from browser import Browser, Failed, Server, expect, run, until

programs, chromium, chromedriver = sys.argv[1:]
browser: Browser  # one for all tests

TAB, ENTER = "\ue004", "\ue007"


@contextlib.contextmanager
def load(server: Server) -> typing.Iterator[None]:
    """Requests, one after the other."""
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            server.ask("/slow?ms=3")

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for t in threads:
        t.start()
    try:
        yield
    finally:
        over.set()
        for t in threads:
            t.join()


def number(element: str) -> int:
    words = browser.words(element).replace(",", "")
    return int(words) if words.isdigit() else -1


def cell(rows: str, heading: str, column: int = 1) -> str:
    """The value for something in a table."""
    return browser.js(f"[...document.getElementById({rows!r}).rows].filter(r => r.cells[0].textContent === "
                      f"{heading!r}).map(r => r.cells[{column}].textContent)[0] || ''")


def opened(server: Server) -> None:
    """Opens the page, and waits until it has numbers."""
    browser.go(f"{server.url}/timers")
    until("the page has numbers", lambda: number("pending") >= 0)
    expect("its state", browser.words("state"), "Live")


def silent() -> None:
    expect("what the console has got", browser.complaints(), [])


def it_loads_and_the_numbers_move_under_load() -> None:
    with Server(programs) as server:
        expect("readers before", server.readers(), 0)
        opened(server)
        expect("title", browser.ask("title"), "Timers of this server")
        expect("rows of events", browser.js("document.getElementById('event-rows').rows.length"), 7)
        until("the server has one reader", lambda: server.readers() == 1)
        with load(server):
            until("waits are started", lambda: float(cell("event-rows", "started").replace(",", "") or 0) >= 1)
            until("waits are armed", lambda: float(cell("event-rows", "armed").replace(",", "") or 0) >= 1)
            until("lateness is shown", lambda: browser.js("document.getElementById('lateness-rows').rows.length") >= 1)
            until("a quantile is shown", lambda: browser.words("p50")[:1].isdigit())
            until("a name is shown", lambda: cell("name-rows", "GET /slow", 2) != "" or
                  cell("name-rows", "idle connection", 2) != "")
            until("levels have timers", lambda: browser.js(
                "[...document.querySelectorAll('#level-rows td.n')].some(c => Number(c.textContent) > 0)"))
            until("the curve has points", lambda: browser.js(
                "(document.querySelector('#pending-chart .curve') || {points: []}).points.length") >= 3)
        silent()
        expect("what the page says beside counts and names", browser.js(r"/0x[0-9a-f]{6}/.test(document.body.innerText)"),
               False)
        browser.go("about:blank")
        until("the reader is gone", lambda: server.readers() == 0)
        server.end()


def two_tabs_are_two_readers_and_closing_one_frees_its_reader() -> None:
    with Server(programs) as server:
        first = browser.ask("window")
        opened(server)
        browser.do("window/new", type="window")  # so that neither hides the other
        second = [h for h in browser.ask("window/handles") if h != first][0]
        browser.to(second)
        opened(server)
        until("two readers", lambda: server.readers() == 2)
        until("the page knows of two tabs", lambda: "2 tabs look" in browser.words("about"))
        browser.close_tab(then=first)
        until("one reader", lambda: server.readers() == 1)
        until("the page knows of one tab", lambda: "1 tab looks" in browser.words("about"))
        silent()
        browser.go("about:blank")
        server.end()


def a_hidden_tab_is_suspended() -> None:
    with Server(programs) as server:
        page = browser.ask("window")
        opened(server)
        until("a reader", lambda: server.readers() == 1)
        browser.new_tab()  # in front
        until("no reader while the tab is behind another", lambda: server.readers() == 0)
        events = server.metric("pawl_timer_feed_events_total")
        server.ask("/slow?ms=1")
        expect("events that are published while it is hidden",
               server.metric("pawl_timer_feed_events_total"), events)
        browser.close_tab(then=page)
        browser.do("window/rect", width=1200, height=900)
        browser.cdp("Page.bringToFront")
        until("a reader when the tab is to be seen again", lambda: server.readers() == 1)
        before = browser.words("about")
        until("it goes on", lambda: browser.words("about") != before)
        silent()
        browser.go("about:blank")
        server.end()


def it_can_be_paused_by_keyboard() -> None:
    with Server(programs) as server:
        opened(server)
        focused = "document.activeElement.textContent.trim()"
        browser.press(TAB)
        expect("what the first Tab leads to", browser.js(focused), "Skip to the numbers")
        expect("its focus can be seen", browser.js(
            "getComputedStyle(document.activeElement).outlineStyle !== 'none' && "
            "document.activeElement.getBoundingClientRect().left >= 0"), True)
        browser.press(TAB)
        expect("what the second Tab leads to", browser.js(focused), "Pause")
        until("a reader", lambda: server.readers() == 1)
        browser.press(ENTER)
        until("no reader while it is paused", lambda: server.readers() == 0)
        expect("its state", browser.words("state"), "Paused")
        expect("the button", browser.js("document.activeElement.getAttribute('aria-pressed')"), "true")
        browser.press(ENTER)
        until("a reader again", lambda: server.readers() == 1)
        browser.press(TAB, ENTER)
        expect("a table opens by keyboard", browser.js("document.querySelector('details').open"), True)
        silent()
        browser.go("about:blank")
        server.end()


def it_comes_back_after_the_server_was_restarted() -> None:
    server = Server(programs)
    with server:
        opened(server)
        server.end()
    until("the page says so", lambda: browser.words("state").startswith("Connection lost") or
          browser.words("state").startswith("The server does not answer"))
    with Server(programs, port=server.port) as again:
        until("it is live again", lambda: browser.words("state") == "Live")
        until("a reader", lambda: again.readers() == 1)
        until("numbers of the new process", lambda: "1 tab looks" in browser.words("about"))
        # The browser itself reports each connection that fails.
        others = [c for c in browser.complaints() if "net::ERR_" not in c or "/timers/events" not in c]
        expect("what else the console has got", others, [])
        browser.go("about:blank")
        again.end()


def it_has_what_readers_of_the_screen_need() -> None:
    with Server(programs, "--churn", "1000") as server:
        opened(server)
        for what, selector in (("main", "main"), ("header", "body > header"), ("footer", "body > footer"),
                               ("first heading", "h1"), ("state", "[role=status]")):
            expect(what, browser.js(f"document.querySelectorAll({selector!r}).length"), 1)
        expect("language", browser.js("document.documentElement.lang"), "en")
        expect("sections without a heading", browser.js(
            "[...document.querySelectorAll('section')].filter(s => !s.querySelector('h2') || "
            "s.getAttribute('aria-labelledby') !== s.querySelector('h2').id).length"), 0)
        expect("pictures without words", browser.js(
            "[...document.querySelectorAll('svg')].filter(s => !s.closest('[aria-hidden=true]') && "
            "!(s.getAttribute('role') === 'img' && s.getAttribute('aria-label'))).length"), 0)
        expect("charts without a table", browser.js(
            "[...document.querySelectorAll('svg[role=img]')].filter(s => "
            "!s.closest('section').querySelector('table')).length"), 0)
        expect("columns without a heading", browser.js(
            "[...document.querySelectorAll('thead th')].filter(h => h.scope !== 'col' || !h.textContent).length"), 0)
        silent()
        browser.go("about:blank")
        server.end()


CONTRAST = """(() => {
    const light = (c) => {
        const parts = c.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
            .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    };
    const back = (e) => {
        for (; e; e = e.parentElement)
            if (!getComputedStyle(e).backgroundColor.endsWith(', 0)'))
                return getComputedStyle(e).backgroundColor;
    };
    return ['h1', 'h2', 'dt', 'dd', 'thead th', 'td', 'summary', 'button', 'footer p', 'footer a', '#state'].filter((s) => {
        const e = document.querySelector(s);
        const [a, b] = [light(getComputedStyle(e).color), light(back(e))];
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
    });
})()"""


def it_is_readable_on_a_phone_dark_and_light() -> None:
    with Server(programs, "--churn", "1000") as server:
        backgrounds = []
        for scheme in ("light", "dark"):
            browser.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            browser.cdp("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=2, mobile=True)
            opened(server)
            browser.js("document.querySelectorAll('details').forEach(d => d.open = true)")
            for width in (360, 1200):
                browser.cdp("Emulation.setDeviceMetricsOverride", width=width, height=740, deviceScaleFactor=1,
                            mobile=width == 360)
                expect("width of the window", browser.js("innerWidth"), width)
                expect(f"width of the page in {width} px", browser.js("document.documentElement.scrollWidth"), width)
            expect(f"texts with too little contrast, {scheme}", browser.js(CONTRAST), [])
            backgrounds.append(browser.js("getComputedStyle(document.body).backgroundColor"))
        if backgrounds[0] == backgrounds[1]:
            raise Failed("dark is as light")
        browser.cdp("Emulation.clearDeviceMetricsOverride")
        browser.cdp("Emulation.setEmulatedMedia", features=[])
        silent()
        browser.go("about:blank")
        server.end()


def it_waits_for_its_turn_where_there_are_too_many_tabs() -> None:
    with Server(programs, "--tabs", "1") as server:
        with server.connect() as other:
            other.sendall(b"GET /timers/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            until("the other tab", lambda: server.readers() == 1)
            browser.go(f"{server.url}/timers")
            until("the page says so", lambda: "too many tabs" in browser.words("state"))
        until("its turn has come", lambda: browser.words("state") == "Live")
        others = [c for c in browser.complaints() if "503" not in c]  # which the browser itself reports
        expect("what else the console has got", others, [])
        browser.go("about:blank")
        server.end()


def it_keeps_up_with_a_million_events_a_second() -> None:
    with Server(programs, "--churn", "1000000") as server:
        opened(server)
        # The real number depends on the machine. None may be lost silently.
        until("moved timers are counted",
              lambda: float(cell("event-rows", "moved").replace(",", "") or 0) >= 1000)
        print(f"  moved per second: {cell('event-rows', 'moved')}; {browser.words('missed') or 'none missed'}")
        silent()
        browser.go("about:blank")
        server.end()


with Browser(chromium, chromedriver) as browser:
    status = run([it_loads_and_the_numbers_move_under_load,
                  two_tabs_are_two_readers_and_closing_one_frees_its_reader, a_hidden_tab_is_suspended,
                  it_can_be_paused_by_keyboard, it_comes_back_after_the_server_was_restarted,
                  it_has_what_readers_of_the_screen_need, it_is_readable_on_a_phone_dark_and_light,
                  it_waits_for_its_turn_where_there_are_too_many_tabs, it_keeps_up_with_a_million_events_a_second])
sys.exit(status)
