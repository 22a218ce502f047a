// What is known of a state at a step: the value that the last change left, and whether the next agrees with it.

/** Names and values that differ only in case, spaces or an article are the same. */
export const plainly = (text) => text.normalize("NFKC").toLowerCase().replace(/\s+/g, " ").trim().replace(/^(the|a|an) /, "");

const isOf = (change, entity, attribute) => plainly(change.entity) === plainly(entity) && plainly(change.attribute) === plainly(attribute);

/** The changes of one attribute of one entity, in the order of the steps. */
export const line = (changes, entity, attribute) => changes.filter((change) => isOf(change, entity, attribute)).sort((a, b) => a.step - b.step);

/** The changes of the last earlier step that has any: what they left is what is known. */
function left(changes, { step, entity, attribute }) {
  const earlier = line(changes, entity, attribute).filter((change) => change.step < step && change.after);
  return earlier.filter((change) => change.step === earlier.at(-1).step);
}

/** The change that says what the state is before a change. */
export const before = (changes, change) => left(changes, change).at(-1) ?? null;

/** Whether a change begins with another state than the steps before it left. Agreeing with one of them is enough. */
export function isContradicted(changes, change) {
  const known = left(changes, change);
  return known.length > 0 && change.before !== "" && !known.some((one) => plainly(one.after) === plainly(change.before));
}

/** What speaks against a change, in words. `own` is the change as it is kept, where it is being edited. */
export function contradictions(changes, change, own = null) {
  if (!change.entity || !change.attribute) return [];
  const all = [...changes.filter((one) => one !== own && one !== change), change];
  const found = [];
  if (isContradicted(all, change)) found.push(`after step ${before(all, change).step}, the state is “${before(all, change).after}”`);
  const later = line(all, change.entity, change.attribute).filter((one) => one.step > change.step);
  const next = change.after ? later.find((one) => one.step === later[0].step && isContradicted(all, one)) : null;
  if (next) found.push(`before step ${next.step}, the state is “${next.before}”`);
  if (change.before && change.after && plainly(change.before) === plainly(change.after)) found.push("the states before and after are the same");
  return found;
}
