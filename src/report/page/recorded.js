/* recorded.js: the page of what `hwnas profile --save` or `hwnas compare --json` wrote: which setting or device to
 * choose, the sweep, where the time goes, the money. Pictures are SVG that hwnas drew: shown as they are. */

/* An SVG as an element, in the page's colours: its own style stays outside. */
function picture(svg) {
    if (!svg)
        return null;
    const drawn = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
    drawn.querySelectorAll("style, script").forEach((style) => style.remove());
    drawn.classList.add("picture");
    drawn.removeAttribute("height");
    return el("div.scroll", null, document.adoptNode(drawn));
}

function significant(value, digits = 4) {
    if (!Number.isFinite(value))
        return "–";
    const decimals = value ? Math.min(9, Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value))))) : 0;
    return value.toLocaleString("en", {minimumFractionDigits: decimals, maximumFractionDigits: decimals});
}

function inUnits(value, units) {
    if (!Number.isFinite(value))
        return "–";
    const [scale, unit] = units.find(([s]) => Math.abs(value) >= s) || units[units.length - 1];
    return `${significant(value / scale)} ${unit}`;
}

const TIME_UNITS = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
const BYTE_UNITS = [[1 << 30, "GiB"], [1 << 20, "MiB"], [1 << 10, "KiB"], [1, "B"]];
const ENERGY_UNITS = [[1, "J"], [1e-3, "mJ"], [1e-6, "µJ"]];

function time(seconds) {
    return inUnits(seconds, TIME_UNITS);
}

/* "9.606 ms [9.211, 9.703]": of a row's median. */
function latency(row) {
    const {p50_seconds: p50, p50_low_seconds: low, p50_high_seconds: high} = row;
    if (!p50 || low === null || low === undefined || high === null || high === undefined)
        return time(p50);
    const [scale, unit] = TIME_UNITS.find(([s]) => p50 >= s) || TIME_UNITS[3];
    return `${significant(p50 / scale)} ${unit} [${significant(low / scale)}, ${significant(high / scale)}]`;
}

function settingOf(row) {
    return [row.shape, `batch ${row.batch}`, plural(row.threads, "thread"), row.streams > 1 ? plural(row.streams, "stream") : null, row.dtype]
        .filter(Boolean).join(", ");
}

function isMeasured(row) {
    return row.status === "ok" && row.p50_seconds > 0;
}

/* A table of rows that is sorted by a heading: columns are [heading, text of a row, key to sort by]. */
function sortableTable(rows, columns) {
    const body = el("tbody"), head = el("tr");
    let by = -1, isDown = false;
    const draw = () => {
        const sorted = [...rows];
        const compare = (a, b) => (a === null || a === undefined || b === null || b === undefined
            ? (a === null || a === undefined) - (b === null || b === undefined)
            : (isDown ? -1 : 1) * (typeof a === "string" ? a.localeCompare(b) : a - b));
        if (by >= 0)
            sorted.sort((a, b) => compare(columns[by][2](a), columns[by][2](b)));
        head.replaceChildren(...columns.map(([title], i) => el("th", {
            scope: "col", "aria-sort": by === i ? (isDown ? "descending" : "ascending") : "none"},
            el("button.link", {type: "button", click: () => {
                isDown = by === i && !isDown;
                by = i;
                draw();
            }}, title, by === i ? (isDown ? " ▼" : " ▲") : ""))));
        body.replaceChildren(...sorted.map((row) => el("tr", {class: row.isChosen ? "winner" : null},
            columns.map(([title, text]) => el(title ? "td" : "td.remark", null, text(row))))));
    };
    draw();
    return el("div.scroll", null, el("table.plain.numbers", null, el("thead", null, head), body));
}

/* Columns that all rows share say nothing but once. */
function varying(rows, columns) {
    return columns.filter(([, , key, always]) => always || new Set(rows.map(key)).size > 1);
}

/* What a reader of its numbers has to know; mostly nothing. */
function stateOf(row) {
    if (isMeasured(row))
        return row.unstable ? `unstable: ${row.doubt || "the machine was disturbed"}` : "";
    return `${row.status}: ${row.message || ""}${row.hint ? ` (${row.hint})` : ""}`;
}

