// The REST API. An error has what the server says of it: what, where, how to fix it.

const BASE = "/api/v1";

export class ApiError extends Error {
  constructor(what, where, fix, status) {
    super(what);
    Object.assign(this, { what, where, fix, status });
  }
}

async function answered(path, options) {
  let response;
  try {
    response = await fetch(BASE + path, options);
  } catch {
    throw new ApiError("the server does not answer", null, `check that \`${document.body.dataset.command}\` is still running, then try again`, 0);
  }
  if (response.ok) return response;
  let said = {};
  try {
    said = await response.json();
  } catch {
    // not from the application: the status is all there is
  }
  throw new ApiError(said.error ?? `the server answered with HTTP status ${response.status}`, said.where, said.fix, response.status);
}

const sent = (method, body) => ({ method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
const query = (values) => new URLSearchParams(Object.entries(values).filter(([, value]) => value !== "" && value !== null)).toString();

export const get = async (path, values = {}) => {
  const asked = query(values);
  return (await answered(asked ? `${path}?${asked}` : path)).json();
};
export const post = async (path, body = {}, options = {}) => {
  const response = await answered(path, { ...sent("POST", body), ...options });
  return response.status === 204 ? null : response.json();
};
export const replace = async (path, body) => {
  const response = await answered(path, sent("PUT", body));
  return response.status === 204 ? null : response.json();
};
export const patch = async (path, body) => (await answered(path, sent("PATCH", body))).json();
export const remove = async (path) => void (await answered(path, { method: "DELETE" }));
export const upload = async (path, file) =>
  (await answered(path, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file })).json();

/** The address of a file to download. */
export const address = (path, values = {}) => `${BASE}${path}${query(values) ? "?" + query(values) : ""}`;

/** The toolbar and the three views of a trace, as the server draws them for every page: `/jobs/ID` or `/traces/ID`. */
export async function drawn(of) {
  const html = await (await answered(`${of}/views`)).text();
  const read = new DOMParser().parseFromString(html, "text/html");
  return { toolbar: document.adoptNode(read.querySelector(".toolbar")), article: document.adoptNode(read.querySelector("article")) };
}

/** The warnings of a job that has ended, each once: a job that was resumed repeats them. */
export async function warningsOf(job) {
  const events = await (await answered(`/jobs/${job}/events`)).text();
  const messages = [...events.matchAll(/^event: warning\ndata: (.*)$/gm)].map(([, data]) => JSON.parse(data).message);
  return [...new Set(messages)];
}

/** Listen to a job. `told` gets ("state" | "step" | "warning" | "progress" | "lost" | "back" | "gone", data); returns how
 *  to stop. */
export function listen(job, told) {
  let source, timer, lost = false, stopped = false;
  const open = () => {
    source = new EventSource(`${BASE}/jobs/${job}/events`);
    source.addEventListener("open", () => {
      if (lost) told("back", null);
      lost = false;
    });
    for (const kind of ["state", "step", "warning", "progress"]) {
      source.addEventListener(kind, (event) => {
        told(kind, JSON.parse(event.data));
      });
    }
    source.addEventListener("error", () => {
      if (stopped) return;
      if (!lost) told("lost", null);
      lost = true;
      if (stopped) return;
      get(`/jobs/${job}`).catch((error) => error.status === 404 && !stopped && told("gone", null)); // its text was deleted
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, 2000); // the browser gave up; we do not
    });
  };
  open();
  return () => {
    stopped = true;
    clearTimeout(timer);
    source.close();
  };
}
