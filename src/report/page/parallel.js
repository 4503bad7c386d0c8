/* parallel.js: each network as a line across its choices and what it came to: what the front shares. Axes are uPlot's;
 * lines are kept by a value of a choice or a range of a metric, by mouse or by keys. */

const MOST_AXES = 16, MOST_LINES = 2000; /* more than these nobody tells apart */

/* How the labels of a place stand along its axis: numbers by size, others by name. */
function compareLabels(a, b) {
    return a.localeCompare(b, "en", {numeric: true});
}

/* How differently the front and all trials choose at a place, in bits (Kullback-Leibler divergence). */
function surprise(labels, ofAll, ofFront) {
    const count = (list) => list.reduce((counts, label) => counts.set(label, (counts.get(label) || 0) + 1), new Map());
    const all = count(ofAll), front = count(ofFront);
    return labels.reduce((sum, label) => {
        const p = (front.get(label) || 0) / (ofFront.length || 1), q = (all.get(label) || 0) / (ofAll.length || 1);
        return p > 0 && q > 0 ? sum + p * Math.log2(p / q) : sum;
    }, 0);
}

class ParallelLines {
    constructor(study) {
        this.study = study;
        this.trials = this.chooseTrials();
        this.genes = new Map(this.trials.map((i) => [i, new Map(study.genes(i))]));
        this.axes = [...this.choiceAxes(), ...this.metricAxes()];
        this.kept = this.axes.map(() => null); /* of each axis who passes: a label or several, or [low, high] */
        this.at = 0;
        this.holder = el("div.plot", {
            tabindex: "0", role: "application", keydown: (e) => this.onKey(e),
            "aria-label": "Networks as lines across their choices. Left and right go to another axis, up and down keep one of " +
                "its values, Escape keeps all again. What is kept is told below."});
        this.selects = this.axes.map((axis, i) => this.select(axis, i));
        this.told = el("div", {role: "status", id: "kept"});
        this.root = el("div", null,
            el("div.controls.screen", null, this.selects.map((s, i) => el("label", null, this.axes[i].name + " ", s)),
               el("button.quiet", {type: "button", click: () => this.clear()}, "Keep all")),
            el("div.scroll", null, this.holder), this.told);
        this.holder.style.minWidth = `${64 * this.axes.length}px`;
        keepChart(this.holder, (width) => this.make(width));
        this.tell();
    }

    /* The front, and as many others as can be told apart, evenly along the search. */
    chooseTrials() {
        const {study} = this, others = [];
        for (let i = 0; i < study.n; i++)
            if (study.isOk(i) && study.kind(i) === "dominated")
                others.push(i);
        const step = Math.max(1, Math.ceil(others.length / MOST_LINES));
        return [...others.filter((_, k) => k % step === 0), ...study.front];
    }

    /* Of places where networks differ those that the front chooses differently, in the order of the space. */
    choiceAxes() {
        const {study, trials} = this;
        const axes = study.places.map((name, place) => {
            const of = (i) => this.genes.get(i).get(name), ofAll = trials.map(of).filter((label) => label !== undefined);
            const labels = [...new Set(ofAll)].sort(compareLabels);
            return {name, place, labels, of, surprise: surprise(labels, ofAll, study.front.map(of).filter((l) => l !== undefined))};
        }).filter((axis) => axis.labels.length > 1);
        return axes.sort((a, b) => b.surprise - a.surprise).slice(0, MOST_AXES - 2).sort((a, b) => a.place - b.place);
    }

    metricAxes() {
        const {study, trials} = this;
        return [...new Set([study.cost, study.goal])].filter(Boolean).map((metric) => {
            const values = trials.map((i) => metric.value(i)).filter((v) => v !== null);
            const low = values.reduce((a, b) => Math.min(a, b), Infinity), high = values.reduce((a, b) => Math.max(a, b), -Infinity);
            const cut = (k) => low + (high - low) * k / 4;
            return {name: metric.name, metric, low, high, of: (i) => metric.value(i),
                    ranges: [0, 1, 2, 3].map((k) => [cut(k), k === 3 ? high : cut(k + 1)])};
        });
    }

    select(axis, i) {
        const options = axis.labels ? axis.labels.map((label) => label)
            : axis.ranges.map((r) => `${number(axis.metric, r[0])} to ${withUnit(axis.metric, r[1])}`);
        return el("select", {"data-axis": axis.name, change: (e) => this.keep(i, this.choiceOf(axis, e.target.selectedIndex - 1))},
                  ["all", ...options].map((text) => el("option", null, text)));
    }

    choiceOf(axis, k) {
        return k < 0 ? null : axis.labels ? axis.labels[k] : axis.ranges[k];
    }

    /* ---- What is kept ---- */

