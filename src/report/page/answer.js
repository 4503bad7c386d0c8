/* answer.js: which network to deploy, how sure its latency is, and why not another. */

function answer(study) {
    const {winner} = study;
    if (winner < 0)
        return el("section.card.answer", {id: "answer"}, noWinner(study));
    return el("section.card.answer", {id: "answer", "aria-labelledby": "answer-title"},
        el("p.over", null, study.about.ended ? "Deploy" : "Best so far; the search still runs, or died"),
        el("h1", {id: "answer-title"}, `Trial ${winner}`),
        el("p.mono.code", null, study.trials.arch[winner]),
        el("div.figures", null, [...new Set([study.cost, study.goal])].map((m) => figure(study, m, winner))),
        command(exportCommand(study, winner, "onnx")),
        el("h2", null, "How sure is that?"), list(howSure(study, winner)),
        el("h2", null, "Why not a faster one?"), list(whyNotFaster(study)),
        el("h2", null, "What would a looser limit buy?"), list(looserLimits(study)));
}

function list(items) {
    return el("ul", null, items.map((item) => el("li", null, item)));
}

function noWinner(study) {
    const {closest} = study.about;
    const evidence = study.about.evidence || {};
    return [
        el("h1", null, "No network to deploy yet"),
        el("p", null, evidence.bad ? "The machine was too busy to tell whether a network meets the limits."
            : `Of ${plural(study.about.finished, "trial")} none meets ${study.data.limits.map((l) => l.text).join(" and ") || "what was asked"}.`),
        study.about.left_out ? el("p", null, `${study.about.left_out} left out: of a size outside what the predictor ` +
            "has learned from, whatever limits they meet (domain: free takes them).") : null,
        closest ? el("p", null, `Trial ${closest.trial} misses by least: ` +
            study.limits.map((l) => `${l.metric} ${reading(study.metric(l.metric), closest.trial)}, limit ${l.text}`).join("; ")) : null,
    ];
}

/* A number to be read from afar, with its interval and the limit beneath it. */
function figure(study, metric, trial) {
    const value = metric.value(trial), ends = metric.interval(trial);
    const limit = study.limits.find((l) => l.metric === metric.name);
    return el("div.figure", null,
        el("div.soft", null, metric.name),
        el("div.big", null, number(metric, value, ends ? ends[1] - ends[0] : 0), el("span.unit", null, " " + metric.unit)),
        el("div.soft", null, spread(metric, trial), " ", metric.source(trial)),
        limit ? el("div.soft", null, `limit ${limit.text.replace(metric.name, "").trim()}`) : null);
}

function exportCommand(study, trial, format) {
    const ending = {onnx: "onnx", pytorch: "py", yaml: "yaml"}[format];
    return `hwnas export ${quoted(study.about.study)} --trial ${trial} --format ${format} --out trial-${trial}.${ending}`;
}

/* ---- How sure ---- */

function howSure(study, trial) {
    const {cost, goal} = study;
    return [...(cost.of_device ? [sureOfCost(study, cost, trial)] : []), ...roomInLimits(study, trial),
            ...(goal !== cost ? [sureOfGoal(goal, trial)] : []), ...verified(study, trial)];
}

function sureOfCost(study, metric, trial) {
    const ends = metric.interval(trial), value = metric.value(trial), source = metric.source(trial);
    if (source !== "measured")
        return `${capital(metric.name)} is ${source}${source === "replayed" ? ": looked up in a published table" : ""}` +
            `${ends ? "" : ", and has no interval"}.`;
    if (!ends)
        return `${capital(metric.name)} was measured, without an interval.`;
    const m = (study.details(trial) || {}).measurement || {};
    const rounds = ((study.details(trial) || {}).objectives || {})[metric.name];
    const samples = typeof m.samples === "number" ? `, from ${plural(m.samples, "sample")}` : "";
    const again = rounds && rounds.rounds ? `; measured again in ${plural(rounds.rounds, "round")}, in turns with its rivals` : "";
    const doubt = study.has(trial, IS_UNSTABLE) ? " The machine was disturbed while it was measured: measure it again before you rely on it." : "";
    return `The 95 % interval of the median is ${ends.map((e) => number(metric, e, ends[1] - ends[0])).join(" to ")} ${metric.unit} ` +
        `(−${(100 * (1 - ends[0] / value)).toFixed(1)} %, +${(100 * (ends[1] / value - 1)).toFixed(1)} %)${samples}${again}.${doubt}`;
}

function capital(text) {
    return text.charAt(0).toUpperCase() + text.slice(1);
}

function roomInLimits(study, trial) {
    return study.limits.map((limit) => {
        const metric = study.metric(limit.metric), ends = metric.interval(trial), value = metric.value(trial);
        const isRun = !isPrediction(metric, trial) && ends;
        const end = isRun ? ends[limit.upper ? 1 : 0] : value;
        const room = limit.upper ? limit.value - end : end - limit.value;
        return `${limit.text}: ${room >= 0 ? "kept" : "missed"} by ${withUnit(metric, Math.abs(room))}` +
            `${isRun ? ", counted from the end of the interval" : ""}.`;
    });
}

function sureOfGoal(metric, trial) {
    const source = metric.source(trial), half = metric.interval(trial);
    const off = half ? `: two of three such predictions are off by ${number(metric, (half[1] - half[0]) / 2)} ` +
        `${metric.unit.replace("%", "points")} or less` : "";
    if (source === "predicted")
        return `${capital(metric.name)} is predicted, not trained${off}.`;
    if (source === "predicted-int8")
        return `${capital(metric.name)} is predicted for floats, less what int8 costs published networks of the kind${off}. Judge it on samples before you rely on it.`;
    if (source === "predicted-floats")
        return `${capital(metric.name)} is predicted for floats: what 4-bit weights cost is not known${off}. Judge it on samples before you rely on it.`;
    if (source === "predicted-curve")
        return `${capital(metric.name)} is predicted by the curve of a training that was ended early${off}.`;
    if (["extrapolated", "extrapolated-size", "left-out"].includes(source))
        return `${capital(metric.name)} is extrapolated: the predictor has learned from no network like this. Train it before you rely on it.`;
    return `${capital(metric.name)} is ${source}.`;
}

