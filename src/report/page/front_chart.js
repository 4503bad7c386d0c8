/* front_chart.js: all trials by two metrics: the front with its intervals, what it dominates, what misses a limit,
 * was left out or only estimated, and the limits. */

const KINDS = [ /* in the order in which they are drawn */
    {kind: "estimated", title: "estimated", colour: "estimated", shape: "diamond"},
    {kind: "left-out", title: "left out by its size", colour: "dominated", shape: "cross"},
    {kind: "infeasible", title: "misses a limit", colour: "infeasible", shape: "cross"},
    {kind: "partial", title: "not on all samples", colour: "estimated", shape: "cross"},
    {kind: "dominated", title: "dominated", colour: "dominated", shape: "dot"},
    {kind: "front", title: "on the front", colour: "front", shape: "circle"},
];

const SHAPES = {
    dot: (c, x, y, r) => c.fillRect(x - 0.8 * r, y - 0.8 * r, 1.6 * r, 1.6 * r),
    circle: (c, x, y, r) => {
        c.beginPath();
        c.arc(x, y, 1.5 * r, 0, 2 * Math.PI);
        c.fill();
    },
    diamond: (c, x, y, r) => {
        c.beginPath();
        c.moveTo(x, y - 1.3 * r);
        c.lineTo(x + 1.3 * r, y);
        c.lineTo(x, y + 1.3 * r);
        c.lineTo(x - 1.3 * r, y);
        c.closePath();
        c.stroke();
    },
    cross: (c, x, y, r) => {
        c.beginPath();
        c.moveTo(x - r, y - r);
        c.lineTo(x + r, y + r);
        c.moveTo(x - r, y + r);
        c.lineTo(x + r, y - r);
        c.stroke();
    },
};

function quantile(sorted, q) {
    return sorted[Math.min(sorted.length - 1, Math.max(0, Math.round(q * (sorted.length - 1))))];
}

/* One mark in the place of all that would cover each other, as strong as they are together: a browser takes half a
 * second for a hundred thousand. */
class Crowd {
    constructor(c, shape, r) {
        const side = Math.max(1, Math.round(1.6 * r)); /* whole pixels: others draw a pattern of their own */
        Object.assign(this, {c, shape, side, r: side / 1.6});
        this.columns = Math.ceil(c.canvas.width / this.side);
        this.rows = Math.ceil(c.canvas.height / this.side);
        this.counts = new Uint32Array(this.columns * this.rows);
    }

    add(left, top) {
        const column = Math.floor(left / this.side), row = Math.floor(top / this.side);
        if (column >= 0 && column < this.columns && row >= 0 && row < this.rows)
            this.counts[row * this.columns + column]++;
    }

    draw(strength) {
        this.counts.forEach((n, at) => {
            if (!n)
                return;
            this.c.globalAlpha = 1 - (1 - strength) ** n;
            this.shape(this.c, (at % this.columns + 0.5) * this.side, (Math.floor(at / this.columns) + 0.5) * this.side, this.r);
        });
    }
}

class FrontChart {
    /* `view` has x, y and selected; onPick(trial) is told what somebody points at and wants to see;
     * `before` is the chart whose place this one takes, if there was one. */
    constructor(study, view, onPick, before) {
        this.study = study;
        this.view = view;
        this.onPick = onPick;
        this.hidden = before ? before.hidden : new Set();
        this.isWhole = Boolean(before && before.isWhole);
        this.hover = -1;
        this.holder = el("div.plot", {
            tabindex: "0", role: "application", keydown: (e) => this.onKey(e),
            "aria-label": "Chart of all trials. Arrow keys go along the front, Enter shows a network. " +
                "The table of trials below has the same numbers."});
        this.tip = el("div.tip", {hidden: true, role: "status"});
        this.outside = el("p.note.small");
        this.root = el("div.chart", null, this.controls(), this.holder, this.legend(), this.outside);
        keepChart(this.holder, (width) => this.make(width));
    }

    controls() {
        const {study, view} = this;
        const numeric = study.metrics;
        const picker = (label, key) => el("label", null, label + " ", el("select", {
            change: (e) => {
                view[key] = study.metric(e.target.value);
                redrawCharts();
            }}, numeric.map((m) => el("option", {value: m.name, selected: m === view[key]}, m.name))));
        this.whole = el("button.quiet", {type: "button", "aria-pressed": String(this.isWhole), click: () => this.showAll()}, "Show all");
        return el("div.controls.screen", null, picker("across", "x"), picker("up", "y"), this.whole,
                  el("span.soft", null, "Drag to zoom, double-click to go back"));
    }

