// Copyright (c) 2026 The Pawl authors
// SPDX-License-Identifier: BSL-1.0

// The page of timers: the files for the browser, written by hand and compiled into the program.
//
// The server sends the present state once a second; the page keeps the last two minutes. Each chart has a table with the same
// numbers, for screen readers. The page is suspended while it is hidden or paused.

#ifndef PAWL_EXAMPLES_HTTP_SERVER_TIMERS_PAGE_HPP
#define PAWL_EXAMPLES_HTTP_SERVER_TIMERS_PAGE_HPP

#include <array>
#include <string_view>

namespace example {

struct page_file {
    std::string_view path;
    std::string_view type;
    std::string_view text;
};

inline constexpr std::string_view timers_html = R"page(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Timers of this server</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/timers/page.css">
<script src="/timers/page.js" defer></script>
</head>
<body>
<a class="skip" href="#main">Skip to the numbers</a>
<header>
<h1>Timers of this server</h1>
<p><span id="state" role="status" data-state="connecting">Connecting</span>
<button id="pause" type="button" aria-pressed="false">Pause</button></p>
</header>
<main id="main" tabindex="-1">
<noscript><p>This page needs JavaScript. <a href="/metrics">/metrics</a> has the numbers as text.</p></noscript>

<section aria-labelledby="h-pending">
<h2 id="h-pending">Pending waits</h2>
<dl class="figures">
<div><dt>pending</dt><dd id="pending">–</dd></div>
<div><dt>wait for their deadline</dt><dd id="armed">–</dd></div>
<div><dt>wake-ups per second</dt><dd id="wake-ups">–</dd></div>
</dl>
<svg id="pending-chart" class="chart" viewBox="0 0 600 160" preserveAspectRatio="none" role="img" aria-label="Pending waits in the last two minutes; the table below has the numbers"></svg>
<p class="axis" aria-hidden="true"><span>2 minutes ago</span><span id="pending-top"></span><span>now</span></p>
<details><summary>Pending waits as a table</summary>
<table><thead><tr><th scope="col">seconds ago</th><th scope="col" class="n">pending</th></tr></thead><tbody id="pending-rows"></tbody></table></details>
</section>

<section aria-labelledby="h-events">
<h2 id="h-events">Events per second</h2>
<table class="bars"><thead><tr><th scope="col">kind</th><th scope="col" class="n">per second</th><th scope="col"><span class="hidden">share and last minute</span></th></tr></thead><tbody id="event-rows"></tbody></table>
<p id="missed" class="note"></p>
</section>

<section aria-labelledby="h-lateness">
<h2 id="h-lateness">Lateness of handlers in the last minute</h2>
<dl class="figures">
<div><dt>half of them at most</dt><dd id="p50">–</dd></div>
<div><dt>99 of 100 at most</dt><dd id="p99">–</dd></div>
</dl>
<svg id="lateness-chart" class="chart" viewBox="0 0 600 160" preserveAspectRatio="none" role="img" aria-label="Lateness of handlers in the last minute; the table below has the numbers"></svg>
<p class="axis" aria-hidden="true"><span id="lateness-low"></span><span id="lateness-high"></span></p>
<details><summary>Lateness as a table</summary>
<table><thead><tr><th scope="col">at most</th><th scope="col" class="n">handlers</th></tr></thead><tbody id="lateness-rows"></tbody></table></details>
</section>

<section aria-labelledby="h-levels">
<h2 id="h-levels">Timers on each level of the wheels</h2>
<table class="bars"><thead><tr><th scope="col">level</th><th scope="col" class="n">timers</th><th scope="col"><span class="hidden">share</span></th></tr></thead><tbody id="level-rows"></tbody></table>
<details><summary>By clock and time structure</summary>
<div class="wide" tabindex="0" role="region" aria-labelledby="h-levels"><table><thead><tr><th scope="col">clock</th><th scope="col">structure</th><th scope="col" class="n">pending</th><th scope="col">on levels 0, 1, ...</th></tr></thead><tbody id="service-rows"></tbody></table></div></details>
</section>

<section aria-labelledby="h-names">
<h2 id="h-names">Named timers, the most overdue first</h2>
<table><thead><tr><th scope="col">name</th><th scope="col" class="n">timers</th><th scope="col">the first of them</th></tr></thead><tbody id="name-rows"></tbody></table>
<p id="no-names" class="note">No timer with a name is waiting.</p>
</section>
</main>
<footer><p><span id="about"></span> <a href="/metrics">/metrics</a> has totals for Prometheus.</p></footer>
</body>
</html>
)page";

