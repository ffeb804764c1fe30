
"use strict";

/* Elements. Texts go in as text, never as markup. */
const id = (name) => document.getElementById(name);
const make = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const fill = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes ?? {})) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
};
const put = (place, ...children) => place.replaceChildren(...children);
const inside = (section, selector) => document.querySelector(`#${section} ${selector}`);
const nothing = (words) => make("p", { class: "nothing" }, words);

/* Numbers and times. */
const clock = (at) => new Date(at).toLocaleTimeString("en-GB");
const two = (number) => String(number).padStart(2, "0");
const lasting = (ms) => {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${two(Math.floor(seconds / 60) % 60)} min`;
};
const brief = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : ms < 60000 ? `${(ms / 1000).toFixed(1)} s` : lasting(ms));
const micros = (us) => (us < 10000 ? `${(us / 1000).toFixed(1)} ms` : brief(us / 1000));
const spaced = (word) => word.replaceAll("_", " ");
const plural = (count, one, many) => `${count} ${count === 1 ? one : many}`;
const last = (list) => list[list.length - 1] ?? 0;
const most = (list) => list.reduce((most, next) => Math.max(most, next), 0);
const sum = (list) => list.reduce((sum, next) => sum + next, 0);

/* The state, and how far the sidecar's clock is ahead of this one. */
const state = {};
let ahead = 0;
const now = () => Date.now() + ahead;

/* Head. */
const showHead = () => {
  const { head } = state;
  const count = head.in_doubt + head.unresolved;
  const lost = count > 0;
  document.body.dataset.doubt = lost ? "alarm" : "calm";
  document.body.dataset.trading = head.trading;
  id("doubt-count").textContent = count;
  id("doubt-words").textContent = count === 1 ? "order in doubt" : "orders in doubt";
  id("trading").textContent = { trading: "Trading", halted: "Halted", ending: "Ending" }[head.trading] ?? head.trading;
  const button = id("switch");
  button.hidden = !state.may_trade || head.trading === "ending";
  button.textContent = head.trading === "halted" ? "Resume…" : "Halt…";
  button.className = head.trading === "halted" ? "" : "danger";
  document.title = `${lost ? `(${count}) in doubt · ` : ""}${head.trading === "trading" ? "" : `${head.trading} · `}steadfast`;
  const colour = lost ? "%23d32f2f" : head.trading === "trading" ? "%232e9e6b" : "%23d08a1a";
  id("icon").href =
    `data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 8 8'><circle cx='4' cy='4' r='3.4' fill='${colour}'/></svg>`;
  id("version").textContent = `steadfast ${head.version}, up since ${new Date(head.started).toLocaleString("en-GB")}`;
};
const TOKEN = {
  valid: ["valid", ""],
  advisory: ["renewing", ""],
  mandatory: ["about to end", "warning"],
  expired: ["expired", "alarm"],
  none: ["no token yet", "warning"],
  needs_human: ["needs a person to log in", "alarm"],
  latched: ["logins stopped until a reset", "alarm"],
  suspect: ["refused by the service", "alarm"],
};
const tickHead = () => {
  const { head, doubts } = state;
  const { token } = head;
  const [phase, grade] = TOKEN[token.phase] ?? [spaced(token.phase), "warning"];
  const ends = token.ends_at === null ? "" : `, ends in ${lasting(token.ends_at - now())}`;
  const latched = token.latched && token.phase !== "latched" ? "; logins stopped" : "";
  const fact = (name, value, grade = "") =>
    make("div", { class: grade }, make("dt", null, name), make("dd", null, value));
  const offset = token.clock_offset_ms;
  put(
    id("facts"),
    ...(head.account === null ? [] : [fact("account", head.account)]),
    fact("gateway", head.gateway),
    fact("token", token.trouble ?? phase + ends + latched, token.trouble || latched ? "alarm" : grade),
    fact(
      "orders",
      head.withheld ?? `${head.in_flight} in flight, ${head.waiting} waiting`,
      head.withheld ? "alarm" : "",
    ),
    ...(head.sharing
      ? [
          fact("shared orders", head.sharing.words, head.sharing.role === "active" ? "" : "warning"),
          fact(
            "shared store",
            head.sharing.round_trip_us === null
              ? `${head.sharing.store} does not answer`
              : `${head.sharing.store}, ${(head.sharing.round_trip_us / 1000).toFixed(1)} ms`,
            head.sharing.round_trip_us === null ? "alarm" : "",
          ),
        ]
      : []),
    ...(offset === null || Math.abs(offset) < 1000
      ? []
      : [fact("service's clock", `${brief(Math.abs(offset))} ${offset > 0 ? "ahead" : "behind"}`, "warning")]),
  );
  // It is not told which of those that wait is in doubt.
  const oldest = (doubts.find((order) => order.stage !== "waiting") ?? doubts[0])?.asked_at;
  id("doubt-note").textContent =
    document.body.dataset.doubt === "calm"
      ? `of ${plural(head.in_flight, "order", "orders")} in flight`
      : [
          oldest === undefined ? "" : `the oldest for ${lasting(now() - oldest)}`,
          head.unresolved ? `${head.unresolved} to look for` : "",
        ].filter(Boolean).join(", ");
};

