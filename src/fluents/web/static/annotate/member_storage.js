// What the browser keeps for one member: decisions that are not sent yet, and forms that are not finished.

export class MemberStorage {
  constructor(member) {
    this.member = member;
    this.prefix = `fluents.annotate.${member}.`;
    this.memory = new Map(); // for browsers that keep nothing: private windows, no room left
    this.lasts = true;
  }

  set(name, value) {
    const text = JSON.stringify(value);
    try {
      localStorage.setItem(this.prefix + name, text);
      this.memory.delete(name);
    } catch {
      this.lasts = false;
      this.memory.set(name, text);
    }
  }

  get(name) {
    const text = this.memory.get(name) ?? this.#read(name);
    try {
      return text === null ? null : JSON.parse(text);
    } catch {
      return null; // nothing this page wrote
    }
  }

  remove(name) {
    this.memory.delete(name);
    try {
      localStorage.removeItem(this.prefix + name);
    } catch {
      // then it is not there
    }
  }

  /** The names that begin so, in order. */
  names(beginning) {
    let kept = [];
    try {
      kept = Object.keys(localStorage).filter((key) => key.startsWith(this.prefix)).map((key) => key.slice(this.prefix.length));
    } catch {
      // it keeps nothing
    }
    return [...new Set([...kept, ...this.memory.keys()])].filter((name) => name.startsWith(beginning)).sort();
  }

  #read(name) {
    try {
      return localStorage.getItem(this.prefix + name);
    } catch {
      return null;
    }
  }
}
