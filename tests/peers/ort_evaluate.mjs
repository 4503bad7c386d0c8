// ort_evaluate.mjs: what `hwnas evaluate` does, done with ONNX Runtime, to compare with.
//
//   node ort_evaluate.mjs MODEL IMAGES LABELS SCALE MEAN STD BATCH THREADS [LOGITS.bin]
//
// IMAGES and LABELS are IDX, packed by gzip or not. Prints {"samples", "right", "loss", "seconds"}: as
// there, the seconds include reading the file and preparing the images. The module onnxruntime-node is
// looked for in $HWNAS_ORT, else in .deps/node of the source tree.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { gunzipSync } from 'node:zlib';

const home = process.env.HWNAS_ORT ?? new URL('../../.deps/node', import.meta.url).pathname;
const ort = createRequire(resolve(home, 'package.json'))('onnxruntime-node');

function readIdx(path) {
  let bytes = readFileSync(path);
  if (bytes[0] === 0x1f)
    bytes = gunzipSync(bytes);
  const dims = Array.from({ length: bytes[3] }, (_, i) => bytes.readUInt32BE(4 + 4 * i));
  return { dims, values: bytes.subarray(4 + 4 * dims.length) };
}

function crossEntropy(logits, label) {
  const greatest = Math.max(...logits);
  return Math.log(logits.reduce((sum, x) => sum + Math.exp(x - greatest), 0)) + greatest - logits[label];
}

const [model, imagePath, labelPath, ...rest] = process.argv.slice(2);
const [scale, mean, std, batch, threads] = rest.slice(0, 5).map(Number);
const session = await ort.InferenceSession.create(model, {
  logSeverityLevel: 3, intraOpNumThreads: threads, interOpNumThreads: 1,
});
const [input] = session.inputNames;
const [output] = session.outputNames;
const start = performance.now();
const { dims: [n, height, width], values } = readIdx(imagePath);
const labels = readIdx(labelPath).values;
const size = height * width;
let right = 0;
let loss = 0;
const all = [];
for (let first = 0; first < n; first += batch) {
  const some = Math.min(batch, n - first);
  const pixels = new Float32Array(some * size);
  for (let i = 0; i < pixels.length; i++)
    pixels[i] = (values[first * size + i] * scale - mean) / std;
  const result = await session.run({ [input]: new ort.Tensor('float32', pixels, [some, 1, height, width]) });
  const logits = result[output].data;
  const classes = logits.length / some;
  all.push(logits);
  for (let i = 0; i < some; i++) {
    const row = logits.slice(i * classes, (i + 1) * classes);
    right += row.indexOf(Math.max(...row)) === labels[first + i] ? 1 : 0;
    loss += crossEntropy(row, labels[first + i]);
  }
}
const seconds = (performance.now() - start) / 1000;
if (rest[5])
  writeFileSync(rest[5], Buffer.concat(all.map((x) => new Uint8Array(x.buffer, x.byteOffset, x.byteLength))));
console.log(JSON.stringify({ samples: n, right, loss: loss / n, seconds }));
