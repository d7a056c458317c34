"""Steps drawn to break the solver, and judges that read nothing of its code.

``python -m tests.adversary --help`` runs them by the thousand; the tests run a share.
"""
