// What every part of the page uses: components, signals in components, answers in components, and numbers as text.

import {h, render} from "./vendor/preact.js";
import {useEffect, useLayoutEffect, useRef, useState} from "./vendor/hooks.js";
import {effect} from "./vendor/signals.js";
import htm from "./vendor/htm.js";
import {ask} from "./engine.js";

export const html = htm.bind(h);
export {render, useEffect, useLayoutEffect, useRef, useState};

/**
 * Returns the value of a signal, and renders the component again when it changes.
 * @template T
 * @param {{value: T, peek(): T}} signal
 * @returns {T}
 */
export function use(signal) {
  const [, again] = useState(0);
  const seen = useRef(undefined);
  seen.current = signal.peek();
  useLayoutEffect(() => effect(() => {
    if (signal.value !== seen.current) again(n => n + 1);
  }), [signal]);
  return seen.current;
}

/**
 * Asks a question and renders the component again with the answer. While another answer is on its way, the last one
 * stays, so that the page does not flicker.
 * @param {object | null} question null asks nothing
 * @param {number} [wait] milliseconds in which another question replaces this one
 * @returns {{answer?: any, error?: Error, question?: string}} question is the answered one, as JSON
 */
export function useAnswer(question, wait = 0) {
  const key = question && JSON.stringify(question);
  const [known, learn] = useState({});
  useEffect(() => {
    if (!key) return learn({});
    const stop = new AbortController();
    const timer = setTimeout(() => {
      remembered(key, stop.signal).then(
        answer => stop.signal.aborted || learn({answer, question: key}),
        error => stop.signal.aborted || learn({error, question: key}));
    }, memory.has(key) ? 0 : wait);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [key]);
  return known;
}

// An answer depends only on its question, so the last ones are kept. Questions about a trace contain it.
const memory = new Map();
const most = 80, mostText = 1 << 23;

/** Asks a question given as JSON, or returns the answer that is known. */
export async function remembered(key, signal) {
  let answer = memory.get(key);
  memory.delete(key);
  answer ??= await ask(JSON.parse(key), {signal});
  memory.set(key, answer);
  let text = 0;
  for (const kept of memory.keys()) text += kept.length;
  for (const oldest of memory.keys()) {
    if (memory.size <= most && text <= mostText) break;
    memory.delete(oldest);
    text -= oldest.length;
  }
  return answer;
}

/** Returns a number with its digits in groups of three, as the diagrams have it. */
export const number = n => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

/** Returns "1 message" or "2 messages". */
export const count = (n, one, many = one + "s") => `${number(n)} ${n === 1 ? one : many}`;

/** Returns a text with a capital letter first, unless it begins with a process: p1 is another one than P1. */
export const capital = text => /^p\d/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1);

/** Returns those of the names that are true, as the value of class. */
export const classes = names => Object.keys(names).filter(name => names[name]).join(" ");

/**
 * Returns a function that calls f after a pause in its calls.
 * @param {(...args: any[]) => void} f
 */
export function debounced(f, wait) {
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(f, wait, ...args);
  };
}

/** Whether the reader wants no movement. */
export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
