# Where the time of a network is not that of a fast runtime, which profile, compare and search tell.
load helpers

@test "slow code: a network of plain loops is told, and a good one is not" {
    need onnx
    /usr/bin/python3 - <<'END'
import onnx
from onnx import TensorProto, helper

graph = helper.make_graph(
    [helper.make_node("Relu", ["x"], ["a"]),
     helper.make_node("Tan", ["a"], ["y"], name="steep/tan")], "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [64, 4096])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [64, 4096])])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)]), "loops.onnx")
END
    "$HWNAS" profile loops.onnx --batch 64 --seconds 0.1 --save loops.json >out
    says out "! loops.onnx, cpu, batch 64, 1 thread, f32: * % of the time is slow code, most of it 'steep/tan' (tan by plain loops, * % of the roofline): a fast runtime takes less"
    [ "$(json loops.json "d['rows'][0]['slow_step']")" = steep/tan ]
    [ "$(json loops.json "d['rows'][0]['slow_how']")" = "plain loops" ]
    [ "$(json loops.json "0.1 < d['rows'][0]['slow_share'] <= 1")" = True ]
    "$HWNAS" compare --profile loops.json >out
    says out "! loops.onnx, cpu, batch 64*is slow code*'steep/tan'*"
    "$HWNAS" profile loops.onnx --batch 64 --seconds 0.1 --streams 1 >out
    says out "is slow code*'steep/tan'*"
    "$HWNAS" profile mnist_cnn --seconds 0.1 --json >good.json
    [ "$(json good.json "d['rows'][0]['slow_share'] < 0.1")" = True ]
    "$HWNAS" profile mnist_cnn --seconds 0.1 --device ref --json >ref.json
    [ "$(json ref.json "d['rows'][0]['slow_share']")" = None ]
}

# A convolution of one column that has more of the image behind its kernel runs in plain loops (windows.h).
@test "slow code: a search tells it of its front, in text and in JSON, and the study keeps it" {
    cat >columns.yaml <<'END'
hwnas: 1
name: columns
input: {image: [16, 400, 4]}
choices:
  width: {values: [16, 24]}
network:
  - conv: {out: width, kernel: 3, stride: 2}
END
    cat >job.yaml <<'END'
space: columns.yaml
device: cpu
threads: 1
objectives: [latency.p50, params]
budget: {trials: 2}
measure: {seconds: 0.1, estimate: off, ties: 0, confirm: 0}
END
    ends 0 search job.yaml --study s.db
    says out "slow code   * of the front's times; trial *: * %, most of it 'conv' (conv by plain loops): a fast runtime takes less"
    ends 0 study show s.db --json
    [ "$(json out "{c['how'] for c in d['slow_code']}")" = "{'plain loops'}" ]
    [ "$(json out "all(0.1 < c['share'] <= 1 and c['device'] == 'cpu' and c['step'] == 'conv' for c in d['slow_code'])")" = True ]
    [ "$(json out "{c['trial'] for c in d['slow_code']} == {t['trial'] for t in d['front']}")" = True ]
}