    showAll() {
        this.isWhole = !this.isWhole;
        this.whole.setAttribute("aria-pressed", this.isWhole);
        redrawCharts();
    }

    legend() {
        const there = new Set(Array.from({length: this.study.n}, (_, i) => this.study.kind(i)));
        return el("div.legend", {role: "group", "aria-label": "What the chart shows"},
            KINDS.filter((k) => there.has(k.kind)).reverse().map((k) => el("button.quiet", {
                type: "button", "aria-pressed": String(!this.hidden.has(k.kind)), "data-kind": k.kind, click: (e) => {
                    const isShown = this.hidden.delete(k.kind);
                    if (!isShown)
                        this.hidden.add(k.kind);
                    e.currentTarget.setAttribute("aria-pressed", isShown);
                    redrawCharts();
                }}, el(`span.mark.${k.shape}.${k.colour}`), k.title)));
    }

    shown(trial) {
        const {x, y} = this.view;
        return x.value(trial) !== null && y.value(trial) !== null && !this.hidden.has(this.study.kind(trial));
    }

    /* Where most trials are, the winner and the limits; or everything. */
    range(metric) {
        const {study} = this, must = [], values = new Float64Array(study.n);
        let n = 0;
        for (let i = 0; i < study.n; i++)
            if (this.shown(i))
                values[n++] = metric.value(i);
        if (!n)
            return [0, 1];
        for (const i of [study.winner, study.original])
            if (i >= 0 && metric.value(i) !== null)
                must.push(metric.value(i), ...(metric.interval(i) || []));
        for (const limit of study.limits)
            if (limit.metric === metric.name)
                must.push(limit.value);
        const front = study.front.map((i) => metric.value(i)).filter((v) => v !== null).sort((a, b) => a - b);
        const q = this.isWhole ? 0 : 0.03;
        if (front.length)
            must.push(quantile(front, q), quantile(front, 1 - q));
        const sorted = values.subarray(0, n).sort();
        const low = quantile(sorted, q), high = quantile(sorted, 1 - q);
        return padded([Math.min(low, ...must), Math.max(high, ...must)], 0.06);
    }

    make(width) {
        const {x, y} = this.view;
        this.drawnView = null;
        const height = Math.round(Math.min(520, Math.max(300, width * 0.6)));
        this.plot = cloud(this.holder, width, {
            x: this.range(x), y: this.range(y), xLabel: x.label, yLabel: y.label, height,
            draw: (u) => this.draw(u), over: (u) => this.listen(u)});
        return this.plot;
    }

    /* What is selected is another one. */
    refresh() {
        if (this.plot)
            this.plot.redraw(false);
    }

    draw(u) {
        const c = u.ctx, px = toPixels(u, "x"), py = toPixels(u, "y");
        this.scale = devicePixelRatio;
        c.save();
        c.beginPath();
        c.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
        c.clip();
        this.drawLimits(u, px, py);
        this.drawTrials(u, px, py);
        this.drawMarked(u, px, py);
        c.restore();
        this.tellOutside(u);
    }

    drawLimits(u, px, py) {
        const c = u.ctx, {left, top, width, height} = u.bbox;
        for (const limit of this.study.limits) {
            const isX = limit.metric === this.view.x.name, isY = limit.metric === this.view.y.name;
            if (!isX && !isY)
                continue;
            const at = isX ? px(limit.value) : py(limit.value);
            c.fillStyle = c.strokeStyle = colour("limit");
            c.lineWidth = 1.5 * this.scale;
            c.globalAlpha = 0.07;
            if (isX)
                c.fillRect(...(limit.upper ? [at, top, left + width - at, height] : [left, top, at - left, height]));
            else
                c.fillRect(...(limit.upper ? [left, top, width, at - top] : [left, at, width, top + height - at]));
            c.globalAlpha = 1;
            c.setLineDash([6 * this.scale, 4 * this.scale]);
            c.beginPath();
            c.moveTo(isX ? at : left, isX ? top : at);
            c.lineTo(isX ? at : left + width, isX ? top + height : at);
            c.stroke();
            c.setLineDash([]);
            c.font = `${12 * this.scale}px system-ui, sans-serif`;
            c.textAlign = isX && at > left + width / 2 ? "right" : "left";
            c.fillText(limit.text, isX ? at + (c.textAlign === "right" ? -6 : 6) * this.scale : left + 6 * this.scale,
                       isX ? top + height - 8 * this.scale : at - 6 * this.scale);
        }
    }

