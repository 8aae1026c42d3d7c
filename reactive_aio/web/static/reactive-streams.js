// @ts-check
/**
 * The protocol `reactive-streams.v1` for browsers and Node: streams over a WebSocket, in both directions, under demand.
 * One ES module without dependencies. The page "The WebSocket protocol" has its grammar.
 */

export const PROTOCOL = "reactive-streams.v1";
const LARGEST = Number.MAX_SAFE_INTEGER;
const SHORTEST = 1024;
const ID_BYTES = 8;
const RULE_3_9 = "§3.9: the n of a request is above 0";
const FAILED = "the stream has failed";

/**
 * @typedef {object} Subscription
 * @property {(n: number) => void} request  Ask for n elements more.
 * @property {() => void} cancel  Read no more.
 */
/**
 * @typedef {object} Subscriber  As in Reactive Streams: no onNext without a request, and nothing behind an end.
 * @property {(subscription: Subscription) => void} onSubscribe
 * @property {(item: any) => void} onNext
 * @property {(error: Error) => void} onError
 * @property {() => void} onComplete
 */
/**
 * @typedef {object} Publisher
 * @property {(subscriber: Subscriber) => void} subscribe
 */
/**
 * @typedef {object} Options
 * @property {Record<string, (args: any) => AsyncIterable<any> | Iterable<any>>} [offers]  What the other side may read: a function for each name.
 * @property {number} [maxFrame]  Bytes of a frame that this side takes.
 * @property {number} [maxStreams]  Streams that the other side may read at a time.
 * @property {number} [maxCredit]  Elements of a stream that the other side may want at a time.
 * @property {(error: unknown) => void} [onDroppedError]  Hears why a stream that is offered has failed, which the other side does not, and what an onNext throws.
 */
/** @typedef {string | Uint8Array} Message */

/** The other side has ended a stream by an error; the message is what it says. */
export class RemoteError extends Error {}
/** The connection has ended in the middle of a stream. */
export class DisconnectedError extends Error {}
/** A failure of a stream that is offered, whose message the other side may read. */
export class StreamError extends Error {}
/** The other side has broken a rule of Reactive Streams. */
export class ProtocolViolation extends Error {}

/** A message that is none of the protocol's: the connection is closed. */
export class FrameError extends Error {
  /**
   * @param {string} message
   * @param {number} code
   */
  constructor(message, code = 1002) {
    super(message);
    this.code = code;
  }
}

// -- frames

/** @type {Record<string, Record<string, "number" | "string" | "any">>} */
const FIELDS = {
  limits: {},
  subscribe: { id: "number", stream: "string", n: "number" },
  request: { id: "number", n: "number" },
  cancel: { id: "number" },
  next: { id: "number", item: "any" },
  complete: { id: "number" },
  error: { id: "number", message: "string" },
};
/** @type {Record<string, number>} */
const LEAST = { id: 1, frame: SHORTEST, credit: 1 };

/**
 * @param {Message} message
 * @returns {Record<string, any>} a frame of the protocol
 */
function readFrame(message) {
  if (typeof message !== "string") return readBinary(message);
  let frame;
  try {
    frame = JSON.parse(message);
  } catch {
    throw new FrameError("a frame is a JSON object");
  }
  if (typeof frame !== "object" || frame === null || Array.isArray(frame)) throw new FrameError("a frame is a JSON object");
  if (typeof frame.type !== "string" || !Object.hasOwn(FIELDS, frame.type)) {
    throw new FrameError(`the type of a frame is one of ${Object.keys(FIELDS).join(", ")}`);
  }
  for (const [name, what] of Object.entries(FIELDS[frame.type])) {
    const fits = what === "any" ? Object.hasOwn(frame, name) : what === "number" ? Number.isInteger(frame[name]) : typeof frame[name] === what;
    if (!fits) throw new FrameError(`a frame of type ${frame.type} has the field ${name}, a ${what}`);
  }
  for (const [name, least] of Object.entries(LEAST)) {
    const used = Object.hasOwn(FIELDS[frame.type], name) || (frame.type === "limits" && Object.hasOwn(frame, name) && name !== "id");
    if (used && !(Number.isSafeInteger(frame[name]) && frame[name] >= least)) {
      throw new FrameError(`the field ${name} is a number from ${least} to 2**53 - 1`);
    }
  }
  return frame;
}

