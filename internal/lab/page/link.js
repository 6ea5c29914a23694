// Links: a run, the place in it and what is selected, as the fragment of an address. A fragment never reaches a server.
//
//   #/run?s=PROTOCOL&n=7&m=2&f=1:twofaced,5:flip&v=1&seed=42&at=206&sel=P2/1.5&h=3ec91ee9&lab=1
//
// s is a protocol, g a scenario of the gallery, and y the text of a scenario: ~ and its deflated bytes in base64url. t is
// the beginning of the hash of a trace, which the reader must have as a file.
// sees is the process whose sight is shown.
// f stands for the flag "faulty" and v for "values"; all other keys that are not listed here are flags too. h is the
// beginning of the trace hash. Links are kept for years, so no key ever changes its meaning; lab is the version.

/**
 * Which run it is: a protocol, a scenario of the gallery, the text of a scenario, or a trace, and flags of "parley run".
 * @typedef {{s?: string, g?: string, y?: string, t?: string, flags: Record<string, string>}} Place
 * @typedef {{view: string, place: Place | null, at: number | null, sel: string, of: string, by: string, sees: string, hash: string,
 *     problem: string}} Link
 */

export const version = 1;

/** How long a link may be, so that mail programs and chats keep it whole. */
export const longest = 8192;
const longestRead = 1 << 16;
const longestText = 1 << 18;

const short = {f: "faulty", v: "values"};
const first = ["s", "g", "y", "t", "n", "m", "f", "v"];
const last = ["seed", "at", "sel", "tree", "by", "sees", "h", "lab"];
const own = ["s", "g", "y", "t", "at", "sel", "tree", "by", "sees", "h", "lab"];

/**
 * Encodes what a fragment must not contain, and keeps what people should read. All brackets are encoded, too: Markdown and
 * chats take them for the end of a link.
 */
export const encode = text => encodeURIComponent(text).replace(/%(2C|2F|3A|3B|40|24)/g, decodeURIComponent)
  .replace(/[()]/g, c => c === "(" ? "%28" : "%29");

const rank = key => {
  if (first.includes(key)) return first.indexOf(key);
  return last.includes(key) ? 200 + last.indexOf(key) : 100;
};

/** The keys of a place. */
async function keysOf(place) {
  const keys = [];
  if (place.s) keys.push(["s", place.s]);
  if (place.g) keys.push(["g", place.g]);
  if (place.y) keys.push(["y", "~" + await deflate(place.y)]);
  if (place.t) keys.push(["t", place.t]);
  for (const [flag, value] of Object.entries(place.flags)) {
    const key = Object.keys(short).find(k => short[k] === flag) ?? flag;
    keys.push([key, key === "f" ? value.replace(/(^|,)([^,=]*)=/g, "$1$2:") : value]);
  }
  return keys;
}

const sorted = keys => [...keys].sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1));

/**
 * Writes a place so that it can stand as a value in a link: its keys and values as s:PROTOCOL;n:3;f:1:twofaced. Only %
 * and ; are encoded.
 */
export async function pack(place) {
  return sorted(await keysOf(place)).map(pair => pair.map(text => text.replace(/[%;]/g, encodeURIComponent)).join(":")).join(";");
}

/** Reads a place that pack wrote. It is null if there is none. */
export async function unpack(text) {
  return placeOf(new Map(text.split(";").filter(Boolean).map(pair => {
    const [key, value = ""] = pair.split(/:(.*)/s);
    return [decodeURIComponent(key), decodeURIComponent(value)];
  })));
}

/**
 * Writes a link. What a link leaves out is the default.
 * @param {Partial<Link>} link
 * @returns {Promise<string>} the fragment, with its #
 */
export async function write({view, place, at = null, sel = "", of = "", by = "", sees = "", hash = ""}) {
  const keys = new Map(place ? await keysOf(place) : []);
  if (place) {
    if (at !== null) keys.set("at", String(at));
    if (sel) keys.set("sel", sel);
    if (of) keys.set("tree", of);
    if (by) keys.set("by", by);
    if (sees) keys.set("sees", sees);
    if (hash) keys.set("h", hash.slice(0, 8));
    keys.set("lab", String(version));
  }
  const query = sorted(keys).map(([key, value]) => `${key}=${encode(value)}`).join("&");
  return `#/${view}${query && "?" + query}`;
}

/**
 * Reads a link. A link that cannot be read leads to an empty lab and says why.
 * @param {string} fragment
 * @returns {Promise<Link>}
 */
export async function read(fragment) {
  const [path, query = ""] = fragment.replace(/^#?\/?/, "").split(/\?(.*)/s);
  /** @type {Link} */
  const link = {view: path || "gallery", place: null, at: null, sel: "", of: "", by: "", sees: "", hash: "", problem: ""};
  try {
    if (fragment.length > longestRead) throw new Error("it is too long");
    if (!query) return link;
    const keys = new Map(query.split("&").map(pair => {
      const [key, value = ""] = pair.split(/=(.*)/s);
      return [decodeURIComponent(key), decodeURIComponent(value)];
    }));
    link.place = await placeOf(keys);
    if (keys.has("at")) link.at = Math.max(0, Math.trunc(Number(keys.get("at")))) || 0;
    link.sel = keys.get("sel") ?? "";
    link.of = keys.get("tree") ?? "";
    link.by = keys.get("by") ?? "";
    link.sees = keys.get("sees") ?? "";
    link.hash = keys.get("h") ?? "";
    if (Number(keys.get("lab") ?? 1) > version) throw new Error("a newer version of the lab wrote it");
  } catch (err) {
    link.place = null;
    link.problem = "This link cannot be read: " + (err instanceof URIError ? "a part of it is missing" : err.message) +
      ". Choose a run below.";
  }
  return link;
}

/** Reads which run a link is about. */
async function placeOf(keys) {
  const given = ["s", "g", "y", "t"].filter(key => keys.has(key));
  if (given.length === 0) return null;
  if (given.length > 1) throw new Error("it names two runs");
  const place = {flags: {}};
  place[given[0]] = keys.get(given[0]);
  if (place.y !== undefined) {
    if (!place.y.startsWith("~")) throw new Error("its scenario is not packed");
    place.y = await inflate(place.y.slice(1));
  }
  for (const [key, value] of keys) {
    if (own.includes(key)) continue;
    if (Object.values(short).includes(key) && keys.has(Object.keys(short).find(k => short[k] === key))) {
      throw new Error("it gives a setting twice");
    }
    place.flags[short[key] ?? key] = key === "f" ? value.replace(/(^|,)([^,:]*):/g, "$1$2=") : value;
  }
  return place;
}

/** Packs a text. */
async function deflate(text) {
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  return btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

/** Unpacks a text, up to a limit: a few packed bytes can stand for a great text. */
async function inflate(packed) {
  try {
    const bytes = Uint8Array.from(atob(packed.replace(/-/g, "+").replace(/_/g, "/")), c => c.charCodeAt(0));
    const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))
      .pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const {done, value} = await reader.read();
      if (done) return text;
      text += value;
      if (text.length > longestText) break;
    }
  } catch {
    throw new Error("its scenario is damaged");
  }
  throw new Error("its scenario is too long");
}