    /* Kept as a picture: pointing at things draws again what is marked, not a hundred thousand trials. */
    drawTrials(u, px, py) {
        const {x, y} = u.scales, view = [x.min, x.max, y.min, y.max].join();
        if (this.drawnView !== view) {
            this.drawn = el("canvas", {width: u.ctx.canvas.width, height: u.ctx.canvas.height});
            const c = this.drawn.getContext("2d");
            for (const kind of KINDS)
                if (!this.hidden.has(kind.kind))
                    this.drawKind(c, kind, px, py);
            this.drawnView = view;
        }
        u.ctx.drawImage(this.drawn, 0, 0);
    }

    drawKind(c, kind, px, py) {
        const {study} = this, {x, y} = this.view, r = (study.n > 20000 ? 1.5 : 2.6) * this.scale;
        const isFront = kind.kind === "front", shape = SHAPES[kind.shape];
        c.fillStyle = c.strokeStyle = colour(kind.colour);
        c.lineWidth = 1.2 * this.scale;
        c.globalAlpha = isFront ? 1 : study.n > 5000 ? 0.25 : 0.55;
        if (isFront)
            this.drawFrontLine(c, px, py);
        const crowd = !isFront && study.n > 20000 ? new Crowd(c, shape, r) : null;
        for (let i = 0; i < study.n; i++) {
            if (study.kind(i) !== kind.kind || x.value(i) === null || y.value(i) === null)
                continue;
            if (isFront)
                this.drawWhiskers(c, i, px, py);
            if (crowd)
                crowd.add(px(x.value(i)), py(y.value(i)));
            else
                shape(c, px(x.value(i)), py(y.value(i)), r);
        }
        if (crowd)
            crowd.draw(c.globalAlpha);
        c.globalAlpha = 1;
    }

    drawFrontLine(c, px, py) {
        const {x, y} = this.view;
        const line = this.study.front.filter((i) => this.shown(i)).sort((a, b) => x.value(a) - x.value(b));
        c.globalAlpha = 0.35;
        c.beginPath();
        line.forEach((i, k) => c[k ? "lineTo" : "moveTo"](px(x.value(i)), py(y.value(i))));
        c.stroke();
        c.globalAlpha = 1;
    }

    drawWhiskers(c, trial, px, py) {
        const {x, y} = this.view, tick = 3 * this.scale;
        const ex = x.interval(trial), ey = y.interval(trial), cx = px(x.value(trial)), cy = py(y.value(trial));
        c.globalAlpha = 0.55;
        c.beginPath();
        if (ex)
            for (const [a, b] of [[px(ex[0]), px(ex[1])]]) {
                c.moveTo(a, cy);
                c.lineTo(b, cy);
                c.moveTo(a, cy - tick);
                c.lineTo(a, cy + tick);
                c.moveTo(b, cy - tick);
                c.lineTo(b, cy + tick);
            }
        if (ey) {
            c.moveTo(cx, py(ey[0]));
            c.lineTo(cx, py(ey[1]));
        }
        c.stroke();
        c.globalAlpha = 1;
    }

    /* The winner, the original, and what is pointed at. */
    drawMarked(u, px, py) {
        const c = u.ctx, {x, y, selected} = this.view;
        const ring = (i, name, radius, label) => {
            if (i < 0 || x.value(i) === null || y.value(i) === null)
                return;
            c.strokeStyle = c.fillStyle = colour(name);
            c.lineWidth = 2 * this.scale;
            c.beginPath();
            c.arc(px(x.value(i)), py(y.value(i)), radius * this.scale, 0, 2 * Math.PI);
            c.stroke();
            if (!label)
                return;
            const isRight = px(x.value(i)) > u.bbox.left + u.bbox.width * 0.3;
            c.font = `600 ${12.5 * this.scale}px system-ui, sans-serif`;
            c.textAlign = isRight ? "right" : "left";
            c.fillText(label, px(x.value(i)) + (isRight ? -10 : 10) * this.scale, py(y.value(i)) - 9 * this.scale);
        };
        ring(this.study.original, "text", 7, "original");
        ring(this.study.winner, "winner", 8, "winner");
        if (selected !== this.study.winner)
            ring(selected, "text", 8, `trial ${selected}`);
        if (this.hover >= 0)
            ring(this.hover, "text", 10, "");
    }

