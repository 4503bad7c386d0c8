/* network.js: one network, and two side by side. */

let showTrial = () => {}; /* page.js says what that does */

function trialLink(trial) {
    return el("button.link", {type: "button", "data-trial": trial, click: () => showTrial(trial)}, `trial ${trial}`);
}

function networkPanel(study, trial) {
    const message = study.trials.messages[trial], details = study.details(trial);
    return el("div.network", {"data-trial": trial},
        el("h3", null, `Trial ${trial} `, el(`span.tag.${study.kind(trial)}`, null, titleOfKind(study.kind(trial))),
           trial === study.winner ? el("span.tag.winner", null, "winner") : null,
           study.has(trial, IS_UNSTABLE) ? el("span.tag.infeasible", null, "unstable") : null),
        el("p.mono.code", null, study.trials.arch[trial]),
        message ? el("p.note", null, `${study.trials.status_names[study.trials.status[trial]]}: ${message}`) : null,
        table(["metric", "value", "", "source"], study.metrics.filter((m) => m.value(trial) !== null).map((m) => [
            m.name, withUnit(m, m.value(trial), width(m, trial)), spread(m, trial), m.source(trial)]), "plain.values"),
        measurementText(details),
        message ? null : [command(exportCommand(study, trial, "onnx")), command(exportCommand(study, trial, "pytorch"))],
        details && details.measurement && details.measurement.command
            ? [el("p.soft", null, "Measure it again:"), command(details.measurement.command)] : null,
        layersOf(study, trial), timesOf(study, trial));
}

/* Where the time of a network goes, of rows of profiles that are of its very code. */
function timesOf(study, trial) {
    const code = study.trials.arch[trial];
    return (study.data.profiles || []).flatMap((profile) => profile.rows.map((row, i) => ({row, svg: profile.page.pictures.rooflines[i]})))
        .filter(({row}) => row.arch === code && row.layers && baseName(row.model) === study.title)
        .map(({row, svg}, i) => layersSection(row, `${trial}-${i}`, svg));
}

function width(metric, trial) {
    const ends = metric.interval(trial);
    return ends ? ends[1] - ends[0] : 0;
}

function measurementText(details) {
    const m = details && details.measurement;
    if (!m || typeof m.samples !== "number")
        return null;
    return el("p.soft", null, `${plural(m.samples, "sample")}, ${m.disturbed || 0} set aside as disturbed` +
        `${m.stop ? `; ended by: ${m.stop}` : ""}${m.unstable ? "; unstable" : ""}.`);
}

function layersOf(study, trial) {
    const layers = (study.data.networks || {})[trial];
    if (!layers)
        return el("p.soft", null, study.data.space_error
            ? `Its layers are not known: ${study.data.space_error}.`
            : ["Layers are in this file for networks of the front. Of this one: ",
               command(`hwnas space show ${quoted(study.job.space)} --arch ${quoted(study.trials.arch[trial])}`)]);
    const macs = layers.reduce((sum, l) => sum + l[4], 0);
    return el("details", null, el("summary", null, `${plural(layers.length, "layer")}`),
        table(["layer", "operator", "output", "params", "MACs", "share of MACs"], layers.map((l) => [
            l[0], l[1], l[2], l[3] ? l[3].toLocaleString("en") : "", l[4] ? l[4].toLocaleString("en") : "",
            l[4] ? bar(l[4] / macs) : ""]), "plain.numbers"));
}

/* A share, as a bar with its number. */
function bar(share) {
    const inner = el("span.fill");
    inner.style.width = `${(100 * Math.max(0, Math.min(1, share))).toFixed(1)}%`;
    return el("span.bar", null, inner, el("span.share", null, `${(100 * share).toFixed(1)} %`));
}

/* ---- Side by side ---- */

/* What the winner is compared with at first: the model that it was made of, or the next faster network. */
function firstRival(study) {
    if (study.original >= 0 && study.original !== study.winner)
        return study.original;
    const {cost, winner} = study;
    const others = study.front.filter((i) => i !== winner)
        .sort((a, b) => Math.abs(cost.value(a) - cost.value(winner)) - Math.abs(cost.value(b) - cost.value(winner)));
    return others.length ? others[0] : -1;
}

function comparison(study, a, b) {
    const genesA = new Map(study.genes(a)), genesB = new Map(study.genes(b));
    const changed = [...new Set([...genesA.keys(), ...genesB.keys()])].filter((k) => genesA.get(k) !== genesB.get(k));
    const name = (i) => `trial ${i}` + (i === study.winner ? ", winner" : i === study.original ? ", original" : "");
    return el("div", {id: "comparison"},
        table(["", name(a), name(b), "difference"], study.metrics.filter((m) => m.value(a) !== null || m.value(b) !== null).map((m) => [
            m.name, reading(m, a), reading(m, b), differenceOf(m, a, b)]), "plain.numbers"),
        changed.length ? table(["choice", name(a), name(b)], changed.map((k) => [k, genesA.get(k) || "–", genesB.get(k) || "–"]), "plain")
            : el("p.soft", null, study.places.length ? "They differ in no choice."
                : `Their choices are not known: ${study.data.space_error || "the space has none"}.`));
}

/* Whether two measurements can be told apart, too. */
function differenceOf(metric, a, b) {
    const x = metric.interval(a), y = metric.interval(b), text = difference(metric, metric.value(a), metric.value(b));
    const overlap = x && y && metric.of_device && x[0] <= y[1] && y[0] <= x[1];
    return overlap ? [text, el("span.soft", null, " intervals overlap")] : text;
}

function compareSection(study, state) {
    const place = el("div");
    const field = (key, label) => el("label", null, label + " ", el("input", {
        type: "number", min: 0, max: study.n - 1, value: state[key], list: "front-trials", "data-side": key, input: (e) => {
            const i = Number(e.target.value);
            if (e.target.value !== "" && i >= 0 && i < study.n)
                state[key] = i;
            draw();
        }}));
    const draw = () => place.replaceChildren(comparison(study, state.a, state.b));
    const root = section("compare", "Two networks side by side",
        el("div.controls.screen", null, field("a", "trial"), field("b", "beside trial"),
           el("datalist", {id: "front-trials"}, study.front.map((i) => el("option", {value: i})))), place);
    root.refresh = () => {
        for (const input of root.querySelectorAll("input"))
            input.value = state[input.dataset.side];
        draw();
    };
    draw();
    return root;
}
