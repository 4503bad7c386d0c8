/* analysis.js: what follows from the trials: hypervolume, which choices matter. */

/* Trials that may be on a front: feasible, and neither estimated nor cut short. */
function counts(study, trial) {
    return study.isOk(trial) && study.has(trial, IS_FEASIBLE) && !study.has(trial, IS_CHEAP) && !study.isEstimated(trial);
}

/* The share of the rectangle between the worst and the best of two objectives that the trials so far dominate,
 * after each finished trial. Of one objective the best so far. */
function progress(study) {
    const [first, second] = study.objectives, done = study.finished();
    const good = done.filter((i) => counts(study, i) && first.value(i) !== null && (!second || second.value(i) !== null));
    const scaled = (metric) => {
        const values = good.map((i) => metric.value(i));
        const low = values.reduce((a, b) => Math.min(a, b), Infinity), high = values.reduce((a, b) => Math.max(a, b), -Infinity);
        return (i) => {
            const share = high > low ? (metric.value(i) - low) / (high - low) : 1;
            return high > low && !metric.maximised ? 1 - share : share;
        };
    };
    const x = good.length ? scaled(first) : null, y = good.length && second ? scaled(second) : null;
    const isGood = new Set(good), trials = [], seconds = [], volumes = [], corners = [];
    let time = 0, best = null;
    done.forEach((i, k) => {
        time += study.trials.seconds[i] || 0;
        if (isGood.has(i)) {
            if (y)
                best = insertCorner(corners, [x(i), y(i)]) ? volumeOf(corners) : best;
            else if (best === null || first.isBetter(first.value(i), best))
                best = first.value(i);
        }
        trials.push(k + 1);
        seconds.push(time);
        volumes.push(best === null && y ? 0 : best);
    });
    return {trials, seconds, volumes, isVolume: Boolean(y)};
}

/* Corners stand by falling x and rising y; false: the point is dominated. */
function insertCorner(corners, point) {
    let at = 0;
    while (at < corners.length && corners[at][0] > point[0])
        at++;
    if (at > 0 && corners[at - 1][1] >= point[1])
        return false;
    if (at < corners.length && corners[at][0] === point[0] && corners[at][1] >= point[1])
        return false;
    let end = at;
    while (end < corners.length && corners[end][1] <= point[1])
        end++;
    corners.splice(at, end - at, point);
    return true;
}

function volumeOf(corners) {
    let volume = 0, below = 0;
    for (const [x, y] of corners) {
        volume += x * (y - below);
        below = y;
    }
    return volume;
}

/* Of trials the genes by place: its name, how many labels there are, and for each trial the number of its label; -1:
 * it has none. */
function geneColumns(study, trials) {
    const columns = study.places.map((name) => ({name, n: 0, numbers: new Map(), of: new Int32Array(trials.length).fill(-1)}));
    let row = 0;
    const visit = (place, label) => {
        const column = columns[place];
        let number = column.numbers.get(label);
        if (number === undefined)
            column.numbers.set(label, number = column.n++);
        column.of[row] = number;
    };
    for (; row < trials.length; row++)
        study.visitGenes(trials[row], visit);
    return columns;
}

/* How much of a metric's variance the value of each gene accounts for by itself (epsilon squared: what chance gives
 * is taken off): [[gene, share], ...], the largest first. `columns` are those of the trials. */
function shares(metric, trials, columns) {
    let n = 0, sum = 0, squares = 0;
    for (const trial of trials) {
        const v = metric.value(trial);
        if (v === null)
            continue;
        n++;
        sum += v;
        squares += v * v;
    }
    const total = squares - sum * sum / n;
    return columns.map((column) => [column.name, total > 0 ? shareOf(column, metric, trials, {n, mean: sum / n, total}) : 0])
        .sort((a, b) => b[1] - a[1]);
}

/* Of one gene; 0 where not each trial has it. */
function shareOf(column, metric, trials, {n, mean, total}) {
    const counted = new Float64Array(column.n), sums = new Float64Array(column.n);
    let between = 0, k = 0;
    for (let row = 0; row < trials.length; row++) {
        const v = metric.value(trials[row]), label = column.of[row];
        if (v === null)
            continue;
        if (label < 0)
            return 0;
        counted[label]++;
        sums[label] += v;
    }
    for (let label = 0; label < column.n; label++)
        if (counted[label]) {
            between += counted[label] * (sums[label] / counted[label] - mean) ** 2;
            k++;
        }
    const within = (total - between) / (n - k);
    return k > 1 && n > k ? Math.max(0, (between - (k - 1) * within) / total) : 0;
}

function median(values) {
    const sorted = [...values].sort((a, b) => a - b), n = sorted.length;
    return n % 2 ? sorted[(n - 1) / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/* Kendall's tau-b; null: all are equal, or there are too many to compare in pairs. */
function kendall(xs, ys) {
    let both = 0, tiedX = 0, tiedY = 0;
    const n = xs.length, pairs = n * (n - 1) / 2;
    if (n < 2 || n > 5000)
        return null;
    for (let i = 0; i < n; i++)
        for (let j = 0; j < i; j++) {
            const a = Math.sign(xs[i] - xs[j]), b = Math.sign(ys[i] - ys[j]);
            both += a * b;
            tiedX += a === 0;
            tiedY += b === 0;
        }
    const scale = Math.sqrt((pairs - tiedX) * (pairs - tiedY));
    return scale > 0 ? both / scale : null;
}
