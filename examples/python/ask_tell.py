"""A search whose networks are run elsewhere: on a board, in a farm, in a simulator.

    python3 ask_tell.py ./measure-on-board

The command is called with the name of an ONNX file, and prints its latency in seconds. After Ctrl-C, or
any other end, the same command goes on where it was.
"""
import os
import subprocess
import sys
import tempfile

import hwnas


def measure(network: hwnas.Network, command: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "network.onnx")
        network.export(path)
        return float(subprocess.run([command, path], check=True, capture_output=True, text=True).stdout)


def main(command: str) -> None:
    space = hwnas.Space("nas_bench_macro")
    study = hwnas.Study(space="nas_bench_macro", accuracy="nas_bench_macro_cifar10", device="external",
                        objectives=["accuracy", "latency.p50"], trials=40, seed=1, study="board.db", resume=True)
    for trial in study:
        try:
            study.tell(trial, {"latency.p50": measure(space.network(trial.code, trial.batch), command)})
        except (subprocess.CalledProcessError, ValueError) as e:
            study.fail(trial, f"no latency: {e}")
    for row in study.front():
        print(f"{row['code']}  {row['accuracy']:.2f} %  {1e3 * row['latency.p50']:.3f} ms")


if __name__ == "__main__":
    main(sys.argv[1])