inline constexpr std::string_view timers_css = R"page(:root {
    color-scheme: light dark;
    --back: #fbfbfa; --card: #ffffff; --text: #1d2126; --soft: #59626d; --line: #d9dde2;
    --accent: #1f62b5; --fill: #cfe0f5; --good: #19713a; --bad: #b3261e;
}
@media (prefers-color-scheme: dark) {
    :root {
        --back: #14171b; --card: #1d2126; --text: #e8eaed; --soft: #a4adb8; --line: #39414a;
        --accent: #82b6f5; --fill: #27405e; --good: #7ccf96; --bad: #f2938c;
    }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 16px/1.45 system-ui, sans-serif; }
header, main, footer { max-width: 70rem; margin: 0 auto; padding: 0.75rem; }
header { display: flex; flex-wrap: wrap; gap: 0.25rem 1.5rem; align-items: center; justify-content: space-between; }
header p { display: flex; gap: 0.75rem; align-items: center; margin: 0; }
h1 { font-size: 1.35rem; margin: 0; }
h2 { font-size: 1.05rem; margin: 0 0 0.6rem; }
main { display: grid; gap: 0.75rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); align-items: start; padding-top: 0; }
main:focus { outline: none; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 0.5rem; padding: 0.9rem; min-width: 0; }
.skip { position: absolute; left: -100rem; }
.skip:focus { left: 0.5rem; top: 0.5rem; background: var(--card); padding: 0.5rem; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
button { font: inherit; color: var(--text); background: var(--card); border: 1px solid var(--soft); border-radius: 0.4rem; padding: 0.35rem 0.9rem; min-height: 2.75rem; cursor: pointer; }
#state::before { content: ""; display: inline-block; width: 0.65rem; height: 0.65rem; border-radius: 50%; margin-right: 0.4rem; background: var(--soft); }
#state[data-state="live"]::before { background: var(--good); }
#state[data-state="lost"]::before { background: var(--bad); }
.figures { display: flex; flex-wrap: wrap; gap: 0.25rem 1.75rem; margin: 0 0 0.5rem; }
.figures div { display: flex; flex-direction: column-reverse; }
.figures dd { margin: 0; font-size: 1.5rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.figures dt, .note, .axis, footer { color: var(--soft); font-size: 0.875rem; }
.chart { display: block; width: 100%; height: 9rem; border-bottom: 1px solid var(--line); }
.axis { display: flex; justify-content: space-between; gap: 0.75rem; margin: 0.15rem 0 0.5rem; }
.area { fill: var(--fill); stroke: none; }
.curve { fill: none; stroke: var(--accent); stroke-width: 2; vector-effect: non-scaling-stroke; }
.column { fill: var(--accent); }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 0.2rem 0.5rem 0.2rem 0; border-bottom: 1px solid var(--line); font-weight: normal; overflow-wrap: anywhere; }
thead th { color: var(--soft); font-size: 0.875rem; }
.n { text-align: right; white-space: nowrap; }
.bars th:first-child { width: 6.5rem; }
.bars .n { width: 6rem; }
.bars svg { display: block; width: 100%; height: 1.4rem; }
.overdue { color: var(--bad); font-weight: 600; }
summary { cursor: pointer; padding: 0.4rem 0; color: var(--accent); }
.wide { overflow-x: auto; }
)page";

