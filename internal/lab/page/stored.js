// Answers that were stored when the static form was built: the list of runs, and what the page first shows of each run
// of the gallery. The page shows them until the engine is ready. A stored answer has the bytes of the engine's answer.

const folder = document.querySelector('meta[name="parley-answers"]')?.getAttribute("content");

/** The files that were asked for, each with its answers by their questions. @type {Map<string, Promise<any>>} */
const files = new Map();

/** Loads a file once. Without it, the engine answers. */
function load(name) {
  if (!files.has(name)) {
    files.set(name, fetch(new URL(`${folder}/${name}.json`, import.meta.url)).then(r => r.ok ? r.json() : {}).catch(() => ({})));
  }
  return files.get(name);
}

/**
 * Returns the stored answer to a question, or undefined.
 * @param {any} question
 * @param {string} text the question as the engine would get it
 */
export async function stored(question, text) {
  if (!folder) return;
  const about = await load("about"), [{gallery = []} = {}] = Object.values(about);
  const name = question.run?.scenario && gallery.find(card => card.text === question.run.scenario)?.name;
  const answers = name ? await load(name) : about;
  return Object.hasOwn(answers, text) ? answers[text] : undefined;
}