    keep(i, value) {
        const axis = this.axes[i], list = axis.labels || axis.ranges;
        this.kept[i] = value;
        this.at = i;
        const k = value === null ? 0 : 1 + list.indexOf(value);
        this.selects[i].selectedIndex = k; /* -1, nothing, of a range that was drawn */
        if (k === 0 && value !== null)
            this.selects[i].selectedIndex = -1;
        this.update();
    }

    clear() {
        this.kept.fill(null);
        this.selects.forEach((s) => { s.selectedIndex = 0; });
        this.update();
    }

    update() {
        if (this.plot)
            this.plot.redraw(false);
        this.tell();
    }

    passes(trial) {
        return this.axes.every((axis, i) => {
            const kept = this.kept[i], value = axis.of(trial);
            return kept === null || (axis.labels ? (Array.isArray(kept) ? kept.includes(value) : value === kept)
                : value !== null && value >= kept[0] && value <= kept[1]);
        });
    }

    tell() {
        const {study} = this, front = study.front.filter((i) => this.passes(i));
        const all = this.trials.filter((i) => this.passes(i)).length;
        const isKept = this.kept.some((k) => k !== null);
        const words = this.axes.map((axis, i) => this.keptWords(axis, this.kept[i])).filter(Boolean).join(" and ");
        this.told.replaceChildren(
            el("p", null, isKept ? `${words}: ` : "", `${plural(front.length, "network")} of the front`,
               isKept ? ` of ${study.front.length}` : "", `, ${(all - front.length).toLocaleString("en")} dominated.`),
            front.length && front.length <= 12 ? el("p", null, front.map((i, k) => [k ? ", " : "", trialLink(i)])) : "",
            list(isKept ? [] : this.shared()));
    }

    keptWords(axis, kept) {
        if (kept === null)
            return "";
        return axis.labels ? `${axis.name} = ${Array.isArray(kept) ? kept.join(" or ") : kept}`
            : `${axis.name} from ${number(axis.metric, kept[0])} to ${withUnit(axis.metric, kept[1])}`;
    }

    /* What most of the front chooses, and others less often. */
    shared() {
        const {study, trials, axes} = this, n = study.front.length;
        const others = trials.filter((i) => !study.has(i, IS_ON_FRONT));
        const found = axes.filter((axis) => axis.labels).flatMap((axis) => axis.labels.map((label) => {
            const share = (list) => list.filter((i) => axis.of(i) === label).length / (list.length || 1);
            return {axis, label, front: share(study.front), others: share(others)};
        })).filter((f) => n > 2 && f.front >= 0.7 && f.front > f.others + 0.15);
        return found.sort((a, b) => (b.front - b.others) - (a.front - a.others)).slice(0, 6).map((f) =>
            `${f.axis.name} = ${f.label} in ${(100 * f.front).toFixed(0)} % of the front` +
            (others.length ? `, in ${(100 * f.others).toFixed(0)} % of the networks that it dominates.` : "."));
    }

    /* ---- The drawing ---- */

    /* Between 0 and 1, up; null: the network has no such choice. */
    height(axis, trial) {
        const value = axis.of(trial);
        if (value === undefined || value === null)
            return null;
        if (!axis.labels)
            return axis.high > axis.low ? 0.04 + 0.92 * (value - axis.low) / (axis.high - axis.low) : 0.5;
        /* Lines through one label stand side by side. */
        const spread = ((trial * 0.6180339887) % 1 - 0.5) * 0.5;
        return (axis.labels.indexOf(value) + 0.5 + spread) / axis.labels.length;
    }

    make(width) {
        const none = () => null, names = this.axes.map((axis) => axis.name);
        this.plot = new uPlot({
            width, height: 340, legend: {show: false}, padding: [12, 30, 0, 30],
            cursor: {points: {show: false}, x: false, y: false, drag: {x: true, y: true, setScale: false, dist: 6}},
            scales: {x: {time: false, range: () => [-0.3, names.length - 0.7]}, y: {range: () => [0, 1]}},
            axes: [{...axisAcross(""), label: undefined, size: 30, grid: {show: false}, splits: () => names.map((_, i) => i),
                    values: () => names.map((name) => name.length > 11 ? name.slice(0, 10) + "\u2026" : name)}, {show: false}],
            series: [{}, {paths: none, points: {show: false}}],
            hooks: {draw: [(u) => this.draw(u)], setSelect: [(u) => this.brushed(u)],
                    ready: [(u) => u.over.addEventListener("dblclick", () => this.clear())]},
        }, [names.map((_, i) => i), names.map(() => 0)], this.holder);
        return this.plot;
    }