inline constexpr std::string_view timers_js = R"page("use strict";
(() => {
const KINDS = ["armed", "moved", "due", "started", "cancelled", "overflowed", "shut_down"];
const KEPT = 120; // seconds
const $ = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat("en", {maximumFractionDigits: 0});
const fine = new Intl.NumberFormat("en", {maximumSignificantDigits: 3});

let past = [];      // what was told, the newest last
let source = null;  // of events
let tab = null;     // our number
let told = null;    // whether the server has been told that we are suspended
let wakeUps = null; // as they were told last
let levelsSeen = 4; // how many to show: those above the highest that had timers are left out

// --- words ---------------------------------------------------------------------------------------

const count = (n) => whole.format(n);
const rate = (n) => (n !== 0 && n < 10 ? fine : whole).format(n);
function time(ns) {
    for (const [unit, size] of [["d", 864e11], ["h", 36e11], ["min", 6e10], ["s", 1e9], ["ms", 1e6], ["µs", 1e3]])
        if (ns >= size)
            return fine.format(ns / size) + " " + unit;
    return count(ns) + " ns";
}
function text(id, words) {
    if ($(id).textContent !== words)
        $(id).textContent = words;
}
function state(name, words) {
    $("state").dataset.state = name;
    text("state", words);
}

// --- drawing -------------------------------------------------------------------------------------

function shape(name, attributes) {
    const e = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes))
        e.setAttribute(key, value);
    return e;
}
/** Rows of a table: the first cell of each is its heading. Cells are texts or nodes; those after it are numbers if `n`. */
function rows(id, all, n = true) {
    const body = $(id);
    while (body.rows.length > all.length)
        body.deleteRow(-1);
    all.forEach((cells, r) => {
        const row = body.rows[r] || body.insertRow();
        cells.forEach((cell, c) => {
            if (!row.cells[c]) {
                const made = document.createElement(c === 0 ? "th" : "td");
                if (c === 0)
                    made.scope = "row";
                if (n && c === 1)
                    made.className = "n";
                row.append(made);
            }
            if (typeof cell !== "string")
                row.cells[c].replaceChildren(cell);
            else if (row.cells[c].textContent !== cell)
                row.cells[c].textContent = cell;
        });
    });
}
function bar(share) {
    const svg = shape("svg", {viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true"});
    svg.append(shape("rect", {class: "column", x: 0, y: 2, height: 6, width: Math.max(share * 100, share > 0 ? 1 : 0)}));
    return svg;
}
/** A curve of `values`, the newest at the right, in a box of width x height. */
function curve(svg, values, length, width, height) {
    const most = Math.max(1, ...values);
    const points = values.map((v, i) => [
        width * (length - values.length + i) / (length - 1), height - 2 - v / most * (height - 4)]);
    svg.replaceChildren();
    if (points.length > 1) {
        const line = points.map((p) => p[0].toFixed(1) + "," + p[1].toFixed(1)).join(" ");
        svg.append(shape("polygon", {class: "area", points: `${points[0][0].toFixed(1)},${height} ${line} ${width},${height}`}));
        svg.append(shape("polyline", {class: "curve", points: line}));
    }
    return most;
}
function sparkline(values) {
    const svg = shape("svg", {viewBox: "0 0 100 20", preserveAspectRatio: "none", "aria-hidden": "true"});
    curve(svg, values, 60, 100, 20);
    return svg;
}

function draw() {
    const now = past[past.length - 1];
    text("pending", count(now.pending));
    text("armed", count(now.armed));
    text("wake-ups", rate(now.wakeUps));
    const most = curve($("pending-chart"), past.map((p) => p.pending), KEPT, 600, 160);
    text("pending-top", "at most " + count(most));
    const steps = past.filter((p, i) => (past.length - 1 - i) % 10 === 0).reverse();
    rows("pending-rows", steps.map((p, i) => [count(i * 10), count(p.pending)]));

    rows("event-rows", KINDS.map((kind) => [
        kind === "shut_down" ? "shut down" : kind, rate(now.rates[kind]), sparkline(past.slice(-60).map((p) => p.rates[kind]))]));
    const missed = past.slice(-60).reduce((sum, p) => sum + p.missed, 0);
    text("missed", missed === 0 ? "" : count(missed) + " events of the last minute were too many for this page, and are not counted.");

    drawLateness();

    const levels = [];
    for (const s of now.services)
        s.levels.forEach((n, i) => { levels[i] = (levels[i] || 0) + n; });
    const fullest = Math.max(1, ...levels);
    levelsSeen = Math.max(levelsSeen, levels.findLastIndex((n) => n > 0) + 1);
    rows("level-rows", levels.slice(0, levelsSeen).map((n, i) => [String(i), count(n), bar(n / fullest)]));
    rows("service-rows", now.services.map((s) => [s.clock, s.backend.replaceAll("_", " "), count(s.pending), s.levels.map(count).join(", ") || "no levels"]), false);

    rows("name-rows", now.names.map((t) => {
        const words = document.createElement("span");
        words.textContent = t.left < 0 ? "overdue by " + time(-t.left) : "due in " + time(t.left);
        words.className = t.left < 0 ? "overdue" : "";
        return [t.name, count(t.timers), words];
    }));
    $("no-names").hidden = now.names.length !== 0;
    text("about", `Up for ${time(now.up * 1e6)}; ${now.tabs === 1 ? "1 tab looks" : now.tabs + " tabs look"} at it.`);
}

function drawLateness() {
    const buckets = new Map(); // by the power of two, in ns
    const exact = new Map();
    for (const p of past.slice(-60))
        for (const [end, n] of p.lateness) {
            const power = Math.ceil(Math.log2(end));
            buckets.set(power, (buckets.get(power) || 0) + n);
            exact.set(end, (exact.get(end) || 0) + n);
        }
    const all = [...exact.values()].reduce((a, b) => a + b, 0);
    const quantile = (q) => {
        let seen = 0;
        for (const [end, n] of [...exact].sort((a, b) => a[0] - b[0]))
            if ((seen += n) >= q * all)
                return time(end);
        return "–";
    };
    text("p50", quantile(0.5));
    text("p99", quantile(0.99));
    const svg = $("lateness-chart");
    svg.replaceChildren();
    const powers = [...buckets.keys()].sort((a, b) => a - b);
    const first = powers[0], last = powers[powers.length - 1];
    const most = Math.max(1, ...buckets.values());
    const lines = [];
    for (let power = first; power <= last; ++power) {
        const n = buckets.get(power) || 0;
        const width = 600 / (last - first + 1);
        const height = n === 0 ? 0 : Math.max(2, n / most * 156);
        svg.append(shape("rect", {class: "column", x: (power - first) * width + width * 0.05, width: Math.min(width * 0.9, 120), y: 160 - height, height}));
        lines.push([time(2 ** power), count(n)]);
    }
    rows("lateness-rows", lines);
    text("lateness-low", powers.length ? "at most " + time(2 ** first) : "no handler yet");
    text("lateness-high", powers.length ? "at most " + time(2 ** last) : "");
}

// --- the server ----------------------------------------------------------------------------------

const paused = () => $("pause").getAttribute("aria-pressed") === "true";

/** Tells the server whether this page is looked at. */
async function tell() {
    const suspend = document.hidden || paused();
    if (tab === null || told === suspend)
        return;
    told = suspend;
    try {
        await fetch(`/timers/${suspend ? "suspend" : "resume"}?tab=${tab}`, {method: "POST", keepalive: true});
    } catch {
        told = null; // the connection is lost, which the source of events notices
    }
}

function take(now) {
    const before = past[past.length - 1];
    if (before && now.up < before.up) { // another process
        past = [];
        wakeUps = null;
    }
    const seconds = Math.max(now.span, 1) / 1000;
    now.rates = {};
    for (const kind of KINDS)
        now.rates[kind] = now.events[kind] / seconds;
    now.wakeUps = wakeUps === null ? 0 : (now.wake_ups - wakeUps.n) / Math.max(now.up - wakeUps.up, 1) * 1000;
    wakeUps = {n: now.wake_ups, up: now.up};
    past.push(now);
    past = past.slice(-KEPT);
    draw();
}

function connect() {
    source = new EventSource("/timers/events");
    source.addEventListener("tab", (e) => {
        tab = e.data;
        told = false;
        state(paused() ? "paused" : "live", paused() ? "Paused" : "Live");
        tell();
    });
    source.onmessage = (e) => take(JSON.parse(e.data));
    source.onerror = () => {
        tab = null;
        if (source.readyState !== EventSource.CLOSED) {
            state("lost", "Connection lost, trying again");
            return;
        }
        // Refused: there are too many tabs, or the server has another mind.
        state("lost", "The server does not answer, or has too many tabs open; trying again in 5 seconds");
        setTimeout(connect, 5000);
    };
}

document.addEventListener("visibilitychange", tell);
$("pause").addEventListener("click", () => {
    const on = !paused();
    $("pause").setAttribute("aria-pressed", String(on));
    if (tab !== null)
        state(on ? "paused" : "live", on ? "Paused" : "Live");
    tell();
});
connect();
})();
)page";

inline constexpr std::array<page_file, 3> timers_page{{
    {"/timers", "text/html; charset=utf-8", timers_html},
    {"/timers/page.css", "text/css; charset=utf-8", timers_css},
    {"/timers/page.js", "text/javascript; charset=utf-8", timers_js},
}};

} // namespace example

#endif // PAWL_EXAMPLES_HTTP_SERVER_TIMERS_PAGE_HPP
