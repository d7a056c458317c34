"""The paper's Tables 1 and 2, measured: ``coldq rates``.

`settings` says what is run, `store` runs it and resumes, `growth` fits exponents and judges them,
`tables` prints and writes what came out.
"""

from coldq.experiments.rates.tables import measure_tables

__all__ = ["measure_tables"]
