# SPDX-License-Identifier: Apache-2.0
"""Rules that a dashboard keeps, each a function from a dashboard and the table
of metrics to a list of complaints."""

import re

import metric_table

DATASOURCE = "${datasource}"
# Panels that draw lines need a name for each.
NAMED_LINES = ("timeseries", "stat")
MATCHERS = ('job=~"$job"', 'instance=~"$instance"')
_selector = re.compile(r"\b(memtuned_\w+|up)(\{[^}]*\})?(\[[^\]]*\])?")
_function = re.compile(r"(\w+)(?:\s+(?:by|without)\s*\(([^)]*)\))?\s*\($")


def panels(dashboard):
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def expressions(dashboard):
    """(where, PromQL) of every panel and annotation."""
    found = [(panel["title"], target["expr"]) for panel in panels(dashboard)
             for target in panel["targets"]]
    return found + [(note["name"], note["expr"])
                    for note in dashboard["annotations"]["list"]]


def functions_around(text, position):
    """(name, by) of each call that `position` lies in, innermost first."""
    found = []
    depth = 0
    for index in range(position - 1, -1, -1):
        depth += (text[index] == ")") - (text[index] == "(")
        if depth < 0:
            depth = 0
            match = _function.search(text[:index + 1])
            found.append((match[1], match[2]) if match else ("", None))
    return found


def selectors(dashboard):
    """(where, metric, labels, range, functions around it)"""
    for where, text in expressions(dashboard):
        for match in _selector.finditer(text):
            yield (where, match[1], match[2] or "", match[3],
                   functions_around(text, match.start()))


def templated_datasource(dashboard, _):
    variables = dashboard["templating"]["list"]
    users = [("variable " + variable["name"], variable)
             for variable in variables[1:]]
    users += [(note["name"], note)
              for note in dashboard["annotations"]["list"]]
    for panel in panels(dashboard):
        users.append((panel["title"], panel))
        users += [(panel["title"], target) for target in panel["targets"]]
    found = [f"{where}: data source is not {DATASOURCE}"
             for where, user in users
             if user["datasource"].get("uid") != DATASOURCE]
    if (variables[0]["name"], variables[0]["type"]) != ("datasource",) * 2:
        found.append("the first variable is not the data source")
    return found


def selects_what_the_variables_name(dashboard, table):
    found = []
    for where, metric, labels, _, _ in selectors(dashboard):
        family = metric_table.family_of(metric, table)
        wanted = MATCHERS
        if family and table[family].per_subject:
            wanted += ('subject=~"$subject"',)
        found += [f"{where}: {metric} without {matcher}"
                  for matcher in wanted if matcher not in labels]
    return found


def known_metrics(dashboard, table):
    return [f"{where}: no metric {metric}"
            for where, metric, *_ in selectors(dashboard)
            if metric != "up" and not metric_table.family_of(metric, table)]


def counters_as_rates(dashboard, table):
    found = []
    for where, metric, _, window, around in selectors(dashboard):
        family = metric_table.family_of(metric, table)
        counter = family and table[family].kind in ("counter", "histogram")
        name = around[0][0] if around else ""
        if counter and name not in ("rate", "increase"):
            found.append(f"{where}: counter {metric} without a rate")
        if not counter and name in ("rate", "increase", "irate"):
            found.append(f"{where}: {metric} is no counter")
        if window not in (None, "[$__rate_interval]"):
            found.append(f"{where}: {metric} over {window}, not "
                         "$__rate_interval")
    return found


def never_summed_over_subjects(dashboard, table):
    found = []
    for where, metric, _, _, around in selectors(dashboard):
        family = metric_table.family_of(metric, table)
        if not family or not table[family].per_subject:
            continue
        for name, by in around:
            if name in ("sum", "avg") and "subject" not in (by or ""):
                found.append(f"{where}: {name} of {metric} over subjects")
    return found


def words_and_units(dashboard, _):
    found = []
    titles = [panel["title"] for panel in panels(dashboard)]
    for panel in panels(dashboard):
        title = panel["title"]
        if not title or titles.count(title) > 1:
            found.append(f"title {title!r} is missing or twice there")
        if len(panel["description"]) < 10:
            found.append(f"{title}: no description")
        if not panel["fieldConfig"]["defaults"].get("unit"):
            found.append(f"{title}: no unit")
        if panel["type"] in NAMED_LINES and not all(
                target["legendFormat"] for target in panel["targets"]):
            found.append(f"{title}: a line without a name")
    if not (dashboard["title"] and dashboard["description"]
            and dashboard["uid"]):
        found.append("the dashboard lacks title, description or uid")
    return found


def places(dashboard, _):
    """On 24 columns, nothing over anything else."""
    taken = {}
    found = []
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        if place["x"] + place["w"] > 24:
            found.append(f"{panel['title']}: beyond column 24")
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                other = taken.setdefault((x, y), panel["title"])
                if other != panel["title"]:
                    found.append(f"{panel['title']}: over {other}")
    return sorted(set(found))


CHECKS = (templated_datasource, selects_what_the_variables_name,
          known_metrics, counters_as_rates, never_summed_over_subjects,
          words_and_units, places)