    tellOutside(u) {
        const {x, y} = this.view, {min: x0, max: x1} = u.scales.x, {min: y0, max: y1} = u.scales.y;
        const n = this.study.front.filter((i) => this.shown(i) && (x.value(i) < x0 || x.value(i) > x1 ||
                                                                    y.value(i) < y0 || y.value(i) > y1)).length;
        this.outside.textContent = n ? `${plural(n, "network")} of the front lie${n === 1 ? "s" : ""} outside of what is shown.` : "";
    }

    /* ---- Pointing at things ---- */

    listen(u) {
        u.over.append(this.tip);
        u.over.addEventListener("mousemove", (e) => this.point(u, this.nearest(u, e.offsetX, e.offsetY)));
        u.over.addEventListener("mouseleave", () => this.point(u, -1));
        let from = null;
        u.over.addEventListener("mousedown", (e) => { from = e; });
        u.over.addEventListener("click", (e) => {
            const isDrag = from && Math.hypot(e.clientX - from.clientX, e.clientY - from.clientY) >= 6;
            const near = isDrag ? -1 : this.nearest(u, e.offsetX, e.offsetY);
            if (near >= 0)
                this.onPick(near);
        });
    }

    /* The trial drawn within some pixels; those of the front come first. */
    nearest(u, left, top) {
        const {x, y} = this.view, px = toPixels(u, "x"), py = toPixels(u, "y"), ratio = devicePixelRatio;
        const cx = left * ratio + u.bbox.left, cy = top * ratio + u.bbox.top;
        let best = -1, least = (14 * ratio) ** 2;
        for (let i = 0; i < this.study.n; i++) {
            if (!this.shown(i))
                continue;
            const d = ((px(x.value(i)) - cx) ** 2 + (py(y.value(i)) - cy) ** 2) * (this.study.kind(i) === "front" ? 0.5 : 1);
            if (d < least) {
                least = d;
                best = i;
            }
        }
        return best;
    }

    point(u, trial) {
        if (trial !== this.hover) {
            this.hover = trial;
            u.redraw(false);
        }
        this.tip.hidden = trial < 0;
        u.over.style.cursor = trial < 0 ? "crosshair" : "pointer";
        if (trial < 0)
            return;
        const {study, view} = this;
        this.tip.replaceChildren(
            el("strong", null, `Trial ${trial}`), ` ${titleOfKind(study.kind(trial))}`,
            ...[view.y, view.x].map((m) => el("div", null, `${m.name} ${reading(m, trial)} ${m.source(trial)}`)),
            el("div.mono", null, study.trials.arch[trial]));
        const left = u.valToPos(view.x.value(trial), "x"), top = u.valToPos(view.y.value(trial), "y");
        this.tip.style.left = `${Math.max(0, Math.min(left + 14, u.over.clientWidth - this.tip.offsetWidth - 4))}px`;
        this.tip.style.top = `${top + 14 + this.tip.offsetHeight > u.over.clientHeight ? top - 14 - this.tip.offsetHeight : top + 14}px`;
    }

    onKey(e) {
        const {x} = this.view, step = {ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1}[e.key];
        if (!this.plot)
            return;
        if (e.key === "Enter" && this.hover >= 0)
            this.onPick(this.hover);
        else if (e.key === "Escape")
            this.point(this.plot, -1);
        else if (step) {
            const line = this.study.front.filter((i) => this.shown(i)).sort((a, b) => x.value(a) - x.value(b));
            const from = line.indexOf(this.hover >= 0 ? this.hover : this.view.selected);
            if (line.length)
                this.point(this.plot, line[Math.max(0, Math.min(line.length - 1, from + step))]);
        } else
            return;
        e.preventDefault();
    }
}

function titleOfKind(kind) {
    const row = KINDS.find((k) => k.kind === kind);
    return row ? row.title : kind;
}