/** @param {Uint8Array} message */
function readBinary(message) {
  const header = new DataView(message.buffer, message.byteOffset, message.byteLength);
  const id = message.byteLength < ID_BYTES ? 0 : Number(header.getBigUint64(0));
  if (id < 1 || id > LARGEST) throw new FrameError("a binary frame begins with eight bytes for the id, a number from 1 to 2**53 - 1");
  return { type: "next", id, item: message.slice(ID_BYTES) };
}

/**
 * @param {number} id
 * @param {any} item
 * @returns {Message}
 */
function writeElement(id, item) {
  if (!(item instanceof ArrayBuffer || ArrayBuffer.isView(item))) {
    const text = JSON.stringify(item);
    if (text === undefined) throw new TypeError("an element is a JSON value or bytes");
    return `{"type":"next","id":${id},"item":${text}}`;
  }
  const bytes = item instanceof ArrayBuffer ? new Uint8Array(item) : new Uint8Array(item.buffer, item.byteOffset, item.byteLength);
  const message = new Uint8Array(ID_BYTES + bytes.length);
  new DataView(message.buffer).setBigUint64(0, BigInt(id));
  message.set(bytes, ID_BYTES);
  return message;
}

const UTF8 = new TextEncoder();

/**
 * @param {Message} message
 * @param {number} most
 */
function isLonger(message, most) {
  if (typeof message !== "string") return message.length > most;
  // A unit of a string is one to three bytes of UTF-8.
  return message.length > most || (message.length * 3 > most && UTF8.encode(message).length > most);
}

/** How many elements of a prefetch are taken before as many are requested again: three quarters. */
const refillAfter = (/** @type {number} */ prefetch) => prefetch - Math.floor(prefetch / 4);

// -- one subscription of each kind

/** One subscription of the other side to a stream of ours. */
class Serving {
  /**
   * @param {Connection} connection
   * @param {number} id
   * @param {number} credit
   */
  constructor(connection, id, credit) {
    this.connection = connection;
    this.id = id;
    this.credit = credit;
    this.stopped = false;
    this.refused = "";
    /** @type {() => void} */
    this.wake = () => {};
  }

  /** @param {string} refused  why, where the other side has broken a rule */
  stop(refused = "") {
    if (this.stopped) return;
    this.stopped = true;
    this.refused = refused;
    this.wake();
  }

  /**
   * What comes of a promise, or undefined as soon as the stream is stopped.
   * @template T
   * @param {Promise<T>} promise
   * @returns {Promise<T | undefined>}
   */
  unlessStopped(promise) {
    return new Promise((resolve, reject) => {
      this.wake = () => this.stopped && resolve(undefined);
      promise.then(resolve, reject);
      this.wake();
    });
  }

  /** Wait until there is credit, or until the stream is stopped. */
  async wanted() {
    while (!this.credit && !this.stopped) await new Promise((resolve) => (this.wake = () => resolve(undefined)));
    return !this.stopped;
  }

  /** @param {() => AsyncIterable<any> | Iterable<any>} open */
  async serve(open) {
    let last;
    try {
      last = this.stopped ? undefined : await this.elements(open());
    } catch (error) {
      if (!(error instanceof StreamError)) this.connection.dropped(error);
      last = this.connection.failure(this.id, error instanceof StreamError ? error.message : FAILED);
    }
    if (this.stopped) last = this.refused && this.connection.failure(this.id, this.refused);
    if (last) this.connection.say(last);
    this.connection.serving.delete(this.id);
  }

  /** @param {AsyncIterable<any> | Iterable<any>} source */
  async elements(source) {
    const items = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
    try {
      while (await this.wanted()) {
        const step = await this.unlessStopped(Promise.resolve(items.next()));
        if (step === undefined) return undefined;
        if (step.done) return JSON.stringify({ type: "complete", id: this.id });
        if (this.credit < LARGEST) this.credit -= 1;
        this.connection.say(this.connection.element(this.id, step.value));
        await this.unlessStopped(this.connection.drained());
      }
      return undefined;
    } finally {
      // Not awaited: a generator runs its cleanup when its next() has come back, which nobody can interrupt in JavaScript.
      Promise.resolve(items.return?.()).catch((error) => this.connection.dropped(error));
    }
  }
}

