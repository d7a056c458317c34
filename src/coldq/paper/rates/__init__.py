"""The paper's Tables 1 and 2, measured: ``coldq rates``.

`settings` says what is run, `store` runs it and resumes, `growth` fits exponents and judges them,
`tables` puts together what came out.
"""
