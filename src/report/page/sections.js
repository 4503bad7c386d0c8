/* sections.js: what stands below the first screen. */

function progressSection(study) {
    const p = progress(study), name = p.isVolume ? "hypervolume" : `best ${study.goal.name}`;
    const plot = (xs, xLabel) => {
        const holder = el("div.plot");
        stepChart(holder, {xs, ys: p.volumes, xLabel, yLabel: name});
        return holder;
    };
    return section("progress", "How the search went",
        el("p", null, progressWords(study)),
        p.isVolume ? el("p.soft", null, `Hypervolume: the share of the rectangle between the worst and the best ${study.objectives[0].name} ` +
            `and ${study.objectives[1].name} of all feasible networks that the networks so far dominate` +
            `${study.objectives.length > 2 ? " (of the first two objectives)" : ""}. Where it is flat, more trials bought nothing.`) : null,
        el("div.pair", null, plot(p.trials, "trials"), plot(p.seconds.map((s) => s / 60), "minutes inside trials")));
}

function progressWords(study) {
    const a = study.about;
    return `${plural(a.finished, "trial")} finished in ${minutes(a.wall_seconds)}: ${a.feasible} feasible, ${a.failed} failed` +
        `${a.estimated ? `, ${a.estimated} kept as estimates` : ""}. ` +
        `${a.wall_seconds > 0 ? `${(100 * a.run_seconds / a.wall_seconds).toFixed(0)} % of the time was spent inside measured runs. ` : ""}` +
        `${a.ended ? `It ended because ${a.ended}.` : "It has not ended."}`;
}

function choicesSection(study) {
    const done = study.finished().filter((i) => study.isOk(i)), columns = geneColumns(study, done);
    const metrics = [...new Set([study.goal, study.cost])].filter(Boolean);
    const found = metrics.map((m) => shares(m, done, columns).filter(([, share]) => share >= 0.005).slice(0, 12));
    if (!found.some((f) => f.length))
        return null;
    return section("choices", "Which choices matter",
        el("p.soft", null, `Share of the variance that each choice accounts for by itself, in the ${plural(done.length, "network")} of this search. ` +
            "A search prefers good networks, so these are no random sample: choices that go together share what they account for."),
        el("div.columns", null, metrics.map((m, k) => el("div", null, el("h3", null, m.name),
            found[k].length ? table(["choice", "share of variance"], found[k].map(([name, share]) => [name, bar(share)]), "plain")
                : el("p.soft", null, "No choice accounts for half a percent.")))));
}

/* What was thought of networks, by number, against what was found of them. */
function thoughtSection(study, id, title, metric, thoughts, isFound, words) {
    const known = Object.entries(thoughts || {}).map(([i, v]) => [v, metric && metric.value(Number(i)), Number(i)])
        .filter(([v, found, i]) => v !== null && found !== null && found !== undefined && isFound(metric.source(i)));
    if (!known.length)
        return null;
    const holder = el("div.plot.square");
    agreementChart(holder, {xs: known.map((k) => k[0]), ys: known.map((k) => k[1]),
                            xLabel: `${words.thought} ${metric.label}`, yLabel: `${words.found} ${metric.label}`});
    return section(id, title, el("p", null, `${plural(known.length, "network")} ${known.length === 1 ? "was" : "were"} ` +
        `${words.thought} first and ${words.found} then: ${words.error(known)}.`), holder);
}

function relativeErrors(known) {
    const errors = known.map(([thought, found]) => 100 * Math.abs(thought / found - 1));
    return `${median(errors).toFixed(1)} % off in the median, ${errors.reduce((a, b) => Math.max(a, b), 0).toFixed(1)} % at most`;
}

function rankAgreement(known) {
    const tau = kendall(known.map((k) => k[0]), known.map((k) => k[1]));
    const off = median(known.map(([thought, found]) => Math.abs(thought - found)));
    return `${off.toFixed(2)} off in the median${tau === null ? "" : `, Kendall's tau ${tau.toFixed(2)}`}`;
}

