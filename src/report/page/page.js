/* page.js: puts the sections together. */

/* `kept` is what the reader had chosen on the page before, whose place this one takes; it gets what is chosen here.
 * `lead` makes what stands above all of it. */
function buildPage(study, root, kept = {}, lead = null) {
    document.title = `${study.title}: hwnas report`;
    charts.length = 0;
    const state = {a: Math.max(study.winner, 0), b: Math.max(firstRival(study), 0), ...kept.compared};
    const view = {x: axisOf(study, kept.view, "x") || study.cost, y: axisOf(study, kept.view, "y") || study.goal,
                  selected: kept.picked === undefined ? study.winner : kept.picked};
    const panel = el("div", {"aria-live": "polite"});
    const chart = study.metrics.length ? new FrontChart(study, view, (trial) => showTrial(trial), kept.chart) : null;
    const compare = study.n > 1 && study.metrics.length ? compareSection(study, state) : null;
    const trials = new TrialTable(study, (a, b) => {
        kept.compared = Object.assign(state, {a, b});
        compare.refresh();
        compare.scrollIntoView({block: "nearest"});
    }, kept.trials);
    showTrial = (trial) => {
        view.selected = kept.picked = trial;
        panel.replaceChildren(networkPanel(study, trial));
        if (chart)
            chart.refresh();
        document.getElementById("network").scrollIntoView({block: "nearest"});
    };
    if (view.selected >= 0)
        panel.append(networkPanel(study, view.selected));
    else
        panel.append(el("p.soft", null, "Click a network in the chart or in the table."));
    const main = el("main", null, lead ? lead() : null,
        el("div.first", null, answer(study), el("div.beside", null,
            section("front", frontTitle(study), chart ? chart.root : null), compare)),
        section("network", "Network", panel), trials.root);
    root.replaceChildren(header(study), main, footer(study.data.hwnas));
    addSections(main, [progressSection, choicesSection, linesSection, estimatesSection, predictionsSection, failuresSection,
        machineSection].map((make) => () => make(study)), kept.view !== undefined);
    Object.assign(kept, {view, chart, trials});
}

function axisOf(study, view, key) {
    return view && study.metric(view[key].name);
}

/* Sections that take their time and stand below the first screen, which is shown before they are made; not where the
 * reader may be looking at them already. Until the last is there, `main` is busy. */
function addSections(main, makers, isAtOnce) {
    if (isAtOnce) {
        main.append(...makers.map((make) => make()).filter(Boolean));
        return;
    }
    const next = (i) => {
        if (i === makers.length) {
            main.removeAttribute("aria-busy");
            return;
        }
        main.append(...[makers[i]()].filter(Boolean));
        setTimeout(next, 0, i + 1);
    };
    main.setAttribute("aria-busy", "true");
    /* A chart is drawn in the frame after the one in which its place is laid out. */
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(next, 0, 0)));
}

function frontTitle(study) {
    return `Pareto front: ${plural(study.front.length, "network")} of ${plural(study.n, "trial")}`;
}

function themeButton() {
    return el("button.quiet.screen", {type: "button", click: () => {
        const isDark = getComputedStyle(document.documentElement).colorScheme.includes("dark");
        document.documentElement.dataset.theme = isDark ? "light" : "dark";
        redrawCharts();
    }}, "Light / dark");
}

function header(study) {
    const device = Object.values(study.about.devices || {}).map((d) => d.name).filter(Boolean).join("; ") || study.job.device || "";
    return el("header", null,
        el("div", null, el("span.brand", null, "hwnas"), el("span.name", null, study.title),
           el("span.soft", null, [device, ...study.data.limits.map((l) => l.text)].filter(Boolean).join(" · "))),
        el("nav.screen", {"aria-label": "Sections"},
           [["network", "Network"], ["compare", "Compare"], ["trials", "Trials"], ["progress", "Search"], ["machine", "Machine"]]
               .map(([id, title]) => el("a", {href: "#" + id}, title)), themeButton()));
}

function footer(version) {
    return el("footer.soft", null, `hwnas ${version}. ` +
        (document.getElementById("data").dataset.source ? "" : "This file loads nothing."));
}

document.addEventListener("DOMContentLoaded", () => {
    const data = document.getElementById("data"), root = document.getElementById("page");
    const shown = JSON.parse(data.textContent);
    if (data.dataset.source)
        follow(data.dataset.source, root);
    else if (shown.format in RECORDED_PAGES)
        buildRecorded(shown, root);
    else if (shown.beside)
        buildBeside([new Study(shown), new Study(shown.beside)], root);
    else
        buildPage(new Study(shown), root);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawCharts);
});
