const say = text => { document.getElementById("hello").textContent = text; };

if (document.querySelector('meta[name="parley-engine"]').content === "wasm") {
  const worker = new Worker(new URL("worker.js", import.meta.url), {type: "module"});
  worker.onmessage = ({data}) => { if (data.answer ?? data.failed) say(data.answer ?? data.failed); };
  worker.postMessage({});
  worker.postMessage({id: 1, question: '{"ask":"about"}'});
} else {
  const post = (name, body) => fetch(name, {method: "POST", headers: {"Content-Type": "application/json"}, body});
  const token = location.hash.replace("#token=", "");
  history.replaceState(null, "", location.pathname);
  await post("token", JSON.stringify({token}));
  say(await (await post("ask", '{"ask":"about"}')).text());
}
