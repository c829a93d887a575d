"""The JSON documents of shardviz: each field is declared once, with its schema and its source.

fields     the pieces that a document is declared with
plans      problems, plans, rankings, layouts, translations, targets and versions
programs   the answers of compilers: collectives, passes, HLO
rounds     collectives round by round
transfers  the messages of these rounds
matmuls    matmuls block by block beside a collective
timelines  what runs when, and live memory
course     lessons and shared problems
kinds      every kind by name, and its schema as a document of JSON Schema 2020-12

A spec is a list with one list of axis names per dimension; the axes of a pending sum are beside it as
`unreduced`. Bytes and shapes are per device unless the name says otherwise.
"""
