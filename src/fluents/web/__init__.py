"""The web application: a page, a REST API, a store, and a worker process that tracks one job at a time.

application.py   the server's parts put together
api.py           the REST API; `resources.py` has what it takes and gives
guard.py         what is refused before anything else looks at a request
job_queue.py     whose turn it is; `worker.py` is the process with the model
store.py         documents, jobs, traces and corrections in SQLite or PostgreSQL; `tables.py` is their schema
corrections.py   people's judgements on a trace, and the trace they make
backup.py        the whole store as one file
server.py        the server's settings, and running it
static/          the page
"""

from fluents.web import resources

__all__ = ["resources"]
