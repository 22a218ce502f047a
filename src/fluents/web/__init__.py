"""The web application: a page, a REST API, a store, and a worker process that tracks one job at a time.

server.py           serving it
application.py      the parts put together; `assembly.py` is what stands around them: pages, errors, the guard;
                    `templates/` and `static/` are what a browser gets
guard.py            what is refused before anything else looks at a request
api.py              the REST API; `job_routes.py` has the part about jobs, `services.py` what all routes work with
resources.py        what the API takes and gives; `trace_resources.py` is the part about traces
uploads.py          texts and files as people give them
trace_views.py      traces as the page shows them
runner.py           runs jobs in turn; `worker.py` is the process with the model
tracker_choices.py  the trackers that jobs may name
jobs.py             jobs and what happened to them
archive.py          documents, traces, judgements, search; `corrections.py` is what judgements make of a trace,
                    `search_words.py` what a search compares
backup.py           the whole store as one file
annotation_*.py     annotation projects, an application of its own on the same store: projects, members, places (who
                    works on which item), decisions, their API, exports and the history
store.py            SQLite or PostgreSQL; `tables.py` is the schema, `migrations/` brings older ones up to date
"""
