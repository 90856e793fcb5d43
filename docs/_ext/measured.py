"""Directives for tables of stored scores, and roles for stored numbers in the text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole
from stored_audits import FILE as AUDITS
from stored_audits import audit_rows
from stored_budgets import FOLDER as BUDGETS
from stored_budgets import SHORTENING, budget_table, shortening_table
from stored_controls import FOLDER as CONTROLS
from stored_controls import control_means, gains, numbers
from stored_few_labels import FOLDER, against_baselines, fine_tuned, larger, means
from stored_networks import FOLDER as NETWORKS
from stored_networks import networks_table
from stored_neuroatlas import FOLDER as NEUROATLAS
from stored_neuroatlas import (
    RHYTHM,
    equality_table,
    neuroatlas_losses,
    neuroatlas_table,
    neuroatlas_tests,
)
from stored_new_subject import FOLDER as NEW_SUBJECT
from stored_new_subject import new_subject_table
from stored_numbers import stored, summary
from stored_pretraining import FOLDER as PRETRAINING
from stored_pretraining import RANDOM, SCRATCH, pretraining_table, temporal_cue
from stored_rates import (
    by_design,
    by_variances,
    study_rates_by_subjects,
    study_rates_by_variances,
)
from stored_rhythms import FILE as RHYTHMS
from stored_rhythms import rhythm_rows
from stored_scores import (
    MEASURED,
    RESULTS,
    averaged_seeds,
    fine_tuning,
    gain,
    provenance,
    read_scores,
    result_scores,
    table,
    tests_against,
    variants,
)
from stored_settings import settings_table
from stored_sleep import FOLDER as SLEEP
from stored_sleep import (
    ablation_table,
    control_table,
    loss_table,
    network_table,
    reproduced_table,
    sham_tests,
    sleep_table,
    sleep_tests,
    ten_lines_table,
)
from stored_space_time import FOLDER as SPACE_TIME
from stored_space_time import SETS, space_time_losses, space_time_table, space_time_tests
from stored_subject_information import FILE as SUBJECT_INFORMATION
from stored_subject_information import subject_rows

from braindecode_pars.evaluation import describe_controls, summarize

__all__ = [
    *("Audits", "Budgets", "Controls", "Costs", "FewLabels", "FewLabelsLarger"),
    *("FewLabelsTuned", "FineTuning", "Gain", "Measured", "Networks", "NeuroAtlas", "NewSubject"),
    *(
        "SubjectInformation",
        "Pretrainings",
        "Rhythms",
        "SettingsTable",
        "Sleep",
        "SpaceTime",
        "Stored",
        "StudyAnswers",
        "Summary",
        "TemporalCue",
        "TestRates",
        "Variants",
    ),
]


#: Titles of tables without and with subject-wise centering.
_CENTERING = {True: "Subject-centered (transductive)", False: "Without centering"}


class _Computed(SphinxDirective):
    """Directive whose reStructuredText is computed from stored files."""

    def parse(self, lines: Iterable[str], files: list[Path]) -> list[nodes.Node]:
        for file in files:
            self.env.note_dependency(str(file))  # rebuild the page if a file changes
        return self.parse_text_to_nodes("\n".join(lines))

    def rows(self) -> list[list[str]]:
        """Return the cells of the content, which has one row per line and "|" between cells."""
        return [[cell.strip() for cell in line.split("|")] for line in self.content if line]


class Measured(_Computed):
    """Show a table of stored scores: ``.. measured:: RESULT``, or a file in ``docs/measured``.

    For a result, a second table has the differences from training from scratch.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        [name] = self.arguments
        is_result = name in RESULTS
        file = MEASURED / (f"{name}.csv" if is_result else name)
        if not file.exists():
            raise self.error(f"The stored table {name} does not exist in docs/measured.")
        origin = provenance([file])
        if is_result:  # the page of a result contains the command
            origin = [line for line in origin if not line.startswith("python")]
        scores = result_scores(name) if is_result else read_scores(file)
        return self.parse(_measured(scores, origin, compared=is_result), [file])


