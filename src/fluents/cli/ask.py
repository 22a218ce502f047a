"""fluents ask"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated, Literal

import typer

from fluents.cli.command import OutputOptions, emit, resumable_output, tell, with_options
from fluents.cli.model_options import AnswerProgress, ModelOptions, model_unless, report_parse_failures
from fluents.errors import InputError
from fluents.records import Procedure, Trace
from fluents.report.terminal import answers_view
from fluents.resumable import is_regular
from fluents.task_records import CrepeCase
from fluents.text.names import counted


@with_options
def ask(
    source: Annotated[
        str,
        typer.Argument(
            help="A file (a text, a web page or traces), a dataset split such as crepe:dev, or - for standard input."
        ),
    ],
    question: Annotated[
        str | None,
        typer.Argument(help="Yes-or-no question. Leave it out for the dataset crepe, which contains events instead."),
    ] = None,
    states: Annotated[
        Literal["none", "all", "salient"],
        typer.Option(
            help="States to base the answer on. all: the states of all entities. salient: only the states of "
            "salient entities (see --min-salience). none: no states, only the text."
        ),
    ] = "all",
    min_salience: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            min=0,
            max=5,
            help="With --states salient: use only entities whose salience in the step is at least X, from 0 to 5. "
            "Default: 3.",
        ),
    ] = None,
    method: Annotated[
        Literal["offline", "prompted"],
        typer.Option(
            help="offline: use the built-in method, without a language model. prompted: use the language model given "
            "by --model."
        ),
    ] = ("offline"),
    traces: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Take the states from the traces in FILE, instead of tracking SOURCE."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Use only the first N procedures. Default: all.")
    ] = None,
    *,
    to: OutputOptions,
    options: ModelOptions,
) -> None:
    """Ask a yes-or-no question about a procedure: how likely is “yes” after each step?

    The command gives one answer for the time before the first step, and one for the time after each step. An answer is
    a number from 1 (“yes” is almost impossible) to 5 (“yes” is almost certain), or “cannot tell”. Each answer comes
    with a reason and with the changes that support the answer. If SOURCE contains no traces, an embedded model tracks
    it first, unless --states is none or --traces is given.

    The dataset crepe contains events instead of questions. For each event, the command says how each step changes the
    likelihood of the event: “more likely”, “less likely”, “no change” or “cannot tell”. To score such answers, use
    `fluents eval crepe`.

    Example: `fluents ask windy.txt "Can she see what is in the room?"`

    Example: `fluents ask crepe:dev --method prompted --states salient --model NAME -o salient.jsonl`
    """
    from fluents.questions import answered, check_states, open_judge, questions_of
    from fluents.questions.prompted_judge import parse_failures

    given = {trace.id: trace for trace in _traces(traces)} if traces else {}
    check_states(states, min_salience)
    wanted = [(one, questions_of(one, question)) for one in islice(_sources(source), limit)]
    if traces and (missing := [one.id for one, _ in wanted if one.id not in given]):
        more = f", nor for {len(missing) - 1:,} others" if len(missing) > 1 else ""
        raise InputError(
            f"`traces` contains no trace for {missing[0]}{more}",
            where=traces,
            fix="track `source`, and give the new file as `traces`; or leave out `traces`",
        )
    if (source, question, method) == ("crepe:dev", None, "offline"):
        tell("warning: the offline method was trained on crepe:dev, so its score on crepe:dev is meaningless")
    progress = AnswerProgress()
    with (
        model_unless(method == "offline", options, progress, "with --method prompted") as model,
        open_judge(method, scale="rating" if question else "change", model=model) as judge,
        report_parse_failures("these judgements are “cannot tell” in the output") as failures,
    ):

        def work(one: Trace | Procedure | CrepeCase, events: tuple[str, ...]) -> CrepeCase:
            trace = given[one.id] if traces else _tracked(one, states)
            if trace.procedure.steps != _procedure(one).steps:
                raise InputError(
                    f"the steps of {one.id} in `traces` differ from those in `source`",
                    where=traces,
                    fix="track `source` again, and give the new file as `traces`",
                )
            dataset = source if isinstance(one, CrepeCase) else None
            with progress.of(trace):
                done = answered(trace, events, judge, states=states, min_salience=min_salience, dataset=dataset)
            failures.extend(parse_failures(done))
            return done

        settings = {"question": question, "states": states, "min_salience": min_salience, "method": method}
        settings |= {"model": options.model, "traces": traces}
        if to.output is None or not is_regular(to.output):
            emit((work(*one) for one in wanted), answers_view, to.output, to.as_json)
            return
        with resumable_output(to.output, settings, resume=to.resume) as output:
            for one, events in wanted:
                output.add(output.kept_answers(_procedure(one), events) or work(one, events))
    tell(f"wrote {counted(output.count, 'procedure')} to {to.output}")


def _sources(source: str) -> Iterator[Trace | Procedure | CrepeCase]:
    from fluents.data.inputs import records
    from fluents.task_records import PddlTask

    for record in records(source):
        yield record.procedure if isinstance(record, PddlTask) else record


def _traces(path: str) -> Iterable[Trace]:
    from fluents.data.file_formats import read_traces

    return read_traces(path)


def _procedure(one: Trace | Procedure | CrepeCase) -> Procedure:
    return one if isinstance(one, Procedure) else one.procedure


def _tracked(one: Trace | Procedure | CrepeCase, states: Literal["none", "all", "salient"]) -> Trace:
    """The trace, tracked with a progress bar where there is none yet."""
    if isinstance(one, Trace) or states == "none":
        return one if isinstance(one, Trace) else Trace(procedure=_procedure(one))
    from fluents.cli.track import fetch_weights
    from fluents.trackers import track_many

    fetch_weights()
    [trace] = track_many([_procedure(one)], progress=True)
    return trace