/** One subscription of ours to a stream of the other side. @implements {Subscription} */
class Reading {
  /**
   * @param {Connection} connection
   * @param {number} id
   * @param {string} stream
   * @param {any} args
   * @param {Subscriber} subscriber
   */
  constructor(connection, id, stream, args, subscriber) {
    this.connection = connection;
    this.id = id;
    this.subscriber = subscriber;
    this.subscribe = { type: "subscribe", id, stream, args: args ?? null };
    /** What the subscriber wants and has not been requested yet, and what has been requested and has not come. */
    this.wanted = 0;
    this.outstanding = 0;
    this.begun = false;
    this.ended = false;
  }

  /** @param {number} n */
  request(n) {
    if (this.ended) return;
    if (!Number.isInteger(n) || n <= 0) {
      this.cancel();
      this.subscriber.onError(new RangeError(`request(${n}): ${RULE_3_9}`));
      return;
    }
    this.wanted = Math.min(this.wanted + n, LARGEST);
    this.ask();
  }

  /** Request what is wanted, as far as the other side takes it. */
  ask() {
    const limits = this.connection.otherTakes;
    if (this.ended || limits === null || !this.wanted) return;
    const n = Math.min(this.wanted, limits.credit - this.outstanding);
    if (n < Math.min(this.wanted, refillAfter(limits.credit))) return;
    this.wanted -= this.wanted === LARGEST && n === LARGEST ? LARGEST : n;
    this.outstanding = Math.min(this.outstanding + n, LARGEST);
    if (this.begun) this.connection.say(JSON.stringify({ type: "request", id: this.id, n }));
    else this.begin(n);
  }

  /** @param {number} n */
  begin(n) {
    const text = JSON.stringify({ ...this.subscribe, n });
    if (isLonger(text, this.connection.otherTakes?.frame ?? LARGEST)) {
      this.end();
      this.subscriber.onError(new RangeError("the args are longer than a frame of the other side"));
      return;
    }
    this.begun = true;
    this.connection.say(text);
  }

  cancel() {
    if (this.ended) return;
    this.end();
    if (this.begun) this.connection.say(JSON.stringify({ type: "cancel", id: this.id }));
  }

  end() {
    this.ended = true;
    this.connection.reading.delete(this.id);
  }

  /** @param {Error} error */
  fail(error) {
    if (this.ended) return;
    this.end();
    this.subscriber.onError(error);
  }

  /** @param {Record<string, any>} frame */
  hear(frame) {
    if (frame.type === "complete") {
      this.end();
      this.subscriber.onComplete();
    } else if (frame.type === "error") {
      this.fail(new RemoteError(frame.message));
    } else if (!this.outstanding) {
      this.cancel();
      this.subscriber.onError(new ProtocolViolation(`rule 1.1: an element of stream ${this.id} that was not requested`));
    } else {
      if (this.outstanding < LARGEST) this.outstanding -= 1;
      try {
        this.subscriber.onNext(frame.item);
      } catch (error) {
        this.cancel(); // rule 2.13
        this.connection.dropped(error);
      }
      this.ask();
    }
  }
}

/** Takes the elements of a stream by `for await`, and holds as many as were requested ahead. @implements {Subscriber} */
class Elements {
  /**
   * @param {Publisher} publisher
   * @param {number} prefetch
   */
  constructor(publisher, prefetch) {
    this.prefetch = prefetch;
    /** @type {any[]} */
    this.items = [];
    this.taken = 0;
    this.ended = false;
    /** @type {Error | null} */
    this.error = null;
    this.wake = () => {};
    /** @type {Subscription} */
    this.subscription = { request: () => {}, cancel: () => {} };
    publisher.subscribe(this);
  }

  /** @param {Subscription} subscription */
  onSubscribe(subscription) {
    this.subscription = subscription;
    subscription.request(this.prefetch);
  }

  /** @param {any} item */
  onNext(item) {
    this.items.push(item);
    this.wake();
  }

  /** @param {Error} error */
  onError(error) {
    this.error = error;
    this.onComplete();
  }