    draw(u) {
        const c = u.ctx, px = toPixels(u, "x"), py = toPixels(u, "y"), scale = devicePixelRatio;
        const {study} = this, isKept = this.kept.some((k) => k !== null);
        const colours = {front: colour("front"), dominated: colour("dominated")};
        c.save();
        c.lineWidth = scale;
        for (const trial of this.trials) {
            const isFront = study.has(trial, IS_ON_FRONT), passes = this.passes(trial);
            if (trial === study.winner)
                continue;
            c.strokeStyle = colours[isFront ? "front" : "dominated"];
            c.globalAlpha = !passes ? 0.04 : isFront ? 0.75 : isKept ? 0.35 : Math.max(0.05, Math.min(0.3, 60 / this.trials.length));
            this.line(c, trial, px, py);
        }
        if (study.winner >= 0) {
            c.strokeStyle = colour("winner");
            c.globalAlpha = this.passes(study.winner) ? 1 : 0.25;
            c.lineWidth = 2.5 * scale;
            this.line(c, study.winner, px, py);
        }
        c.globalAlpha = 1;
        this.axes.forEach((axis, i) => this.drawAxis(c, axis, i, px, py, scale));
        c.restore();
    }

    line(c, trial, px, py) {
        let isDown = false;
        c.beginPath();
        this.axes.forEach((axis, i) => {
            const y = this.height(axis, trial);
            if (y !== null)
                c[isDown ? "lineTo" : "moveTo"](px(i), py(y));
            isDown = y !== null;
        });
        c.stroke();
    }

    drawAxis(c, axis, i, px, py, scale) {
        c.lineWidth = (i === this.at ? 2 : 1) * scale;
        c.strokeStyle = colour(this.kept[i] !== null ? "accent" : "text-soft");
        c.beginPath();
        c.moveTo(px(i), py(0));
        c.lineTo(px(i), py(1));
        c.stroke();
        const texts = axis.labels ? axis.labels.map((label, k) => [label, (k + 0.5) / axis.labels.length])
            : [[number(axis.metric, axis.low), 0.02], [number(axis.metric, axis.high), 0.98]];
        c.font = `${12 * scale}px system-ui, sans-serif`;
        c.textAlign = "left";
        c.textBaseline = "middle";
        for (const [text, y] of texts.length > 20 ? [texts[0], texts[texts.length - 1]] : texts) {
            const shown = text.length > 9 ? text.slice(0, 8) + "\u2026" : text, w = c.measureText(shown).width;
            c.fillStyle = colour("card");
            c.globalAlpha = 0.8;
            c.fillRect(px(i) + 3 * scale, py(y) - 8 * scale, w + 4 * scale, 16 * scale);
            c.globalAlpha = 1;
            c.fillStyle = colour(this.kept[i] !== null && this.kept[i] !== text && axis.labels ? "text-soft" : "text");
            c.fillText(shown, px(i) + 5 * scale, py(y));
        }
    }

    /* ---- Mouse and keys ---- */

    /* Keeps what lies in a rectangle that was drawn: of each axis that it crosses. */
    brushed(u) {
        const {left, top, width, height} = u.select;
        if (!(width > 0 || height > 0))
            return;
        const from = u.posToVal(left, "x"), to = u.posToVal(left + width, "x");
        const high = u.posToVal(top, "y"), low = u.posToVal(top + height, "y");
        u.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
        let crossed = this.axes.map((_, i) => i).filter((i) => i >= from && i <= to);
        if (!crossed.length) /* a hand that goes straight down means the nearest */
            crossed = [Math.max(0, Math.min(this.axes.length - 1, Math.round((from + to) / 2)))];
        for (const i of crossed) {
            const axis = this.axes[i];
            if (axis.labels) {
                const labels = axis.labels.filter((_, k) => (k + 1) / axis.labels.length > low && k / axis.labels.length < high);
                this.keep(i, labels.length === 1 ? labels[0] : labels.length === axis.labels.length ? null : labels);
            } else {
                const value = (y) => axis.low + (axis.high - axis.low) * (y - 0.04) / 0.92;
                this.keep(i, [value(low), value(high)]);
            }
        }
    }

    onKey(e) {
        const across = {ArrowRight: 1, ArrowLeft: -1}[e.key], up = {ArrowUp: 1, ArrowDown: -1}[e.key];
        if (across) {
            this.at = Math.max(0, Math.min(this.axes.length - 1, this.at + across));
            this.update();
        } else if (up) {
            const axis = this.axes[this.at], n = (axis.labels || axis.ranges).length;
            const k = Math.max(-1, this.selects[this.at].selectedIndex - 1);
            this.keep(this.at, this.choiceOf(axis, (k + 1 + up + n + 1) % (n + 1) - 1));
        } else if (e.key === "Escape")
            this.clear();
        else
            return;
        e.preventDefault();
    }
}

function linesSection(study) {
    if (study.front.length < 2 || !study.places.length)
        return null;
    const lines = new ParallelLines(study);
    if (lines.axes.length < 2)
        return null;
    return section("lines", "What the front shares",
        el("p.soft", null, "Each line is a network: blue ones are on the front, the red one is the winner, grey ones are dominated. " +
            "Draw a rectangle over an axis to keep the networks that pass there, or choose a value; a double click keeps all again."),
        lines.root);
}