/* Of one device its result itself, of several by their names. */
function verified(study, trial) {
    const found = (study.details(trial) || {}).verified || {};
    const results = found.against ? [["", found]] : Object.entries(found);
    const skipped = Object.entries((study.about.verified || {}).skipped || {});
    const on = (device) => (device && results.length + skipped.length > 1 ? ` on ${device}` : "");
    return [...results.map(([device, r]) => `Its result${on(device)} was compared with ${r.against}, and agrees ` +
                `(error ${Number(r.error).toPrecision(2)}, allowed ${Number(r.tolerance).toPrecision(2)}).`),
            ...skipped.map(([device, why]) => `Its result${on(device)} was not verified: ${why}.`)];
}

/* ---- Why not another ---- */

function whyNotFaster(study) {
    const {winner, cost, goal} = study;
    if (cost === goal)
        return [`It has the best ${goal.name} of all networks that keep the limits.`];
    const better = study.front.filter((i) => cost.isBetter(cost.value(i), cost.value(winner)) && i !== winner)
        .sort((a, b) => (cost.isBetter(cost.value(a), cost.value(b)) ? 1 : -1));
    if (!better.length)
        return [`No network of the front has a better ${cost.name}.`];
    const next = better[0], last = better[better.length - 1];
    /* As far along the front as nobody can tell by the goal. */
    const told = better.findIndex((i) => doubtOf(goal, winner, i) === "");
    const rival = better[(told < 0 ? better.length : told) - 1];
    const items = [["Next on the front is ", trialLink(next), `: ${tradeWords(study, next)}`]];
    if (rival !== undefined && rival !== next)
        items.push([told < 0 ? "So it is up to the other end, " : "The same holds as far as ", trialLink(rival), `: ${tradeWords(study, rival)}`]);
    if (last !== next && last !== rival)
        items.push(["The other end is ", trialLink(last), `: ${tradeWords(study, last)}`]);
    return [...items, "No network that keeps the limits was found to be better in both."];
}

/* "latency.p50 8.909 ms (7.3 % less), accuracy 65.43 % (0.55 points less). ...": of a network beside the winner. */
function tradeWords(study, trial) {
    const {winner, cost, goal} = study;
    return `${changeWords(cost, winner, trial)}, ${changeWords(goal, winner, trial)}.` +
        [doubtOf(cost, winner, trial), doubtOf(goal, winner, trial)].map((words) => words && ` ${words}`).join("");
}

function changeWords(metric, from, to) {
    const a = metric.value(from), b = metric.value(to);
    const size = difference(metric, a, b).replace(/^[+\u2212\u00b1]/, "");
    return `${metric.name} ${withUnit(metric, b, width(metric, to))} (${a === b ? "the same" : `${size} ${b > a ? "more" : "less"}`})`;
}

/* A sentence where the values of two trials do not tell which is the better one, "" where they do. Errors of two
 * predictions are taken as independent, and as telling from twice their standard deviation on. */
function doubtOf(metric, a, b) {
    const x = metric.interval(a), y = metric.interval(b);
    const points = (v) => withUnit(metric, v).replace(/%$/, "points");
    if (isPrediction(metric, a) || isPrediction(metric, b)) {
        const off = [x, y].map((ends, i) => (ends && isPrediction(metric, i ? b : a) ? (ends[1] - ends[0]) / 2 : 0));
        const typical = Math.max(...off), both = Math.hypot(...off);
        if (!both)
            return `Its ${metric.name} is a prediction whose error is not known.`;
        return Math.abs(metric.value(a) - metric.value(b)) > 2 * both ? ""
            : `Predictions of ${metric.name} are usually off by ${points(typical)}, so this one may be as good: train both before you decide.`;
    }
    return x && y && x[0] <= y[1] && y[0] <= x[1] ? `Their intervals overlap: ${metric.name} may be the same.` : "";
}

function looserLimits(study) {
    const explanation = study.data.explanation;
    if (!study.limits.length)
        return ["The search had no limits."];
    if (!explanation)
        return [`Not known: ${study.data.no_explanation || "no explanation was made"}.`];
    if (!explanation.relaxations.length)
        return ["Nothing that this search has seen."];
    return explanation.relaxations.map((r) => {
        const limit = study.limits.find((l) => l.text === r.constraint), metric = limit && study.metric(limit.metric);
        const goal = study.metric(r.buys) || study.goal;
        const gain = withUnit(goal, Math.abs(r.gain)).replace(/%$/, "points"), sure = goal.interval(study.winner);
        const isDoubtful = sure && isPrediction(goal, study.winner) && Math.abs(r.gain) <= Math.SQRT2 * (sure[1] - sure[0]);
        return [metric ? `${limit.metric} ${limit.upper ? "<=" : ">="} ${withUnit(metric, r.value)} instead of ${limit.value} ${limit.unit}: `
            : `${r.constraint}: ${r.value} ${r.unit}: `,
                `${gain} ${goal.maximised ? "more" : "less"} ${goal.name}, `,
                r.trial === null ? "by a network one change away, not tried" : trialLink(r.trial),
                isDoubtful ? "; predictions cannot tell so little." : "."];
    });
}
