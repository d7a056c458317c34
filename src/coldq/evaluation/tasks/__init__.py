"""Tasks: each done once, its result whole or not there, by any executor of concurrent.futures.

`executors` has this process, processes of this machine and clusters, `store` keeps results and runs
what is missing, `library` says which coldq computed them. What a task is, is not known here.
"""
