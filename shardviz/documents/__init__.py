"""The JSON documents of shardviz: each field is declared once, with its schema and its source, in a table of
the files beside the module that has what is computed for it.

fields     how tables are read; every kind of document by name, and its schema
plans      problems, plans and what they cost, rankings, searches
programs   the answers of compilers: collectives, passes, HLO; whole models; what runs when, and what ran
rounds     collectives round by round, their messages, and matmuls block by block beside them
machines   meshes, specs, layouts, notations and jobs; machines, targets, versions, and what was measured
summaries  the cost of a program in short, its changes, and its file
course     lessons and shared problems

A spec is a list with one list of axis names per dimension; the axes of a pending sum are beside it as
`unreduced`. Bytes and shapes are per device unless the name says otherwise."""
