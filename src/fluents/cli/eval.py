"""fluents eval: a command for every metric, and compare; `eval_raters.py` and `eval_tasks.py` have those
about raters, and about questions and plans"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

import typer

from fluents.cli import eval_raters, eval_tasks
from fluents.cli.command import (
    AsJson,
    ScoredSalient,
    changed,
    messages,
    show,
    show_json,
    with_options,
)
from fluents.cli.scoring import (
    ByAny,
    ByStep,
    ByTopic,
    EmbedderChoice,
    Gold,
    ModeOption,
    Pred,
    Sides,
    Worst,
    run,
    warn,
)
from fluents.errors import InputError
from fluents.report.terminal import plain
from fluents.scoring import Level, Mode, Scope

app = typer.Typer(
    help="Score predictions with the metrics of OpenPI and related papers, and compare systems.",
    no_args_is_help=True,
)


@app.command()
@with_options
def original(
    sides: Sides,
    matchers: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="How to measure the similarity of two changes: one or more of exact, bleu, rouge and meteor-stem,"
            " separated by commas. Append -states, as in bleu-states, to compare only the states.",
        ),
    ] = "exact,bleu,rouge",
    by: ByAny = None,
    errors: Annotated[
        bool,
        typer.Option("--errors", help="Also count the wrong predictions by type of error, such as a wrong entity."),
    ] = False,
    worst: Worst = 0,
    as_json: AsJson = False,
    *,
    salient: ScoredSalient,
) -> None:
    """Score changes as in OpenPI (2020): compare each prediction with the most similar gold change, and vice versa.

    For precision, each prediction is compared with the most similar gold change of the same step. For recall, each gold
    change is compared with the most similar prediction.

    Example: `fluents eval original --gold openpi:test --pred mine.jsonl`

    Example: `fluents eval original --gold openpi:test --pred openpi:gpt2-test --by seen`
    """
    names = [name.strip() for name in matchers.split(",")]
    run("original", sides, as_json, salient, by=by, errors=errors, worst=worst, matchers=names)


@app.command()
@with_options
def cluster(
    sides: Sides,
    embedder: EmbedderChoice,
    by: ByAny = None,
    worst: Worst = 0,
    as_json: AsJson = False,
    *,
    salient: ScoredSalient,
) -> None:
    """Score changes as in OpenPI-C (2023): in each step, cluster changes that mean the same, then compare clusters.

    Predicted clusters are matched one to one with gold clusters.

    Example: `fluents eval cluster --gold openpi-c:test --pred mine.jsonl`
    """
    run("cluster", sides, as_json, salient, by=by, worst=worst, **asdict(embedder))


@app.command()
@with_options
def schemata(sides: Sides, by: ByTopic = None, as_json: AsJson = False, *, salient: ScoredSalient) -> None:
    """Score pairs of entity and attribute (schemata), without their states, as in OpenPI2.0 (2024).

    The global scores compare each predicted pair with the gold pairs of the whole procedure. The local scores compare
    it with the gold pairs of the same step. If the gold contains paraphrases of names (see `fluents expand`), the
    scores marked +exp accept these too.

    Example: `fluents eval schemata --gold openpi2:dev --pred mine.jsonl`

    Example: `fluents eval schemata --gold openpi2:dev --pred openpi2-outputs:davinci-schemata`
    """
    run("schemata", sides, as_json, salient, by=by)


@app.command()
@with_options
def states(sides: Sides, by: ByStep = None, as_json: AsJson = False, *, salient: ScoredSalient) -> None:
    """Score the states before and after each change, as in OpenPI2.0 (2024).

    The predictions should have the same entities and attributes as the gold. To make such predictions, use `fluents
    track-llm --pairs`. A prediction is right if both states are right. The gold can contain a state in several
    wordings. The score “first wording” accepts only the first one. The score “any wording” accepts all of them.

    Example: `fluents eval states --gold openpi2:ranked-dev --pred mine.jsonl`

    Example: `fluents eval states --gold openpi2:ranked-dev --pred openpi2-outputs:davinci-states`
    """
    run("states", sides, as_json, salient, by=by)


@app.command()
@with_options
def complete(sides: Sides, by: ByStep = None, as_json: AsJson = False, *, salient: ScoredSalient) -> None:
    """Score complete changes, as in OpenPI2.0 (2024): entity, attribute and both states must be right.

    If the gold contains paraphrases of names (see `fluents expand`), the scores marked +exp accept these too.

    In compat mode, a prediction is right only if a gold sentence contains its sentence word for word. Gold sentences
    end in “after”, but the sentences of fluents end in “afterwards”, so in compat mode no prediction of fluents is
    right. Score predictions of fluents with --mode strict, which compares entity, attribute and states.

    Example: `fluents eval complete --gold openpi2:dev --pred mine.jsonl --mode strict`

    Example: `fluents eval complete --gold openpi2:dev --pred openpi2-outputs:davinci-sentences`
    """
    run("complete", sides, as_json, salient, by=by)


@app.command()
@with_options
def bertscore(
    sides: Sides,
    of: Annotated[
        Literal["schemata", "states", "complete"],
        typer.Option(help="Texts to compare: schemata (entities and attributes), states, or complete (whole changes)."),
    ] = "schemata",
    scope: Annotated[
        Scope | None,
        typer.Option(
            help="With --of schemata: compare the schemata of the whole procedure (global) or of each step (local). "
            "Default: global."
        ),
    ] = None,
    expanded: Annotated[
        bool,
        typer.Option(
            "--expanded",
            help="With --of schemata or complete: also accept the paraphrases of names in the gold (see `fluents "
            "expand`).",
        ),
    ] = False,
    encoder: Annotated[
        str,
        typer.Option(metavar="NAME", help="Encoder that compares texts: the name or folder of a transformers model."),
    ] = "microsoft/deberta-xlarge-mnli",
    layer: Annotated[
        int | None,
        typer.Option(
            help="Use the output of layer N of the encoder. Default: for deberta-xlarge-mnli, roberta-large "
            "and bert-base-uncased, the layer that the authors of BERTScore recommend; for other "
            "encoders, the last layer."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute BERTScore as in OpenPI2.0 (2024): compare each prediction with the most similar gold text.

    BERTScore uses a neural model, the encoder, to measure how similar two texts are. Needs the extra `fluents[embed]`.

    Example: `fluents eval bertscore --gold openpi2:dev --pred mine.jsonl --encoder all-MiniLM-L6-v2`
    """
    run("bertscore", sides, as_json, of=of, scope=scope, expanded=expanded, encoder=encoder, layer=layer)


