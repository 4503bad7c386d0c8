"""What anybody would try before a predictor of hwnas: regressions of scikit-learn and XGBoost on one-hot vectors, judged
by the same rows. Their settings are usual ones; ridge chooses its penalty by leaving one out, the process its lengths by
likelihood."""
import csv
import io
import subprocess
import warnings

KINDS = ["ridge", "ridge-pairs", "xgboost", "forest", "mlp", "svr", "gp-plain"]
N_BEST = 10


def missing():
    """The packages of Debian that are not there."""
    names = {"sklearn": "python3-sklearn", "xgboost": "python3-xgboost", "scipy": "python3-scipy"}
    absent = []
    for module, package in names.items():
        try:
            __import__(module)
        except ImportError:
            absent.append(package)
    return absent


def make(kind, seed):
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
    from sklearn.linear_model import RidgeCV
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR
    import xgboost
    return {
        "ridge": lambda: make_pipeline(StandardScaler(), RidgeCV([10 ** (k / 2) for k in range(-4, 9)])),
        "ridge-pairs": lambda: make_pipeline(StandardScaler(), RidgeCV([10 ** (k / 2) for k in range(-2, 11)])),
        "xgboost": lambda: xgboost.XGBRegressor(n_estimators=300, max_depth=4, learning_rate=0.05, subsample=0.8,
                                                colsample_bytree=0.8, n_jobs=1, random_state=seed),
        "forest": lambda: RandomForestRegressor(300, max_features=1 / 3, random_state=seed),
        "mlp": lambda: make_pipeline(StandardScaler(), MLPRegressor((64, 64), alpha=0.01, max_iter=1000, random_state=seed)),
        "svr": lambda: make_pipeline(StandardScaler(), SVR(C=10, epsilon=0.05)),
        "gp-plain": lambda: GaussianProcessRegressor(ConstantKernel() * Matern(3, nu=2.5) + WhiteKernel(0.1),
                                                     normalize_y=True, random_state=seed),
    }[kind]()


def with_pairs(vectors):
    import numpy
    first, second = numpy.triu_indices(vectors.shape[1], 1)
    return numpy.hstack([vectors, vectors[:, first] * vectors[:, second]])


def judge(estimates, known, groups):
    """tau, tau in the top tenth and regret of the ten best, as predictor_runs.c has them."""
    import numpy
    from scipy.stats import kendalltau

    def tau(chosen):
        value = kendalltau(estimates[chosen], known[chosen])[0]
        return 0.0 if numpy.isnan(value) else value

    parts = [tau(groups == group) for group in set(groups) if (groups == group).sum() >= 20]
    cut = numpy.sort(known)[len(known) - len(known) // 10]
    best = numpy.argsort(-estimates, kind="stable")[:N_BEST]
    return {"tau": sum(parts) / len(parts), "top_tenth_tau": tau(known >= cut), "regret": known.max() - known[best].max()}


def encode(program, space, path):
    import numpy
    text = subprocess.run([program, "predictor", "encode", space, path], check=True, capture_output=True, text=True).stdout
    vectors = numpy.array([[float(cell) for cell in line[1:]] for line in list(csv.reader(io.StringIO(text)))[1:]])
    return vectors[:, vectors.std(0) > 0]


def run(program, runner, table, size, seeds):
    """A line for each kind and seed; `table`: space, file, target, column within which tau is taken or None."""
    import numpy
    space, path, target, within = table
    vectors = encode(program, space, path)
    with open(path) as file:
        rows = list(csv.DictReader(file))
    known = numpy.array([float(row[target]) for row in rows])
    groups = numpy.array([row[within] if within else "" for row in rows])
    split = subprocess.run([runner, space, path, target, "split", str(size), *map(str, seeds)], check=True,
                           capture_output=True, text=True).stdout
    drawn = numpy.array([[int(cell) for cell in line.split(",")] for line in split.split()])
    lines = []
    for seed in seeds:
        fitted, asked = (drawn[(drawn[:, 0] == seed) & (drawn[:, 2] == part), 1] for part in (0, 1))
        mean, deviation = known[fitted].mean(), known[fitted].std()
        for kind in KINDS:
            columns = with_pairs(vectors) if kind == "ridge-pairs" else vectors
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a network or a process that has not converged is used as it is
                model = make(kind, seed).fit(columns[fitted], (known[fitted] - mean) / deviation)
            scores = judge(model.predict(columns[asked]), known[asked], groups[asked])
            lines.append({"kind": kind, "rows": len(fitted), "seed": seed, **scores})
    return lines