def _measured(scores: pd.DataFrame, origin: list[str], *, compared: bool) -> Iterator[str]:
    yield from _list_table(table(scores).reset_index())
    # Below the table: number of subjects, and provenance of the scores.
    sizes = summarize(scores).groupby("n_train_subjects")["n"].max()
    text = f"Cells are the mean ± SD over {sizes.min()} held-out subjects"
    text += "".join(
        f" ({size} with {n} labeled subjects)" for n, size in sizes[sizes > sizes.min()].items()
    )
    text += f"{averaged_seeds(scores)}."
    yield from ("", text, "")
    yield from (".. rst-class:: origin", "")
    yield from (f"| ``{line}``" for line in origin)
    yield ""
    if compared:
        tests = _list_table(tests_against(scores, "from scratch"))
        yield from _dropdown("Differences from training from scratch, with tests", tests)


class StudyAnswers(_Computed):
    """Show the conclusions of the stored report of a study, one paragraph each."""

    def run(self) -> list[nodes.Node]:
        file = Path(__file__).parents[1] / "_static" / "study.json"
        lines: list[str] = []
        for answer in json.loads(file.read_text(encoding="utf-8"))["answers"]:
            headline, _, details = answer.partition(". ")
            lines += [f"#. **{headline}.** {details}"]
        return self.parse(lines, [file])


class Summary(_Computed):
    """Show the summary of all tasks: ``.. summary:: NUMBER OF LABELED SUBJECTS``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        rows = summary(int(self.arguments[0]))
        return self.parse(_list_table(rows), sorted(MEASURED.glob("*/*.csv")))


class Variants(_Computed):
    """Show variants of ``development.csv``: one row ``description | name | ...`` per line.

    The first line has the column heads.
    """

    has_content = True

    def run(self) -> list[nodes.Node]:
        titles, *rows = self.rows()
        table = variants(rows).set_axis(titles, axis="columns")
        return self.parse(_list_table(table), [MEASURED / "development.csv"])


class FineTuning(_Computed):
    """Show the scores of ``fine_tuning.csv``."""

    def run(self) -> list[nodes.Node]:
        return self.parse(_list_table(fine_tuning()), [MEASURED / "fine_tuning.csv"])


class FewLabels(_Computed):
    """Show scores and tests of ``few_labels/TASK.csv``: ``.. few-labels:: TASK``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        [name] = self.arguments
        file = FOLDER / f"{name}.csv"
        lines: list[str] = []
        for centered, title in _CENTERING.items():
            lines += [f"{title}:", "", *_list_table(means(name, centered=centered)), ""]
            tests = _list_table(against_baselines(name, centered=centered))
            lines += _dropdown(f"Differences between small and baselines, {title.lower()}", tests)
        return self.parse([*lines, *_origin(file)], [file])


class FewLabelsTuned(_Computed):
    """Compare a network with ``small`` and one from scratch: ``.. few-labels-tuned:: TASK``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        [name] = self.arguments
        file = FOLDER / f"{name}_fine_tuned.csv"
        return self.parse(_list_table(fine_tuned(name)), [file, MEASURED / f"{name}.csv"])


class FewLabelsLarger(_Computed):
    """Compare encoders pretrained on a GPU with ``small``; each line is ``title | TASK``."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        names = dict(self.rows())
        lines: list[str] = []
        for centered, title in _CENTERING.items():
            lines += [f"{title}:", "", *_list_table(larger(names, centered=centered)), ""]
        files = [FOLDER / f"{name}{end}.csv" for name in names.values() for end in ("", "_larger")]
        return self.parse([*lines, *_origin(files[1])], files)


