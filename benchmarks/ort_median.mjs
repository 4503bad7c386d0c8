// ort_median.mjs: medians of models in ONNX Runtime, batch 1, for a loop that asks for one after the other.
//
//   node ort_median.mjs THREADS WARM RUNS 1x3x224x224
//
// Each line of standard input is the path of a model; each line of the output its median in seconds, of RUNS runs after WARM.
// onnxruntime-node is looked for in $HWNAS_ORT, else in .deps/node.
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';

const home = process.env.HWNAS_ORT ?? new URL('../.deps/node', import.meta.url).pathname;
const ort = createRequire(resolve(home, 'package.json'))('onnxruntime-node');
const [threads, warm, runs] = process.argv.slice(2, 5).map(Number);
const dims = process.argv[5].split('x').map(Number);
const values = Float32Array.from({ length: dims.reduce((x, y) => x * y) }, (_, i) => Math.sin(i));
const how = { logSeverityLevel: 3, intraOpNumThreads: threads, interOpNumThreads: 1, executionMode: 'sequential' };

for await (const path of createInterface({ input: process.stdin })) {
  const session = await ort.InferenceSession.create(path, how);
  const input = { [session.inputNames[0]]: new ort.Tensor('float32', values, dims) };
  const times = [];
  for (let i = 0; i < warm + runs; i++) {
    const begin = performance.now();
    await session.run(input);
    times.push((performance.now() - begin) / 1000);
  }
  await session.release();
  console.log(times.slice(warm).sort((p, q) => p - q)[runs >> 1]);
}
