// What a client in JavaScript does with the service of test_javascript.py, in Node and in a browser alike; gives what came of it.

export async function played({ connect, RemoteError, DisconnectedError }, url) {
  const found = {};
  let unread = 0;
  let closed;
  const generatorClosed = new Promise((resolve) => (closed = resolve));

  async function* orders(args) {
    try {
      for (let n = args.from; ; n++) {
        unread += 1;
        yield { order: n };
      }
    } finally {
      closed();
    }
  }

  const connection = await connect(url, { offers: { orders, blobs: () => [new Uint8Array([0, 255])] } });

  const numbers = [];
  for await (const n of connection.read("numbers", { stop: 1000 }, { prefetch: 16 })) numbers.push(n);
  found.inOrder = numbers.length === 1000 && numbers.every((n, at) => n === at);

  for await (const blob of connection.read("blob")) found.blob = [...blob];

  for await (const n of connection.read("endless", null, { prefetch: 8 })) if (n === 20) break;
  for await (const made of connection.read("made")) found.made = made;

  try {
    for await (const _ of connection.read("telling"));
  } catch (error) {
    found.failure = error instanceof RemoteError ? error.message : String(error);
  }

  // The service reads three of the orders that are published here, of which it requests two ahead.
  for await (const taken of connection.read("take three orders")) found.taken = taken;
  await generatorClosed;
  found.madeHere = unread;
  for await (const taken of connection.read("take blobs")) found.takenBlobs = taken;

  // A subscriber as in Reactive Streams.
  found.signals = await new Promise((resolve) => {
    const signals = [];
    let subscription;
    connection.publisher("numbers", { stop: 3 }).subscribe({
      onSubscribe: (given) => (subscription = given).request(1),
      onNext: (n) => (signals.push(n), subscription.request(1)),
      onError: (error) => resolve([...signals, String(error)]),
      onComplete: () => resolve([...signals, "complete"]),
    });
  });

  const reading = connection.read("endless")[Symbol.asyncIterator]();
  await reading.next();
  connection.close();
  try {
    for await (const _ of { [Symbol.asyncIterator]: () => reading });
  } catch (error) {
    found.afterTheEnd = error instanceof DisconnectedError;
  }
  await connection.over;
  try {
    await connect(`${url}/nowhere`);
  } catch (error) {
    found.refused = error instanceof DisconnectedError;
  }
  return found;
}
