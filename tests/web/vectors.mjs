// Runs vectors.json against the module: node vectors.mjs MODULE VECTORS; prints a JSON list of what does not fit.
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { pathToFileURL } from "node:url";

const [module, vectors] = process.argv.slice(2);
const { Connection, DisconnectedError, FrameError, ProtocolViolation, RemoteError, StreamError } = await import(pathToFileURL(module));

const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const shown = (value) => (value instanceof Uint8Array ? { hex: Buffer.from(value).toString("hex") } : value);
const quiet = () => new Promise((resolve) => setTimeout(resolve, 1)); // a turn of the loop behind all promises that are ready

const offers = {
  *count(stop) {
    for (let n = 0; n < stop; n++) yield n;
  },
  async *never() {
    await new Promise(() => {});
  },
  echo: (args) => args ?? [],
  bytes: (args) => args.map(bytes),
  async *failing() {
    throw new Error("a secret");
  },
  async *telling() {
    throw new StreamError("come back later");
  },
};

async function play(vector) {
  let said = [];
  let took = [];
  let ended = null;
  let closes = null;
  let items;
  const say = (message) => said.push(typeof message === "string" ? JSON.parse(message) : shown(message));
  const { frame = 1_048_576, credit = Number.MAX_SAFE_INTEGER, streams = 100 } = vector.setup ?? {};
  const options = { offers, maxFrame: frame, maxCredit: credit, maxStreams: streams, onDroppedError: () => {} };
  const connection = new Connection(say, options);

  async function read({ stream, prefetch, args = null }) {
    items = connection.read(stream, args, { prefetch })[Symbol.asyncIterator]();
    try {
      for await (const item of items) took.push(shown(item));
      ended = "complete";
    } catch (error) {
      if (error instanceof RemoteError) ended = { error: error.message };
      else if (error instanceof ProtocolViolation) ended = "violation";
      else if (error instanceof DisconnectedError) ended = "disconnected";
      else throw error;
    }
  }

  function hear(message) {
    try {
      connection.hear(message);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      closes = error.code;
    }
  }

  async function step(step) {
    let leaving = false;
    if ("hear" in step) hear(JSON.stringify(step.hear));
    else if ("hear_text" in step) hear(step.hear_text);
    else if ("hear_hex" in step) hear(bytes(step.hear_hex));
    else if ("hear_both" in step) step.hear_both.forEach((frame) => hear(JSON.stringify(frame)));
    else if ("read" in step) read(step.read);
    else if ("leave" in step) leaving = items.return();
    else connection.end();
    await quiet();
    if (leaving) ended = null; // who leaves hears of no end
    const found = { say: said, took, ended, closes };
    said = [];
    took = [];
    ended = closes = null;
    return found;
  }

  const wrong = [];
  const compare = (at, expected, found) => isDeepStrictEqual(expected, found) || wrong.push({ vector: vector.name, at, expected, found });
  compare("limits", [{ type: "limits", frame, credit }], said);
  said = [];
  const other = vector.limits === undefined ? { type: "limits" } : vector.limits;
  if (other !== null) await step({ hear: other });
  for (const [at, each] of vector.steps.entries()) {
    const { say = [], took = [], ended = null, closes = null } = each;
    compare(at, { say, took, ended, closes }, await step(each));
  }
  connection.end();
  return wrong;
}

const wrong = [];
for (const vector of JSON.parse(readFileSync(vectors, "utf-8")).vectors) wrong.push(...(await play(vector)));
console.log(JSON.stringify(wrong));
process.exit(0); // streams that never end keep nothing alive, but say so