function rowsTable(rows) {
    return sortableTable(rows, varying(rows, [
        ["model", (r) => r.model + (r.arch ? ` ${r.arch}` : ""), (r) => r.model + (r.arch || ""), true],
        ["device", (r) => r.device, (r) => r.device], ["precision", (r) => r.dtype, (r) => r.dtype],
        ["shape", (r) => r.shape || "", (r) => r.shape || ""],
        ["batch", (r) => String(r.batch), (r) => r.batch, true], ["threads", (r) => String(r.threads), (r) => r.threads, true],
        ["streams", (r) => String(r.streams), (r) => r.streams],
        ["latency p50", (r) => isMeasured(r) ? latency(r) : "–", (r) => r.p50_seconds, true],
        ["p99", (r) => time(r.p99_seconds), (r) => r.p99_seconds],
        ["items/s", (r) => significant(r.items_per_second), (r) => r.items_per_second, true],
        ["energy of a run", (r) => inUnits(r.energy_joules, ENERGY_UNITS), (r) => r.energy_joules],
        ["memory", (r) => inUnits(r.memory_bytes, BYTE_UNITS), (r) => r.memory_bytes],
        ["", stateOf, stateOf]]));
}

/* ---- Where the time goes ---- */

function layersSection(row, i, svg) {
    const layers = row.layers;
    if (!layers || !layers.list.length)
        return null;
    const whole = layers.whole_seconds || 1;
    const giga = (value) => (value > 0 && isFinite(value) ? significant(value / 1e9, 3) : "–");
    const roof = (l) => (l.least_seconds > 0 && l.p50_seconds > 0 ? l.least_seconds / l.p50_seconds : null);
    return section(`layers-${i}`, `Where the time of ${row.model} goes: ${row.device}, ${settingOf(row)}`,
        picture(svg),
        svg ? el("p.soft", null, "The line is what memory and arithmetic allow, the dashed one what the fastest cache allows. " +
            "A circle is a step: the larger, the more of the time. Point at one to see which.") : null,
        el("details", {open: i === 0}, el("summary", null, plural(layers.list.length, "step")), sortableTable(layers.list, [
            ["step", (l) => l.name, (l) => l.name], ["operators", (l) => l.operators, (l) => l.operators],
            ["time", (l) => time(l.p50_seconds), (l) => l.p50_seconds],
            ["of the whole", (l) => bar(l.p50_seconds / whole), (l) => l.p50_seconds],
            ["GFLOP/s", (l) => giga(2 * l.macs / l.p50_seconds), (l) => l.macs / l.p50_seconds],
            ["GB/s", (l) => giga(l.bytes / l.p50_seconds), (l) => l.bytes / l.p50_seconds],
            ["of the roof", (l) => (roof(l) === null ? "–" : bar(roof(l))), roof],
            ["bound by", (l) => l.bound || "–", (l) => l.bound || ""], ["as", (l) => l.how, (l) => l.how]])),
        row.command ? [el("p.soft", null, "Measure it again:"), command(row.command)] : null);
}

/* ---- A profile ---- */

function bestSettings(rows) {
    const measured = rows.filter(isMeasured), best = (better) => measured.reduce((a, b) => (better(b, a) ? b : a));
    if (!measured.length)
        return el("p", null, "Nothing could be measured: the table says why.");
    const soonest = best((a, b) => a.p50_seconds < b.p50_seconds), most = best((a, b) => a.items_per_second > b.items_per_second);
    const figureOf = (title, value, row) => el("div.figure", null, el("div.soft", null, title), el("div.big", null, value),
        el("div.soft", null, row.device, ", ", settingOf(row)), el("div.soft", null, row === soonest ? latency(row) : `a run takes ${latency(row)}`));
    const doubts = measured.filter((r) => r.unstable).length;
    return [el("div.figures", null, figureOf("Soonest answer", time(soonest.p50_seconds), soonest),
                figureOf("Most throughput", `${significant(most.items_per_second)} items/s`, most)),
            doubts ? el("p.note", null, `${plural(doubts, "row")} of ${measured.length} ${doubts === 1 ? "is" : "are"} marked as unstable: ` +
                "measure them again before you rely on them.") : null];
}

function byModel(rows) {
    const models = new Map();
    for (const row of rows) {
        const name = row.model + (row.arch ? ` ${row.arch}` : "");
        models.set(name, [...(models.get(name) || []), row]);
    }
    return models;
}

