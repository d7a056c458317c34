"""Tasks: each done once, its result whole or not there, by whatever processes there are.

`workers` shares tasks among processes of this machine, `engines` has them and those of clusters,
`store` keeps results, `library` says which coldq computed them. What a task is, is not known here.
"""
