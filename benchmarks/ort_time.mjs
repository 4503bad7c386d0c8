// ort_time.mjs: median latency of ONNX models in ONNX Runtime, one thread.
//
//   node ort_time.mjs SECONDS MODEL...     prints seconds, one line each
//
// Each model is run three times for SECONDS / 3 after a warm-up, and the least of the three medians
// counts, as nothing tells here who was in the way. The module is found as tests/peers/ort_run.mjs does.
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const home = process.env.HWNAS_ORT ?? new URL('../.deps/node', import.meta.url).pathname;
const ort = createRequire(resolve(home, 'package.json'))('onnxruntime-node');
const ROUNDS = 3;
const LEAST = 10;

const now = () => Number(process.hrtime.bigint()) / 1e9;
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

function makeFeeds(session) {
  const feeds = {};
  for (const { name, shape, type } of session.inputMetadata) {
    const dims = shape.map((dim) => (typeof dim === 'number' && dim > 0 ? dim : 1));
    const count = dims.reduce((product, dim) => product * dim, 1);
    feeds[name] = type === 'int64'
      ? new ort.Tensor('int64', new BigInt64Array(count), dims)
      : new ort.Tensor('float32', Float32Array.from({ length: count }, (_, i) => Math.sin(i)), dims);
  }
  return feeds;
}

async function round(session, feeds, seconds) {
  const times = [];
  for (const end = now() + seconds; now() < end || times.length < LEAST;) {
    const start = now();
    await session.run(feeds);
    times.push(now() - start);
  }
  return median(times);
}

async function measure(path, seconds) {
  const session = await ort.InferenceSession.create(path, {
    intraOpNumThreads: 1, interOpNumThreads: 1, executionMode: 'sequential',
    graphOptimizationLevel: 'all', logSeverityLevel: 3,
  });
  const feeds = makeFeeds(session);
  await round(session, feeds, seconds / 10);
  let best = Infinity;
  for (let i = 0; i < ROUNDS; i++)
    best = Math.min(best, await round(session, feeds, seconds / ROUNDS));
  await session.release();
  return best;
}

const [seconds, ...models] = process.argv.slice(2);
for (const model of models)
  console.log((await measure(model, Number(seconds))).toPrecision(9));
