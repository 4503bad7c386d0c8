// ort_latency.mjs: medians of two models in ONNX Runtime, run in turns, batch 1, one thread.
//
//   node ort_latency.mjs A.onnx B.onnx RUNS 1x1x28x28
//
// Prints {"a": seconds, "b": seconds}. onnxruntime-node is looked for in $HWNAS_ORT, else in .deps/node.
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const home = process.env.HWNAS_ORT ?? new URL('../../.deps/node', import.meta.url).pathname;
const ort = createRequire(resolve(home, 'package.json'))('onnxruntime-node');
const [a, b, runs, shape] = process.argv.slice(2);
const dims = shape.split('x').map(Number);
const values = Float32Array.from({ length: dims.reduce((x, y) => x * y) }, (_, i) => Math.sin(i));
const how = { logSeverityLevel: 3, intraOpNumThreads: 1, interOpNumThreads: 1, executionMode: 'sequential' };
const sessions = [await ort.InferenceSession.create(a, how), await ort.InferenceSession.create(b, how)];
const times = [[], []];
for (let i = 0; i < Number(runs) + 20; i++)
  for (let k = 0; k < 2; k++) {
    const input = { [sessions[k].inputNames[0]]: new ort.Tensor('float32', values, dims) };
    const begin = performance.now();
    await sessions[k].run(input);
    if (i >= 20) // warm
      times[k].push((performance.now() - begin) / 1000);
  }
const median = (x) => x.sort((p, q) => p - q)[x.length >> 1];
console.log(JSON.stringify({ a: median(times[0]), b: median(times[1]) }));
