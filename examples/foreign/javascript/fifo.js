// A node that broadcasts in FIFO order over reliable broadcast by diffusion.
//
//     parley run fifo -n 4 --node "node examples/foreign/javascript/fifo.js" --seed 7
//
// A node sends each broadcast, with its number, to all others. A node that receives a broadcast for the first time
// sends it on to all others, so that all get it even if the sender crashes in between. A node delivers the broadcasts
// of each sender in the order of their numbers.
'use strict';

const readline = require('node:readline');

let self;
let all = [];
let sent = 0; // how many broadcasts this node has made
const known = new Set(); // the broadcasts that have been received, as sender#number
const waiting = new Map(); // those that were not delivered yet, by the same names
const next = new Map(); // by sender: the number to deliver next

function send(dest, body) {
  process.stdout.write(JSON.stringify({ src: self, dest, body }) + '\n');
}

function diffuse(origin, number, message) {
  const name = `${origin}#${number}`;
  if (known.has(name)) return;
  known.add(name);
  waiting.set(name, message);
  for (const dest of all) {
    if (dest !== self) send(dest, { type: 'diffuse', origin, number, message });
  }
  for (let n = next.get(origin); waiting.has(`${origin}#${n}`); n++) {
    send('parley', { type: 'deliver', origin, message: waiting.get(`${origin}#${n}`) });
    waiting.delete(`${origin}#${n}`);
    next.set(origin, n + 1);
  }
}

function handle(src, body) {
  switch (body.type) {
    case 'init':
      self = body.node_id;
      all = body.node_ids;
      for (const id of all) next.set(id, 1);
      send(src, { type: 'init_ok', in_reply_to: body.msg_id });
      break;
    case 'broadcast':
      sent++;
      diffuse(self, sent, body.message);
      send(src, { type: 'broadcast_ok', in_reply_to: body.msg_id });
      break;
    case 'diffuse':
      diffuse(body.origin, body.number, body.message);
      break;
  }
}

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const { src, body } = JSON.parse(line);
  handle(src, body);
  send('parley', { type: 'parley_done' });
});
