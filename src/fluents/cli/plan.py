"""fluents plan | pddl"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Group, RenderableType

from fluents.cli.command import AsJson, TraceFile, emit, messages, show, show_json, tell, tell_skipped, with_options
from fluents.cli.model_options import AnswerProgress, ModelOptions, model_unless
from fluents.errors import InputError
from fluents.report.terminal import plain
from fluents.text.names import counted, one_line

if TYPE_CHECKING:
    from fluents.planning.expressions import Repair
    from fluents.planning.planners import Solution
    from fluents.planning.trace_plan import TracePlan


@dataclass(frozen=True)
class PlannerOptions:
    """Each field is an option."""

    planner: Annotated[
        Literal["auto", "built-in", "fast-downward"],
        typer.Option(
            help="Planner: built-in, fast-downward (needs the extra `fluents[plan]`), or auto (first built-in, "
            "then fast-downward if built-in gives up)."
        ),
    ] = "auto"
    time_limit: Annotated[
        float, typer.Option(min=0.1, max=86400, help="Time limit of the planner for each problem, in seconds.")
    ] = 60.0
    memory_limit: Annotated[int, typer.Option(min=64, max=1 << 20, help="Memory limit of the planner, in MiB.")] = 2048


@with_options
def plan(
    file: TraceFile = "-",
    goal: Annotated[
        str | None,
        typer.Option(
            help='States to reach, such as "soup hot, bowl full". Default: the final states of all entities with a '
            "salience of at least --min-salience. With --method prompted, the goal can be any text, and the default is "
            "the goal of the procedure."
        ),
    ] = None,
    method: Annotated[
        Literal["compiled", "prompted"],
        typer.Option(
            help="compiled: fluents derives the PDDL from the trace. prompted: the language model given by --model "
            "writes the PDDL."
        ),
    ] = "compiled",
    min_salience: Annotated[
        float,
        typer.Option(
            metavar="X",
            min=0,
            max=5,
            help="Use only entities with a salience of at least X, from 0 to 5. With --method compiled, this applies "
            "to the default --goal; with --method prompted, to the prompt.",
        ),
    ] = 4.0,
    salience_rater: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Use the salience ratings by NAME, a person or a program. For example, A1 is an annotator of "
            "OpenPI2.0. Required if a trace has ratings by several raters.",
        ),
    ] = None,
    side_effects: Annotated[
        bool,
        typer.Option(
            "--side-effects/--no-side-effects",
            show_default=False,
            help="With --no-side-effects and --method compiled: if an entity is mentioned in the text of some steps, "
            "ignore its changes in all other steps. With --no-side-effects and --method prompted: show the model only "
            "the text, without changes. Default: --side-effects.",
        ),
    ] = True,
    order: Annotated[
        bool,
        typer.Option(
            "--order", help="With --method compiled: use all steps that have changes, in the order of the text."
        ),
    ] = False,
    pddl: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write the PDDL of each trace to FOLDER, as ID-domain.pddl and ID-problem.pddl. ID is the id of the "
            "trace.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the plans to FILE, as JSONL. Each plan is a trace: the steps of the plan and their "
            "changes. If the input contains planning tasks, write the domains instead.",
        ),
    ] = None,
    as_json: AsJson = False,
    *,
    limits: PlannerOptions,
    options: ModelOptions,
) -> None:
    """Find a plan for each trace: the steps that lead to a goal.

    The command turns each trace into a planning problem in PDDL, solves the problem, and checks the plan by replaying
    it. If it finds no plan, the command shows which states cannot be reached or why the planner gave up, and exits with
    status 1.

    Example: `fluents track soup.md | fluents plan --goal "soup hot"`

    Example: `fluents plan soup.jsonl --method prompted --base-url http://127.0.0.1:8080/v1 --model NAME --pddl out`

    FILE can also contain planning tasks, such as those of the dataset Proc2PDDL (2024). They need --method prompted:
    the language model writes a PDDL domain for each task. To score these domains, use `fluents eval plan`.

    Example: `fluents plan proc2pddl:all --method prompted --model NAME -o domains.jsonl`
    """
    from fluents import jsonl
    from fluents.data.datasets import to_trace
    from fluents.data.file_formats import read
    from fluents.planning.generation import predict_domains
    from fluents.planning.trace_plan import plan as planned
    from fluents.task_records import PddlTask

    if file == "-" and sys.stdin is not None and sys.stdin.isatty():
        tell("reading traces from standard input; press Ctrl-D to end", "dim")
    progress = AnswerProgress()
    found: list[TracePlan] = []
    names: Counter[str] = Counter()
    skipped = 0
    with model_unless(method == "compiled", options, progress, "with --method prompted") as model:
        records = list(read(file))
        tasks = [record for record in records if isinstance(record, PddlTask)]
        if model is not None and tasks:
            with progress.named(f"domains of {file}"):
                domains = predict_domains(tasks, model)
            emit(domains, lambda task: plain(task.domain), output, as_json or None)
            return
        for trace in map(to_trace, records):
            try:
                with progress.of(trace), messages.status(plain(f"planning {trace.id}")):
                    one = planned(
                        trace,
                        goal,
                        method=method,
                        min_salience=min_salience,
                        salience_rater=salience_rater,
                        side_effects=side_effects,
                        order=order,
                        planner=limits.planner,
                        time_limit=limits.time_limit,
                        memory_limit=limits.memory_limit,
                        model=model,
                    )
            except InputError as error:
                skipped += 1
                tell_skipped(error)
                continue
            found.append(one)
            if pddl is not None and one.domain is not None and one.problem is not None:
                pddl.mkdir(parents=True, exist_ok=True)
                name = _file_name(one.id, names)
                jsonl.write_text(pddl / f"{name}-domain.pddl", str(one.domain))
                jsonl.write_text(pddl / f"{name}-problem.pddl", str(one.problem))
            if as_json:
                print(json.dumps(one.to_dict(), ensure_ascii=False))
            else:
                show(plan_view(one))
    if output is not None:
        traces = [one.trace for one in found if one.trace is not None]
        tell(f"wrote {counted(jsonl.write(traces, output), 'trace')} to {output}")
    without = sum(one.trace is None for one in found)
    if without or skipped:
        if len(found) + skipped > 1:
            tell(f"found plans for {len(found) - without} of {len(found) + skipped} procedures; skipped {skipped}")
        raise typer.Exit(1)


@with_options
def pddl(
    domain: Annotated[
        Path, typer.Argument(metavar="DOMAIN", help="PDDL file with a domain, or with a domain and a problem.")
    ],
    problem: Annotated[
        Path | None,
        typer.Argument(metavar="PROBLEM", help="PDDL file with a problem. Not needed if DOMAIN contains the problem."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop if a file has errors, instead of repairing them.")
    ] = False,
    solve: Annotated[bool, typer.Option("--solve", help="Find a plan and print it, instead of the PDDL.")] = False,
    as_json: AsJson = False,
    *,
    limits: PlannerOptions,
) -> None:
    """Repair errors in PDDL files, and print the files as standard PDDL.

    With --solve, print a plan instead. The repairs are listed on standard error.

    Example: `fluents pddl domain.pddl`

    Example: `fluents pddl domain.pddl problem.pddl --solve`
    """
    from fluents.planning.planners import solve as solved
    from fluents.planning.reader import read_pddl

    files = [path for path in (domain, problem) if path is not None]
    texts = [path.read_bytes().decode(errors="replace") for path in files]
    found = read_pddl(*texts, strict=strict, sources=[str(path) for path in files])
    solution = None
    if solve:
        if found.problem is None:
            raise InputError(
                "`solve` needs a problem, but only a domain is given",
                where=domain,
                fix="give a PDDL file with a problem as `problem`",
            )
        with messages.status("planning"):
            solution = solved(
                found.domain,
                found.problem,
                planner=limits.planner,
                time_limit=limits.time_limit,
                memory_limit=limits.memory_limit,
            )
    if as_json:
        from fluents.planning.trace_plan import solution_dict

        printed = {"domain": str(found.domain), "problem": None if found.problem is None else str(found.problem)}
        repairs = {"repairs": [str(repair) for repair in found.repairs]}
        show_json(printed | repairs | (solution_dict(solution) if solution else {}))
    else:
        for repair in found.repairs:
            tell(str(repair), "yellow")
        if solution is None:
            print(found.domain, *([found.problem] if found.problem else []), sep="\n", end="")
        else:
            show(Group(*_solution_lines(solution)))
    if solution is not None and solution.status != "solved":
        raise typer.Exit(1)


def plan_view(found: TracePlan) -> RenderableType:
    """The plan, or why there is none; what the goal was taken to mean, and what had to be repaired."""
    lines: list[RenderableType] = [plain(found.goal or found.id, "bold")]
    lines += [plain(f"  goal: {one_line('; '.join(found.goal_states))}", "dim")] if found.goal_states else []
    lines += [plain(f"  tried: {one_line(attempt)}", "dim") for attempt in found.attempts]
    lines += _repair_lines(found.repairs)
    if found.trace is not None and found.steps:
        texts = zip(found.steps, found.trace.procedure.steps, strict=True)
        return Group(*lines, *(plain(f"  {number}. {one_line(text)}") for number, text in texts))
    return Group(*lines, *_solution_lines(found.solution))


def _repair_lines(repairs: tuple[Repair, ...]) -> list[RenderableType]:
    return [plain(f"  repaired: {repair}", "yellow") for repair in repairs]


def _solution_lines(solution: Solution) -> list[RenderableType]:
    if solution.status == "solved":
        steps: list[RenderableType] = [plain(f"  {number}. {step}") for number, step in enumerate(solution.plan, 1)]
        return steps or [plain("  the goal is true at the beginning: no step is needed")]
    said = {"unsolvable": "no plan: there is no way to reach the goal", "gave-up": f"no plan found: {solution.reason}"}
    lines: list[RenderableType] = [plain(f"  {said[solution.status]}", "red")]
    said_why = [solution.reason] if solution.status == "unsolvable" and solution.reason else []
    return lines + [plain(f"    {one}") for one in (*said_why, *solution.unreachable)]


def _file_name(id: str, taken: Counter[str]) -> str:
    """An id as the name of a file, wherever it comes from; with a number where two ids give the same."""
    from fluents.records import id_from

    name = id_from(id)
    taken[name] += 1
    return name if taken[name] == 1 else f"{name}-{taken[name]}"