@app.command()
def clustering(
    gold: Annotated[
        str,
        typer.Option(
            "--gold", metavar="SOURCE", help="Gold clusters: openpi2:labels, a dataset split or a file of traces."
        ),
    ] = "openpi2:labels",
    pred: Annotated[
        str,
        typer.Option(
            "--pred",
            metavar="SOURCE",
            help="Clusters to score: a file of traces, - for standard input, or one of the names above.",
        ),
    ] = "openpi2-outputs:clusters",
    mode: ModeOption = "compat",
    level: Annotated[
        Level, typer.Option(help="Score the clusters of entities or the clusters of attributes.")
    ] = "entities",
    as_json: AsJson = False,
) -> None:
    """Score clusters of names, such as those from `fluents canonicalise`, as in OpenPI2.0 (2024).

    Prints exact match and two averages of B-cubed. Exact match counts the predicted clusters that equal a gold cluster.
    B-cubed also gives credit for clusters that are partly right. The row “b-cubed” is its mean over names. The row
    “b-cubed macro” is its mean over procedures (with --level attributes: over entities). The default gold contains the
    clusters that a person made for ten procedures.

    --pred can be a file, or one of these names:

    - `openpi2-outputs:clusters`: the clusters that a language model made (the default)
    - `openpi2-outputs:votes`: clusters from several runs of the same model, combined by a vote
    - `offline`: the built-in method of `fluents canonicalise`, cross-validated (only with the default gold)
    - `same-words`: a baseline that joins only names with the same words (only with the default gold)
    - `single`: a baseline that joins no names (only with the default gold)

    Example: `fluents eval clustering --pred named.jsonl`

    Example: `fluents eval clustering --level attributes --pred offline`
    """
    run("clustering", Sides(gold, pred, mode), as_json, level=level)