/* Orders. */
const STAGES = {
  waiting: "waits",
  unheard: "caller gone",
  in_doubt: "in doubt",
  unresolved: "unresolved: look for it",
  not_placed: "not placed",
  placed_unheard: "placed, unheard",
};
const chip = (stage) => make("span", { class: `chip ${stage}` }, STAGES[stage] ?? spaced(stage));
const side = (order) => make("span", { class: `side ${order.side}` }, order.side);
const life = (order) => {
  const after = (at) => `+${brief(Math.max(0, at - order.asked_at))}`;
  const steps = order.steps.map((step, index) =>
    make(
      "li",
      order.ended_at !== null && index + 1 === order.steps.length ? { class: "end" } : null,
      make("time", null, index === 0 ? clock(step.at) : after(step.at)),
      make("span", null, step.words),
    ),
  );
  const open =
    order.ended_at === null
      ? [make("li", { class: "open" }, make("time", { "data-since": order.asked_at, "data-sign": "+" }), make("span", null, "open"))]
      : [];
  return make("ol", { class: "life" }, ...steps, ...open);
};
const doubt = (order) => {
  const facts = [
    order.reason ?? "",
    order.order_id === null ? "" : `answered as ${order.order_id}`,
    order.candidates.length ? `may be ${order.candidates.join(", ")}` : "",
  ].filter(Boolean);
  return make(
    "article",
    { class: "order" },
    make(
      "div",
      { class: "line" },
      chip(order.stage),
      make("span", null, side(order), ` ${order.what}`),
      make("span", { class: "name mono" }, order.name),
      make("span", { class: "age", "data-since": order.asked_at }),
    ),
    facts.length ? make("p", { class: "why" }, facts.join("; ")) : null,
    life(order),
  );
};
const showDoubts = () => {
  const { doubts, head } = state;
  const told = doubts.filter((order) => order.stage === "in_doubt" || order.stage === "unheard").length;
  const untold = head.in_doubt - told;
  const rows = doubts.map(doubt);
  if (untold > 0) rows.push(nothing(`${plural(untold, "order", "orders")} in doubt: among those that wait, or placed past the sidecar.`));
  put(inside("doubts", ".rows"), ...(rows.length ? rows : [nothing("No order is in doubt.")]));
};
const unfolded = new Set();
const showResolved = () => {
  const rows = state.resolved.map((order) => {
    const key = `${order.name} ${order.asked_at}`;
    const row = make(
      "details",
      null,
      make(
        "summary",
        null,
        make("time", null, clock(order.ended_at)),
        chip(order.stage),
        make("span", { class: "what" }, side(order), ` ${order.what} `, make("span", { class: "mono faint" }, order.order_id ?? "")),
        make("span", null, brief(order.ended_at - order.asked_at)),
      ),
      make("p", { class: "mono faint" }, order.name),
      life(order),
    );
    row.open = unfolded.has(key);
    row.addEventListener("toggle", () => (row.open ? unfolded.add(key) : unfolded.delete(key)));
    return row;
  });
  put(inside("resolved", ".rows"), ...(rows.length ? rows : [nothing("No order was in doubt.")]));
};

/* Strips: x is the second, y runs from 0 at the top to 100 at the bottom. */
const height = (value, limit) => (100 - 100 * Math.min(1, limit ? value / limit : 0)).toFixed(1);
const edge = (values, limit) =>
  values.map((value, x) => `${x ? "" : `M0 ${height(value, limit)}`}V${height(value, limit)}H${x + 1}`).join("");
const area = (values, limit) => `M0 100${edge(values, limit).replace(/^M0 [\d.]+/, "")}V100Z`;
const bars = (values, limit) =>
  values.map((value, x) => (value ? `M${x + 0.1} 100V${height(value, limit)}h0.8V100Z` : "")).join("");
const blocks = (values, top, bottom) => values.map((value, x) => (value ? `M${x} ${top}h1V${bottom}h-1Z` : "")).join("");
const canvas = (length, label, ...children) =>
  draw("svg", { viewBox: `0 0 ${length} 100`, preserveAspectRatio: "none", role: "img", "aria-label": label }, ...children);
