/* table.js: all trials, to be sorted and filtered. */

const PAGE_ROWS = 100; /* a browser lays out a hundred rows at once, not a hundred thousand */

class TrialTable {
    constructor(study, onCompare, before) {
        this.study = study;
        this.onCompare = onCompare;
        this.filter = {text: "", kind: study.front.length ? "front" : "all"};
        this.order = {key: study.goal ? study.goal.name : "trial", isDown: study.goal ? study.goal.maximised : false};
        /* What few trials have is in a trial's own table. */
        this.metrics = study.metrics.filter((m) => 3 * [...m.sources].filter((s) => s !== "-").length >= study.n);
        this.shown = PAGE_ROWS;
        this.chosen = [];
        if (before)
            Object.assign(this, {filter: before.filter, order: before.order, shown: before.shown, chosen: before.chosen});
        this.body = el("tbody");
        this.head = el("tr");
        this.count = el("p.soft", {role: "status"});
        this.more = el("button.quiet", {type: "button", click: () => {
            this.shown += 10 * PAGE_ROWS;
            this.draw();
        }}, "Show more");
        this.root = section("trials", "All trials", this.controls(), this.count,
            el("div.scroll", null, el("table.plain.numbers.trials", null, el("thead", null, this.head), this.body)), this.more);
        this.draw();
    }

    controls() {
        const kinds = [...new Set([...Array.from({length: this.study.n}, (_, i) => this.study.kind(i)), this.filter.kind])]
            .filter((kind) => kind !== "all");
        return el("div.controls.screen", null,
            el("label", null, "show ", el("select", {"data-filter": "kind", change: (e) => this.change({kind: e.target.value})},
                ["all", ...kinds].map((k) => el("option", {value: k, selected: k === this.filter.kind}, k === "all" ? "all" : titleOfKind(k))))),
            el("label", null, "with ", el("input", {
                type: "search", "data-filter": "text", value: this.filter.text, placeholder: "network, or latency.p50 < 9",
                input: (e) => this.change({text: e.target.value})})),
            el("span.soft", null, "Tick two networks to compare them."));
    }

    change(filter) {
        Object.assign(this.filter, filter);
        this.shown = PAGE_ROWS;
        this.draw();
    }

    /* "latency.p50 < 9 and params > 2": a test of a trial; other text is looked for in codes and messages. */
    test() {
        const {study} = this, text = this.filter.text.trim();
        const parts = text.split(/\s+and\s+/).map((part) => part.match(/^(.+?)\s*(<=|>=|<|>|=)\s*(-?[\d.]+)$/));
        if (text && parts.every((p) => p && study.metric(p[1])))
            return (i) => parts.every(([, name, sign, limit]) => {
                const v = study.metric(name).value(i), to = Number(limit);
                return v !== null && {"<": v < to, ">": v > to, "<=": v <= to, ">=": v >= to, "=": v === to}[sign];
            });
        const wanted = text.toLowerCase();
        return (i) => !wanted || study.trials.arch[i].toLowerCase().includes(wanted) || String(i) === wanted ||
            (study.trials.messages[i] || "").toLowerCase().includes(wanted);
    }

    rows() {
        const {study, order} = this, test = this.test(), list = [];
        for (let i = 0; i < study.n; i++)
            if ((this.filter.kind === "all" || study.kind(i) === this.filter.kind) && test(i))
                list.push(i);
        const metric = study.metric(order.key), sign = order.isDown ? -1 : 1;
        const key = metric ? (i) => metric.value(i) : (i) => i;
        return list.sort((a, b) => {
            const x = key(a), y = key(b);
            return x === null || y === null ? (x === null) - (y === null) : sign * (x - y) || a - b;
        });
    }

    drawHead() {
        const heading = (key, text) => el("th", {
            scope: "col", "aria-sort": this.order.key === key ? (this.order.isDown ? "descending" : "ascending") : "none"},
            el("button.link", {type: "button", "data-sort": key, click: () => {
                this.order = {key, isDown: this.order.key === key ? !this.order.isDown : false};
                this.draw();
            }}, text, this.order.key === key ? (this.order.isDown ? " ▼" : " ▲") : ""));
        this.head.replaceChildren(el("th.screen", {scope: "col"}, "vs"), heading("trial", "trial"),
            ...this.metrics.map((m) => heading(m.name, m.label)), el("th", {scope: "col"}, "state"), el("th", {scope: "col"}, "network"));
    }

    draw() {
        const {study} = this, rows = this.rows();
        this.drawHead();
        this.body.replaceChildren(...rows.slice(0, this.shown).map((i) => el("tr", {"data-trial": i, class: i === study.winner ? "winner" : null},
            el("td.screen", null, el("input", {type: "checkbox", "aria-label": `Compare trial ${i}`, checked: this.chosen.includes(i),
                                               change: (e) => this.choose(i, e.target.checked)})),
            el("td", null, trialLink(i)),
            this.metrics.map((m) => el("td", {title: reading(m, i)}, number(m, m.value(i), width(m, i)))),
            el("td", null, titleOfKind(study.kind(i))), el("td.mono.code", null, study.trials.arch[i]))));
        this.count.textContent = `${plural(rows.length, "trial")} of ${study.n.toLocaleString("en")}` +
            (rows.length > this.shown ? `, the first ${this.shown} shown` : "");
        this.more.hidden = rows.length <= this.shown;
    }

    choose(trial, isChosen) {
        this.chosen = this.chosen.filter((i) => i !== trial);
        if (isChosen)
            this.chosen.push(trial);
        if (this.chosen.length > 2) {
            this.chosen.shift();
            this.draw();
        }
        if (this.chosen.length === 2)
            this.onCompare(...this.chosen);
    }
}
