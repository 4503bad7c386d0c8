"use strict";
/* study.js: what the page knows, as the other files ask for it. A trial is its number. */

/* As in page_columns.c. */
const IS_FEASIBLE = 1, IS_ON_FRONT = 2, IS_UNSTABLE = 4, IS_STOPPED_EARLY = 8, IS_CHEAP = 16;

class Metric {
    constructor(column, sourceNames) {
        Object.assign(this, column);
        this.sourceNames = sourceNames;
    }

    value(trial) {
        return this.values[trial];
    }

    /* [low, high], or null. */
    interval(trial) {
        const ends = this.intervals[trial];
        return ends && ends[0] !== null && ends[1] !== null ? ends : null;
    }

    /* "measured", "predicted", ...; "": the trial has no value. */
    source(trial) {
        return this.sourceNames[parseInt(this.sources[trial], 36)] || "";
    }

    get label() {
        return this.unit ? `${this.name}, ${this.unit}` : this.name;
    }

    /* Is `a` better than `b`? */
    isBetter(a, b) {
        return this.maximised ? a > b : a < b;
    }
}

class Study {
    constructor(data) {
        this.data = data;
        this.about = data.study;
        this.job = data.study.job;
        const t = data.trials;
        this.trials = t;
        this.n = t.arch.length;
        const wanted = [...data.objectives, ...data.limits.map((limit) => limit.metric)];
        const rank = (m) => (wanted.includes(m.name) ? wanted.indexOf(m.name) : wanted.length);
        this.metrics = t.metrics.map((column) => new Metric(column, t.source_names)).sort((a, b) => rank(a) - rank(b));
        const estimated = String(t.source_names.indexOf("estimated"));
        this.guessed = this.metrics.filter((m) => m.sources.includes(estimated));
        this.objectives = data.objectives.map((name) => this.metric(name)).filter(Boolean);
        this.limits = data.limits.filter((limit) => this.metric(limit.metric)); /* of which some trial has a value */
        this.front = [];
        for (let i = 0; i < this.n; i++)
            if (t.flags[i] & IS_ON_FRONT)
                this.front.push(i);
        this.winner = data.study.winner ? data.study.winner.trial : -1;
        this.original = typeof data.original === "number" ? data.original : -1;
        /* Best in the first objective, and what it costs on the device. */
        this.goal = this.objectives[0] || this.metrics[0];
        this.cost = this.objectives.slice(1).find((m) => m.of_device) || this.objectives[1] ||
            this.metrics.find((m) => m.of_device && m !== this.goal) || this.metrics[1] || this.goal;
        this.readChoices(data.choices || []);
    }

    /* Each choice by its name, and a place for each of its positions. */
    readChoices(choices) {
        this.places = [];
        this.choices = new Map();
        for (const {name, positions, separator} of choices) {
            this.choices.set(name, {name, positions, separator, first: this.places.length});
            for (let i = 0; i < positions; i++)
                this.places.push(positions === 1 ? name : `${name}[${i}]`);
        }
        this.only = choices.length === 1 ? this.choices.get(choices[0].name) : null;
    }

    metric(name) {
        return this.metrics.find((m) => m.name === name);
    }

    isOk(trial) {
        return this.trials.status[trial] === 0;
    }

    has(trial, flag) {
        return (this.trials.flags[trial] & flag) !== 0;
    }

    isEstimated(trial) {
        return this.guessed.some((m) => m.source(trial) === "estimated");
    }

    /* The search was to stay inside of what the predictor has learned from, and its size is outside. */
    isLeftOut(trial) {
        return this.metrics.some((m) => m.source(trial) === "left-out");
    }

    /* One word for each trial: what a chart draws it as, and what a table filters by. */
    kind(trial) {
        if (!this.kinds)
            this.kinds = Array.from({length: this.n}, (_, i) => this.findKind(i));
        return this.kinds[trial];
    }

    findKind(trial) {
        const status = this.trials.status_names[this.trials.status[trial]];
        if (status === "running" || !this.isOk(trial))
            return status === "running" ? "running" : "failed";
        if (this.has(trial, IS_ON_FRONT))
            return "front";
        if (this.isLeftOut(trial))
            return "left-out";
        if (this.isEstimated(trial))
            return "estimated";
        if (!this.has(trial, IS_FEASIBLE))
            return "infeasible";
        return this.has(trial, IS_CHEAP) ? "partial" : "dominated";
    }

    /* Finished trials in the order in which they finished. */
    finished() {
        const list = [];
        for (let i = 0; i < this.n; i++)
            if (this.trials.order[i] >= 0)
                list.push(i);
        return list.sort((a, b) => this.trials.order[a] - this.trials.order[b]);
    }

    /* What the store has of a trial of the front besides its values: samples, commands. */
    details(trial) {
        const members = Object.values(this.about.fronts || {}).flatMap((f) => f.front);
        return [...this.about.front, ...members].find((t) => t.trial === trial) || null;
    }

    /* Calls visit(place, label) for each gene that the code of a trial spells; `places` has their names. */
    visitGenes(trial, visit) {
        const {choices, only} = this, code = this.trials.arch[trial];
        if (only && !code.startsWith(only.name + "=")) {
            visitLabels(only, code, visit);
            return;
        }
        for (let at = 0, end; at < code.length; at = end + 1) {
            const comma = code.indexOf(",", at), equals = code.indexOf("=", at);
            end = comma < 0 ? code.length : comma;
            const choice = choices.get(code.slice(at, equals));
            if (choice)
                visitLabels(choice, code.slice(equals + 1, end), visit);
        }
    }

    /* [name, value] for each position of each choice that the code of a trial spells. */
    genes(trial) {
        const found = [];
        this.visitGenes(trial, (place, label) => found.push([this.places[place], label]));
        return found;
    }

    /* The last part of a path, without its ending. */
    get title() {
        return baseName(this.job.space);
    }
}

/* The labels of one choice, in the order of its positions; there may be fewer. */
function visitLabels({positions, separator, first}, text, visit) {
    if (positions === 1)
        visit(first, text);
    else if (separator)
        text.split(separator).slice(0, positions).forEach((label, i) => visit(first + i, label));
    else
        for (let i = 0; i < text.length && i < positions; i++)
            visit(first + i, text[i]);
}

function baseName(path) {
    return String(path).replace(/^.*\//, "").replace(/\.(yaml|db|json)$/, "");
}