class NewSubject(_Computed):
    """Show scores of new subjects by the data used: ``.. new-subject:: TASK``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        [name] = self.arguments
        file = NEW_SUBJECT / f"{name}.csv"
        return self.parse([*_list_table(new_subject_table(name)), "", *_origin(file)], [file])


class Audits(_Computed):
    """Show signal properties decoded from features: ``.. audits:: WINDOWS``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        table = _list_table(audit_rows(self.arguments[0]))
        return self.parse([*table, "", *_origin(AUDITS)], [AUDITS])


class SubjectInformation(_Computed):
    """Show subject information in features: ``.. subjects:: CONTROL``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        table = _list_table(subject_rows(self.arguments[0]))
        return self.parse([*table, "", *_origin(SUBJECT_INFORMATION)], [SUBJECT_INFORMATION])


class Rhythms(_Computed):
    """Show detection thresholds of rhythms: ``.. rhythms::``."""

    def run(self) -> list[nodes.Node]:
        return self.parse([*_list_table(rhythm_rows()), "", *_origin(RHYTHMS)], [RHYTHMS])


class Pretrainings(_Computed):
    """Show ``pretraining/TASK.csv``, with 4 and 16 labeled subjects: ``.. pretrainings:: TASK``.

    Fine-tuned networks, ``TASK_fine_tuned``, have 4 labeled subjects and are compared with training
    from scratch.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        [name] = self.arguments
        file = PRETRAINING / f"{name}.csv"
        lines: list[str] = []
        tuned = name.endswith("_fine_tuned")
        against = SCRATCH if tuned else RANDOM
        shown = [(4, False)] if tuned else [(16, False), (4, False), (16, True), (4, True)]
        for n, centered in shown:
            title = f"{_CENTERING[centered]}, {n} labeled subjects"
            rows = _list_table(pretraining_table(name, n, centered=centered, against=against))
            lines += _dropdown(title, rows) if lines else [f"{title}:", "", *rows, ""]
        return self.parse([*lines, *_origin(file)], [file])


class TemporalCue(_Computed):
    """Show ``temporal_cue.csv``: losses of PARS on windows with a temporal cue."""

    def run(self) -> list[nodes.Node]:
        file = MEASURED / "temporal_cue.csv"
        return self.parse([*_list_table(temporal_cue()), "", *_origin(file)], [file])


class Controls(_Computed):
    """Show control analyses of ``controls/TASK.csv``: ``.. controls:: TASK``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        [name] = self.arguments
        file = CONTROLS / f"{name}.csv"
        sentences = [f"   | {line}" for line in describe_controls(gains(name)).splitlines()]
        title = "Differences from a random encoder, as described by ``describe_controls``:"
        lines = [title, "", *sentences, ""]
        for n in numbers(name):
            title = f"Mean balanced accuracy with {n} labeled subjects"
            lines += _dropdown(title, _list_table(control_means(name, n)))
        return self.parse([*lines, *_origin(file)], [file])


class Networks(_Computed):
    """Show EEGNet and ShallowFBCSPNet, ``networks/RESULT.csv``: ``.. networks:: RESULT``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        [name] = self.arguments
        file = NETWORKS / f"{name}.csv"
        return self.parse([*_list_table(networks_table(name)), "", *_origin(file)], [file])