app.command()(eval_raters.salience)
app.command()(eval_tasks.crepe)


@app.command()
def readers(
    gold: Gold,
    pred: Pred,
    mode: Annotated[
        Mode,
        typer.Option(
            help="What to do if gold and predictions do not have the same steps. compat: count a missing step as a "
            "step without changes, ignore a step that is not in the gold, and print a warning. strict: stop."
        ),
    ] = "strict",
    as_json: AsJson = False,
) -> None:
    """Score how useful traces are to people who read them.

    Needs gold that lists every change, such as fluents:test. Prints:

    - soft: the F1 of changes. Predictions and gold changes are matched one to one, and each match counts from
      0 to 1: the more similar the two changes are, the more it counts.
    - entities, pairs: the F1 of entities, and of pairs of entity and attribute
    - consistency: how often a change starts from the state in which the previous change of the same attribute ended
    - calibration: how much the tracker's confidence in its changes differs from the share of them that are right

    Example: `fluents eval readers --gold fluents:test --pred mine.jsonl`
    """
    run("readers", Sides(gold, pred, mode), as_json)


@app.command()
def consistency(pred: Pred, as_json: AsJson = False) -> None:
    """Measure how often a change starts from the state in which the previous change of the same attribute ended.

    Needs no gold. Counts only “carried” changes: changes of an attribute that already changed in an earlier step. In
    the score “exact”, a carried change is consistent if the state before it has the same words as the state after the
    previous change. In the score “in other words”, it is enough that most of the words are the same.

    Example: `fluents eval consistency --pred mine.jsonl`
    """
    run("consistency", Sides("", pred), as_json)


app.command()(eval_raters.agreement)
app.command()(eval_raters.judgements)
app.command()(eval_tasks.plan)


@app.command()
@with_options
def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="Predictions of one system: a dataset split or a file.")],
    second: Annotated[
        str, typer.Argument(metavar="B", help="Predictions of the other system: a dataset split or a file.")
    ],
    gold: Gold,
    metric: Annotated[
        Literal["original", "cluster", "schemata", "states", "complete", "crepe", "readers"],
        typer.Option(
            help="Metric to use: original, cluster, schemata, states, complete, crepe or readers (see `fluents eval`)."
        ),
    ] = "original",
    mode: ModeOption = "compat",
    *,
    embedder: EmbedderChoice,
    as_json: AsJson = False,
) -> None:
    """Test whether the scores of two systems differ significantly.

    Prints the scores, their difference with its 95 % confidence interval, and the p-values of two tests: paired
    bootstrap and approximate randomisation. The options --embedder and --threshold work only with --metric cluster.
    With --metric readers, --mode has the meaning that it has in `fluents eval readers`, but not the same default.

    Example: `fluents eval compare mine.jsonl openpi:gpt2-test --gold openpi:test`
    """
    from fluents import metrics
    from fluents.report.score_tables import comparison_table, finite_only, notes
    from fluents.scoring.bootstrap import compare as compare_scores

    if (first, second, gold).count("-") > 1:
        raise InputError("standard input can be read only once", fix="save one of the inputs to a file")
    if metric != "cluster" and (foreign := changed(embedder)):
        raise InputError(
            f"{foreign[0]} works only with --metric cluster", fix=f"add --metric cluster, or leave out {foreign[0]}"
        )
    options = {"embedder": embedder.load()} if metric == "cluster" else {}
    meant = metrics.held(metrics.read_sides(metric, gold, ())[0])
    scores = []
    for name in (first, second):
        with messages.status(plain(f"scoring {name}")):
            scores.append(metrics.score(metric, meant, name, mode=mode, **options))
        warn(scores[-1].warnings, name)
    found = compare_scores(*scores)
    if as_json:
        differences = {row: {name: asdict(one) for name, one in columns.items()} for row, columns in found.items()}
        values = {"names": {"a": first, "b": second}, "a": scores[0].rows, "b": scores[1].rows}
        show_json(finite_only({**values, "differences": differences, "signature": str(scores[0].signature)}))
        return
    show(comparison_table(found, (first, second)))
    show(notes(scores[0], with_intervals=True))
    print(scores[0].signature)
