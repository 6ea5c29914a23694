// The worker that holds the engine. It loads wasm_exec.js, which comes with Go, and parley.wasm.gz; the program in it
// defines parleyAsk and parleyStop, and posts {id, progress} and {id, answer}. Questions that come before that wait.

/** @type {{id: number, question?: string, trace?: ArrayBuffer}[] | undefined} */
let waiting = [];

onmessage = ({data}) => {
  if ("question" in data || "trace" in data) {
    if (waiting) waiting.push(data);
    else answer(data);
  } else if ("stop" in data) {
    if (waiting) waiting = waiting.filter(({id}) => id !== data.stop);
    else globalThis.parleyStop(data.stop);
  } else {
    start(data.module).catch(err => postMessage({failed: String(err?.message ?? err)}));
  }
};

/** Passes a question, or a trace file, on to the program. */
function answer({id, question, trace}) {
  if (trace) globalThis.parleyKeep(id, new Uint8Array(trace));
  else globalThis.parleyAsk(id, question);
}

/** Starts the program, from its compiled module if there is one. */
async function start(module) {
  await import("./wasm_exec.js");
  if (!module) {
    module = await compile();
    postMessage({module});
  }
  const go = new globalThis.Go();
  const instance = await WebAssembly.instantiate(module, go.importObject);
  go.run(instance).then(() => postMessage({failed: "it ended"})); // it runs until it has defined parleyAsk
  const early = waiting;
  waiting = undefined;
  early.forEach(answer);
}

/**
 * Compiles the program while it is loaded. Some static hosts send .gz files with Content-Encoding, and the browser
 * inflates those.
 */
async function compile() {
  let response = await fetch(new URL("parley.wasm.gz", import.meta.url));
  if (!response.ok) response = await fetch(new URL("parley.wasm", import.meta.url));
  if (!response.ok) throw new Error(`parley.wasm cannot be loaded: status ${response.status}`);
  const reader = response.body.getReader();
  const {value: head} = await reader.read();
  const bytes = new ReadableStream({
    start: to => to.enqueue(head),
    async pull(to) {
      const {done, value} = await reader.read();
      if (done) to.close();
      else to.enqueue(value);
    },
  });
  const packed = head[0] === 0x1f && head[1] === 0x8b;
  return WebAssembly.compileStreaming(new Response(packed ? bytes.pipeThrough(new DecompressionStream("gzip")) : bytes,
    {headers: {"Content-Type": "application/wasm"}}));
}