  onComplete() {
    this.ended = true;
    this.wake();
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  /** @returns {Promise<IteratorResult<any, undefined>>} */
  async next() {
    while (!this.items.length && !this.ended) await new Promise((resolve) => (this.wake = () => resolve(undefined)));
    if (this.items.length) {
      this.taken += 1;
      if (this.taken >= refillAfter(this.prefetch)) {
        this.subscription.request(this.taken);
        this.taken = 0;
      }
      return { done: false, value: this.items.shift() };
    }
    const error = this.error;
    this.error = null;
    if (error !== null) throw error;
    return { done: true, value: undefined };
  }

  /** @returns {Promise<IteratorResult<any, undefined>>} */
  async return() {
    this.subscription.cancel();
    this.items = [];
    this.onComplete();
    return { done: true, value: undefined };
  }
}

// -- the connection

/** The streams of one connection, in both directions. `connect` makes one over a WebSocket. */
export class Connection {
  /**
   * @param {(message: Message) => void} send  Sends a message to the other side.
   * @param {Options} options
   * @param {() => Promise<void>} drained  Waits while the other side does not read.
   */
  constructor(send, options = {}, drained = async () => {}) {
    this.say = send;
    this.drained = drained;
    this.offers = new Map(Object.entries(options.offers ?? {}));
    this.takes = { frame: options.maxFrame ?? 1_048_576, credit: options.maxCredit ?? LARGEST };
    this.maxStreams = options.maxStreams ?? 100;
    this.dropped = options.onDroppedError ?? ((error) => console.error(error));
    /** @type {{frame: number, credit: number} | null} */
    this.otherTakes = null;
    /** @type {Map<number, Serving>} */
    this.serving = new Map();
    /** @type {Map<number, Reading>} */
    this.reading = new Map();
    this.ids = 0;
    this.lastId = 0;
    this.closed = false;
    /** Closes the WebSocket. */
    this.close = () => this.end();
    this.say(JSON.stringify({ type: "limits", ...this.takes }));
  }

  /**
   * A stream of the other side, which begins anew for each subscriber. The first request subscribes.
   * @param {string} stream
   * @param {any} [args]  a JSON value
   * @returns {Publisher}
   */
  publisher(stream, args) {
    return {
      subscribe: (subscriber) => {
        const reading = new Reading(this, ++this.ids, stream, args, subscriber);
        this.reading.set(reading.id, reading);
        subscriber.onSubscribe({ request: (n) => reading.request(n), cancel: () => reading.cancel() });
        if (this.closed) reading.fail(new DisconnectedError("the connection has ended before the subscription"));
      },
    };
  }

  /**
   * Read a stream of the other side by `for await`; leaving the loop cancels it.
   * @param {string} stream
   * @param {any} [args]  a JSON value
   * @param {{prefetch?: number}} [options]  how many elements are requested ahead, and held at most
   * @returns {AsyncIterable<any>}
   */
  read(stream, args, { prefetch = 64 } = {}) {
    if (!Number.isSafeInteger(prefetch) || prefetch < 1) throw new RangeError(`read(prefetch=${prefetch}): prefetch is at least 1`);
    return { [Symbol.asyncIterator]: () => new Elements(this.publisher(stream, args), Math.min(prefetch, this.otherTakes?.credit ?? prefetch)) };
  }

  /**
   * See to a message; throw a FrameError for what is no frame.
   * @param {Message} message
   */
  hear(message) {
    if (isLonger(message, this.takes.frame)) throw new FrameError(`a frame has at most ${this.takes.frame} bytes`, 1009);
    const frame = readFrame(message);
    if ((frame.type === "limits") !== (this.otherTakes === null)) {
      throw new FrameError("the first frame is of type limits, and no other is");
    }
    if (frame.type === "limits") {
      this.otherTakes = { frame: frame.frame ?? LARGEST, credit: frame.credit ?? LARGEST };
      for (const reading of [...this.reading.values()]) reading.ask();
    } else if (frame.type === "subscribe") {
      this.#subscribed(frame);
    } else if (frame.type === "request") {
      this.#requested(frame);
    } else if (frame.type === "cancel") {
      this.serving.get(frame.id)?.stop();
    } else {
      this.reading.get(frame.id)?.hear(frame);
    }
  }

  /** @param {Record<string, any>} frame */
  #subscribed(frame) {
    if (frame.id <= this.lastId) throw new FrameError(`the id of a subscription is above those before it, and so above ${this.lastId}`);
    if (this.serving.size >= 2 * this.maxStreams) throw new FrameError(`${this.maxStreams} streams are read, and as many have been refused`);
    this.lastId = frame.id;
    const serving = new Serving(this, frame.id, Math.max(frame.n, 0));
    this.serving.set(frame.id, serving);
    const offer = this.offers.get(frame.stream);
    let refused = this.#exceeded(frame.n);
    if (frame.n < 0) refused = RULE_3_9;
    else if (this.serving.size > this.maxStreams) refused = `at most ${this.maxStreams} streams are read at a time`;
    else if (offer === undefined) refused = "there is no such stream";
    if (refused) serving.stop(refused);
    serving.serve(() => /** @type {(args: any) => Iterable<any>} */ (offer)(frame.args ?? null));
  }

