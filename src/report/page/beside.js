/* beside.js: two studies in one page: both fronts in one chart, what each has that the other has not, and a switch to
 * either study's own page. */

const SIDES = [{name: "front", letter: "A"}, {name: "infeasible", letter: "B"}]; /* colours that the page has */

/* A metric of both, by the names of the first; in the same unit. */
function sharedMetrics([a, b]) {
    return a.metrics.filter((m) => b.metric(m.name) && b.metric(m.name).unit === m.unit);
}

/* Those of the first's front where some network of the other's is no worse in both metrics and better in one. */
function beaten(one, other, x, y) {
    const isWorse = (i, j) => [x, y].every((m) => !one.metric(m.name).isBetter(one.metric(m.name).value(i), other.metric(m.name).value(j))) &&
        [x, y].some((m) => m.isBetter(other.metric(m.name).value(j), one.metric(m.name).value(i)));
    const known = (study, i) => [x, y].every((m) => study.metric(m.name).value(i) !== null);
    return one.front.filter((i) => known(one, i) && other.front.some((j) => known(other, j) && isWorse(i, j)));
}

/* Of one axis, so that most of both fronts is seen. */
function rangeOfBoth(studies, name) {
    const values = studies.flatMap((s) => s.front.map((i) => s.metric(name).value(i))).filter((v) => v !== null).sort((a, b) => a - b);
    const winners = studies.filter((s) => s.winner >= 0).map((s) => s.metric(name).value(s.winner));
    return padded(values.length ? [Math.min(quantile(values, 0.03), ...winners), Math.max(quantile(values, 0.97), ...winners)] : [0, 1], 0.08);
}

function bothFronts(studies, x, y) {
    const holder = el("div.plot", {role: "img", "aria-label":
        `Both fronts by ${x.name} and ${y.name}. The tables of each study have the numbers.`});
    keepChart(holder, (width) => cloud(holder, width, {
        x: rangeOfBoth(studies, x.name), y: rangeOfBoth(studies, y.name), xLabel: x.label, yLabel: y.label,
        height: Math.round(Math.min(460, Math.max(280, width * 0.5))),
        draw: (u) => studies.forEach((study, side) => drawFront(u, study, side, x.name, y.name))}));
    return holder;
}

/* Circles of the first study, diamonds of the second: nobody has to tell colours apart. */
function drawFront(u, study, side, xName, yName) {
    const c = u.ctx, px = toPixels(u, "x"), py = toPixels(u, "y"), x = study.metric(xName), y = study.metric(yName);
    const front = study.front.filter((i) => x.value(i) !== null && y.value(i) !== null).sort((a, b) => x.value(a) - x.value(b));
    c.save();
    c.beginPath();
    c.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    c.clip();
    c.strokeStyle = c.fillStyle = colour(SIDES[side].name);
    c.lineWidth = 1.4 * devicePixelRatio;
    c.globalAlpha = 0.4;
    c.beginPath();
    front.forEach((i, k) => c[k ? "lineTo" : "moveTo"](px(x.value(i)), py(y.value(i))));
    c.stroke();
    c.globalAlpha = 1;
    for (const i of front) {
        SHAPES[side ? "diamond" : "circle"](c, px(x.value(i)), py(y.value(i)), 2.6 * devicePixelRatio);
        if (i !== study.winner)
            continue;
        c.font = `600 ${12.5 * devicePixelRatio}px system-ui, sans-serif`;
        c.textAlign = px(x.value(i)) > u.bbox.left + u.bbox.width / 2 ? "right" : "left";
        c.fillText(`${SIDES[side].letter}: winner`, px(x.value(i)) + (c.textAlign === "right" ? -9 : 9) * devicePixelRatio,
                   py(y.value(i)) + (side ? 18 : -9) * devicePixelRatio);
    }
    c.restore();
}

