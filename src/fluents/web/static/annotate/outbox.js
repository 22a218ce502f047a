// Decisions on their way. Each is kept in the browser before it is sent, and until the server says that it has it. The
// server knows it by its id, so that sending it twice does no harm.

import { post } from "../api.js";

const PAUSES = [1, 2, 4, 8, 15];
/** Seconds after which a request counts as lost. */
const PATIENCE = 20;
/** What may go well when tried again; other refusals are final. */
const PASSING = [0, 401, 408, 425, 429];

export const newId = () => [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

export class Outbox {
  #storage;
  #told;
  #waiting = new Map();
  #timer;
  #failures = 0;
  #count = 0;
  #sending = false;
  isLost = false;
  isSignedOut = false;
  savedAt = null;
  /** The items that the page shows or is about to show: the server offers others. */
  inHand = () => [];
  /** Whether the page wants another item with the server's answer. */
  wantsNext = () => false;

  constructor(storage, told) {
    this.#storage = storage;
    this.#told = told;
    addEventListener("online", () => this.flush());
    addEventListener("pageshow", () => this.flush());
  }

  /** `{id, path, body, about}`: keep it and send it. What comes back is the server's answer, or null where another
   * window sent it; if the server refuses it, an error. */
  add(entry) {
    this.#count += 1;
    const place = [Date.now(), this.#count].map((number) => String(number).padStart(15, "0")).join("-");
    this.#storage.set(`out.${place}.${entry.id}`, entry);
    const answer = new Promise((resolve, reject) => this.#waiting.set(entry.id, { resolve, reject }));
    this.flush();
    return answer;
  }

  entries() {
    return this.#all("out.");
  }

  /** What the server did not take, with its reason: it stays until somebody has seen it. */
  refused() {
    return this.#all("refused.");
  }

  discard({ name }) {
    this.#storage.remove(name);
    this.#told(this);
  }

  sendAgain({ name, problem, ...entry }) {
    this.#storage.remove(name);
    return this.add(entry);
  }

  async flush() {
    clearTimeout(this.#timer);
    if (this.#sending) return;
    this.#sending = true;
    try {
      for (let [entry] = this.entries(); entry; [entry] = this.entries()) {
        this.#told(this);
        if (!(await this.#send(entry))) return;
      }
      for (const [id, { resolve }] of this.#waiting) {
        this.#waiting.delete(id);
        resolve(null);
      }
    } finally {
      this.#sending = false;
      this.#told(this);
    }
  }

  async #send({ name, ...entry }) {
    const query = new URLSearchParams({ member: this.#storage.member }); // another window may be signed in as somebody else
    if (entry.path === "/annotation/decisions" && this.wantsNext()) {
      query.set("next", "1");
      const decided = this.entries().map((one) => one.body.item).filter(Boolean);
      for (const item of new Set([...this.inHand(), ...decided])) query.append("besides", item);
    }
    try {
      const answer = await post(`${entry.path}?${query}`, entry.body, { signal: AbortSignal.timeout(PATIENCE * 1000) });
      this.#storage.remove(name);
      this.isLost = this.isSignedOut = false;
      this.#failures = 0;
      this.savedAt = new Date();
      this.#settle(entry.id, "resolve", answer);
      return true;
    } catch (error) {
      this.isLost = !error.status || error.status >= 500;
      this.isSignedOut = error.status === 401;
      if (error.status < 500 && !PASSING.includes(error.status)) {
        this.#storage.remove(name);
        this.#storage.set(name.replace(/^out/, "refused"), { ...entry, problem: { what: error.what, fix: error.fix } });
        this.#settle(entry.id, "reject", error);
        return true;
      }
      const pause = PAUSES[Math.min(this.#failures, PAUSES.length - 1)];
      this.#failures += 1;
      this.#timer = setTimeout(() => this.flush(), pause * 1000);
      return false;
    }
  }

  #settle(id, way, value) {
    this.#waiting.get(id)?.[way](value);
    this.#waiting.delete(id);
  }

  #all(beginning) {
    return this.#storage.names(beginning).map((name) => ({ name, ...this.#storage.get(name) })).filter((entry) => entry.id);
  }
}
