/* chart.js: charts by uPlot: axes, zoom and lines are its own, clouds of points are drawn by a function. */

const charts = []; /* to be made again when colours change */

function hasCharts() {
    return typeof uPlot === "function";
}

function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

function noChart() {
    return el("p.note", null, "No chart: this hwnas was built without uPlot, which scripts/install-deps fetches.");
}

/* Says `make(width)` a width to make a uPlot for, now, when the width changes and when the colours do. */
function keepChart(holder, make) {
    if (!hasCharts()) {
        holder.append(noChart());
        return;
    }
    let plot = null;
    const draw = () => {
        if (plot)
            plot.destroy();
        plot = holder.clientWidth > 0 ? make(holder.clientWidth) : null;
    };
    charts.push(draw);
    let width = 0;
    new ResizeObserver(() => {
        if (holder.clientWidth !== width) {
            width = holder.clientWidth;
            requestAnimationFrame(draw);
        }
    }).observe(holder);
}

function redrawCharts() {
    charts.forEach((draw) => draw());
}

/* uPlot's own have three decimals at most, which latencies of tiny networks have not. A tick that uPlot leaves out is null. */
function tickTexts(all) {
    const ticks = all.filter((tick) => tick !== null);
    const near = 1e-6 * Math.min(...ticks.slice(1).map((tick, i) => tick - ticks[i]), Math.abs(ticks[0]) || Infinity);
    let decimals = 0;
    while (decimals < 12 && ticks.some((tick) => Math.abs(tick - Number(tick.toFixed(decimals))) > near))
        decimals++;
    return all.map((tick) => tick === null ? "" : tick.toLocaleString("en", {maximumFractionDigits: decimals}));
}

function axis(label) {
    return {
        values: (u, ticks) => tickTexts(ticks),
        label, labelSize: 22, labelFont: "13px system-ui, sans-serif", font: "12px system-ui, sans-serif",
        stroke: colour("text-soft"), grid: {stroke: colour("line"), width: 1},
        ticks: {stroke: colour("line"), width: 1, size: 4},
    };
}

function axisAcross(label) {
    return {...axis(label), size: 34};
}

/* As wide as its longest text. */
function axisUp(label) {
    return {...axis(label), size: (u, texts) => Math.max(58, 16 + 7 * Math.max(...(texts || [""]).map((text) => text.length)))};
}

/* Pixels of a value on a canvas, which is much faster than asking uPlot for each. */
function toPixels(u, scale) {
    const zero = u.valToPos(u.scales[scale].min, scale, true), one = u.valToPos(u.scales[scale].max, scale, true);
    const {min, max} = u.scales[scale];
    return (value) => zero + (value - min) / (max - min) * (one - zero);
}

function padded([low, high], share) {
    const room = (high - low || Math.abs(high) || 1) * share;
    return [low - room, high + room];
}

/* Two axes that can be zoomed into, and what `draw(u)` puts there. */
function cloud(holder, width, {x, y, xLabel, yLabel, height, draw, over}) {
    const none = () => null;
    return new uPlot({
        width, height, legend: {show: false}, padding: [12, 24, 0, 0],
        /* A hand trembles: below 6 pixels it is a click, and whoever listens for clicks is told. */
        cursor: {points: {show: false}, drag: {x: true, y: true, uni: 20, dist: 6, click: () => {}}},
        scales: {x: {time: false, range: (u, low, high) => [low, high]}, y: {range: (u, low, high) => [low, high]}},
        axes: [axisAcross(xLabel), axisUp(yLabel)],
        series: [{}, {paths: none, points: {show: false}}],
        hooks: {draw: [draw], ready: over ? [over] : []},
    }, [x, y], holder);
}

/* A line that rises in steps. */
function stepChart(holder, {xs, ys, xLabel, yLabel}) {
    keepChart(holder, (width) => new uPlot({
        width, height: 240, legend: {show: true, live: true}, padding: [12, 24, 0, 0], cursor: {drag: {x: true, y: false}},
        scales: {x: {time: false}}, axes: [axisAcross(xLabel), axisUp(yLabel)],
        series: [{label: xLabel}, {label: yLabel, stroke: colour("front"), width: 2, points: {show: false},
                                   paths: uPlot.paths.stepped({align: 1})}],
    }, [xs, ys], holder));
}

/* What was thought against what was found; on the line they agree. */
function agreementChart(holder, {xs, ys, xLabel, yLabel}) {
    let low = Infinity, high = -Infinity;
    for (const v of [...xs, ...ys]) {
        low = Math.min(low, v);
        high = Math.max(high, v);
    }
    const range = padded([low, high], 0.05);
    keepChart(holder, (width) => cloud(holder, width, {
        x: range, y: range, xLabel, yLabel, height: Math.min(360, width), draw: (u) => {
            const px = toPixels(u, "x"), py = toPixels(u, "y"), c = u.ctx, r = 2.5 * devicePixelRatio;
            c.save();
            c.strokeStyle = colour("text-soft");
            c.beginPath();
            c.moveTo(px(range[0]), py(range[0]));
            c.lineTo(px(range[1]), py(range[1]));
            c.stroke();
            c.fillStyle = colour("front");
            c.globalAlpha = xs.length > 2000 ? 0.3 : 0.6;
            for (let i = 0; i < xs.length; i++)
                c.fillRect(px(xs[i]) - r, py(ys[i]) - r, 2 * r, 2 * r);
            c.restore();
        }}));
}