  /** @param {Record<string, any>} frame */
  #requested(frame) {
    const serving = this.serving.get(frame.id);
    if (serving === undefined) return; // it has ended, which the other side did not know
    const wanted = Math.min(serving.credit + Math.max(frame.n, 0), LARGEST);
    const refused = frame.n <= 0 ? RULE_3_9 : this.#exceeded(wanted);
    if (refused) return serving.stop(refused);
    serving.credit = wanted;
    serving.wake();
  }

  /** @param {number} credit */
  #exceeded(credit) {
    const most = this.takes.credit;
    return most !== LARGEST && credit > most ? `at most ${most} elements are wanted at a time` : "";
  }

  /**
   * @param {number} id
   * @param {any} item
   */
  element(id, item) {
    const message = writeElement(id, item);
    const most = this.otherTakes?.frame ?? LARGEST;
    if (isLonger(message, most)) throw new StreamError(`an element is longer than the ${most} bytes of a frame`);
    return message;
  }

  /**
   * @param {number} id
   * @param {string} message
   */
  failure(id, message) {
    const text = JSON.stringify({ type: "error", id, message });
    return isLonger(text, this.otherTakes?.frame ?? LARGEST) ? JSON.stringify({ type: "error", id, message: FAILED }) : text;
  }

  /** The connection has ended: fail what is read, and stop what is offered. */
  end() {
    if (this.closed) return;
    this.closed = true;
    this.say = () => {};
    this.drained = async () => {};
    for (const serving of [...this.serving.values()]) serving.stop();
    for (const reading of [...this.reading.values()]) reading.fail(new DisconnectedError("the connection has ended in the middle of the stream"));
  }
}

// -- the WebSocket

/**
 * A WebSocket says how much it holds and not when it has less.
 * @param {WebSocket} socket
 * @param {number} most
 */
async function drained(socket, most) {
  while (socket.bufferedAmount > most && socket.readyState === socket.OPEN) await new Promise((resolve) => setTimeout(resolve, 10));
}

/**
 * Connect to a service that speaks the protocol.
 * @param {string | URL} url
 * @param {Options & {signal?: AbortSignal, maxBuffered?: number}} [options]  `signal` closes the connection; `maxBuffered` is how many bytes
 *   the WebSocket may hold before the streams that are offered wait.
 * @returns {Promise<Connection & {over: Promise<{code: number, reason: string}>}>}  `over` is fulfilled when the connection has ended.
 */
export function connect(url, options = {}) {
  const { signal, maxBuffered = 1_048_576 } = options;
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, PROTOCOL);
    socket.binaryType = "arraybuffer";
    const abort = () => socket.close();
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort);
    /** @type {(value: {code: number, reason: string}) => void} */
    let ended;
    /** @type {Promise<{code: number, reason: string}>} */
    const over = new Promise((fulfil) => (ended = fulfil));
    /** @type {Connection} */
    let connection;
    socket.onopen = () => {
      const send = (/** @type {Message} */ message) => socket.send(/** @type {any} */ (message));
      connection = new Connection(send, options, () => drained(socket, maxBuffered));
      connection.close = () => {
        connection.end();
        socket.close();
      };
      resolve(Object.assign(connection, { over }));
    };
    socket.onmessage = ({ data }) => {
      if (connection.closed) return;
      try {
        connection.hear(typeof data === "string" ? data : new Uint8Array(data));
      } catch (error) {
        connection.end();
        // A page may close with codes of its own only: 4002 stands for 1002, 4009 for 1009.
        if (error instanceof FrameError) socket.close(3000 + error.code, error.message.slice(0, 60));
        else throw error;
      }
    };
    socket.onclose = ({ code, reason }) => {
      signal?.removeEventListener("abort", abort);
      connection?.end();
      ended({ code, reason });
      reject(new DisconnectedError(`the connection was refused, or ended before it began (${code})`));
    };
  });
}