class Sleep(_Computed):
    """Show ``sleep/NAME.csv``: ``.. sleep:: deep``, wake, networks_deep, ablation, ...

    ``.. sleep:: shams`` compares pretext tasks with their shams, for both tasks.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        [name] = self.arguments
        lines: list[str] = []
        if name in ("deep", "wake", "networks_deep"):
            table = network_table() if name == "networks_deep" else sleep_table(name)
            lines = [*_list_table(table), ""]
            lines += _dropdown(
                "Differences between PARS and other methods", _list_table(sleep_tests(name))
            )
        elif name == "shams":
            titles = {"deep": "Stage 3 vs. 4:", "wake": "Wake vs. deep sleep:"}
            for question, title in titles.items():
                lines += [title, "", *_list_table(sham_tests(question)), ""]
            return self.parse(lines, [SLEEP / f"{question}.csv" for question in titles])
        elif name == "controls":
            for question, title in (("deep", "Stage 3 vs. 4:"), ("wake", "Wake vs. deep sleep:")):
                lines += [title, "", *_list_table(control_table(question)), ""]
        else:
            tables = dict(losses=loss_table, ablation=ablation_table)
            tables |= dict(reproduced=reproduced_table, ten_lines=ten_lines_table)
            lines = [*_list_table(tables[name]()), ""]
        file = SLEEP / f"{name}.csv"
        return self.parse([*lines, *_origin(file)], [file])


class NeuroAtlas(_Computed):
    """Show a table of ``neuroatlas``: ``.. neuroatlas:: scores``, tests, control, ..."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        [name] = self.arguments
        tables = dict(scores=neuroatlas_table, tests=neuroatlas_tests, losses=neuroatlas_losses)
        tables |= dict(equality=equality_table, control=lambda: neuroatlas_table(RHYTHM))
        file = NEUROATLAS / f"{name if name in ('losses', 'equality') else 'scores'}.csv"
        return self.parse([*_list_table(tables[name]()), "", *_origin(file)], [file])


class Budgets(_Computed):
    """Show ``budgets/NAME.csv``: ``.. budgets:: sleep``, or ``.. budgets:: shortening``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        [name] = self.arguments
        file = BUDGETS / f"{name}.csv"
        table = shortening_table() if name == SHORTENING else budget_table(name)
        return self.parse([*_list_table(table), "", *_origin(file)], [file])


class SpaceTime(_Computed):
    """Show all files of ``space_time``: ``.. space-time::``."""

    def run(self) -> list[nodes.Node]:
        lines = [*_list_table(space_time_table()), ""]
        for name, question in SETS.items():
            title = f"Tests on {question}"
            lines += _dropdown(title, _list_table(space_time_tests(name)))
        lines += _dropdown(
            "Relative training losses (1 = chance level)", _list_table(space_time_losses())
        )
        files = [SPACE_TIME / f"{name}.csv" for name in (*SETS, "losses")]
        return self.parse([*lines, *_origin(files[0])], files)


class Costs(_Computed):
    """Show the cost of one fit of each method: ``.. costs:: RESULT``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        file = MEASURED / "costs.csv"
        costs = pd.read_csv(file, comment="#")
        costs = costs[costs["result"] == self.arguments[0]]
        numbers = sorted(costs["n_train_subjects"].unique())
        lines: list[str] = []
        for n in (numbers[0], numbers[-1]):
            rows = costs[costs["n_train_subjects"] == n].drop(
                columns=["result", "n_train_subjects"]
            )
            shown = _cost_table(rows)
            if n == numbers[0]:
                lines += [f"With {n} labeled subjects:", "", *shown, ""]
            else:
                lines += [f".. dropdown:: With {n} labeled subjects", ""]
                lines += [f"   {line}" for line in shown]
        return self.parse(lines, [file])