function recordedMachine(data) {
    const machine = data.machine || {}, facts = [];
    if (data.name)
        facts.push(["machine", data.name]);
    for (const d of Array.isArray(data.devices) ? data.devices : data.device ? [data.device] : [])
        facts.push([`device ${d.spelling}`, [d.name, d.library, d.isa].filter(Boolean).join(", ")]);
    for (const [key, value] of [...Object.entries(machine).filter(([k]) => k !== "conditions"), ...Object.entries(machine.conditions || {})])
        if (value !== null)
            facts.push([key.replace(/_/g, " "), key === "memory_bytes" ? inUnits(value, BYTE_UNITS) : valueText(value)]);
    facts.push(["source", data.source || "measured"], ["date", data.date || "–"], ["file", data.page.file], ["hwnas", data.page.hwnas]);
    return section("machine", "How it was measured", table(["", ""], facts.map(([k, v]) => [k, String(v)]), "plain.facts"));
}

function sweepSection(rows, pictures) {
    return section("sweep", "All settings", picture(pictures.sweep), rowsTable(rows));
}

function profilePage(data) {
    const {rows, page} = data, models = byModel(rows);
    return [el("div.pair", null, [...models].map(([name, own], i) => el("section.card.answer", {id: `model-${i}`, "aria-label": name},
                el("h1", null, name), bestSettings(own)))),
            sweepSection(rows, page.pictures),
            rows.map((row, i) => layersSection(row, i, page.pictures.rooflines[i])), recordedMachine(data)];
}

/* ---- A comparison ---- */

function price(value, currency) {
    return value === null || value === undefined ? "–" : `${significant(value)} ${currency || ""}`.trim();
}

/* Of training steps, not of inferences. */
function trains(data) {
    return Boolean(data.training) && data.training !== "none";
}

/* What `compare` ranks by: money where there are prices, else machines or requests. */
function measureOf(data) {
    if (trains(data) && data.currency)
        return {title: data.plan ? "cost of the training" : "cost of a million samples",
            value: (c) => (data.plan ? c.cost : c.cost_per_million), text: (v) => price(v, data.currency)};
    if (trains(data))
        return {title: data.plan ? "hours of the training" : "samples a second",
            value: (c) => (data.plan ? c.seconds / 3600 : c.samples_per_second), text: (v) => significant(v)};
    if (data.currency)
        return {title: "cost of a million requests", value: (c) => c.cost_per_million, text: (v) => price(v, data.currency)};
    if (data.load_per_second)
        return {title: "machines that the load needs", value: (c) => c.machines, text: (v) => String(v)};
    return {title: "requests a second that a machine serves", value: (c) => c.requests_per_second, text: (v) => significant(v)};
}

function question(data) {
    if (trains(data))
        return [`training steps with ${data.training}`,
                data.plan ? `${plural(data.plan.samples, "sample")}, ${plural(data.plan.epochs, "epoch")}` : null]
            .filter(Boolean).join("; ");
    return [data.target_seconds ? `${100 * data.percentile} % of requests within ${time(data.target_seconds)}` : "no target of latency",
            data.load_per_second ? `${significant(data.load_per_second)} requests a second` : "one machine, as full as may be",
            `busy for ${100 * data.utilisation_limit} % of the time at most`].join("; ");
}

