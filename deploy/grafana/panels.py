# SPDX-License-Identifier: Apache-2.0
"""The parts of a Grafana dashboard, and where they go. Expressions are PromQL
with two short forms: {*} selects what the dashboard's variables name, {@} the
same for metrics without a subject; {*,order="0"} adds to it."""

import re
from dataclasses import dataclass, field

from metric_table import family_of

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
_DAEMON = 'job=~"$job",instance=~"$instance"'
_SUBJECT = _DAEMON + ',subject=~"$subject"'
# The panels that fill a row of 24 columns, and their height.
_PER_ROW = {"stat": (6, 4), "timeseries": (3, 8), "heatmap": (3, 8)}


@dataclass
class Panel:
    title: str
    unit: str
    # (expression, legend) of each query.
    queries: list
    note: str = ""  # before what the metrics mean
    kind: str = "timeseries"
    stacked: bool = False
    legend_only: bool = False  # a stat whose number is always 1


@dataclass
class Dashboard:
    uid: str
    title: str
    description: str
    many_instances: bool
    # (title, panels)
    rows: list = field(default_factory=list)


def expand(expression):
    for short, labels in (("*", _SUBJECT), ("@", _DAEMON)):
        expression = expression.replace("{" + short + "}", "{" + labels + "}")
        expression = expression.replace("{" + short + ",", "{" + labels + ",")
    return expression


def _description(panel, table):
    names = []
    for expression, _ in panel.queries:
        for name in re.findall(r"memtuned_\w+", expression):
            family = family_of(name, table)
            if family is None:
                raise KeyError(f"{panel.title}: no metric {name}")
            if family not in names:
                names.append(family)
    parts = [panel.note] if panel.note else []
    parts += [f"{name}: {table[name].help}" for name in names]
    return "\n\n".join(parts)


def _options(panel):
    if panel.kind == "stat":
        return {"colorMode": "value", "graphMode": "area",
                "reduceOptions": {"calcs": ["lastNotNull"]},
                "textMode": "name" if panel.legend_only else "auto"}
    if panel.kind == "heatmap":
        return {"calculate": False, "yAxis": {"unit": panel.unit},
                "color": {"mode": "scheme", "scheme": "Oranges"}}
    return {"legend": {"displayMode": "table", "placement": "bottom",
                       "calcs": ["lastNotNull", "max"]},
            "tooltip": {"mode": "multi", "sort": "desc"}}


def _custom(panel):
    if panel.kind != "timeseries":
        return {}
    return {"lineWidth": 1, "fillOpacity": 60 if panel.stacked else 0,
            "showPoints": "never",
            "stacking": {"mode": "normal" if panel.stacked else "none"}}


def _panel(panel, number, place, table):
    targets = []
    for letter, (expression, legend) in zip("ABCDEFGH", panel.queries):
        targets.append({
            "datasource": DATASOURCE, "expr": expand(expression),
            "legendFormat": legend, "refId": letter, "range": True,
            "format": "heatmap" if panel.kind == "heatmap" else "time_series"})
    return {"id": number, "type": panel.kind, "title": panel.title,
            "description": _description(panel, table),
            "datasource": DATASOURCE, "gridPos": place, "targets": targets,
            "fieldConfig": {"defaults": {"unit": panel.unit,
                                         "custom": _custom(panel)},
                            "overrides": []},
            "options": _options(panel)}


def _layout(rows, table):
    panels = []
    y = 0
    for title, members in rows:
        panels.append({"id": len(panels) + 1, "type": "row", "title": title,
                       "collapsed": False, "panels": [],
                       "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}})
        y += 1
        x = height = 0
        for panel in members:
            count, h = _PER_ROW[panel.kind]
            w = 24 // count
            if x + w > 24:
                x, y = 0, y + height
            place = {"x": x, "y": y, "w": w, "h": h}
            panels.append(_panel(panel, len(panels) + 1, place, table))
            x, height = x + w, h
        y += height
    return panels


def _variable(name, label, query, many):
    return {"name": name, "label": label, "type": "query",
            "datasource": DATASOURCE, "definition": query,
            "query": {"query": query, "refId": "variable"}, "refresh": 2,
            "sort": 1, "multi": many, "includeAll": many,
            "current": {}, "allValue": ".+" if many else None}


def _variables(dashboard):
    source = "memtuned_sample_age_seconds"
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource",
         "query": "prometheus", "current": {}},
        _variable("job", "Job", f"label_values({source}, job)", True),
        _variable("instance", "Instance",
                  f'label_values({source}{{job=~"$job"}}, instance)',
                  dashboard.many_instances),
        _variable("subject", "Subject",
                  f"label_values({source}{{{_DAEMON}}}, subject)", True)]


def render(dashboard, table):
    """The dashboard as what Grafana imports."""
    changed = expand(
        "changes(memtuned_subject_generation{*}[$__rate_interval]) > 0")
    return {
        "uid": dashboard.uid, "title": dashboard.title,
        "description": dashboard.description, "tags": ["memtuned"],
        "schemaVersion": 37, "version": 1, "editable": False,
        "graphTooltip": 1, "refresh": "30s", "timezone": "browser",
        "time": {"from": "now-1h", "to": "now"},
        "annotations": {"list": [
            {"name": "Changes", "datasource": DATASOURCE, "enable": True,
             "iconColor": "blue", "expr": changed,
             "titleFormat": "change of {{subject}}",
             "textFormat": "{{instance}}"}]},
        "templating": {"list": _variables(dashboard)},
        "links": [{"type": "dashboards", "tags": ["memtuned"],
                   "title": "memtuned", "asDropdown": False,
                   "keepTime": True, "includeVars": True}],
        "panels": _layout(dashboard.rows, table)}
