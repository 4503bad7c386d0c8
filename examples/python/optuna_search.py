"""Optuna proposes, hwnas predicts and measures (Debian: python3-optuna).

    python3 optuna_search.py 30
"""
import sys

import hwnas
import optuna


def main(n_trials: int) -> None:
    with hwnas.Space("nas_bench_macro") as space, hwnas.Measurer(threads=1, seconds=0.1) as measurer:
        predictor = hwnas.Predictor("nas_bench_macro_cifar10", space)
        study = optuna.create_study(directions=["maximize", "minimize"], sampler=optuna.samplers.NSGAIISampler(seed=1))
        study.optimize(hwnas.optuna_objective(space, predictor, measurer), n_trials=n_trials)
        for trial in study.best_trials:
            accuracy, seconds = trial.values
            print(f"{trial.user_attrs['code']}  {accuracy:.2f} %  {1e3 * seconds:.3f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]))