function estimatesSection(study) {
    return thoughtSection(study, "estimates", "Estimates against measurements",
        study.metrics.find((m) => m.name.startsWith("latency.p50")), study.trials.estimates, (source) => source === "measured",
        {thought: "estimated", found: "measured", error: relativeErrors});
}

function predictionsSection(study) {
    const found = ["trained", "told", "replayed"];
    return thoughtSection(study, "predictions", "Predictions against trainings", study.metric("accuracy"), study.trials.predictions,
        (source) => found.includes(source), {thought: "predicted", found: "trained", error: rankAgreement});
}

function failuresSection(study) {
    const failed = [], unstable = [], {trials} = study;
    const done = study.finished();
    done.forEach((i, at) => {
        if (!study.isOk(i))
            failed.push([i, at]);
        else if (study.has(i, IS_UNSTABLE))
            unstable.push([i, at]);
    });
    if (!failed.length && !unstable.length)
        return section("failures", "Failures and disturbances", el("p", null, "No trial failed, and no measurement is marked as unstable."));
    const reasons = new Map();
    for (const [i] of failed) {
        const reason = trials.status_names[trials.status[i]];
        const row = reasons.get(reason) || {n: 0, last: i};
        reasons.set(reason, {n: row.n + 1, last: i});
    }
    return section("failures", "Failures and disturbances",
        failed.length ? table(["reason", "trials", "the last", ""], [...reasons].map(([reason, {n, last}]) => [
            reason, String(n), trialLink(last), trials.messages[last] || ""]), "plain") : null,
        unstable.length ? el("p", null, `${plural(unstable.length, "measurement")} ${unstable.length === 1 ? "is" : "are"} marked as unstable: ` +
            "the machine was disturbed.") : null,
        strip("failed, from the first trial to the last", failed, done.length, "infeasible"),
        strip("unstable", unstable, done.length, "estimated"));
}

/* How often something was so, along the search. */
function strip(title, marked, n, name) {
    const BINS = Math.min(60, n), counted = new Array(BINS).fill(0);
    if (!marked.length)
        return null;
    for (const [, at] of marked)
        counted[Math.min(BINS - 1, Math.floor(at / n * BINS))]++;
    const most = Math.max(...counted);
    return el("figure.strip", null, el("figcaption.soft", null, title), el("div.bins", {role: "img", "aria-label": `${title}: ${marked.length}`},
        counted.map((c) => {
            const bin = el(`span.bin.${name}`, {title: String(c)});
            bin.style.height = `${c ? Math.max(6, 100 * c / most) : 0}%`;
            return bin;
        })));
}

function machineSection(study) {
    const {about, job} = study, rows = [];
    for (const [name, device] of Object.entries(about.devices || {}))
        rows.push([`device ${name}`, [device.name, device.library, device.isa, device.threads ? plural(device.threads, "thread") : null]
            .filter(Boolean).join(", ")]);
    for (const [key, value] of Object.entries(job))
        rows.push([key, valueText(value)]);
    for (const [key, value] of Object.entries(about.conditions || {}))
        if (value !== null)
            rows.push([key.replace(/_/g, " "), valueText(value)]);
    rows.push(["study", about.study], ["hwnas", study.data.hwnas]);
    return section("machine", "How it was searched and measured",
        table(["", ""], rows, "plain.facts"),
        el("p.soft", null, "What a measurement is, and what disturbs one: docs/measuring.md. The same as text:"),
        command(`hwnas study show ${quoted(about.study)}`), command(`hwnas explain ${quoted(about.study)}`));
}

function valueText(value) {
    if (Array.isArray(value))
        return value.map(valueText).join(", ");
    if (value && typeof value === "object")
        return Object.entries(value).map(([k, v]) => `${k} ${valueText(v)}`).join(", ");
    return String(value);
}
