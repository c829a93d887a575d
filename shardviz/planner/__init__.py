"""The plan that a textbook would give for a problem, with the reason of every step; standard library only.

The floors, each of which stands on those before it:

    problem/     a text → statements of named arrays; `training` adds their gradients
    states/      how one array may be split, the moves between, their prices, the cheapest way
    statements/  how devices may divide one statement's work, what that needs of its arrays, plans of trees
    planner      problem → `plan.Plan`; `program_planner` where arrays are used several times; `reasons`
    pricing/     what a plan costs on a machine
    search/      the best mesh and the best shardings on it, at the same prices"""
