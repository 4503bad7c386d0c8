// ort_run.mjs: runs an ONNX model with ONNX Runtime, for tests that compare `hwnas run` with it.
//
//   node ort_run.mjs input MODEL OUT.bin            writes a random input, raw float32
//   node ort_run.mjs compare MODEL IN.bin OUT.bin [LIMIT]
//                                                   prints how far OUT.bin is from ONNX Runtime's
//                                                   outputs; fails above a relative 1e-4, or LIMIT
//   node ort_run.mjs compare-all FOLDER             the same of each NAME.onnx with NAME.in and NAME.out
//   node ort_run.mjs run MODEL IN.bin OUT.bin       a model of one input and one output, on each of
//                                                   the inputs that stand in IN.bin
//   node ort_run.mjs optimize MODEL OUT.onnx        writes the model as ONNX Runtime's optimiser leaves it, but for what
//                                                   goes with one processor alone
// With HWNAS_SHAPES=ids=1x128,mask=1x128 in the environment inputs have these shapes, where they are open.
//   node ort_run.mjs version                        prints ONNX Runtime's; fails where it is missing
//
// The module onnxruntime-node is looked for in $HWNAS_ORT, else in .deps/node of the source tree.
// Several inputs or outputs stand in a file one after the other, in the model's order. Whole numbers
// stand there as floats too; inputs of them are 0 or 1, which every table has.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join, resolve } from 'node:path';

const LIMIT = 1e-4;
// Of blocks that make bytes by the range of what they are given: a value between two bytes may become
// either, as sums before it were added in another order.
const LIMIT_OF_DYNAMIC = 1e-2;
const home = process.env.HWNAS_ORT ?? new URL('../../.deps/node', import.meta.url).pathname;
const ort = createRequire(resolve(home, 'package.json'))('onnxruntime-node');

const count = (shape) => shape.reduce((product, dim) => product * dim, 1);

// mulberry32: the same input on every run.
function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

async function open(model) {
  const session = await ort.InferenceSession.create(model, { logSeverityLevel: 3 });
  // An open dimension is the batch, which hwnas reads as 1, where no shape is given.
  const given = Object.fromEntries((process.env.HWNAS_SHAPES ?? '').split(',').filter(Boolean)
    .map((text) => text.split('='))
    .map(([name, shape]) => [name, shape.split('x').map(Number)]));
  const inputs = session.inputMetadata.map(({ name, shape, type }) => ({
    name,
    type,
    shape: given[name] ?? shape.map((dim) => (typeof dim === 'number' && dim > 0 ? dim : 1)),
  }));
  return { session, inputs };
}

function readFloats(path) {
  const bytes = readFileSync(path);
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

async function writeInput(model, path) {
  const { inputs } = await open(model);
  const next = random(1);
  const values = Float32Array.from(inputs.flatMap(({ type, shape }) =>
    Array.from({ length: count(shape) }, () =>
      type === 'int64' ? Math.floor(2 * next()) : 2 * next() - 1)));
  writeFileSync(path, new Uint8Array(values.buffer));
}

async function compare(model, inputPath, outputPath, limit = LIMIT) {
  const { session, inputs } = await open(model);
  const given = readFloats(inputPath);
  const feeds = {};
  let at = 0;
  for (const { name, shape, type } of inputs) {
    const values = given.slice(at, at + count(shape));
    feeds[name] = type === 'int64'
      ? new ort.Tensor('int64', BigInt64Array.from(values, BigInt), shape)
      : type === 'int32' ? new ort.Tensor('int32', Int32Array.from(values), shape)
      : new ort.Tensor('float32', values, shape);
    at += count(shape);
  }
  const outputs = await session.run(feeds);
  const theirs = session.outputNames.flatMap((name) => Array.from(outputs[name].data, Number));
  const ours = readFloats(outputPath);
  if (ours.length !== theirs.length)
    throw new Error(`${ours.length} values where ONNX Runtime has ${theirs.length}`);
  const error = distance(ours, theirs);
  console.log(`${basename(model)}: largest difference ${error.toExponential(2)} of the largest value`);
  if (!(error <= limit))
    throw new Error(`${basename(model)}: more than ${limit}`);
}

async function optimize(model, path) {
  await ort.InferenceSession.create(model, {
    logSeverityLevel: 3, graphOptimizationLevel: 'extended', optimizedModelFilePath: path,
  });
}

async function runEach(model, inputPath, outputPath) {
  const { session, inputs: [{ name, shape }] } = await open(model);
  const given = readFloats(inputPath);
  const made = [];
  for (let at = 0; at < given.length; at += count(shape)) {
    const outputs = await session.run({ [name]: new ort.Tensor('float32', given.slice(at, at + count(shape)), shape) });
    made.push(...outputs[session.outputNames[0]].data);
  }
  writeFileSync(outputPath, new Uint8Array(Float32Array.from(made).buffer));
}

// The largest difference, relative to the largest value; infinities must be the same ones.
function distance(ours, theirs) {
  let scale = 0;
  let error = 0;
  for (let i = 0; i < theirs.length; i++) {
    if (Number.isFinite(theirs[i]))
      scale = Math.max(scale, Math.abs(theirs[i]));
    const apart = theirs[i] === ours[i] ? 0 : Math.abs(theirs[i] - ours[i]);
    error = Number.isNaN(apart) ? Infinity : Math.max(error, apart);
  }
  return error === 0 ? 0 : error / scale;
}

async function compareAll(folder) {
  const names = readdirSync(folder).filter((name) => name.endsWith('.onnx')).sort();
  if (!names.length)
    throw new Error(`${folder} has no models`);
  const wrong = [];
  for (const name of names) {
    const base = join(folder, name.slice(0, -5));
    try {
      const limit = name.startsWith('dynamic_') ? LIMIT_OF_DYNAMIC : LIMIT;
      await compare(`${base}.onnx`, `${base}.in`, `${base}.out`, limit);
    } catch (error) {
      wrong.push(`${name}: ${error.message}`);
    }
  }
  if (wrong.length)
    throw new Error(`${wrong.length} of ${names.length} differ: ${wrong.join('; ')}`);
}

const [command, ...args] = process.argv.slice(2);
try {
  if (command === 'input')
    await writeInput(...args);
  else if (command === 'compare')
    await compare(...args);
  else if (command === 'run')
    await runEach(...args);
  else if (command === 'optimize')
    await optimize(...args);
  else if (command === 'compare-all')
    await compareAll(...args);
  else
    console.log(ort.env.versions.node ?? ort.env.versions.common);
} catch (error) {
  console.error(`ort_run: ${error.message}`);
  process.exit(1);
}