const PERIODS = { 1000: "a second", 60000: "a minute" };
const strip = (zone, window) => {
  const { limit, used } = window;
  const spent = last(used);
  const rule = `${limit} ${PERIODS[window.period_ms] ?? `in ${brief(window.period_ms)}`}`;
  const length = used.length;
  const quiet = most(zone.in_flight) === 0;
  const learned = zone.learned !== null && window === zone.windows[0] ? height(zone.learned, limit) : null;
  const plot = canvas(
    length,
    `${spaced(zone.zone)}, ${rule}: ${spent} spent now, ${most(used)} at most`,
    draw("rect", { class: "reserve", x: 0, y: 0, width: length, height: (100 * window.reserved) / limit }),
    draw("path", { class: "paused", d: blocks(zone.paused, 0, 100) }),
    draw("path", { class: "grid", d: `M${length / 2} 0V100` }),
    draw("path", { class: "area", d: area(used, limit) }),
    most(used) ? draw("path", { class: "edge", d: edge(used, limit) }) : null,
    quiet ? null : draw("path", { class: "flight", d: edge(zone.in_flight, limit) }),
    learned === null ? null : draw("path", { class: "learned", d: `M0 ${learned}H${length}` }),
    draw("path", { class: "pause", d: blocks(zone.paused, 92, 100) }),
  );
  const wait = zone.zone === "place_order" ? zone.next_free_ms.order : zone.next_free_ms.read;
  const note = zone.paused_ms !== null ? [`paused ${brief(zone.paused_ms)}`, "alarm"] : wait ? [`free in ${brief(wait)}`, "warning"] : ["free now", ""];
  const hint = [
    `next free: cancel ${brief(zone.next_free_ms.cancel)}, order ${brief(zone.next_free_ms.order)}, read ${brief(zone.next_free_ms.read)}`,
    `counts by: ${zone.step}`,
    zone.lost ? `${zone.lost} without an answer hold their slots` : "",
    zone.learned === null ? "" : `learned limit: ${zone.learned}`,
  ].filter(Boolean).join("\n");
  return make(
    "div",
    { class: "strip", title: hint },
    make("div", { class: "zone" }, spaced(zone.zone), make("small", null, rule)),
    plot,
    make("div", { class: "state" }, make("b", null, `${spent} / ${limit}`), make("small", { class: note[1] }, note[0])),
  );
};
const showZones = () => {
  const strips = state.zones.flatMap((zone) => zone.windows.map((window) => strip(zone, window)));
  const axis = make("div", null, make("span", null, "−2 min"), make("span", null, "−1 min"), make("span", null, "now"));
  put(inside("quota", ".strips"), ...strips, make("div", { class: "axis" }, axis));
};
const showLanes = () => {
  const rows = state.lanes.map(({ lane, waiting, next_free_ms }) => {
    const here = last(waiting);
    const plot = canvas(waiting.length, `waiting in ${lane}`, draw("path", { class: "bars", d: bars(waiting, Math.max(4, most(waiting))) }));
    return make(
      "tr",
      null,
      make("td", null, lane),
      make("td", null, here ? make("b", { class: "warning" }, String(here)) : "0"),
      make("td", { class: "plot" }, plot),
      make("td", null, String(most(waiting))),
      make("td", null, here ? brief(next_free_ms) : "now"),
    );
  });
  put(inside("lanes", "tbody"), ...rows);
};

/* Calls. */
const showCalls = () => {
  const { calls } = state;
  const [all, failed] = [sum(calls.endpoints.map((row) => row.count)), sum(calls.endpoints.map((row) => row.count - row.accepted))];
  const doubtful = sum(calls.endpoints.map((row) => row.unknown));
  const rate = all / (calls.span_ms / 1000);
  id("calls-span").textContent = `the last ${lasting(calls.span_ms).replace(" 00 s", "")}`;
  const figure = (value, words, grade) => make("div", null, make("b", grade ? { class: grade } : null, value), words);
  put(
    inside("calls", ".figures"),
    figure(rate < 10 ? rate.toFixed(1) : String(Math.round(rate)), "a second"),
    figure(String(failed), "not accepted"),
    figure(String(doubtful), "unknown", doubtful ? "alarm" : ""),
  );
  const peak = Math.max(4, most(calls.all));
  put(
    inside("calls", ".plot"),
    canvas(
      calls.all.length,
      `calls a second, ${most(calls.all)} at most`,
      draw("path", { class: "bars", d: bars(calls.all, peak) }),
      draw("path", { class: "bad", d: bars(calls.failed, peak) }),
    ),
  );
  const parts = (row) => [
    ["unknown", row.unknown, "alarm"],
    ["rejected", row.rejected, "warning"],
    ["refused", row.not_executed, "warning"],
    ["other", row.not_sent + row.dropped, ""],
  ].filter(([, count]) => count > 0).map(([words, count, grade]) => make("span", { class: grade }, `${count} ${words}`));
  const allParts = (row) =>
    `${row.accepted} accepted, ${row.rejected} rejected, ${row.not_executed} refused (401, 429), ${row.unknown} unknown, ` +
    `${row.not_sent} not sent, ${row.dropped} whose caller went away; ${row.repeated} took more than one send`;
  const rows = calls.endpoints.map((row) =>
    make(
      "tr",
      { title: allParts(row) },
      make("td", null, row.endpoint),
      make("td", null, String(row.count)),
      make("td", { class: "left" }, ...parts(row)),
      make("td", null, micros(row.p50_us)),
      make("td", null, micros(row.p99_us)),
    ),
  );
  put(inside("calls", "tbody"), ...rows);
  const refused = calls.refused.map(({ reason, count }) => `${count} × ${reason}`).join(", ");
  inside("calls", ".aside").textContent = refused ? `Refused here since the start: ${refused}` : rows.length ? "" : "No call yet.";
};
const showLog = () => {
  const lines = state.log.map((line) =>
    make(
      "li",
      { class: line.level },
      make("time", null, clock(line.at)),
      make("p", null, line.words, line.order === null ? null : make("span", { class: "mono faint" }, ` ${line.order}`)),
    ),
  );
  put(inside("log", "ol"), ...(lines.length ? lines : [nothing("Nothing has happened.")]));
};
const showAbsent = () => put(id("absent"), ...state.absent.map((words) => make("li", null, words)));

