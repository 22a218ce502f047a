"""A score report as one self-contained HTML page: no script, nothing loaded, every text escaped."""

from __future__ import annotations

from fluents.report.plots import bars, precision_recall
from fluents.report.score_report import METRICS, ROW, ScoreReport
from fluents.report.trace_page import asset, policy, template
from fluents.scoring.bootstrap import FEWEST

TITLES = {"original": "Original metric (OpenPI)", "cluster": "Cluster metric (OpenPI-C)"}


def score_page(report: ScoreReport) -> str:
    """The whole page."""
    css = asset("page.css") + asset("score.css")
    parts = {kind: report.parts(kind) for kind in ("topic", "position")}
    plots = {
        metric: precision_recall(f"pr-{metric}", f"Precision over recall, {metric} metric", list(report.points(metric)))
        for metric in METRICS
    }
    charts = [
        (kind, bars(f"by-{kind}", f"F1 ({ROW}, original metric) by {kind}", groups))
        for kind, groups in parts.items()
        if groups
    ]
    return template("score.html").render(
        title=f"Scores on {report.gold}",
        report=report,
        metrics=METRICS,
        titles=TITLES,
        row=ROW,
        fewest=FEWEST,
        plots=plots,
        charts=charts,
        css=css,
        policy=policy(css),
    )