function whyNotOthers(network, winner, measure) {
    const words = [], rival = network.choices[network.runner_up];
    if (rival && network.ratio)
        words.push(`${rival.device} (${settingOf(rival.measured)}) comes next: ${measure.text(measure.value(rival))}, ` +
            `${Math.abs(network.ratio - 1) < 0.005 ? "as the winner" : `${significant(network.ratio, 3)} times the winner's`}.`);
    const flaws = new Map();
    for (const choice of network.choices.filter((c) => c.flaw))
        flaws.set(choice.flaw, (flaws.get(choice.flaw) || 0) + 1);
    for (const [flaw, n] of flaws)
        words.push(`${plural(n, "setting")} will not do: ${flaw}.`);
    if (winner.measured.unstable)
        words.push("Its own measurement is marked as unstable: measure it again before you rely on it.");
    return words.length ? list(words) : el("p.soft", null, "There is no other.");
}

function answerOf(data, network, i) {
    const measure = measureOf(data), winner = network.choices[network.winner];
    const name = network.model + (network.arch ? ` ${network.arch}` : "");
    if (!winner)
        return el("section.card.answer", {id: `model-${i}`}, el("h1", null, `${name}: no device will do`),
            el("p", null, question(data)), list([...new Set(network.choices.map((c) => `${c.device}: ${c.flaw}`))]));
    return el("section.card.answer", {id: `model-${i}`},
        el("p.over", null, `${trains(data) ? "Train" : "Serve"} ${name} on`), el("h1", null, winner.device),
        el("p", null, settingOf(winner.measured), winner.source && winner.source !== "measured" ? `; figures: ${winner.source}` : ""),
        el("div.figures", null,
            el("div.figure", null, el("div.soft", null, measure.title), el("div.big", null, measure.text(measure.value(winner))),
               trains(data) ? null
                   : el("div.soft", null, `${plural(winner.machines, "machine")}, ${significant(winner.requests_per_second)} requests/s each at most`),
               data.currency ? el("div.soft", null, `${price(trains(data) ? winner.price_per_hour : winner.cost_per_hour, data.currency)} an hour`) : null),
            trains(data) ? el("div.figure", null, el("div.soft", null, "a step takes"), el("div.big", null, time(winner.measured.p50_seconds)),
                el("div.soft", null, `${significant(winner.samples_per_second)} samples/s`)) : el("div.figure", null, el("div.soft", null, `${100 * data.percentile} % of requests within`), el("div.big", null, time(winner.served_seconds)),
               el("div.soft", null, `batch full ${time(winner.fill_seconds)}, wait ${time(winner.wait_seconds)}`))),
        el("p.soft", null, question(data)),
        network.doubt ? el("p.note", null, network.doubt) : null,
        el("h2", null, "Why not another?"), whyNotOthers(network, winner, measure));
}

function choicesTable(data, network, i) {
    const measure = measureOf(data), good = network.choices.filter((c) => !c.flaw);
    const most = Math.max(...good.map((c) => measure.value(c) || 0));
    const rows = network.choices.map((c, k) => ({...c, isChosen: k === network.winner}));
    const amount = (c) => {
        const inner = el("span.fill"), value = measure.value(c);
        inner.style.width = `${most > 0 ? 100 * value / most : 0}%`;
        return el("span.bar", null, inner, el("span.share", null, measure.text(value)));
    };
    return section(`choices-${i}`, `${network.model}: ${measure.title}`, sortableTable(rows, varying(rows, [
        ["device", (c) => c.device, (c) => c.device, true], ["setting", (c) => settingOf(c.measured), (c) => settingOf(c.measured), true],
        [measure.title, (c) => (c.flaw ? "–" : amount(c)), (c) => (c.flaw ? null : measure.value(c)), true],
        ...(trains(data) ? [
            ["samples/s", (c) => significant(c.samples_per_second), (c) => c.samples_per_second],
            [`speed / ${data.base}`, (c) => significant(c.speed_to_base, 3), (c) => c.speed_to_base],
            ["hours", (c) => significant(c.seconds / 3600), (c) => c.seconds]] : [
            ["machines", (c) => (c.flaw ? "–" : String(c.machines)), (c) => c.machines],
            ["requests/s of a machine", (c) => significant(c.requests_per_second), (c) => c.requests_per_second],
            [`served within (${100 * data.percentile} %)`, (c) => time(c.served_seconds), (c) => c.served_seconds, true]]),
        ["an hour of one", (c) => price(c.price_per_hour, data.currency), (c) => c.price_per_hour],
        [trains(data) ? "p50 of a step" : "latency p50 of a run", (c) => latency(c.measured), (c) => c.measured.p50_seconds],
        ["", (c) => c.flaw || stateOf(c.measured), (c) => c.flaw || stateOf(c.measured)]])));
}

function comparisonPage(data) {
    const rows = data.networks.flatMap((n) => n.choices.map((c) => ({...c.measured, device: c.device})));
    return [el("div.pair", null, data.networks.map((n, i) => answerOf(data, n, i))), data.networks.map((n, i) => choicesTable(data, n, i)),
            sweepSection(rows, data.page.pictures),
            rows.map((row, i) => layersSection(row, i, data.page.pictures.rooflines[i])),
            section("machine", "What was asked", el("p", null, question(data)),
                    el("p.soft", null, `${data.page.file}, hwnas ${data.page.hwnas}`))];
}

const RECORDED_PAGES = {"hwnas.profile": profilePage, "hwnas.comparison": comparisonPage};

function buildRecorded(data, root) {
    const title = baseName(data.page.file);
    document.title = `${title}: hwnas report`;
    root.replaceChildren(
        el("header", null, el("div", null, el("span.brand", null, "hwnas"), el("span.name", null, title),
               el("span.soft", null, [data.machine && data.machine.processor, data.date].filter(Boolean).join(" · "))),
           el("nav.screen", {"aria-label": "Sections"}, themeButton())),
        el("main", null, RECORDED_PAGES[data.format](data)), footer(data.page.hwnas));
}