/* What has to be drawn again when a field of the state changes. */
const SHOWN = {
  head: [showHead, showDoubts],
  may_trade: [showHead],
  doubts: [showDoubts],
  resolved: [showResolved],
  zones: [showZones],
  lanes: [showLanes],
  calls: [showCalls],
  log: [showLog],
  absent: [showAbsent],
};
const tick = () => {
  if (!state.head) return;
  tickHead();
  for (const place of document.querySelectorAll("[data-since]")) {
    place.textContent = (place.dataset.sign ?? "") + lasting(now() - Number(place.dataset.since));
  }
};
const take = (change) => {
  Object.assign(state, change);
  ahead = state.at - Date.now();
  const due = new Set(Object.keys(change).flatMap((field) => SHOWN[field] ?? []));
  for (const show of due) show();
  tick();
};

/* The stream. */
let heard = 0;
let stream = null;
let wait = 1000;
const stale = (words) => {
  const since = heard ? `Stale since ${clock(heard)}. ` : "";
  id("stale").textContent = since + words;
  id("stale").hidden = false;
  document.body.classList.add("stale");
};
const fresh = () => {
  heard = Date.now();
  wait = 1000;
  id("stale").hidden = true;
  document.body.classList.remove("stale");
};
const connect = () => {
  stream = new EventSource("/-/events");
  for (const name of ["state", "change"]) {
    stream.addEventListener(name, (event) => {
      fresh();
      take(JSON.parse(event.data));
    });
  }
  stream.onerror = () => {
    stream.close();
    stream = null;
    stale("The stream ended; connecting again.");
    // A visitor whose cookie has ended sees the door.
    fetch("/-/state").then((answer) => answer.status === 401 && location.reload(), () => {});
    setTimeout(connect, wait);
    wait = Math.min(wait * 2, 10000);
  };
};

/* The switch. */
const ask = () => {
  const halted = state.head.trading === "halted";
  id("confirm-name").textContent = halted ? "Resume trading?" : "Halt trading?";
  id("confirm-words").textContent = halted
    ? "Orders that are placed from now on leave again. None that was placed before does."
    : "No order and no change leaves any more, those in a queue included. Cancels, reads and the search for orders in doubt go on.";
  id("confirm-yes").textContent = halted ? "Resume" : "Halt";
  id("confirm-yes").className = halted ? "" : "danger";
  id("confirm-error").hidden = true;
  id("confirm-yes").onclick = () => {
    const refuse = (words) => {
      id("confirm-error").textContent = words;
      id("confirm-error").hidden = false;
    };
    fetch(halted ? "/-/resume" : "/-/halt", { method: "POST" }).then(
      async (answer) =>
        answer.ok ? id("confirm").close() : refuse(`The sidecar refused (${answer.status}): ${(await answer.text()).trim()}`),
      () => refuse("The sidecar does not answer: it may not have been told."),
    );
  };
  id("confirm").showModal();
  id("confirm-no").focus();
};

id("switch").onclick = ask;
id("confirm-no").onclick = () => id("confirm").close();
setInterval(() => {
  tick();
  if (stream && heard && Date.now() - heard > 6000) stale("The sidecar has been silent.");
}, 1000);

/* Without a server, a state stands in the page itself. */
const fixture = id("fixture");
if (fixture) {
  take(JSON.parse(fixture.textContent));
} else {
  // A link that was opened again: nothing that is looked up later must find it.
  if (location.hash) history.replaceState(null, "", location.pathname);
  connect();
}