function besideTable(studies, metrics) {
    const winners = studies.map((s) => s.winner), both = winners.every((w) => w >= 0);
    const against = (m) => {
        const [a, b] = studies.map((s, i) => [s.metric(m.name), winners[i]]);
        if (!both || a[0].value(a[1]) === null || b[0].value(b[1]) === null)
            return "";
        const words = difference(m, a[0].value(a[1]), b[0].value(b[1]));
        const [p, q] = [a, b].map(([metric, trial]) => metric.interval(trial));
        return p && q && p[0] <= q[1] && q[0] <= p[1] ? `${words} intervals overlap` : words;
    };
    const line = (title, of) => [title, ...studies.map(of), ""];
    return table(["", ...studies.map((s, i) => `${SIDES[i].letter}: ${baseName(s.about.study)}`), "B against A"], [
        line("winner", (s) => (s.winner >= 0 ? `trial ${s.winner}` : "none")),
        ...metrics.map((m) => [m.name, ...studies.map((s) => (s.winner >= 0 ? reading(s.metric(m.name), s.winner) : "")), against(m)]),
        line("limits", (s) => s.limits.map((l) => l.text).join(", ") || "none"),
        line("space", (s) => s.title),
        line("device", (s) => Object.values(s.about.devices || {}).map((d) => d.name).filter(Boolean).join("; ") || s.job.device || ""),
        line("trials", (s) => `${s.about.finished.toLocaleString("en")} in ${minutes(s.about.wall_seconds)}`),
        line("front", (s) => plural(s.front.length, "network"))], "plain.sides");
}

/* Numbers of different devices, or of predictors that learnt from different data, do not stand on one axis by right. */
function besideCautions(studies) {
    const differs = (of) => new Set(studies.map((s) => valueText(of(s)))).size > 1;
    const device = (s) => Object.values(s.about.devices || {}).map((d) => [d.name, d.library, d.threads].join());
    return [differs(device) ? "The devices differ: that one front is faster may be the device's doing." : null,
            differs((s) => s.job.accuracy || "") ? "Accuracy comes from different sources: compare it with care." : null].filter(Boolean);
}

function besideWords(studies, x, y) {
    return studies.map((s, i) => {
        const n = beaten(s, studies[1 - i], x, y).length;
        return `Of ${plural(s.front.length, "network")} on the front of ${SIDES[i].letter}, ${n} ${n === 1 ? "is" : "are"} beaten by ` +
            `some network of ${SIDES[1 - i].letter} in ${x.name} and ${y.name}.`;
    });
}

/* What stands above the page of one of two studies. `shown` is which; show(which) changes it. */
function besideSection(studies, shown, show) {
    const metrics = sharedMetrics(studies), [a] = studies;
    const x = metrics.find((m) => m.name === a.cost.name), y = metrics.find((m) => m.name === a.goal.name);
    const isDrawn = x && y && x !== y;
    return section("beside", "Two studies side by side",
        el("div.pair", null,
            el("div", null, isDrawn ? bothFronts(studies, x, y) : el("p.note", null, "They share no two metrics, so there is no chart of both."),
               el("div.legend", null, studies.map((s, i) => el("span", null, el(`span.mark.${i ? "diamond" : "circle"}.${SIDES[i].name}`),
                                                           ` ${SIDES[i].letter}: ${s.about.study}`)))),
            el("div", null, besideTable(studies, metrics), list([...(isDrawn ? besideWords(studies, x, y) : []), ...besideCautions(studies)]))),
        el("div.controls.screen", {role: "group", "aria-label": "Which study stands below"}, "Below: ",
           studies.map((s, i) => el("button.quiet", {type: "button", "aria-pressed": String(i === shown), "data-side": SIDES[i].letter,
                                                     click: () => show(i)}, `${SIDES[i].letter}: ${baseName(s.about.study)}`))));
}

/* A page for two studies, at first that of the first. */
function buildBeside(studies, root) {
    const kept = [{}, {}];
    const show = (which, isFirst) => {
        buildPage(studies[which], root, kept[which], () => besideSection(studies, which, show));
        if (!isFirst)
            root.querySelector(`#beside [data-side="${SIDES[which].letter}"]`).focus();
    };
    show(0, true);
}
