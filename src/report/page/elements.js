/* elements.js: making elements, and writing numbers. Text goes in as text: no name becomes markup. */

/* el("p.note", {title: "x"}, "words", child, ...): functions among the attributes listen. */
function el(what, attributes, ...children) {
    const [tag, ...classes] = what.split(".");
    const node = document.createElement(tag);
    if (classes.length)
        node.className = classes.join(" ");
    for (const [name, value] of Object.entries(attributes || {}))
        if (typeof value === "function")
            node.addEventListener(name, value);
        else if (value !== null && value !== undefined && value !== false)
            node.setAttribute(name, value === true ? "" : value);
    node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
    return node;
}

function section(id, title, ...children) {
    return el("section.card", {id, "aria-labelledby": `${id}-title`},
              el("h2", {id: `${id}-title`}, title), children);
}

/* A table with a heading for each column; cells are text, elements, or lists of both. */
function table(headings, rows, className) {
    return el("div.scroll", null, el("table." + (className || "plain"), null,
        el("thead", null, el("tr", null, headings.map((h) => el("th", {scope: "col"}, h)))),
        el("tbody", null, rows.map((row) => el("tr", null, row.map((cell) => el("td", null, cell)))))));
}

/* A command, to be copied. */
function command(text) {
    const code = el("code", null, text);
    const button = el("button.quiet", {
        type: "button", "aria-label": "Copy the command", click: async () => {
            try {
                await navigator.clipboard.writeText(text);
                button.textContent = "Copied";
            } catch {
                getSelection().selectAllChildren(code);
                button.textContent = "Selected";
            }
            setTimeout(() => { button.textContent = "Copy"; }, 1500);
        }}, "Copy");
    return el("div.command", null, code, button);
}

/* A word for a POSIX shell. */
function quoted(word) {
    return /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'";
}

/* As many decimals as the metric has, and as small values need. */
function decimalsFor(metric, value, width) {
    let decimals = metric.decimals;
    if (value && Math.abs(value) < 1)
        decimals = Math.max(decimals, 1 - Math.floor(Math.log10(Math.abs(value))));
    if (width > 0)
        decimals = Math.max(decimals, -Math.floor(Math.log10(width)));
    return Math.min(decimals, 9);
}

function number(metric, value, width) {
    return value === null || value === undefined ? "–"
        : value.toFixed(decimalsFor(metric, value, width));
}

function withUnit(metric, value, width) {
    return number(metric, value, width) + (metric.unit && value !== null ? " " + metric.unit : "");
}

/* "9.606 ms [9.211, 9.703]", "66.00 % ± 0.22": of a trial. */
function reading(metric, trial) {
    const value = metric.value(trial), ends = metric.interval(trial);
    if (value === null || !ends || ends[0] === ends[1])
        return withUnit(metric, value);
    const width = ends[1] - ends[0];
    return withUnit(metric, value, width) + " " + spread(metric, trial);
}

/* Of predictions a standard deviation, of the rest the ends of the interval. */
function spread(metric, trial) {
    const ends = metric.interval(trial);
    if (!ends || ends[0] === ends[1])
        return "";
    const width = ends[1] - ends[0], decimals = decimalsFor(metric, metric.value(trial), width);
    return isPrediction(metric, trial) ? `± ${(width / 2).toFixed(decimals)}`
        : `[${ends[0].toFixed(decimals)}, ${ends[1].toFixed(decimals)}]`;
}

function isPrediction(metric, trial) {
    return ["predicted", "predicted-int8", "predicted-floats", "predicted-curve", "extrapolated", "extrapolated-size", "left-out"].includes(metric.source(trial));
}

/* How much more `b` is than `a`: "+0.55 %" of percentages, "12.0 %" of the rest. */
function difference(metric, a, b) {
    if (a === null || b === null)
        return "–";
    const sign = b > a ? "+" : b < a ? "−" : "±";
    if (metric.unit === "%" || !a)
        return sign + number(metric, Math.abs(b - a)) + (metric.unit === "%" ? " points" : "");
    return sign + (100 * Math.abs(b / a - 1)).toFixed(1) + " %";
}

function plural(n, word) {
    return `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
}

function minutes(seconds) {
    return seconds < 90 ? `${seconds.toFixed(seconds < 10 ? 1 : 0)} s` : seconds < 5400 ? `${(seconds / 60).toFixed(1)} minutes`
        : `${(seconds / 3600).toFixed(1)} hours`;
}