class SettingsTable(_Computed):
    """Show a table of settings and run times in ``docs/measured``: ``.. settings-table:: FILE``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        file = MEASURED / self.arguments[0]
        table = _list_table(settings_table(file), widths=(32, 18, 14, 18, 18))
        return self.parse([*table, "", *_origin(file)], [file])


class TestRates(_Computed):
    """Show error rates of tests in simulations: ``.. test-rates::``."""

    def run(self) -> list[nodes.Node]:
        file = MEASURED / "test_rates.csv"
        extremes = _dropdown("Extreme variances", _list_table(by_variances()))
        lines = [*_list_table(by_design()), "", *extremes, *_origin(file)]
        return self.parse(lines, [file])


class StudyRates(_Computed):
    """Show error rates and power of the test of a study: ``.. study-rates::``."""

    def run(self) -> list[nodes.Node]:
        file = MEASURED / "study_rates.csv"
        variances = _dropdown("By variances", _list_table(study_rates_by_variances()))
        lines = [*_list_table(study_rates_by_subjects()), "", *variances, *_origin(file)]
        return self.parse(lines, [file])


class Stored(SphinxRole):
    """Insert a stored number: ``:stored:`FILE | ...```, see :mod:`stored_numbers`.

    The build fails if there is no such number.
    """

    def run(self) -> tuple[list[nodes.Node], list]:
        file = MEASURED / f"{self.text.partition('|')[0].strip()}.csv"
        self.env.note_dependency(str(file))
        return [nodes.Text(stored(" ".join(self.text.split())))], []  # may be on two lines


class Gain(SphinxRole):
    """Insert a difference from training from scratch: ``:gain:`RESULT/METHOD/N_SUBJECTS```."""

    def run(self) -> tuple[list[nodes.Node], list]:
        name, method, n = " ".join(self.text.split()).split("/")
        self.env.note_dependency(str(MEASURED / f"{name}.csv"))
        return [nodes.Text(gain(name, method, int(n)))], []


#: Column heads that differ from the stored names.
_TITLES = {"parameters": "trained parameters", "finetuning_steps": "fine-tuning steps"}


def _cost_table(rows: pd.DataFrame) -> list[str]:
    shown = rows.copy()
    for name in shown.columns[1:]:
        shown[name] = ["" if pd.isna(value) else f"{value:,.0f}" for value in rows[name]]
    shown.columns = [_TITLES.get(name, name.replace("_", " ")) for name in shown]
    return _list_table(shown)


def _dropdown(title: str, lines: Iterable[str]) -> list[str]:
    return [f".. dropdown:: {title}", "", *(f"   {line}" for line in lines), ""]


def _origin(file: Path) -> list[str]:
    return [".. rst-class:: origin", "", *(f"| ``{line}``" for line in provenance([file])), ""]


def _list_table(rows: pd.DataFrame, widths: tuple[int, ...] = ()) -> list[str]:
    """Format a table as reStructuredText, without line breaks at "±" or "="."""
    lines = [".. list-table::", "   :header-rows: 1"]
    if widths:
        lines += [f"   :widths: {' '.join(map(str, widths))}"]
    lines += [""]
    for row in [list(rows.columns), *rows.to_numpy().tolist()]:
        cells = [re.sub(r" (±|=) ", "\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}", x) for x in row]
        lines += [f"   {'* ' if i == 0 else '  '}- {cell}" for i, cell in enumerate(cells)]
    return lines


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("measured", Measured)
    app.add_directive("summary", Summary)
    app.add_directive("variants", Variants)
    app.add_directive("audits", Audits)
    app.add_directive("costs", Costs)
    app.add_directive("few-labels", FewLabels)
    app.add_directive("few-labels-tuned", FewLabelsTuned)
    app.add_directive("few-labels-larger", FewLabelsLarger)
    app.add_directive("fine-tuning", FineTuning)
    app.add_directive("controls", Controls)
    app.add_directive("networks", Networks)
    app.add_directive("neuroatlas", NeuroAtlas)
    app.add_directive("new-subject", NewSubject)
    app.add_directive("space-time", SpaceTime)
    app.add_directive("subjects", SubjectInformation)
    app.add_directive("rhythms", Rhythms)
    app.add_directive("pretrainings", Pretrainings)
    app.add_directive("temporal-cue", TemporalCue)
    app.add_directive("settings-table", SettingsTable)
    app.add_directive("sleep", Sleep)
    app.add_directive("budgets", Budgets)
    app.add_directive("test-rates", TestRates)
    app.add_directive("study-rates", StudyRates)
    app.add_directive("study-answers", StudyAnswers)
    app.add_role("stored", Stored())
    app.add_role("gain", Gain())
    return {"parallel_read_safe": True}
