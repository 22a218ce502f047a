// What is known of a state at a step: the value that the last change left, and whether the next agrees with it.

/** Names and values that differ only in case, spaces or an article are the same. */
export const plainly = (text) => text.normalize("NFKC").toLowerCase().replace(/\s+/g, " ").trim().replace(/^(the|a|an) /, "");

const isOf = (change, entity, attribute) => plainly(change.entity) === plainly(entity) && plainly(change.attribute) === plainly(attribute);

/** The changes of one attribute of one entity, in the order of the steps. */
export const line = (changes, entity, attribute) => changes.filter((change) => isOf(change, entity, attribute)).sort((a, b) => a.step - b.step);

/** The last change that left a value before this one; `own` is the change itself, where it is among them. */
export function before(changes, { step, entity, attribute }, own = null) {
  const others = line(changes, entity, attribute).filter((change) => change !== own && change.after);
  const order = own ? changes.indexOf(own) : changes.length;
  return others.filter((change) => change.step < step || (change.step === step && changes.indexOf(change) < order)).at(-1) ?? null;
}

/** The first change after this one. */
export const after = (changes, { step, entity, attribute }, own = null) => line(changes, entity, attribute).find((change) => change !== own && change.step > step) ?? null;

/** What contradicts a change: "≠ …" sentences, none if nothing does. */
export function contradictions(changes, change, own = null) {
  if (!change.entity || !change.attribute) return [];
  const found = [];
  const [earlier, later] = [before(changes, change, own), after(changes, change, own)];
  if (earlier && change.before && plainly(earlier.after) !== plainly(change.before)) found.push(`after step ${earlier.step} it was “${earlier.after}”`);
  if (later?.before && change.after && plainly(later.before) !== plainly(change.after)) found.push(`step ${later.step} begins with “${later.before}”`);
  if (change.before && change.after && plainly(change.before) === plainly(change.after)) found.push("nothing changes");
  return found;
}
